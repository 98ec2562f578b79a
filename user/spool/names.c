/* SPDX-License-Identifier: BSD-2-Clause */
#include "spool/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

void names__init(struct names *n)
{
	hash__init(&n->by_text, sizeof(struct name *), 0, HASH_MAX);
}

void names__done(struct names *n)
{
	struct hash_iter it = hash__iter(&n->by_text);
	struct name **e;

	while ((e = hash_iter__next(&it)))
		free(*e);
	hash__done(&n->by_text);
}

static uint64_t hash_of(const struct names *n, const char *text)
{
	return util_hash(text, strlen(text), n->by_text.seed);
}

static struct name **find(const struct names *n, const char *text)
{
	struct name **e = hash__first(&n->by_text, hash_of(n, text));

	while (e && strcmp((*e)->text, text) != 0)
		e = hash__next(&n->by_text, e);
	return e;
}

static struct name *add(struct names *n, const char *text)
{
	size_t sz = strlen(text) + 1;
	struct name *name = malloc(sizeof(*name) + sz);
	struct name **e = name ? hash__add(&n->by_text, hash_of(n, text)) : NULL;

	if (!e) {
		free(name);
		return NULL;
	}
	name->refs = 0;
	memcpy(name->text, text, sz);
	return *e = name;
}

struct name *names__take(struct names *n, const char *text)
{
	struct name **e = find(n, text);
	struct name *name = e ? *e : add(n, text);

	if (name)
		name->refs++;
	return name;
}

void names__give_back(struct names *n, struct name *name)
{
	if (--name->refs)
		return;
	hash__remove(&n->by_text, find(n, name->text));
	free(name);
}
