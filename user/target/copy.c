// SPDX-License-Identifier: BSD-2-Clause
/* Where in a process the code of a file would lie. */
#include "target/copy.h"

#include "base/util.h"
#include "target/elf_file.h"
#include "target/procs.h"

static uint64_t page_down(uint64_t addr)
{
	return addr & ~(COPY_PAGE - 1);
}

static uint64_t page_up(uint64_t addr)
{
	return page_down(addr + COPY_PAGE - 1);
}

/* Segments that a loader can map; their addresses are below 2^47, see struct elf_segment. */
static bool is_mappable(const struct elf_segment *s)
{
	return s->filesz && (s->vaddr - s->offset) % COPY_PAGE == 0 &&
	       s->offset <= INT64_MAX - s->filesz;
}

/* The code segment's place, with the object's address 0 at `bias`, as far as it is in the range.
 * False if there is nothing. */
static bool cut_piece(const struct elf_segment *segments, size_t cnt,
		      const struct elf_segment *code, uint64_t bias, const struct proc_map *range,
		      struct copy_piece *ret)
{
	uint64_t start = page_down(code->vaddr) + bias;
	uint64_t end = page_up(code->vaddr + code->filesz) + bias, vaddr;

	if (start >= end)
		return false;
	ret->start = MAX(start, range->start);
	ret->end = MIN(end, range->end);
	ret->offset = page_down(code->offset) + (ret->start - start);
	/* a page that belongs to two segments may be taken for the other's */
	return ret->start < ret->end && elf_segments__vaddr(segments, cnt, ret->offset, &vaddr) &&
	       vaddr + bias == ret->start;
}

static bool is_among(const struct copy_piece *pieces, size_t cnt, const struct copy_piece *p)
{
	for (size_t i = 0; i < cnt; i++)
		if (pieces[i].start == p->start && pieces[i].end == p->end &&
		    pieces[i].offset == p->offset)
			return true;
	return false;
}

size_t copy_pieces(const struct elf_segment *segments, size_t cnt, const struct proc_map *beside,
		   const struct proc_map *range, struct copy_piece *ret, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < cnt; i++) {
		const struct elf_segment *s = &segments[i];
		uint64_t bias;

		if (!is_mappable(s) || beside->offset < page_down(s->offset) ||
		    beside->offset >= page_up(s->offset + s->filesz))
			continue;
		bias = beside->start - (s->vaddr + (beside->offset - s->offset));
		if (bias % COPY_PAGE)
			continue;
		for (size_t j = 0; j < cnt && n < max; j++)
			if (segments[j].exec && is_mappable(&segments[j]) &&
			    cut_piece(segments, cnt, &segments[j], bias, range, &ret[n]) &&
			    !is_among(ret, n, &ret[n]))
				n++;
	}
	return n;
}

bool copy_file_part(const struct elf_segment *segments, size_t cnt, const struct proc_map *map,
		    uint64_t *start, uint64_t *end, uint64_t *ret_vaddr)
{
	uint64_t base, lo, hi;

	if (!elf_segments__vaddr(segments, cnt, map->offset, &base))
		return false;
	for (size_t i = 0; i < cnt; i++) {
		const struct elf_segment *s = &segments[i];

		if (!s->exec || s->vaddr - s->offset != base - map->offset)
			continue;
		lo = MAX(base + (*start - map->start), s->vaddr);
		hi = MIN(base + (*end - map->start), s->vaddr + s->filesz);
		if (lo >= hi)
			continue;
		*start = map->start + (lo - base);
		*end = map->start + (hi - base);
		*ret_vaddr = lo;
		return true;
	}
	return false;
}
