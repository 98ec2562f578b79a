/* SPDX-License-Identifier: BSD-2-Clause */
/* fd_message: no more bytes and descriptors than there is room for, and none is left open. */
#include "helper/fd_message.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/util.h"

#define MANY 16
#define MAX_FDS 3 /* that a receiver has room for */

static int pair[2], null_fd;

static int setup(void **state)
{
	(void)state;
	null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return null_fd < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair);
}

static int teardown(void **state)
{
	(void)state;
	return close(pair[0]) || close(pair[1]) || close(null_fd);
}

/* The next descriptor that would be given: what was left open takes it. */
static int next_fd(void)
{
	int fd = dup(null_fd);

	assert_true(fd >= 0);
	close(fd);
	return fd;
}

/* As somebody sends who does not keep to that: cnt descriptors a control message. */
static void send_any(const char *data, size_t sz, size_t cnt, size_t messages)
{
	char control[2 * CMSG_SPACE(MANY * sizeof(int))] = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = sz };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control,
			      .msg_controllen = messages * CMSG_SPACE(cnt * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	assert_true(cnt <= MANY && messages <= 2);
	for (size_t m = 0; m < messages; m++, c = CMSG_NXTHDR(&msg, c)) {
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(cnt * sizeof(int));
		for (size_t i = 0; i < cnt; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int), &null_fd, sizeof(int));
	}
	assert_int_equal(sendmsg(pair[1], &msg, 0), sz);
}

/* What is received; behind the room for descriptors nothing is written. */
static ssize_t receive(char *data, size_t sz, size_t *ret_cnt)
{
	int fds[MAX_FDS + MANY];
	ssize_t n;

	memset(fds, 0x55, sizeof(fds));
	n = fd_message_receive(pair[0], data, sz, fds, MAX_FDS, ret_cnt, MSG_DONTWAIT);
	assert_true(*ret_cnt <= MAX_FDS);
	for (size_t i = MAX_FDS; i < ARRAY_SIZE(fds); i++)
		assert_int_equal(fds[i], 0x55555555);
	for (size_t i = 0; i < *ret_cnt; i++) {
		assert_int_equal(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
		close(fds[i]);
	}
	return n;
}

static void test_fits(void **state)
{
	int fds[MAX_FDS] = { null_fd, null_fd, null_fd }, before = next_fd();
	char data[4];
	size_t got;

	(void)state;
	for (size_t cnt = 0; cnt <= MAX_FDS; cnt++) {
		assert_int_equal(fd_message_send(pair[1], "abc", 4, fds, cnt, 0), 0);
		memset(data, 0, sizeof(data));
		assert_int_equal(receive(data, sizeof(data), &got), 4);
		assert_string_equal(data, "abc");
		assert_int_equal(got, cnt);
	}
	assert_int_equal(receive(data, sizeof(data), &got), -EAGAIN);
	assert_int_equal(got, 0);
	assert_int_equal(next_fd(), before);
}

/* One more fits into the control buffer, which is rounded up; of further ones the kernel cuts. */
static void test_too_many(void **state)
{
	int before = next_fd();
	char data[1];
	size_t got;

	(void)state;
	for (size_t cnt = MAX_FDS + 1; cnt <= MANY; cnt++) {
		send_any("", 1, cnt, 1);
		assert_int_equal(receive(data, sizeof(data), &got), -EPROTO);
		assert_int_equal(got, 0);
		assert_int_equal(next_fd(), before);
	}
	/* the kernel makes one of two */
	send_any("", 1, 2, 2);
	assert_int_equal(receive(data, sizeof(data), &got), -EPROTO);
	assert_int_equal(next_fd(), before);
	/* and goes on with the next one */
	send_any("", 1, 1, 1);
	assert_int_equal(receive(data, sizeof(data), &got), 1);
	assert_int_equal(got, 1);
}

static void test_too_long(void **state)
{
	int before = next_fd();
	char data[4] = "xyz";
	size_t got;

	(void)state;
	send_any("abc", 4, 2, 1);
	assert_int_equal(receive(data, 3, &got), -EPROTO);
	assert_int_equal(got, 0);
	assert_int_equal(data[3], 0);
	assert_int_equal(next_fd(), before);
}

static void test_end(void **state)
{
	char data[1];
	size_t got;

	(void)state;
	assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
	assert_int_equal(receive(data, sizeof(data), &got), 0);
	assert_int_equal(got, 0);
	assert_int_equal(fd_message_send(pair[1], "", 1, NULL, 0, 0), -EPIPE);
}

static void *read_all(void *messages)
{
	const size_t *cnt = messages;
	char data[4096];
	size_t got;

	for (size_t i = 0; i < *cnt; i++)
		if (fd_message_receive(pair[0], data, sizeof(data), NULL, 0, &got, 0) !=
			    sizeof(data) ||
		    memcmp(data, &i, sizeof(i)) != 0)
			return messages;
	return NULL;
}

/* The socket is full: what is sent then arrives behind the others once they are read, and is refused if
 * nobody does. */
static void test_waits(void **state)
{
	char data[4096] = { 0 };
	size_t cnt = 0, all;
	pthread_t thread;
	void *bad;
	int err;

	(void)state;
	while (!(err = fd_message_send(pair[1], data, sizeof(data), NULL, 0, MSG_DONTWAIT)))
		memcpy(data, &(size_t){ ++cnt }, sizeof(cnt));
	assert_int_equal(err, -EAGAIN);
	assert_true(cnt > 0);
	assert_int_equal(fd_message_send_within(pair[1], data, sizeof(data), NULL, 0, 1), -EAGAIN);
	all = 2 * cnt;
	assert_int_equal(pthread_create(&thread, NULL, read_all, &all), 0);
	for (; cnt < all; cnt++) {
		memcpy(data, &cnt, sizeof(cnt));
		assert_int_equal(
			fd_message_send_within(pair[1], data, sizeof(data), NULL, 0, 60000), 0);
	}
	assert_int_equal(pthread_join(thread, &bad), 0);
	assert_null(bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_fits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_too_long, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waits, setup, teardown),
		cmocka_unit_test_setup_teardown(test_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
