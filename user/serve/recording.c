// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "serve/recording.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "capture/capture.h"
#include "courier/serve_wire.h"
#include "custom/custom_wanted.h"
#include "kinds.h"
#include "options.h"
#include "profile/profile.h"
#include "serve/asked.h"
#include "serve/profile_file.h"
#include "serve/symbol_file.h"

#define CUT_AGAIN_NS (NSEC_PER_SEC / 50)

/* Somebody who waits. */
struct waiter {
	struct asked asked;
	struct capture_window *window; /* NULL: it begins at the next boundary */
	bool since_start;	       /* the window is the recording's, and stays */
	uint64_t end_ns;	       /* CLOCK_MONOTONIC, of the window */
};

struct recording {
	struct recording_opts opts;
	struct capture *capture;
	struct capture_window *all; /* since the start; NULL: it does not go on all the time */
	int pidfd;		    /* -1: this kernel has none */
	struct waiter waiters[SERVE_MAX_ASKED];
	size_t waiter_cnt;
	bool cutting;	  /* a boundary was passed, and is not settled */
	uint64_t next_ns; /* not before, to cut again */
};

static uint64_t length_ns(const struct recording *r, const struct asked *a)
{
	if (a->endpoint->at_once)
		return 0;
	if (a->seconds)
		return a->seconds * NSEC_PER_SEC;
	return r->all ? 0 : SERVE_SECONDS * NSEC_PER_SEC;
}

/* ---- begin and end ---- */

static int open_capture(struct recording *r)
{
	static const struct custom_wanted custom = { .all = true };
	const struct options *o = r->opts.opts;
	struct capture_opts c = {
		.pids = &r->opts.pid,
		.pid_cnt = 1,
		.kinds_given = true,
		.frequency = r->opts.frequency,
		.custom = &custom,
		.heap_rate = o->heap_rate,
		.heap_budget = o->heap_budget / 100,
		.wait_budget = o->wait_budget / 100,
		.thread_labels = o->thread_labels,
	};
	int err;

	memcpy(c.kinds, r->opts.kinds, sizeof(c.kinds));
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		c.min_wait_ns[i] = options_min_wait_ns(o, i);
	err = capture__open(&c, &r->capture);
	if (!err && !capture__has_process(r->capture, r->opts.pid))
		err = -ESRCH;
	if (!err && r->opts.always) {
		r->all = capture__open_window(r->capture, NULL);
		if (!r->all) {
			err = -errno;
			log_error("cannot record process %u: %s", r->opts.pid, strerror(-err));
		}
	}
	return err;
}

int recording__new(const struct recording_opts *opts, struct recording **ret)
{
	struct recording *r = calloc(1, sizeof(*r));
	int err = 0;

	*ret = NULL;
	if (!r) {
		log_error("cannot record process %u: %s", opts->pid, strerror(ENOMEM));
		return -ENOMEM;
	}
	r->opts = *opts;
	r->pidfd = util_pidfd_open(opts->pid);
	if (r->pidfd < 0 && errno != ENOSYS)
		err = -ESRCH;
	if (!err)
		err = open_capture(r);
	if (!err && opts->always)
		err = capture__start(r->capture);
	if (err)
		recording__free(r);
	else
		*ret = r;
	return err;
}

static void close_window(struct recording *r, struct waiter *w)
{
	if (!w->since_start)
		capture__close_window(r->capture, w->window);
	w->window = NULL;
}

static void remove_waiter(struct recording *r, size_t i)
{
	close_window(r, &r->waiters[i]);
	memmove(&r->waiters[i], &r->waiters[i + 1], (--r->waiter_cnt - i) * sizeof(r->waiters[0]));
}

void recording__drop_all(struct recording *r)
{
	while (r->waiter_cnt)
		remove_waiter(r, r->waiter_cnt - 1);
}

void recording__free(struct recording *r)
{
	if (!r)
		return;
	recording__drop_all(r);
	if (r->capture)
		capture__close_window(r->capture, r->all);
	capture__close(r->capture);
	if (r->pidfd >= 0)
		close(r->pidfd);
	free(r);
}

