// SPDX-License-Identifier: BSD-2-Clause
#include "judge/maxt.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

/* Sums that are the same number are not the same double when they are added up in another order. */
#define TIE 1e-10

struct ranked {
	double value;
	size_t index;
};

struct walk {
	const struct maxt *t;
	struct ranked *order; /* hypotheses, the smallest statistic first */
	double *rows;	      /* run by run, the scaled values of all hypotheses in that order */
	double *sums;	      /* of an arrangement */
	uint64_t *reached;    /* of each hypothesis: arrangements whose maximum reaches it */
	double *tops;	      /* of each arrangement its maximum */
	uint8_t *news;
};

static int compare(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void walk_done(struct walk *w)
{
	free(w->order);
	free(w->rows);
	free(w->sums);
	free(w->reached);
	free(w->tops);
	free(w->news);
}

static int walk_begin(struct walk *w, const struct maxt *t, size_t arrangements)
{
	size_t runs = t->design->cnt;

	w->t = t;
	w->order = calloc(t->cnt, sizeof(*w->order));
	w->rows = calloc(runs * t->cnt, sizeof(*w->rows));
	w->sums = calloc(t->cnt, sizeof(*w->sums));
	w->reached = calloc(t->cnt, sizeof(*w->reached));
	w->tops = calloc(arrangements, sizeof(*w->tops));
	w->news = calloc(runs, 1);
	return w->order && w->rows && w->sums && w->reached && w->tops && w->news ? 0 : -ENOMEM;
}

/* The statistics of an arrangement. */
static void add_up(struct walk *w, const uint8_t *news)
{
	const struct maxt *t = w->t;

	memset(w->sums, 0, t->cnt * sizeof(*w->sums));
	for (size_t r = 0; r < t->design->cnt; r++) {
		const double *row = w->rows + r * t->cnt;

		for (size_t i = 0; news[r] && i < t->cnt; i++)
			w->sums[i] += row[i];
	}
}

static void fill_rows(struct walk *w, bool ordered)
{
	const struct maxt *t = w->t;
	double weight = design_weight(t->design);

	for (size_t i = 0; i < t->cnt; i++) {
		size_t h = ordered ? w->order[i].index : i;

		for (size_t r = 0; r < t->design->cnt; r++)
			w->rows[r * t->cnt + i] = t->sign * t->w[h][r] / (t->scale[h] * weight);
	}
}

static void rank(struct walk *w)
{
	fill_rows(w, false);
	add_up(w, w->t->design->news);
	for (size_t i = 0; i < w->t->cnt; i++)
		w->order[i] = (struct ranked){ w->sums[i], i };
	qsort(w->order, w->t->cnt, sizeof(*w->order), compare);
	fill_rows(w, true);
}

/* Whose observed value the running maximum, from the smallest on, reaches. */
static double count(struct walk *w)
{
	double max = -INFINITY;

	for (size_t i = 0; i < w->t->cnt; i++) {
		double value = w->order[i].value;

		max = MAX(max, w->sums[i]);
		w->reached[i] += max >= value - TIE * fmax(1, fabs(value));
	}
	return max;
}

int maxt_test(const struct maxt *t, double level, double *p, double *ret_critical, bool *ret_exact)
{
	struct walk w = { 0 };
	struct design_walk d;
	uint64_t all, more;
	double last = 0;
	size_t n = 0;
	int err;

	all = MIN(design_arrangements(t->design), (uint64_t)DESIGN_ENUMERATED);
	err = walk_begin(&w, t, all);
	if (err) {
		walk_done(&w);
		return err;
	}
	rank(&w);
	design_walk__begin(&d, t->design, t->seed, w.news);
	while (design_walk__next(&d)) {
		add_up(&w, w.news);
		w.tops[n++] = count(&w);
	}
	/* what was drawn does not hold the observed one */
	more = d.exact ? 0 : 1;
	for (size_t i = t->cnt; i--;) {
		last = fmax(last, (double)(w.reached[i] + more) / (double)(n + more));
		p[w.order[i].index] = last;
	}
	qsort(w.tops, n, sizeof(*w.tops), compare_doubles);
	*ret_critical = w.tops[MIN((size_t)ceil((1 - level) * (double)n), n - 1)];
	*ret_exact = d.exact;
	walk_done(&w);
	return 0;
}

int maxt_holm(double *p, size_t cnt)
{
	struct ranked *order = calloc(MAX(cnt, (size_t)1), sizeof(*order));
	double last = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		order[i] = (struct ranked){ p[i], i };
	qsort(order, cnt, sizeof(*order), compare);
	for (size_t i = 0; i < cnt; i++) {
		last = fmax(last, fmin(1, order[i].value * (double)(cnt - i)));
		p[order[i].index] = last;
	}
	free(order);
	return 0;
}
