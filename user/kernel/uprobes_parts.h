/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of uprobes (uprobes.h) have in common: how the kernel is asked for links and perf events. */
#ifndef KERNEL_UPROBES_PARTS_H
#define KERNEL_UPROBES_PARTS_H

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "base/raw_call.h"
#include "kernel/uprobes.h"

/*
 * The part of union bpf_attr that BPF_LINK_CREATE of these links reads: link_create.uprobe_multi,
 * which the headers of kernels before 6.6 do not have.
 */
struct multi_attr {
	uint32_t prog_fd;
	uint32_t target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path;
	uint64_t offsets;
	uint64_t ref_ctr_offsets;
	uint64_t cookies;
	uint32_t cnt;
	uint32_t multi_flags;
	uint32_t pid;
	uint32_t pad;
};
#define MULTI_RETURN 1 /* BPF_F_UPROBE_MULTI_RETURN */

/* A descriptor, or -errno. */
static inline int uprobes_create_multi(const struct multi_attr *attr)
{
	return (int)raw_call(SYS_bpf, BPF_LINK_CREATE, (long)attr, sizeof(*attr), 0, 0);
}

/* The same, of perf_event_open(2). */
static inline int uprobes_open_event(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return (int)raw_call(SYS_perf_event_open, (long)attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/*
 * A perf event for one side, but for its point. ret_shift: where in config the semaphore's offset
 * goes; 64 where the kernel has no place for it (before 4.20). 0 or -errno. See
 * Documentation/ABI/testing/sysfs-bus-event_source-devices-format.
 */
int uprobes_event_attr(enum uprobe_side side, struct perf_event_attr *ret, uint64_t *ret_shift);

/* Loads a program that does nothing. A descriptor, or -errno. */
int uprobes_load_empty(enum uprobe_method m);

#endif
