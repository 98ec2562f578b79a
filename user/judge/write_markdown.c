// SPDX-License-Identifier: BSD-2-Clause
/* GitHub's dialect, for a step's summary or a comment. The first line is stable; a comment that others see
 * as nothing tells a program which of its comments to replace. */
#include <string.h>

#include "judge/judge.h"
#include "judge/write.h"

#define MARKER "<!-- bpfprof diff -->"
#define SHOWN 20   /* rows that are open */
#define FOLDED 200 /* rows that are not: a step's summary has 1 MB */

/* Names are anybody's: nothing in them is markup, and none ends a cell. */
static void write_escaped(const char *text, FILE *f)
{
	for (; *text; text++) {
		if (strchr("\\`*_{}[]<>#|~&@$", *text))
			fprintf(f, "&#%d;", *text);
		else
			fputc(*text, f);
	}
}

static void write_row(const struct judge_result *r, const struct judge_metric *m,
		      const struct judge_row *row, FILE *f)
{
	const char *unit = r->runs->metrics[m->metric].unit;
	char base[32], now[32], change[96], p[32], name[256], verdict[WRITE_SZ];

	fputs("| ", f);
	write_escaped(write_name(r, row, name, sizeof(name)), f);
	fprintf(f, " | %s | %s | %s | %+.2f %% | %s | ",
		write_cost(row->base, unit, base, sizeof(base)),
		write_cost(row->now, unit, now, sizeof(now)),
		write_interval(row, change, sizeof(change)), 100 * row->of_program,
		write_p(row->change < 0 ? row->p_better : row->p, p, sizeof(p)));
	write_escaped(write_verdict(r, m, row, verdict, sizeof(verdict)), f);
	fputs(" |\n", f);
}

static void write_head(FILE *f)
{
	fputs("| function | base | new | change, 90 % | of the program | p | verdict |\n"
	      "| --- | ---: | ---: | ---: | ---: | ---: | --- |\n",
	      f);
}

static bool differs(const struct judge_row *row)
{
	return row->what == JUDGE_TOTAL ||
	       (row->verdict != JUDGE_OK && row->verdict != JUDGE_CANNOT_TELL);
}

/* The rows that differ, or the others. Returns how many there are. */
static size_t write_rows(const struct judge_result *r, const struct judge_metric *m, bool differing,
			 size_t most, FILE *f)
{
	size_t cnt = 0;

	for (size_t i = 0; i < m->row_cnt; i++) {
		if (differs(&m->rows[i]) != differing)
			continue;
		if (f && cnt == 0)
			write_head(f);
		if (f && cnt < most)
			write_row(r, m, &m->rows[i], f);
		cnt++;
	}
	return cnt;
}

static void write_metric(const struct judge_result *r, const struct judge_metric *m, FILE *f)
{
	char text[WRITE_SZ];
	size_t cnt;

	fputc('\n', f);
	cnt = write_rows(r, m, true, SHOWN, f);
	if (cnt > SHOWN)
		fprintf(f, "\n%zu more are in the JSON form.\n", cnt - SHOWN);
	fputc('\n', f);
	write_escaped(write_design(r, m, text, sizeof(text)), f);
	fputs(".\n", f);
	for (int i = 0; write_remark(r, m, i, text, sizeof(text)); i++) {
		fputs("\n> ", f);
		write_escaped(text, f);
		fputc('\n', f);
	}
	cnt = write_rows(r, m, false, 0, NULL);
	if (!cnt)
		return;
	fprintf(f, "\n<details><summary>%zu more without a difference</summary>\n\n", cnt);
	write_rows(r, m, false, FOLDED, f);
	fputs("\n</details>\n", f);
}

void judge_write_markdown(const struct judge_result *r, FILE *f)
{
	char text[WRITE_SZ];

	fprintf(f, "### %s: ", judge_verdict_name(r->verdict));
	write_escaped(write_headline(r, text, sizeof(text)) +
			      strlen(judge_verdict_name(r->verdict)) + 2,
		      f);
	fputs("\n" MARKER "\n", f);
	for (size_t i = 0; i < r->metric_cnt; i++)
		if (r->metrics[i].gated)
			write_metric(r, &r->metrics[i], f);
}
