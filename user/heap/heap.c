// SPDX-License-Identifier: BSD-2-Clause
/* The heap profile of a recording: when its probes are set, and what comes of them. */
#include <linux/types.h>

#include "heap/heap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "capture/collect.h"
#include "capture/window.h"
#include "capture/windows.h"
#include "heap/cpu_time.h"
#include "heap/heap_account.h"
#include "heap/heap_probes.h"
#include "heap/heap_targets.h"
#include "kernel/epochs.h"
#include "kernel/live.h"
#include "kernel/probe_heap.h"
#include "kernel/session.h"
#include "target/procs.h"

#define IN_FLIGHT_US 1000 /* calls under way when recording stops still return to their probes */
#define FREES_OFTEN 2	  /* in every so manieth slice frees are probed, to learn what hits cost; */
#define FREES_RARELY 8	  /* and once that is known */
#define STACKS_MAX 100000 /* with their sizes, before these are rounded */

/* What it holds of what came before is to be forgotten. */
struct removed {
	uint32_t tgid;
	uint64_t ns;
};

struct heap {
	struct heap_opts opts;
	struct session *session;
	struct procs *procs;
	struct collect *collect;
	struct cpu_time *cpu;
	struct heap_probes *probes;
	struct heap_targets *targets;
	struct heap_account account;
	struct budget budget;
	bool started, sliced, paused, stopped;
	double weight; /* paused: of what was seen in the part at hand before */
	bool uncut;    /* a slice is over, and what it has counted is not added up yet */
	bool rounded;  /* sizes, to 6 bits */
	uint64_t cpu_ns, first_cpu_ns;
	uint64_t edge_ns;	 /* CPU time of attaching and detaching in slices */
	uint64_t swept;		 /* samples recorded when the live ones were last looked through */
	bool any_ended;		 /* since then a process that allocates may have ended */
	uint64_t attach_ns;	 /* before the start */
	struct removed *removed; /* since what is in use was last read */
	size_t removed_cnt, removed_cap;
};

struct heap *heap__new(const struct heap_opts *opts, struct session *session, struct procs *procs,
		       struct objects *objects, struct code *code, struct collect *collect,
		       struct cpu_time *cpu)
{
	struct heap *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->account.cost_fd = -1;
	h->probes = heap_probes__new(opts->method, opts->usdt, session, objects);
	if (h->probes)
		h->targets = heap_targets__new(opts, procs, objects, code, collect, h->probes);
	if (!h->targets) {
		heap__free(h);
		errno = ENOMEM;
		return NULL;
	}
	h->opts = *opts;
	h->session = session;
	h->procs = procs;
	h->collect = collect;
	h->cpu = cpu;
	/* it runs while the tables of the targets are loaded; heap__measure waits for it */
	heap_account__begin(&h->account, session, opts->method, opts->one);
	return h;
}

void heap__measure(struct heap *h)
{
	heap_account__measure(&h->account);
}

void heap__free(struct heap *h)
{
	if (!h)
		return;
	heap_account__end(&h->account);
	heap_targets__free(h->targets);
	heap_probes__free(h->probes);
	free(h->removed);
	free(h);
}

static bool is_removed(const struct heap *h, const struct live_entry *l)
{
	for (size_t i = 0; i < h->removed_cnt; i++)
		if (h->removed[i].tgid == l->key.tgid && l->live.time_ns < h->removed[i].ns)
			return true;
	return false;
}

/* What is in use; the caller frees *ret. Of all processes at once that have been removed it is forgotten. */
static int read_live(struct heap *h, struct live_entry **ret, size_t *ret_cnt)
{
	int err = probe_heap__live(h->session, ret, ret_cnt);
	size_t kept = 0;

	if (err)
		return err;
	for (size_t i = 0; i < *ret_cnt; i++) {
		if (is_removed(h, &(*ret)[i]))
			probe_heap__forget(h->session, &(*ret)[i].key);
		else
			(*ret)[kept++] = (*ret)[i];
	}
	*ret_cnt = kept;
	h->removed_cnt = 0;
	return 0;
}

