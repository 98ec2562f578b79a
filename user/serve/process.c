// SPDX-License-Identifier: BSD-2-Clause
#include "serve/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define MAX_CMDLINE (4U << 20) /* the kernel's own limit is a quarter of the stack's */
#define MAX_STATUS 65536

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
	char path[64], *buf, *tgid, *threads;
	size_t sz;
	int err = -ESRCH;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	if (util_read_file(path, MAX_STATUS, &buf, &sz))
		return -ESRCH;
	/* the name in front has its newlines escaped: proc_pid_status(5) */
	tgid = strstr(buf, "\nTgid:");
	threads = strstr(buf, "\nThreads:");
	if (tgid && threads && atoi(tgid + 6) == pid) {
		*ret = strtoull(threads + 9, NULL, 10);
		err = 0;
	}
	free(buf);
	return err;
}
