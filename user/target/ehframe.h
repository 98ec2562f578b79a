/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds unwind tables from call frame information: DWARF 5 section 6.4, and LSB Core 10.6 for what
 * .eh_frame does otherwise. The result has the form that bpf/bpfprof.h gives to a part, ready to be
 * copied into table memory.
 */
#ifndef TARGET_EHFRAME_H
#define TARGET_EHFRAME_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

#define EHFRAME_MAX_ROWS (16U << 20) /* of one object */

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

/*
 * Reads .eh_frame by its section, without section headers by PT_GNU_EH_FRAME, and .debug_frame for
 * addresses that the former does not have. Returns 0, also with an empty table; -ENOENT if the
 * object has no call frame information; -EBADMSG if nothing of it could be read; -ENOMEM; -E2BIG.
 * Damaged entries are left out.
 */
int ehframe_build(struct elf_file *elf, struct unwind_table *ret);
void unwind_table__done(struct unwind_table *t);

#endif
