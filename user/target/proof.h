/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is memory of a process a copy of a file's code? Its bytes say so: /proc/PID/mem (proc(5)) is
 * compared with the file. Both are read by processes without rights (target/reader.h), since what
 * is mapped there may be a file whose server does not answer (FUSE). Those that read memory read no
 * file, so a file that takes over its reader gets no memory of others to see.
 *
 * A range is compared in windows, since all of it may be some hundred MiB: both ends, and others
 * that are chosen at random each time. A single unit is compared whole. Which pages were found to
 * be the same is kept.
 */
#ifndef TARGET_PROOF_H
#define TARGET_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/copy.h"

#define PROOF_UNIT 65536ULL /* bytes that are compared at a time; a power of two */

struct objects;
struct proc_map;
struct procs;
struct proofs;

/* A part of a range that was compared. */
struct proof_unit {
	uint64_t start, end;
	uint64_t same; /* pages, see proof_bit */
};

static inline uint64_t proof_bit(const struct proof_unit *u, uint64_t addr)
{
	return 1ULL << (addr - u->start) / COPY_PAGE;
}

/* Borrows both. NULL with errno. */
struct proofs *proofs__new(struct procs *procs, struct objects *objects);
void proofs__free(struct proofs *p);

/*
 * Does the range of the process hold the code of the object that *map says? Forgets what was known
 * of its pages. 0 if the windows are the same, and are more than gaps filled with one byte;
 * -EBADMSG if not; other -errno if that cannot be known: -ESRCH, the process has ended; -E2BIG, it
 * has had too many.
 */
int proofs__range(struct proofs *p, uint32_t proc, uint32_t object, const struct proc_map *map);

/* Compares the unit that holds addr, as far as it lies in the range. 0 or -errno. */
int proofs__unit(struct proofs *p, uint32_t proc, uint32_t object, const struct proc_map *map,
		 uint64_t addr, struct proof_unit *ret);

/* Was the page of addr found to be the same? */
bool proofs__has(const struct proofs *p, uint32_t proc, uint64_t addr);

/* Reads memory of a process, at most PROOF_UNIT. 0 or -errno. */
int proofs__read(struct proofs *p, uint32_t proc, uint64_t addr, void *buf, size_t sz);

/* Is there more to it than one byte over and over? */
bool proof_is_telling(const uint8_t *bytes, size_t sz);

/* The process is about to be removed from procs. */
void proofs__forget(struct proofs *p, uint32_t proc);

#endif
