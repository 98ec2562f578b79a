// SPDX-License-Identifier: BSD-2-Clause
/* A capture at work: what is due is done, boundaries are passed, profiles are made of windows. */
#include <linux/types.h>

#include "capture/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/util.h"
#include "capture/capture_parts.h"
#include "capture/window.h"
#include "capture/windows.h"
#include "kernel/epochs.h"
#include "kernel/events.h"
#include "kernel/grace.h"
#include "kernel/probe_fds.h"
#include "kernel/probe_waits.h"
#include "kernel/session.h"
#include "kernel/tables.h"
#include "kinds.h"
#include "profile/profile.h"

/* How often the rings are read, and budgets kept: a process that lived shorter is still known by
 * events. Where there are no budgets, what arrives can lie for longer: to wake up is most of what a
 * tick costs. But a command may end soon, and with it /proc/PID, through which the names of code that it
 * has generated are found (perf_maps.h). */
#define TICK_NS 100000000ULL
#define SLOW_TICK_NS 500000000ULL
#define ARM_NS NSEC_PER_SEC /* how often it is tried to watch what could not be */
#define STALL_US 100000
#define CLOCK_SET_NS 10000000 /* two readings of how far clocks are apart differ by less */
#define PRUNE_FDS_NS (10 * NSEC_PER_SEC)
#define POLLS 4 /* at a time, at most */

struct capture_window {
	struct window *window;
	uint64_t start_ns; /* 0: since the start */
	int64_t shift_ns;  /* of a later one: how far CLOCK_REALTIME was ahead then */
	uint64_t held_ns;  /* it has what custom profiles held at this boundary; 0: at none */
	uint64_t since_ns; /* it has what is held of what came since; 0: of all */
	uint64_t events_lost, not_followed;
	struct budget_mark heap; /* where it begins in the heap's budget */
};

const bool *capture__kinds(const struct capture *c)
{
	return c->kinds;
}

uint64_t capture__start_ns(const struct capture *c)
{
	return c->armed_ns;
}

struct objects *capture__objects(const struct capture *c)
{
	return c->objects;
}

int capture__fd(const struct capture *c)
{
	return c->epoll_fd;
}

/* ---- what is due ---- */

/* Where children are followed, they come and go. */
static void prune_fds(struct capture *c)
{
	uint64_t now = util_monotonic_ns();

	if (!c->kinds[BPFPROF_FDS] || !c->opts.follow || now < c->fds_prune_ns)
		return;
	c->fds_prune_ns = now + PRUNE_FDS_NS;
	probe_fds__prune(c->session);
}

static uint64_t tick_length(const struct capture *c)
{
	return c->heap || c->custom || c->waits || c->opts.command ? TICK_NS : SLOW_TICK_NS;
}

int capture_start_ticks(struct capture *c)
{
	struct itimerspec tick = { .it_interval.tv_nsec = (long)tick_length(c) };

	c->tick_ns = util_monotonic_ns() + tick_length(c);
	tick.it_value.tv_sec = c->tick_ns / NSEC_PER_SEC;
	tick.it_value.tv_nsec = c->tick_ns % NSEC_PER_SEC;
	return timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &tick, NULL) ? -errno : 0;
}

/* Watches CPUs that have come, and tries again those that could not be watched. */
static void follow_cpus(struct capture *c)
{
	uint64_t now = util_monotonic_ns();
	char text[512];

	if (!session__cpus_changed(c->session) && now < c->next_arm_ns)
		return;
	c->next_arm_ns = now + ARM_NS;
	if (session__arm(c->session, text, sizeof(text)))
		log_debug("%s", text);
	(void)events__sync_cpus(c->events, session__cpus_gone(c->session));
}

