/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the table of a profile's functions, by what they and what they called cost. */
#include "profile/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "profile/difference.h"
#include "profile/frames.h"
#include "profile/machinery.h"
#include "profile/profile.h"
#include "profile/units.h"

struct row {
	int64_t flat, cum;
	uint32_t name;	 /* of frames.names */
	uint32_t sample; /* number, from 1, of the last sample that counted into cum; 0: none did */
};

struct report {
	const struct profile *p;
	size_t value; /* of value_types */
	struct frames frames;
	struct machinery *machinery; /* NULL: samples count at their leaf */
	struct row *rows;
	size_t row_cnt;
	int64_t total;
	const char *unit; /* of the value shown */
};

static const struct units_scale *table_scale(const struct report *r, size_t shown)
{
	double min = 0, v;

	for (size_t i = 0; i < shown; i++) {
		v = fabs((double)(r->rows[i].flat ? r->rows[i].flat : r->rows[i].cum));
		if (v > 0 && (min == 0 || v < min))
			min = v;
	}
	return units_pick_for_table(r->unit, min, (double)r->total);
}

/* ---- The rows ---- */

static void count_sample(struct report *r, uint32_t number, const struct profile_sample *s)
{
	struct machinery_frame first = { 0 };
	int64_t value = profile__values(r->p, s)[r->value];
	uint32_t i, j, loc;
	struct row *row;

	/* as pprof does */
	if (!value)
		return;
	if (r->machinery)
		first = machinery__first(r->machinery, s);
	for (i = first.loc; i < s->loc_cnt; i++) {
		loc = r->p->loc_ids[s->loc + i];
		for (j = i == first.loc ? first.line : 0; j < frames__cnt(&r->frames, loc); j++) {
			row = &r->rows[frames__name(&r->frames, loc, j)];
			if (i == first.loc && j == first.line)
				row->flat = util_add_saturated(row->flat, value);
			/* a function that calls itself costs once */
			if (row->sample != number)
				row->cum = util_add_saturated(row->cum, value);
			row->sample = number;
		}
	}
}

static int compare_rows(const void *pa, const void *pb, void *arg)
{
	const struct row *a = pa, *b = pb;
	uint64_t flat_a = util_magnitude(a->flat), flat_b = util_magnitude(b->flat);
	uint64_t cum_a = util_magnitude(a->cum), cum_b = util_magnitude(b->cum);
	const struct report *r = arg;

	/* as pprof does: of a difference, what shrank most is as far up as what grew most */
	if (flat_a != flat_b)
		return flat_a > flat_b ? -1 : 1;
	if (cum_a != cum_b)
		return cum_a > cum_b ? -1 : 1;
	return strcmp(strtab__get(r->frames.names, a->name), strtab__get(r->frames.names, b->name));
}

static void report__done(struct report *r)
{
	frames__done(&r->frames);
	machinery__free(r->machinery);
	free(r->rows);
}

static int report__make(const struct profile *p, const struct text_table *t, bool own,
			struct report *ret)
{
	uint32_t name_cnt, i;
	int err;

	*ret = (struct report){ .p = p };
	ret->value = t->value;
	ret->total = difference_whole(p, t->value);
	ret->unit = p->value_types[ret->value].unit;
	err = frames__make(p, false, &ret->frames);
	if (err)
		return err;
	name_cnt = strtab__cnt(ret->frames.names);
	ret->rows = calloc(name_cnt, sizeof(*ret->rows));
	if (own)
		ret->machinery = machinery__new(p);
	if (!ret->rows || (own && !ret->machinery)) {
		report__done(ret);
		return -ENOMEM;
	}
	for (i = 0; i < p->sample_cnt; i++)
		if (!t->left_out || !t->left_out[i])
			count_sample(ret, i + 1, &p->samples[i]);
	for (i = 0; i < name_cnt; i++) {
		if (!ret->rows[i].sample)
			continue;
		ret->rows[ret->row_cnt] = ret->rows[i];
		ret->rows[ret->row_cnt++].name = i;
	}
	qsort_r(ret->rows, ret->row_cnt, sizeof(*ret->rows), compare_rows, ret);
	return 0;
}

/* ---- What is printed ---- */

