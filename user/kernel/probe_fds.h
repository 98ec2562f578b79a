/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors: who opens them is recorded (bpf/fds.bpf.c), which are open the kernel tells. */
#ifndef KERNEL_PROBE_FDS_H
#define KERNEL_PROBE_FDS_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

struct session;

/* Where openings are seen. */
enum fds_how {
	FDS_FUNCTIONS, /* in the functions that do it: all of them, at no cost for anything else */
	FDS_SYSCALLS,  /* as system calls return, which makes each of them dearer */
	FDS_NONE,
};

/* The best that this kernel has. */
enum fds_how probe_fds__how(void);

/* Begins to record: what is open by now was opened before. 0 or -errno. */
int probe_fds__start(struct session *s);
/* -errno of that or of probe_fds__read, for people. */
const char *probe_fds__failure(int err);
/* Ends that. Nothing, if it has not begun. */
void probe_fds__stop(struct session *s);

/*
 * The descriptors that are open now in the processes that are watched, in no order, each once, also
 * where processes share a table. To be called while it records, so that what is opened meanwhile
 * is known. The caller frees *ret. 0 or -errno.
 */
int probe_fds__read(struct session *s, struct bpfprof_fd_open **ret, size_t *ret_cnt);

/* Makes room: what processes have opened that have ended is known no more. */
void probe_fds__prune(struct session *s);

/* Descriptors that there is room for, whether they are open or their numbers are free again. */
#define PROBE_FDS_MAX (1U << 17)

#endif