/* Returns whether there was something to do. */
static bool tick(struct capture *c)
{
	uint64_t expirations, now = util_monotonic_ns();

	if (now < c->tick_ns ||
	    read(c->timer_fd, &expirations, sizeof(expirations)) != sizeof(expirations))
		return false;
	c->late_ns = MAX(c->late_ns, now - MIN(now, c->tick_ns));
	c->tick_ns += expirations * tick_length(c);
	follow_cpus(c);
	prune_fds(c);
	capture_waits_tick(c);
	return true;
}

/* When the next boundary is due: windows are as long as they are to be, all together, also if one
 * is late. */
static uint64_t next_boundary_ns(const struct capture *c)
{
	uint64_t len = c->opts.window_ns, from = c->armed_ns, ns;

	if (!len)
		return UINT64_MAX;
	if (c->opts.windows_by_clock)
		from = c->boundary_ns -
		       (c->boundary_ns + c->shift_ns - c->opts.window_offset_ns) % len;
	ns = from + ((c->boundary_ns - from) / len + 1) * len;
	return c->opts.duration_ns && ns >= c->armed_ns + c->opts.duration_ns ? UINT64_MAX : ns;
}

static bool boundary_is_due(const struct capture *c)
{
	return util_monotonic_ns() >= next_boundary_ns(c) && collect__can_end(c->collect);
}

uint64_t capture__next_ns(const struct capture *c)
{
	uint64_t ns = next_boundary_ns(c);

	if (collect__is_behind(c->collect))
		return 0;
	/* What ends an epoch makes capture__fd readable, unless whoever waits for another grace period has
	 * read that, too. */
	if (collect__is_ending(c->collect))
		ns = epochs__has_ended(c->session, false) ? 0 : UINT64_MAX;
	return c->heap ? MIN(ns, heap__next_ns(c->heap)) : ns;
}

/* What threads are doing at a boundary: as a profile of its own; last: and where waits are in
 * progress, which belong to the window in which they end. */
static int take_snapshot(struct capture *c, bool last)
{
	const struct capture_opts *o = &c->opts;
	struct snapshot_opts s = {
		.stacks = c->stack_copies,
		.threads = c->kinds[BPFPROF_THREADS],
		.block = last && c->kinds[BPFPROF_BLOCK],
		.offcpu = last && c->kinds[BPFPROF_OFFCPU],
		.user_only = o->user_only,
		.kernel_only = o->kernel_only,
		.min_wait_ns = { o->min_wait_ns[BPFPROF_BLOCK], o->min_wait_ns[BPFPROF_OFFCPU] },
		.waits = last ? c->waits : NULL,
		.stopped_ns = last ? c->stopped_ns : util_monotonic_ns(),
	};

	if (!s.threads && !s.block && !s.offcpu)
		return 0;
	return snapshot_take(&s, c->session, c->collect, &c->snapshot);
}

/* ---- boundaries ---- */

/* All that was sampled before it has been added up. */
static void note_counters(const struct capture *c, struct capture_boundary *b)
{
	b->events_lost = collect__events_lost(c->collect);
	b->not_followed = session__not_followed(c->session);
}

/* What was sampled before it stands for. */
static void commit(struct capture *c, const struct capture_boundary *b)
{
	struct windows *windows = collect__windows(c->collect);

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (c->kinds[i])
			windows__commit(windows, i, i == BPFPROF_HEAP ? b->heap.weight : 1);
}

static struct capture_boundary *next_boundary(struct capture *c)
{
	return &c->boundaries[(c->boundary_first + c->boundary_cnt) % CAPTURE_EPOCHS];
}

/* Has it been set, or has the machine slept? From here on the times of windows are by the new one.
 * Where it has not, they adjoin to the nanosecond. */
static void look_at_clock(struct capture *c)
{
	int64_t shift_ns = util_realtime_shift_ns(), by_ns = shift_ns - c->shift_ns;

	if (llabs(by_ns) < CLOCK_SET_NS)
		return;
	log_info("the clock has been set by %+.2f s", (double)by_ns / NSEC_PER_SEC);
	c->shift_ns = shift_ns;
}

