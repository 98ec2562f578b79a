/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts hits of probes in the processes of the filter, each of them. Events that the kernel counts by
 * itself (perf_event_open(2) with inherit) do not count uprobes in threads and children.
 *
 * Attached by perf events (uprobes.h), between 5.11 and 5.19, a hit is missed where it comes on a CPU
 * whose last thread was preempted in the middle of a map's system call (trace_call_bpf).
 */
#ifndef KERNEL_PROBE_OPS_H
#define KERNEL_PROBE_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/uprobes.h"

struct session;

/* Of a session with session_opts.ops, before it is loaded. */
void probe_ops__configure(struct session *s);

/*
 * Hits count from here on, but not those of processes with this exec_id. Points as for uprobes__attach,
 * wherever the file is mapped; the session was opened for the same method. NULL with errno.
 */
struct uprobes *probe_ops__attach(struct session *s, enum uprobe_method m, int file_fd,
				  const struct uprobe_point *points, size_t cnt,
				  uint32_t not_exec_id);

/* How many there were. */
uint64_t probe_ops__count(struct session *s);

#endif
