/* SPDX-License-Identifier: BSD-2-Clause */
/* What a command prints: the number of its operations is looked for, and the last words are kept. */
#ifndef BENCH_OUTPUT_H
#define BENCH_OUTPUT_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BENCH_OUTPUT_LINE 4096 /* bytes of a line that are looked at */
#define BENCH_OUTPUT_LAST 512

struct bench_output {
	const regex_t *ops; /* NULL: nothing is looked for */
	bool found;
	double ops_cnt;
	char last[BENCH_OUTPUT_LAST]; /* the last line that is not empty */
	/* private */
	char line[BENCH_OUTPUT_LINE];
	size_t sz;
};

/* regex: its first group is a number, such as 1234, 12.5 or 1,234; the last one that matches counts. */
void bench_output__begin(struct bench_output *o, const regex_t *regex);
/* Takes what the descriptor has, 1 MiB of it at most: as much as a pipe holds. Who prints without an end is
 * not to keep us from all else. */
void bench_output__read(struct bench_output *o, int fd);
void bench_output__take(struct bench_output *o, const char *text, size_t sz);
/* The last line may have no end. */
void bench_output__end(struct bench_output *o);

/* The number that was found, as a whole one. 0; -ERANGE: it is below 1, or too large; -EDOM: rounding would
 * change what an operation costs. */
int bench_output__ops(const struct bench_output *o, uint64_t *ret);

#endif
