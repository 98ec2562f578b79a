/* SPDX-License-Identifier: BSD-2-Clause */
/* A limit of CPU time: what a made file would keep busy for hours ends the test instead. */
#ifndef TESTS_CPU_LIMIT_H
#define TESTS_CPU_LIMIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <time.h>

#include <cmocka.h>

/* SIGXCPU ends the process after so many seconds more. */
static inline void cpu_limit(unsigned int seconds)
{
	struct rlimit limit;
	struct timespec used;

	assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used), 0);
	assert_int_equal(getrlimit(RLIMIT_CPU, &limit), 0);
	limit.rlim_cur = (rlim_t)used.tv_sec + 1 + seconds;
	assert_int_equal(setrlimit(RLIMIT_CPU, &limit), 0);
}

static inline void cpu_limit_off(void)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_CPU, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_CPU, &limit), 0);
}

#endif
