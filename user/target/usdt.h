/* SPDX-License-Identifier: BSD-2-Clause */
/* USDT probes (.note.stapsdt): all of them, and those by which a program tells of its sampled
 * allocations: provider otel_memory, probes alloc and free. */
#ifndef TARGET_USDT_H
#define TARGET_USDT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

/* One site of a probe. Strings are the visit's. */
struct usdt_note {
	uint64_t vaddr;	    /* of the instruction */
	uint64_t semaphore; /* virtual address; 0: none */
	const char *provider, *name, *args;
};

/* 0, or -errno to end the visit. */
typedef int (*usdt_note_fn)(void *ctx, const struct usdt_note *note);

/* Visits all sites. None is no error. 0; -ENOMEM; what reading the file or fn failed with. */
int usdt_visit(const struct elf_file *elf, usdt_note_fn fn, void *ctx);

#define USDT_MAX_SITES 512 /* of allocations, in one object; more are left out */

struct usdt_site {
	uint64_t vaddr;	    /* of the instruction */
	uint64_t semaphore; /* virtual address; 0: none */
	uint64_t cookie;    /* where the arguments are: see bpf/bpfprof.h */
	bool alloc;	    /* otel_memory:alloc, else otel_memory:free */
};

/* The sites whose arguments can be told by a cookie; *ret is the caller's to free. None is no
 * error. 0 or -ENOMEM, or what reading the file failed with. */
int usdt_find(const struct elf_file *elf, struct usdt_site **ret, size_t *ret_cnt);

/* The cookie of a note's argument string, of its first `want` (at most 3) arguments. 0; -EINVAL if
 * it has fewer or one of another form. */
int usdt_parse_args(const char *args, size_t want, uint64_t *ret);

#endif
