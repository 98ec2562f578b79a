// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "kernel/sample_rate.h"

#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"

#define PERCENT_NS (NSEC_PER_SEC / 100) /* of a second */
#define UNMEASURED_NS 100000		/* an interrupt takes less than that */
#define SAMPLE_NS 5000			/* for the BPF program: hardly a stack takes more */

/* Some interrupts of a clock, as who they interrupt sees them. */
#define MEASURED_PERIOD_NS 100000
#define MEASURED_CNT 32
#define MEASURED_LEAST 8
#define MEASURED_MAX_NS 20000000
#define READ_NS 500 /* to read the clock takes less, or a fourth of that */

static uint64_t read_sysctl(const char *path, uint64_t max, uint64_t otherwise)
{
	uint64_t ret;
	char *buf;
	size_t sz;

	if (util_read_file(path, 64, &buf, &sz))
		return otherwise;
	buf[strcspn(buf, "\n")] = '\0';
	if (util_parse_u64(buf, 0, max, &ret))
		ret = otherwise;
	free(buf);
	return ret;
}

uint32_t sample_rate__allowed(void)
{
	uint64_t hz = read_sysctl("/proc/sys/kernel/perf_event_max_sample_rate", UINT32_MAX, 0);

	return hz ? (uint32_t)hz : UINT32_MAX;
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* The median of the times that this thread was kept from reading the clock; 0: it was not often enough.
 * A loss of the CPU to another one is longer, and rare. */
static uint64_t median_gap(void)
{
	uint64_t begin = util_monotonic_ns(), last = begin, now, shortest = READ_NS;
	uint64_t gaps[MEASURED_CNT];
	size_t cnt = 0;

	do {
		now = util_monotonic_ns();
		shortest = MIN(shortest, now - last);
		if (now - last > MAX(READ_NS, 4 * shortest))
			gaps[cnt++] = now - last;
		last = now;
	} while (cnt < ARRAY_SIZE(gaps) && now - begin < MEASURED_MAX_NS);
	qsort(gaps, cnt, sizeof(*gaps), by_size);
	return cnt < MEASURED_LEAST ? 0 : gaps[cnt / 2];
}

uint64_t sample_rate__cost_ns(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = MEASURED_PERIOD_NS,
	};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	uint64_t ret;

	if (fd < 0)
		return 0;
	ret = median_gap();
	close(fd);
	return ret ? ret + SAMPLE_NS : 0;
}

uint32_t sample_rate_left(uint32_t hz, uint64_t taken_hz, uint64_t ns, uint64_t percent)
{
	uint64_t most = percent * PERCENT_NS / ns, left, step = 1;

	/* two digits: runs that are compared are to have the same */
	while (most / step >= 100)
		step *= 10;
	most -= most % step;
	left = most > taken_hz ? most - taken_hz : 0;
	return (uint32_t)MIN((uint64_t)hz, MAX(left, SAMPLE_RATE_LEAST));
}

/* That clocks of this process have, each on all CPUs. */
static uint64_t taken_hz;

static uint32_t affordable(uint32_t hz, double *ret_percent)
{
	uint64_t percent = read_sysctl("/proc/sys/kernel/perf_cpu_time_max_percent", 100, 0);
	uint64_t all_hz = taken_hz + hz, ns;

	*ret_percent = 0;
	if (!percent || percent == 100 || all_hz * UNMEASURED_NS <= percent * PERCENT_NS)
		return hz;
	ns = sample_rate__cost_ns();
	if (!ns)
		return hz;
	*ret_percent = (double)(all_hz * ns) / PERCENT_NS;
	return sample_rate_left(hz, taken_hz, ns, percent);
}

uint32_t sample_rate__take(uint32_t hz, double *ret_percent)
{
	hz = affordable(hz, ret_percent);
	taken_hz += hz;
	return hz;
}

void sample_rate__give(uint32_t hz)
{
	taken_hz -= hz;
}
