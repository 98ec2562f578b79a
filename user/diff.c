/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/types.h>

#include "diff.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/output.h"
#include "judge/judge.h"
#include "judge/runs.h"
#include "judge/write.h"
#include "options.h"

static int read_side(struct runs *r, enum runs_side side, char **paths, size_t cnt, char *err,
		     size_t err_sz)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < cnt; i++)
		ret = runs__add_path(r, side, paths[i], err, err_sz);
	return ret;
}

static int write_result(const struct options *opts, const struct judge_result *result)
{
	const char *path = opts->output ? opts->output : "-";
	struct output out;
	int err = output_open(path, &out);

	if (!err) {
		opts->judge_format->write(result, out.f);
		err = output_commit(&out);
	}
	if (err)
		log_error("cannot write '%s': %s", path, strerror(-err));
	return err;
}

static int status_of(const struct options *opts, const struct judge_result *result)
{
	if (result->verdict == JUDGE_REGRESSED)
		return DIFF_WORSE;
	return result->verdict == JUDGE_CANNOT_TELL && opts->strict ? DIFF_OPEN : DIFF_FINE;
}

int diff_sides(const struct options *opts)
{
	struct judge_result *result = NULL;
	struct runs *runs = runs__new();
	char err[1024] = "out of memory";
	int ret = DIFF_WRONG;

	if (!runs || read_side(runs, RUNS_BASE, opts->bases, opts->base_cnt, err, sizeof(err)) ||
	    read_side(runs, RUNS_NEW, opts->news, opts->new_cnt, err, sizeof(err)) ||
	    runs__finish(runs, err, sizeof(err)) ||
	    judge(runs, &opts->judge, &result, err, sizeof(err)))
		log_error("%s", err);
	else if (!write_result(opts, result))
		ret = status_of(opts, result);
	judge_free(result);
	runs__free(runs);
	return ret;
}
