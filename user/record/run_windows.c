// SPDX-License-Identifier: BSD-2-Clause
/* One window after the other, and that all that have ended are written. */
#include <linux/types.h>

#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "base/log.h"
#include "capture/capture.h"
#include "profile/profile.h"
#include "record/run_parts.h"

/* To give it back each time would have the next window ask for it again, page by page. */
#define GIVE_BACK_EVERY 6 /* windows */

static void free_profiles(struct run *r)
{
	for (int i = 0; i < RUN_MAX_PROFILES; i++) {
		profile__free(r->profiles[i]);
		r->profiles[i] = NULL;
	}
}

/* The files of the window, which ends here. What was not written is said to be missing, and the run
 * goes on. 0; -errno: it cannot. */
static int write_window(struct run *r, const struct capture_boundary *to)
{
	int err = run_write_window(r, to);

	free_profiles(r);
	r->failed |= err != 0;
	return err == -ENOMEM || err == -EINTR ? err : 0;
}

static int begin_window(struct run *r, const struct capture_boundary *from)
{
	capture__close_window(r->capture, r->window);
	r->window = capture__open_window(r->capture, from);
	r->window_number++;
	return r->window ? 0 : -errno;
}

/* What a window with many stacks has taken lies free between what stays: glibc keeps all of it. */
static void give_back(const struct run *r)
{
	if (r->window_number % GIVE_BACK_EVERY == 0)
		(void)malloc_trim(0);
}

int run_write_next(struct run *r)
{
	struct capture_boundary boundary;
	int err;

	if (!capture__has_boundary(r->capture))
		return 0;
	run_end_progress(r);
	err = capture__settle(r->capture, &boundary);
	if (!err)
		err = write_window(r, &boundary);
	if (!err)
		err = begin_window(r, &boundary);
	capture_boundary__done(&boundary);
	give_back(r);
	return err;
}

int run_write_ended(struct run *r)
{
	int err = capture__complete(r->capture);

	while (!err && capture__has_boundary(r->capture)) {
		err = run_write_next(r);
		if (!err)
			err = capture__complete(r->capture);
	}
	return err;
}

int run_write_last(struct run *r)
{
	struct capture_boundary boundary;
	int err = capture__stop(r->capture, &boundary);

	r->stopped = true;
	run_end_progress(r);
	if (err)
		log_error("cannot take in what was sampled last: %s", strerror(-err));
	else
		run_finish_debuginfod(r);
	if (!err)
		err = write_window(r, &boundary);
	run_forget_debuginfod(r);
	capture_boundary__done(&boundary);
	return err ? err : r->failed ? -EIO : 0;
}
