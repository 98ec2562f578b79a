// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "capture/window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "capture/count_keys.h"
#include "capture/stack_store.h"
#include "kinds.h"
#include "profile/profile.h"
#include "target/cgroups.h"
#include "target/services.h"

#define CGROUP_LABELS 8
#define MAX_EXE 1024

/* What the samples of a stack stand for. */
struct sums {
	bool used;		/* the window refers to the stack */
	double now, now_amount; /* since the last commit */
	double total, amount;	/* committed */
	double held;
};

struct window {
	struct stack_store *store;
	struct sums *sums; /* by number of the stack */
	size_t sum_cap;
	uint64_t since_ns; /* see window__set_since */
	struct window_account accounts[BPFPROF_NR_KINDS];
};

struct window *window__new(struct stack_store *store)
{
	struct window *w = calloc(1, sizeof(*w));

	if (w)
		w->store = store;
	return w;
}

void window__clear(struct window *w)
{
	for (size_t i = 0; i < w->sum_cap; i++)
		if (w->sums[i].used)
			stack_store__unref(w->store, (uint32_t)i);
	if (w->sum_cap)
		memset(w->sums, 0, w->sum_cap * sizeof(*w->sums));
	memset(w->accounts, 0, sizeof(w->accounts));
}

void window__free(struct window *w)
{
	if (!w)
		return;
	window__clear(w);
	free(w->sums);
	free(w);
}

struct window_account *window__account(struct window *w, enum bpfprof_kind kind)
{
	return &w->accounts[kind];
}

void window__set_since(struct window *w, uint64_t since_ns)
{
	w->since_ns = since_ns;
}

uint64_t window__since_ns(const struct window *w)
{
	return w->since_ns;
}

/* ---- adding up ---- */

static struct sums *sums_of(struct window *w, uint32_t stack)
{
	struct sums *s;

	if (util_reserve_zeroed(&w->sums, &w->sum_cap, stack, sizeof(*w->sums)))
		return NULL;
	s = &w->sums[stack];
	if (!s->used)
		stack_store__ref(w->store, stack);
	s->used = true;
	return s;
}

int window__add(struct window *w, const struct count_key_stack *stack,
		const struct bpfprof_count *count)
{
	struct stack what = stack_store__get(w->store, stack->stack);
	struct window_account *a = &w->accounts[what.kind];
	struct sums *s = sums_of(w, stack->stack);

	if (!s) {
		a->no_memory += count->count;
		return -ENOMEM;
	}
	s->now += count->units ? (double)count->units / BPFPROF_UNIT : count->count * stack->unit;
	/* without units, the amount is not what a sample stands for, but how long it has been so */
	s->now_amount += count->units ? count->amount : 0;
	a->total += count->count;
	a->results[what.result] += count->count;
	return 0;
}

static void add_sums(struct sums *to, const struct sums *from)
{
	to->now += from->now;
	to->now_amount += from->now_amount;
	to->total += from->total;
	to->amount += from->amount;
	to->held += from->held;
}

static void add_account(struct window_account *to, const struct window_account *from)
{
	util_add_counters(to, from, sizeof(*to));
}

int window__merge(struct window *w, const struct window *from)
{
	/* the room first, so that there is all of it or nothing */
	if (from->sum_cap &&
	    util_reserve_zeroed(&w->sums, &w->sum_cap, from->sum_cap - 1, sizeof(*w->sums)))
		return -ENOMEM;
	for (size_t i = 0; i < from->sum_cap; i++)
		if (from->sums[i].used)
			add_sums(sums_of(w, (uint32_t)i), &from->sums[i]);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		add_account(&w->accounts[i], &from->accounts[i]);
	return 0;
}

void window__add_stats(struct window *w, enum bpfprof_kind kind, const struct bpfprof_stats *stats)
{
	struct window_account more = { .stats = *stats };

	add_account(&w->accounts[kind], &more);
}

void window__commit(struct window *w, enum bpfprof_kind kind, double scale)
{
	for (size_t i = 0; i < w->sum_cap; i++) {
		struct sums *s = &w->sums[i];

		if (!s->used || stack_store__get(w->store, (uint32_t)i).kind != kind)
			continue;
		s->total += s->now * scale;
		s->amount += s->now_amount * scale;
		s->now = s->now_amount = 0;
	}
}

void window__revise(struct window *w, enum bpfprof_kind kind, double times)
{
	for (size_t i = 0; i < w->sum_cap; i++) {
		struct sums *s = &w->sums[i];

		if (!s->used || stack_store__get(w->store, (uint32_t)i).kind != kind)
			continue;
		s->total *= times;
		s->amount *= times;
	}
}

