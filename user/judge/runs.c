// SPDX-License-Identifier: BSD-2-Clause
/* The tables of all runs, and what has to hold of them together. */
#include "judge/runs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/names.h"
#include "judge/runs_parts.h"

#define NONE RUNS_NONE

struct name_entry {
	uint32_t name;
	uint32_t function;
};

struct runs *runs__new(void)
{
	struct runs *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->strings = strtab__new();
	hash__init(&r->by_name, sizeof(struct name_entry), sizeof(uint32_t), HASH_MAX);
	hash__init(&r->by_stack, sizeof(uint32_t), 0, HASH_MAX);
	if (r->strings)
		return r;
	runs__free(r);
	return NULL;
}

void runs__free_run(struct runs_run *run)
{
	for (size_t m = 0; m < RUNS_METRICS_MAX; m++)
		free(run->columns[m].costs);
	free(run->path);
}

void runs__free(struct runs *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->run_cnt; i++)
		runs__free_run(&r->runs[i]);
	strtab__free(r->strings);
	hash__done(&r->by_name);
	hash__done(&r->by_stack);
	free(r->functions);
	free(r->stacks);
	free(r->frames);
	free(r->runs);
	free(r);
}

/* ---- functions and stacks ---- */

uint32_t runs__function(struct runs *r, const char *name, const char *file, const char *object)
{
	struct runs_function *f;
	struct name_entry *e;
	uint32_t id = strtab__add(r->strings, name), file_id, object_id;
	bool is_new;

	file_id = strtab__add(r->strings, names_base(file));
	object_id = strtab__add(r->strings, names_base(object));
	if (id == NONE || file_id == NONE || object_id == NONE)
		return NONE;
	e = hash__insert(&r->by_name, &id, &is_new);
	if (!e)
		return NONE;
	if (is_new) {
		if (r->function_cnt >= RUNS_FUNCTIONS_MAX ||
		    util_reserve(&r->functions, &r->function_cap, r->function_cnt + 1,
				 sizeof(*r->functions))) {
			hash__remove(&r->by_name, e);
			return NONE;
		}
		e->function = (uint32_t)r->function_cnt++;
		r->functions[e->function] = (struct runs_function){ .name = id };
	}
	f = &r->functions[e->function];
	f->file = f->file ?: file_id;
	f->object = f->object ?: object_id;
	return e->function;
}

uint32_t runs__stack(struct runs *r, const uint32_t *frames, uint32_t cnt)
{
	uint64_t hash = util_hash(frames, cnt * sizeof(*frames), r->by_stack.seed);
	uint32_t *e;

	for (e = hash__first(&r->by_stack, hash); e; e = hash__next(&r->by_stack, e))
		if (r->stacks[*e].cnt == cnt &&
		    !memcmp(r->frames + r->stacks[*e].at, frames, cnt * sizeof(*frames)))
			return *e;
	if (util_reserve(&r->stacks, &r->stack_cap, r->stack_cnt + 1, sizeof(*r->stacks)) ||
	    util_reserve(&r->frames, &r->frame_cap, r->frame_cnt + cnt, sizeof(*r->frames)))
		return NONE;
	e = hash__add(&r->by_stack, hash);
	if (!e)
		return NONE;
	memcpy(r->frames + r->frame_cnt, frames, cnt * sizeof(*frames));
	r->stacks[r->stack_cnt] = (struct runs_stack){ r->frame_cnt, cnt };
	r->frame_cnt += cnt;
	*e = (uint32_t)r->stack_cnt++;
	return *e;
}

int runs__find_metric(const struct runs *r, const char *name)
{
	for (size_t i = 0; i < r->metric_cnt; i++)
		if (!strcmp(r->metrics[i].name, name))
			return (int)i;
	return -1;
}

/* ---- the whole ---- */

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_block(const void *a, const void *b)
{
	const struct runs_run *x = a, *y = b;

	return compare_u64(x->facts.block, y->facts.block)		     ?:
		       compare_u64(x->facts.seed, y->facts.seed)	     ?:
		       compare_u64(x->facts.slot, y->facts.slot)	     ?:
		       (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns) ?:
		       (x->side > y->side) - (x->side < y->side)	     ?:
		       strcmp(x->path, y->path);
}

