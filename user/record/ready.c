/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/ready.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"

int ready_check(int fd)
{
	return fd >= 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) ? -errno : 0;
}

/* name: a path, or with '@' in front one of the abstract namespace (unix(7)). */
static void notify(const char *name)
{
	static const char text[] = "READY=1";
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

void ready_tell(int fd)
{
	const char *name = getenv("NOTIFY_SOCKET");

	if (fd >= 0) {
		if (write(fd, "READY\n", 6) != 6)
			log_debug("nobody reads --ready-fd %d: %s", fd, strerror(errno));
		close(fd);
	}
	if (name && *name)
		notify(name);
}
