/* SPDX-License-Identifier: BSD-2-Clause */
/* What tests look up by themselves in unwind tables and ELF files, one address at a time. */
#ifndef TRUTH_H
#define TRUTH_H

#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "bpfprof.h"
#include "target/elf_file.h"
#include "target/unwind_build.h"

/* The part of a table that has this address, or NULL. */
static inline const struct unwind_part *truth_part(const struct unwind_table *t, uint64_t vaddr)
{
	size_t lo = 0, hi = t->part_cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->parts[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && vaddr - t->parts[lo - 1].vaddr < t->parts[lo - 1].text_sz ? &t->parts[lo - 1] :
										 NULL;
}

/* Its rule at vaddr; BPFPROF_CFA_NONE if there is none. */
static inline void truth_lookup(const struct unwind_table *t, uint64_t vaddr,
				struct bpfprof_rule *ret)
{
	const struct unwind_part *part = truth_part(t, vaddr);
	const struct bpfprof_part *head;
	const struct bpfprof_rule *rules;
	const uint16_t *blk, *rule;
	const uint8_t *off;
	uint32_t row, end, b;

	memset(ret, 0, sizeof(*ret));
	if (!part)
		return;
	head = part->blob;
	blk = (const uint16_t *)(head + 1);
	off = (const uint8_t *)part->blob + head->off_pos;
	rule = (const uint16_t *)((const uint8_t *)part->blob + head->rule_pos);
	rules = (const struct bpfprof_rule *)((const uint8_t *)part->blob + head->rules_pos);
	b = (uint32_t)((vaddr - part->vaddr) >> BPFPROF_BLOCK_SHIFT);
	row = blk[b];
	end = blk[b + 1];
	while (row < end && off[row] <= (uint8_t)vaddr)
		row++;
	if (row)
		*ret = rules[rule[row - 1]];
}

/* elf_segments__vaddr of a byte of a file. */
static inline bool truth_vaddr(const struct elf_file *e, uint64_t offset, uint64_t *ret_vaddr)
{
	size_t cnt;
	const struct elf_segment *segments = elf_file__segments(e, &cnt);

	return elf_segments__vaddr(segments, cnt, offset, 0, ret_vaddr);
}

#endif