/* ---- those who wait ---- */

bool recording__has(const struct recording *r, uint32_t pid, enum bpfprof_kind kind, uint32_t hz)
{
	return pid == r->opts.pid && r->opts.kinds[kind] &&
	       (kind != BPFPROF_CPU || hz == r->opts.frequency);
}

bool recording__is_of(const struct recording *r, uint32_t pid)
{
	return pid == r->opts.pid;
}

int recording__symbols(struct recording *r, const uint64_t *addresses, size_t cnt)
{
	return symbol_file(r->capture, r->opts.pid, addresses, cnt);
}

uint64_t recording__samples(const struct recording *r, enum bpfprof_kind kind)
{
	return capture__recorded(r->capture, kind);
}

void recording__custom(struct recording *r, struct serve_custom *ret, size_t cnt)
{
	size_t sets = capture__custom_cnt(r->capture);
	uint64_t *held = calloc(sets + 1, sizeof(*held));

	if (held && !capture__custom_held(r->capture, held, sets + 1))
		for (size_t i = 1; i <= sets; i++)
			for (size_t j = 0; j < cnt; j++)
				if (!strcmp(ret[j].name,
					    capture__custom_name(r->capture, (uint32_t)i)))
					ret[j].held = held[i];
	free(held);
}

int recording__add(struct recording *r, const struct asked *a)
{
	struct waiter *w = &r->waiters[r->waiter_cnt];
	bool started = capture__start_ns(r->capture);
	int err;

	if (r->waiter_cnt == ARRAY_SIZE(r->waiters))
		return -EBUSY;
	*w = (struct waiter){ .asked = *a, .since_start = r->all && !a->seconds };
	if (w->since_start)
		w->window = r->all;
	else if (!started)
		w->window = capture__open_window(r->capture, NULL);
	if (!started && !w->window)
		return -ENOMEM;
	r->waiter_cnt++;
	err = started ? 0 : capture__start(r->capture);
	if (w->window)
		w->end_ns = util_monotonic_ns() + length_ns(r, a);
	if (err)
		remove_waiter(r, r->waiter_cnt - 1);
	return err;
}

bool recording__drop(struct recording *r, uint64_t number)
{
	for (size_t i = 0; i < r->waiter_cnt; i++) {
		if (r->waiters[i].asked.number != number)
			continue;
		remove_waiter(r, i);
		return true;
	}
	return false;
}

static void fail(struct recording *r, const struct asked *a, int err)
{
	log_error("cannot make a profile of process %u: %s", r->opts.pid, strerror(-err));
	r->opts.answer(r->opts.ctx, a, 500, -1,
		       a->before ? "failed to compute delta" : "failed to collect profile");
}

static void answer(struct recording *r, size_t i, const struct capture_boundary *to)
{
	struct waiter *w = &r->waiters[i];
	const struct asked *a = &w->asked;
	struct profile *p = NULL;
	int fd = profile_make(r->opts.opts, a, r->capture, w->window, w->since_start, to, &p);

	if (!fd && a->endpoint->at_once && a->seconds && !a->before) {
		r->opts.first(r->opts.ctx, a, p);
		remove_waiter(r, i);
		return;
	}
	if (!fd)
		fd = profile_file(a, p);
	if (fd < 0) {
		fail(r, a, fd);
	} else {
		r->opts.answer(r->opts.ctx, a, 200, fd, NULL);
		close(fd);
	}
	profile__free(p);
	remove_waiter(r, i);
}

static void refuse_all(struct recording *r, unsigned int status, const char *text)
{
	while (r->waiter_cnt) {
		r->opts.answer(r->opts.ctx, &r->waiters[0].asked, status, -1, text);
		remove_waiter(r, 0);
	}
}

/* ---- boundaries ---- */

