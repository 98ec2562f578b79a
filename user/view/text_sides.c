/* SPDX-License-Identifier: BSD-2-Clause */
#include "view/text_sides.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/difference.h"
#include "profile/frames.h"
#include "profile/profile.h"
#include "profile/units.h"
#include "view/text.h"
#include "view/view.h"

#define MANY_PERCENT 1000 /* need no digits behind the point */

/* Of both sides: [0] the base, [1] new. */
struct row {
	int64_t flat[2], cum[2];
	uint32_t name;	 /* of frames.names */
	uint32_t sample; /* number, from 1, of the last sample that counted into cum; 0: none did */
};

struct table {
	const struct view *v;
	struct frames frames;
	struct row *rows;
	size_t row_cnt;
	int64_t total[2];
	const char *unit;
};

static int64_t minus(int64_t now, int64_t base)
{
	return util_add_saturated(now, util_negate_saturated(base));
}

/* ---- The rows ---- */

static void count_sample(struct table *t, uint32_t number, bool shown)
{
	const struct profile *p = t->v->profile;
	const struct profile_sample *s = &p->samples[number - 1];
	bool of_base = difference_of_base(p, s), is_new = !of_base;
	int64_t own = profile__values(p, s)[t->v->value], value = of_base ? minus(0, own) : own;

	t->total[is_new] = util_add_saturated(t->total[is_new], value);
	for (uint32_t i = 0; shown && value && i < s->loc_cnt; i++) {
		uint32_t loc = p->loc_ids[s->loc + i];

		for (uint32_t k = 0; k < frames__cnt(&t->frames, loc); k++) {
			struct row *row = &t->rows[frames__name(&t->frames, loc, k)];

			if (!i && !k)
				row->flat[is_new] = util_add_saturated(row->flat[is_new], value);
			/* a function that calls itself costs once */
			if (row->sample != number)
				row->cum[is_new] = util_add_saturated(row->cum[is_new], value);
			row->sample = number;
		}
	}
}

static int compare_sizes(int64_t a, int64_t b)
{
	uint64_t x = util_magnitude(a), y = util_magnitude(b);

	return x == y ? 0 : x > y ? -1 : 1;
}

static int compare_rows(const void *pa, const void *pb, void *arg)
{
	const struct row *a = pa, *b = pb;
	const struct table *t = arg;
	int order = compare_sizes(minus(a->flat[1], a->flat[0]), minus(b->flat[1], b->flat[0]));

	if (!order)
		order = compare_sizes(minus(a->cum[1], a->cum[0]), minus(b->cum[1], b->cum[0]));
	return order ? order :
		       strcmp(strtab__get(t->frames.names, a->name),
			      strtab__get(t->frames.names, b->name));
}

static int fill(struct table *t)
{
	const struct profile *p = t->v->profile;
	const char *focus = t->v->opts->focus;
	bool *left_out = focus ? view_leave_out(&t->frames, focus) : NULL;
	uint32_t name_cnt = strtab__cnt(t->frames.names);

	t->rows = calloc(name_cnt, sizeof(*t->rows));
	if (!t->rows || (focus && !left_out)) {
		free(left_out);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < p->sample_cnt; i++)
		count_sample(t, i + 1, !left_out || !left_out[i]);
	free(left_out);
	for (uint32_t i = 0; i < name_cnt; i++) {
		if (!t->rows[i].sample)
			continue;
		t->rows[t->row_cnt] = t->rows[i];
		t->rows[t->row_cnt++].name = i;
	}
	qsort_r(t->rows, t->row_cnt, sizeof(*t->rows), compare_rows, t);
	return 0;
}

/* ---- What is printed ---- */

/* "+12ms" */
static const char *difference_text(char buf[static UNITS_SZ + 1], int64_t base, int64_t now,
				   const char *unit, const struct units_scale *s)
{
	int64_t d = minus(now, base);

	buf[0] = '+';
	return d > 0 ? (units_text(buf + 1, d, unit, s), buf) : units_text(buf, d, unit, s);
}