/* The heap is read before the end of the epoch, and behind it. */
static int pass_boundary(struct capture *c)
{
	struct capture_boundary *b = next_boundary(c);
	int err;

	/* what a part of the heap's budget has seen is told once */
	if (!collect__may_end(c->collect))
		return -EAGAIN;
	look_at_clock(c);
	*b = (struct capture_boundary){ .ns = util_monotonic_ns(),
					.realtime_shift_ns = c->shift_ns };
	if (c->heap)
		heap__end_part(c->heap, &b->heap);
	err = collect__end_epoch(c->collect, true);
	if (err)
		return err;
	c->boundary_ns = b->ns;
	c->boundary_ending = true;
	return 0;
}

/* A boundary waits to be settled once its epoch has ended. */
static void tend_epoch(struct capture *c, bool wait)
{
	int err = collect__tend_epoch(c->collect, wait);

	c->err = c->err ? c->err : err;
	if (c->err || !c->boundary_ending || collect__is_ending(c->collect))
		return;
	if (c->heap)
		heap__read_live(c->heap, &next_boundary(c)->heap);
	if (c->custom)
		custom__read_live(c->custom, &next_boundary(c)->custom);
	if (c->kinds[BPFPROF_FDS])
		fds_part__read(&next_boundary(c)->fds, c->session);
	c->boundary_ending = false;
	c->boundary_cnt++;
}

/* capture__fd becomes readable when the epoch that is ending has ended, and for nothing else that waits
 * for a grace period: that is looked at with the ticks, and until then the descriptor would stay readable. */
static int watch_epoch(struct capture *c)
{
	bool wanted = collect__is_ending(c->collect);
	struct epoll_event ev = { .events = wanted ? EPOLLIN : 0 };

	if (wanted == c->epoch_watched)
		return 0;
	c->epoch_watched = wanted;
	return epoll_ctl(c->epoll_fd, EPOLL_CTL_MOD, grace__fd(session__grace(c->session)), &ev) ?
		       -errno :
		       0;
}

int capture__cut(struct capture *c)
{
	int err = collect__can_end(c->collect) ? take_snapshot(c, false) : -EAGAIN;

	if (!err)
		err = pass_boundary(c);
	return err ? err : watch_epoch(c);
}

bool capture__has_boundary(const struct capture *c)
{
	return c->boundary_cnt;
}

int capture__complete(struct capture *c)
{
	tend_epoch(c, true);
	return c->err;
}

int capture__settle(struct capture *c, struct capture_boundary *ret)
{
	int err;

	*ret = c->boundaries[c->boundary_first];
	c->boundaries[c->boundary_first] = (struct capture_boundary){ 0 };
	c->boundary_first = (c->boundary_first + 1) % CAPTURE_EPOCHS;
	c->boundary_cnt--;
	err = collect__settle_boundary(c->collect, &ret->ns);
	note_counters(c, ret);
	if (!err)
		commit(c, ret);
	if (!err && c->heap)
		heap__settle_part(c->heap, &ret->heap, ret->ns);
	return err;
}

void capture_boundary__done(struct capture_boundary *b)
{
	heap_part__done(&b->heap);
	custom_part__done(&b->custom);
	fds_part__done(&b->fds);
}

/* ---- at work ---- */

void capture__meanwhile(struct capture *c)
{
	collect__spill(c->collect);
	if (!c->tick_ns || c->stopped_ns)
		return;
	(void)tick(c);
	tend_epoch(c, false);
	/* what fails here fails again where it is said */
	if (c->heap)
		(void)heap__end_slice(c->heap);
	/* a snapshot of threads would have to be taken first */
	if (!c->kinds[BPFPROF_THREADS] && boundary_is_due(c) && !pass_boundary(c))
		c->err = c->err ?: watch_epoch(c);
}

