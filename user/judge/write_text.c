// SPDX-License-Identifier: BSD-2-Clause
/* For people, at a terminal. The first line is stable. */
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "judge/judge.h"
#include "judge/write.h"

#define SHOWN 40  /* rows with a verdict */
#define OTHERS 10 /* rows without a difference */

static void write_row(const struct judge_result *r, const struct judge_metric *m,
		      const struct judge_row *row, FILE *f)
{
	const char *unit = r->runs->metrics[m->metric].unit;
	char base[32], now[32], change[96], share[32], p[32], name[256], verdict[WRITE_SZ];

	snprintf(share, sizeof(share), "%+.2f %%", 100 * row->of_program);
	fprintf(f, "%11s %11s  %-30s %9s %8s  %s: %s\n",
		write_cost(row->base, unit, base, sizeof(base)),
		write_cost(row->now, unit, now, sizeof(now)),
		write_interval(row, change, sizeof(change)), share,
		write_p(row->change < 0 ? row->p_better : row->p, p, sizeof(p)),
		write_name(r, row, name, sizeof(name)),
		write_verdict(r, m, row, verdict, sizeof(verdict)));
}

static void write_metric(const struct judge_result *r, const struct judge_metric *m, FILE *f)
{
	char text[WRITE_SZ];
	size_t shown = 0, others = 0, left_out = 0;

	fprintf(f, "\n%s\n", write_design(r, m, text, sizeof(text)));
	for (int i = 0; write_remark(r, m, i, text, sizeof(text)); i++)
		fprintf(f, "note: %s\n", text);
	fprintf(f, "\n%11s %11s  %-30s %9s %8s\n", "base", "new", "change [90 %]", "of total", "p");
	for (size_t i = 0; i < m->row_cnt; i++) {
		const struct judge_row *row = &m->rows[i];
		bool same = row->verdict == JUDGE_OK || row->verdict == JUDGE_CANNOT_TELL;

		if (same ? others++ < OTHERS : shown++ < SHOWN)
			write_row(r, m, row, f);
		else
			left_out++;
	}
	if (left_out)
		fprintf(f, "%zu more are in -f json\n", left_out);
}

void judge_write_text(const struct judge_result *r, FILE *f)
{
	char text[WRITE_SZ];

	fprintf(f, "%s\n", write_headline(r, text, sizeof(text)));
	/* what decides comes first */
	for (int gated = 1; gated >= 0; gated--)
		for (size_t i = 0; i < r->metric_cnt; i++)
			if (r->metrics[i].gated == gated)
				write_metric(r, &r->metrics[i], f);
}
