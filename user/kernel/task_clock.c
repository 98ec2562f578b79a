// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/task_clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

int task_clock_open(pid_t pid)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.disabled = 1,
		.inherit = 1,
		.enable_on_exec = 1,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int task_clock_read(int fd, uint64_t *ret_ns)
{
	ssize_t sz = read(fd, ret_ns, sizeof(*ret_ns));

	return sz == sizeof(*ret_ns) ? 0 : sz < 0 ? -errno : -EIO;
}
