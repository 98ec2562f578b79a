/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of agent/ask, and of those who look at a spool (spool/spool.h): they find who has it and change
 * nothing; the agent is asked for the end of its window, and no other process ever is.
 */
#include "agent/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "spool/spool.h"

#define LONG_NS (60 * NSEC_PER_SEC)
#define TIME_NS (1764154444ULL * NSEC_PER_SEC) /* 2025-11-26T10:54:04Z */

static char base[64], folder[128], text[512];

/* ---- agents ---- */

enum manner {
	ANSWERS,
	ENDS,	   /* when it is asked, without another word */
	ENDS_WELL, /* with its last window */
	LATE_LAST, /* the window that it tells first had ended before it was asked */
	SAYS_NOTHING,
	IS_OLD, /* has the folder, as versions did that took no such signal: it would end them */
};

static int put(void *ctx, FILE *f)
{
	return fputs(ctx, f) < 0 ? -EIO : 0;
}

static void tell(struct spool *s, uint64_t end_ns)
{
	struct spool_window w = { end_ns, TIME_NS };

	if (spool__add(s, TIME_NS, "x", put, "record"))
		_exit(3);
	spool__tell_window(s, &w);
}

static void be_agent(enum manner manner, int ready)
{
	struct spool *s;
	sigset_t set;
	int sig, lock;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&set);
	sigaddset(&set, ASK_SIGNAL);
	if (manner == IS_OLD) {
		lock = open(folder, O_RDONLY | O_DIRECTORY);
		lock = openat(lock, ".lock", O_RDWR | O_CREAT, 0600);
		if (flock(lock, LOCK_EX | LOCK_NB))
			_exit(2);
	} else {
		sigprocmask(SIG_BLOCK, &set, NULL);
		if (spool__open(folder, SPOOL_MIN_SZ, &s, text, sizeof(text)))
			_exit(2);
		/* one that was there before */
		tell(s, util_monotonic_ns());
	}
	(void)!write(ready, "r", 1);
	while (true) {
		if (manner == IS_OLD || sigwait(&set, &sig))
			pause();
		else if (manner == ANSWERS || manner == ENDS_WELL)
			tell(s, util_monotonic_ns());
		else if (manner == LATE_LAST)
			tell(s, 1);
		if (manner == ENDS || manner == ENDS_WELL)
			_exit(0);
	}
}

static pid_t start_agent(enum manner manner)
{
	char byte = 0;
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		be_agent(manner, fds[1]);
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	close(fds[0]);
	return pid;
}

static void end_agent(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static struct spool *looked(void)
{
	struct spool *s;

	assert_int_equal(spool__look(folder, &s, text, sizeof(text)), 0);
	return s;
}

static size_t listed(struct spool *s)
{
	struct spool_stats stats;

	assert_int_equal(spool__list(s), 0);
	spool__stats(s, &stats);
	return stats.records;
}

/* ---- who has it ---- */

static void nobody_has_it(void **state)
{
	struct spool_window w;
	struct spool *s;
	char path[256];

	(void)state;
	/* nobody ever had */
	assert_int_equal(mkdir(folder, 0700), 0);
	s = looked();
	assert_int_equal(spool__holder(s), 0);
	assert_int_equal(ask_for_window(s, LONG_NS), ASK_NOBODY);
	assert_false(spool__last_window(s, &w));
	spool__close(s);
	snprintf(path, sizeof(path), "%s/.lock", folder);
	assert_int_equal(access(path, F_OK), -1);
	/* somebody had, and was killed */
	end_agent(start_agent(ANSWERS));
	s = looked();
	assert_int_equal(spool__holder(s), 0);
	assert_int_equal(ask_for_window(s, LONG_NS), ASK_NOBODY);
	assert_true(spool__last_window(s, &w));
	assert_int_equal(w.end_realtime_ns, TIME_NS);
	assert_int_equal(listed(s), 1);
	spool__close(s);
}

static void the_agent_answers(void **state)
{
	pid_t pid = start_agent(ANSWERS);
	struct spool *s = looked();
	struct spool_window w;

	(void)state;
	assert_int_equal(spool__holder(s), pid);
	assert_int_equal(listed(s), 1);
	for (size_t i = 2; i < 6; i++) {
		uint64_t begin_ns = util_monotonic_ns();

		assert_int_equal(ask_for_window(s, LONG_NS), ASK_DONE);
		assert_int_equal(listed(s), i);
		assert_true(spool__last_window(s, &w));
		assert_in_range(w.end_monotonic_ns, begin_ns, util_monotonic_ns());
	}
	end_agent(pid);
	assert_int_equal(spool__holder(s), 0);
	spool__close(s);
}

static void the_agent_ends(void **state)
{
	pid_t pid = start_agent(ENDS);
	struct spool *s = looked();

	(void)state;
	assert_int_equal(ask_for_window(s, LONG_NS), ASK_ENDED);
	end_agent(pid);
	spool__close(s);
	pid = start_agent(ENDS_WELL);
	s = looked();
	assert_int_equal(ask_for_window(s, LONG_NS), ASK_DONE);
	end_agent(pid);
	spool__close(s);
}

static void the_agent_is_late(void **state)
{
	static const enum manner manners[] = { SAYS_NOTHING, LATE_LAST };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(manners); i++) {
		pid_t pid = start_agent(manners[i]);
		struct spool *s = looked();

		assert_int_equal(ask_for_window(s, NSEC_PER_SEC / 5), ASK_LATE);
		end_agent(pid);
		spool__close(s);
	}
}

