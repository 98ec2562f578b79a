// SPDX-License-Identifier: BSD-2-Clause
/* The words that all forms share. */
#include "judge/write.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/util.h"
#include "judge/judge.h"
#include "judge/names.h"
#include "profile/units.h"

#define BENCH_RUNS 10  /* a side, as they are recommended */
#define COUNTED_RUNS 2 /* the same of what is counted one by one */

const struct judge_format judge_formats[] = {
	{ .name = "text", .write = judge_write_text },
	{ .name = "markdown", .write = judge_write_markdown },
	{ .name = "json", .write = judge_write_json },
	{ .name = "junit", .write = judge_write_junit },
	{ .name = "github", .write = judge_write_github },
	{ .name = "pprof", .shape = JUDGE_PPROF },
	{ .name = "folded", .shape = JUDGE_FOLDED },
	{ .name = "flamegraph", .shape = JUDGE_PAGE },
};
const size_t judge_format_cnt = ARRAY_SIZE(judge_formats);

const struct judge_format *judge_format_find(const char *name)
{
	for (size_t i = 0; i < judge_format_cnt; i++)
		if (!strcmp(judge_formats[i].name, name))
			return &judge_formats[i];
	return NULL;
}

const char *judge_format_names(char *text, size_t sz)
{
	size_t n = 0;

	*text = '\0';
	for (size_t i = 0; i < judge_format_cnt && n < sz; i++)
		n += (size_t)snprintf(text + n, sz - n, "%s%s", i ? ", " : "",
				      judge_formats[i].name);
	return text;
}

static const char *percent(double share, char *text, size_t sz)
{
	double p = 100 * share;

	if (!isfinite(p))
		snprintf(text, sz, "%s", p > 0 ? "new" : "?");
	else
		snprintf(text, sz, "%+.*f %%", fabs(p) < 0.995 ? 2 : fabs(p) < 99.5 ? 1 : 0, p);
	return text;
}

/* "+5.1 %", of a change of the logarithm */
static const char *write_change(double change, char *text, size_t sz)
{
	return percent(expm1(change), text, sz);
}

const char *write_interval(const struct judge_row *row, char *text, size_t sz)
{
	char change[32], low[32], high[32];

	if (row->appeared || row->gone)
		snprintf(text, sz, "%s", row->appeared ? "new" : "gone");
	else if (row->exact)
		snprintf(text, sz, "%s exactly", write_change(row->change, change, sizeof(change)));
	else if (isnan(row->low))
		write_change(row->change, text, sz);
	else
		snprintf(text, sz, "%s [%s, %s]", write_change(row->change, change, sizeof(change)),
			 write_change(row->low, low, sizeof(low)),
			 write_change(row->high, high, sizeof(high)));
	return text;
}

const char *write_cost(double cost, const char *unit, char *text, size_t sz)
{
	const struct units_scale *list, *own = units_find(unit, &list), *shown;

	if (!own) {
		snprintf(text, sz, "%.6g", cost);
		return text;
	}
	shown = units_pick(unit, cost);
	snprintf(text, sz, "%.3f %s", cost * own->factor / shown->factor, shown->suffix);
	return text;
}

const char *write_name(const struct judge_result *r, const struct judge_row *row, char *text,
		       size_t sz)
{
	char name[NAMES_SZ];

	if (row->what == JUDGE_TOTAL)
		snprintf(name, sizeof(name), "total");
	else
		snprintf(name, sizeof(name), "%.*s%s", NAMES_SZ - 32,
			 runs__name(r->runs, row->function),
			 row->what == JUDGE_CUM ? " and what it calls" : "");
	return util_printable(text, sz, name);
}

static void write_moved(const struct judge_result *r, const struct judge_row *row, char *text,
			size_t sz)
{
	char from[256] = "elsewhere", within[256];

	if (row->moved_from != UINT32_MAX)
		util_printable(from, sizeof(from), runs__name(r->runs, row->moved_from));
	if (row->moved_within == UINT32_MAX)
		snprintf(text, sz, "MOVED from %s (%s)", from, row->moved_why);
	else
		snprintf(text, sz, "MOVED from %s (within %s)", from,
			 util_printable(within, sizeof(within),
					runs__name(r->runs, row->moved_within)));
}

const char *write_unit(const struct judge_result *r)
{
	return r->runs->are_builds ? "build" : "run";
}

