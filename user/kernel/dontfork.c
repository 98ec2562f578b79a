// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/dontfork.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

int dontfork(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[PATH_MAX + 128], name[16];
	unsigned long from, to;
	int err = f ? 0 : -errno;

	while (!err && fgets(line, sizeof(line), f)) {
		/* proc_pid_maps(5); a path would begin with a slash */
		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %11s", &from, &to, name) == 3 &&
		    !strcmp(name, "anon_inode:") &&
		    madvise((void *)(uintptr_t)from, to - from, MADV_DONTFORK))
			err = -errno;
	}
	if (f)
		fclose(f);
	return err;
}
