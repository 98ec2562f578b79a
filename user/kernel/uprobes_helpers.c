// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/uprobes_helpers.h"

#include <poll.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/raw_call.h"
#include "base/util.h"
#include "kernel/uprobes.h"

#define PATIENCE_TIGHT_NS (NSEC_PER_SEC / 2)
#define PATIENCE_NS (10 * NSEC_PER_SEC)
#define PATIENCE_EVENT_NS (NSEC_PER_SEC / 4) /* more, for each perf event */
#define PATIENCE_MAX_NS (60 * NSEC_PER_SEC)  /* in all */
#define TICK_MS 5			     /* where the kernel cannot tell when a process ends */

/* Who is killed as a group, as a shell's job is, is killed without the processes that let go of its
 * probes. */
void uprobes_helper_begins(void)
{
	(void)raw_call(SYS_setpgid, 0, 0, 0, 0, 0);
}

/* Those that uprobes_are_late tells of. */
static struct uprobes_helpers *left_behind;

static bool have_ended(struct uprobes_helpers *h)
{
	bool all = true;

	for (size_t i = 0; i < h->cnt; i++) {
		if (h->pids[i] > 0 && waitpid(h->pids[i], NULL, WNOHANG))
			h->pids[i] = 0;
		all &= h->pids[i] <= 0;
	}
	return all;
}

bool uprobes_are_late(void)
{
	struct uprobes_helpers **at = &left_behind;

	while (*at) {
		struct uprobes_helpers *h = *at;

		if (!have_ended(h)) {
			at = &h->next;
			continue;
		}
		*at = h->next;
		h->free(h);
	}
	return left_behind;
}

/* Until one of them has ended, or for so long. */
static void wait_for_one(const struct uprobes_helpers *h, uint64_t ns)
{
	struct pollfd p = { .fd = -1, .events = POLLIN };
	int ms = (int)(ns / 1000000 + 1);

	for (size_t i = 0; p.fd < 0 && i < h->cnt; i++)
		if (h->pids[i] > 0)
			p.fd = util_pidfd_open(h->pids[i]);
	(void)poll(&p, 1, p.fd < 0 ? MIN(ms, TICK_MS) : ms);
	if (p.fd >= 0)
		close(p.fd);
}

static uint64_t patience_ns(size_t event_cnt)
{
	return knobs.tight_patience ?
		       PATIENCE_TIGHT_NS :
		       MIN(PATIENCE_NS + event_cnt * PATIENCE_EVENT_NS, PATIENCE_MAX_NS);
}

bool uprobes_helpers_await(struct uprobes_helpers *h, size_t event_cnt)
{
	uint64_t deadline_ns = util_monotonic_ns(), now;

	if (!uprobes_are_late())
		deadline_ns += patience_ns(event_cnt);
	while (!have_ended(h)) {
		now = util_monotonic_ns();
		if (now >= deadline_ns) {
			h->next = left_behind;
			left_behind = h;
			return false;
		}
		wait_for_one(h, deadline_ns - now);
	}
	return true;
}
