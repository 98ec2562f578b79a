/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/ask.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "spool/spool.h"

#define POLL_MS 20
#define MAX_TRIES 3 /* agents that come and go */

/* In *ret_fd the process that has the spool, with ASK_DONE. */
static int open_holder(const struct spool *s, int *ret_fd)
{
	for (int i = 0; i < MAX_TRIES; i++) {
		pid_t pid = spool__holder(s);
		int fd;

		if (pid <= 0)
			return pid ? ASK_UNSEEN : ASK_NOBODY;
		fd = util_pidfd_open(pid);
		if (fd < 0 && errno != ESRCH)
			return -errno;
		/* the id may have become another one's before it was opened, but not if the process
		 * that has the spool has it still */
		if (fd >= 0 && spool__holder(s) == pid) {
			*ret_fd = fd;
			return ASK_DONE;
		}
		if (fd >= 0)
			close(fd);
	}
	return ASK_NOBODY;
}

static bool is_there(const struct spool *s, uint64_t since_ns)
{
	struct spool_window w;

	return spool__last_window(s, &w) && w.end_monotonic_ns >= since_ns;
}

static int wait_for_window(const struct spool *s, int pidfd, uint64_t since_ns, uint64_t timeout_ns)
{
	struct pollfd ends = { .fd = pidfd, .events = POLLIN };

	while (!is_there(s, since_ns)) {
		if (util_monotonic_ns() - since_ns >= timeout_ns)
			return ASK_LATE;
		/* its last window is all there, if it had the time for it */
		if (poll(&ends, 1, POLL_MS) > 0)
			return is_there(s, since_ns) ? ASK_DONE : ASK_ENDED;
	}
	return ASK_DONE;
}

int ask_for_window(const struct spool *s, uint64_t timeout_ns)
{
	uint64_t since_ns = util_monotonic_ns();
	int fd = -1, ret = open_holder(s, &fd);

	if (ret == ASK_DONE && syscall(SYS_pidfd_send_signal, fd, ASK_SIGNAL, NULL, 0))
		ret = errno == ESRCH ? ASK_ENDED : -errno;
	if (ret == ASK_DONE)
		ret = wait_for_window(s, fd, since_ns, timeout_ns);
	if (fd >= 0)
		close(fd);
	return ret;
}
