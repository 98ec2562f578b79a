// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "capture/fds.h"

#include <stdbool.h>
#include <stdlib.h>

#include "bpfprof.h"
#include "capture/windows.h"
#include "kernel/probe_fds.h"

void fds_part__read(struct fds_part *part, struct session *s)
{
	part->err = probe_fds__read(s, &part->open, &part->open_cnt);
	for (size_t i = 0; i < part->open_cnt; i++) {
		part->before += part->open[i].origin == BPFPROF_FD_BEFORE;
		part->unknown += part->open[i].origin == BPFPROF_FD_UNKNOWN;
	}
}

/* What was open before the recording began, or was opened unseen, has no stack; nor has one whose stack
 * was lost: that was counted then. */
static bool has_stack(const struct bpfprof_fd_open *o)
{
	return o->origin == BPFPROF_FD_OPENED;
}

int fds_part__hold(const struct fds_part *part, struct windows *windows, struct window *w,
		   uint64_t to_ns)
{
	for (size_t i = 0; i < part->open_cnt; i++)
		if (has_stack(&part->open[i]) && part->open[i].time_ns <= to_ns)
			(void)windows__hold(windows, w, &part->open[i].stack);
	if (!part->err)
		windows__drop_freed(windows, BPFPROF_FDS);
	return part->err;
}

void fds_part__begin_change(const struct fds_part *part, struct windows *windows, struct window *w)
{
	for (size_t i = 0; i < part->open_cnt; i++)
		if (has_stack(&part->open[i]))
			windows__unhold(windows, w, &part->open[i].stack);
}

void fds_part__done(struct fds_part *part)
{
	free(part->open);
	*part = (struct fds_part){ 0 };
}
