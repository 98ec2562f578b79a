// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/util.h"

/* As x86 tells it; else the name of the architecture. */
static void processor_name(char *text, size_t sz, const char *architecture)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char *line = NULL, *name = NULL;
	size_t cap = 0;

	while (f && !name && getline(&line, &cap, f) > 0) {
		name = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');
		if (!name)
			continue;
		name += 1 + strspn(name + 1, " \t");
		name[strcspn(name, "\n")] = '\0';
	}
	util_printable(text, sz, name && *name ? name : architecture);
	free(line);
	if (f)
		fclose(f);
}

char *machine_text(char *text, size_t sz)
{
	char processor[128];
	struct utsname uts;
	long cnt = sysconf(_SC_NPROCESSORS_ONLN);

	uname(&uts);
	processor_name(processor, sizeof(processor), uts.machine);
	snprintf(text, sz, "%s, %ld CPU%s, Linux %s", processor, cnt, cnt == 1 ? "" : "s",
		 uts.release);
	return text;
}