/* What it would end is not asked. */
static void others_are_left_alone(void **state)
{
	struct spool *s;
	pid_t pid;

	(void)state;
	assert_int_equal(mkdir(folder, 0700), 0);
	pid = start_agent(IS_OLD);
	s = looked();
	assert_int_equal(ask_for_window(s, LONG_NS), ASK_NOBODY);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	end_agent(pid);
	spool__close(s);
}

/* From within a pid namespace, of one without. */
static void out_of_sight(void **state)
{
	pid_t agent = start_agent(ANSWERS), child = fork(), inner;
	int status;

	(void)state;
	assert_true(child >= 0);
	if (!child) {
		struct spool *s;

		if (unshare(CLONE_NEWPID))
			_exit(100);
		inner = fork();
		if (!inner) {
			if (spool__look(folder, &s, text, sizeof(text)))
				_exit(101);
			_exit(spool__holder(s) == -1 ? ask_for_window(s, LONG_NS) : 102);
		}
		if (waitpid(inner, &status, 0) != inner || !WIFEXITED(status))
			_exit(103);
		_exit(WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	end_agent(agent);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 100)
		skip(); /* needs root */
	assert_int_equal(WEXITSTATUS(status), ASK_UNSEEN);
}

/* ---- what is told ---- */

static void plant(const char *name, const char *what)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(what, f);
	fclose(f);
}

static void windows_may_be_damaged(void **state)
{
	static const char *const bad[] = {
		"",
		"\n",
		"00000000000000000001 00000000000000000002",
		"00000000000000000001 00000000000000000002x",
		"00000000000000000001x00000000000000000002\n",
		"0000000000000000000x 00000000000000000002\n",
		"-0000000000000000001 00000000000000000002\n",
		"00000000000000000000 00000000000000000002\n",
		"00000000000000000001 99999999999999999999\n",
		"00000000000000000001 00000000000000000000\n",
	};
	struct spool_window w = { 5, UINT64_C(1764154444123456789) };
	struct spool *s;

	(void)state;
	assert_int_equal(mkdir(folder, 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		plant(".lock", bad[i]);
		s = looked();
		assert_false(spool__last_window(s, &w));
		spool__close(s);
	}
	plant(".lock", "00000000000000000007 00000000000000000009\nand more");
	s = looked();
	assert_true(spool__last_window(s, &w));
	assert_int_equal(w.end_monotonic_ns, 7);
	assert_int_equal(w.end_realtime_ns, 9);
	spool__close(s);
	/* it is another one's, which the next one does not tell */
	assert_int_equal(spool__open(folder, SPOOL_MIN_SZ, &s, text, sizeof(text)), 0);
	assert_false(spool__last_window(s, &w));
	for (uint64_t i = 1; i < UINT64_C(1) << 62; i *= 3) {
		struct spool_window got, told = { i, i + 1 };

		spool__tell_window(s, &told);
		assert_true(spool__last_window(s, &got));
		assert_memory_equal(&got, &told, sizeof(got));
	}
	spool__close(s);
}

/* ---- to look changes nothing ---- */

static int refused(const char *path)
{
	struct spool *s;
	int err;

	*text = '\0';
	err = spool__look(path, &s, text, sizeof(text));
	assert_null(s);
	assert_true(*text && !strchr(text, '\n'));
	return err;
}

static void looking_changes_nothing(void **state)
{
	uint64_t number, time_ns;
	struct spool *mine, *s;
	char path[256];
	struct stat st;

	(void)state;
	assert_int_equal(refused(folder), -ENOENT);
	assert_int_equal(access(folder, F_OK), -1);
	assert_int_equal(spool__open(folder, SPOOL_MIN_SZ, &mine, text, sizeof(text)), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(spool__add(mine, TIME_NS, "x", put, "record"), 0);
	plant(".0000000000000004.tmp", "being written");
	s = looked();
	assert_int_equal(listed(s), 3);
	snprintf(path, sizeof(path), "%s/.0000000000000004.tmp", folder);
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(path), 0);
	/* what comes and goes is seen in the next list */
	assert_int_equal(spool__add(mine, TIME_NS, "x", put, "record"), 0);
	snprintf(path, sizeof(path), "%s/0000000000000002.20251126T105404Z.x", folder);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(spool__open_record(s, 2), -ENOENT);
	assert_false(spool__find(s, 4, &number, &time_ns));
	assert_int_equal(listed(s), 3);
	assert_true(spool__find(s, 2, &number, &time_ns));
	assert_int_equal(number, 3);
	assert_true(spool__find(s, 4, &number, &time_ns));
	spool__close(s);
	spool__close(mine);
	/* as for those who have it: it is nobody else's */
	assert_int_equal(chmod(folder, 0770), 0);
	assert_int_equal(refused(folder), -EPERM);
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0770);
	assert_int_equal(chmod(folder, 0700), 0);
	snprintf(path, sizeof(path), "%s/link", base);
	assert_int_equal(symlink("spool", path), 0);
	assert_int_equal(refused(path), -ENOTDIR);
}

static int setup(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/test_ask.XXXXXX");
	snprintf(folder, sizeof(folder), "%s/spool", mkdtemp(base));
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_has_it),	      TEST(the_agent_answers),	     TEST(the_agent_ends),
		TEST(the_agent_is_late),      TEST(others_are_left_alone),   TEST(out_of_sight),
		TEST(windows_may_be_damaged), TEST(looking_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
