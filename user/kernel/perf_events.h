/* SPDX-License-Identifier: BSD-2-Clause */
/* A BPF program that a perf event calls, on every CPU that is online. */
#ifndef KERNEL_PERF_EVENTS_H
#define KERNEL_PERF_EVENTS_H

#include <stdint.h>

struct bpf_program;
struct perf_event_attr;
struct perf_events;

/*
 * None is attached yet. attr: of the event that each CPU gets, see perf_event_open(2); size and
 * disabled are set here. what: what CPUs are by it, such as "sampled". Borrows prog, which is
 * loaded, and what. NULL with errno.
 */
struct perf_events *perf_events__new(const struct bpf_program *prog,
				     const struct perf_event_attr *attr, const char *what);
/*
 * Attaches the program on CPUs that are online and have none yet, and lets go of those that went
 * offline. To be called again while it runs, to follow CPUs that come and go. gone, by CPU: differs
 * from that of the last call if the CPU has gone meanwhile. Returns 0 if at least one CPU has it, and
 * says once if others cannot; else -errno of the last one that was tried.
 */
int perf_events__sync(struct perf_events *e, const uint32_t *gone);
/* Detaches from all. NULL is allowed. */
void perf_events__free(struct perf_events *e);

#endif
