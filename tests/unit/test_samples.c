/* SPDX-License-Identifier: BSD-2-Clause */
/* samples: only records whose own figures say how long they are get any further. The source is
 * included for what judges them. */
#include <linux/types.h>

#include "kernel/samples.c"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

static union {
	struct bpfprof_rec rec;
	uint8_t bytes[sizeof(struct bpfprof_rec) + sizeof(struct bpfprof_raw) +
		      BPFPROF_MAX_KFRAMES * 8 + BPFPROF_RAW_STACK_SZ + 8];
} u;

static void sample(uint16_t kernel_cnt, uint16_t user_cnt)
{
	u.rec = (struct bpfprof_rec){ .type = BPFPROF_REC_SAMPLE,
				      .kernel_cnt = kernel_cnt,
				      .user_cnt = user_cnt };
}

static void raw(uint16_t kernel_cnt, uint32_t stack_sz)
{
	struct bpfprof_raw r = { .stack_sz = stack_sz };

	u.rec = (struct bpfprof_rec){ .type = BPFPROF_REC_RAW, .kernel_cnt = kernel_cnt };
	memcpy(&u.rec + 1, &r, sizeof(r));
}

/* This long, and no other length. */
static void expect_only(size_t sz)
{
	assert_true(well_formed(&u.rec, sz));
	assert_false(well_formed(&u.rec, sz - 1));
	assert_false(well_formed(&u.rec, sz + 1));
	assert_false(well_formed(&u.rec, sz + 8));
	assert_false(well_formed(&u.rec, 1U << 30));
	assert_false(well_formed(&u.rec, SIZE_MAX));
}

static void test_sample(void **state)
{
	(void)state;
	sample(0, 0);
	expect_only(sizeof(u.rec));
	sample(3, 4);
	expect_only(sizeof(u.rec) + 7 * 8);
	sample(BPFPROF_MAX_KFRAMES, BPFPROF_MAX_UFRAMES);
	expect_only(sizeof(u.rec) + (BPFPROF_MAX_KFRAMES + BPFPROF_MAX_UFRAMES) * 8);
	sample(BPFPROF_MAX_KFRAMES + 1, 0);
	assert_false(well_formed(&u.rec, sizeof(u.rec) + (BPFPROF_MAX_KFRAMES + 1) * 8));
	sample(0, BPFPROF_MAX_UFRAMES + 1);
	assert_false(well_formed(&u.rec, sizeof(u.rec) + (BPFPROF_MAX_UFRAMES + 1) * 8));
}

static void test_raw(void **state)
{
	const size_t head = sizeof(struct bpfprof_rec) + sizeof(struct bpfprof_raw);

	(void)state;
	raw(0, 0);
	expect_only(head);
	raw(2, 100);
	expect_only(head + 2 * 8 + 100);
	raw(BPFPROF_MAX_KFRAMES, BPFPROF_RAW_STACK_SZ);
	expect_only(head + BPFPROF_MAX_KFRAMES * 8 + BPFPROF_RAW_STACK_SZ);
	raw(0, BPFPROF_RAW_STACK_SZ + 1);
	assert_false(well_formed(&u.rec, head + BPFPROF_RAW_STACK_SZ + 1));
	raw(0, UINT32_MAX);
	assert_false(well_formed(&u.rec, head + UINT32_MAX));
	/* it has no frames, so none may be counted */
	raw(0, 0);
	u.rec.user_cnt = 1;
	assert_false(well_formed(&u.rec, head));
	assert_false(well_formed(&u.rec, head + 8));
}

static void test_unknown(void **state)
{
	(void)state;
	sample(0, 0);
	u.rec.type = BPFPROF_REC_RAW + 1;
	assert_false(well_formed(&u.rec, sizeof(u.rec)));
	sample(0, 0);
	u.rec.kind = BPFPROF_NR_KINDS;
	assert_false(well_formed(&u.rec, sizeof(u.rec)));
	sample(0, 0);
	u.rec.result = BPFPROF_NR_RESULTS;
	assert_false(well_formed(&u.rec, sizeof(u.rec)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),
		cmocka_unit_test(test_raw),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
