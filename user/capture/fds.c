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

/* Was it open then, and has it a stack? What was open before the recording began, or was opened unseen,
 * has none; nor has one whose stack was lost: that was counted then. */
static bool counts(const struct bpfprof_fd_open *o, uint64_t ns)
{
	return o->origin == BPFPROF_FD_OPENED && o->time_ns <= ns;
}

int fds_part__hold(const struct fds_part *part, struct windows *windows, struct window *w,
		   uint64_t since_ns, uint64_t to_ns)
{
	for (size_t i = 0; i < part->open_cnt; i++)
		if (counts(&part->open[i], to_ns) && part->open[i].time_ns >= since_ns)
			(void)windows__hold(windows, w, &part->open[i].stack);
		else if (part->open[i].origin == BPFPROF_FD_OPENED)
			windows__note_live(windows, &part->open[i].stack);
	if (!part->err)
		windows__drop_freed(windows, BPFPROF_FDS);
	return part->err;
}

void fds_part__begin_change(const struct fds_part *part, struct windows *windows, struct window *w,
			    uint64_t from_ns)
{
	for (size_t i = 0; i < part->open_cnt; i++)
		if (counts(&part->open[i], from_ns))
			windows__unhold(windows, w, &part->open[i].stack);
}

void fds_part__done(struct fds_part *part)
{
	free(part->open);
	*part = (struct fds_part){ 0 };
}
