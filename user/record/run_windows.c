// SPDX-License-Identifier: BSD-2-Clause
/* When windows end, and that all that have ended are written. */
#include <linux/types.h>

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "capture/collect.h"
#include "capture/windows.h"
#include "heap/heap.h"
#include "options.h"
#include "profile/profile.h"
#include "record/run_parts.h"

/* Windows are as long as they are to be, all together, also if one is late. */
uint64_t run_next_window_ns(const struct run *r)
{
	uint64_t len = r->opts->window_ns;

	return r->armed_ns + ((r->boundary_ns - r->armed_ns) / len + 1) * len;
}

static struct heap_part *part_of(struct run *r, unsigned int number)
{
	return &r->heap_parts[number % CAPTURE_EPOCHS];
}

int run_end_window(struct run *r)
{
	struct heap_part *part = part_of(r, r->current_number);
	uint64_t now = util_monotonic_ns();
	int err;

	/* what a part of the heap's budget has seen is told once */
	if (!collect__can_end(r->collect))
		return -EAGAIN;
	if (r->heap)
		heap__end_part(r->heap, part);
	err = collect__end_epoch(r->collect, true);
	if (err)
		return err;
	if (r->heap)
		heap__read_live(r->heap, part);
	r->boundary_ns = now;
	r->current_number++;
	return 0;
}

static void free_profiles(struct run *r)
{
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		profile__free(r->profiles[i]);
		r->profiles[i] = NULL;
	}
}

/* The files of the first window that is not written, which has ended at to_ns. */
static int write_oldest(struct run *r, uint64_t to_ns)
{
	struct heap_part *part = part_of(r, r->window_number);
	int err = run_write_window(r, part, to_ns);

	free_profiles(r);
	heap_part__done(part);
	return err;
}

/* The first window that has ended. */
static int write_first(struct run *r)
{
	struct windows *windows = collect__windows(r->collect);
	uint64_t to_ns;
	int err = collect__settle_boundary(r->collect, &to_ns);

	if (err)
		return err;
	err = write_oldest(r, to_ns);
	/* what was not written is said to be missing, and the run goes on */
	r->failed |= err != 0;
	if (err == -ENOMEM || err == -EINTR)
		return err;
	windows__close(windows, r->window);
	r->window = windows__open(windows);
	if (!r->window)
		return -errno;
	r->window_from_ns = to_ns;
	r->window_number++;
	return 0;
}

int run_write_windows(struct run *r)
{
	int err = 0;

	while (!err && collect__has_boundary(r->collect))
		err = write_first(r);
	return err;
}

int run_write(struct run *r)
{
	int err = collect__cut(r->collect);

	if (err) {
		log_error("cannot take in what was sampled last: %s", strerror(-err));
		return err;
	}
	if (r->heap)
		heap__read_live(r->heap, part_of(r, r->window_number));
	err = write_oldest(r, r->stopped_ns);
	return err ? err : r->failed ? -EIO : 0;
}