int window__hold(struct window *w, const struct count_key_stack *stack, int times)
{
	struct sums *s = sums_of(w, stack->stack);

	if (!s)
		return -ENOMEM;
	s->held += times * stack->unit;
	return 0;
}

void window__move(struct window *w, const uint32_t *moved, size_t cnt)
{
	cnt = MIN(cnt, w->sum_cap);
	for (size_t i = 0; i < cnt; i++) {
		struct sums *to;

		if (!w->sums[i].used || moved[i] == STACK_NONE)
			continue;
		to = sums_of(w, moved[i]);
		if (!to)
			return;
		add_sums(to, &w->sums[i]);
		memset(&w->sums[i], 0, sizeof(w->sums[i]));
		stack_store__unref(w->store, (uint32_t)i);
	}
}

/* ---- the profile ---- */

static const char *const result_text[] = {
#define RESULT_TEXT(name, text) text,
	BPFPROF_STACK_RESULTS(RESULT_TEXT)
};

/* A profile that is put together. */
struct build {
	const struct stack_store *store;
	struct profile *p;
	struct symbolize_source *sources;
	size_t source_cap;
	uint32_t *mappings, *locations; /* of the store's, their numbers in the profile, plus 1 */
	uint32_t *scratch;		/* a stack's */
	size_t scratch_cap;
};

static uint32_t mapping(struct build *b, uint32_t stored)
{
	const struct stack_mapping *m = stack_store__mapping(b->store, stored);
	struct profile_mapping mapping = {
		.start = m->start, .limit = m->limit, .offset = m->offset, .owner = m->owner
	};
	uint32_t ret;

	if (b->mappings[stored])
		return b->mappings[stored] - 1;
	mapping.filename = profile__string(b->p, m->filename);
	mapping.build_id = profile__string(b->p, stack_store__build_id(b->store, m));
	if (mapping.filename == PROFILE_NONE || mapping.build_id == PROFILE_NONE)
		return PROFILE_NONE;
	ret = profile__add_mapping(b->p, &mapping);
	if (ret == PROFILE_NONE ||
	    util_reserve(&b->sources, &b->source_cap, ret + 1, sizeof(*b->sources)))
		return PROFILE_NONE;
	b->sources[ret] = m->source;
	b->mappings[stored] = ret + 1;
	return ret;
}

static uint32_t marker(struct build *b, uint64_t result)
{
	char name[128];

	snprintf(name, sizeof(name), "[unwind: %s]", result_text[result]);
	return profile__add_marker(b->p, name);
}

static uint32_t location(struct build *b, uint32_t stored)
{
	const struct stack_location *l = stack_store__location(b->store, stored);
	uint32_t ret, in = PROFILE_NONE;

	if (b->locations[stored])
		return b->locations[stored] - 1;
	if (l->mapping != STACK_NONE) {
		in = mapping(b, l->mapping);
		if (in == PROFILE_NONE)
			return PROFILE_NONE;
	}
	ret = l->marker ? marker(b, l->address) : profile__add_location(b->p, in, l->address);
	if (ret != PROFILE_NONE)
		b->locations[stored] = ret + 1;
	return ret;
}

/* What the path says is said beside it, so that pprof can be asked for one container or unit. */
static size_t cgroup_labels(struct profile *p, const struct cgroup *g, struct profile_label *ret)
{
	const struct {
		const char *key, *value;
	} all[CGROUP_LABELS] = {
		{ "cgroup", g->path },
		{ "container_id", g->what.container },
		{ "container", g->names.container },
		{ "container_service", g->names.service },
		{ "pod_uid", g->what.pod },
		{ "pod", g->names.pod },
		{ "namespace", g->names.space },
		{ "unit", g->what.unit },
	};
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].value && *all[i].value)
			ret[n++] =
				(struct profile_label){ .key = profile__string(p, all[i].key),
							.str = profile__string(p, all[i].value) };
	return n;
}

static size_t service_labels(struct profile *p, const struct said *said, struct profile_label *ret)
{
	size_t n = 0;

	for (enum said_fact i = 0; i < SAID_FACTS; i++)
		if (*said->text[i])
			ret[n++] =
				(struct profile_label){ .key = profile__string(p, said_label(i)),
							.str = profile__string(p, said->text[i]) };
	return n;
}

