// SPDX-License-Identifier: BSD-2-Clause
#include "serve/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc_status.h"
#include "base/util.h"

#define MAX_CMDLINE (4U << 20) /* the kernel's own limit is a quarter of the stack's */

int process_cmdline(pid_t pid, char **ret, size_t *ret_sz)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	err = util_read_file(path, MAX_CMDLINE, ret, ret_sz);
	if (!err && *ret_sz && !(*ret)[*ret_sz - 1])
		--*ret_sz;
	return err;
}

int process_threads(pid_t pid, uint64_t *ret)
{
	bool found;
	char *text;

	if (proc_status_read(PROC_STATUS_DIR, (uint32_t)pid, &text))
		return -ESRCH;
	*ret = proc_status_number(text, "Threads");
	found = *ret && proc_status_number(text, "Tgid") == (uint64_t)pid;
	free(text);
	return found ? 0 : -ESRCH;
}
