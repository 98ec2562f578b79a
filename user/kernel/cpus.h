/* SPDX-License-Identifier: BSD-2-Clause */
/* Which CPUs are online, and following them as they come and go. */
#ifndef KERNEL_CPUS_H
#define KERNEL_CPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One past the highest CPU number that can ever come online. -errno on failure. */
int cpus_possible(void);

/* online[i] for i below cnt. 0 or -errno. */
int cpus_online(bool *online, size_t cnt);

/* Parses the form of /sys/devices/system/cpu/online, such as "0-3,8". Numbers from cnt on are left
 * out. 0 or -EINVAL. */
int cpus_parse(const char *list, bool *online, size_t cnt);

/* One round of opening something on each CPU that is online. Begins with { .err = -ENODEV }. */
struct cpus_round {
	size_t online, open;
	size_t left_out; /* could not be had, though they are there */
	int err;	 /* of the last of these */
};

/* What came of a CPU that is online: 0, also of one that had it before, or -errno. */
void cpus_round_add(struct cpus_round *r, int err);
/*
 * Says how many CPUs are left out, and why, unless it has said so before: *said. what: what they are not, such as "sampled".
 * Returns 0, or -errno if no CPU could be had, which the caller says.
 */
int cpus_round_end(const struct cpus_round *r, const char *what, bool *said);

/* Why it could not be had on a CPU: -errno. Valid until the next call, as that of strerror. */
const char *cpus_failure(int err);

/* What all CPUs have done since the machine started, see proc_stat(5). */
struct cpus_work {
	uint64_t switches;  /* of context */
	uint64_t busy_ns;   /* in ticks of 10 ms: neither idle nor waiting for a disk */
	uint64_t task_ns;   /* of that: not in interrupts */
	uint64_t stolen_ns; /* the same: what the hypervisor did not give them */
};

/* On a large machine asking takes a millisecond. 0 or -errno. */
int cpus_work(struct cpus_work *ret);

#endif
