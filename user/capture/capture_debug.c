// SPDX-License-Identifier: BSD-2-Clause
/* Which files of debug information names could do with. */
#include <linux/types.h>

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "capture/capture_parts.h"
#include "capture/collect.h"
#include "capture/stack_store.h"
#include "capture/windows.h"
#include "target/objects.h"

/* What is known of an object, or NULL: there is no memory. */
static struct capture_lack *lack_of(struct capture *c, uint32_t object)
{
	uint64_t serial = objects__info(c->objects, object)->serial;
	struct capture_lack *l;

	if (util_reserve_zeroed(&c->lacks, &c->lack_cap, object, sizeof(*c->lacks)))
		return NULL;
	l = &c->lacks[object];
	if (l->serial != serial)
		*l = (struct capture_lack){ .serial = serial };
	return l;
}

static void look(struct capture *c, uint32_t object, struct capture_lack *l, capture_lacking want,
		 void *ctx)
{
	l->looked = true;
	if (objects__lacks(c->objects, object, l->id, &l->id_sz))
		l->id_sz = 0;
	else
		want(ctx, objects__info(c->objects, object)->path, l->id, l->id_sz);
}

bool capture__lacking(struct capture *c, size_t max, capture_lacking want, void *ctx)
{
	const struct stack_store *store = windows__store(collect__windows(c->collect));
	size_t end = stack_store__mapping_end(store);

	for (size_t i = 0; i < end; i++) {
		const struct stack_mapping *m = stack_store__mapping(store, (uint32_t)i);
		struct capture_lack *l;

		if (!m->filename || m->source.what != SYMBOLIZE_OBJECT)
			continue;
		l = lack_of(c, m->source.object);
		if (!l || l->looked)
			continue;
		if (!max--)
			return true;
		look(c, m->source.object, l, want, ctx);
	}
	return false;
}

int capture__give_debug(struct capture *c, const uint8_t *build_id, size_t sz, int fd)
{
	int err = objects__give(c->objects, build_id, sz, fd);

	for (size_t i = 0; !err && i < MIN(c->lack_cap, objects__end(c->objects)); i++) {
		struct capture_lack *l = &c->lacks[i];

		if (!l->serial || l->serial != objects__info(c->objects, (uint32_t)i)->serial ||
		    l->id_sz != sz || memcmp(l->id, build_id, sz) != 0)
			continue;
		objects__learn(c->objects, (uint32_t)i);
		/* it may tell of another one */
		l->looked = false;
	}
	return err;
}

bool capture__has_debug(const struct capture *c, const uint8_t *build_id, size_t sz)
{
	return objects__has_given(c->objects, build_id, sz);
}
