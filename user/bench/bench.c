// SPDX-License-Identifier: BSD-2-Clause
/* From the plan to the verdict. */
#include <linux/types.h>

#include "bench/bench.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/stop_signals.h"
#include "base/util.h"
#include "bench/parts.h"
#include "bench/plan.h"
#include "bench/strays.h"
#include "diff.h"
#include "judge/judge.h"
#include "kernel/features.h"
#include "options.h"

#define REPEATED_MAX 0.25 /* of the blocks */

/* A block that was made now. */
struct block {
	uint64_t number;
	uint64_t first_build; /* of the side's, from 0 on */
	size_t a_side;
	double others; /* CPU time of others, as a share of the block's */
	uint32_t first_run, runs;
	enum runs_side sides[2 * PLAN_BLOCK];
};

struct blocks {
	struct block *list;
	size_t cnt, cap, repeated;
};

/* ---- runs ---- */

static int run_once(struct bench *b, const struct bench_run *run, struct run_facts *ret)
{
	struct run_facts measured;
	int err = bench_one_run(b, run, ret);

	err = err ?: bench_set_peek(b, run->side, &measured);
	if (err)
		return err;
	ret->wall_ns = measured.wall_ns;
	ret->cpu_ns = measured.cpu_ns;
	ret->other_ns = measured.other_ns;
	return bench_ops_take(b, run->side, measured.ops, ret);
}

/* A gate on a function that neither side has ends all, but not before all runs are made: one that costs
 * little may be missing in the first ones. */
static void warn_of_functions(const struct bench *b, const struct runs *seen)
{
	char text[1024];

	if (judge_check_functions(seen, &b->opts->judge, text, sizeof(text)))
		log_info("%s in the first runs: if none has it there will be no verdict", text);
}

/* Runs that do not count: caches fill, and what cannot work fails at once. */
static int warm_up(struct bench *b)
{
	struct bench_run run = { 0 };
	struct runs *seen = runs__new();
	struct run_facts facts;
	int err = seen ? 0 : -ENOMEM;

	if (err)
		log_error("out of memory");
	for (uint64_t i = 0; !err && i < 2 * b->opts->bench.warmup; i++) {
		run.side = i % 2 ? RUNS_NEW : RUNS_BASE;
		err = run_once(b, &run, &facts);
		if (!err && i < 2)
			err = bench_set_read_begun(b, run.side, seen);
		bench_set_drop(b);
		if (!err && i < 2)
			log_info("a run of the %s side takes %.2f s, %.2f s of CPU time",
				 bench_side_names[run.side], (double)facts.wall_ns / 1e9,
				 facts.cpu_ns == FACTS_NONE ? 0 : (double)facts.cpu_ns / 1e9);
		if (!err && i == 1)
			warn_of_functions(b, seen);
	}
	runs__free(seen);
	return err;
}

static int run_in_block(struct bench *b, const struct plan_run *p, struct block *block,
			double *others, double *wall)
{
	struct bench_run run = {
		.side = p->is_new ? RUNS_NEW : RUNS_BASE,
		.build = b->opts->bench.builds ? block->first_build + p->nth : 0,
		.padding = p->padding,
	};
	struct run_facts facts;
	int err = run_once(b, &run, &facts);

	if (err)
		return err;
	*others += facts.other_ns == FACTS_NONE ? 0 : (double)facts.other_ns;
	*wall += (double)facts.wall_ns;
	block->sides[block->runs++] = run.side;
	facts.block = block->number;
	facts.slot = p->slot;
	facts.build = bench_build_number(b, &run);
	facts.seed = b->seed;
	facts.look = b->look;
	err = bench_set_add(b, run.side, ++b->set.runs, &facts);
	if (!err)
		log_debug("run %s: %s, %.3f s", facts.run, bench_side_names[run.side],
			  (double)facts.wall_ns / 1e9);
	return err;
}

