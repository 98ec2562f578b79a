// SPDX-License-Identifier: BSD-2-Clause
/* JUnit's XML: a test for each total that can fail, and for each function that did, that moved, or that a
 * gate names. */

#include "judge/judge.h"
#include "judge/write.h"

static void write_escaped(const char *text, FILE *f)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", f);
			break;
		case '<':
			fputs("&lt;", f);
			break;
		case '>':
			fputs("&gt;", f);
			break;
		case '"':
			fputs("&quot;", f);
			break;
		default:
			fputc(*text, f);
		}
	}
}

static bool is_test(const struct judge_row *row)
{
	if (!(row->target > 0))
		return false;
	return row->what == JUDGE_TOTAL || row->named || row->verdict == JUDGE_REGRESSED ||
	       row->verdict == JUDGE_MOVED;
}

/* Of all gated metrics: tests, and those with a verdict. */
static size_t count(const struct judge_result *r, bool all, enum judge_verdict verdict)
{
	size_t ret = 0;

	for (size_t i = 0; i < r->metric_cnt; i++)
		for (size_t k = 0; k < r->metrics[i].row_cnt; k++) {
			const struct judge_row *row = &r->metrics[i].rows[k];

			ret += is_test(row) && (all || row->verdict == verdict);
		}
	return ret;
}

static void write_test(const struct judge_result *r, const struct judge_metric *m,
		       const struct judge_row *row, FILE *f)
{
	char name[256], change[96], verdict[WRITE_SZ];
	const char *element = row->verdict == JUDGE_REGRESSED	? "failure" :
			      row->verdict == JUDGE_CANNOT_TELL ? "skipped" :
								  NULL;

	fputs("<testcase classname=\"bpfprof.", f);
	write_escaped(r->runs->metrics[m->metric].name, f);
	fputs("\" name=\"", f);
	write_escaped(write_name(r, row, name, sizeof(name)), f);
	fputs(element ? "\"><" : "\"><system-out>", f);
	if (element)
		fprintf(f, "%s message=\"", element);
	write_escaped(write_interval(row, change, sizeof(change)), f);
	fputs(": ", f);
	write_escaped(write_verdict(r, m, row, verdict, sizeof(verdict)), f);
	fputs(element ? "\"/></testcase>\n" : "</system-out></testcase>\n", f);
}

void judge_write_junit(const struct judge_result *r, FILE *f)
{
	fprintf(f,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuite name=\"bpfprof diff\" tests=\"%zu\" failures=\"%zu\" errors=\"0\" "
		"skipped=\"%zu\">\n",
		count(r, true, 0), count(r, false, JUDGE_REGRESSED),
		count(r, false, JUDGE_CANNOT_TELL));
	for (size_t i = 0; i < r->metric_cnt; i++)
		for (size_t k = 0; k < r->metrics[i].row_cnt; k++)
			if (is_test(&r->metrics[i].rows[k]))
				write_test(r, &r->metrics[i], &r->metrics[i].rows[k], f);
	fputs("</testsuite>\n", f);
}
