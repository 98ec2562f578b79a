// SPDX-License-Identifier: BSD-2-Clause
#include "serve/process.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/proc_status.h"
#include "base/util.h"
#include "target/proc_text.h"

#define MAX_LISTED_FDS 65536   /* some 10 ms */
#define MAX_CMDLINE (4U << 20) /* the kernel's own limit is a quarter of the stack's */

int process_cmdline(pid_t pid, char **ret, size_t *ret_sz)
{
	char path[64];
	int err;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	err = proc_text_read(path, MAX_CMDLINE, ret, ret_sz);
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

uint64_t process_fds(pid_t pid)
{
	char path[64];
	uint64_t n = 0;
	struct stat st;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	/* 6.2: its size is their number; before, it is 0 */
	if (!stat(path, &st) && st.st_size > 0)
		return (uint64_t)st.st_size;
	dir = opendir(path);
	for (struct dirent *d; dir && n < MAX_LISTED_FDS && (d = readdir(dir));)
		n += d->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}
