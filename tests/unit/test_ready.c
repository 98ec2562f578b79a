// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "record/ready.h"

static void test_descriptor(void **state)
{
	char buf[16] = "";
	int fds[2];

	(void)state;
	assert_int_equal(ready_check(-1), 0);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(ready_check(fds[1]), 0);
	assert_int_equal(fcntl(fds[1], F_GETFD), FD_CLOEXEC);
	ready_tell(fds[1]);
	assert_int_equal(read(fds[0], buf, sizeof(buf)), 6);
	assert_string_equal(buf, "READY\n");
	/* the end of file: it has been closed */
	assert_int_equal(read(fds[0], buf, sizeof(buf)), 0);
	assert_int_equal(ready_check(fds[1]), -EBADF);
	close(fds[0]);
}

/* Binds a socket to that address, and expects the message there. */
static void notified(const struct sockaddr_un *at, socklen_t sz, const char *name)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char buf[64] = "";

	assert_int_equal(bind(fd, (const struct sockaddr *)at, sz), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", name, 1), 0);
	ready_tell(-1);
	assert_int_equal(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), 7);
	assert_string_equal(buf, "READY=1");
	close(fd);
	/* nobody listens any longer, which is no error */
	ready_tell(-1);
	unsetenv("NOTIFY_SOCKET");
}

static void test_notify_socket(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	char folder[] = "/tmp/test_ready.XXXXXX", name[64];
	size_t sz;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(name, sizeof(name), "%s/socket", folder);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", name);
	notified(&at, sizeof(at), name);
	unlink(name);
	rmdir(folder);

	snprintf(name, sizeof(name), "@bpfprof test_ready %d", getpid());
	sz = strlen(name);
	memcpy(at.sun_path, name, sz);
	at.sun_path[0] = 0;
	notified(&at, offsetof(struct sockaddr_un, sun_path) + sz, name);
}

/* Said where this process is watched, and no more often than twice in the time that it has. */
static void test_watchdog(void **state)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	char name[64], pid[16], buf[64] = "";
	size_t sz;

	(void)state;
	snprintf(name, sizeof(name), "@bpfprof test_watchdog %d", getpid());
	sz = strlen(name);
	memcpy(at.sun_path, name, sz);
	at.sun_path[0] = 0;
	assert_int_equal(
		bind(fd, (struct sockaddr *)&at, offsetof(struct sockaddr_un, sun_path) + sz), 0);
	setenv("NOTIFY_SOCKET", name, 1);
	ready_alive(ready_watchdog_ns());
	setenv("WATCHDOG_USEC", "60000000", 1);
	setenv("WATCHDOG_PID", "1", 1);
	ready_alive(ready_watchdog_ns());
	assert_int_equal(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), -1);
	snprintf(pid, sizeof(pid), "%d", getpid());
	setenv("WATCHDOG_PID", pid, 1);
	for (int i = 0; i < 3; i++)
		ready_alive(ready_watchdog_ns());
	assert_int_equal(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), 10);
	assert_string_equal(buf, "WATCHDOG=1");
	assert_int_equal(recv(fd, buf, sizeof(buf), MSG_DONTWAIT), -1);
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_USEC");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_descriptor),
		cmocka_unit_test(test_watchdog),
		cmocka_unit_test(test_notify_socket),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
