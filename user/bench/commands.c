// SPDX-License-Identifier: BSD-2-Clause
/* The commands of both sides: one of each, or one for each of their builds. */
#include <linux/types.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "bench/parts.h"
#include "bench/words.h"
#include "options.h"

static uint64_t builds_of(const struct bench *b)
{
	return b->opts->bench.builds ?: 1;
}

uint64_t bench_build_number(const struct bench *b, const struct bench_run *run)
{
	if (!b->opts->bench.builds)
		return FACTS_NONE;
	/* both sides have builds of their own: else their layouts would be the same */
	if (b->opts->bench.aa)
		return 2 * run->build + 1 + (run->side == RUNS_NEW);
	return run->build + 1;
}

char **bench_command(const struct bench *b, const struct bench_run *run)
{
	return b->commands[run->side][run->build];
}

/* The command as it is given: its words, or all of them in one. */
static int make_command(char *const *given, uint64_t number, char ***ret, char *err, size_t err_sz)
{
	int res;

	if (number != FACTS_NONE)
		res = words_number(given, number, ret);
	else
		res = words_copy(given, ret);
	/* one word is split as the other side is; with its number, which a shell would not let pass */
	if (!res && !(*ret)[1]) {
		char **one = *ret;

		*ret = NULL;
		res = words_split(one[0], ret, err, err_sz);
		words_free(one);
	}
	return res;
}

static int open_side(struct bench *b, enum runs_side side, char *err, size_t err_sz)
{
	char *against[] = { (char *)b->opts->bench.against, NULL };
	char *const *given = side == RUNS_BASE && !b->opts->bench.aa ? against : b->opts->argv;
	struct bench_run run = { .side = side };
	int res = 0;

	if (b->opts->bench.builds && !words_have_number(given))
		return util_fail(-EINVAL, err, err_sz,
				 "--builds: the command of the %s side has no " WORDS_NUMBER
				 " in it, where the number of the build is to stand",
				 bench_side_names[side]);
	b->commands[side] = calloc(builds_of(b) + 1, sizeof(*b->commands[side]));
	if (!b->commands[side])
		return -ENOMEM;
	for (; !res && run.build < builds_of(b); run.build++)
		res = make_command(given, bench_build_number(b, &run),
				   &b->commands[side][run.build], err, err_sz);
	return res;
}

int bench_open_commands(struct bench *b)
{
	char text[512] = "out of memory";
	int err = open_side(b, RUNS_BASE, text, sizeof(text)) ?:
			  open_side(b, RUNS_NEW, text, sizeof(text));

	if (err)
		log_error("%s", text);
	return err;
}

void bench_close_commands(struct bench *b)
{
	for (int side = 0; side < 2; side++) {
		for (uint64_t i = 0; b->commands[side] && i < builds_of(b); i++)
			words_free(b->commands[side][i]);
		free(b->commands[side]);
	}
}
