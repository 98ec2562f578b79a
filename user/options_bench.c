// SPDX-License-Identifier: BSD-2-Clause
#include "options_bench.h"

#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "capture/ops.h"
#include "judge/judge.h"
#include "kinds.h"
#include "options.h"
#include "options_diff.h"
#include "options_table.h"

#define REPEAT 10
#define MAX_REPEAT 1000
#define SAMPLES "samples"

void options_bench_defaults(struct options *o)
{
	o->frequency = OPTIONS_BENCH_FREQUENCY;
	/* what it costs, it costs both sides */
	o->heap_budget = 100;
	o->bench = (struct bench_options){
		.warmup = 1,
		.timeout_ns = OPTIONS_BENCH_TIMEOUT_NS,
	};
}

static int parse_number(uint64_t *ret, const char *option, const char *arg, uint64_t min,
			uint64_t max, char *err, size_t err_sz)
{
	if (!util_parse_u64(arg, min, max, ret))
		return 0;
	return util_fail(-EINVAL, err, err_sz, "%s: '%s' is no number from %d to %llu", option, arg,
			 (int)min, (unsigned long long)max);
}

static int parse_text(const char **ret, const char *option, const char *arg, char *err,
		      size_t err_sz)
{
	*ret = arg;
	return *arg ? 0 : util_fail(-EINVAL, err, err_sz, "%s: it is empty", option);
}

static int parse_regex(struct options *o, const char *arg, char *err, size_t err_sz)
{
	char text[128];
	size_t groups;
	regex_t re;
	int res = regcomp(&re, arg, REG_EXTENDED);

	if (res) {
		regerror(res, &re, text, sizeof(text));
		return util_fail(-EINVAL, err, err_sz,
				 "--ops-regex: '%s' is no regular expression: %s", arg, text);
	}
	groups = re.re_nsub;
	regfree(&re);
	if (!groups)
		return util_fail(
			-EINVAL, err, err_sz,
			"--ops-regex: '%s' has no group: write for example '([0-9]+) requests'",
			arg);
	o->bench.ops_regex = arg;
	return 0;
}

static int parse_probe(struct options *o, const char *arg, char *err, size_t err_sz)
{
	struct ops_probe probe;

	o->bench.ops_probe = arg;
	if (!ops_probe_parse(arg, &probe))
		return 0;
	return util_fail(-EINVAL, err, err_sz,
			 "--ops-probe: '%s' is no probe: write for example uprobe:handle_request, "
			 "uprobe:FILE:FUNCTION or usdt:FILE:PROVIDER:NAME",
			 arg);
}

static int parse_timeout(struct options *o, const char *arg, char *err, size_t err_sz)
{
	if (!util_parse_duration(arg, &o->bench.timeout_ns))
		return 0;
	return util_fail(-EINVAL, err, err_sz,
			 "--timeout: '%s' is no time above 0: write for example 30s or 10m", arg);
}

bool options_bench_takes(int val)
{
	return val != 'P' && val != 'F' && val != OPT_EVENT && val != OPT_HEAP_RATE;
}

int options_bench_apply(struct options *o, int val, const char *arg, char *err, size_t err_sz)
{
	struct bench_options *b = &o->bench;

	switch (val) {
	case OPT_AGAINST:
		return parse_text(&b->against, "--against", arg, err, err_sz);
	case OPT_AA:
		b->aa = true;
		return 0;
	case OPT_APPEND:
		return parse_text(&b->append, "--append", arg, err, err_sz);
	case OPT_REPEAT:
		return parse_number(&b->repeat, "--repeat", arg, 1, MAX_REPEAT, err, err_sz);
	case OPT_MAX_REPEAT:
		return parse_number(&b->max_repeat, "--max-repeat", arg, 1, MAX_REPEAT, err,
				    err_sz);
	case OPT_BUILDS:
		return parse_number(&b->builds, "--builds", arg, 2, MAX_REPEAT, err, err_sz);
	case OPT_WARMUP:
		return parse_number(&b->warmup, "--warmup", arg, 0, MAX_REPEAT, err, err_sz);
	case OPT_PREPARE:
		return parse_text(&b->prepare, "--prepare", arg, err, err_sz);
	case OPT_TIMEOUT:
		return parse_timeout(o, arg, err, err_sz);
	case OPT_OPS:
		return parse_number(&b->ops, "--ops", arg, 1, INT64_MAX, err, err_sz);
	case OPT_OPS_REGEX:
		return parse_regex(o, arg, err, err_sz);
	case OPT_OPS_PROBE:
		return parse_probe(o, arg, err, err_sz);
	default:
		return options_diff_apply(o, val, arg, err, err_sz);
	}
}