/* Windows end that were to end by then, and those begin that wait for a boundary. */
static void take_boundary(struct recording *r, const struct capture_boundary *b)
{
	for (size_t i = 0; i < r->waiter_cnt;) {
		struct waiter *w = &r->waiters[i];

		if (w->window && w->end_ns <= b->ns) {
			answer(r, i, b);
			continue;
		}
		if (!w->window) {
			/* what fails is tried again at the next one */
			w->window = r->all ? capture__open_change(r->capture, b) :
					     capture__open_new(r->capture, b);
			w->end_ns = b->ns + length_ns(r, &w->asked);
		}
		i++;
	}
}

static int settle(struct recording *r)
{
	struct capture_boundary b;
	int err = 0;

	while (!err && capture__has_boundary(r->capture)) {
		r->cutting = false;
		err = capture__settle(r->capture, &b);
		if (!err)
			take_boundary(r, &b);
		capture_boundary__done(&b);
	}
	return err;
}

/* The recording ends, and all windows with it: those who still wait have what there is. */
static int stop(struct recording *r)
{
	struct capture_boundary b;
	int err = capture__complete(r->capture);

	while (!err && capture__has_boundary(r->capture)) {
		err = settle(r);
		if (!err)
			err = capture__complete(r->capture);
	}
	if (err)
		return err;
	err = capture__stop(r->capture, &b);
	for (size_t i = 0; !err && i < r->waiter_cnt;) {
		if (r->waiters[i].window)
			answer(r, i, &b);
		else
			i++;
	}
	capture_boundary__done(&b);
	return err;
}

static int cut(struct recording *r)
{
	int err = capture__cut(r->capture);

	r->cutting = !err;
	if (err != -EAGAIN)
		return err;
	r->next_ns = util_monotonic_ns() + CUT_AGAIN_NS;
	return 0;
}

/* When somebody wants a boundary. */
static uint64_t wanted_ns(const struct recording *r)
{
	uint64_t ns = UINT64_MAX;

	for (size_t i = 0; i < r->waiter_cnt; i++)
		ns = MIN(ns, r->waiters[i].window ? r->waiters[i].end_ns : 0);
	return ns;
}

static bool has_ended(const struct recording *r)
{
	struct pollfd p = { .fd = r->pidfd, .events = POLLIN };

	return r->pidfd >= 0 && poll(&p, 1, 0) > 0;
}

/* ---- at work ---- */

void recording__fds(const struct recording *r, int ret[static 2])
{
	ret[0] = capture__fd(r->capture);
	ret[1] = r->pidfd;
}

uint64_t recording__next_ns(const struct recording *r)
{
	uint64_t ns = capture__next_ns(r->capture);

	return r->cutting ? ns : MIN(ns, MAX(wanted_ns(r), r->next_ns));
}

/* Is there one waiter, whose window is over? Then all of it may end. */
static bool is_last(const struct recording *r, uint64_t now)
{
	return !r->all && r->waiter_cnt == 1 && r->waiters[0].window && wanted_ns(r) <= now;
}

/* 0; -ESHUTDOWN: all is done. */
static int advance(struct recording *r)
{
	uint64_t now;
	int err = capture__poll(r->capture);

	if (!err)
		err = settle(r);
	if (err)
		return err;
	now = util_monotonic_ns();
	if (has_ended(r) || is_last(r, now))
		return stop(r) ?: -ESHUTDOWN;
	if (!r->cutting && wanted_ns(r) <= now && r->next_ns <= now)
		return cut(r);
	return 0;
}

bool recording__poll(struct recording *r)
{
	int err = r->all || r->waiter_cnt ? advance(r) : -ESHUTDOWN;

	if (!err)
		return r->all || r->waiter_cnt;
	if (err != -ESHUTDOWN)
		log_error("the recording of process %u failed: %s", r->opts.pid, strerror(-err));
	refuse_all(r, err == -ESHUTDOWN ? 404 : 500,
		   err == -ESHUTDOWN ? "the process has ended" : "failed to collect profile");
	return false;
}

void recording__meanwhile(struct recording *r)
{
	capture__meanwhile(r->capture);
}
