// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/return_probes.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/proc_status.h"
#include "base/util.h"

#define SYS_URETPROBE 335 /* arch/x86/entry/syscalls/syscall_64.tbl */

/* What came of a call of it from elsewhere than the return of a function. */
enum answer {
	REFUSED, /* by the filter */
	UNKNOWN, /* there is no such call */
	REACHED, /* the kernel's: it has sent SIGILL */
};

static void filter(void)
{
	struct sock_filter f[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_URETPROBE, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog prog = { .len = ARRAY_SIZE(f), .filter = f };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		_exit(UNKNOWN);
}

static void on_sigill(int signo)
{
	(void)signo;
	_exit(REACHED);
}

static enum answer ask(bool filtered)
{
	int status = 0;
	pid_t pid = fork();

	if (pid < 0)
		return UNKNOWN;
	if (!pid) {
		signal(SIGILL, on_sigill);
		if (filtered)
			filter();
		(void)syscall(SYS_URETPROBE);
		_exit(errno == EPERM ? REFUSED : UNKNOWN);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return UNKNOWN;
	return WIFEXITED(status) ? (enum answer)WEXITSTATUS(status) : UNKNOWN;
}

bool return_probes_harm(void)
{
	static bool asked, harm;

	/* a filter refuses calls that there are not, too */
	if (!asked)
		harm = knobs.tight_filters || (ask(true) == REFUSED && ask(false) == REACHED);
	asked = true;
	return harm;
}

bool return_probes_filtered(pid_t pid)
{
	char *text;
	bool ret;

	if (proc_status_read(PROC_STATUS_DIR, (uint32_t)pid, &text))
		return true;
	ret = proc_status_number(text, "Seccomp") != SECCOMP_MODE_DISABLED;
	free(text);
	return ret;
}
