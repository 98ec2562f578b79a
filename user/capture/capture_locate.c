// SPDX-License-Identifier: BSD-2-Clause
/* What is at addresses, without a sample there. */
#include <linux/types.h>

#include <errno.h>

#include "capture/capture_parts.h"
#include "capture/window.h"
#include "capture/windows.h"
#include "target/procs.h"

int capture__locate(struct capture *c, uint32_t pid, const uint64_t *addresses, size_t cnt,
		    struct capture_profile *ret)
{
	const struct window_profile_opts opts = { .period = 1, .value_cnt = 1 };
	struct windows *windows = collect__windows(c->collect);
	uint32_t proc = procs__find_live(c->procs, pid);
	struct window *w;
	int err = 0;

	*ret = (struct capture_profile){ 0 };
	if (proc == PROCS_NONE)
		return -ESRCH;
	w = windows__of_addresses(windows, proc, addresses, cnt);
	if (!w)
		return -errno;
	ret->profile = window__profile(w, BPFPROF_THREADS, &opts, &ret->sources);
	if (!ret->profile)
		err = -errno;
	windows__close(windows, w);
	return err;
}
