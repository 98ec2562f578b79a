/* SPDX-License-Identifier: BSD-2-Clause */
/* helper_start_self: the program is run anew, and has nothing of its parent's but standard error: no
 * capability, no descriptor, no signal held back, no environment. */
#include "helper/helper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/caps.h"
#include "base/util.h"

static void print_line(const char *status, const char *key)
{
	const char *line = strstr(status, key);

	if (line)
		fprintf(stderr, "%.*s\n", (int)strcspn(line, "\n"), line);
}

/* What the child is, on standard error. */
static int be_child(void)
{
	char *status, target[64];
	struct dirent *e;
	DIR *dir = opendir("/proc/self/fd");
	ssize_t n;
	size_t sz;

	if (!dir)
		return 1;
	while ((e = readdir(dir))) {
		if (*e->d_name == '.' || atoi(e->d_name) == dirfd(dir))
			continue;
		n = readlinkat(dirfd(dir), e->d_name, target, sizeof(target) - 1);
		target[MAX(n, 0)] = '\0';
		fprintf(stderr, "fd %s %s\n", e->d_name,
			*e->d_name == '2' ? "the parent's" : target);
	}
	closedir(dir);
	for (char **v = environ; *v; v++)
		fprintf(stderr, "environment %s\n", *v);
	if (!util_read_file("/proc/self/status", 65536, &status, &sz)) {
		for (const char **key =
			     (const char *[]){ "SigBlk:", "CapPrm:", "CapEff:", "CapInh:",
					       "CapAmb:", "NoNewPrivs:", NULL };
		     *key; key++)
			print_line(status, *key);
		free(status);
	}
	return 7;
}

static char said[4096];

/* Its standard error in said, and what waitpid(2) tells. */
static int run_child(void)
{
	static const char *const argv[] = { "bpfprof", "child", NULL };
	int fds[2], kept = dup(STDERR_FILENO), status = 0;
	size_t n = 0;
	ssize_t got;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	pid = helper_start_self(argv);
	assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
	close(kept);
	close(fds[1]);
	assert_true(pid > 0);
	while ((got = read(fds[0], said + n, sizeof(said) - 1 - n)) > 0)
		n += (size_t)got;
	said[n] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void nothing_is_handed_on(void **state)
{
	/* as the agent holds them */
	static const int held[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD, SIGUSR1, SIGUSR2 };
	sigset_t set, before;
	uint64_t permitted, effective, now_permitted, now_effective;
	int status, fd = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */

	(void)state;
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		sigaddset(&set, held[i]);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, &before), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", "/run/x", 1), 0);
	assert_int_equal(unsetenv("LD_LIBRARY_PATH"), 0);
	assert_int_equal(caps_get(&permitted, &effective), 0);
	status = run_child();
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_string_equal(said,
			    "fd 0 /dev/null\n"
			    "fd 1 /dev/null\n"
			    "fd 2 the parent's\n"
			    "SigBlk:\t0000000000000000\n"
			    "CapPrm:\t0000000000000000\n"
			    "CapEff:\t0000000000000000\n"
			    "CapInh:\t0000000000000000\n"
			    "CapAmb:\t0000000000000000\n"
			    "NoNewPrivs:\t1\n");
	/* where the libraries are goes on; what it did to itself is not done to us */
	assert_int_equal(setenv("LD_LIBRARY_PATH", "/nowhere", 1), 0);
	run_child();
	assert_non_null(strstr(said, "environment LD_LIBRARY_PATH=/nowhere\n"));
	assert_null(strstr(said, "NOTIFY"));
	sigprocmask(SIG_SETMASK, &before, &set);
	for (size_t i = 0; i < ARRAY_SIZE(held); i++)
		assert_int_equal(sigismember(&set, held[i]), 1);
	assert_int_equal(caps_get(&now_permitted, &now_effective), 0);
	assert_int_equal(now_permitted, permitted);
	assert_int_equal(now_effective, effective);
	assert_int_equal(fcntl(fd, F_GETFD), 0);
	close(fd);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_handed_on),
	};

	if (argc == 2 && !strcmp(argv[1], "child"))
		return be_child();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
