// SPDX-License-Identifier: BSD-2-Clause
/* What hits of the heap's probes are said to cost, by what was measured. That is made up here. */
#include <setjmp.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/util.h"
#include "kernel/heap_cost.h"

static const struct heap_cost cost = {
	.points = {
		{ 0, { 500, 300, 400, 450, 400, 400 }, { 30, 0, 20, 20, 20, 0 } },
		{ 2000, { 600, 300, 500, 550, 500, 500 }, { 30, 0, 20, 20, 20, 0 } },
		{ 4000, { 1000, 300, 900, 950, 900, 900 }, { 50, 0, 40, 40, 40, 0 } },
		{ 20000, { 2000, 700, 1700, 1750, 1700, 1700 }, { 50, 0, 40, 40, 40, 0 } },
		{ 60000, { 3000, 1100, 2500, 2550, 2500, 2500 }, { 50, 0, 40, 40, 40, 0 } },
	},
};
_Static_assert(BPFPROF_HIT_ENTRY == 0 && BPFPROF_HIT_RETURN == 1 && BPFPROF_HIT_FREE == 2 &&
		       BPFPROF_HIT_BEGIN == 3 && BPFPROF_HIT_USDT == 4 && BPFPROF_HIT_OTHER == 5 &&
		       BPFPROF_NR_HITS == 6,
	       "the order above");

static void need(double got, double wanted)
{
	if (fabs(got - wanted) > 1e-6 * wanted)
		fail_msg("%f, not %f", got, wanted);
}

static void test_after(void **state)
{
	static const struct {
		double gap, entry, ret, link;
	} rows[] = {
		{ -100, 500, 300, 30 },	  { 0, 500, 300, 30 },	     { 1000, 550, 300, 30 },
		{ 2000, 600, 300, 30 },	  { 3000, 800, 300, 40 },    { 4000, 1000, 300, 50 },
		{ 12000, 1500, 500, 50 }, { 60000, 3000, 1100, 50 }, { 1e12, 3000, 1100, 50 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct heap_cost_point p;

		heap_cost__after(&cost, rows[i].gap, &p);
		need(p.hit[BPFPROF_HIT_ENTRY], rows[i].entry);
		need(p.hit[BPFPROF_HIT_RETURN], rows[i].ret);
		need(p.link[BPFPROF_HIT_ENTRY], rows[i].link);
	}
}

static void test_one_process(void **state)
{
	const uint64_t hits[BPFPROF_NR_HITS] = { 100, 10, 90, 5, 1 };
	const uint64_t others[BPFPROF_NR_HITS] = { [BPFPROF_HIT_OTHER] = 7 };

	(void)state;
	need(heap_cost__ns(&cost, UPROBES_SESSION, hits, 1, 1e9),
	     100 * 3000 + 10 * 1100 + 90 * 2500 + 5 * 2550 + 2500);
	need(heap_cost__ns(&cost, UPROBES_SESSION, others, 1, 1e9), 7 * 2500);
	/* what they cost themselves is not other code */
	need(heap_cost__ns(&cost, UPROBES_SESSION, hits, 1, 400),
	     100 * 500 + 10 * 300 + 90 * 400 + 5 * 450 + 400);
}

static void test_several(void **state)
{
	const uint64_t entries[BPFPROF_NR_HITS] = { 100 }, frees[BPFPROF_NR_HITS] = { 0, 0, 100 };
	const uint64_t waited[BPFPROF_NR_HITS] = { 100, 100 };
	const uint64_t freed[BPFPROF_NR_HITS] = { 100, 0, 100 };

	(void)state;
	/* of a session link every return is waited for then */
	need(heap_cost__ns(&cost, UPROBES_SESSION, entries, 11, 1e9),
	     100 * (3000 + 10 * 50 + 1100));
	/* those that are counted are not counted twice, and are of the same calls; as frees are */
	need(heap_cost__ns(&cost, UPROBES_SESSION, waited, 11, 1e9), 100 * (3000 + 10 * 50 + 1100));
	need(heap_cost__ns(&cost, UPROBES_SESSION, waited, 1, 2000 + 500 + 300), 100 * (600 + 300));
	need(heap_cost__ns(&cost, UPROBES_SESSION, freed, 1, 2000 + 500 + 400), 100 * (600 + 500));
	need(heap_cost__ns(&cost, UPROBES_MULTI, entries, 11, 1e9), 100 * (3000 + 10 * 50));
	need(heap_cost__ns(&cost, UPROBES_SESSION, frees, 11, 1e9), 100 * (2500 + 10 * 40));
	need(heap_cost__ns(&cost, UPROBES_SESSION, frees, 0, 1e9), 100 * 2500);
}

static void test_none(void **state)
{
	const uint64_t hits[BPFPROF_NR_HITS] = { 0 };

	(void)state;
	assert_true(heap_cost__ns(&cost, UPROBES_SESSION, hits, 3, 1000) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_after),
		cmocka_unit_test(test_one_process),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
