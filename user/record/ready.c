/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"

int ready_check(int fd)
{
	return fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) ? -errno : 0;
}

/* name: a path, or with '@' in front one of the abstract namespace (unix(7)). */
static void notify(const char *name, const char *text)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t sz = strlen(name);
	int fd;

	if ((*name != '/' && *name != '@') || sz >= sizeof(to.sun_path)) {
		log_debug("$NOTIFY_SOCKET '%s' is no socket of systemd's", name);
		return;
	}
	memcpy(to.sun_path, name, sz);
	if (*name == '@')
		to.sun_path[0] = 0;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 ||
	    sendto(fd, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT, (struct sockaddr *)&to,
		   offsetof(struct sockaddr_un, sun_path) + sz) < 0)
		log_debug("cannot notify %s: %s", name, strerror(errno));
	if (fd >= 0)
		close(fd);
}

void ready_say(const char *text)
{
	const char *name = getenv("NOTIFY_SOCKET");

	if (name && *name)
		notify(name, text);
}

void ready_tell(int fd)
{
	if (fd >= 0) {
		if (write(fd, "READY\n", 6) != 6)
			log_debug("nobody reads --ready-fd %d: %s", fd, strerror(errno));
		close(fd);
	}
	ready_say("READY=1");
}

uint64_t ready_watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	uint64_t us, who;

	if (!usec || util_parse_u64(usec, 1, UINT64_MAX / 1000, &us))
		return 0;
	if (pid && (util_parse_u64(pid, 1, INT32_MAX, &who) || (pid_t)who != getpid()))
		return 0;
	return us * 1000;
}

void ready_alive(uint64_t watchdog_ns)
{
	static uint64_t next_ns;
	uint64_t now;

	if (!watchdog_ns)
		return;
	now = util_monotonic_ns();
	if (now < next_ns)
		return;
	next_ns = now + watchdog_ns / 2;
	ready_say("WATCHDOG=1");
}
