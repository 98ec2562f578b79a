/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of profile kinds and its two readers. */
#include "kinds.h"

#include <string.h>

const struct kind kinds[BPFPROF_NR_KINDS] = {
	[BPFPROF_CPU] = {
		.name = "cpu",
		.value_types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
		.value_cnt = 2,
		.period_type = { "cpu", "nanoseconds" },
		.by_default = true,
		.description = "where CPU time is spent, in the program and in the kernel on its behalf",
		.cost = "one stack walk for each sample, --frequency times a second on each busy CPU",
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
			k->by_default ? " (default)" : "", k->description);
		for (size_t v = 0; v < k->value_cnt; v++)
			fprintf(f, "%s%s/%s", v ? ", " : "", k->value_types[v].type,
				k->value_types[v].unit);
		fprintf(f, "\n  period    %s/%s\n  costs     %s\n", k->period_type.type,
			k->period_type.unit, k->cost);
	}
}
