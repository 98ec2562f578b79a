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

/*
 * A perf event of a CPU that has gone never counts again, also if the CPU is back before anybody has
 * looked. So the kernel's messages are listened to (netlink(7), NETLINK_KOBJECT_UEVENT). A machine
 * that was asleep had taken its CPUs offline, and tells of none.
 *
 * cpus_watch: a descriptor to be waited for, the same one each time. -errno: the kernel does not tell.
 */
int cpus_watch(void);
/* Takes in what was told by now. Returns whether a CPU may have come or gone since the last call:
 * always, where the kernel does not tell. */
bool cpus_changed(void);
/* How often a CPU may have gone so far. cpu: below cpus_possible. */
uint32_t cpus_gone(int cpu);

/* What all CPUs have done since the machine started, see proc_stat(5). */
struct cpus_work {
	uint64_t switches; /* of context */
	uint64_t busy_ns;  /* in ticks of 10 ms: neither idle nor waiting for a disk */
};

/* On a large machine asking takes a millisecond. 0 or -errno. */
int cpus_work(struct cpus_work *ret);

#endif
