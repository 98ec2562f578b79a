/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles for people and for line-based tools. Equal profiles give equal bytes; names are made
 * harmless for terminals. */
#ifndef PROFILE_TEXT_H
#define PROFILE_TEXT_H

#include <stddef.h>
#include <stdio.h>

struct profile;

/*
 * One line for each stack: frames from the root to the leaf joined by ';', a blank, and the
 * sample's value[folded_value], unless it is 0: what flamegraph.pl, inferno and speedscope read. A
 * ';' within a name becomes ':', a newline and other control bytes U+FFFD. With labels "comm" (else
 * "thread") the first frame is that name. Inlined frames are frames of their own. Equal lines are
 * merged, lines are sorted.
 */
int folded_write(const struct profile *p, FILE *f);

/*
 * A header (type, time, duration, totals, the comments), then a table as `go tool pprof -top` has
 * it, of the last
 * value of which there is anything: flat  flat%   sum%        cum   cum%  name sorted by flat, then
 * cum, then name. top: rows at most, 0: all.
 */
int text_write(const struct profile *p, FILE *f, size_t top);

/* Only the rows of that table, without header, for the summary of a run. */
int text_write_top(const struct profile *p, FILE *f, size_t top);

#endif
