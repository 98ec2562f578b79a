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

static bool is_among(const struct copy_place *places, size_t cnt, const struct copy_place *p)
{
	for (size_t i = 0; i < cnt; i++)
		if (places[i].start == p->start && places[i].end == p->end &&
		    places[i].offset == p->offset)
			return true;
	return false;
}

/* Adds where the code lies with the object's address 0 at `bias`, unless that wraps around. */
static size_t add_places(const struct elf_segment *segments, size_t cnt, uint64_t bias,
			 struct copy_place *ret, size_t n, size_t max)
{
	for (size_t i = 0; i < cnt && n < max; i++) {
		const struct elf_segment *s = &segments[i];
		uint64_t vaddr = page_down(s->vaddr);

		if (!s->exec || !is_mappable(s))
			continue;
		ret[n] = (struct copy_place){ .start = vaddr + bias,
					      .end = page_up(s->vaddr + s->filesz) + bias,
					      .offset = page_down(s->offset),
					      .vaddr = vaddr };
		n += ret[n].start < ret[n].end && !is_among(ret, n, &ret[n]);
	}
	return n;
}

size_t copy_places(const struct elf_segment *segments, size_t cnt, const struct proc_map *beside,
		   struct copy_place *ret, size_t max)
{
	size_t n = 0;

	cnt = MIN(cnt, COPY_MAX_SEGMENTS);
	for (size_t i = 0; i < cnt; i++) {
		const struct elf_segment *s = &segments[i];
		uint64_t bias;

		if (!is_mappable(s) || beside->offset < page_down(s->offset) ||
		    beside->offset >= page_up(s->offset + s->filesz))
			continue;
		bias = beside->start - (s->vaddr + (beside->offset - s->offset));
		if (bias % COPY_PAGE == 0)
			n = add_places(segments, cnt, bias, ret, n, max);
	}
	return n;
}

bool copy_cut(const struct elf_segment *segments, size_t cnt, const struct proc_map *range,
	      struct copy_place *place)
{
	uint64_t start = MAX(place->start, range->start), vaddr;

	place->offset += start - place->start;
	place->vaddr += start - place->start;
	place->start = start;
	place->end = MIN(place->end, range->end);
	/* a page that belongs to two segments may be taken for the other's */
	return place->start < place->end &&
	       elf_segments__vaddr(segments, cnt, place->offset, place->end - place->start,
				   &vaddr) &&
	       vaddr == place->vaddr;
}

bool copy_file_part(const struct elf_segment *segments, size_t cnt, const struct proc_map *map,
		    uint64_t *start, uint64_t *end, uint64_t *ret_vaddr)
{
	uint64_t base, lo, hi;

	if (!elf_segments__vaddr(segments, cnt, map->offset, map->end - map->start, &base))
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
