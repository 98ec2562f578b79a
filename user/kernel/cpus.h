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
