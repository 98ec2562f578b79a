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
#include <signal.h>
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
static pid_t courier; /* what stands for it */
static int starts;
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
	if (sock >= 0)
		close(sock);
	sock = fcntl(in, F_DUPFD_CLOEXEC, 0);
	courier = pid;
	starts++;
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
	static int folders;
	char text[512] = "", folder[16];
	int buffer = 200000;

	(void)state;
	snprintf(folder, sizeof(folder), "spool%d", folders++);
	if (spool__open(toolrun_path(folder), SPOOL_MIN_SZ, &spool, text, sizeof(text)) ||
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
	sock = -1;
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

/* The messages of push__handle and push__status go to a file meanwhile. */
static int hide_messages(void)
{
	const char *path = toolrun_path("said");
	int err = dup(STDERR_FILENO), to = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(err >= 0 && to >= 0);
	dup2(to, STDERR_FILENO);
	close(to);
	return err;
}

/* Lines that were said; the text is in said. */
static int show_messages(int err)
{
	int lines = 0;
	size_t sz;

	dup2(err, STDERR_FILENO);
	close(err);
	free(said);
	said = toolrun_read(toolrun_path("said"), &sz);
	for (size_t i = 0; i < sz; i++)
		lines += said[i] == '\n';
	return lines;
}

/* Until there is no more. How often that takes; *ret_lines: on standard error. */
static int handle_all(int *ret_lines)
{
	int err = hide_messages(), times = 0;

	for (; has_more(); times++)
		push__handle(push);
	*ret_lines = show_messages(err);
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

static void add_records(int cnt)
{
	while (cnt--)
		assert_int_equal(spool__add(spool, util_realtime_ns(), "a.cpu.pb.gz", write_record,
					    "record"),
				 0);
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
	add_records(3);
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

/* What an outage costs is told while it goes on: what the spool had no room for is not pending, and counts once. */
static void test_dropped(void **state)
{
	uint32_t generation = told_generation();
	struct spool_stats there;
	struct push_stats stats;
	uint64_t dropped, number;

	(void)state;
	add_records(SPOOL_MIN_SZ / 4096 + 50);
	spool__stats(spool, &there);
	assert_true(there.dropped > 0);
	assert_true(push__stats(push, "s", &stats));
	assert_int_equal(stats.dropped, there.dropped);
	assert_int_equal(stats.pending, there.records);
	dropped = stats.dropped;
	/* it is back */
	ask(generation, 0);
	number = given();
	assert_int_equal(number, dropped + 1);
	end(generation, number, WIRE_DELIVERED);
	assert_true(push__stats(push, "s", &stats));
	assert_int_equal(stats.dropped, dropped);
	assert_int_equal(stats.pending, there.records - 1);
	/* and away again, until nothing is there of what was */
	add_records(2 * SPOOL_MIN_SZ / 4096);
	spool__stats(spool, &there);
	assert_true(push__stats(push, "s", &stats));
	assert_int_equal(stats.dropped + 1, there.dropped);
	assert_int_equal(stats.pending, there.records);
	assert_false(push__is_done(push));
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

/* What the collector has to tell every 10 s, so often. Lines that were said. */
static int tell_statuses(int times, bool heard)
{
	static struct wire w;
	int err = hide_messages();

	for (int i = 0; i < times; i++) {
		push__status(push, "1", 1);
		if (heard) {
			wire_begin(&w, WIRE_HEARD);
			assert_int_equal(
				fd_message_send(sock, &w, WIRE_HEAD_SZ, NULL, 0, MSG_DONTWAIT), 0);
		}
		ahead_ns += 10 * NSEC_PER_SEC;
	}
	return show_messages(err);
}

static bool is_alive(pid_t pid)
{
	return !kill(pid, 0);
}

/* A courier that says nothing more is replaced, which is said once. */
static void test_hang(void **state)
{
	struct pollfd fd = { .fd = push__fd(push), .events = POLLIN };
	pid_t first = courier;

	(void)state;
	starts = 0;
	assert_int_equal(tell_statuses(30, true), 0);
	assert_int_equal(tell_statuses(6, false), 0);
	/* anything that it says counts, also if we are so late to read it */
	assert_int_equal(say(told_generation() - 1), 0);
	assert_int_equal(tell_statuses(5, false), 0);
	/* we could do nothing for long, and have told it just once: it is given time */
	assert_int_equal(tell_statuses(1, true), 0);
	assert_int_equal(tell_statuses(1, false), 0);
	ahead_ns += 3600 * NSEC_PER_SEC;
	assert_int_equal(tell_statuses(1, true), 0);
	/* stopped, it does not go by a signal that it may ignore */
	assert_int_equal(kill(first, SIGSTOP), 0);
	assert_int_equal(tell_statuses(10, false), 1);
	assert_non_null(strstr(
		said, "the courier has not been heard of for a minute: it is started again"));
	assert_false(is_alive(first));
	assert_int_equal(starts, 0);
	while (!starts) {
		assert_true(poll(&fd, 1, -1) == 1);
		push__handle(push);
	}
	assert_true(courier != first && is_alive(courier));
	assert_int_equal(tell_statuses(30, true), 0);
	assert_int_equal(starts, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_flood, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_reload, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_stop, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_dropped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_hang, set_up, tear_down),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