const char *write_verdict(const struct judge_result *r, const struct judge_metric *m,
			  const struct judge_row *row, char *text, size_t sz)
{
	char high[32], name[256];

	switch (row->verdict) {
	case JUDGE_OK:
		if (row->exact)
			snprintf(text, sz, "OK, %s",
				 row->exact_differs ?
					 write_change(row->change, high, sizeof(high)) :
					 "the same");
		else
			snprintf(text, sz, "OK, at most %s",
				 write_change(fmax(row->at_most, 0), high, sizeof(high)));
		break;
	case JUDGE_MOVED:
		write_moved(r, row, text, sz);
		break;
	case JUDGE_CANNOT_TELL:
		if (m->cross_machine && !row->relative)
			snprintf(text, sz, "CANNOT TELL, the %ss are of different machines",
				 write_unit(r));
		else if (m->confounded)
			snprintf(text, sz, "CANNOT TELL, one side was recorded after the other");
		else if (row->more >= JUDGE_MANY)
			snprintf(text, sz, "CANNOT TELL, %d more %ss a side or more", JUDGE_MANY,
				 write_unit(r));
		else
			snprintf(text, sz, "CANNOT TELL, %" PRIu64 " more %s%s a side", row->more,
				 write_unit(r), row->more == 1 ? "" : "s");
		break;
	default:
		if (row->because != JUDGE_NONE)
			snprintf(text, sz, "%s, because of %s", judge_verdict_name(row->verdict),
				 write_name(r, &m->rows[row->because], name, sizeof(name)));
		else
			snprintf(text, sz, "%s", judge_verdict_name(row->verdict));
	}
	return text;
}

const char *write_p(double p, char *text, size_t sz)
{
	if (isnan(p))
		snprintf(text, sz, "-");
	else if (p < 0.0001)
		snprintf(text, sz, "%.1e", p);
	else
		snprintf(text, sz, "%.4f", p);
	return text;
}

/* The gated metric that decided, and in it the row. */
static const struct judge_metric *decisive(const struct judge_result *r,
					   const struct judge_row **ret)
{
	const struct judge_metric *m = NULL;

	for (size_t i = 0; i < r->metric_cnt && !m; i++)
		if (r->metrics[i].gated && r->metrics[i].verdict == r->verdict)
			m = &r->metrics[i];
	*ret = &m->rows[0];
	for (size_t i = 0; i < m->row_cnt; i++) {
		const struct judge_row *row = &m->rows[i];

		if (row->verdict != r->verdict || !(row->target > 0) || row->because != JUDGE_NONE)
			continue;
		if (r->verdict == JUDGE_CANNOT_TELL && row->what != JUDGE_TOTAL && !row->named)
			continue;
		*ret = row;
		break;
	}
	return m;
}

const char *write_headline(const struct judge_result *r, char *text, size_t sz)
{
	const struct judge_row *row;
	const struct judge_metric *m = decisive(r, &row);
	char name[256], interval[128], share[32], verdict[WRITE_SZ];
	const char *metric = r->runs->metrics[m->metric].name;

	write_name(r, row, name, sizeof(name));
	write_interval(row, interval, sizeof(interval));
	percent(row->of_program, share, sizeof(share));
	if (r->verdict == JUDGE_REGRESSED || r->verdict == JUDGE_IMPROVED)
		snprintf(text, sz, "%s: %s: %s %s, %s of the program",
			 judge_verdict_name(r->verdict), metric, name, interval, share);
	else
		snprintf(text, sz, "%s: %s: %s %s: %s", judge_verdict_name(r->verdict), metric,
			 name, interval, write_verdict(r, m, row, verdict, sizeof(verdict)));
	return text;
}

/* How often each build ran. */
static const char *write_parts(const struct judge_result *r, const struct judge_metric *m,
			       char *text, size_t sz)
{
	uint32_t least = UINT32_MAX, most = 0;

	for (size_t i = 0; i < m->run_cnt; i++) {
		least = MIN(least, r->runs->runs[m->runs[i]].parts);
		most = MAX(most, r->runs->runs[m->runs[i]].parts);
	}
	*text = '\0';
	if (most > 1 && least == most)
		snprintf(text, sz, ", each of %" PRIu32 " runs", most);
	else if (most > 1)
		snprintf(text, sz, ", each of %" PRIu32 " to %" PRIu32 " runs", least, most);
	return text;
}