static int make_block(struct bench *b, struct blocks *blocks, size_t a_side, uint64_t first_build)
{
	struct plan_run plan[2 * PLAN_BLOCK];
	double others = 0, wall = 0;
	struct block *block;
	int err = 0;

	if (util_reserve(&blocks->list, &blocks->cap, blocks->cnt + 1, sizeof(*blocks->list))) {
		log_error("out of memory");
		return -ENOMEM;
	}
	block = &blocks->list[blocks->cnt++];
	*block = (struct block){
		.number = b->set.blocks++,
		.a_side = a_side,
		.first_build = first_build,
		.first_run = b->set.runs + 1,
	};
	plan_block(b->seed, block->number, a_side, plan);
	for (size_t i = 0; !err && i < 2 * a_side; i++)
		err = run_in_block(b, &plan[i], block, &others, &wall);
	block->others = wall > 0 ? others / wall : 0;
	return err;
}

static void remove_block(const struct bench *b, const struct block *block)
{
	for (uint32_t i = 0; i < block->runs; i++)
		bench_set_remove(b, block->sides[i], block->first_run + i);
}

/* Other work on the machine makes a block worth less: what stands out is made again. */
static int repeat_disturbed(struct bench *b, struct blocks *blocks)
{
	size_t cnt = blocks->cnt, most = (size_t)(REPEATED_MAX * (double)cnt), found;
	double *others = calloc(cnt, sizeof(*others));
	bool *again = calloc(cnt, sizeof(*again));
	int err = 0;

	most = most > blocks->repeated ? most - blocks->repeated : 0;
	for (size_t i = 0; others && i < cnt; i++)
		others[i] = blocks->list[i].others;
	found = others && again ? plan_disturbed(others, cnt, most, again) : 0;
	if (found)
		log_info(
			"%zu of %zu blocks %s made again: others kept the processors busy "
			"meanwhile",
			found, cnt, found == 1 ? "is" : "are");
	for (size_t i = cnt; !err && found && i-- > 0;) {
		struct block old = blocks->list[i];

		if (!again[i])
			continue;
		remove_block(b, &old);
		memmove(&blocks->list[i], &blocks->list[i + 1],
			(blocks->cnt - i - 1) * sizeof(*blocks->list));
		blocks->cnt--;
		blocks->repeated++;
		err = make_block(b, blocks, old.a_side, old.first_build);
	}
	free(others);
	free(again);
	return err;
}

static size_t made_a_side(const struct blocks *blocks)
{
	size_t cnt = 0;

	for (size_t i = 0; i < blocks->cnt; i++)
		cnt += blocks->list[i].a_side;
	return cnt;
}

static int make_runs(struct bench *b, struct blocks *blocks, uint64_t a_side)
{
	uint64_t builds = b->opts->bench.builds, made, left;
	int err = 0;

	while (!err && (made = made_a_side(blocks)) < a_side) {
		left = a_side - made;
		/* the same builds are together in a block whenever they run */
		if (builds)
			left = MIN(left, builds - made % builds);
		err = make_block(b, blocks, MIN((uint64_t)PLAN_BLOCK, left),
				 builds ? made % builds : 0);
	}
	return err ?: repeat_disturbed(b, blocks);
}

/* ---- verdicts ---- */

/* Reads what there is. Runs that always take the same time have to say what they did. NULL: it failed,
 * said; *ret_err is -EINTR where somebody wants us to end. */
static struct runs *read_runs(struct bench *b, int *ret_err)
{
	struct runs *runs = bench_set_read(b);

	*ret_err = runs ? 0 : -EINVAL;
	if (!runs || !judge_may_be_boxed(runs, false))
		return runs;
	*ret_err = bench_find_boxed(b, runs);
	runs__free(runs);
	if (*ret_err)
		return NULL;
	b->ops = 1;
	*ret_err = bench_set_say_ops(b, b->ops);
	return *ret_err ? NULL : bench_set_read(b);
}

/* The verdict of what there is, with what is left for this look of the chances of a false alarm and of a false
 * OK. 0 or -errno, said. */
static int look(struct bench *b, double share, struct runs **ret_runs, struct judge_result **ret)
{
	struct judge_options o = b->opts->judge;
	char text[1024];
	int err;

	*ret_runs = read_runs(b, &err);
	if (!*ret_runs)
		return err;
	o.alpha *= share;
	o.ok_share = share;
	if (!o.seed)
		o.seed = b->seed;
	err = judge(*ret_runs, &o, ret, text, sizeof(text));
	if (err)
		log_error("%s", text);
	return err;
}