/* Does the program that allocated it still run? Another one may have its process id, and have been started by
 * as many execs: it began later. */
static bool runs(const struct heap *h, const struct live_entry *l)
{
	uint32_t proc = procs__find_live(h->procs, l->key.tgid);
	const struct proc *p = proc == PROCS_NONE ? NULL : procs__get(h->procs, proc);

	return p && (!p->exec_known || p->exec_id == l->key.exec_id) &&
	       l->live.time_ns >= p->from_ns;
}

/* Did it run until then? Those that have ended since are still known. */
static bool ran_until(const struct heap *h, const struct live_entry *l, uint64_t ns)
{
	size_t cnt;
	const uint32_t *ended = procs__ended(h->procs, &cnt);

	if (runs(h, l))
		return true;
	for (size_t i = 0; i < cnt; i++) {
		const struct proc *p = procs__get(h->procs, ended[i]);

		if (p->tgid == l->key.tgid && (!p->exec_known || p->exec_id == l->key.exec_id) &&
		    l->live.time_ns >= p->from_ns && p->to_ns >= ns)
			return true;
	}
	return false;
}

/* A program that has ended held it. Of processes that were named, or started by such, that counts as in use
 * in the windows of that time, if it has been held for long enough by now; of the whole machine's, it does not. */
static void retire(struct heap *h, const struct live_entry *l, uint64_t now_ns)
{
	bool there = probe_heap__forget(h->session, &l->key);

	/* else it has been counted */
	if (there && !h->opts.all && l->live.time_ns + h->opts.min_age_ns <= now_ns)
		(void)windows__hold_ended(collect__windows(h->collect), &l->live.stack,
					  l->live.time_ns);
}

/*
 * Makes room for what is in use, before what programs held that have ended fills it. All of them have ended since the
 * last boundary (heap__settle_part): no window that is open has begun since.
 */
static int sweep(struct heap *h)
{
	uint64_t now = util_monotonic_ns();
	struct live_entry *live;
	struct bpfprof_stats stats;
	size_t cnt;
	int err;

	if (epochs__stats(h->session, BPFPROF_HEAP, &stats) ||
	    stats.recorded - h->swept < probe_heap__live_max(h->session) / 4)
		return 0;
	/* the stacks have to be known here */
	err = collect__cut(h->collect);
	/* a boundary was passed meanwhile: its window has what was in use then */
	if (err || !collect__has_settled(h->collect))
		return err;
	h->swept = stats.recorded;
	h->any_ended = false;
	err = read_live(h, &live, &cnt);
	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++) {
		/* who has allocated since then may be unknown yet */
		if (live[i].live.time_ns >= now || runs(h, &live[i]))
			continue;
		/* too young to count by now, and may be old enough in the end */
		if (!h->opts.all && live[i].live.time_ns + h->opts.min_age_ns > now) {
			h->any_ended = true;
			continue;
		}
		retire(h, &live[i], now);
	}
	free(live);
	return 0;
}

int heap__prepare_command(struct heap *h, pid_t pid, int file_fd, const char *preload)
{
	return heap_targets__add_command(h->targets, pid, file_fd, preload);
}

static int forget_removed(struct heap *h)
{
	struct live_entry *live;
	size_t cnt;
	int err = read_live(h, &live, &cnt);

	if (!err)
		free(live);
	return err;
}

static bool is_in_slice(const struct heap *h)
{
	return h->budget.state == BUDGET_ON && !h->paused;
}

int heap__update(struct heap *h)
{
	uint64_t before = util_monotonic_ns();
	int err = heap_targets__update(h->targets);

	if (!h->started)
		h->attach_ns += util_monotonic_ns() - before;
	/* while those that will have ended by the next time can still be asked */
	h->cpu_ns = cpu_time__recent_ns(h->cpu);
	if (!h->rounded &&
	    windows__stacks(collect__windows(h->collect), BPFPROF_HEAP) > STACKS_MAX) {
		h->rounded = true;
		probe_heap__round_sizes(h->session);
	}
	heap_probes__settle(h->probes);
	/* either would make a slice several times as long; its end cleans the children as well */
	if (!is_in_slice(h)) {
		heap_probes__clean_children(h->probes, collect__forks(h->collect));
		h->any_ended |= heap_targets__drop(h->targets) > 0;
	}
	/* with the library in a command, its processes have no probes of their own that would go */
	h->any_ended |= h->opts.all || heap_targets__have_library(h->targets);
	if (!err && h->any_ended)
		err = sweep(h);
	if (!err && h->removed_cnt && !h->sliced)
		err = forget_removed(h);
	return err;
}

