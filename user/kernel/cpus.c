// SPDX-License-Identifier: BSD-2-Clause
/* Which CPUs are online, and what they do: /sys/devices/system/cpu, see
 * Documentation/admin-guide/cputopology.rst, and /proc/stat. */
#include "kernel/cpus.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

int cpus_possible(void)
{
	return libbpf_num_possible_cpus();
}

/* Digits only: strtoul alone would take blanks and signs too, and make of -1 the highest number. */
static bool number(const char *s, char **ret_end, unsigned long *ret)
{
	if (*s < '0' || *s > '9')
		return false;
	*ret = strtoul(s, ret_end, 10);
	return true;
}

int cpus_parse(const char *list, bool *online, size_t cnt)
{
	memset(online, 0, cnt * sizeof(*online));
	while (*list && *list != '\n') {
		unsigned long first, last;
		char *end;

		if (!number(list, &end, &first))
			return -EINVAL;
		last = first;
		if (*end == '-' && (!number(end + 1, &end, &last) || last < first))
			return -EINVAL;
		for (unsigned long i = first; i <= last && i < cnt; i++)
			online[i] = true;
		if (*end == ',')
			end++;
		else if (*end && *end != '\n')
			return -EINVAL;
		list = end;
	}
	return 0;
}

int cpus_online(bool *online, size_t cnt)
{
	/* asked many times a second, and opening a path takes ten times as long as reading it */
	static int fd = -1;
	char list[4097]; /* a page is the most that a file of /sys holds */
	ssize_t sz;

	if (fd < 0)
		fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	sz = pread(fd, list, sizeof(list) - 1, 0);
	if (sz < 0)
		return -errno;
	list[sz] = '\0';
	return cpus_parse(list, online, cnt);
}

/* ---- that come and go ---- */

#define MESSAGE_SZ 8192	    /* UEVENT_BUFFER_SIZE and the head: include/linux/kobject.h */
#define ASLEEP_NS 1000000LL /* two clocks are read one after the other */

static struct {
	int fd;		/* -1: there is none */
	uint32_t *gone; /* by CPU; NULL: see all */
	int cnt;
	uint32_t all; /* how often all may have gone */
	int64_t asleep_ns;
} watched = { .fd = -1 };

/* How long the machine was asleep so far: what CLOCK_MONOTONIC leaves out, clock_gettime(2). */
static int64_t asleep_ns(void)
{
	struct timespec monotonic, boot;

	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (boot.tv_sec - monotonic.tv_sec) * (int64_t)NSEC_PER_SEC + boot.tv_nsec -
	       monotonic.tv_nsec;
}

/* Of all devices' messages only "offline@…" and "online@…" wake us. */
static int filter(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6f66666c, 1, 0), /* "offl" */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x6f6e6c69, 0, 1), /* "onli" */
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog prog = { .len = ARRAY_SIZE(code), .filter = code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) ? -errno : 0;
}

int cpus_watch(void)
{
	struct sockaddr_nl addr = { .nl_family = AF_NETLINK, .nl_groups = 1 }; /* the kernel's */
	int err;

	if (watched.fd >= 0)
		return watched.fd;
	watched.asleep_ns = asleep_ns();
	watched.cnt = cpus_possible();
	free(watched.gone);
	watched.gone = watched.cnt > 0 ? calloc(watched.cnt, sizeof(*watched.gone)) : NULL;
	if (!watched.gone)
		return -ENOMEM;
	watched.fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	if (watched.fd < 0)
		return -errno;
	err = filter(watched.fd);
	if (!err && bind(watched.fd, (struct sockaddr *)&addr, sizeof(addr)))
		err = -errno;
	if (!err)
		return watched.fd;
	close(watched.fd);
	watched.fd = -1;
	return err;
}

/* "offline@/devices/system/cpu/cpu7": may it have been a CPU? */
static bool take_message(const char *text)
{
	const char *at = strstr(text, "@/devices/system/cpu/cpu"), *end;
	unsigned long cpu;
	char *after;

	if (!at)
		return false;
	end = strrchr(at, 'u') + 1;
	if (!number(end, &after, &cpu) || *after || cpu >= (unsigned long)watched.cnt)
		return false;
	watched.gone[cpu] += !strncmp(text, "offline@", 8);
	return true;
}

bool cpus_changed(void)
{
	int64_t asleep = asleep_ns();
	bool changed = watched.fd < 0;
	char text[MESSAGE_SZ + 1];
	struct sockaddr_nl from;
	socklen_t from_sz = sizeof(from);
	ssize_t n;

	if (asleep > watched.asleep_ns + ASLEEP_NS) {
		watched.all++;
		changed = true;
	}
	watched.asleep_ns = MAX(watched.asleep_ns, asleep);
	while (watched.fd >= 0) {
		n = recvfrom(watched.fd, text, MESSAGE_SZ, 0, (struct sockaddr *)&from, &from_sz);
		if (n < 0 && errno != ENOBUFS)
			break;
		/* there were too many to keep all */
		if (n < 0) {
			watched.all++;
			changed = true;
			continue;
		}
		text[n] = '\0';
		/* not from a process */
		if (!from.nl_pid)
			changed |= take_message(text);
	}
	return changed;
}

uint32_t cpus_gone(int cpu)
{
	return watched.all + (watched.gone ? watched.gone[cpu] : 0);
}

/* ---- what they do ---- */

int cpus_work(struct cpus_work *ret)
{
	unsigned long long user, nice, sys, irq, soft, ticks, switches = 0;
	bool busy = false;
	FILE *f = fopen("/proc/stat", "re");
	char *line = NULL;
	size_t sz = 0;

	if (!f)
		return -errno;
	/* a line may have a number for each interrupt there is */
	while (!switches && getline(&line, &sz, f) > 0) {
		/* of all, which are together in the first; stolen time is nobody's here */
		if (!busy && sscanf(line, "cpu %llu %llu %llu %*u %*u %llu %llu", &user, &nice,
				    &sys, &irq, &soft) == 5) {
			ticks = user + nice + sys + irq + soft;
			ret->busy_ns = ticks * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
			busy = true;
		}
		(void)sscanf(line, "ctxt %llu", &switches);
	}
	free(line);
	fclose(f);
	ret->switches = switches;
	return busy && switches ? 0 : -ENODATA;
}