/* What the heap needs to be known of what has arrived is known once no boundary waits. */
static bool heap_waits(const struct capture *c)
{
	return c->heap && (c->boundary_cnt || c->boundary_ending);
}

static int tend_heap(struct capture *c)
{
	int err;

	if (!c->heap)
		return 0;
	/* before what takes its time */
	err = heap__end_slice(c->heap);
	if (err || heap_waits(c))
		return err;
	err = heap__update(c->heap);
	return err ? err : heap__tick(c->heap);
}

int capture__poll(struct capture *c)
{
	bool ticked;
	int err = 0;

	if (knobs.tight_time)
		usleep(STALL_US);
	ticked = tick(c);
	if (!ticked)
		follow_cpus(c);
	/* the tables that stacks ask for come first: without them, all are copied */
	for (int i = 0; !err && i < POLLS; i++) {
		err = collect__poll(c->collect);
		if (collect__is_calm(c->collect) || collect__is_behind(c->collect))
			break;
	}
	tend_epoch(c, false);
	if (!err && boundary_is_due(c))
		err = capture__cut(c);
	if (!err)
		err = collect__settle(c->collect);
	if (!err && collect__wants_cut(c->collect) && collect__can_end(c->collect))
		err = collect__end_epoch(c->collect, false);
	if (!err)
		err = tend_heap(c);
	if (!err && c->custom)
		err = custom__update(c->custom);
	/* not between polls, which may take longer here than a process lives */
	if (!err && !heap_waits(c))
		collect__let_go(c->collect);
	if (ticked)
		tables__tend(c->tables);
	if (!err)
		err = watch_epoch(c);
	return err ? err : c->err;
}

int capture__stop(struct capture *c, struct capture_boundary *ret)
{
	int err;

	*ret = (struct capture_boundary){ 0 };
	capture_rate_stop(c);
	capture_waits_tick(c);
	session__set_sampling(c->session, false);
	c->stopped_ns = ret->ns = util_monotonic_ns();
	session__disarm(c->session);
	if (c->waits)
		probe_waits__stop(c->waits, c->stopped_ns);
	if (c->heap)
		heap__stop(c->heap, &ret->heap);
	if (c->custom)
		custom__stop(c->custom);
	/* what is opened from here on is not known */
	if (c->kinds[BPFPROF_FDS]) {
		fds_part__read(&ret->fds, c->session);
		probe_fds__stop(c->session);
	}
	err = take_snapshot(c, true);
	probe_waits__free(c->waits);
	c->waits = NULL;
	if (!err)
		err = collect__cut(c->collect);
	if (!err && c->heap)
		err = heap__look_back(c->heap);
	if (err)
		return err;
	if (c->heap)
		heap__read_live(c->heap, &ret->heap);
	if (c->custom)
		custom__read_live(c->custom, &ret->custom);
	note_counters(c, ret);
	commit(c, ret);
	return 0;
}

/* ---- windows ---- */

struct capture_window *capture__open_window(struct capture *c, const struct capture_boundary *from)
{
	struct capture_window *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->window = windows__open(collect__windows(c->collect));
	if (!w->window) {
		free(w);
		return NULL;
	}
	if (from) {
		w->start_ns = from->ns;
		w->shift_ns = from->realtime_shift_ns;
		w->events_lost = from->events_lost;
		w->not_followed = from->not_followed;
		w->heap = from->heap.mark;
	}
	return w;
}

struct capture_window *capture__open_new(struct capture *c, const struct capture_boundary *from)
{
	struct capture_window *w = capture__open_window(c, from);

	if (!w)
		return NULL;
	w->since_ns = from->ns;
	window__set_since(w->window, from->ns);
	return w;
}

struct capture_window *capture__open_change(struct capture *c, const struct capture_boundary *from)
{
	int err = from->heap.err ?: from->custom.err ?: from->fds.err;
	struct capture_window *w = err ? NULL : capture__open_window(c, from);

