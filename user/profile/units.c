/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/units.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define KIB 1024.0
#define MAX_UNIT 33 /* bytes of one that is not known, with a NUL: what is longer is cut */

static const struct units_scale times[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "hrs", 3600e9 }, { NULL, 0 },
};
static const struct units_scale sizes[] = {
	{ "B", 1 },
	{ "kB", KIB },
	{ "MB", KIB *KIB },
	{ "GB", KIB *KIB *KIB },
	{ "TB", KIB *KIB *KIB *KIB },
	{ "PB", KIB *KIB *KIB *KIB *KIB },
	{ NULL, 0 },
};
static const struct units_scale plain[] = { { "", 1 }, { NULL, 0 } };

/* A plural's s is left out. */
static const struct {
	const char *name;
	const struct units_scale *list;
	size_t place;
} names[] = {
	{ "ns", times, 0 },	 { "nanosecond", times, 0 },  { "us", times, 1 },
	{ "\u00b5s", times, 1 }, { "\u03bcs", times, 1 },     { "microsecond", times, 1 },
	{ "ms", times, 2 },	 { "millisecond", times, 2 }, { "s", times, 3 },
	{ "sec", times, 3 },	 { "second", times, 3 },      { "hr", times, 4 },
	{ "hour", times, 4 },	 { "b", sizes, 0 },	      { "byte", sizes, 0 },
	{ "kb", sizes, 1 },	 { "kbyte", sizes, 1 },	      { "kilobyte", sizes, 1 },
	{ "mb", sizes, 2 },	 { "mbyte", sizes, 2 },	      { "megabyte", sizes, 2 },
	{ "gb", sizes, 3 },	 { "gbyte", sizes, 3 },	      { "gigabyte", sizes, 3 },
	{ "tb", sizes, 4 },	 { "tbyte", sizes, 4 },	      { "terabyte", sizes, 4 },
	{ "pb", sizes, 5 },	 { "pbyte", sizes, 5 },	      { "petabyte", sizes, 5 },
};

const struct units_scale *units_find(const char *unit, const struct units_scale **ret_list)
{
	size_t len = strlen(unit);

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t name_len = strlen(names[i].name);
		/* "ms" is no plural */
		bool plural = len > 2 && len == name_len + 1 &&
			      (unit[len - 1] == 's' || unit[len - 1] == 'S');

		if ((len != name_len && !plural) || strncasecmp(unit, names[i].name, name_len) != 0)
			continue;
		*ret_list = names[i].list;
		return &names[i].list[names[i].place];
	}
	return NULL;
}

const struct units_scale *units_pick(const char *unit, double value)
{
	const struct units_scale *list = plain, *own = units_find(unit, &list);

	if (!own)
		return plain;
	value = fabs(value) * own->factor;
	while (list[1].suffix && value >= list[1].factor)
		list++;
	return list;
}

const struct units_scale *units_pick_for_table(const char *unit, double smallest, double total)
{
	const struct units_scale *s = units_pick(unit, smallest > 0 ? smallest : total);

	if (s != units_pick(unit, total) && smallest * 100 < fabs(total))
		s = units_pick(unit, smallest * 100);
	return s;
}

/* As pprof has it: in this spelling they are left out, and others that it does not know stand as they are. */
static bool is_bare(const char *unit)
{
	static const char *const bare[] = { "count", "sample", "unit" };

	for (size_t i = 0; i < ARRAY_SIZE(bare); i++)
		if (!strcmp(unit, bare[i]))
			return true;
	return false;
}

const char *units_text(char buf[static UNITS_SZ], int64_t value, const char *unit,
		       const struct units_scale *s)
{
	const struct units_scale *list, *own = units_find(unit, &list);
	char *dot, foreign[MAX_UNIT] = "";

	snprintf(buf, UNITS_SZ, "%.2f", (double)value * (own ? own->factor : 1) / s->factor);
	dot = strchr(buf, '.');
	if (dot && !strcmp(dot, ".00"))
		*dot = '\0';
	if (!strcmp(buf, "0") || !strcmp(buf, "-0"))
		return "0";
	if (!own && !is_bare(unit))
		util_printable(foreign, sizeof(foreign), unit);
	return strncat(buf, own ? s->suffix : foreign, UNITS_SZ - strlen(buf) - 1);
}

const char *units_percent(char buf[static UNITS_PERCENT_SZ], int64_t part, int64_t whole)
{
	double percent = whole ? fabs((double)part / (double)whole) * 100 : 0;

	if (percent >= 99.95 && percent <= 100.05)
		return "  100%";
	snprintf(buf, UNITS_PERCENT_SZ, percent >= 1 ? "%5.2f%%" : "%5.2g%%", percent);
	return buf;
}
