// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "custom/custom_names.h"

#include <stdlib.h>
#include <string.h>

#include "target/objects.h"

/* Its number; that of the next one: it is not there. */
static size_t find(const struct custom_names *n, const char *name)
{
	size_t i = 0;

	while (i < n->cnt && strcmp(n->all[i].name, name))
		i++;
	return i;
}

bool custom_names__has(const struct custom_names *n, const char *name)
{
	return find(n, name) < n->cnt;
}

static void add_site(struct custom_names *n, const struct custom_site *s)
{
	size_t i = find(n, s->name);

	if (i == CUSTOM_NAMES_MAX) {
		n->refused++;
		return;
	}
	if (i == n->cnt) {
		memcpy(n->all[i].name, s->name, sizeof(s->name));
		n->cnt++;
	}
	n->all[i].adds += !s->removes;
	n->all[i].removes += s->removes;
}

void custom_names__add(struct custom_names *n, struct objects *objects, uint32_t object)
{
	struct custom_sites found;

	if (objects__custom_sites(objects, object, &found))
		return;
	for (size_t i = 0; i < found.cnt; i++)
		add_site(n, &found.sites[i]);
	n->refused += found.refused;
	custom_sites__done(&found);
}

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct custom_name *)a)->name, ((const struct custom_name *)b)->name);
}

void custom_names__sort(struct custom_names *n)
{
	qsort(n->all, n->cnt, sizeof(n->all[0]), compare);
}
