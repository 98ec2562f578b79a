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
#include "profile/frames.h"
#include "profile/machinery.h"
#include "profile/profile.h"

#define VALUE_SZ 64
#define PERCENT_SZ 32

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
	const char *type, *unit; /* of the value shown */
};

/* ---- Numbers, in the units and with the digits that pprof gives them ---- */

struct scale {
	const char *suffix;
	double factor; /* in units of the value */
};

static const struct scale time_scales[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "hrs", 3600e9 }, { NULL, 0 },
};
static const struct scale byte_scales[] = {
	{ "B", 1 },
	{ "kB", 1024.0 },
	{ "MB", 1024.0 * 1024 },
	{ "GB", 1024.0 * 1024 * 1024 },
	{ "TB", 1024.0 * 1024 * 1024 * 1024 },
	{ "PB", 1024.0 * 1024 * 1024 * 1024 * 1024 },
	{ NULL, 0 },
};
static const struct scale plain_scale[] = { { "", 1 }, { NULL, 0 } };

/* The largest scale in which value is at least 1. */
static const struct scale *pick_scale(const char *unit, double value)
{
	const struct scale *s = plain_scale;

	if (!strcmp(unit, "nanoseconds"))
		s = time_scales;
	else if (!strcmp(unit, "bytes"))
		s = byte_scales;
	while (s[1].suffix && fabs(value) >= s[1].factor)
		s++;
	return s;
}

static const char *format_value(char buf[static VALUE_SZ], int64_t value, const struct scale *s)
{
	char *dot;

	snprintf(buf, VALUE_SZ, "%.2f", (double)value / s->factor);
	dot = strchr(buf, '.');
	if (dot && !strcmp(dot, ".00"))
		*dot = '\0';
	if (!strcmp(buf, "0") || !strcmp(buf, "-0"))
		return "0";
	return strncat(buf, s->suffix, VALUE_SZ - strlen(buf) - 1);
}

static const char *format_percent(char buf[static PERCENT_SZ], int64_t part, int64_t whole)
{
	double percent = whole ? fabs((double)part / (double)whole) * 100 : 0;

	if (percent >= 99.95 && percent <= 100.05)
		return "  100%";
	snprintf(buf, PERCENT_SZ, percent >= 1 ? "%5.2f%%" : "%5.2g%%", percent);
	return buf;
}

/*
 * One scale for the whole table: that of the smallest value, unless it is less than a hundredth of
 * the total, where two digits behind the point do for it in a larger one.
 */
static const struct scale *table_scale(const struct report *r, size_t shown)
{
	double min = 0, v, total = fabs((double)r->total);
	const struct scale *s;
	size_t i;

	for (i = 0; i < shown; i++) {
		v = fabs((double)(r->rows[i].flat ? r->rows[i].flat : r->rows[i].cum));
		if (v > 0 && (min == 0 || v < min))
			min = v;
	}
	if (min == 0)
		min = total;
	s = pick_scale(r->unit, min);
	if (s != pick_scale(r->unit, total) && min * 100 < total)
		s = pick_scale(r->unit, min * 100);
	return s;
}

/* ---- The rows ---- */

/* The last value of which there is anything; of all, if there is nothing. */
static size_t last_value(const struct profile *p)
{
	for (size_t v = p->value_cnt; v-- > 0;)
		for (size_t i = 0; i < p->sample_cnt; i++)
			if (p->samples[i].value[v])
				return v;
	return p->value_cnt - 1;
}

static void count_sample(struct report *r, uint32_t number, const struct profile_sample *s)
{
	struct machinery_frame first = { 0 };
	int64_t value = s->value[r->value];
	uint32_t i, j, loc;
	struct row *row;

	/* as pprof does */
	if (!value)
		return;
	r->total = util_add_saturated(r->total, value);
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
	const struct report *r = arg;

	if (a->flat != b->flat)
		return a->flat > b->flat ? -1 : 1;
	if (a->cum != b->cum)
		return a->cum > b->cum ? -1 : 1;
	return strcmp(strtab__get(r->frames.names, a->name), strtab__get(r->frames.names, b->name));
}

