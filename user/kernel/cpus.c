// SPDX-License-Identifier: BSD-2-Clause
/* Which CPUs are online, and what they do: /sys/devices/system/cpu, see
 * Documentation/admin-guide/cputopology.rst, and /proc/stat. */
#include "kernel/cpus.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
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

void cpus_round_add(struct cpus_round *r, int err)
{
	r->online++;
	r->open += !err;
	/* it has gone since it was found to be online */
	if (!err || err == -ENODEV)
		return;
	r->left_out++;
	r->err = err;
}

const char *cpus_failure(int err)
{
	if (err == -EMFILE)
		return "too many open files (raise ulimit -Hn)";
	if (err == -ENOBUFS)
		return "no more memory may be locked (give CAP_IPC_LOCK, or raise ulimit -l or "
		       "kernel.perf_event_mlock_kb)";
	return strerror(-err);
}

int cpus_round_end(const struct cpus_round *r, const char *what, bool *said)
{
	if (!r->open)
		return r->err;
	if (r->left_out && !*said) {
		log_info("%zu of %zu CPUs are not %s: %s", r->left_out, r->online, what,
			 cpus_failure(r->err));
		*said = true;
	}
	return 0;
}

int cpus_work(struct cpus_work *ret)
{
	unsigned long long user, nice, sys, irq, soft, stolen, switches = 0;
	const uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	bool busy = false;
	FILE *f = fopen("/proc/stat", "re");
	char *line = NULL;
	size_t sz = 0;

	if (!f)
		return -errno;
	/* a line may have a number for each interrupt there is */
	while (!switches && getline(&line, &sz, f) > 0) {
		/* of all, which are together in the first */
		if (!busy && sscanf(line, "cpu %llu %llu %llu %*u %*u %llu %llu %llu", &user, &nice,
				    &sys, &irq, &soft, &stolen) == 6) {
			ret->task_ns = (user + nice + sys) * tick_ns;
			ret->busy_ns = ret->task_ns + (irq + soft) * tick_ns;
			ret->stolen_ns = stolen * tick_ns;
			busy = true;
		}
		(void)sscanf(line, "ctxt %llu", &switches);
	}
	free(line);
	fclose(f);
	ret->switches = switches;
	return busy && switches ? 0 : -ENODATA;
}
