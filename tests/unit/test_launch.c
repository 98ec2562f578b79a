// SPDX-License-Identifier: BSD-2-Clause
/* Starting the command: held back until it may go, its end told as a shell tells it, nothing left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/launch.h"
#include "toolrun.h"

#define LONG_S 60 /* what takes so long hangs */

#define ARGV(...) ((char *const[]){ __VA_ARGS__, NULL })

static int open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void wait_end(struct launch *l)
{
	for (int i = 0; i < LONG_S * 200 && !launch_ended(l); i++)
		usleep(5000);
	assert_true(launch_ended(l));
}

/* Until a line of the process's status is so. */
static void wait_status(pid_t pid, const char *line)
{
	bool is = false;

	for (int i = 0; i < LONG_S * 200 && !is; i++) {
		is = toolrun("grep -q '^%s' /proc/%d/status", line, pid);
		if (!is)
			usleep(5000);
	}
	assert_true(is);
}

/* Is there no child any more, neither running nor to be reaped? */
static void no_child_left(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static int run(char *const argv[])
{
	int fds = open_fds();
	struct launch l;

	assert_int_equal(launch_prepare(argv, NULL, &l), 0);
	assert_true(l.pid > 0);
	assert_int_equal(launch_go(&l), 0);
	wait_end(&l);
	launch_done(&l);
	no_child_left();
	assert_int_equal(open_fds(), fds);
	return launch_exit_status(&l);
}

static void test_exit_status(void **state)
{
	(void)state;
	assert_int_equal(run(ARGV("true")), 0);
	assert_int_equal(run(ARGV("false")), 1);
	assert_int_equal(run(ARGV("/bin/sh", "-c", "exit 42")), 42);
	assert_int_equal(run(ARGV("sh", "-c", "exit 255")), 255);
	/* what a shell gives for a signal */
	assert_int_equal(run(ARGV("sh", "-c", "kill -KILL $$")), 128 + SIGKILL);
	assert_int_equal(run(ARGV("sh", "-c", "kill -TERM $$")), 128 + SIGTERM);
	assert_int_equal(run(ARGV("sh", "-c", "ulimit -c 0; kill -SEGV $$")), 128 + SIGSEGV);
}

static void test_arguments(void **state)
{
	(void)state;
	assert_int_equal(run(ARGV("sh", "-c",
				  "test $# = 3 && test \"$1\" = 'a b' && test -z \"$2\" && "
				  "test \"$3\" = --pid",
				  "sh", "a b", "", "--pid")),
			 0);
}

static void test_exec_fails(void **state)
{
	int fds = open_fds();
	struct launch l;

	(void)state;
	assert_int_equal(launch_prepare(ARGV("/nonexistent/program"), NULL, &l), 0);
	assert_int_equal(launch_go(&l), -ENOENT);
	launch_done(&l);
	assert_int_equal(launch_prepare(ARGV("no-such-program-anywhere"), NULL, &l), 0);
	assert_int_equal(launch_go(&l), -ENOENT);
	launch_done(&l);
	assert_int_equal(launch_prepare(ARGV("/"), NULL, &l), 0);
	assert_int_equal(launch_go(&l), -EACCES);
	launch_done(&l);
	assert_int_equal(launch_prepare(ARGV(""), NULL, &l), 0);
	assert_int_equal(launch_go(&l), -ENOENT);
	launch_done(&l);
	no_child_left();
	assert_int_equal(open_fds(), fds);
}

/* It does nothing before it is let go, and is known by its final number. */
static void test_held_back(void **state)
{
	struct launch l;
	char cmd[256], pid[16];
	size_t sz;
	char *got;

	(void)state;
	snprintf(cmd, sizeof(cmd), "echo $$ >%s", toolrun_path("ran"));
	assert_int_equal(launch_prepare(ARGV("sh", "-c", cmd), NULL, &l), 0);
	wait_status(l.pid, "State:.S");
	assert_false(launch_ended(&l));
	assert_int_equal(access(toolrun_path("ran"), F_OK), -1);
	assert_int_equal(launch_go(&l), 0);
	wait_end(&l);
	assert_int_equal(launch_exit_status(&l), 0);
	got = toolrun_read(toolrun_path("ran"), &sz);
	got[sz] = '\0';
	snprintf(pid, sizeof(pid), "%d\n", l.pid);
	assert_string_equal(got, pid);
	free(got);
	launch_done(&l);
	unlink(toolrun_path("ran"));
}

static void test_never_let_go(void **state)
{
	int fds = open_fds();
	struct launch l;
	char cmd[256];

	(void)state;
	snprintf(cmd, sizeof(cmd), "touch %s", toolrun_path("ran"));
	assert_int_equal(launch_prepare(ARGV("sh", "-c", cmd), NULL, &l), 0);
	launch_done(&l);
	no_child_left();
	assert_int_equal(access(toolrun_path("ran"), F_OK), -1);
	assert_int_equal(open_fds(), fds);
	/* once more does no harm */
	launch_done(&l);
}

/* If we die, the pipe is closed, and the child that waits ends by itself. */
static void test_parent_dies(void **state)
{
	struct launch l;

	(void)state;
	assert_int_equal(launch_prepare(ARGV("true"), NULL, &l), 0);
	close(l.go_fd);
	l.go_fd = -1;
	wait_end(&l);
	assert_int_equal(launch_exit_status(&l), 127);
	launch_done(&l);
}

/* The child is gone before it is let go. */
static void test_killed_while_held(void **state)
{
	struct launch l;

	(void)state;
	signal(SIGPIPE, SIG_IGN); /* as main does */
	assert_int_equal(launch_prepare(ARGV("true"), NULL, &l), 0);
	kill(l.pid, SIGKILL);
	wait_end(&l);
	assert_int_equal(launch_go(&l), -EPIPE);
	launch_done(&l);
	signal(SIGPIPE, SIG_DFL);
	no_child_left();
}

/* At the end of the time that was asked for: that is no failure of the command's. */
static void end_it(char *const argv[], const char *status)
{
	struct launch l;

	assert_int_equal(launch_prepare(argv, NULL, &l), 0);
	assert_int_equal(launch_go(&l), 0);
	wait_status(l.pid, status);
	assert_false(launch_ended(&l));
	launch_done(&l);
	assert_true(l.reaped);
	assert_int_equal(launch_exit_status(&l), 0);
	no_child_left();
}

static void test_ended_by_us(void **state)
{
	(void)state;
	end_it(ARGV("sleep", "1000"), "Name:.sleep$");
	/* stopped, so that the request stays pending */
	end_it(ARGV("sh", "-c", "kill -STOP $$; sleep 1000"), "State:.T");
	/* one that ignores the request: SIGTERM is bit 14 */
	end_it(ARGV("sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"),
	       "SigIgn:.*[4-7c-f][0-9a-f]\\{3\\}$");
}

/* We take signals by signalfd and ignore SIGPIPE; the command is to notice neither. */
static void test_signals(void **state)
{
	sigset_t blocked, before, after;
	struct launch l;
	char cmd[512];

	(void)state;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGINT);
	sigaddset(&blocked, SIGTERM);
	sigaddset(&blocked, SIGCHLD);
	assert_int_equal(sigprocmask(SIG_BLOCK, &blocked, &before), 0);
	signal(SIGPIPE, SIG_IGN);
	snprintf(cmd, sizeof(cmd), "grep -E '^Sig(Blk|Ign)' /proc/self/status >%s",
		 toolrun_path("masks"));
	assert_int_equal(launch_prepare(ARGV("sh", "-c", cmd), NULL, &l), 0);
	assert_int_equal(launch_go(&l), 0);
	wait_end(&l);
	assert_int_equal(launch_exit_status(&l), 0);
	launch_done(&l);
	/* ours are as they were */
	assert_int_equal(sigprocmask(SIG_SETMASK, NULL, &after), 0);
	assert_true(sigismember(&after, SIGINT) && sigismember(&after, SIGTERM) &&
		    sigismember(&after, SIGCHLD));
	assert_ptr_equal(signal(SIGPIPE, SIG_DFL), SIG_IGN);
	assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);

	assert_true(toolrun("grep -q '^SigBlk:.0000000000000000$' masks"));
	/* SIGPIPE is 13: the lowest bit of the fourth digit from the right */
	assert_true(toolrun("grep -qE '^SigIgn:.[0-9a-f]{12}[02468ace][0-9a-f]{3}$' masks"));
}