static void report__done(struct report *r)
{
	frames__done(&r->frames);
	machinery__free(r->machinery);
	free(r->rows);
}

static int report__make(const struct profile *p, bool own, struct report *ret)
{
	uint32_t name_cnt, i;
	int err;

	*ret = (struct report){ .p = p };
	ret->value = last_value(p);
	ret->type = p->value_types[ret->value].type;
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

static void print_head(const struct report *r, FILE *f)
{
	const struct profile *p = r->p;
	const struct scale *duration_scale = pick_scale("nanoseconds", (double)p->duration_ns);
	time_t seconds = (time_t)(p->time_ns / (int64_t)NSEC_PER_SEC);
	char value[VALUE_SZ], percent[PERCENT_SZ], date[64];
	const char *share;
	struct tm tm;

	fprintf(f, "Type: %s\n", r->type);
	if (p->time_ns && gmtime_r(&seconds, &tm) && strftime(date, sizeof(date), "%F %T UTC", &tm))
		fprintf(f, "Time: %s\n", date);
	if (p->duration_ns)
		fprintf(f, "Duration: %s, ", format_value(value, p->duration_ns, duration_scale));
	fprintf(f, "Total samples = %s",
		format_value(value, r->total, pick_scale(r->unit, (double)r->total)));
	if (p->duration_ns && !strcmp(r->unit, "nanoseconds")) {
		share = format_percent(percent, r->total, p->duration_ns);
		fprintf(f, " (%s)", share + strspn(share, " "));
	}
	fputc('\n', f);
}

static int print_comments(const struct report *r, FILE *f)
{
	const char *comment;
	char *clean;
	size_t i, sz;

	for (i = 0; i < r->p->comment_cnt; i++) {
		comment = strtab__get(r->p->strings, r->p->comments[i]);
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
	char flat[VALUE_SZ], cum[VALUE_SZ], flat_percent[PERCENT_SZ], sum_percent[PERCENT_SZ],
		cum_percent[PERCENT_SZ];
	const struct scale *s = table_scale(r, shown);
	const struct row *row;
	int64_t sum = 0;
	size_t i;

	fprintf(f, "%10s %6s %6s %10s %6s  %s\n", "flat", "flat%", "sum%", "cum", "cum%", "name");
	for (i = 0; i < shown; i++) {
		row = &r->rows[i];
		sum = util_add_saturated(sum, row->flat);
		fprintf(f, "%10s %s %s %10s %s  %s\n", format_value(flat, row->flat, s),
			format_percent(flat_percent, row->flat, r->total),
			format_percent(sum_percent, sum, r->total), format_value(cum, row->cum, s),
			format_percent(cum_percent, row->cum, r->total),
			strtab__get(r->frames.names, row->name));
	}
}

int text_write(const struct profile *p, FILE *f, size_t top)
{
	struct report r;
	size_t shown;
	int err = report__make(p, false, &r);

	if (err)
		return err;
	shown = top ? MIN(top, r.row_cnt) : r.row_cnt;
	print_head(&r, f);
	err = print_comments(&r, f);
	if (!err) {
		if (shown < r.row_cnt)
			fprintf(f, "Top %zu of %zu functions\n", shown, r.row_cnt);
		print_rows(&r, f, shown);
		err = ferror(f) ? -EIO : 0;
	}
	report__done(&r);
	return err;
}

int text_write_top(const struct profile *p, FILE *f, size_t top, bool own)
{
	struct report r;
	int err = report__make(p, own, &r);

	if (err)
		return err;
	print_rows(&r, f, top ? MIN(top, r.row_cnt) : r.row_cnt);
	report__done(&r);
	return ferror(f) ? -EIO : 0;
}
