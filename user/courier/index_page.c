// SPDX-License-Identifier: BSD-2-Clause
#include "courier/index_page.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "courier/endpoints.h"
#include "courier/serve_wire.h"

/* name: behind that of the endpoint; of letters, digits, and . _ - / : (bpfprof/profile.h) */
static void print_row(FILE *f, const struct endpoint *e, const char *name, const char *of_pid,
		      uint64_t count)
{
	const char *debug = e->what == ENDPOINT_PROFILE ? "debug=1" : "";

	fprintf(f,
		"<tr><td>%" PRIu64
		"</td><td><a href='%s%s%s%s%s%s'>%s%s</a></td><td>%s</td></tr>\n",
		count, e->name, name, *of_pid || *debug ? "?" : "", debug,
		*of_pid && *debug ? "&amp;" : "", of_pid, e->name, name, e->description);
}

static void print_rows(FILE *f, const struct index_page *page, const char *of_pid)
{
	for (size_t i = 0; i < endpoint_cnt; i++) {
		const struct endpoint *e = &endpoints[i];

		if (e->description && !e->named)
			print_row(f, e, "", of_pid, page->counts[i]);
		for (size_t j = 0; e->named && j < page->custom_cnt; j++)
			print_row(f, e, page->custom[j].name, of_pid, page->custom[j].held);
	}
}

static void print_page(FILE *f, const struct index_page *page, const char *of_pid)
{
	fputs("<!DOCTYPE html>\n<html><head><meta charset='utf-8'><title>/debug/pprof/</title>\n"
	      "<style>td { padding-right: 1em; vertical-align: top }"
	      " td:first-child { text-align: right }</style></head><body>\n"
	      "<h1>/debug/pprof/</h1>\n",
	      f);
	if (page->pid)
		fprintf(f, "<p>Profiles of process %u, by bpfprof.</p>\n", page->pid);
	else
		fputs("<p>No process is named: add <code>?pid=PID</code> to the address.</p>\n", f);
	fputs("<table><thead><tr><td>Count</td><td>Profile</td><td></td></tr></thead>\n", f);
	print_rows(f, page, of_pid);
	fprintf(f,
		"</table>\n<p><a href='goroutine?debug=2%s%s'>full stack dump of all "
		"threads</a></p>\n",
		*of_pid ? "&amp;" : "", of_pid);
	fputs("<p>Count: threads that there are; descriptors that are open; values that a profile "
	      "of the program's own holds; else samples that have been recorded by now. What is "
	      "not recorded all the time (<code>--always</code>) is recorded when it is asked for, "
	      "for the seconds that <code>seconds=</code> says, else for 5.</p>\n"
	      "</body></html>\n",
	      f);
}

char *index_page(const struct index_page *page, size_t *ret_sz)
{
	char of_pid[32] = "", *ret = NULL;
	FILE *f = open_memstream(&ret, ret_sz);

	if (!f)
		return NULL;
	if (page->pid && page->named)
		snprintf(of_pid, sizeof(of_pid), "pid=%u", page->pid);
	print_page(f, page, of_pid);
	if (!fclose(f))
		return ret;
	free(ret);
	return NULL;
}
