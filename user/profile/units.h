/* SPDX-License-Identifier: BSD-2-Clause */
/* Units of values, by the names that pprof knows (internal/measurement), and numbers for people. */
#ifndef PROFILE_UNITS_H
#define PROFILE_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* Units that numbers can be converted between: each is so many of the smallest. */
struct units_scale {
	const char *suffix; /* behind a number for people: "ms" */
	double factor;	    /* a whole number, below 2^53; in a list they rise; 0: the list's end */
};

/*
 * The list that a unit belongs to, and its place: "milliseconds", "ms", "bytes", "kB"… in whatever
 * case; a kilobyte has 1024 bytes. NULL: nothing is known of it.
 */
const struct units_scale *units_find(const char *unit, const struct units_scale **ret_list);

/* The largest scale in which a value of this unit is at least 1; of a unit that is not known, one that
 * leaves it as it is. */
const struct units_scale *units_pick(const char *unit, double value);

/* One for the whole of a table: that of its smallest value above 0, unless it is less than a hundredth
 * of the total, where two digits behind the point do for it in a larger one. */
const struct units_scale *units_pick_for_table(const char *unit, double smallest, double total);

/* With two digits behind the point, if it is no whole number: "1.50ms". A unit that is not known stands behind it,
 * harmless and cut, but for "count", "sample" and "unit": "12cycles", "12". Returns buf. */
#define UNITS_SZ 64
const char *units_text(char buf[static UNITS_SZ], int64_t value, const char *unit,
		       const struct units_scale *s);

/* As pprof has it, six columns: "12.34%", "  100%". */
#define UNITS_PERCENT_SZ 32
const char *units_percent(char buf[static UNITS_PERCENT_SZ], int64_t part, int64_t whole);

#endif