int heap__remove(struct heap *h, uint32_t tgid)
{
	int err;

	heap_targets__forget(h->targets, tgid);
	if (h->sliced)
		return 0;
	err = util_reserve(&h->removed, &h->removed_cap, h->removed_cnt + 1, sizeof(*h->removed));
	if (!err)
		h->removed[h->removed_cnt++] = (struct removed){ tgid, util_monotonic_ns() };
	return err;
}

int heap__look_back(struct heap *h)
{
	return heap_targets__look_back(h->targets);
}

void heap__complain(struct heap *h)
{
	heap_targets__complain(h->targets);
}

/* ---- the budget ---- */

static struct budget_figures figures(struct heap *h, bool attached)
{
	enum heap_account_of of = attached ? HEAP_ACCOUNT_ATTACHED : HEAP_ACCOUNT_DETACHED;

	h->cpu_ns = cpu_time__ns(h->cpu);
	if (attached && h->budget.state == BUDGET_ON && util_monotonic_ns() >= h->budget.next_ns)
		of = HEAP_ACCOUNT_SLICE;
	heap_account__add(&h->account, of, h->cpu_ns, heap_probes__most(h->probes));
	return (struct budget_figures){ .now_ns = util_monotonic_ns(),
					.edge_ns = h->edge_ns,
					.so_far = h->account.so_far,
					.factor = heap_account__factor(&h->account) };
}

void heap__start(struct heap *h)
{
	struct budget_figures f = figures(h, false);
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed) || !seed)
		seed = 1;
	/* what cannot be measured, such as page faults when breakpoints are set, has to fit in too
	 */
	budget__start(&h->budget, h->opts.budget < 1 ? 0.9 * h->opts.budget : 1, seed, &f);
	probe_heap__enable(h->session, true);
	heap_targets__begin(h->targets, f.now_ns);
	h->first_cpu_ns = h->cpu_ns;
	h->started = true;
}