/* ---- what fails ---- */

/* Have stacks a value of this type? The number of samples is none where there is what they measure, as judge()
 * has it. */
static bool have_stacks(const struct options *o, const char *type)
{
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		for (size_t v = 0; o->kinds[i] && v < kinds[i].value_cnt; v++)
			if (!strcmp(kinds[i].value_types[v].type, type))
				return strcmp(type, SAMPLES) != 0;
	return false;
}

static bool has_type(const struct options *o, const char *type)
{
	return have_stacks(o, type) || !strcmp(type, RUNS_WALL);
}

/* "cpu, wall" */
static void list_types(const struct options *o, char *buf, size_t buf_sz)
{
	size_t len = 0;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		for (size_t v = 0; o->kinds[i] && v < kinds[i].value_cnt; v++)
			if (strcmp(kinds[i].value_types[v].type, SAMPLES) != 0)
				len += (size_t)snprintf(buf + len, buf_sz - len, "%s, ",
							kinds[i].value_types[v].type);
	snprintf(buf + len, buf_sz - len, "%s", RUNS_WALL);
}

/* Is it what people call a kind of these? block and mutex have the same types. */
static bool is_chosen(const struct options *o, const char *name)
{
	const struct judge_alias *alias = judge_find_alias(name);
	int kind = kinds_find(name, strlen(name));

	return alias && kind >= 0 && o->kinds[kind] && has_type(o, alias->type);
}

/* A gate that no run can have is to be said before the runs are made. */
static int check_gates(const struct options *o, char *err, size_t err_sz)
{
	for (size_t i = 0; i < o->judge.gate_cnt; i++) {
		const struct judge_gate *g = &o->judge.gates[i];
		const char *metric = g->metric;
		char types[512];

		if (*g->function && !strcmp(metric, RUNS_WALL) && !have_stacks(o, metric))
			return util_fail(-EINVAL, err, err_sz,
					 "--fail-on: '%s' is of whole runs and not of functions: "
					 "leave '%s' out",
					 metric, g->function);
		if (has_type(o, metric) || is_chosen(o, metric))
			continue;
		list_types(o, types, sizeof(types));
		return util_fail(-EINVAL, err, err_sz,
				 "--fail-on: the runs have no '%s': choose from %s, or record the "
				 "kind that has it (--profile)",
				 metric, types);
	}
	return 0;
}

int options_bench_check(struct options *o, char *err, size_t err_sz)
{
	struct bench_options *b = &o->bench;

	if (!o->kinds_given)
		o->kinds[BPFPROF_CPU] = o->kinds_given = true;
	if (!b->against && !b->aa)
		return util_fail(-EINVAL, err, err_sz,
				 "nothing to compare with: give --against 'BASE COMMAND', or --aa");
	if (b->against && b->aa)
		return util_fail(-EINVAL, err, err_sz,
				 "--aa and --against exclude each other: with --aa both sides are "
				 "the command behind --");
	if (!!b->ops + !!b->ops_regex + !!b->ops_probe > 1)
		return util_fail(-EINVAL, err, err_sz,
				 "--ops, --ops-regex and --ops-probe exclude each other: give one "
				 "of them");
	if (o->kinds[BPFPROF_BLOCK] + o->kinds[BPFPROF_MUTEX] + o->kinds[BPFPROF_OFFCPU] > 1)
		return util_fail(-EINVAL, err, err_sz,
				 "--profile: of block, mutex and offcpu bench compares one: they "
				 "have the same value types");
	if (b->append && o->output)
		return util_fail(-EINVAL, err, err_sz,
				 "--append and --output exclude each other: both name the folder");
	if (!b->repeat)
		b->repeat = b->builds ?: REPEAT;
	if (!b->max_repeat)
		b->max_repeat = b->repeat;
	if (b->max_repeat < b->repeat)
		return util_fail(-EINVAL, err, err_sz, "--max-repeat is below --repeat");
	if (b->builds && (b->repeat % b->builds || b->max_repeat % b->builds))
		return util_fail(-EINVAL, err, err_sz,
				 "--repeat and --max-repeat have to be multiples of --builds: each "
				 "build is to run as often as the others");
	return check_gates(o, err, err_sz);
}
