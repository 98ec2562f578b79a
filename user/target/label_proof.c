/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts together what FDEs, calls and the code itself say of labels. */
#include "target/label_proof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/code_flow.h"
#include "target/elf_file.h"
#include "target/fde_ranges.h"

#define MAX_TEXT (512U << 20) /* bytes of code that are searched for calls */
#define PIECE 65536U
#define CALL_SZ 5 /* e8 and the distance */

struct group { /* of claims of one label whose code has to be followed */
	uint64_t label, end;
	size_t first, cnt; /* of the claims */
};

struct proof {
	const struct elf_file *elf;
	struct label_claim *claims;
	size_t cnt;
	struct fde_range *ranges; /* of all addresses and labels, ascending */
	size_t range_cnt;
	struct group *groups; /* ascending, without overlap */
	size_t group_cnt;
};

/* ---- FDEs ---- */

static int compare_ranges(const void *a, const void *b)
{
	uint64_t x = ((const struct fde_range *)a)->vaddr, y = ((const struct fde_range *)b)->vaddr;

	return x < y ? -1 : x > y;
}

static const struct fde_range *range_of(const struct proof *p, uint64_t vaddr)
{
	const struct fde_range key = { .vaddr = vaddr };

	return bsearch(&key, p->ranges, p->range_cnt, sizeof(key), compare_ranges);
}

static int find_ranges(struct proof *p, const struct elf_file *debug)
{
	struct fde_range *r = calloc(p->cnt, 2 * sizeof(*r));
	size_t i, n = 0;

	p->ranges = r;
	if (!r)
		return -ENOMEM;
	for (i = 0; i < p->cnt; i++) {
		r[2 * i].vaddr = p->claims[i].vaddr;
		r[2 * i + 1].vaddr = p->claims[i].label;
	}
	qsort(r, 2 * p->cnt, sizeof(*r), compare_ranges);
	for (i = 0; i < 2 * p->cnt; i++) {
		if (!n || r[n - 1].vaddr != r[i].vaddr)
			r[n++] = r[i];
	}
	p->range_cnt = n;
	return fde_ranges_find(p->elf, debug, r, n);
}

/* That of a signal frame begins a byte early, for unwinders look a return address up by the byte
 * before it. */
static bool begins_at(const struct fde_range *r, uint64_t label)
{
	return r->start == label || (r->signal && r->start == label - 1);
}

/* Decides on a claim by what FDEs say; true if they say nothing. */
static bool is_left(const struct proof *p, struct label_claim *c)
{
	const struct fde_range *at = range_of(p, c->vaddr), *label = range_of(p, c->label);

	if (at->start) {
		/* a mark can stand where somebody's function begins */
		c->proved = begins_at(at, c->label) && c->is_function;
		return false;
	}
	/* behind the end of a function whose end is known */
	if (label->start)
		return false;
	c->proved = c->vaddr == c->label;
	c->end = MIN(c->end, label->next);
	return !c->proved && c->vaddr < c->end;
}

static void make_groups(struct proof *p)
{
	struct group *g = NULL;
	size_t i;

	for (i = 0; i < p->cnt; i++) {
		struct label_claim *c = &p->claims[i];

		if (!is_left(p, c))
			continue;
		if (!g || g->label != c->label) {
			g = &p->groups[p->group_cnt++];
			*g = (struct group){ .label = c->label, .end = c->end, .first = i };
		}
		g->cnt = i + 1 - g->first;
	}
}

/* ---- calls ---- */

/* A function begins at the target: no group goes beyond it. */
static void take_target(struct proof *p, uint64_t target)
{
	struct group *g = p->groups;
	size_t n = p->group_cnt, half;

	if (target <= g[0].label || target >= g[n - 1].end)
		return;
	for (; n > 1; n -= half) {
		half = n / 2;
		g += g[half].label < target ? half : 0;
	}
	if (target > g->label && target < g->end)
		g->end = target;
}

/* Every e8 counts, wherever instructions begin: one that is none takes away a name at worst. */
static void scan_piece(struct proof *p, const uint8_t *code, size_t sz, uint64_t vaddr)
{
	const uint8_t *at = code, *end = code + sz;
	int32_t rel;

	while ((size_t)(end - at) >= CALL_SZ && (at = memchr(at, 0xe8, end - at - CALL_SZ + 1))) {
		memcpy(&rel, at + 1, sizeof(rel));
		at++;
		take_target(p, vaddr + (at - code) + CALL_SZ - 1 + (uint64_t)(int64_t)rel);
	}
}

static int scan_calls(struct proof *p)
{
	uint8_t *code = malloc(PIECE);
	const struct elf_segment *seg;
	size_t cnt, i, sz, left = MAX_TEXT;
	uint64_t pos;
	int err = code ? 0 : -ENOMEM;

	seg = elf_file__segments(p->elf, &cnt);
	for (i = 0; i < cnt && !err; i++) {
		for (pos = 0; seg[i].exec && pos < seg[i].filesz && !err; pos += sz) {
			sz = MIN(seg[i].filesz - pos, PIECE);
			err = left < sz ?
				      -E2BIG :
				      elf_file__read_vaddr(p->elf, seg[i].vaddr + pos, code, sz);
			if (err)
				break;
			left -= sz;
			scan_piece(p, code, sz, seg[i].vaddr + pos);
			/* a call may lie across the end of the piece */
			sz -= pos + sz < seg[i].filesz ? CALL_SZ - 1 : 0;
		}
	}
	free(code);
	return err;
}

/* ---- code ---- */

static int follow(struct proof *p)
{
	struct code_flow *flow = code_flow__new(p->elf);
	size_t i, k;

	if (!flow)
		return -errno;
	for (i = 0; i < p->group_cnt; i++) {
		const struct group *g = &p->groups[i];

		code_flow__follow(flow, g->label, g->end);
		for (k = g->first; k < g->first + g->cnt; k++) {
			struct label_claim *c = &p->claims[k];

			c->proved |= c->vaddr < g->end && code_flow__reaches(flow, c->vaddr);
		}
	}
	code_flow__free(flow);
	return 0;
}

int label_proof(const struct elf_file *elf, const struct elf_file *debug,
		struct label_claim *claims, size_t cnt)
{
	struct proof p = { .elf = elf, .claims = claims, .cnt = cnt };
	size_t i;
	int err;

	for (i = 0; i < cnt; i++)
		claims[i].proved = false;
	if (!cnt)
		return 0;
	err = find_ranges(&p, debug);
	if (!err)
		p.groups = calloc(cnt, sizeof(*p.groups));
	if (!err && !p.groups)
		err = -ENOMEM;
	if (!err)
		make_groups(&p);
	if (!err && p.group_cnt)
		err = scan_calls(&p);
	if (!err && p.group_cnt)
		err = follow(&p);
	free(p.ranges);
	free(p.groups);
	return err == -ENOMEM ? err : 0;
}
