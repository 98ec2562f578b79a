// SPDX-License-Identifier: BSD-2-Clause
/* Which processes are bpfprof's own, this one and those that it has started, and what they take. */
#include <linux/types.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/proc_status.h"
#include "base/util.h"
#include "record/run_parts.h"

ssize_t run_children(pid_t ret[RUN_MAX_CHILDREN])
{
	char path[64], *buf, *at, *end;
	ssize_t cnt = 0;
	size_t sz;
	int err;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	err = util_read_file(path, 65536, &buf, &sz);
	if (err)
		return err;
	for (at = buf; cnt < RUN_MAX_CHILDREN; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		ret[cnt++] = (pid_t)pid;
	}
	free(buf);
	return cnt;
}

static uint64_t usage_ns(int who)
{
	struct rusage u;

	if (getrusage(who, &u))
		return 0;
	return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

uint64_t run_own_ns(void)
{
	return usage_ns(RUSAGE_SELF);
}

static uint64_t process_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

uint64_t run_processes_ns(const pid_t *children, size_t cnt)
{
	uint64_t sum = run_own_ns() + usage_ns(RUSAGE_CHILDREN);

	for (size_t i = 0; i < cnt; i++)
		sum += process_ns(children[i]);
	return sum;
}

uint64_t run_besides_ns(pid_t command)
{
	pid_t children[RUN_MAX_CHILDREN];
	ssize_t cnt = run_children(children);
	uint64_t sum = run_own_ns();

	for (ssize_t i = 0; i < cnt; i++)
		if (children[i] != command)
			sum += process_ns(children[i]);
	return sum;
}

uint64_t run_memory_of(pid_t pid)
{
	uint64_t kib;
	char *text;

	if (proc_status_read(PROC_STATUS_DIR, (uint32_t)pid, &text))
		return 0;
	kib = proc_status_number(text, "RssAnon") + proc_status_number(text, "RssShmem");
	free(text);
	return kib << 10;
}

static pid_t parent_of(int64_t pid)
{
	pid_t parent;
	char *text;

	if (proc_status_read(PROC_STATUS_DIR, (uint32_t)pid, &text))
		return 0;
	parent = (pid_t)proc_status_number(text, "PPid");
	free(text);
	return parent;
}

bool run_is_own(void *ctx, int64_t pid, const char *comm)
{
	struct run_own *own = &((struct run *)ctx)->own;

	if (pid == getpid())
		return true;
	/* Nearly all others are told by their names. What we start has ours, then that of the link that it
	 * executes (helper/helper.h), then one of its own. */
	if (strncmp(comm, "bpfprof", 7) && strcmp(comm, "exe"))
		return false;
	if (!own->asked)
		own->cnt = run_children(own->children);
	own->asked = true;
	/* without CONFIG_PROC_CHILDREN (proc_pid_task(5)) */
	if (own->cnt < 0)
		return pid > 0 && parent_of(pid) == getpid();
	for (ssize_t i = 0; i < own->cnt; i++)
		if (own->children[i] == pid)
			return true;
	return false;
}

void run_forget_own(struct run *r)
{
	r->own.asked = false;
}