/* The first run that says its machine is what the others are compared with; NULL: none does. */
static const struct runs_run *find_machine(const struct runs *r)
{
	for (size_t i = 0; i < r->run_cnt; i++)
		if (*r->runs[i].facts.machine)
			return &r->runs[i];
	return NULL;
}

static bool other_machine(const struct runs_run *a, const struct runs_run *b)
{
	return a && *b->facts.machine && strcmp(a->facts.machine, b->facts.machine) != 0;
}

/* How long runs took is a metric of its own, unless the files have one of this name. */
static void add_wall(struct runs *r)
{
	struct runs_metric *m = &r->metrics[r->metric_cnt];
	bool any = false;

	if (r->metric_cnt == RUNS_METRICS_MAX || runs__find_metric(r, RUNS_WALL) >= 0)
		return;
	for (size_t i = 0; i < r->run_cnt; i++) {
		uint64_t ns = r->runs[i].facts.wall_ns;

		if (ns == FACTS_NONE)
			continue;
		r->runs[i].columns[r->metric_cnt] = (struct runs_column){
			.there = true, .exact = true, .value = (double)ns, .count = 1
		};
		any = true;
	}
	if (!any)
		return;
	*m = (struct runs_metric){ .name = RUNS_WALL, .unit = "nanoseconds", .whole = true };
	r->metric_cnt++;
}

static int check_run(const struct runs *r, const struct runs_run *run,
		     const struct runs_run *machine, char *err, size_t err_sz)
{
	const struct runs_run *first = &r->runs[0];
	bool common = false;

	if ((run->facts.ops == FACTS_NONE) != (first->facts.ops == FACTS_NONE))
		return util_fail(-EINVAL, err, err_sz,
				 "one of '%s' and '%s' says how many operations it did and the "
				 "other does not",
				 first->path, run->path);
	if ((run->facts.build == FACTS_NONE) != (first->facts.build == FACTS_NONE))
		return util_fail(
			-EINVAL, err, err_sz,
			"one of '%s' and '%s' says which build it is of and the other does "
			"not",
			first->path, run->path);
	if (other_machine(machine, run) && !r->cross_machine)
		return util_fail(-EINVAL, err, err_sz,
				 "'%s' and '%s' are of different machines, which says more than "
				 "any change: record both sides on one machine, or compare what "
				 "functions have of the whole alone (--cross-machine)",
				 machine->path, run->path);
	for (size_t m = 0; m < r->metric_cnt; m++)
		for (size_t j = 0; j < r->run_cnt; j++)
			common |= run->columns[m].there && r->runs[j].columns[m].there &&
				  r->runs[j].side != run->side;
	if (!common)
		return util_fail(-EINVAL, err, err_sz,
				 "'%s' has no value type that a file of the other side has, too",
				 run->path);
	return 0;
}

int runs__finish(struct runs *r, char *err, size_t err_sz)
{
	const struct runs_run *machine;
	size_t cnt[2] = { 0 };
	int ret = 0;

	for (size_t i = 0; i < r->run_cnt; i++)
		cnt[r->runs[i].side]++;
	if (!cnt[RUNS_BASE] || !cnt[RUNS_NEW])
		return util_fail(-EINVAL, err, err_sz, "there is no run of the %s side",
				 cnt[RUNS_BASE] ? "new" : "base");
	qsort(r->runs, r->run_cnt, sizeof(*r->runs), by_block);
	machine = find_machine(r);
	for (size_t i = 0; !ret && i < r->run_cnt; i++)
		ret = check_run(r, &r->runs[i], machine, err, err_sz);
	for (size_t i = 0; i < r->run_cnt; i++)
		r->machines_differ |= other_machine(machine, &r->runs[i]);
	if (!ret)
		add_wall(r);
	return ret;
}
