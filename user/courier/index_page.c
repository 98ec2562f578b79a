// SPDX-License-Identifier: BSD-2-Clause
#include "courier/index_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "courier/endpoints.h"

static void print_row(FILE *f, const struct endpoint *e, const char *of_pid, uint64_t count)
{
	const char *debug = e->what == ENDPOINT_PROFILE ? "debug=1" : "";

	fprintf(f, "<tr><td>%" PRIu64 "</td><td><a href='%s%s%s%s%s'>%s</a></td><td>%s</td></tr>\n",
		count, e->name, *of_pid || *debug ? "?" : "", debug,
		*of_pid && *debug ? "&amp;" : "", of_pid, e->name, e->description);
}

static void print_page(FILE *f, uint32_t pid, const char *of_pid, const uint64_t *counts)
{
	fputs("<!DOCTYPE html>\n<html><head><meta charset='utf-8'><title>/debug/pprof/</title>\n"
	      "<style>td { padding-right: 1em; vertical-align: top }"
	      " td:first-child { text-align: right }</style></head><body>\n"
	      "<h1>/debug/pprof/</h1>\n",
	      f);
	if (pid)
		fprintf(f, "<p>Profiles of process %u, by bpfprof.</p>\n", pid);
	else
		fputs("<p>No process is named: add <code>?pid=PID</code> to the address.</p>\n", f);
	fputs("<table><thead><tr><td>Count</td><td>Profile</td><td></td></tr></thead>\n", f);
	for (size_t i = 0; i < endpoint_cnt; i++)
		if (endpoints[i].description)
			print_row(f, &endpoints[i], of_pid, counts[i]);
	fprintf(f,
		"</table>\n<p><a href='goroutine?debug=2%s%s'>full stack dump of all "
		"threads</a></p>\n",
		*of_pid ? "&amp;" : "", of_pid);
	fputs("<p>Count: threads that there are; else samples that have been recorded by now. What "
	      "is "
	      "not recorded all the time (<code>--always</code>) is recorded when it is asked for, "
	      "for the seconds that <code>seconds=</code> says, else for 5.</p>\n"
	      "</body></html>\n",
	      f);
}

char *index_page(uint32_t pid, bool named, const uint64_t *counts, size_t *ret_sz)
{
	char of_pid[32] = "", *ret = NULL;
	FILE *f = open_memstream(&ret, ret_sz);

	if (!f)
		return NULL;
	if (pid && named)
		snprintf(of_pid, sizeof(of_pid), "pid=%u", pid);
	print_page(f, pid, of_pid, counts);
	if (!fclose(f))
		return ret;
	free(ret);
	return NULL;
}
