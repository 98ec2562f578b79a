/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads /proc/PID/status. */
#include "report/process_memory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc_status.h"
#include "base/util.h"

/* "VmRSS:	    4 kB": is it memory of the process? */
static bool print_line(const char *line, FILE *f)
{
	unsigned long long kb;
	char name[32], unit[3];

	if ((strncmp(line, "Vm", 2) != 0 && strncmp(line, "Rss", 3) != 0) ||
	    sscanf(line, "%31[A-Za-z]: %llu %2s", name, &kb, unit) != 3 || strcmp(unit, "kB") != 0)
		return false;
	fprintf(f, "# %s = %llu\n", name, kb * 1024);
	return true;
}

char *process_memory(pid_t pid)
{
	char *status, *ret = NULL;
	bool any = false;
	size_t sz;
	FILE *f;

	if (pid <= 0 || proc_status_read(PROC_STATUS_DIR, (uint32_t)pid, &status))
		return NULL;
	f = open_memstream(&ret, &sz);
	if (f) {
		fprintf(f, "# /proc/%d/status, in bytes\n", pid);
		for (const char *line = status; line; line = strchr(line, '\n')) {
			line += *line == '\n';
			any |= print_line(line, f);
		}
		if (fclose(f))
			any = false;
	}
	free(status);
	if (any)
		return ret;
	free(ret);
	return NULL;
}
