// SPDX-License-Identifier: BSD-2-Clause
/* Which CPUs are online: /sys/devices/system/cpu, see Documentation/admin-guide/cputopology.rst. */
#include "kernel/cpus.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
	char *buf;
	size_t sz;
	int err;

	err = util_read_file("/sys/devices/system/cpu/online", 65536, &buf, &sz);
	if (err)
		return err;
	err = cpus_parse(buf, online, cnt);
	free(buf);
	return err;
}
