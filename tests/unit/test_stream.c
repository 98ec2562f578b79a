/* SPDX-License-Identifier: BSD-2-Clause */
/* target/stream: what is awaited, on a socket that waits for so long by itself. */
#include "target/stream.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct stream here, there;

static int setup(void **state)
{
	struct timeval t = { .tv_usec = 1000 };
	int pair[2];

	(void)state;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) ||
	    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)))
		return -1;
	stream__init(&here, pair[0]);
	stream__init(&there, pair[1]);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	close(here.fd);
	if (there.fd >= 0)
		close(there.fd);
	return 0;
}

static void put(const char *text)
{
	assert_int_equal(stream__put(&there, text, strlen(text)), 0);
	assert_int_equal(stream__flush(&there), 0);
}

static void get(const char *want)
{
	char have[32] = "";

	assert_int_equal(stream__get(&here, have, strlen(want)), 0);
	assert_string_equal(have, want);
}

static void test_await(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(stream__await(&here), -ETIMEDOUT);
	put("first");
	/* not taken by it, however often it is asked */
	for (int i = 0; i < 3; i++)
		assert_int_equal(stream__await(&here), 0);
	get("fir");
	assert_int_equal(stream__await(&here), 0);
	get("st");
	assert_int_equal(stream__await(&here), -ETIMEDOUT);
	put("second");
	get("second");
	close(there.fd);
	there.fd = -1;
	assert_int_equal(stream__await(&here), -EPIPE);
}

static void *put_later(void *ctx)
{
	usleep(20000);
	put(ctx);
	return NULL;
}

/* Who has begun to get something waits on, for longer than the socket does. */
static void test_get_waits(void **state)
{
	char rest[] = "ond";
	pthread_t other;

	(void)state;
	put("sec");
	assert_int_equal(stream__await(&here), 0);
	assert_int_equal(pthread_create(&other, NULL, put_later, rest), 0);
	get("second");
	assert_int_equal(pthread_join(other, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_await, setup, teardown),
		cmocka_unit_test_setup_teardown(test_get_waits, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
