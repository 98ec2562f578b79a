/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Does a probe at a return of a function harm processes that filter their system calls (seccomp(2))? From 6.11 on
 * such a return makes a system call, uretprobe (ff474a78cef5), which filters of before do not know: it ends most
 * processes in containers and in services with SystemCallFilter=. From 6.14 on filters are not asked about it
 * (cf6cb56ef244, and in stable releases of 6.12 and 6.13).
 */
#ifndef KERNEL_RETURN_PROBES_H
#define KERNEL_RETURN_PROBES_H

#include <stdbool.h>
#include <sys/types.h>

/* Does it with this kernel? Found out by a child once. */
bool return_probes_harm(void);

/* Does a process filter its system calls? True where that cannot be told. */
bool return_probes_filtered(pid_t pid);

#endif