	if (err)
		errno = -err;
	if (w && c->heap)
		heap__begin_change(c->heap, w->window, &from->heap);
	if (w && c->custom)
		custom__begin_change(c->custom, w->window, &from->custom);
	if (w)
		fds_part__begin_change(&from->fds, collect__windows(c->collect), w->window,
				       from->ns);
	return w;
}

void capture__close_window(struct capture *c, struct capture_window *w)
{
	if (!w)
		return;
	windows__close(collect__windows(c->collect), w->window);
	free(w);
}

uint64_t capture__window_start_ns(const struct capture *c, const struct capture_window *w)
{
	return w->start_ns ? w->start_ns : c->armed_ns;
}

static int make_profile(const struct capture *c, const struct capture_window *w,
			const struct capture_boundary *to, enum bpfprof_kind kind,
			struct window_profile_opts *opts, struct capture_profile *ret)
{
	struct window_left_out left_out = { .is = c->opts.leave_out, .ctx = c->opts.leave_out_ctx };
	uint64_t start_ns = capture__window_start_ns(c, w);

	opts->left_out = left_out.is ? &left_out : NULL;
	ret->profile = window__profile(w->window, kind, opts, &ret->sources);
	if (!ret->profile)
		return -errno;
	ret->profile->time_ns = (int64_t)start_ns + (w->start_ns ? w->shift_ns : c->start_shift_ns);
	ret->profile->duration_ns = (int64_t)(to->ns - start_ns);
	ret->left_out = left_out.cnt;
	collect__account(w->window, kind, &ret->account);
	ret->account.events_lost = to->events_lost - w->events_lost;
	ret->account.not_followed = to->not_followed - w->not_followed;
	return 0;
}

static struct window_profile_opts profile_opts(const struct capture *c, enum bpfprof_kind kind)
{
	return (struct window_profile_opts){ .period = c->periods[kind],
					     .value_cnt = kinds[kind].value_cnt,
					     .folded_value = kinds[kind].folded_value,
					     .only_held = kinds[kind].only_held };
}

/* Of a window that goes on, since what is held is added to it: to be closed by windows__close. 0 or
 * -errno. */
static int copy_window(const struct capture *c, const struct capture_window *w,
		       struct capture_window *ret)
{
	*ret = *w;
	ret->window = windows__copy(collect__windows(c->collect), w->window);
	return ret->window ? 0 : -errno;
}

int capture__profile_so_far(struct capture *c, struct capture_window *w,
			    const struct capture_boundary *to, enum bpfprof_kind kind,
			    struct capture_profile *ret)
{
	struct capture_window copy;
	int err = copy_window(c, w, &copy);

	if (err)
		return err;
	err = capture__profile(c, &copy, to, kind, ret);
	windows__close(collect__windows(c->collect), copy.window);
	return err;
}

int capture__profile(struct capture *c, struct capture_window *w, const struct capture_boundary *to,
		     enum bpfprof_kind kind, struct capture_profile *ret)
{
	struct window_profile_opts opts = profile_opts(c, kind);
	int err = 0;

	*ret = (struct capture_profile){ 0 };
	if (kind == BPFPROF_HEAP)
		err = heap__finish(c->heap, w->window, &w->heap, &to->heap, w->since_ns, &opts);
	if (kind == BPFPROF_FDS)
		err = c->fds_err ?:
				   fds_part__hold(&to->fds, collect__windows(c->collect), w->window,
						  w->since_ns, to->ns);
	if (!err)
		err = make_profile(c, w, to, kind, &opts, ret);
	if (!err && kind == BPFPROF_FDS) {
		ret->account.open_before = to->fds.before;
		ret->account.open_unknown = to->fds.unknown;
	}
	return err;
}