static void print_facts(const struct profile *p, size_t value, FILE *f)
{
	const struct units_scale *duration_scale =
		units_pick("nanoseconds", (double)p->duration_ns);
	const char *unit = p->value_types[value].unit, *share;
	char number[UNITS_SZ], percent[UNITS_PERCENT_SZ], date[64], type[256];
	time_t seconds = (time_t)(p->time_ns / (int64_t)NSEC_PER_SEC);
	int64_t total = difference_whole(p, value);
	struct tm tm;

	fprintf(f, "Type: %s\n", util_printable(type, sizeof(type), p->value_types[value].type));
	if (p->time_ns && gmtime_r(&seconds, &tm) && strftime(date, sizeof(date), "%F %T UTC", &tm))
		fprintf(f, "Time: %s\n", date);
	if (p->duration_ns)
		fprintf(f, "Duration: %s, ",
			units_text(number, p->duration_ns, "nanoseconds", duration_scale));
	fprintf(f, "Total samples = %s",
		units_text(number, total, unit, units_pick(unit, (double)total)));
	if (p->duration_ns && !strcmp(unit, "nanoseconds")) {
		share = units_percent(percent, total, p->duration_ns);
		fprintf(f, " (%s)", share + strspn(share, " "));
	}
	fputc('\n', f);
}

int text_write_head(const struct profile *p, size_t value, FILE *f)
{
	const char *comment;
	char *clean;
	size_t i, sz;

	print_facts(p, value, f);
	for (i = 0; i < p->comment_cnt; i++) {
		comment = strtab__get(p->strings, p->comments[i]);
		if (*comment == '#')
			continue;
		sz = strlen(comment) * 3 + 1;
		clean = malloc(sz);
		if (!clean)
			return -ENOMEM;
		fprintf(f, "%s\n", util_printable(clean, sz, comment));
		free(clean);
	}
	return 0;
}

static void print_rows(const struct report *r, FILE *f, size_t shown)
{
	char flat[UNITS_SZ], cum[UNITS_SZ], flat_percent[UNITS_PERCENT_SZ],
		sum_percent[UNITS_PERCENT_SZ], cum_percent[UNITS_PERCENT_SZ];
	const struct units_scale *s = table_scale(r, shown);
	const struct row *row;
	int64_t sum = 0;
	size_t i;

	fprintf(f, "%10s %6s %6s %10s %6s  %s\n", "flat", "flat%", "sum%", "cum", "cum%", "name");
	for (i = 0; i < shown; i++) {
		row = &r->rows[i];
		sum = util_add_saturated(sum, row->flat);
		fprintf(f, "%10s %s %s %10s %s  %s\n", units_text(flat, row->flat, r->unit, s),
			units_percent(flat_percent, row->flat, r->total),
			units_percent(sum_percent, sum, r->total),
			units_text(cum, row->cum, r->unit, s),
			units_percent(cum_percent, row->cum, r->total),
			strtab__get(r->frames.names, row->name));
	}
}

int text_write_table(const struct profile *p, const struct text_table *t, FILE *f)
{
	struct report r;
	size_t shown;
	int err = report__make(p, t, false, &r);

	if (err)
		return err;
	shown = t->top ? MIN(t->top, r.row_cnt) : r.row_cnt;
	err = text_write_head(p, t->value, f);
	if (!err) {
		if (shown < r.row_cnt)
			fprintf(f, "Top %zu of %zu functions\n", shown, r.row_cnt);
		print_rows(&r, f, shown);
		err = ferror(f) ? -EIO : 0;
	}
	report__done(&r);
	return err;
}

int text_write(const struct profile *p, FILE *f, size_t top)
{
	return text_write_table(
		p, &(struct text_table){ .value = profile__last_value(p), .top = top }, f);
}

int text_write_top(const struct profile *p, FILE *f, size_t top, bool own)
{
	struct text_table t = { .value = profile__last_value(p) };
	struct report r;
	int err = report__make(p, &t, own, &r);

	if (err)
		return err;
	print_rows(&r, f, top ? MIN(top, r.row_cnt) : r.row_cnt);
	report__done(&r);
	return ferror(f) ? -EIO : 0;
}
