/* SPDX-License-Identifier: BSD-2-Clause */
/* agent/push: what a courier does to the collector that has been taken over. What it does as it should is
 * tested with stores, in tests/e2e/test_push. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent/destination.h"
#include "agent/push.h"
#include "base/util.h"
#include "courier/wire.h"
#include "helper/fd_message.h"
#include "helper/helper.h"
#include "spool/spool.h"
#include "toolrun.h"

static struct destination destination = { .name = "s",
					  .kind = "pyroscope",
					  .url = "http://localhost" };
static struct spool *spool;
static struct push *push;
static int sock = -1; /* the courier's end */
static uint64_t ahead_ns;
static char *said;

uint64_t __real_util_monotonic_ns(void);
uint64_t __wrap_util_monotonic_ns(void);
bool __wrap_util_find_part(const char *name, char *path, size_t path_sz);
pid_t __wrap_helper_start(enum sandbox kind, const char *program, const char *const *env, int in,
			  int out);

uint64_t __wrap_util_monotonic_ns(void)
{
	return __real_util_monotonic_ns() + ahead_ns;
}

bool __wrap_util_find_part(const char *name, char *path, size_t path_sz)
{
	snprintf(path, path_sz, "/%s", name);
	return true;
}

/* The courier is this process; one that waits for its end stands for it. */
pid_t __wrap_helper_start(enum sandbox kind, const char *program, const char *const *env, int in,
			  int out)
{
	pid_t pid = fork();

	(void)kind, (void)program, (void)env, (void)out;
	if (!pid) {
		pause();
		_exit(0);
	}
	sock = fcntl(in, F_DUPFD_CLOEXEC, 0);
	return sock < 0 ? -errno : pid;
}

/* What the courier is told next; NULL: nothing. */
static const struct wire *told(void)
{
	static struct wire w;
	int fds[FD_MESSAGE_MAX];
	size_t cnt;
	ssize_t n =
		fd_message_receive(sock, &w, sizeof(w), fds, ARRAY_SIZE(fds), &cnt, MSG_DONTWAIT);

	while (n > 0 && cnt)
		close(fds[--cnt]);
	return n > 0 ? &w : NULL;
}

/* All that it is told: how often of a destination, and its generation. */
static int told_destinations(uint32_t *ret_generation)
{
	const struct wire *w;
	int n = 0;

	while ((w = told()))
		if (w->what == WIRE_DESTINATION) {
			*ret_generation = w->generation;
			n++;
		}
	return n;
}

static uint32_t told_generation(void)
{
	uint32_t generation = 0;

	told_destinations(&generation);
	return generation;
}

static int set_up(void **state)
{
	char text[512] = "";
	int buffer = 200000;

	(void)state;
	if (spool__open(toolrun_path("spool"), SPOOL_MIN_SZ, &spool, text, sizeof(text)) ||
	    push__new(spool, &destination, 1, "node", -1, &push, text, sizeof(text)))
		fail_msg("%s", text);
	if (setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof(buffer)))
		fail_msg("%s", strerror(errno));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	push__free(push);
	spool__close(spool);
	close(sock);
	free(said);
	said = NULL;
	return 0;
}

static int say(uint32_t generation)
{
	static struct wire w;

	wire_begin(&w, WIRE_SAID);
	w.generation = generation;
	w.value = 1;
	strcpy(w.text, "a line");
	return fd_message_send(sock, &w, WIRE_HEAD_SZ + strlen(w.text) + 1, NULL, 0, MSG_DONTWAIT);
}

static bool has_more(void)
{
	struct pollfd fd = { .fd = push__fd(push), .events = POLLIN };

	return poll(&fd, 1, 0) == 1;
}

/* As many as the socket holds. */
static int say_all(uint32_t generation)
{
	int n = 0, err;

	while (!(err = say(generation)))
		n++;
	assert_int_equal(err, -EAGAIN);
	return n;
}

/* Until there is no more. How often that takes; *ret_lines: on standard error. */
static int handle_all(int *ret_lines)
{
	const char *path = toolrun_path("said");
	int err = dup(STDERR_FILENO), to = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int times = 0;
	size_t sz;

	assert_true(err >= 0 && to >= 0);
	dup2(to, STDERR_FILENO);
	for (; has_more(); times++)
		push__handle(push);
	dup2(err, STDERR_FILENO);
	close(err);
	close(to);
	free(said);
	said = toolrun_read(path, &sz);
	*ret_lines = 0;
	for (size_t i = 0; i < sz; i++)
		*ret_lines += said[i] == '\n';
	return times;
}

