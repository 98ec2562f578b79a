/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles for people and for line-based tools. Equal profiles give equal bytes; names are made
 * harmless for terminals. */
#ifndef PROFILE_TEXT_H
#define PROFILE_TEXT_H

#include <stdbool.h>
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

/* The same of a difference (difference.h), with two values: the base's, as it was, and the new one. It is
 * what difffolded.pl writes. */
int folded_write_difference(const struct profile *p, FILE *f);

/* Of a value, by its index: type, time, duration, total; then the comments. 0 or -ENOMEM. */
int text_write_head(const struct profile *p, size_t value, FILE *f);

struct text_table {
	size_t value;	      /* index of value_types */
	size_t top;	      /* rows at most, 0: all */
	const bool *left_out; /* which samples count to the total alone; NULL: none */
};

/*
 * That header, then a table as `go tool pprof -top` has it:
 *
 *     flat  flat%   sum%        cum   cum%  name
 *
 * sorted by flat, then cum, both without their sign, then name. A function that calls itself counts
 * once into a stack's cum.
 * 0 or -errno.
 */
int text_write_table(const struct profile *p, const struct text_table *t, FILE *f);

/* The same of the last value of which there is anything. */
int text_write(const struct profile *p, FILE *f, size_t top);

/*
 * Only the rows of that table, without header, for the summary of a run. own: each sample counts at
 * the first function of the program itself (machinery__first), and what that called is left out.
 */
int text_write_top(const struct profile *p, FILE *f, size_t top, bool own);

/*
 * A profile of threads: the comments, "# " before each, then a block for each thread, by its id, as
 * Go prints those of its goroutines, with an empty line between them. A block begins with
 *
 *     thread TID "NAME" of PID "COMM" [STATE in WHAT, SINCE]:
 *
 * from the labels tid, thread, pid, comm, state, in and since, less what there is no label for. In
 * quotes, quotes and backslashes have a backslash before them; SINCE is as options take durations.
 *
 * Two lines for each frame follow, leaf first, inlined ones as frames of their own: the function;
 * then, behind a tab, file:line, or where the line is not known, object+0xoffset, the place in the
 * object's file. A marker has no second line.
 */
int threads_text_write(const struct profile *p, FILE *f);

/*
 * The same of one process in Go's own form, debug=2: without comments, the process, and times below a
 * minute, and with what Go prints of a frame besides: "(...)" for arguments that are not known, and how
 * far in its function it is.
 *
 *     thread TID "NAME" [STATE in WHAT, 5 minutes]:
 *     function(...)
 *     	file:line +0x1f
 */
int debug2_write(const struct profile *p, FILE *f);

#endif
