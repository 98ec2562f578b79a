// SPDX-License-Identifier: BSD-2-Clause
/* Annotations as a step of a GitHub workflow prints them: it shows ten of a kind. */
#include <inttypes.h>
#include <string.h>

#include "base/util.h"
#include "judge/judge.h"
#include "judge/write.h"

#define MOST 10

/* property: what stands before the "::" */
static void write_escaped(const char *text, bool property, FILE *f)
{
	for (; *text; text++) {
		if (strchr("%\r\n", *text) || (property && strchr(":,", *text)))
			fprintf(f, "%%%02X", (unsigned char)*text);
		else
			fputc(*text, f);
	}
}

/* Where the function is, if that is a path from the root of the sources on. */
static void write_place(const struct judge_result *r, const struct judge_row *row, FILE *f)
{
	const struct runs_function *of = &r->runs->functions[row->function];
	const char *path = strtab__get(r->runs->strings, of->path);
	const char *root = r->options.source_root;
	size_t sz = root ? strlen(root) : 0;
	char text[WRITE_SZ];

	while (sz && root[sz - 1] == '/')
		sz--;
	if (row->what == JUDGE_TOTAL)
		return;
	if (*path == '/') {
		if (!root || strncmp(path, root, sz) != 0 || path[sz] != '/')
			return;
		path += sz;
		path += strspn(path, "/");
	}
	if (!*path || strlen(path) >= sizeof(text) || !strncmp(path, "../", 3) ||
	    strstr(path, "/../"))
		return;
	fputs("file=", f);
	write_escaped(util_printable(text, sizeof(text), path), true, f);
	if (of->line)
		fprintf(f, ",line=%" PRId64, of->line);
	fputc(',', f);
}

static void write_annotation(const struct judge_result *r, const struct judge_metric *m,
			     const struct judge_row *row, const char *kind, FILE *f)
{
	char name[256], change[96], verdict[WRITE_SZ], text[2 * WRITE_SZ];

	write_name(r, row, name, sizeof(name));
	snprintf(text, sizeof(text), "%s: %s", r->runs->metrics[m->metric].name, name);
	fprintf(f, "::%s ", kind);
	write_place(r, row, f);
	fputs("title=", f);
	write_escaped(text, true, f);
	snprintf(text, sizeof(text), "%s, %+.2f %% of the program: %s",
		 write_interval(row, change, sizeof(change)), 100 * row->of_program,
		 write_verdict(r, m, row, verdict, sizeof(verdict)));
	fputs("::", f);
	write_escaped(text, false, f);
	fputc('\n', f);
}

/* Rows are by impact already. What another row explains comes with that. Returns how many there are. */
static size_t write_all(const struct judge_result *r, enum judge_verdict verdict, const char *kind,
			FILE *f)
{
	size_t cnt = 0;

	for (size_t i = 0; i < r->metric_cnt; i++)
		for (size_t k = 0; k < r->metrics[i].row_cnt; k++) {
			const struct judge_row *row = &r->metrics[i].rows[k];

			if (row->verdict != verdict || !(row->target > 0) ||
			    row->because != JUDGE_NONE)
				continue;
			if (cnt++ < MOST)
				write_annotation(r, &r->metrics[i], row, kind, f);
		}
	return cnt;
}

void judge_write_github(const struct judge_result *r, FILE *f)
{
	char text[WRITE_SZ];
	size_t worse = write_all(r, JUDGE_REGRESSED, "error", f);
	size_t moved = write_all(r, JUDGE_MOVED, "warning", f);

	fputs("::notice title=bpfprof diff::", f);
	write_escaped(write_headline(r, text, sizeof(text)), false, f);
	fprintf(f, " (%zu worse, %zu moved)\n", worse, moved);
}
