/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/groups.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/process_rule.h"
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
	FIRST_SAID, /* by the process itself */
	SERVICE_NAMESPACE = FIRST_SAID,
	SERVICE_VERSION,
	ENVIRONMENT,
	FACTS,
};
_Static_assert(FACTS == GROUP_LABELS, "a group has all of them");

static const char *const keys[FACTS] = {
	[CONTAINER_ID] = "container_id",
	[CONTAINER] = "container",
	[POD_UID] = "pod_uid",
	[POD] = "pod",
	[NAMESPACE] = "namespace",
	[UNIT] = "unit",
	[SERVICE_NAMESPACE] = "service_namespace",
	[SERVICE_VERSION] = "service_version",
	[ENVIRONMENT] = "deployment_environment",
};

struct facts {
	const char *of[FACTS]; /* NULL: no such label */
	const char
		*service; /* as the process says, or else the configuration; NULL: neither does */
	const char *comm;
	const char *container_service; /* of Compose or Swarm */
};

static void read_label(const struct profile *p, const struct profile_label *l, struct facts *ret)
{
	const char *key = strtab__get(p->strings, l->key);

	if (!l->str)
		return;
	if (!strcmp(key, "comm"))
		ret->comm = strtab__get(p->strings, l->str);
	if (!strcmp(key, "container_service"))
		ret->container_service = strtab__get(p->strings, l->str);
	if (!strcmp(key, "service_name"))
		ret->service = strtab__get(p->strings, l->str);
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

/* Where the samples are from. A pod has processes outside of its containers: CRI-O's conmon. Threads of
 * the kernel have names with what they work for behind a slash: kworker/0:1. */
static void name_place(const struct facts *f, char *ret, size_t ret_sz)
{
	size_t n = 0;

	*ret = '\0';
	if (f->of[POD_UID])
		n = MIN((size_t)snprintf(ret, ret_sz, "pod %s ", f->of[POD_UID]), ret_sz - 1);
	ret += n;
	ret_sz -= n;
	if (f->of[CONTAINER_ID])
		snprintf(ret, ret_sz, "container %s", f->of[CONTAINER_ID]);
	else if (f->of[UNIT])
		snprintf(ret, ret_sz, "unit %s", f->of[UNIT]);
	else
		snprintf(ret, ret_sz, "program %.*s", (int)strcspn(f->comm, "/"), f->comm);
}

/* The service, and what else is said of it. Each text may be had within another one: it has its length
 * in front. */
static void name_said(const struct facts *f, char *ret, size_t ret_sz)
{
	size_t n = snprintf(ret, ret_sz, "service %zu %s", strlen(f->service), f->service);

	for (size_t i = FIRST_SAID; i < FACTS && n < ret_sz; i++)
		n += snprintf(ret + n, ret_sz - n, " %zu %s", f->of[i] ? strlen(f->of[i]) : 0,
			      f->of[i] ? f->of[i] : "");
}

#define POD_SZ 254 /* of names in Kubernetes, with the NUL */

/* The name of a static pod without the node's. */
static bool take_static_pod(const struct groups_opts *o, const struct facts *f,
			    char ret[static POD_SZ])
{
	size_t len = o->node && f->of[POD] && f->of[POD_UID] ?
			     service_static_pod(f->of[POD], f->of[POD_UID], o->node) :
			     0;

	snprintf(ret, POD_SZ, "%.*s", (int)len, len ? f->of[POD] : "");
	return len;
}

static void describe(const struct groups_opts *o, const struct facts *f, struct group *ret)
{
	struct service_facts facts = {
		.said = f->service,
		.pod = f->of[POD],
		.container_service = f->container_service,
		.container = f->of[CONTAINER],
		.container_id = f->of[CONTAINER_ID],
		.unit = f->of[UNIT],
	};
	char comm[64], pod[POD_SZ];
	size_t n = 0;

	if (take_static_pod(o, f, pod))
		facts.pod = pod;
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

/* What was said in a place: ids of names, 0: no more. */
struct place {
	uint32_t said[GROUPS_MAX_SAID];
};

struct maker {
	struct groups *to;
	const struct groups_opts *opts;
	struct strtab *keys; /* the id of a group's is its number plus one */
	size_t cap;
	struct strtab *names; /* of places, and of what is said in them */
	struct place *places; /* by the id of their name */
	size_t place_cap;
};

/* Does what is said in a place still count? 1, 0, or -ENOMEM. */
static int counts(struct maker *m, const char *place, const char *said)
{
	uint32_t at = strtab__add(m->names, place), id = strtab__add(m->names, said);

	if (at == UINT32_MAX || id == UINT32_MAX ||
	    util_reserve_zeroed(&m->places, &m->place_cap, at, sizeof(*m->places)))
		return -ENOMEM;
	for (size_t i = 0; i < GROUPS_MAX_SAID; i++) {
		uint32_t *known = &m->places[at].said[i];

		*known = *known ? *known : id;
		if (*known == id)
			return 1;
	}
	return 0;
}

static void forget_said(struct facts *f)
{
	f->service = NULL;
	for (size_t i = FIRST_SAID; i < FACTS; i++)
		f->of[i] = NULL;
}

/* As the configuration has it, or NULL. */
static const char *configured(const struct groups_opts *o, const struct facts *f)
{
	const struct process_facts facts = {
		.of = { [PROCESS_COMM] = f->comm,
			[PROCESS_CONTAINER] = f->of[CONTAINER_ID],
			[PROCESS_POD] = f->of[POD],
			[PROCESS_NAMESPACE] = f->of[NAMESPACE],
			[PROCESS_UNIT] = f->of[UNIT] },
		.container_name = f->of[CONTAINER],
		.container_service = f->container_service,
	};

	for (size_t i = 0; i < o->service_cnt; i++)
		if (process_rule__matches(&o->services[i], &facts))
			return o->services[i].name;
	return NULL;
}

/* What is the same for all samples of a group, and for no others. Forgets what does not count. 0 or
 * -ENOMEM. */
static int make_key(struct maker *m, struct facts *f, char *ret, size_t ret_sz)
{
	char place[512], said[2048];
	int err;

	name_place(f, place, sizeof(place));
	if (f->service) {
		name_said(f, said, sizeof(said));
		err = counts(m, place, said);
		if (err < 0)
			return err;
		if (!err)
			forget_said(f);
	}
	if (!f->service) {
		f->service = configured(m->opts, f);
		if (f->service)
			name_said(f, said, sizeof(said));
	}
	if (!f->service)
		snprintf(ret, ret_sz, "%s", place);
	else if (f->of[CONTAINER_ID] || f->of[POD_UID] || f->of[UNIT])
		snprintf(ret, ret_sz, "%s %s", said, place);
	else
		snprintf(ret, ret_sz, "%s", said);
	return 0;
}

/* The group of a sample; it is made if it is new. PROFILE_NONE: there is no memory. */
static uint32_t group_of(struct maker *m, struct facts *f)
{
	struct groups *to = m->to;
	char key[3072];
	uint32_t id, i;

	if (make_key(m, f, key, sizeof(key)))
		return PROFILE_NONE;
	id = strtab__add(m->keys, key);
	if (id == UINT32_MAX || util_reserve(&to->v, &m->cap, to->cnt + 1, sizeof(*to->v)))
		return PROFILE_NONE;
	i = MIN(id, GROUPS_MAX) - 1;
	if (i < to->cnt)
		return i;
	to->v[to->cnt++] = (struct group){ .service = "other" };
	if (i < GROUPS_MAX - 1)
		describe(m->opts, f, &to->v[i]);
	return i;
}

int groups_make(const struct profile *p, const struct groups_opts *opts, struct groups *ret)
{
	struct maker m = { .to = ret, .opts = opts, .keys = strtab__new(), .names = strtab__new() };
	int err;

	*ret = (struct groups){ .of = malloc((p->sample_cnt + 1) * sizeof(*ret->of)) };
	err = m.keys && m.names && ret->of ? 0 : -ENOMEM;
	for (size_t i = 0; !err && i < p->sample_cnt; i++) {
		struct facts f = read_facts(p, &p->samples[i]);

		ret->of[i] = group_of(&m, &f);
		if (ret->of[i] == PROFILE_NONE)
			err = -ENOMEM;
	}
	strtab__free(m.keys);
	strtab__free(m.names);
	free(m.places);
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
