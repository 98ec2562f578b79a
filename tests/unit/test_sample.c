// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is sampled: how far the arithmetic is from the distributions that the weights of samples are
 * made from, counted over all 2^32 random numbers; and what runs with fixed seeds estimate.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <math.h>

#include "bpfprof.h"
#include "sample.h"

#define ALL (1ULL << 32) /* random numbers */

static const uint64_t rates[] = { 2, 100, 4096, 65536, 524288, 1 << 24, UINT32_MAX };
#define NR_RATES (sizeof(rates) / sizeof(rates[0]))

/* The first numbers from this seed, as others have published them. */
static void test_random(void **state)
{
	static const uint64_t known[] = { 6457827717110365317ULL, 3203168211198807973ULL,
					  9817491932198370423ULL, 4593380528125082431ULL,
					  16408922859458223821ULL };

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_true(sample_random64(1234567, i) == known[i]);
		assert_int_equal(sample_random(1234567, i), known[i] >> 32);
	}
}

static void test_top_bit(void **state)
{
	(void)state;
	assert_int_equal(sample_top_bit(0), 0);
	for (unsigned int i = 0; i < 64; i++) {
		assert_int_equal(sample_top_bit(1ULL << i), i);
		assert_int_equal(sample_top_bit((2ULL << i) - 1), i);
	}
}

static void test_log2(void **state)
{
	(void)state;
	assert_int_equal(sample_log2(1), 0);
	assert_int_equal(sample_log2(ALL), 32 << SAMPLE_LOG2_BITS);
	for (uint64_t v = 1; v < ALL; v += 1 + v / 5000) {
		double truth = log2((double)v) * (1 << SAMPLE_LOG2_BITS);
		double got = (double)sample_log2(v);

		assert_true(got <= truth + 1e-6 && got > truth - 2);
	}
}

/* ---- allocations ---- */

/*
 * Of all random numbers, those that give a distance above this one. The larger the number, the
 * shorter is the distance: each step of the logarithm's makes of a larger number one that is not
 * smaller.
 */
static uint64_t longer_than(uint64_t bytes, uint64_t rate)
{
	uint64_t low = 0, high = ALL;

	while (low < high) {
		uint64_t mid = (low + high) / 2;

		if (sample_distance((__u32)mid, rate) > bytes)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void test_falls(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_RATES; i++) {
		for (uint64_t r = 0; r + 1 < ALL; r += r < 20000 || r > ALL - 20000 ? 1 : 9973)
			assert_true(sample_distance((__u32)r, rates[i]) >=
				    sample_distance((__u32)r + 1, rates[i]));
		assert_true(sample_distance(UINT32_MAX, rates[i]) == 1);
	}
}

/* So many bytes go by without a sample with probability exp(-bytes / rate), wherever they begin:
 * but for a relative 2^-22, which is the logarithm's resolution, and for that of a random number.
 */
static void test_tail(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_RATES; i++) {
		for (uint64_t bytes = 1; bytes < 30 * rates[i]; bytes += 1 + bytes / 50) {
			double truth = exp(-(double)bytes / (double)rates[i]);
			double got = (double)longer_than(bytes, rates[i]) / (double)ALL;

			assert_true(fabs(got - truth) <= truth * 0x1p-22 + 0x1p-31);
		}
	}
}

/*
 * Of allocations of one size, one after another, a sample is taken of each n-th on average, where n
 * is the sum of the probabilities that the distance reaches beyond none, one, two... of them. Each
 * sample stands for 1 / (1 - exp(-size / rate)): that is n but for a relative 2^-22.
 */
static void test_unbiased(void **state)
{
	(void)state;
	for (size_t i = 0; i < NR_RATES; i++) {
		uint64_t from = rates[i] / 1024 ?: 1;

		for (uint64_t size = from; size < 40 * rates[i]; size += 1 + size * 3) {
			double weight = -1 / expm1(-(double)size / (double)rates[i]), n = 0;
			uint64_t longer = ALL;

			for (uint64_t at = 0; longer; at += size) {
				longer = at ? longer_than(at, rates[i]) : ALL;
				n += (double)longer / (double)ALL;
			}
			assert_true(fabs(n / weight - 1) <= 0x1p-22);
		}
	}
}

/* ---- allocations of many sizes, with seeds ---- */

struct row {
	uint64_t size, cnt;
};
/* those of tests/progs/alloc.c, schedule, and empty ones */
static const struct row schedule[] = {
	{ 0, 20000 },	{ 16, 20000 },	{ 64, 20000 },	{ 100, 10000 },
	{ 1000, 4000 }, { 5000, 1000 }, { 70000, 100 }, { 1 << 20, 8 },
};
#define NR_ROWS (sizeof(schedule) / sizeof(schedule[0]))
#define SEEDS 200