/* CPU time of ours, and of the children that have ended. */
static uint64_t own_cpu_ns(void)
{
	uint64_t ret = 0;

	for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
		struct rusage u;

		if (getrusage(who, &u))
			continue;
		ret += (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NSEC_PER_SEC;
		ret += (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
	}
	return ret;
}
_Static_assert(RUSAGE_CHILDREN + 1 == RUSAGE_SELF, "both");

static int detach(struct heap *h)
{
	uint64_t before = own_cpu_ns();
	int err;

	probe_heap__enable(h->session, false);
	usleep(IN_FLIGHT_US);
	err = heap_probes__detach(h->probes);
	h->edge_ns += own_cpu_ns() - before;
	return err;
}

static void begin_slice(struct heap *h)
{
	uint64_t before = own_cpu_ns();
	uint32_t every =
		heap_account__is_settled(&h->account, &h->budget) ? FREES_RARELY : FREES_OFTEN;
	/* perf events take too long to detach */
	bool frees = !uprobes_by_events(h->opts.method) && h->budget.slices % every == 0;
	struct budget_figures f;
	double weight;

	heap_probes__attach(h->probes, frees ? HEAP_PROBES_SLICE_FREES : HEAP_PROBES_SLICE);
	h->edge_ns += own_cpu_ns() - before;
	f = figures(h, false);
	weight = budget__attached(&h->budget, &f);
	probe_heap__enable(h->session, true);
	/* what is counted from here on is read behind this */
	if (weight > 0)
		windows__commit(collect__windows(h->collect), BPFPROF_HEAP, weight);
}

int heap__end_slice(struct heap *h)
{
	enum budget_state was = h->budget.state, now;
	struct budget_figures f;

	if (!h->started || h->paused || was == BUDGET_OFF ||
	    util_monotonic_ns() < h->budget.next_ns)
		return 0;
	/* what it counts and the time that it stands for end together */
	if (was == BUDGET_ON)
		probe_heap__enable(h->session, false);
	f = figures(h, true);
	now = budget__check(&h->budget, &f);
	if (now == was)
		return 0;
	if (!h->sliced)
		log_debug("the heap's probes cost more than they may: they are attached in slices");
	h->sliced = true;
	/* what is still in use is not known any more */
	probe_heap__stop_tracking(h->session);
	h->uncut = true;
	return detach(h);
}

int heap__tick(struct heap *h)
{
	struct budget_figures f;
	int err = heap__end_slice(h);

	/* what a slice has counted is added up before the next one begins */
	if (!err && h->uncut) {
		if (!collect__can_end(h->collect))
			return 0;
		err = collect__end_epoch(h->collect, false);
		h->uncut = false;
	}
	if (err || h->paused || !collect__has_settled(h->collect) ||
	    h->budget.state != BUDGET_OFF || util_monotonic_ns() < h->budget.next_ns)
		return err;
	/* all that was counted has been added up, and nothing of it is known to be in use */
	windows__drop_freed(collect__windows(h->collect), BPFPROF_HEAP);
	f = figures(h, false);
	if (budget__check(&h->budget, &f) == BUDGET_ON)
		begin_slice(h);
	return 0;
}

uint64_t heap__next_ns(const struct heap *h)
{
	/* no slice begins before the last one is added up: capture__fd tells when that can be */
	bool waits =
		h->budget.state == BUDGET_OFF && (h->uncut || !collect__has_settled(h->collect));

	return h->started && !h->paused && !waits ? h->budget.next_ns : UINT64_MAX;
}

/* What was seen since the last end stands for so many times as much. In a pause no probe is attached: what was seen in
 * front of it stands for the time until it began. */
static double end_with(struct heap *h,
		       double (*end)(struct budget *, const struct budget_figures *))
{
	double weight = h->weight;
	struct budget_figures f;

	if (h->paused) {
		h->weight = 1;
		return weight;
	}
	f = figures(h, h->budget.state != BUDGET_OFF);
	return end(&h->budget, &f);
}

int heap__pause(struct heap *h)
{
	if (!h->started || h->paused || h->stopped)
		return 0;
	h->weight = end_with(h, budget__part);
	/* what is in use is not known any more */
	h->paused = h->sliced = true;
	probe_heap__stop_tracking(h->session);
	return detach(h);
}

void heap__resume(struct heap *h)
{
	struct budget_figures f;

	if (!h->paused || h->stopped)
		return;
	h->paused = false;
	heap_probes__attach(h->probes, HEAP_PROBES_SLICE);
	/* what is seen from here on stands for nothing of what there was meanwhile */
	f = figures(h, false);
	budget__resume(&h->budget, &f);
	probe_heap__enable(h->session, true);
}

void heap__end_part(struct heap *h, struct heap_part *ret)
{
	*ret = (struct heap_part){ .weight = end_with(h, budget__part) };
	ret->mark = h->budget.all;
}

void heap__stop(struct heap *h, struct heap_part *ret)
{
	*ret = (struct heap_part){ .weight = end_with(h, budget__stop) };
	ret->mark = h->budget.all;
	(void)detach(h);
	h->stopped = true;
}

void heap__read_live(struct heap *h, struct heap_part *part)
{
	/* what is allocated from here on is the next window's */
	part->read_ns = util_monotonic_ns();
	if (!h->sliced)
		part->err = read_live(h, &part->live, &part->live_cnt);
}

void heap__settle_part(struct heap *h, struct heap_part *part, uint64_t end_ns)
{
	size_t kept = 0;

	/* of the whole machine's, what only those hold that still run counts anyway */
	if (h->opts.all)
		return;
	for (size_t i = 0; i < part->live_cnt; i++) {
		const struct live_entry *l = &part->live[i];

		/* who has allocated since then may be unknown yet */
		if (l->live.time_ns >= end_ns || ran_until(h, l, end_ns))
			part->live[kept++] = *l;
		else
			retire(h, l, part->read_ns);
	}
	part->live_cnt = kept;
}

void heap_part__done(struct heap_part *part)
{
	free(part->live);
	memset(part, 0, sizeof(*part));
}

/* What a window's processes still hold of what they have allocated since then. */
static void hold_live(struct heap *h, struct window *w, const struct heap_part *part,
		      uint64_t since_ns)
{
	struct windows *windows = collect__windows(h->collect);

	for (size_t i = 0; i < part->live_cnt; i++) {
		const struct live_entry *l = &part->live[i];

		if (l->live.time_ns >= since_ns &&
		    l->live.time_ns + h->opts.min_age_ns <= part->read_ns &&
		    (!h->opts.all || runs(h, l)))
			(void)windows__hold(windows, w, &l->live.stack);
		else
			windows__note_live(windows, &l->live.stack);
	}
	windows__drop_freed(windows, BPFPROF_HEAP);
}

void heap__begin_change(struct heap *h, struct window *w, const struct heap_part *part)
{
	for (size_t i = 0; i < part->live_cnt; i++)
		if (!h->opts.all || runs(h, &part->live[i]))
			windows__unhold(collect__windows(h->collect), w, &part->live[i].live.stack);
}

int heap__finish(struct heap *h, struct window *w, const struct budget_mark *from,
		 const struct heap_part *part, uint64_t since_ns, struct window_profile_opts *ret)
{
	if (h->sliced) {
		/* what is in use is not known any more, and heap__tick drops the keys that are kept for it between slices
		 * only: behind a pause there may be none */
		windows__drop_freed(collect__windows(h->collect), BPFPROF_HEAP);
		window__revise(w, BPFPROF_HEAP,
			       budget__revision(&h->budget, from, &part->mark,
						heap_account__factor(&h->account)));
		ret->value_cnt = 2;
		ret->folded_value = 1;
		return 0;
	}
	if (part->err)
		return part->err;
	hold_live(h, w, part, since_ns);
	ret->only_held = h->opts.min_age_ns > 0;
	return 0;
}

void heap__report(struct heap *h, struct heap_report *ret)
{
	const struct heap_targets_missed *missed = heap_targets__missed(h->targets);
	bool library = heap_targets__have_library(h->targets);
	const struct heap_account *a = &h->account;
	struct bpfprof_stats stats = { 0 };
	uint64_t runs;
	double factor;

	/* hits while everything was detached at last */
	if (h->stopped)
		heap_account__add(&h->account, HEAP_ACCOUNT_DETACHED, a->so_far.cpu,
				  heap_probes__most(h->probes));
	(void)epochs__stats(h->session, BPFPROF_HEAP, &stats);
	factor = heap_account__factor(a);
	*ret = (struct heap_report){
		.method = library ? "usdt" : uprobes_method_name(h->opts.method),
		.hits = a->hit_cnt,
		.cost_ns = factor * a->so_far.hits + a->so_far.record,
		.cpu_ns = h->cpu_ns - h->first_cpu_ns,
		.attach_ns = h->attach_ns,
		.attached_ns = h->budget.on_ns,
		.slowdown = 1 / (1 - budget__hit_share(&h->budget, factor)),
		.sliced = h->sliced,
		.rounded = h->rounded,
		.untracked = stats.untracked,
		.unseen = stats.unseen,
		.unreached = missed->unreached,
		.unprobed = missed->unprobed + heap_probes__failed(h->probes),
		.late = missed->late,
		.late_ns = missed->late_ns,
		.shared = heap_probes__shared(h->probes),
		.other_hits = a->other_hits,
		.other_ns = a->so_far.others,
		.sanitizers = heap_probes__sanitizers(h->probes),
		.points = heap_probes__cnt(h->probes),
		.listens = !library && heap_probes__listens(h->probes),
	};
	session__run_time(h->session, "heap_", &ret->bpf_ns, &runs);
}
