/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Table memory shared with the kernel side: an allocator over chunks, which holds unwind tables and
 * the mapping lists of processes. See bpf/bpfprof.h for what lies in it.
 *
 * The kernel side may be reading an extent when it is freed. Freed extents are therefore set aside,
 * and used again only when every program that was running has ended (grace.h). Then a chunk in which
 * nothing lies is also given back to the system, while the others have as much room as one has: where
 * many programs were sampled once, their tables take no memory for ever.
 */
#ifndef KERNEL_TABLES_H
#define KERNEL_TABLES_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

struct session;
struct tables;

struct tables_extent {
	uint32_t chunk, pos, sz; /* sz 0: none */
};

struct tables_map { /* one executable range of a process, as struct bpfprof_map has it */
	uint64_t start;
	struct bpfprof_map map;
};

/* max_chunks: bound of the memory, at most BPFPROF_MAX_CHUNKS; the first one is made at once. NULL
 * with errno. */
struct tables *tables__new(struct session *s, uint32_t max_chunks);
void tables__free(struct tables *t);

/*
 * Copies a part as unwind_build makes it into table memory. 0; -ENOSPC if no room is left (free
 * something, settle, try again); -errno.
 */
int tables__add_part(struct tables *t, const void *blob, uint32_t sz, struct tables_extent *ret);
/* Has the kernel side walked through the part since it was last asked? */
int tables__test_and_clear_used(struct tables *t, const struct tables_extent *part);
void tables__release(struct tables *t, struct tables_extent *e);
/* Makes use of what was freed, as far as it may be by now, and sees to it that the rest can be
 * later. To be called now and then. */
void tables__tend(struct tables *t);
/* The same for all that was freed: waits for it. */
void tables__settle(struct tables *t);

/* From here on programs find all memory that there is, which tables__set_proc sees to. 0 or -errno. */
int tables__publish(struct tables *t);

/*
 * Makes the kernel side know a process, or replaces what it knew. maps: ascending, without overlap,
 * below BPFPROF_MAX_MAPS. *list is the process's list extent, all 0 at first; the former one is
 * released. 0 or -errno as above.
 */
int tables__set_proc(struct tables *t, const struct bpfprof_proc_key *key,
		     const struct tables_map *maps, size_t cnt, uint32_t gen,
		     struct tables_extent *list);
/* Changes flags of a process whose list stays as it is. Failure leaves the former ones. */
void tables__update_proc(struct tables *t, const struct bpfprof_proc_key *key,
			 const struct bpfprof_proc *value);
void tables__del_proc(struct tables *t, const struct bpfprof_proc_key *key,
		      struct tables_extent *list);

/* The chunk as we see it, for unwinding here; NULL if there is none. */
const uint8_t *tables__chunk(const struct tables *t, uint32_t idx);

/* Chunks that there are. */
uint32_t tables__chunk_cnt(const struct tables *t);

/* Bytes in use by tables and lists, without what was released. */
uint64_t tables__bytes(const struct tables *t);

#endif