int capture__custom_profile(struct capture *c, struct capture_window *w,
			    const struct capture_boundary *to, uint32_t number,
			    struct capture_profile *ret)
{
	struct window_profile_opts opts = profile_opts(c, BPFPROF_CUSTOM);
	const struct profile_value_type type = { custom__set_name(c->custom, number), "count" };
	int err = 0;

	*ret = (struct capture_profile){ 0 };
	/* what all of them hold is read at once */
	if (w->held_ns != to->ns)
		err = custom__hold(c->custom, w->window, &to->custom, w->since_ns);
	w->held_ns = to->ns;
	opts.size = number;
	if (!err)
		err = make_profile(c, w, to, BPFPROF_CUSTOM, &opts, ret);
	if (!err && profile__set_types(ret->profile, &type, 1, type)) {
		profile__free(ret->profile);
		free(ret->sources);
		*ret = (struct capture_profile){ 0 };
		err = -ENOMEM;
	}
	return err;
}

int capture__custom_profile_so_far(struct capture *c, struct capture_window *w,
				   const struct capture_boundary *to, uint32_t number,
				   struct capture_profile *ret)
{
	struct capture_window copy;
	int err = copy_window(c, w, &copy);

	if (err)
		return err;
	err = capture__custom_profile(c, &copy, to, number, ret);
	windows__close(collect__windows(c->collect), copy.window);
	return err;
}

size_t capture__custom_cnt(const struct capture *c)
{
	return c->custom ? custom__set_cnt(c->custom) : 0;
}

const char *capture__custom_name(const struct capture *c, uint32_t number)
{
	return custom__set_name(c->custom, number);
}

int capture__custom_held(struct capture *c, uint64_t *ret, size_t cnt)
{
	return custom__held(c->custom, ret, cnt);
}

int capture__name(struct capture *c, struct capture_profile *p, struct symbolize_stats *ret)
{
	int err = symbolize(p->profile, c->objects, c->names, code__perf_maps(c->code), c->ksyms,
			    p->sources, p->profile->mapping_cnt, c->limits.plain_names, ret);

	free(p->sources);
	p->sources = NULL;
	return err;
}

/* ---- what it does without ---- */

void capture__limit(struct capture *c, const struct capture_limits *limits)
{
	int err = 0;

	c->limits = *limits;
	session__limit(c->session, limits->cpu_every, limits->kinds_off);
	if (!c->heap)
		return;
	if (limits->kinds_off & 1U << BPFPROF_HEAP)
		err = heap__pause(c->heap);
	else
		heap__resume(c->heap);
	c->err = c->err ?: err;
}

/* ---- what is known of it ---- */

uint64_t capture__recorded(const struct capture *c, enum bpfprof_kind kind)
{
	struct bpfprof_stats stats;

	return epochs__stats(c->session, kind, &stats) ? 0 : stats.recorded;
}

void capture__stats(struct capture *c, struct capture_stats *ret)
{
	*ret = (struct capture_stats){
		.frequency = c->frequency,
		.late_ns = c->late_ns,
		.snapshot_ns = c->snapshot.ns,
		.threads_at_start = c->threads_at_start,
		.wait_rate_ns = wait_budget__mean_rate(&c->wait_budget),
		.limited_ns = c->wait_budget.limited_ns,
	};
	c->late_ns = 0;
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		ret->wait_cost_ns[i] = (uint64_t)c->wait_costs[i].ns;
	session__run_time(c->session, "", &ret->bpf_ns, &ret->bpf_runs);
	capture_rate_stats(c, ret);
	if (c->heap)
		heap__report(c->heap, &ret->heap);
}

void capture__files_stats(const struct capture *c, struct capture_files_stats *ret)
{
	code__stats(c->code, &ret->code);
	objects__stats(c->objects, &ret->objects);
	perf_maps__stats(code__perf_maps(c->code), &ret->perf_maps);
}

uint64_t capture__readers_peak_rss(const struct capture *c)
{
	return objects__readers_peak_rss(c->objects);
}
