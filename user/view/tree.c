// SPDX-License-Identifier: BSD-2-Clause
#include "view/tree.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "profile/difference.h"
#include "profile/frames.h"
#include "profile/profile.h"
#include "profile/ranks.h"
#include "profile/units.h"

#define NONE UINT32_MAX
#define ROOT 0 /* node: stands for no function, and has all stacks below it */

struct node {
	int64_t cum, flat;
	uint32_t parent, name;
	uint32_t child, child_cnt; /* into order, what is left out not being there */
	uint32_t forks;		   /* among those above it */
};

/* Where a function called by a node is. */
struct edge {
	uint32_t parent, name; /* key */
	uint32_t node;
};

struct tree {
	const struct frames *frames;
	const struct tree_options *opts;
	struct node *nodes; /* a parent comes before its children */
	size_t cnt, cap;
	struct hash edges;
	size_t max;
	uint32_t *ranks; /* of names */
	uint32_t *order; /* nodes that are shown, by parent, larger ones first */
	size_t shown;
	int64_t total;
	size_t small, deep; /* branches that are left out: below the share, or within too many */
};

/* ---- what there is ---- */

static int add_node(struct tree *t, uint32_t parent, uint32_t name)
{
	if (t->cnt == t->max)
		return -E2BIG;
	if (util_reserve(&t->nodes, &t->cap, t->cnt + 1, sizeof(*t->nodes)))
		return -ENOMEM;
	t->nodes[t->cnt++] = (struct node){ .parent = parent, .name = name };
	return 0;
}

/* Goes from a node to the one that it calls. */
static int go_to_child(struct tree *t, uint32_t *at, uint32_t name)
{
	uint32_t key[] = { *at, name };
	bool is_new;
	struct edge *e = hash__insert(&t->edges, key, &is_new);
	int err = 0;

	if (!e)
		return -ENOMEM;
	if (is_new) {
		e->node = (uint32_t)t->cnt;
		err = add_node(t, *at, name);
	}
	*at = e->node;
	return err;
}

static int add_sample(struct tree *t, const struct profile_sample *s)
{
	const struct frames *fr = t->frames;
	int64_t value = profile__values(fr->profile, s)[t->opts->value];
	uint32_t at = ROOT;

	if (!value)
		return 0;
	for (uint32_t i = s->loc_cnt; i-- > 0;) {
		uint32_t loc = fr->profile->loc_ids[s->loc + i];

		for (uint32_t k = frames__cnt(fr, loc); k-- > 0;) {
			int err = go_to_child(t, &at, frames__name(fr, loc, k));

			if (err)
				return err;
			t->nodes[at].cum = util_add_saturated(t->nodes[at].cum, value);
		}
	}
	t->nodes[at].flat = util_add_saturated(t->nodes[at].flat, value);
	return 0;
}

static int build(struct tree *t)
{
	const struct profile *p = t->frames->profile;
	int err = add_node(t, NONE, 0);

	t->total = difference_whole(p, t->opts->value);
	for (size_t i = 0; !err && i < p->sample_cnt; i++)
		if (!t->opts->left_out || !t->opts->left_out[i])
			err = add_sample(t, &p->samples[i]);
	return err;
}

/* ---- what is shown ---- */

static int compare_nodes(const void *pa, const void *pb, void *tree)
{
	const struct tree *t = tree;
	const struct node *a = &t->nodes[*(const uint32_t *)pa],
			  *b = &t->nodes[*(const uint32_t *)pb];

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (util_magnitude(a->cum) != util_magnitude(b->cum))
		return util_magnitude(a->cum) > util_magnitude(b->cum) ? -1 : 1;
	if (a->cum != b->cum)
		return a->cum > b->cum ? -1 : 1;
	return t->ranks[a->name] < t->ranks[b->name] ? -1 : t->ranks[a->name] > t->ranks[b->name];
}

static bool is_small(const struct tree *t, const struct node *n)
{
	return fabs((double)n->cum) < t->opts->min_share * fabs((double)t->total);
}

/* Sorts what is not too small, and what has such branches: with values on both sides of 0 a branch may be
 * larger than what it grows from. */
static int choose(struct tree *t)
{
	t->order = malloc(t->cnt * sizeof(*t->order));
	t->ranks = ranks_make(t->frames->names);
	if (!t->order || !t->ranks)
		return -ENOMEM;
	/* child_cnt tells for now that a node is shown; parents come first */
	for (size_t i = t->cnt; i-- > 1;) {
		struct node *n = &t->nodes[i];

		if (!is_small(t, n))
			n->child_cnt = 1;
		if (n->child_cnt)
			t->nodes[n->parent].child_cnt = 1;
	}
	t->nodes[ROOT].child_cnt = 1;
	for (size_t i = 1; i < t->cnt; i++) {
		struct node *n = &t->nodes[i];

		if (!t->nodes[n->parent].child_cnt)
			continue;
		t->small += !n->child_cnt;
		if (n->child_cnt)
			t->order[t->shown++] = (uint32_t)i;
	}
	for (size_t i = 0; i < t->cnt; i++)
		t->nodes[i].child_cnt = 0;
	qsort_r(t->order, t->shown, sizeof(*t->order), compare_nodes, t);
	for (size_t i = 0; i < t->shown; i++) {
		struct node *parent = &t->nodes[t->nodes[t->order[i]].parent];

		if (!parent->child_cnt++)
			parent->child = (uint32_t)i;
	}
	return 0;
}

