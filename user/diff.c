/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/types.h>

#include "diff.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/large_pages.h"
#include "base/log.h"
#include "diff_pictures.h"
#include "judge/judge.h"
#include "judge/runs.h"
#include "judge/write.h"
#include "options.h"
#include "view/write_file.h"

struct written {
	const struct judge_format *format;
	const struct judge_result *result;
};

static int write_result(void *ctx, FILE *f)
{
	const struct written *w = ctx;

	if (w->format->shape != JUDGE_WORDS)
		return diff_picture_write(w->result, w->format->shape, f);
	w->format->write(w->result, f);
	return 0;
}

static int status_of(const struct options *opts, const struct judge_result *result)
{
	if (result->verdict == JUDGE_REGRESSED)
		return DIFF_WORSE;
	return result->verdict == JUDGE_CANNOT_TELL && opts->strict ? DIFF_OPEN : DIFF_FINE;
}

int diff_check_output(const struct options *opts, const char *path)
{
	return write_file_check(path, opts->judge_format->shape == JUDGE_PPROF);
}

int diff_write_result(const struct options *opts, const char *path,
		      const struct judge_result *result)
{
	struct written w = { opts->judge_format, result };

	return write_file(path, write_result, &w) ? DIFF_WRONG : status_of(opts, result);
}

int diff_sides(const struct options *opts)
{
	const struct runs_paths sides[2] = {
		[RUNS_BASE] = { opts->bases, opts->base_cnt },
		[RUNS_NEW] = { opts->news, opts->new_cnt },
	};
	const char *path = opts->output ? opts->output : "-";
	struct judge_result *result = NULL;
	char err[1024] = "out of memory";
	int ret = DIFF_WRONG;
	struct runs *runs;

	if (diff_check_output(opts, path))
		return ret;
	large_pages__prefer();
	runs = runs__new();
	if (runs)
		runs->cross_machine = opts->cross_machine;
	if (!runs || runs__add_paths(runs, sides, err, sizeof(err)) ||
	    runs__finish(runs, err, sizeof(err)) || runs__join_builds(runs) ||
	    judge(runs, &opts->judge, &result, err, sizeof(err)))
		log_error("%s", err);
	else
		ret = diff_write_result(opts, path, result);
	judge_free(result);
	runs__free(runs);
	return ret;
}
