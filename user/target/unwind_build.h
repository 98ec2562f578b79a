/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds an object's unwind table out of all that the object says of its code: several sources,
 * each of which knows some of its functions. The result has the form that bpf/bpfprof.h gives to a
 * part, ready to be copied into table memory.
 */
#ifndef TARGET_UNWIND_BUILD_H
#define TARGET_UNWIND_BUILD_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct unwind_packer;

#define UNWIND_MAX_ROWS (16U << 20) /* of one object */

struct unwind_part {
	uint64_t vaddr;	  /* first address covered, a multiple of 256 */
	uint32_t text_sz; /* bytes covered: addresses from vaddr on */
	uint32_t blob_sz; /* at most BPFPROF_CHUNK_SZ / 2 */
	void *blob; /* struct bpfprof_part and what follows it, positions counted from the blob's
		       start */
};

struct unwind_table {
	struct unwind_part *parts; /* ascending, without overlap */
	size_t part_cnt;
	uint64_t row_cnt, rule_cnt;
	uint64_t cfi_sz;	  /* bytes of call frame information read */
	uint64_t blob_sz;	  /* sum over parts */
	uint64_t unsupported_cnt; /* rows whose rule is BPFPROF_CFA_UNSUPPORTED */
};

/* Functions and their rows, as one kind of information has them. */
struct unwind_source {
	void *ctx;
	size_t cnt;
	/* The addresses of function i, end exclusive; ascending with i, not empty. Where two
	 * overlap, the former ends where the latter begins. */
	void (*range)(const void *ctx, size_t i, uint64_t *ret_start, uint64_t *ret_end);
	/* Gives the rows of function i to out, none at or above end, which is no more than the
	 * range's. Asked for in ascending order, perhaps not for all. */
	void (*rows)(void *ctx, size_t i, uint64_t end, struct unwind_packer *out);
};

/*
 * Merges the sources, of which the former are believed rather than the latter: a function that
 * begins within one of an earlier source is left out. *ret is empty or the caller's to release.
 * 0, -ENOMEM or -E2BIG.
 */
int unwind_build_merged(const struct unwind_source *sources, size_t cnt, struct unwind_table *ret);

/*
 * The table of an object: from the tables of Go's runtime, from .eh_frame, from .debug_frame, and by
 * following the code (target/flow.h), each for what the former do not have. Returns 0, also with an
 * empty table; -ENOENT if there is no information at all; -EBADMSG if nothing of it could be read;
 * -ENOMEM; -E2BIG.
 */
int unwind_build(const struct elf_file *elf, struct unwind_table *ret);
void unwind_table__done(struct unwind_table *t);

#endif
