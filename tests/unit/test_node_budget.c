/* SPDX-License-Identifier: BSD-2-Clause */
/* What the agent gives up to keep its node's budget, and when it comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/node_budget.h"

#define MIB (1ULL << 20)

static struct node_budget settled(double max_cpu, uint64_t max_memory)
{
	struct node_budget b = { .max_cpu = max_cpu, .max_memory = max_memory };

	/* whatever the first ones cost */
	for (int i = 0; i < NODE_BUDGET_SETTLE; i++)
		assert_false(node_budget__window(&b, 1, 1000 * MIB));
	assert_int_equal(b.step, NODE_BUDGET_ALL);
	return b;
}

/* Windows of the same cost until the step is another one. Returns how many, 0: more than `most`. */
static int until_changed(struct node_budget *b, double cpu, uint64_t memory, int most)
{
	for (int i = 1; i <= most; i++)
		if (node_budget__window(b, cpu, memory))
			return i;
	return 0;
}

static void nothing_is_given_up_within_it(void **state)
{
	struct node_budget b = settled(0.01, 100 * MIB), none = settled(0, 0);

	(void)state;
	assert_int_equal(until_changed(&b, 0.01, 100 * MIB, 1000), 0);
	assert_int_equal(until_changed(&none, 1, UINT64_MAX, 1000), 0);
	/* one window alone is none */
	for (int i = 0; i < 100; i++)
		assert_false(node_budget__window(&b, i % 2 ? 0.02 : 0.01, 0));
	assert_int_equal(b.step, NODE_BUDGET_ALL);
}

static void it_is_given_up_in_steps(void **state)
{
	const struct {
		double cpu;
		uint64_t memory;
	} above[] = { { 0.011, 0 }, { 0, 101 * MIB } };

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct node_budget b = settled(0.01, 100 * MIB);

		for (int step = 1; step < NODE_BUDGET_STEPS; step++) {
			assert_int_equal(until_changed(&b, above[k].cpu, above[k].memory, 100),
					 NODE_BUDGET_ABOVE);
			assert_int_equal(b.step, step);
		}
		/* there is nothing more */
		assert_int_equal(until_changed(&b, above[k].cpu, above[k].memory, 100), 0);
		assert_int_equal(b.step, NODE_BUDGET_FEW);
	}
}

static void it_comes_back(void **state)
{
	struct node_budget b = settled(0.01, 100 * MIB);

	(void)state;
	while (b.step < NODE_BUDGET_QUARTER)
		node_budget__window(&b, 0.02, 0);
	/* the step before would do twice as much */
	assert_int_equal(until_changed(&b, 0.006, 0, 1000), 0);
	/* and it would take some more memory */
	assert_int_equal(until_changed(&b, 0.001, 91 * MIB, 1000), 0);
	assert_in_range(until_changed(&b, 0.005, 90 * MIB, 1000), NODE_BUDGET_CALM,
			NODE_BUDGET_CALM_MAX);
	assert_int_equal(b.step, NODE_BUDGET_HALF);
	assert_in_range(until_changed(&b, 0.005, 60 * MIB, 1000), NODE_BUDGET_CALM,
			NODE_BUDGET_CALM_MAX);
	assert_int_equal(b.step, NODE_BUDGET_ALL);
}

/* However much is given up at once: it is tried as soon as after one step. */
static void it_comes_back_from_the_last_step(void **state)
{
	struct node_budget b = settled(0.01, 0);

	(void)state;
	while (b.step < NODE_BUDGET_FEW)
		node_budget__window(&b, 0.02, 0);
	for (int step = NODE_BUDGET_FEW - 1; step >= 0; step--) {
		assert_int_equal(until_changed(&b, 0.001, 0, 1000), NODE_BUDGET_CALM);
		assert_int_equal(b.step, step);
	}
}

/* Where a step holds and the one before does not, it is tried ever more rarely. */
static void check_swing(double cpu, uint64_t memory, double cpu_less, uint64_t memory_less)
{
	struct node_budget b = settled(0.01, 100 * MIB);
	int calm = 0, last = 0;

	for (int i = 0; i < 10; i++) {
		assert_int_equal(until_changed(&b, cpu, memory, 100), NODE_BUDGET_ABOVE);
		assert_int_equal(b.step, NODE_BUDGET_HALF);
		calm = until_changed(&b, cpu_less, memory_less, 1000);
		assert_in_range(calm, last, NODE_BUDGET_CALM_MAX);
		assert_int_equal(b.step, NODE_BUDGET_ALL);
		last = calm;
	}
	assert_int_equal(last, NODE_BUDGET_CALM_MAX);
	/* and it is forgotten when all has been well for long */
	assert_int_equal(until_changed(&b, cpu_less, memory_less, 2 * NODE_BUDGET_CALM_MAX), 0);
	assert_int_equal(until_changed(&b, cpu, memory, 100), NODE_BUDGET_ABOVE);
	assert_int_equal(until_changed(&b, cpu_less, memory_less, 1000), NODE_BUDGET_CALM);
}

static void it_does_not_swing(void **state)
{
	(void)state;
	check_swing(0.011, 0, 0.004, 0);
	check_swing(0.004, 101 * MIB, 0.004, 85 * MIB);
}

/* Short loads of the CPU on a node whose memory is well used, but within its limit, do not add up. */
static void cpu_peaks_do_not_add_up(void **state)
{
	struct node_budget b = settled(0.01, 150 * MIB);

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(until_changed(&b, 0.012, 100 * MIB, 100), NODE_BUDGET_ABOVE);
		assert_int_equal(b.step, NODE_BUDGET_HALF);
		assert_in_range(until_changed(&b, 0.0001, 100 * MIB, 1000), NODE_BUDGET_CALM,
				NODE_BUDGET_CALM_MAX);
		assert_int_equal(b.step, NODE_BUDGET_ALL);
	}
}

static void samples_are_fewer_with_each_step(void **state)
{
	static const uint32_t every[NODE_BUDGET_STEPS] = { 1, 2, 4, 8, 8, 8 };

	(void)state;
	for (int i = 0; i < NODE_BUDGET_STEPS; i++)
		assert_int_equal(node_budget_cpu_every(i), every[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_given_up_within_it),
		cmocka_unit_test(it_is_given_up_in_steps),
		cmocka_unit_test(it_comes_back),
		cmocka_unit_test(it_comes_back_from_the_last_step),
		cmocka_unit_test(it_does_not_swing),
		cmocka_unit_test(cpu_peaks_do_not_add_up),
		cmocka_unit_test(samples_are_fewer_with_each_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
