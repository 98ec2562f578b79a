/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/profile.h"

/* Labels that say where a sample is from. */
enum fact {
	CONTAINER_ID,
	CONTAINER,
	POD_UID,
	POD,
	NAMESPACE,
	UNIT,
	FACTS,
};
_Static_assert(FACTS == GROUP_LABELS, "a group has all of them");

static const char *const keys[FACTS] = {
	[CONTAINER_ID] = "container_id", [CONTAINER] = "container",
	[POD_UID] = "pod_uid",		 [POD] = "pod",
	[NAMESPACE] = "namespace",	 [UNIT] = "unit",
};

struct facts {
	const char *of[FACTS]; /* NULL: no such label */
	const char *comm;
	int64_t pid;
};

static void read_label(const struct profile *p, const struct profile_label *l, struct facts *ret)
{
	const char *key = strtab__get(p->strings, l->key);

	if (!l->str) {
		if (!strcmp(key, "pid"))
			ret->pid = l->num;
		return;
	}
	if (!strcmp(key, "comm"))
		ret->comm = strtab__get(p->strings, l->str);
	for (size_t i = 0; i < FACTS; i++)
		if (!strcmp(key, keys[i]))
			ret->of[i] = strtab__get(p->strings, l->str);
}

static struct facts read_facts(const struct profile *p, const struct profile_sample *s)
{
	struct facts ret = { .comm = "" };

	for (uint32_t i = 0; i < s->label_cnt; i++)
		read_label(p, &p->labels[s->label + i], &ret);
	return ret;
}

/* What is the same for all samples of a group, and for no others. Threads of the kernel have names
 * with what they work for behind a slash: kworker/0:1. */
static void make_key(const struct facts *f, char *ret, size_t ret_sz)
{
	if (f->of[CONTAINER_ID])
		snprintf(ret, ret_sz, "container %s", f->of[CONTAINER_ID]);
	else if (f->of[UNIT])
		snprintf(ret, ret_sz, "unit %s", f->of[UNIT]);
	else
		snprintf(ret, ret_sz, "program %.*s", (int)strcspn(f->comm, "/"), f->comm);
}

static void describe(const struct facts *f, struct group *ret)
{
	struct service_facts facts = {
		.pod = f->of[POD],
		.container = f->of[CONTAINER],
		.container_id = f->of[CONTAINER_ID],
		.unit = f->of[UNIT],
	};
	char comm[64];
	size_t n = 0;

	snprintf(comm, sizeof(comm), "%.*s", (int)strcspn(f->comm, "/"), f->comm);
	facts.comm = comm;
	service_name(&facts, ret->service);
	for (size_t i = 0; i < FACTS; i++) {
		if (!f->of[i])
			continue;
		ret->labels[n].key = keys[i];
		ret->labels[n++].value = f->of[i];
	}
}

struct maker {
	struct groups *to;
	struct strtab *keys; /* the id of a group's is its number plus one */
	size_t cap;
};

/* The group of a sample; it is made if it is new. PROFILE_NONE: there is no memory. */
static uint32_t group_of(struct maker *m, const struct facts *f)
{
	struct groups *to = m->to;
	char key[512];
	uint32_t id, i;

	make_key(f, key, sizeof(key));
	id = strtab__add(m->keys, key);
	if (id == UINT32_MAX || util_reserve(&to->v, &m->cap, to->cnt + 1, sizeof(*to->v)))
		return PROFILE_NONE;
	i = MIN(id, GROUPS_MAX) - 1;
	if (i < to->cnt)
		return i;
	to->v[to->cnt++] = (struct group){ .service = "other" };
	if (i < GROUPS_MAX - 1)
		describe(f, &to->v[i]);
	return i;
}

int groups_make(const struct profile *p,
		bool (*leave_out)(void *ctx, int64_t pid, const char *comm), void *ctx,
		struct groups *ret)
{
	struct maker m = { .to = ret, .keys = strtab__new() };
	int err;

	*ret = (struct groups){ .of = malloc((p->sample_cnt + 1) * sizeof(*ret->of)) };
	err = m.keys && ret->of ? 0 : -ENOMEM;
	for (size_t i = 0; !err && i < p->sample_cnt; i++) {
		struct facts f = read_facts(p, &p->samples[i]);

		ret->of[i] = PROFILE_NONE;
		if (leave_out && leave_out(ctx, f.pid, f.comm)) {
			ret->left_out += (uint64_t)p->samples[i].value[0];
			continue;
		}
		ret->of[i] = group_of(&m, &f);
		if (ret->of[i] == PROFILE_NONE)
			err = -ENOMEM;
	}
	strtab__free(m.keys);
	if (err)
		groups__done(ret);
	return err;
}

void groups__done(struct groups *g)
{
	free(g->v);
	free(g->of);
	*g = (struct groups){ 0 };
}
