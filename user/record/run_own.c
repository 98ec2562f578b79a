// SPDX-License-Identifier: BSD-2-Clause
/* Which processes are bpfprof's own: this one, and those that it has started. */
#include <linux/types.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "record/run_parts.h"

size_t run_children(pid_t ret[RUN_MAX_CHILDREN])
{
	char path[64], *buf, *at, *end;
	size_t cnt = 0, sz;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	if (util_read_file(path, 65536, &buf, &sz))
		return 0;
	for (at = buf; cnt < RUN_MAX_CHILDREN; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		ret[cnt++] = (pid_t)pid;
	}
	free(buf);
	return cnt;
}

bool run_is_own(void *ctx, int64_t pid, const char *comm)
{
	struct run_own *own = &((struct run *)ctx)->own;

	if (pid == getpid())
		return true;
	/* nearly all others are told by their names */
	if (strncmp(comm, "bpfprof-", 8))
		return false;
	if (!own->known)
		own->cnt = run_children(own->children);
	own->known = true;
	for (size_t i = 0; i < own->cnt; i++)
		if (own->children[i] == pid)
			return true;
	return false;
}

void run_forget_own(struct run *r)
{
	r->own.known = false;
}
