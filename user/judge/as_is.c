// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a gate names is judged as it is, too, and not only by what the other functions do not share: a build that
 * makes all of them slower changes none of them relative to the others, and where only functions are gated there
 * is no total to tell it. Which of both a row is can not be chosen by what the sides have in common without
 * looking at the labels. So both are tested, as two hypotheses of the family, whatever the labels are: the chance
 * of a false alarm in any of them stays what it was.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/parts.h"

static bool is_twofold(const struct judge_row *row)
{
	return row->named && row->what != JUDGE_TOTAL;
}

static double *copy(const double *values, size_t cnt)
{
	double *ret = calloc(cnt, sizeof(*ret));

	if (ret && values)
		memcpy(ret, values, cnt * sizeof(*ret));
	return ret;
}

int as_is_add(struct measure *ms)
{
	struct judge_metric *m = ms->m;
	size_t more = 0, at = 1, n = m->run_cnt;
	struct judge_row *rows;

	if (!m->relative || m->cross_machine || m->one_run)
		return 0;
	for (size_t i = 0; i < m->row_cnt; i++)
		more += is_twofold(&m->rows[i]);
	rows = more ? reallocarray(m->rows, m->row_cnt + more, sizeof(*rows)) : m->rows;
	if (!rows)
		return -ENOMEM;
	m->rows = rows;
	/* behind the total, whose variance is its own as well */
	memmove(&rows[1 + more], &rows[1], (m->row_cnt - 1) * sizeof(*rows));
	memset(&rows[1], 0, more * sizeof(*rows));
	m->row_cnt += more;
	for (size_t i = 1 + more; i < m->row_cnt; i++) {
		struct judge_row *row = &rows[at];

		if (!is_twofold(&rows[i]))
			continue;
		*row = rows[i];
		row->as_is = true;
		row->chain = NULL;
		row->chain_cnt = 0;
		row->costs = copy(rows[i].costs, n);
		row->z = copy(NULL, n);
		row->w = copy(NULL, n);
		at++;
		if (!row->costs || !row->z || !row->w)
			return -ENOMEM;
	}
	return 0;
}

/* Does the verdict of the row as it is count more than the other one? What got worse by either did; what is OK is
 * so by both. */
static bool is_decisive(const struct judge_metric *m, const struct judge_row *as_is,
			const struct judge_row *other)
{
	static const int weights[] = {
		[JUDGE_OK] = 0,	   [JUDGE_IMPROVED] = 1,  [JUDGE_CANNOT_TELL] = 2,
		[JUDGE_MOVED] = 3, [JUDGE_REGRESSED] = 4,
	};

	/* a common change that may be chance is no reason to believe that it did not only move */
	if (as_is->verdict == JUDGE_REGRESSED && other->verdict == JUDGE_MOVED)
		return m->common_changed;
	if (as_is->verdict != other->verdict)
		return weights[as_is->verdict] > weights[other->verdict];
	switch (as_is->verdict) {
	case JUDGE_OK:
		return as_is->at_most > other->at_most;
	case JUDGE_CANNOT_TELL:
		return as_is->more > other->more;
	default:
		return m->common_changed;
	}
}

void as_is_merge(struct judge_metric *m)
{
	size_t more = 0;

	while (1 + more < m->row_cnt && m->rows[1 + more].as_is)
		more++;
	for (size_t i = 1; i <= more; i++) {
		struct judge_row *as_is = &m->rows[i], *row = &m->rows[1 + more], swap;

		while (row->what != as_is->what || row->function != as_is->function)
			row++;
		if (is_decisive(m, as_is, row)) {
			as_is->chain = row->chain;
			as_is->chain_cnt = row->chain_cnt;
			row->chain = NULL;
			swap = *row;
			*row = *as_is;
			*as_is = swap;
		}
		free(as_is->costs);
		free(as_is->z);
		free(as_is->w);
	}
	m->row_cnt -= more;
	memmove(&m->rows[1], &m->rows[1 + more], (m->row_cnt - 1) * sizeof(*m->rows));
}
