/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/types.h>

#include "diff_pictures.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "judge/judge.h"
#include "judge/picture.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/text.h"
#include "view/page.h"

/* ---- What the page says of functions ---- */

/* The rows of a function, NULL: there is none. */
struct rows {
	const struct judge_row *cum, *self;
};

/* By function, for the caller to free. NULL: no memory. */
static struct rows *find_rows(const struct judge_result *r, const struct judge_metric *m)
{
	struct rows *ret = calloc(r->runs->function_cnt + 1, sizeof(*ret));

	for (size_t i = 0; ret && i < m->row_cnt; i++) {
		const struct judge_row *row = &m->rows[i];

		if (row->what == JUDGE_SELF)
			ret[row->function].self = row;
		if (row->what == JUDGE_CUM)
			ret[row->function].cum = row;
		/* callers that it stands for */
		for (size_t k = 0; k < row->chain_cnt; k++)
			ret[row->chain[k]].cum = row;
	}
	/* what calls nothing of weight has one row */
	for (size_t f = 0; ret && f < r->runs->function_cnt; f++)
		if (!ret[f].cum)
			ret[f].cum = ret[f].self;
	return ret;
}

/* Of the change where its interval leaves out 0. */
static int sign_of(const struct judge_row *row)
{
	if (row->exact && !row->exact_differs)
		return 0;
	return row->low > 0 ? 1 : row->high < 0 ? -1 : 0;
}

/* row NULL: it was not judged. The text is to be freed. 0 or -ENOMEM. */
static int fill_judged(const struct judge_result *r, const struct judge_metric *m,
		       const struct judge_row *row, struct page_judged *ret)
{
	char name[WRITE_SZ], interval[128], verdict[WRITE_SZ], p[32];
	double common, sure;
	char *text;

	if (!row)
		return 0;
	common = row->relative ? exp(row->absolute - row->change) : 1;
	sure = row->change < 0 ? row->p_better : row->p;
	if (asprintf(&text, "%s: %s, p %s: %s", write_name(r, row, name, sizeof(name)),
		     write_interval(row, interval, sizeof(interval)), write_p(sure, p, sizeof(p)),
		     write_verdict(r, m, row, verdict, sizeof(verdict))) < 0)
		return -ENOMEM;
	*ret = (struct page_judged){ sign_of(row), isfinite(common) ? common : 1, text };
	return 0;
}

static void free_notes(struct page_note *notes, size_t cnt)
{
	for (size_t i = 0; notes && i < cnt; i++) {
		free((char *)notes[i].cum.text);
		free((char *)notes[i].self.text);
	}
	free(notes);
}

/* One for each function, then that of all. NULL: no memory. */
static struct page_note *make_notes(const struct judge_result *r, const struct judge_metric *m)
{
	size_t cnt = r->runs->function_cnt;
	struct page_note *notes = calloc(cnt + 1, sizeof(*notes));
	struct rows *rows = find_rows(r, m);
	int err = notes && rows ? 0 : -ENOMEM;

	for (uint32_t f = 0; !err && f < cnt; f++) {
		notes[f].name = runs__name(r->runs, f);
		err = fill_judged(r, m, rows[f].cum, &notes[f].cum);
		if (!err)
			err = fill_judged(r, m, rows[f].self, &notes[f].self);
	}
	for (size_t i = 0; !err && i < m->row_cnt; i++)
		if (m->rows[i].what == JUDGE_TOTAL)
			err = fill_judged(r, m, &m->rows[i], &notes[cnt].cum);
	free(rows);
	if (!err)
		return notes;
	free_notes(notes, cnt + 1);
	return NULL;
}

/* ---- Forms ---- */

static int write_page(const struct judge_result *r, const struct profile *p, FILE *f)
{
	const struct judge_metric *m = judge_picture_metric(r);
	char title[WRITE_SZ], base[128], now[128], remark[WRITE_SZ];
	struct page_facts facts = {
		.title = write_headline(r, title, sizeof(title)),
		.sides = { judge_picture_side(r, RUNS_BASE, base, sizeof(base)),
			   judge_picture_side(r, RUNS_NEW, now, sizeof(now)) },
		.notes = make_notes(r, m),
		.note_cnt = r->runs->function_cnt + 1,
	};
	int err;

	/* the first remark says why */
	if (m->one_run || m->cross_machine || m->confounded || m->least_p > m->alpha)
		facts.warning = write_remark(r, m, 0, remark, sizeof(remark));
	err = facts.notes ? page_write(p, &facts, f) : -ENOMEM;

	free_notes((struct page_note *)facts.notes, facts.note_cnt);
	return err;
}

int diff_picture_write(const struct judge_result *r, enum judge_shape shape, FILE *f)
{
	/* the page says of one metric what was judged, and folded stacks have one */
	size_t others = shape == JUDGE_PPROF ? PROFILE_MAX_VALUES : 0;
	struct profile *p;
	int err = judge_picture(r, others, &p);

	if (err)
		return err;
	if (shape == JUDGE_PPROF)
		err = pprof_write(p, f);
	else if (shape == JUDGE_FOLDED)
		err = folded_write_difference(p, f);
	else
		err = write_page(r, p, f);
	profile__free(p);
	return err;
}
