// SPDX-License-Identifier: BSD-2-Clause
#include "bench/output.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

#define MAX_READS 64	  /* at a time */
#define ROUNDED_MAX 0.001 /* of the number: far below what is a change */

void bench_output__begin(struct bench_output *o, const regex_t *regex)
{
	*o = (struct bench_output){ .ops = regex };
}

/* Commas that part thousands are left out. */
static void read_number(struct bench_output *o, const char *text, size_t sz)
{
	char digits[64], *end;
	size_t len = 0;
	double value;

	for (size_t i = 0; i < sz && len + 1 < sizeof(digits); i++)
		if (text[i] != ',')
			digits[len++] = text[i];
	digits[len] = '\0';
	value = strtod(digits, &end);
	if (end == digits || *end)
		return;
	o->found = true;
	o->ops_cnt = value;
}

static void end_line(struct bench_output *o)
{
	regmatch_t match[2];

	o->line[o->sz] = '\0';
	o->sz = 0;
	if (o->ops && !regexec(o->ops, o->line, ARRAY_SIZE(match), match, 0) && match[1].rm_so >= 0)
		read_number(o, o->line + match[1].rm_so, (size_t)(match[1].rm_eo - match[1].rm_so));
	if (o->line[strspn(o->line, " \t\r")])
		snprintf(o->last, sizeof(o->last), "%.*s", (int)sizeof(o->last) - 1, o->line);
}

void bench_output__take(struct bench_output *o, const char *text, size_t sz)
{
	for (size_t i = 0; i < sz; i++) {
		if (text[i] == '\n')
			end_line(o);
		else if (o->sz + 1 < sizeof(o->line))
			o->line[o->sz++] = text[i];
	}
}

void bench_output__read(struct bench_output *o, int fd)
{
	char buf[16384];
	ssize_t sz = 1;

	for (size_t i = 0; sz > 0 && i < MAX_READS; i++) {
		sz = read(fd, buf, sizeof(buf));
		if (sz > 0)
			bench_output__take(o, buf, (size_t)sz);
	}
}

void bench_output__end(struct bench_output *o)
{
	if (o->sz)
		end_line(o);
}

int bench_output__ops(const struct bench_output *o, uint64_t *ret)
{
	double whole = floor(o->ops_cnt + 0.5);

	if (!(o->ops_cnt >= 1 && o->ops_cnt < 1e18))
		return -ERANGE;
	if (fabs(whole - o->ops_cnt) > ROUNDED_MAX * o->ops_cnt)
		return -EDOM;
	*ret = (uint64_t)whole;
	return 0;
}