static void run_with(const struct launch_settings *how, const char *cmd)
{
	struct launch l;

	assert_int_equal(launch_prepare(ARGV("sh", "-c", (char *)cmd), how, &l), 0);
	assert_int_equal(launch_go(&l), 0);
	wait_end(&l);
	assert_int_equal(launch_exit_status(&l), 0);
	launch_done(&l);
}

static void test_settings(void **state)
{
	char *const env[] = { "LAUNCH_A=a b", NULL }, *const more[] = { "LAUNCH_B=", NULL };
	struct launch_settings how = { .env = env, .more_env = more };

	(void)state;
	run_with(&how, "test \"$LAUNCH_A\" = 'a b' && test \"${LAUNCH_B-no}\" = ''");
	run_with(&how, "test $(cut -d' ' -f5 /proc/$$/stat) != $$");
	how.own_group = true;
	run_with(&how, "test $(cut -d' ' -f5 /proc/$$/stat) = $$");
	assert_null(getenv("LAUNCH_A"));
}

/* Nothing of root's is left, in whatever program it executes. */
static void test_user(void **state)
{
	struct launch_user user = { .uid = 12345, .gid = 12346 };
	struct launch_settings how = { .user = &user };
	struct launch l;

	(void)state;
	if (geteuid()) {
		/* it cannot become anybody else, and does not run as we are */
		assert_int_equal(launch_prepare(ARGV("true"), &how, &l), 0);
		assert_int_equal(launch_go(&l), -EPERM);
		launch_done(&l);
		return;
	}
	run_with(&how,
		 "grep -qE '^Uid:(.12345){4}$' /proc/self/status && "
		 "grep -qE '^Gid:(.12346){4}$' /proc/self/status && "
		 "grep -qE '^Groups:[[:space:]]*$' /proc/self/status && "
		 "test $(grep -cE '^Cap(Inh|Prm|Eff|Amb):.0000000000000000$' "
		 "/proc/self/status) = 4");
	snprintf(user.home, sizeof(user.home), "/a home");
	run_with(&how, "test \"$HOME\" = '/a home'");
}

static void test_sudo_user(void **state)
{
	struct launch_user u;

	(void)state;
	unsetenv("SUDO_UID");
	setenv("SUDO_GID", "5", 1);
	assert_false(launch_sudo_user(&u));
	setenv("SUDO_UID", "0", 1);
	assert_false(launch_sudo_user(&u));
	setenv("SUDO_UID", "1x", 1);
	assert_false(launch_sudo_user(&u));
	setenv("SUDO_UID", "54321", 1);
	assert_int_equal(launch_sudo_user(&u), !geteuid());
	if (!geteuid()) {
		assert_int_equal(u.uid, 54321);
		assert_int_equal(u.gid, 5);
		assert_string_equal(u.name, "");
	}
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exit_status),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_exec_fails),
		cmocka_unit_test(test_held_back),
		cmocka_unit_test(test_never_let_go),
		cmocka_unit_test(test_parent_dies),
		cmocka_unit_test(test_killed_while_held),
		cmocka_unit_test(test_ended_by_us),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_user),
		cmocka_unit_test(test_sudo_user),
	};
	int failed;

	/* a folder that may not be searched would make EACCES of every name that is not found */
	setenv("PATH", "/usr/bin:/bin", 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