const char *write_design(const struct judge_result *r, const struct judge_metric *m, char *text,
			 size_t sz)
{
	char blocks[64] = "", test[128] = "", floor[128] = "", change[32], parts[64];

	if (m->block_cnt > 1)
		snprintf(blocks, sizeof(blocks), ", in %zu blocks", m->block_cnt);
	if (m->binomial)
		snprintf(test, sizeof(test), "binomial test of the numbers of samples");
	else if (m->one_run)
		snprintf(test, sizeof(test), "no test");
	else if (m->model)
		snprintf(test, sizeof(test), "t-test with Holm's adjustment (model-based)");
	else if (m->listed)
		snprintf(test, sizeof(test), "permutation test, all %" PRIu64 " arrangements",
			 m->arrangements);
	else
		snprintf(test, sizeof(test), "permutation test, 20000 arrangements, seed %" PRIu64,
			 r->seed);
	if (isfinite(m->rows[0].detectable) && !m->rows[0].exact)
		snprintf(floor, sizeof(floor),
			 "; a change of the total of %s would be found nine times out of ten",
			 write_change(m->rows[0].detectable, change, sizeof(change)));
	snprintf(text, sz, "%s: %zu %ss of base, %zu of new%s%s; %zu compared; %s%s%s",
		 r->runs->metrics[m->metric].name, m->cnt[0], write_unit(r), m->cnt[1],
		 write_parts(r, m, parts, sizeof(parts)), blocks, m->row_cnt, test,
		 m->row_cnt == 1 ? "" :
		 m->relative	 ? "; functions relative to what all have in common" :
				   "; functions as they are",
		 floor);
	return text;
}

/* The i-th of what is wrong with the runs; NULL behind the last one. */
static const char *write_health(const struct judge_metric *m, const char *metric, int i, char *text,
				size_t sz)
{
	const struct judge_health *h = &m->health;
	char change[32];

	if (!isnan(h->first) && i-- == 0) {
		snprintf(text, sz,
			 "%s: the first run of a block costs %s, compared with the others: warm up "
			 "with more runs",
			 metric, write_change(h->first, change, sizeof(change)));
		return text;
	}
	if (!isnan(h->trend) && i-- == 0) {
		snprintf(text, sz,
			 "%s: from the first run to the last it changes by %s on both sides: the "
			 "machine does",
			 metric, write_change(h->trend, change, sizeof(change)));
		return text;
	}
	if (!isnan(h->humps) && i-- == 0) {
		snprintf(text, sz,
			 "%s: the runs of both sides fall into two groups that are %s apart: they "
			 "do "
			 "one thing or another",
			 metric, write_change(h->humps, change, sizeof(change)));
		return text;
	}
	return NULL;
}

static bool has_as_is(const struct judge_metric *m)
{
	for (size_t i = 0; i < m->row_cnt; i++)
		if (m->rows[i].as_is)
			return true;
	return false;
}

const char *write_remark(const struct judge_result *r, const struct judge_metric *m, int i,
			 char *text, size_t sz)
{
	const char *metric = r->runs->metrics[m->metric].name;
	char shift[32];

	if (m->one_run && i-- == 0) {
		snprintf(text, sz,
			 "%s: one run a side shows no difference between runs: this is a hint, "
			 "and never fails. What would decide: bpfprof bench --repeat %d --against "
			 "'BASE COMMAND' -- COMMAND",
			 metric,
			 m->counted && !r->runs->metrics[m->metric].events ? COUNTED_RUNS :
									     BENCH_RUNS);
		return text;
	}
	if (m->cross_machine && i-- == 0) {
		snprintf(text, sz,
			 "%s: the runs are of different machines, which differ in what each "
			 "function costs, too: only what functions have of the whole is compared, "
			 "and a change may be the machine's",
			 metric);
		return text;
	}
	if (!m->one_run && m->least_p > m->alpha && i-- == 0) {
		snprintf(text, sz,
			 "%s: so few %ss cannot show a regression: the least p that they allow is "
			 "%.3f, above %.3f",
			 metric, write_unit(r), m->least_p, m->alpha);
		return text;
	}
	if (m->confounded && i-- == 0) {
		snprintf(text, sz,
			 "%s: one side was recorded after the other, so that whatever changed on "
			 "the "
			 "machine meanwhile counts as a change: record them in turns",
			 metric);
		return text;
	}
	if (!m->exact_totals && !m->counted && i-- == 0) {
		snprintf(text, sz, "%s: the total of a run is the sum of its values", metric);
		return text;
	}
	if (m->relative && i-- == 0) {
		snprintf(text, sz,
			 "%s: all functions together changed by %s, which is left out of theirs%s",
			 metric, write_change(m->common_shift, shift, sizeof(shift)),
			 has_as_is(m) ? ", but not of all that --fail-on names" : "");
		return text;
	}
	return write_health(m, metric, i, text, sz);
}
