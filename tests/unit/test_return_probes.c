// SPDX-License-Identifier: BSD-2-Clause
/* Whether probes of returns harm, and which processes filter their system calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/util.h"
#include "kernel/return_probes.h"

static void test_kernel(void **state)
{
	unsigned int major, minor;
	struct utsname u;

	(void)state;
	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%u.%u", &major, &minor), 2);
	/* stable releases in between have the change, or not */
	if (major > 6 || major < 6 || minor < 11 || minor > 13)
		assert_false(return_probes_harm());
	/* nobody is left behind, and it is not asked for again */
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(return_probes_harm(), return_probes_harm());
}

static pid_t start(bool filtered)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	const struct sock_fprog prog = { .len = 1, .filter = &allow };
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (filtered && (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
				 prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog)))
			_exit(1);
		if (write(ready[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void test_processes(void **state)
{
	/* what runs this may be filtered itself */
	bool own = return_probes_filtered(getpid());

	(void)state;
	for (int filtered = 0; filtered < 2; filtered++) {
		pid_t pid = start(filtered);

		assert_int_equal(return_probes_filtered(pid), filtered || own);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_true(return_probes_filtered(pid));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_processes),
	};

	knobs_read();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
