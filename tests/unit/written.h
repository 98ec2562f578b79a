/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes that a profile is written as. */
#ifndef TESTS_WRITTEN_H
#define TESTS_WRITTEN_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "profile/pprof.h"

struct bytes {
	char *data; /* to be freed */
	size_t sz;
};

static inline struct bytes written(const struct profile *p)
{
	struct bytes b = { 0 };
	FILE *f = open_memstream(&b.data, &b.sz);

	assert_non_null(f);
	assert_int_equal(pprof_write(p, f), 0);
	assert_int_equal(fclose(f), 0);
	return b;
}

#endif
