/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that programs have copied from their files to memory (target/copy.h): which memory of a
 * process is the copy of what, proved by its bytes. procs then has it as a range of the file, whose
 * names and unwind tables hold there.
 *
 * Memory is taken for a copy if it lies where the file's code would be, by what else of the file is
 * mapped, and if windows of it, both ends and others that are chosen at random each time, are what
 * the file has. All of it is not compared at once; each page is before something in it is named. So
 * a program that changes its copy, or makes memory look like one, gains no name of the file's for
 * other code, as long as it does so before it is sampled there, or as the kernel notices (mmap,
 * mprotect).
 *
 * V8 has a second copy of its builtins near the code that it makes. Such memory, of a process whose
 * code is copied anyway, is looked for by its bytes in the same file.
 */
#ifndef COPIES_H
#define COPIES_H

#include <stddef.h>
#include <stdint.h>

struct copies;
struct objects;
struct proc_map;
struct procs;

/* Ranges of processes, and pieces of them, as it stood at the end of each. */
struct copies_stats {
	uint64_t proved; /* that are copies */
	uint64_t differ; /* that lie where a file's code was, and hold other bytes */
	uint64_t unread; /* that could not be compared: the process had ended, its file was gone, or
			  * it has had too many */
};

/*
 * Borrows both. object(ctx, proc, map) gives the object that a range maps, or OBJECTS_NONE. NULL
 * with errno.
 */
struct copies *copies__new(struct procs *procs, struct objects *objects,
			   uint32_t (*object)(void *ctx, uint32_t proc, const struct proc_map *map),
			   void *ctx);
void copies__free(struct copies *c);

/* Finds out about all ranges of the process of which procs does not know whether they are copies.
 * 0 or -ENOMEM. */
int copies__settle(struct copies *c, uint32_t proc);

/* See code__vouch. */
size_t copies__vouch(struct copies *c, uint32_t proc, const uint64_t *frames, size_t cnt,
		     uint64_t time_ns);

/* Memory of a process that something is in, as it is now, at most 64 KiB. 0 or -errno; -ENODATA: it
 * is all zeros, as what was given back to the kernel is. */
int copies__read(struct copies *c, uint32_t proc, uint64_t addr, void *buf, size_t sz);

/*
 * The same of a few bytes, for a stack that is unwound. A read of another process's memory is a request to a helper, some
 * 50 us, and a stack of generated code may ask for thousands: so a page is read once, at most COPIES_LOOKS pages are, and
 * copies__begin_looks, with which each stack begins, forgets them. -EBUSY: it would be one page more.
 */
#define COPIES_LOOKS 64
void copies__begin_looks(struct copies *c);
int copies__look(struct copies *c, uint32_t proc, uint64_t addr, void *buf, size_t sz);

/* The process is about to be removed from procs. */
void copies__forget(struct copies *c, uint32_t proc);

void copies__stats(struct copies *c, struct copies_stats *ret);

#endif
