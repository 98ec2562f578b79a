// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "capture/fds.h"

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

int fds_part__hold(const struct fds_part *part, struct windows *windows, struct window *w,
		   uint64_t to_ns)
{
	for (size_t i = 0; i < part->open_cnt; i++) {
		const struct bpfprof_fd_open *o = &part->open[i];

		/* one whose stack was lost has none: it was counted then */
		if (o->origin == BPFPROF_FD_OPENED && o->time_ns <= to_ns)
			(void)windows__hold(windows, w, &o->stack);
	}
	if (!part->err)
		windows__drop_freed(windows, BPFPROF_FDS);
	return part->err;
}

void fds_part__done(struct fds_part *part)
{
	free(part->open);
	*part = (struct fds_part){ 0 };
}