static size_t labels(struct build *b, const struct stack_labels *l, struct profile_label *ret)
{
	struct profile *p = b->p;
	char exe[MAX_EXE];
	size_t n = 0;

	if (l->has_pid)
		ret[n++] = (struct profile_label){ .key = profile__string(p, "pid"),
						   .num = l->pid,
						   .num_unit = profile__string(p, "pid") };
	if (l->has_comm)
		ret[n++] = (struct profile_label){ .key = profile__string(p, "comm"),
						   .str = profile__string(p, l->comm) };
	if (l->has_thread)
		ret[n++] = (struct profile_label){ .key = profile__string(p, "thread"),
						   .str = profile__string(p, l->thread) };
	stack_store__exe(b->store, l, exe, sizeof(exe));
	if (*exe)
		ret[n++] = (struct profile_label){ .key = profile__string(p, "exe"),
						   .str = profile__string(p, exe) };
	if (l->cgroup) {
		cgroup__find_names(l->cgroup);
		n += cgroup_labels(p, l->cgroup, ret + n);
	}
	if (l->service)
		n += service_labels(p, &l->service->said, ret + n);
	for (uint32_t i = 0; i < l->own_cnt; i++) {
		const struct kind_label *own = &l->own[i];

		ret[n++] = (struct profile_label){
			.key = profile__string(p, own->key),
			.str = own->str ? profile__string(p, own->str) : 0,
			.num = own->num,
			.num_unit = own->unit ? profile__string(p, own->unit) : 0,
		};
	}
	return n;
}

/* Then nobody asks what its code is called. */
static bool is_left_out(struct window_left_out *l, const struct stack *s, int64_t value)
{
	if (!l || !s->labels.has_pid || !l->is(l->ctx, s->labels.pid, s->labels.comm))
		return false;
	l->cnt += (uint64_t)value;
	return true;
}

static int add_sample(struct build *b, const struct stack *s, const struct sums *sums,
		      struct window_left_out *left_out)
{
	struct kind_sums values = {
		.total = sums->total, .held = sums->held, .amount = sums->amount, .size = s->size
	};
	struct profile_label own[4 + CGROUP_LABELS + SAID_FACTS + KIND_MAX_LABELS];
	int64_t v[KIND_MAX_VALUES] = { 0 };
	int err = util_reserve(&b->scratch, &b->scratch_cap, s->location_cnt + 1,
			       sizeof(*b->scratch));

	if (err)
		return err;
	kinds[s->kind].values(&values, b->p->period, v);
	if (is_left_out(left_out, s, v[0]))
		return 0;
	for (uint32_t i = 0; i < s->location_cnt; i++) {
		b->scratch[i] = location(b, s->locations[i]);
		if (b->scratch[i] == PROFILE_NONE)
			return -ENOMEM;
	}
	return profile__add_sample(b->p, b->scratch, s->location_cnt, own,
				   labels(b, &s->labels, own), v) == PROFILE_NONE ?
		       -ENOMEM :
		       0;
}

/* As much as before the window began, but for rounding, since each held is one at least. */
static bool holds_nothing(const struct sums *s)
{
	return s->held > -0.5 && s->held < 0.5;
}

/* Nothing was sampled in it either. */
static bool is_nothing(const struct sums *s)
{
	return !(s->total > 0) && !(s->amount > 0) && holds_nothing(s);
}

static int add_samples(struct build *b, const struct window *w, enum bpfprof_kind kind,
		       const struct window_profile_opts *opts)
{
	uint32_t main = stack_store__main(b->store, kind);
	int err = 0;

	if (main != STACK_NONE && mapping(b, main) == PROFILE_NONE)
		return -ENOMEM;
	for (size_t i = 0; !err && i < w->sum_cap; i++) {
		struct stack s;

		if (!w->sums[i].used || is_nothing(&w->sums[i]) ||
		    (opts->only_held && holds_nothing(&w->sums[i])))
			continue;
		s = stack_store__get(b->store, (uint32_t)i);
		if (s.kind == kind && (!opts->size || s.size == opts->size))
			err = add_sample(b, &s, &w->sums[i], opts->left_out);
	}
	return err;
}

struct profile *window__profile(const struct window *w, enum bpfprof_kind kind,
				const struct window_profile_opts *opts,
				struct symbolize_source **ret_sources)
{
	const struct kind *k = &kinds[kind];
	struct build b = {
		.store = w->store,
		.p = profile__new(k->value_types, opts->value_cnt, k->period_type, opts->period),
		.mappings = calloc(stack_store__mapping_end(w->store) + 1, sizeof(uint32_t)),
		.locations = calloc(stack_store__location_end(w->store) + 1, sizeof(uint32_t)),
	};
	int err = b.p && b.mappings && b.locations ? 0 : -ENOMEM;

	if (!err) {
		b.p->folded_value = opts->folded_value;
		err = add_samples(&b, w, kind, opts);
	}
	free(b.mappings);
	free(b.locations);
	free(b.scratch);
	if (!err) {
		*ret_sources = b.sources;
		return b.p;
	}
	free(b.sources);
	profile__free(b.p);
	errno = -err;
	return NULL;
}
