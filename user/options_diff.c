/* SPDX-License-Identifier: BSD-2-Clause */
#include "options_diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/write.h"
#include "options.h"
#include "options_table.h"

/* A number of percent, above 0, up to `most`, as a share. */
static int parse_percent(const char *arg, double most, double *ret)
{
	double percent;

	if (util_parse_percent(arg, most, &percent) || !(percent > 0))
		return -EINVAL;
	*ret = percent / 100;
	return 0;
}

/* METRIC:+X%, METRIC:FUNCTION:+X%: a function's name may have colons of its own. */
static int parse_gate(struct options *o, const char *arg, char *err, size_t err_sz)
{
	struct judge_gate *g = &o->judge.gates[o->judge.gate_cnt];
	const char *first = strchr(arg, ':'), *last = strrchr(arg, ':');
	char function[NAMES_SZ] = "";

	if (o->judge.gate_cnt == JUDGE_GATES_MAX)
		return util_fail(-EINVAL, err, err_sz, "--fail-on may be given %d times",
				 JUDGE_GATES_MAX);
	*g = (struct judge_gate){ 0 };
	if (!first || first == arg || (size_t)(first - arg) >= sizeof(g->metric) ||
	    last - first >= NAMES_SZ || last[1] != '+' ||
	    parse_percent(last + 1, 10000, &g->effect))
		return util_fail(
			-EINVAL, err, err_sz,
			"--fail-on: '%s' is no METRIC:+X%% or METRIC:FUNCTION:+X%%, such as "
			"cpu:+5%% or alloc_space:parse:+1%%",
			arg);
	memcpy(g->metric, arg, (size_t)(first - arg));
	if (last > first)
		memcpy(function, first + 1, (size_t)(last - first - 1));
	if (last > first && !names_canonical(function, g->function, sizeof(g->function)))
		return util_fail(-EINVAL, err, err_sz, "--fail-on: '%s' names no function", arg);
	o->judge.gate_cnt++;
	return 0;
}

static int parse_alpha(struct options *o, const char *arg, char *err, size_t err_sz)
{
	char *end;
	double alpha = strtod(arg, &end);

	if (end == arg || *end || !(alpha > 0 && alpha <= 0.5))
		return util_fail(-EINVAL, err, err_sz,
				 "--alpha: '%s' is no probability above 0 and up to 0.5", arg);
	o->judge.alpha = alpha;
	return 0;
}

static int parse_share(double *ret, const char *option, const char *arg, char *err, size_t err_sz)
{
	if (!parse_percent(arg, 100, ret))
		return 0;
	return util_fail(-EINVAL, err, err_sz, "%s: '%s' is no percentage above 0 and up to 100",
			 option, arg);
}

static int parse_format(struct options *o, const char *arg, char *err, size_t err_sz)
{
	char names[128];

	o->judge_format = judge_format_find(arg);
	if (o->judge_format)
		return 0;
	return util_fail(-EINVAL, err, err_sz, "--format: unknown format '%s': choose from %s", arg,
			 judge_format_names(names, sizeof(names)));
}

int options_diff_apply(struct options *o, int val, const char *arg, char *err, size_t err_sz)
{
	switch (val) {
	case OPT_FAIL_ON:
		return parse_gate(o, arg, err, err_sz);
	case OPT_ALPHA:
		return parse_alpha(o, arg, err, err_sz);
	case OPT_MIN_SHARE:
		return parse_share(&o->judge.min_share, "--min-share", arg, err, err_sz);
	case OPT_MIN_EFFECT:
		return parse_share(&o->judge.min_effect, "--min-effect", arg, err, err_sz);
	case OPT_SEED:
		if (!util_parse_u64(arg, 1, UINT64_MAX, &o->judge.seed))
			return 0;
		return util_fail(-EINVAL, err, err_sz, "--seed: '%s' is no number from 1 on", arg);
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case OPT_CROSS_MACHINE:
		o->cross_machine = true;
		return 0;
	case OPT_SOURCE_ROOT:
		if (*arg != '/')
			return util_fail(-EINVAL, err, err_sz,
					 "--source-root: '%s' is no path from / on", arg);
		o->judge.source_root = arg;
		return 0;
	case 'f':
		return parse_format(o, arg, err, err_sz);
	default: /* 'o' */
		if (!*arg)
			return util_fail(-EINVAL, err, err_sz, "--output: the path is empty");
		o->output = arg;
		return 0;
	}
}

int options_diff_finish(struct options *o, char **operands, char *err, size_t err_sz)
{
	o->bases = operands;
	while (operands[o->base_cnt] && strcmp(operands[o->base_cnt], "--") != 0)
		o->base_cnt++;
	if (!operands[o->base_cnt])
		return util_fail(
			-EINVAL, err, err_sz,
			"nothing to compare: give the files of both sides: BASE... -- NEW...");
	o->news = operands + o->base_cnt + 1;
	while (o->news[o->new_cnt])
		o->new_cnt++;
	if (!o->base_cnt || !o->new_cnt)
		return util_fail(-EINVAL, err, err_sz,
				 "nothing stands %s --: give the files of both sides: BASE... -- "
				 "NEW...",
				 o->base_cnt ? "behind" : "before");
	return 0;
}
