/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests that need a session with the kernel: opens one, or says why there is none. */
#ifndef TESTS_BPF_SESSION_H
#define TESTS_BPF_SESSION_H

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "kernel/session.h"

/* NULL, with the reason printed, where the test has to be skipped. */
static inline struct session *bpf_session_open(const struct session_opts *opts)
{
	char err[512];
	struct session *s = session__open(opts, err, sizeof(err));

	if (s)
		return s;
	if (geteuid() || errno == EPERM || errno == EACCES || errno == ENOSYS ||
	    access("/sys/kernel/btf/vmlinux", R_OK)) {
		print_message("no session with the kernel: %s\n", err);
		return NULL;
	}
	fail_msg("no session with the kernel: %s", err);
	return NULL;
}

#endif
