// SPDX-License-Identifier: BSD-2-Clause
#include "bench/strays.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"

#define PATIENCE_MS 200
#define GIVE_UP_MS 5000 /* a kernel without the list, or one in uninterruptible sleep */

int strays_adopt(void)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1) ? -errno : 0;
}

/* Is there no child any more? Takes those that have ended. */
static bool none_left(void)
{
	pid_t pid;

	do {
		pid = waitpid(-1, NULL, WNOHANG);
	} while (pid > 0);
	return pid < 0;
}

/* A helper of a recording, or what is ending: that may take a while. */
static bool ends_by_itself(pid_t pid)
{
	struct stat own, its;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	/* one that is ending has no program any more */
	if (stat(path, &its))
		return true;
	return !stat("/proc/self/exe", &own) && own.st_dev == its.st_dev &&
	       own.st_ino == its.st_ino;
}

/* Those of proc_pid_task(5) that do not end by themselves. */
static size_t kill_children(void)
{
	char path[64], *list, *end;
	size_t sz, cnt = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	if (util_read_file(path, 1 << 20, &list, &sz))
		return 0;
	for (const char *at = list; true; at = end) {
		pid_t pid = (pid_t)strtol(at, &end, 10);

		if (end == at)
			break;
		cnt += pid > 0 && !ends_by_itself(pid) && !kill(pid, SIGKILL);
	}
	free(list);
	return cnt;
}

size_t strays_end(void)
{
	size_t cnt = 0;

	for (int ms = 0; ms < GIVE_UP_MS && !none_left(); ms += 5) {
		/* those that are killed may leave children of their own */
		if (ms >= PATIENCE_MS)
			cnt += kill_children();
		usleep(5000);
	}
	return cnt;
}
