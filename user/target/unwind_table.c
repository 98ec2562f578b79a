/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packs rows into parts, and looks rows up in them.
 *
 * Rows arrive by ascending address. Those of one 256-byte block are held back until the block is
 * complete, since a part can only end between blocks; then they go to the current part, or to a new
 * one if the current one has no room. A part that begins inside a function repeats the rule in
 * force in its first row, so that each part can be searched by itself.
 */
#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/unwind_build.h"
#include "target/unwind_table.h"

#define BLOCK_SZ (1U << BPFPROF_BLOCK_SHIFT)
#define HOLE_BLOCKS \
	(1U << (20 - BPFPROF_BLOCK_SHIFT)) /* a hole of 1 MiB without rules is not indexed */

/* Limits of a part and of an object, beside BPFPROF_PART_MAX_ROWS. The first two keep a part below
 * half a chunk. */
#define MAX_BLOCKS (1U << 17) /* 32 MiB of text */
#define MAX_RULES 4000	      /* distinct rules; the most found in a distribution is 800 */
#define MAX_PARTS 4096
#define MAX_TEXT (2ULL << 30)	 /* bytes: what the small code model has room for (psABI, 3.5.1) */
#define MAX_BYTES (256ULL << 20) /* all of table memory */
_Static_assert(sizeof(struct bpfprof_part) + 2 * (MAX_BLOCKS + 1) + 3 * BPFPROF_PART_MAX_ROWS + 16 +
			       MAX_RULES * sizeof(struct bpfprof_rule) <=
		       BPFPROF_CHUNK_SZ / 2,
	       "part size");

/*
 * Rules are found again by a table of the packer's own: with base/hash, all of building takes a tenth
 * longer. It needs no seed, as it gives up after MAX_PROBES and stores a rule once more: chosen
 * collisions cost bytes, not time.
 */
#define HASH_BITS 13
#define HASH_SZ (1U << HASH_BITS)
#define MAX_PROBES 32

struct unwind_packer {
	struct unwind_table *t;
	size_t part_cap;
	uint64_t text_sz; /* covered by the parts so far */
	int err;
	struct bpfprof_rule force; /* of the last row */

	/* the block that rows arrive for, and the rule in force before it */
	uint64_t block; /* address >> BPFPROF_BLOCK_SHIFT */
	struct bpfprof_rule before;
	uint32_t held_cnt;
	uint8_t held_off[BLOCK_SZ];
	struct bpfprof_rule held[BLOCK_SZ];

	/* the part being filled, if open */
	bool open;
	uint64_t first; /* block */
	uint32_t blk_cnt, row_cnt, rule_cnt;
	uint16_t hash[HASH_SZ]; /* index into rules + 1, 0: free */
	uint16_t blk[MAX_BLOCKS + 1];
	uint8_t off[BPFPROF_PART_MAX_ROWS];
	uint16_t rule[BPFPROF_PART_MAX_ROWS];
	struct bpfprof_rule rules[MAX_RULES];
};

struct unwind_packer *unwind_packer__new(struct unwind_table *t)
{
	struct unwind_packer *p = malloc(sizeof(*p)); /* calloc would touch all of it */

	if (!p)
		return NULL;
	p->t = t;
	p->part_cap = 0;
	p->text_sz = 0;
	p->err = 0;
	memset(&p->force, 0, sizeof(p->force));
	p->held_cnt = 0;
	p->open = false;
	return p;
}

void unwind_packer__free(struct unwind_packer *p)
{
	free(p);
}

int unwind_packer__error(const struct unwind_packer *p)
{
	return p->err;
}