/* However much it says, the collector gets back to its loop, and the log stays small. */
static void test_flood(void **state)
{
	uint32_t generation = told_generation();
	int cnt, lines;
	char want[128];

	(void)state;
	assert_true(!has_more());
	cnt = say_all(generation);
	assert_true(cnt > 256);
	assert_in_range(handle_all(&lines), 2, cnt);
	assert_int_equal(lines, 32);
	ahead_ns += 60 * NSEC_PER_SEC;
	assert_int_equal(say(generation), 0);
	handle_all(&lines);
	snprintf(want, sizeof(want), "bpfprof: push \"s\": %d lines more are left out\n", cnt - 32);
	assert_true(!strncmp(said, want, strlen(want)));
	assert_int_equal(lines, 2);
	/* of a destination that is no more */
	cnt = say_all(generation - 1);
	assert_in_range(handle_all(&lines), 2, cnt);
	assert_int_equal(lines, 0);
}

static int write_record(void *ctx, FILE *f)
{
	return fputs(ctx, f) < 0 ? -EIO : 0;
}

static void ask(uint32_t generation, uint64_t number)
{
	static struct wire w;

	wire_begin(&w, WIRE_NEXT);
	w.generation = generation;
	w.number = number;
	assert_int_equal(fd_message_send(sock, &w, WIRE_HEAD_SZ, NULL, 0, MSG_DONTWAIT), 0);
	push__handle(push);
}

static void end(uint32_t generation, uint64_t number, enum wire_outcome outcome)
{
	static struct wire w;

	wire_begin(&w, WIRE_ENDED);
	w.generation = generation;
	w.number = number;
	w.value = outcome;
	w.reason = outcome == WIRE_DELIVERED ? WIRE_NO_REASON : WIRE_REASON_unavailable;
	assert_int_equal(fd_message_send(sock, &w, WIRE_HEAD_SZ, NULL, 0, MSG_DONTWAIT), 0);
	push__handle(push);
}

/* The number of the record that it is given; 0: there is nothing for it. */
static uint64_t given(void)
{
	const struct wire *w = told();

	assert_non_null(w);
	assert_true(w->what == WIRE_RECORD || w->what == WIRE_NOTHING);
	return w->what == WIRE_RECORD ? w->number : 0;
}

/* At the end what is under way may end, and nothing else is handed out. */
static void test_stop(void **state)
{
	uint32_t generation = told_generation();
	struct push_stats stats;
	uint64_t first, second;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(spool__add(spool, util_realtime_ns(), "a.cpu.pb.gz", write_record,
					    "record"),
				 0);
	ask(generation, 0);
	first = given();
	ask(generation, 0);
	second = given();
	assert_true(first && second > first);
	assert_int_equal(push__under_way(push), 2);
	push__stop(push);
	ask(generation, 0);
	assert_int_equal(given(), 0);
	/* one that is kept is not under way, and not given out again */
	end(generation, first, WIRE_KEPT);
	assert_int_equal(push__under_way(push), 1);
	ask(generation, first);
	assert_int_equal(given(), 0);
	end(generation, second, WIRE_DELIVERED);
	assert_int_equal(push__under_way(push), 0);
	assert_int_equal(push__settled(push), 1);
	assert_false(push__is_done(push));
	assert_true(push__stats(push, "s", &stats));
	assert_int_equal(stats.pending, 2);
	assert_int_equal(stats.failures[WIRE_REASON_unavailable], 1);
	assert_int_equal(stats.outcome[WIRE_DELIVERED], 1);
}

/* What the courier need not know of does not end what it has under way. */
static void test_reload(void **state)
{
	struct destination younger = destination, another = destination;
	uint32_t generation;
	char text[512];

	(void)state;
	assert_int_equal(told_destinations(&generation), 1);
	younger.max_age_ns = 60 * NSEC_PER_SEC;
	assert_int_equal(push__change(push, &younger, 1, text, sizeof(text)), 0);
	assert_int_equal(told_destinations(&generation), 0);
	another.tenant = "another";
	assert_int_equal(push__change(push, &another, 1, text, sizeof(text)), 0);
	assert_int_equal(told_destinations(&generation), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flood, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reload, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stop, set_up, tear_down),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
