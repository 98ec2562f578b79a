/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code of the profiled processes: which object a range maps, which objects have their unwind
 * table in table memory, and what the kernel side has been told about each process. Tables are
 * loaded when a stack asks for them and evicted, the least used first, when the memory they may
 * take is used up.
 */
#ifndef CODE_H
#define CODE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"
#include "capture/copies.h"
#include "target/procs.h"

/*
 * What was needed is kept until so many more files came, or so many bytes more of tables: a program
 * that is started again and again has them, and a node where ever new ones come has no more than
 * twice that too much. A compiler's table takes 1 to 2 MiB.
 */
#define CODE_SPARE_FILES 64
#define CODE_SPARE_BYTES (4U << 20)

struct code;
struct object_info;
struct objects;
struct perf_maps;
struct tables;

struct code_stats {
	uint64_t objects;     /* with a table built */
	uint64_t rows, bytes; /* of the tables in memory */
	uint64_t cfi_bytes;   /* call frame information read */
	uint64_t build_ns;
	uint64_t evicted;  /* objects whose table had to make room */
	uint64_t unopened; /* files that were gone, or replaced, when they were to be opened */
	uint64_t cut_maps; /* executable ranges of one process that there was no room for, at the
			      most */
	struct copies_stats copies;
};

/* Borrows all three. NULL with errno. */
struct code *code__new(struct procs *procs, struct objects *objects, struct tables *tables);
void code__free(struct code *c);

/* The object that a range of the process maps, opened if need be; OBJECTS_NONE if it cannot be had.
 */
uint32_t code__object(struct code *c, uint32_t proc, const struct proc_map *map);
/* The same if it is that process's alone, though others may have mapped a file of that number. It is kept as long as the
 * process is known. */
uint32_t code__own_object(struct code *c, uint32_t proc, const struct proc_map *map);

/*
 * Is a range memory that a process fills with code itself? The kernel has no file for it, or one of
 * its own making in memory that is no object. Its names, if any, are in the process's perf map.
 */
bool code__is_generated(struct code *c, uint32_t proc, const struct proc_map *map);
/* The maps, numbered as perf_maps__of does; borrowed. */
struct perf_maps *code__perf_maps(struct code *c);
/* What it was made with; borrowed. */
struct objects *code__objects(struct code *c);

const struct object_info *code__object_info(const struct code *c, uint32_t object);

/*
 * Lets go of what nobody needs any more: the files that no process maps and nobody refers to
 * (procs.h), and the objects of which that holds for all their files, with their descriptors and
 * unwind tables. Their numbers are given to others from then on. Looks at them when, since the last
 * time, CODE_SPARE_FILES files came, or a quarter of those that stayed if that is more, or
 * CODE_SPARE_BYTES of tables. What has an object goes if it was not needed the last time either, and
 * nobody asked for it in between.
 */
void code__release_unused(struct code *c);

/*
 * What did not answer in time, a file that was to be opened or one that was to be read, counts as having no table until
 * it may be asked for again; stacks that go through it are copied from then on, so that it is. To be called now and then.
 */
void code__ask_again(struct code *c);

/* A chunk of table memory, for unwinding here. */
const uint8_t *code__chunk(const struct code *c, uint32_t idx);

/*
 * Makes the table of the range's object available, if it has one. Finds out before whether memory
 * of the process is a copy of a file's code, so that its ranges may be others afterwards. 0 or
 * -ENOMEM.
 */
int code__load(struct code *c, uint32_t proc, const struct proc_map *map);
/* All that a process maps, and publishes it: so that none of its stacks has to be copied. 0 or -errno. */
int code__load_all(struct code *c, uint32_t proc);

/*
 * Tells the kernel side what is known of a process, if that changed since it was told. The
 * process's key has to be known. 0 or -errno.
 */
int code__publish(struct code *c, uint32_t proc);

/* What the kernel side was told: for unwinding here. False if it was told nothing yet. */
bool code__published(const struct code *c, uint32_t proc, struct bpfprof_proc *ret);

/* Are stacks that the kernel side cannot walk to be copied? So it is at first; not where they led nowhere,
 * until the process's mappings change. */
void code__want_raw(struct code *c, uint32_t proc, bool wanted);

/*
 * The frames of a stack, leaf first: how many of them stand in code that is what its range says. A
 * range that is a copy of a file's code is compared with it where a frame stands in it for the
 * first time. What it is not the same as is memory from then on.
 */
size_t code__vouch(struct code *c, uint32_t proc, const uint64_t *frames, size_t cnt,
		   uint64_t time_ns);

/* The process is about to be removed from procs. */
void code__forget(struct code *c, uint32_t proc);

/* Another stack is unwound: what code__read has kept of the memory of processes is read anew. */
void code__begin_looks(struct code *c);
/* Bytes of code as the process sees them at addr: of an object from its file; of memory that it has
 * filled itself `then`, what it is known to have had there, or if that is NULL what it has now:
 * -ESRCH if that is gone. 0 or -errno. */
int code__read(struct code *c, uint32_t proc, uint64_t addr, const uint8_t *then, void *buf,
	       size_t sz);

void code__stats(const struct code *c, struct code_stats *ret);

#endif