/* "+5.00%" of the base; without one there is no share of it. */
static const char *change_text(char *buf, size_t sz, int64_t base, int64_t now)
{
	double percent = 100 * (double)minus(now, base) / fabs((double)base);

	if (base == now)
		return base ? "0%" : "-";
	if (!base || !now)
		return base ? "gone" : "new";
	snprintf(buf, sz, fabs(percent) < MANY_PERCENT ? "%+.2f%%" : "%+.0f%%", percent);
	return buf;
}

static void print_head(const struct table *t, FILE *f)
{
	static const char *const names[] = { "Base", "New" };
	double more = fabs((double)minus(t->total[1], t->total[0]));
	char text[2048], number[UNITS_SZ + 1], change[32];

	fprintf(f, "Type: %s\n",
		util_printable(text, sizeof(text), t->v->profile->value_types[t->v->value].type));
	for (int i = 0; i < 2; i++) {
		view_side_text(&t->v->sides[i], names[i], text, sizeof(text));
		fprintf(f, "%s, total %s\n", text,
			units_text(number, t->total[i], t->unit,
				   units_pick(t->unit, fabs((double)t->total[i]))));
	}
	fprintf(f, "Difference: %s (%s)\n",
		difference_text(number, t->total[0], t->total[1], t->unit,
				units_pick(t->unit, more)),
		change_text(change, sizeof(change), t->total[0], t->total[1]));
	if (view_sides_differ(t->v->sides))
		fprintf(f, "%s\n", VIEW_UNEVEN);
}

static void print_costs(const struct table *t, const int64_t cost[2], const struct units_scale *s,
			FILE *f)
{
	char base[UNITS_SZ], now[UNITS_SZ], difference[UNITS_SZ + 1], change[32];

	fprintf(f, "%10s %10s %10s %9s  ", units_text(base, cost[0], t->unit, s),
		units_text(now, cost[1], t->unit, s),
		difference_text(difference, cost[0], cost[1], t->unit, s),
		change_text(change, sizeof(change), cost[0], cost[1]));
}

/* One for all numbers, by the smallest difference that is shown. */
static const struct units_scale *scale_of(const struct table *t, size_t shown)
{
	double least = 0, total = fabs((double)t->total[0]) + fabs((double)t->total[1]);

	for (size_t i = 0; i < shown; i++) {
		const struct row *r = &t->rows[i];
		double d = fabs((double)minus(r->flat[1], r->flat[0]));

		d = d > 0 ? d : fabs((double)minus(r->cum[1], r->cum[0]));
		if (d > 0 && (!(least > 0) || d < least))
			least = d;
	}
	return units_pick_for_table(t->unit, least, total);
}

static void print_rows(const struct table *t, FILE *f)
{
	size_t limit = t->v->opts->limit, shown = limit ? MIN(limit, t->row_cnt) : t->row_cnt;
	const struct units_scale *s = scale_of(t, shown);

	if (shown < t->row_cnt)
		fprintf(f, "Top %zu of %zu functions\n", shown, t->row_cnt);
	fprintf(f, "%10s %10s %10s %9s  %10s %10s %10s %9s  %s\n", "base flat", "new flat", "diff",
		"diff%", "base cum", "new cum", "diff", "diff%", "name");
	for (size_t i = 0; i < shown; i++) {
		print_costs(t, t->rows[i].flat, s, f);
		print_costs(t, t->rows[i].cum, s, f);
		fprintf(f, "%s\n", strtab__get(t->frames.names, t->rows[i].name));
	}
}

int view_sides_write(const struct view *v, FILE *f)
{
	struct table t = { .v = v, .unit = v->profile->value_types[v->value].unit };
	int err = frames__make(v->profile, false, &t.frames);

	if (err)
		return err;
	err = fill(&t);
	if (!err) {
		print_head(&t, f);
		print_rows(&t, f);
		err = ferror(f) ? -EIO : 0;
	}
	frames__done(&t.frames);
	free(t.rows);
	return err;
}