static bool same_rule(const struct bpfprof_rule *a, const struct bpfprof_rule *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* The part's number of a rule. */
static uint16_t intern(struct unwind_packer *p, const struct bpfprof_rule *rule)
{
	uint64_t w[2];
	uint32_t slot, i;

	memcpy(w, rule, sizeof(w));
	w[0] = (w[0] ^ w[1] * 0x9e3779b97f4a7c15ULL) * 0xff51afd7ed558ccdULL;
	slot = (uint32_t)(w[0] >> (64 - HASH_BITS));
	for (i = 0; i < MAX_PROBES; i++, slot = (slot + 1) % HASH_SZ) {
		if (!p->hash[slot]) {
			p->hash[slot] = (uint16_t)(p->rule_cnt + 1);
			break;
		}
		if (same_rule(&p->rules[p->hash[slot] - 1], rule))
			return p->hash[slot] - 1;
	}
	p->rules[p->rule_cnt] = *rule;
	return (uint16_t)p->rule_cnt++;
}

static void add_row(struct unwind_packer *p, uint8_t off, const struct bpfprof_rule *rule)
{
	p->off[p->row_cnt] = off;
	p->rule[p->row_cnt] = intern(p, rule);
	p->row_cnt++;
	p->t->unsupported_cnt += rule->cfa == BPFPROF_CFA_UNSUPPORTED;
}

static void open_part(struct unwind_packer *p, uint64_t block)
{
	p->open = true;
	p->first = block;
	p->blk_cnt = 0;
	p->row_cnt = 0;
	p->rule_cnt = 0;
	memset(p->hash, 0, sizeof(p->hash));
}

/* Blocks up to and including `block` begin with the next row; those before it that were not filled
 * have none. */
static void fill_to(struct unwind_packer *p, uint64_t block)
{
	while (p->blk_cnt <= block - p->first)
		p->blk[p->blk_cnt++] = (uint16_t)p->row_cnt;
}

static uint32_t align(uint32_t v, uint32_t to)
{
	return (v + to - 1) & ~(to - 1);
}

/* Rules that refer to a word of the object do so from the part's first address on. */
static void relate(struct unwind_packer *p)
{
	for (uint32_t i = 0; i < p->rule_cnt; i++) {
		struct bpfprof_rule *r = &p->rules[i];

		if (r->cfa >= BPFPROF_CFA_GO_SYSTEMSTACK && r->reg)
			r->cfa_off -= (int32_t)(p->first << BPFPROF_BLOCK_SHIFT);
	}
}

static void *make_blob(struct unwind_packer *p, uint32_t *ret_sz)
{
	struct bpfprof_part head = { .blk_cnt = p->blk_cnt, .row_cnt = p->row_cnt };
	uint32_t blk_sz = 2 * (p->blk_cnt + 1), sz;
	uint8_t *blob;

	p->blk[p->blk_cnt] = (uint16_t)p->row_cnt;
	head.off_pos = (uint32_t)sizeof(head) + blk_sz;
	head.rule_pos = align(head.off_pos + p->row_cnt, 2);
	head.rules_pos = align(head.rule_pos + 2 * p->row_cnt, 16);
	sz = head.rules_pos + p->rule_cnt * (uint32_t)sizeof(struct bpfprof_rule);
	blob = malloc(sz);
	if (!blob)
		return NULL;
	memcpy(blob, &head, sizeof(head));
	memcpy(blob + sizeof(head), p->blk, blk_sz);
	memset(blob + head.off_pos, 0, head.rules_pos - head.off_pos);
	relate(p);
	memcpy(blob + head.off_pos, p->off, p->row_cnt);
	memcpy(blob + head.rule_pos, p->rule, 2 * p->row_cnt);
	memcpy(blob + head.rules_pos, p->rules, sz - head.rules_pos);
	*ret_sz = sz;
	return blob;
}

static void close_part(struct unwind_packer *p)
{
	struct unwind_table *t = p->t;
	struct unwind_part *part;

	p->open = false;
	if (p->err)
		return;
	p->err = util_reserve(&t->parts, &p->part_cap, t->part_cnt + 1, sizeof(*part));
	if (p->err)
		return;
	part = &t->parts[t->part_cnt];
	part->vaddr = p->first << BPFPROF_BLOCK_SHIFT;
	part->text_sz = p->blk_cnt << BPFPROF_BLOCK_SHIFT;
	part->blob = make_blob(p, &part->blob_sz);
	if (!part->blob) {
		p->err = -ENOMEM;
		return;
	}
	t->part_cnt++;
	t->row_cnt += p->row_cnt;
	t->rule_cnt += p->rule_cnt;
	t->blob_sz += part->blob_sz;
	p->text_sz += part->text_sz;
	if (t->part_cnt > MAX_PARTS || t->blob_sz > MAX_BYTES || t->row_cnt > UNWIND_MAX_ROWS ||
	    p->text_sz > MAX_TEXT)
		p->err = -E2BIG;
}

/* Room for the rows held, and one that repeats the rule in force? */
static bool has_room(const struct unwind_packer *p)
{
	return p->row_cnt + p->held_cnt < BPFPROF_PART_MAX_ROWS &&
	       p->rule_cnt + p->held_cnt < MAX_RULES;
}

/* Closes the current part if the block held does not go there; the parts up to the block then cover
 * all that has a rule. */
static void make_room(struct unwind_packer *p)
{
	if (p->before.cfa == BPFPROF_CFA_NONE) {
		if (p->block - (p->first + p->blk_cnt) >= HOLE_BLOCKS ||
		    p->block - p->first >= MAX_BLOCKS || !has_room(p))
			close_part(p);
		return;
	}
	while (p->block - p->first >= MAX_BLOCKS && !p->err) {
		uint64_t next = p->first + MAX_BLOCKS;

		fill_to(p, next - 1);
		close_part(p);
		open_part(p, next);
		if (next < p->block) {
			fill_to(p, next);
			add_row(p, 0, &p->before);
		}
	}
	if (!has_room(p)) {
		fill_to(p, p->block - 1);
		close_part(p);
	}
}

static void flush_block(struct unwind_packer *p)
{
	uint32_t i;

	if (!p->held_cnt || p->err)
		return;
	if (p->open)
		make_room(p);
	if (p->err)
		return;
	if (!p->open)
		open_part(p, p->block);
	fill_to(p, p->block);
	if (!p->row_cnt && p->before.cfa != BPFPROF_CFA_NONE && p->held_off[0])
		add_row(p, 0, &p->before);
	for (i = 0; i < p->held_cnt; i++)
		add_row(p, p->held_off[i], &p->held[i]);
	p->held_cnt = 0;
}

void unwind_packer__row(struct unwind_packer *p, uint64_t vaddr, struct bpfprof_rule rule)
{
	if (same_rule(&rule, &p->force) || p->err)
		return;
	if (!p->held_cnt || vaddr >> BPFPROF_BLOCK_SHIFT != p->block) {
		flush_block(p);
		p->block = vaddr >> BPFPROF_BLOCK_SHIFT;
		p->before = p->force;
		p->held_cnt = 0;
	}
	assert(p->held_cnt < BLOCK_SZ);
	p->held_off[p->held_cnt] = (uint8_t)vaddr;
	p->held[p->held_cnt] = rule;
	p->held_cnt++;
	p->force = rule;
}

int unwind_packer__finish(struct unwind_packer *p)
{
	flush_block(p);
	if (p->open)
		close_part(p);
	return p->err;
}

void unwind_table__done(struct unwind_table *t)
{
	size_t i;

	for (i = 0; i < t->part_cnt; i++)
		free(t->parts[i].blob);
	free(t->parts);
	memset(t, 0, sizeof(*t));
}