/*
 * Looks until the verdict stands or the last runs are made. The chances of a false alarm and of a false OK are
 * shared out among the looks; those of --append have half of it, a quarter, and so on, on top.
 */
static int run_looks(struct bench *b, struct runs **ret_runs, struct judge_result **ret)
{
	const struct options *o = b->opts;
	uint64_t at[PLAN_MAX_LOOKS];
	size_t cnt = plan_looks(o->bench.repeat, o->bench.max_repeat, at);
	double share = 1 / (double)cnt;
	struct blocks blocks = { 0 };
	int err = 0;

	for (uint64_t i = 0; i < b->set.looks; i++)
		share /= 2;
	for (size_t i = 0; !err && i < cnt; i++) {
		judge_free(*ret);
		runs__free(*ret_runs);
		*ret = NULL;
		*ret_runs = NULL;
		b->look = b->set.looks + i + 1;
		err = make_runs(b, &blocks, at[i]);
		err = err ?: look(b, share, ret_runs, ret);
		if (err || (*ret)->verdict != JUDGE_CANNOT_TELL)
			break;
		if (i + 1 < cnt)
			log_info("it cannot be told from %" PRIu64 " runs a side yet", at[i]);
	}
	free(blocks.list);
	return err;
}

/* ---- all of it ---- */

static int open_signals(struct bench *b)
{
	sigset_t set;

	stop_signals(&set);
	b->signal_fd = sigprocmask(SIG_BLOCK, &set, NULL) ? -1 : signalfd(-1, &set, SFD_CLOEXEC);
	if (b->signal_fd >= 0)
		return 0;
	log_error("cannot set up signals: %s", strerror(errno));
	return -errno;
}

static int open_bench(struct bench *b)
{
	const struct options *o = b->opts;
	const char *missing = features_missing();
	int err = diff_check_output(o, "-");

	err = err ?: bench_open_commands(b);
	if (!err && missing) {
		log_error("%s", missing);
		return -ENOTSUP;
	}
	err = err ?: open_signals(b);
	if (err)
		return err;
	if (o->bench.ops_regex && regcomp(&b->ops_regex, o->bench.ops_regex, REG_EXTENDED)) {
		log_error("--ops-regex: out of memory");
		return -ENOMEM;
	}
	b->as_user = launch_sudo_user(&b->user);
	b->seed = o->judge.seed;
	while (!b->seed)
		if (getrandom(&b->seed, sizeof(uint32_t), 0) < 0)
			b->seed = util_realtime_ns();
	if (strays_adopt())
		log_info("processes that a command leaves running are not ended");
	err = bench_ops_check(b);
	if (err)
		return err;
	err = bench_set_open(b, o->bench.append ?: o->output, o->bench.append);
	if (!err && o->bench.append && b->ops == FACTS_NONE && !o->bench.ops_regex &&
	    !o->bench.ops_probe)
		b->ops = b->set.ops_before;
	return err;
}

static void close_bench(struct bench *b)
{
	bench_set_close(&b->set);
	bench_close_commands(b);
	if (b->opts->bench.ops_regex)
		regfree(&b->ops_regex);
	if (b->signal_fd >= 0)
		close(b->signal_fd);
}

int bench_sides(const struct options *opts)
{
	struct bench b = { .opts = opts, .signal_fd = -1, .ops = opts->bench.ops ?: FACTS_NONE };
	struct judge_result *result = NULL;
	struct runs *runs = NULL;
	int err = open_bench(&b), status = DIFF_WRONG;

	err = err ?: warm_up(&b);
	err = err ?: run_looks(&b, &runs, &result);
	if (err == -EINTR)
		log_error("ended by a signal: there is no verdict");
	if (!err)
		status = diff_write_result(opts, "-", result);
	if (!err && !b.set.temporary)
		log_info(
			"the profiles are in '%s': bpfprof view shows them, bpfprof diff judges "
			"them again",
			b.set.path);
	judge_free(result);
	runs__free(runs);
	close_bench(&b);
	return status;
}
