// SPDX-License-Identifier: BSD-2-Clause
/*
 * kernel/uprobes, uprobes_helpers: processes that attach and detach for us, and are kept waiting. The kernel holds back
 * every fork of the machine meanwhile, so none of it is asked here: what they do is another thing. The sources are
 * included for that.
 */
#include "kernel/uprobes.c"
#include "kernel/uprobes_helpers.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define HANGS_NS (60 * NSEC_PER_SEC)

static int gate[2]; /* a byte lets one through */
static int made;    /* what an errand has opened */
static _Atomic int began;

/* Makes one descriptor, when it is let. */
static int wait_and_open(struct uprobes *u)
{
	char byte;

	began++;
	(void)raw_call(SYS_read, gate[0], (long)&byte, 1, 0, 0);
	made = (int)raw_call(SYS_dup, gate[0], 0, 0, 0, 0);
	u->fds[u->fd_cnt++] = made;
	return 0;
}

static void let_through(void)
{
	assert_int_equal(write(gate[1], "", 1), 1);
}

static struct uprobes *new_set(void)
{
	struct uprobes *u = calloc(1, sizeof(*u));

	assert_non_null(u);
	u->method = UPROBES_MULTI;
	u->prog_fd = fcntl(gate[0], F_DUPFD_CLOEXEC, 0);
	u->file_fd = fcntl(gate[0], F_DUPFD_CLOEXEC, 0);
	u->fds = calloc(1, sizeof(*u->fds));
	assert_non_null(u->fds);
	u->cnt = 1;
	return u;
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void wait_until_not_late(void)
{
	uint64_t end_ns = util_monotonic_ns() + HANGS_NS;

	while (uprobes_are_late()) {
		assert_true(util_monotonic_ns() < end_ns);
		usleep(1000);
	}
}

/* Whoever comes in time is of use, and leaves nothing behind. */
static void in_time(void **state)
{
	struct uprobes *u = new_set();

	(void)state;
	began = 0;
	knobs.tight_patience = false;
	let_through();
	assert_int_equal(apart(wait_and_open, &u), 0);
	assert_non_null(u);
	assert_int_equal(u->fd_cnt, 1);
	assert_true(is_open(u->fds[0]));
	assert_false(uprobes_are_late());
	uprobes__detach(&u, 1);
	assert_null(u);
	assert_false(is_open(made));
	assert_false(uprobes_are_late());
}

/* Whoever comes late closes what it has made; until then nobody else is sent, and others can be detached. */
static void late_to_attach(void **state)
{
	struct uprobes *u = new_set(), *next = new_set(), *other = new_set();
	int prog_fd = u->prog_fd, next_fd = next->prog_fd, other_fd;

	(void)state;
	began = 0;
	made = -1;
	knobs.tight_patience = true;
	other_fd = other->fds[other->fd_cnt++] = fcntl(gate[0], F_DUPFD_CLOEXEC, 0);
	assert_int_equal(apart(wait_and_open, &u), -ETIMEDOUT);
	assert_null(u);
	assert_true(uprobes_are_late());
	assert_int_equal(apart(wait_and_open, &next), -ETIMEDOUT);
	assert_null(next);
	assert_false(is_open(next_fd));
	assert_int_equal(began, 1);
	assert_true(is_open(prog_fd));
	uprobes__detach(&other, 1);
	assert_null(other);
	assert_false(is_open(other_fd));
	let_through();
	wait_until_not_late();
	assert_true(made >= 0);
	assert_false(is_open(made));
	assert_false(is_open(prog_fd));
	in_time(state);
}

static int freed;

static void note_free(struct uprobes_helpers *h)
{
	freed++;
	free(h);
}

/* Several processes of which one does not end. */
static void late_to_detach(void **state)
{
	struct uprobes_helpers *h = calloc(1, sizeof(*h));
	pid_t lasting;

	(void)state;
	assert_non_null(h);
	freed = 0;
	knobs.tight_patience = true;
	h->free = note_free;
	h->cnt = 3;
	for (size_t i = 0; i < h->cnt; i++) {
		h->pids[i] = fork();
		if (!h->pids[i] && i == 1)
			for (;;)
				pause();
		if (!h->pids[i])
			_exit(0);
		assert_true(h->pids[i] > 0);
	}
	lasting = h->pids[1];
	assert_false(uprobes_helpers_await(h, 0));
	assert_true(uprobes_are_late());
	assert_int_equal(freed, 0);
	assert_int_equal(kill(lasting, SIGKILL), 0);
	wait_until_not_late();
	assert_int_equal(freed, 1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	in_time(state);
}

/* Perf events take longer the more there are, but nobody waits without an end: not for as many as there may be. */
static void patience_has_an_end(void **state)
{
	struct uprobes event = { .method = UPROBES_EVENT, .fd_cnt = MAX_POINTS };
	struct uprobes multi = { .method = UPROBES_MULTI, .fd_cnt = 1 };
	struct uprobes *sets[] = { &event, &multi, NULL, &event };

	(void)state;
	knobs.tight_patience = false;
	assert_true(patience_ns(0) == PATIENCE_NS);
	assert_true(patience_ns(4) == PATIENCE_NS + 4 * PATIENCE_EVENT_NS);
	assert_true(patience_ns(MAX_POINTS) == PATIENCE_MAX_NS);
	assert_true(patience_ns(count_events(sets, ARRAY_SIZE(sets))) == PATIENCE_MAX_NS);
	assert_true(patience_ns(count_events(sets + 1, 2)) == PATIENCE_NS);
	event.fd_cnt = 2;
	assert_true(patience_ns(count_events(sets, ARRAY_SIZE(sets))) == patience_ns(4));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_time),
		cmocka_unit_test(late_to_attach),
		cmocka_unit_test(late_to_detach),
		cmocka_unit_test(patience_has_an_end),
	};

	if (pipe2(gate, O_CLOEXEC))
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
