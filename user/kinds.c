/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of profile kinds and its two readers. */
#include "kinds.h"

#include <math.h>
#include <string.h>

static void cpu_values(double total, double held, uint64_t size, int64_t period, int64_t *ret)
{
	(void)held;
	(void)size;
	ret[0] = llround(total);
	ret[1] = ret[0] * period;
}

/*
 * Objects that one sampled object stands for: an allocation of size bytes is sampled with
 * probability 1 - exp(-size / rate), an empty one as if it had one byte (see bpf/heap.bpf.c). Go's
 * runtime/pprof does the same (protomem.go, scaleHeapSample). weight: bytes that the sample stands
 * for, where the program that sampled says so.
 */
static double heap_unit(uint64_t size, uint64_t weight, int64_t rate)
{
	double bytes = size ? size : 1;

	if (weight)
		return weight / bytes;
	return rate <= 1 ? 1 : -1 / expm1(-bytes / rate);
}

/* What programs say themselves may be anything: 2^53 is as much as a double counts exactly. */
static int64_t whole(double v)
{
	return llround(fmin(v, 0x1p53));
}

static void heap_values(double total, double held, uint64_t size, int64_t rate, int64_t *ret)
{
	(void)rate;
	ret[0] = whole(total);
	ret[1] = whole(total * size);
	ret[2] = whole(held);
	ret[3] = whole(held * size);
}

const struct kind kinds[BPFPROF_NR_KINDS] = {
	[BPFPROF_CPU] = {
		.name = "cpu",
		.value_types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
		.value_cnt = 2,
		.period_type = { "cpu", "nanoseconds" },
		.quantity = "of CPU",
		.nothing = "nothing ran on a CPU while it was watched",
		.values = cpu_values,
		.by_default = true,
		.in_kernel = true,
		.default_with_all = true,
		.description = "where CPU time is spent, in the program and in the kernel on its behalf",
		.cost = "one stack walk for each sample, --frequency times a second on each busy CPU",
	},
	[BPFPROF_HEAP] = {
		.name = "heap",
		.value_types = { { "alloc_objects", "count" }, { "alloc_space", "bytes" },
				 { "inuse_objects", "count" }, { "inuse_space", "bytes" } },
		.value_cnt = 4,
		.period_type = { "space", "bytes" },
		.folded_value = 3,
		.quantity = "in use",
		.nothing = "nothing was allocated, or too little to be sampled (--heap-rate)",
		.unit = heap_unit,
		.values = heap_values,
		.size_label = "bytes",
		.by_default = true,
		.description = "what the program allocates, and has not freed when the run ends",
		.cost = "0.5 to 1 us for each allocation and each free of a running program, up to "
			"--heap-budget; a few ns in a program started with -- COMMAND",
	},
};

int kinds_find(const char *name, size_t name_sz)
{
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (strlen(kinds[i].name) == name_sz && !memcmp(kinds[i].name, name, name_sz))
			return i;
	return -1;
}

void kinds_print(FILE *f)
{
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		const struct kind *k = &kinds[i];

		fprintf(f, "%s%s\n  measures  %s\n  values    ", k->name,
			!k->by_default	    ? "" :
			k->default_with_all ? " (default)" :
					      " (default, but with --all)",
			k->description);
		for (size_t v = 0; v < k->value_cnt; v++)
			fprintf(f, "%s%s/%s", v ? ", " : "", k->value_types[v].type,
				k->value_types[v].unit);
		fprintf(f, "\n  period    %s/%s\n  costs     %s\n", k->period_type.type,
			k->period_type.unit, k->cost);
	}
}