/* ---- lines ---- */

struct printer {
	const struct tree *tree;
	const struct units_scale *scale;
	FILE *f;
	bool more[TREE_MAX_FORKS + 1]; /* by fork: do branches follow? */
	size_t lines;
	size_t bytes; /* of names */
};

static void print_node(struct printer *pr, const struct node *n, bool is_branch)
{
	const struct tree *t = pr->tree;
	const char *unit = t->frames->profile->value_types[t->opts->value].unit;
	const char *name = strtab__get(t->frames->names, n->name);
	char cum[UNITS_SZ], flat[UNITS_SZ], cum_percent[UNITS_PERCENT_SZ],
		flat_percent[UNITS_PERCENT_SZ];

	fprintf(pr->f, "%10s %s %10s %s  ", units_text(cum, n->cum, unit, pr->scale),
		units_percent(cum_percent, n->cum, t->total),
		units_text(flat, n->flat, unit, pr->scale),
		units_percent(flat_percent, n->flat, t->total));
	for (uint32_t i = 1; i <= n->forks; i++) {
		if (i == n->forks && is_branch)
			fputs(pr->more[i] ? "├─ " : "└─ ", pr->f);
		else
			fputs(pr->more[i] ? "│  " : "   ", pr->f);
	}
	pr->bytes += strlen(name);
	fprintf(pr->f, "%s\n", name);
	pr->lines++;
}

/* Of those shown, the next behind a node and all below it; NONE: that was the last one. */
static uint32_t next_behind(const struct tree *t, const uint32_t *place, uint32_t at)
{
	while (at != ROOT) {
		const struct node *parent = &t->nodes[t->nodes[at].parent];

		if (place[at] + 1 < parent->child + parent->child_cnt)
			return t->order[place[at] + 1];
		at = t->nodes[at].parent;
	}
	return NONE;
}

static int print_nodes(struct printer *pr, struct tree *t, const uint32_t *place)
{
	uint32_t at = t->shown ? t->order[t->nodes[ROOT].child] : NONE;

	while (at != NONE && (!t->opts->limit || pr->lines < t->opts->limit)) {
		struct node *n = &t->nodes[at];
		const struct node *parent = &t->nodes[n->parent];
		bool is_branch = parent->child_cnt > 1;

		n->forks = parent->forks + is_branch;
		if (n->forks > TREE_MAX_FORKS) {
			t->deep += parent->child_cnt;
			at = next_behind(t, place, n->parent);
			continue;
		}
		if (is_branch)
			pr->more[n->forks] = place[at] + 1 < parent->child + parent->child_cnt;
		print_node(pr, n, is_branch);
		if (pr->bytes > TREE_MAX_NAMES)
			return -E2BIG;
		at = n->child_cnt ? t->order[n->child] : next_behind(t, place, at);
	}
	return 0;
}

static void print_left_out(const struct printer *pr)
{
	const struct tree *t = pr->tree;

	if (t->opts->limit && pr->lines == t->opts->limit && pr->lines < t->shown)
		fprintf(pr->f, "These are the first %zu of %zu lines\n", pr->lines, t->shown);
	if (t->small)
		fprintf(pr->f, "%zu branches below %g %% of the total are left out\n", t->small,
			t->opts->min_share * 100);
	if (t->deep)
		fprintf(pr->f, "%zu branches within more than %d others are left out\n", t->deep,
			TREE_MAX_FORKS);
}

static const struct units_scale *pick_scale(const struct tree *t)
{
	const char *unit = t->frames->profile->value_types[t->opts->value].unit;
	double min = 0;

	for (size_t i = 0; i < t->shown; i++) {
		const struct node *n = &t->nodes[t->order[i]];
		double v = fabs((double)(n->flat ? n->flat : n->cum));

		if (v > 0 && (min == 0 || v < min))
			min = v;
	}
	return units_pick_for_table(unit, min, (double)t->total);
}

static int print(struct tree *t, FILE *f)
{
	struct printer pr = { .tree = t, .scale = pick_scale(t), .f = f };
	uint32_t *place = calloc(t->cnt, sizeof(*place)); /* in order, of each node */
	int err;

	if (!place)
		return -ENOMEM;
	for (size_t i = 0; i < t->shown; i++)
		place[t->order[i]] = (uint32_t)i;
	fprintf(f, "%10s %6s %10s %6s  %s\n", "cum", "cum%", "flat", "flat%", "name");
	err = print_nodes(&pr, t, place);
	if (!err)
		print_left_out(&pr);
	free(place);
	return err || !ferror(f) ? err : -EIO;
}

int tree_write(const struct frames *fr, const struct tree_options *o, FILE *f)
{
	struct tree t = { .frames = fr, .opts = o, .max = o->max_nodes ?: TREE_MAX_NODES };
	int err;

	hash__init(&t.edges, sizeof(struct edge), 2 * sizeof(uint32_t), HASH_MAX);
	err = build(&t);
	if (!err)
		err = choose(&t);
	if (!err)
		err = print(&t, f);
	hash__done(&t.edges);
	free(t.nodes);
	free(t.order);
	free(t.ranks);
	return err;
}