/* One thread allocates all of it, in an order that depends on the seed. */
static void sample_schedule(uint64_t seed, uint64_t rate, uint64_t sampled[NR_ROWS])
{
	uint64_t left[NR_ROWS], all = 0, draws = 0, distance, order = 0;

	for (size_t k = 0; k < NR_ROWS; k++) {
		left[k] = schedule[k].cnt;
		all += left[k];
		sampled[k] = 0;
	}
	distance = sample_distance(sample_random(seed, draws++), rate);
	for (; all; all--) {
		uint64_t pick = sample_random64(~seed, order++) % all, size;
		size_t k = 0;

		for (; pick >= left[k]; k++)
			pick -= left[k];
		left[k]--;
		size = schedule[k].size ?: 1;
		if (size < distance) {
			distance -= size;
			continue;
		}
		sampled[k]++;
		distance = sample_distance(sample_random(seed, draws++), rate);
	}
}

/*
 * What samples with these seeds estimate, size by size, is off the truth by as much as chance would
 * have it: the mean over all seeds is within 1.5 of its standard deviations, and the seeds' own are
 * spread as they should be. The numbers are the same each time.
 */
static void test_seeds(void **state)
{
	(void)state;
	for (size_t i = 2; i < 5; i++) {
		double sum[NR_ROWS] = { 0 }, squares[NR_ROWS] = { 0 }, all = 0;

		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			uint64_t sampled[NR_ROWS];

			sample_schedule(seed, rates[i], sampled);
			for (size_t k = 0; k < NR_ROWS; k++) {
				double size = (double)(schedule[k].size ?: 1), z;
				double p = -expm1(-size / (double)rates[i]);
				double n = (double)schedule[k].cnt;

				if (p > 0.999999)
					continue;
				z = ((double)sampled[k] - n * p) / sqrt(n * p * (1 - p));
				sum[k] += z;
				squares[k] += z * z;
			}
		}
		for (size_t k = 0; k < NR_ROWS; k++) {
			if (!squares[k])
				continue;
			assert_true(fabs(sum[k]) < 1.5 * sqrt(SEEDS));
			assert_true(squares[k] > 0.5 * SEEDS && squares[k] < 1.4 * SEEDS);
			all += sum[k];
		}
		assert_true(fabs(all) < sqrt(SEEDS * NR_ROWS));
	}
}

/* ---- waits ---- */

/* Of all random numbers, those with which a wait is recorded. */
static uint64_t recorded_of(uint64_t ns, uint64_t rate)
{
	/* number * rate < ns * 2^32 */
	uint64_t cnt = (uint64_t)((((unsigned __int128)ns << 32) + rate - 1) / rate);

	assert_true(cnt && cnt <= ALL);
	assert_true(sample_wait(0, ns, rate) && sample_wait((__u32)(cnt - 1), ns, rate));
	assert_true(cnt == ALL || !sample_wait((__u32)cnt, ns, rate));
	assert_true(cnt == ALL || !sample_wait(UINT32_MAX, ns, rate));
	return cnt;
}

/*
 * A recorded wait stands for `rate` ns, and for rate / ns waits: on average these are the wait's
 * own length, and one wait. What is lost to rounding is less than a ns, and, of the waits, a unit
 * of what is recorded and the resolution of a random number.
 */
static void test_waits(void **state)
{
	static const uint64_t wait_rates[] = {
		2, 3, 1000, 999983, 2000000, 1000000000, UINT32_MAX
	};

	(void)state;
	for (size_t i = 0; i < sizeof(wait_rates) / sizeof(wait_rates[0]); i++) {
		uint64_t rate = wait_rates[i];

		for (uint64_t ns = 1; ns < rate; ns += 1 + ns / 1000) {
			uint64_t cnt = recorded_of(ns, rate);
			unsigned __int128 mean = (unsigned __int128)cnt * rate;
			double waits = (double)cnt / (double)ALL *
				       (double)sample_wait_units(ns, rate, BPFPROF_UNIT) /
				       BPFPROF_UNIT;

			assert_true(mean >= (unsigned __int128)ns << 32);
			assert_true(mean < ((unsigned __int128)ns << 32) + rate);
			assert_true(waits > 1 - (double)ns / (double)rate / BPFPROF_UNIT - 1e-12);
			assert_true(waits < 1 + (double)rate / (double)ns / (double)ALL + 1e-12);
		}
		recorded_of(rate - 1, rate);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random), cmocka_unit_test(test_top_bit),
		cmocka_unit_test(test_log2),   cmocka_unit_test(test_falls),
		cmocka_unit_test(test_tail),   cmocka_unit_test(test_unbiased),
		cmocka_unit_test(test_seeds),  cmocka_unit_test(test_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
