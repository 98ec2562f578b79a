/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/flow_parts.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/util.h"
#include "target/elf_file.h"

#define MAX_AREAS 4096
#define MIN_RUN 16   /* bytes: less is what aligns the next function */
#define WORTH_RUN 64 /* the same of most of V8's */
/* Less than one byte in so many is not worth it. */
#define MIN_SHARE 1024

struct areas {
	struct flow_range v[MAX_AREAS];
	size_t cnt;
};

static int by_start(const void *a, const void *b)
{
	const struct flow_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void add_area(struct areas *a, uint64_t start, uint64_t size)
{
	if (size && a->cnt < MAX_AREAS && start <= UINT64_MAX - size)
		a->v[a->cnt++] = (struct flow_range){ start, start + size };
}

/* Executable sections; without any, executable segments. Ascending, without overlap. */
static void find_areas(struct areas *a, const struct elf_file *elf)
{
	const struct elf_segment *seg;
	struct elf_section s;
	size_t cnt, i, kept = 0;

	a->cnt = 0;
	for (i = 1; i < MIN(elf_file__section_cnt(elf), (size_t)MAX_AREAS); i++) {
		if (elf_file__section_by_index(elf, i, &s) && s.type == SHT_PROGBITS &&
		    (s.flags & (SHF_EXECINSTR | SHF_ALLOC)) == (SHF_EXECINSTR | SHF_ALLOC))
			add_area(a, s.addr, s.size);
	}
	if (!a->cnt) {
		seg = elf_file__segments(elf, &cnt);
		for (i = 0; i < cnt; i++) {
			if (seg[i].exec)
				add_area(a, seg[i].vaddr, seg[i].filesz);
		}
	}
	qsort(a->v, a->cnt, sizeof(*a->v), by_start);
	for (i = 0; i < a->cnt; i++) {
		if (!kept || a->v[i].start >= a->v[kept - 1].end)
			a->v[kept++] = a->v[i];
		else
			a->v[kept - 1].end = MAX(a->v[kept - 1].end, a->v[i].end);
	}
	a->cnt = kept;
}

/* ---- runs ---- */

bool flow_code__is_padding(const uint8_t *p, size_t sz)
{
	struct insn in;

	while (sz && (*p == 0 || insn_decode(p, sz, &in))) {
		size_t len = *p == 0 ? 1 : in.len;
		bool nop = *p == 0 || (in.map == INSN_ONE && (in.op == 0x90 || in.op == 0xcc)) ||
			   (in.map == INSN_0F && in.op == 0x1f);

		if (!nop)
			return false;
		p += len;
		sz -= len;
	}
	return !sz;
}

/* Takes the addresses up to end, of what is left of FLOW_MAX_CODE. */
static int add_run(struct flow_code *c, uint64_t start, uint64_t end)
{
	int err;

	end = MIN(end, start + (FLOW_MAX_CODE - c->sz));
	if (end - start < MIN_RUN)
		return 0;
	err = util_reserve(&c->runs, &c->run_cap, c->run_cnt + 1, sizeof(*c->runs));
	if (err)
		return err;
	c->runs[c->run_cnt++] = (struct flow_run){ start, end, (uint32_t)c->sz };
	c->sz += end - start;
	return 0;
}

/* What the covered ranges leave of an area. Those before *i end before it; moves *i on. */
static int add_gaps(struct flow_code *c, const struct flow_range *area,
		    const struct flow_range *covered, size_t covered_cnt, size_t *i)
{
	uint64_t at = area->start;
	int err = 0;

	while (*i < covered_cnt && covered[*i].end <= at)
		++*i;
	for (; *i < covered_cnt && covered[*i].start < area->end && !err; ++*i) {
		if (covered[*i].start > at)
			err = add_run(c, at, covered[*i].start);
		at = MAX(at, covered[*i].end);
		/* it may lead into the next area */
		if (at >= area->end)
			return err;
	}
	return err || at >= area->end ? err : add_run(c, at, area->end);
}

/* Do the runs have so much that they are worth it? Small ones are mostly padding. */
static bool is_worth(const struct flow_code *c, uint64_t sum)
{
	uint64_t sz = 0;
	size_t i;

	for (i = 0; i < c->run_cnt; i++) {
		if (c->runs[i].end - c->runs[i].start >= WORTH_RUN)
			sz += c->runs[i].end - c->runs[i].start;
	}
	return sz && sz >= sum / MIN_SHARE;
}

int flow_code__find(struct flow_code *c, const struct elf_file *elf,
		    const struct flow_range *covered, size_t covered_cnt)
{
	struct areas *a = malloc(sizeof(*a));
	uint64_t sum = 0;
	size_t i = 0, k;
	int err = a ? 0 : -ENOMEM;

	memset(c, 0, sizeof(*c));
	if (a)
		find_areas(a, elf);
	for (k = 0; !err && k < a->cnt; k++) {
		sum += a->v[k].end - a->v[k].start;
		err = add_gaps(c, &a->v[k], covered, covered_cnt, &i);
	}
	free(a);
	if (err || !is_worth(c, sum))
		flow_code__done(c);
	return err;
}

int flow_code__read(struct flow_code *c, const struct elf_file *elf)
{
	size_t i, kept = 0, sz = 0;

	c->bytes = malloc(c->sz);
	if (!c->bytes)
		return -ENOMEM;
	for (i = 0; i < c->run_cnt; i++) {
		struct flow_run r = c->runs[i];

		if (elf_file__read_vaddr(elf, r.start, c->bytes + sz, r.end - r.start) ||
		    flow_code__is_padding(c->bytes + sz, r.end - r.start))
			continue;
		r.at = (uint32_t)sz;
		sz += r.end - r.start;
		c->runs[kept++] = r;
	}
	c->run_cnt = kept;
	c->sz = sz;
	return 0;
}

void flow_code__done(struct flow_code *c)
{
	free(c->runs);
	free(c->bytes);
	memset(c, 0, sizeof(*c));
}

const struct flow_run *flow_code__run(const struct flow_code *c, uint64_t addr)
{
	size_t i = SORTED_UPPER_BOUND(c->runs, c->run_cnt, end, addr);

	return i < c->run_cnt && addr >= c->runs[i].start ? &c->runs[i] : NULL;
}

const struct flow_run *flow_code__run_at(const struct flow_code *c, uint32_t at)
{
	size_t lo = 0, hi = c->run_cnt;

	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->runs[mid].at <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo < hi ? &c->runs[lo] : NULL;
}

bool flow_code__at(const struct flow_code *c, uint64_t addr, uint32_t *ret_at)
{
	const struct flow_run *r = flow_code__run(c, addr);

	if (r)
		*ret_at = r->at + (uint32_t)(addr - r->start);
	return r != NULL;
}
