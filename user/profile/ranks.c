/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/ranks.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/strtab.h"

static int compare(const void *pa, const void *pb, void *strings)
{
	const struct strtab *st = strings;

	return strcmp(strtab__get(st, *(const uint32_t *)pa),
		      strtab__get(st, *(const uint32_t *)pb));
}

uint32_t *ranks_make(const struct strtab *st)
{
	uint32_t cnt = strtab__cnt(st);
	uint32_t *order = malloc(cnt * sizeof(*order)), *ret = malloc(cnt * sizeof(*ret));

	if (!order || !ret) {
		free(order);
		free(ret);
		return NULL;
	}
	for (uint32_t i = 0; i < cnt; i++)
		order[i] = i;
	qsort_r(order, cnt, sizeof(*order), compare, (void *)st);
	for (uint32_t i = 0; i < cnt; i++)
		ret[order[i]] = i;
	free(order);
	return ret;
}
