/* SPDX-License-Identifier: BSD-2-Clause */
/* withpid PID COMMAND [ARG...]: runs a command under a process id that is free, and waits for it.
 */
#include <linux/sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	pid_t wanted = argc > 2 ? atoi(argv[1]) : 0;
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&wanted,
		.set_tid_size = 1,
	};
	long pid = syscall(SYS_clone3, &args, sizeof(args));

	if (pid < 0) {
		perror("clone3");
		return 1;
	}
	if (!pid) {
		execv(argv[2], argv + 2);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
	return 0;
}
