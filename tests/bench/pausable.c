// SPDX-License-Identifier: BSD-2-Clause
/*
 * bpfprof, of which all that it attaches can be detached and attached again while it runs: so what
 * that costs is measured in turns of less than a second, in which a machine that others use as
 * well, and a load, change less than from one run to the next. A line of its input asks for it,
 * "off" or "on"; a line of its output, the same, says that it is done.
 *
 * Where the heap's probes are attached in slices, the time until the next one stands still while
 * they are off.
 *
 * Linked with -Wl,--wrap (ld(1)) for what it takes the place of.
 */
#include <linux/types.h>

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "heap/budget.h"
#include "heap/heap.h"
#include "heap/heap_probes.h"
#include "kernel/probe_waits.h"
#include "kernel/session.h"
#include "options.h"
#include "record/run.h"
#include "capture/capture_parts.h"

int __real_session__arm(struct session *s, char *err, size_t err_sz);
int __wrap_session__arm(struct session *s, char *err, size_t err_sz);
void __real_capture_waits_tick(struct capture *c);
void __wrap_capture_waits_tick(struct capture *c);
int __real_heap__tick(struct heap *h);
int __wrap_heap__tick(struct heap *h);
int __real_heap__end_slice(struct heap *h);
int __wrap_heap__end_slice(struct heap *h);
uint64_t __real_heap__next_ns(const struct heap *h);
uint64_t __wrap_heap__next_ns(const struct heap *h);
struct heap_probes *__real_heap_probes__new(enum uprobe_method method, bool usdt,
					    struct session *session, struct objects *objects);
struct heap_probes *__wrap_heap_probes__new(enum uprobe_method method, bool usdt,
					    struct session *session, struct objects *objects);

static bool off, want_off, had_waits;
static struct heap_probes *probes;
static uint64_t left_ns; /* from when it was turned off to the heap's next tick */
static uint64_t held_ns; /* the heap's next tick is not before */

/* ---- what is asked for too often while it is off ---- */

/* Called some ten times a second, lest a CPU goes and comes back. */
int __wrap_session__arm(struct session *s, char *err, size_t err_sz)
{
	return off ? 0 : __real_session__arm(s, err, err_sz);
}

struct heap_probes *__wrap_heap_probes__new(enum uprobe_method method, bool usdt,
					    struct session *session, struct objects *objects)
{
	probes = __real_heap_probes__new(method, usdt, session, objects);
	return probes;
}

uint64_t __wrap_heap__next_ns(const struct heap *h)
{
	return off ? UINT64_MAX : MAX(held_ns, __real_heap__next_ns(h));
}

int __wrap_heap__tick(struct heap *h)
{
	return off || util_monotonic_ns() < held_ns ? 0 : __real_heap__tick(h);
}

int __wrap_heap__end_slice(struct heap *h)
{
	return off || util_monotonic_ns() < held_ns ? 0 : __real_heap__end_slice(h);
}

/* ---- turns ---- */

static bool is_sliced(const struct capture *c)
{
	struct heap_report report;

	heap__report(c->heap, &report);
	return report.sliced;
}

static bool is_always_attached(const struct capture *c)
{
	return c->heap && !is_sliced(c);
}

/* Gaps are longer. */
static bool in_slice(const struct capture *c)
{
	return c->heap && is_sliced(c) &&
	       __real_heap__next_ns(c->heap) < util_monotonic_ns() + BUDGET_SLICE_NS + 1000000;
}

static int turn_off(struct capture *c)
{
	off = true;
	session__disarm(c->session);
	had_waits = c->waits != NULL;
	probe_waits__free(c->waits);
	c->waits = NULL;
	if (is_always_attached(c))
		return heap_probes__detach(probes);
	left_ns = c->heap ? __real_heap__next_ns(c->heap) - util_monotonic_ns() : 0;
	return 0;
}

static int turn_on(struct capture *c)
{
	char text[512];

	off = false;
	if (is_always_attached(c))
		heap_probes__attach(probes, HEAP_PROBES_ALWAYS);
	else
		held_ns = util_monotonic_ns() + left_ns;
	if (__real_session__arm(c->session, text, sizeof(text)))
		return -EIO;
	if (!had_waits)
		return 0;
	c->waits = probe_waits__new(c->session);
	return c->waits ? probe_waits__start(c->waits, util_monotonic_ns()) : -errno;
}

static bool is_asked(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void answer(int err, const char *what)
{
	printf("%s\n", err ? strerror(-err) : what);
	fflush(stdout);
}

void __wrap_capture_waits_tick(struct capture *c)
{
	char line[8] = "";

	if (is_asked() && read(STDIN_FILENO, line, sizeof(line) - 1) > 0) {
		want_off = !strcmp(line, "off\n");
		if (!want_off)
			answer(off ? turn_on(c) : 0, "on");
	}
	if (want_off && !in_slice(c)) {
		want_off = false;
		answer(off ? 0 : turn_off(c), "off");
	}
	__real_capture_waits_tick(c);
}

int main(int argc, char **argv)
{
	struct options opts;
	char err[512];
	int status;

	if (options_parse(argc, argv, &opts, err, sizeof(err))) {
		fprintf(stderr, "%s\n", err);
		return 2;
	}
	log_set_level(opts.log_level);
	status = run_record(&opts);
	options_done(&opts);
	return status;
}
