/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of agent/service and agent/groups: names of services, and what falls into which group. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "agent/groups.h"
#include "agent/process_rule.h"
#include "agent/service.h"
#include "base/util.h"
#include "profile/profile.h"

/* ---- names ---- */

static void workloads(void **state)
{
	static const struct {
		const char *pod, *workload;
	} pods[] = {
		/* Deployment: ReplicaSet's hash, and five random characters */
		{ "web-7d4b9c6f5-x2k8p", "web" },
		{ "coredns-5dd5756b68-qlr2c", "coredns" },
		{ "my-web-app-66bc79d8f5-bbb6z", "my-web-app" },
		/* DaemonSet, Job */
		{ "kube-proxy-x7k2p", "kube-proxy" },
		{ "migrate-zzq9d", "migrate" },
		/* CronJob */
		{ "backup-28345678-9xwzt", "backup" },
		/* StatefulSet */
		{ "redis-master-0", "redis-master" },
		{ "kafka-12", "kafka" },
		/* none of these: a pod of its own, and those of the node itself */
		{ "web", "web" },
		{ "nginx-proxy", "nginx-proxy" },
		{ "etcd-node1", "etcd-node1" },
		{ "kube-apiserver-master", "kube-apiserver-master" },
		{ "a-b", "a-b" },
		{ "-x7k2p", "-x7k2p" },
		{ "", "" },
		/* a hash of the wrong length belongs to the name */
		{ "web-7d4b9c6-x2k8p", "web-7d4b9c6" },
		{ "web-2834567-x2k8p", "web-2834567" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pods); i++) {
		char got[64];

		snprintf(got, sizeof(got), "%.*s", (int)service_workload(pods[i].pod), pods[i].pod);
		assert_string_equal(got, pods[i].workload);
	}
}

static void services(void **state)
{
	static const char id[] = "0123456789abcdef0123456789abcdef";
	static const struct {
		struct service_facts facts;
		const char *name;
	} cases[] = {
		{ { .said = "shop", .pod = "web-7d4b9c6f5-x2k8p", .comm = "nginx" }, "shop" },
		{ { .said = "", .pod = "web-7d4b9c6f5-x2k8p", .container = "nginx" }, "web" },
		{ { .pod = "", .container = "nginx", .container_id = id }, "nginx" },
		{ { .container_service = "web", .container = "shop-web-1", .container_id = id },
		  "web" },
		{ { .pod = "db-0", .container_service = "web" }, "db" },
		{ { .container_service = "", .container = "shop-web-1" }, "shop-web-1" },
		{ { .container_id = id, .unit = "docker.service" }, "0123456789ab" },
		{ { .container_id = "short" }, "short" },
		{ { .container_id = "user@1000.service/0123456789abcdef" },
		  "user@1000.service/0123456789ab" },
		/* of LXC and systemd-nspawn it is a name */
		{ { .container_id = "production-web-2" }, "production-web-2" },
		{ { .container_id = "user@1000.service/production-web-2" },
		  "user@1000.service/production-web-2" },
		{ { .container_id = "0123456789abcdef0123456789abcdef-1234567890" },
		  "0123456789ab" },
		{ { .unit = "nginx.service", .comm = "worker" }, "nginx" },
		{ { .unit = "postgresql@15-main.service" }, "postgresql@15-main" },
		{ { .unit = "session-3.scope", .comm = "bash" }, "session-3.scope" },
		{ { .unit = ".service" }, ".service" },
		{ { .comm = "redis-server" }, "redis-server" },
		{ { 0 }, "unknown" },
		/* what would act on a terminal, or is no UTF-8 */
		{ { .comm = "a\x1b[1mb\n" }, "a\xef\xbf\xbd[1mb\xef\xbf\xbd" },
		{ { .comm = "a\xff" }, "a\xef\xbf\xbd" },
	};
	char name[SERVICE_NAME_SZ], longer[600] = "";

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		service_name(&cases[i].facts, name);
		assert_string_equal(name, cases[i].name);
	}
	/* it is cut at a character */
	for (size_t n = 0; n < 4; n++) {
		memset(longer, 'a', n);
		longer[n] = '\0';
		for (size_t i = 0; i < 200; i++)
			strcat(longer, "\xc3\xa4");
		service_name(&(struct service_facts){ .container = longer }, name);
		assert_in_range(strlen(name), SERVICE_NAME_SZ - 6, SERVICE_NAME_SZ - 1);
		assert_memory_equal(name, longer, strlen(name));
		assert_int_equal((strlen(name) - n) % 2, 0);
	}
}

/* ---- groups ---- */

static const struct profile_value_type types[] = { { "samples", "count" } };

/* A sample with these labels: key, value, …, NULL; and a pid. */
static void sample(struct profile *p, int64_t pid, const char *const texts[])
{
	struct profile_label labels[10] = { { .num = pid } };
	uint32_t loc = profile__add_location(p, PROFILE_NONE, p->sample_cnt + 1);
	int64_t value = 10;
	size_t n = 1;

	labels[0].key = labels[0].num_unit = profile__string(p, "pid");
	for (size_t i = 0; texts[i]; i += 2) {
		labels[n].key = profile__string(p, texts[i]);
		labels[n++].str = profile__string(p, texts[i + 1]);
	}
	assert_int_not_equal(profile__add_sample(p, &loc, 1, labels, n, &value), PROFILE_NONE);
}

static const struct {
	int64_t pid;
	const char *texts[16];
	const char *service;
	size_t group;
} samples[] = {
	{ 1, { "comm", "systemd", "unit", "init.scope" }, "init.scope", 0 },
	/* one pod with two containers: a group each */
	{ 2,
	  { "comm", "nginx", "container_id", "aa11", "pod", "web-7d4b9c6f5-x2k8p", "container",
	    "nginx", "namespace", "prod", "unit", "kubelet.service" },
	  "web",
	  1 },
	{ 3,
	  { "comm", "envoy", "container_id", "bb22", "pod", "web-7d4b9c6f5-x2k8p", "container",
	    "proxy", "namespace", "prod" },
	  "web",
	  2 },
	{ 4, { "comm", "sh", "container_id", "aa11", "pod", "web-7d4b9c6f5-x2k8p" }, "web", 1 },
	/* units, whatever runs in them */
	{ 5, { "comm", "postgres", "unit", "postgresql.service" }, "postgresql", 3 },
	{ 6, { "comm", "sh", "unit", "postgresql.service", "thread", "x" }, "postgresql", 3 },
	/* programs */
	{ 7, { "comm", "kworker/0:1" }, "kworker", 4 },
	{ 8, { "comm", "kworker/u4:2" }, "kworker", 4 },
	{ 9, { "comm", "postgres" }, "postgres", 5 },
	/* a program whose name is a unit's, or a container's id, is neither */
	{ 10, { "comm", "init.scope" }, "init.scope", 6 },
	{ 11, { "comm", "aa11" }, "aa11", 7 },
};

static struct profile *make(void)
{
	struct profile *p = profile__new(types, 1, types[0], 1);

	assert_non_null(p);
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		sample(p, samples[i].pid, samples[i].texts);
	return p;
}

static const char *label_of(const struct group *g, const char *key)
{
	for (size_t i = 0; g->labels[i].key; i++)
		if (!strcmp(g->labels[i].key, key))
			return g->labels[i].value;
	return NULL;
}

static void falls_apart(void **state)
{
	struct profile *p = make();
	struct groups g;

	(void)state;
	assert_int_equal(groups_make(p, &(struct groups_opts){ 0 }, &g), 0);
	assert_int_equal(g.cnt, 8);
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		assert_int_equal(g.of[i], samples[i].group);
		assert_string_equal(g.v[g.of[i]].service, samples[i].service);
	}
	assert_string_equal(label_of(&g.v[1], "container"), "nginx");
	assert_string_equal(label_of(&g.v[1], "namespace"), "prod");
	assert_string_equal(label_of(&g.v[1], "container_id"), "aa11");
	assert_null(label_of(&g.v[1], "pod_uid"));
	assert_string_equal(label_of(&g.v[3], "unit"), "postgresql.service");
	assert_null(g.v[4].labels[0].key);
	groups__done(&g);
	profile__free(p);
}

/* A sample, and where it belongs. */
struct grouped {
	const char *texts[16];
	const char *service;
	size_t group;
};

static void group(struct profile *p, const struct groups_opts *opts, const struct grouped *s,
		  size_t cnt, struct groups *ret)
{
	for (size_t i = 0; i < cnt; i++)
		sample(p, (int64_t)i, s[i].texts);
	assert_int_equal(groups_make(p, opts, ret), 0);
	for (size_t i = 0; i < cnt; i++) {
		assert_int_equal(ret->of[i], s[i].group);
		assert_string_equal(ret->v[ret->of[i]].service, s[i].service);
	}
}

#define POD_A "11111111-2222-3333-4444-555555555555"
#define POD_B "11111111-2222-3333-4444-666666666666"

/* What is in a pod and in none of its containers is that pod's: CRI-O's conmon, where it is told to put it
 * there. */
static void pods(void **state)
{
	static const struct grouped s[] = {
		{ { "comm", "conmon", "pod_uid", POD_A, "pod", "web-7d4b9c6f5-x2k8p", "namespace",
		    "prod" },
		  "web",
		  0 },
		{ { "comm", "conmon", "pod_uid", POD_B, "pod", "redis-0", "namespace", "data" },
		  "redis",
		  1 },
		{ { "comm", "conmon" }, "conmon", 2 },
		{ { "comm", "conmon", "pod_uid", POD_A, "pod", "web-7d4b9c6f5-x2k8p", "namespace",
		    "prod", "container_id", "aa11" },
		  "web",
		  3 },
		/* the pod's name is not known: each has its own */
		{ { "comm", "pause", "pod_uid", POD_B }, "pause", 4 },
		{ { "comm", "conmon", "pod_uid", POD_A, "pod", "web-7d4b9c6f5-x2k8p", "namespace",
		    "prod" },
		  "web",
		  0 },
		/* groups of one name in two pods */
		{ { "comm", "x", "pod_uid", POD_A, "unit", "run.scope" }, "run.scope", 5 },
		{ { "comm", "x", "pod_uid", POD_B, "unit", "run.scope" }, "run.scope", 6 },
		/* and a service in both */
		{ { "comm", "x", "pod_uid", POD_A, "service_name", "shop" }, "shop", 7 },
		{ { "comm", "x", "pod_uid", POD_B, "service_name", "shop" }, "shop", 8 },
		{ { "comm", "x", "service_name", "shop" }, "shop", 9 },
	};
	struct profile *p = profile__new(types, 1, types[0], 1);
	struct groups g;

	(void)state;
	assert_non_null(p);
	group(p, &(struct groups_opts){ 0 }, s, ARRAY_SIZE(s), &g);
	assert_int_equal(g.cnt, 10);
	assert_string_equal(label_of(&g.v[0], "pod"), "web-7d4b9c6f5-x2k8p");
	assert_string_equal(label_of(&g.v[0], "namespace"), "prod");
	assert_string_equal(label_of(&g.v[1], "pod"), "redis-0");
	assert_string_equal(label_of(&g.v[1], "namespace"), "data");
	assert_string_equal(label_of(&g.v[1], "pod_uid"), POD_B);
	assert_null(g.v[2].labels[0].key);
	assert_string_equal(label_of(&g.v[8], "pod_uid"), POD_B);
	assert_null(g.v[9].labels[0].key);
	groups__done(&g);
	profile__free(p);
}

/* A pod that kubelet runs from a file is called after the file. */
static void static_pods(void **state)
{
	static const char uid[] = "0123456789abcdef0123456789abcdef";
	static const struct grouped s[] = {
		{ { "comm", "a", "container_id", "a", "pod_uid", uid, "pod",
		    "kube-apiserver-node-1" },
		  "kube-apiserver",
		  0 },
		/* no static one, and one of another node */
		{ { "comm", "a", "container_id", "b", "pod_uid", POD_A, "pod", "web-node-1" },
		  "web-node",
		  1 },
		{ { "comm", "a", "container_id", "c", "pod_uid", uid, "pod", "etcd-master" },
		  "etcd-master",
		  2 },
		/* the node's name without a dash, or without a pod's */
		{ { "comm", "a", "container_id", "d", "pod_uid", uid, "pod", "xnode-1" },
		  "xnode",
		  3 },
		{ { "comm", "a", "container_id", "e", "pod_uid", uid, "pod", "-node-1" },
		  "-node",
		  4 },
	};
	const struct groups_opts opts = { .node = "Node-1" };
	struct profile *p = profile__new(types, 1, types[0], 1);
	struct groups g;

	(void)state;
	assert_non_null(p);
	group(p, &opts, s, ARRAY_SIZE(s), &g);
	/* the pod stays what it is called */
	assert_string_equal(label_of(&g.v[0], "pod"), "kube-apiserver-node-1");
	groups__done(&g);
	profile__free(p);
}

/* ---- what processes say ---- */

static void said(void **state)
{
	static const struct grouped s[] = {
		/* two services in one container, and who says nothing there */
		{ { "comm", "python3", "container_id", "aa11", "container", "app", "service_name",
		    "shop" },
		  "shop",
		  0 },
		{ { "comm", "python3", "container_id", "aa11", "container", "app", "service_name",
		    "cart" },
		  "cart",
		  1 },
		{ { "comm", "sh", "container_id", "aa11", "container", "app" }, "app", 2 },
		{ { "comm", "sh", "container_id", "aa11", "container", "app", "service_name",
		    "shop" },
		  "shop",
		  0 },
		/* one service in two containers, and in a unit */
		{ { "comm", "python3", "container_id", "bb22", "container", "app", "service_name",
		    "shop" },
		  "shop",
		  3 },
		{ { "comm", "python3", "unit", "app.service", "service_name", "shop" }, "shop", 4 },
		{ { "comm", "python3", "unit", "app.service" }, "app", 5 },
		/* outside of both it is one, whatever its programs are called */
		{ { "comm", "python3", "service_name", "shop" }, "shop", 6 },
		{ { "comm", "gunicorn", "service_name", "shop" }, "shop", 6 },
		{ { "comm", "shop" }, "shop", 7 },
		/* versions are kept apart */
		{ { "comm", "python3", "service_name", "shop", "service_version", "1" },
		  "shop",
		  8 },
		{ { "comm", "python3", "service_name", "shop", "service_version", "2" },
		  "shop",
		  9 },
		{ { "comm", "python3", "service_name", "shop", "service_version", "2",
		    "service_namespace", "team", "deployment_environment", "prod" },
		  "shop",
		  10 },
		/* texts that look like several */
		{ { "comm", "python3", "service_name", "shop", "service_version", "1 x" },
		  "shop",
		  11 },
		{ { "comm", "python3", "service_name", "shop", "service_version", "1",
		    "deployment_environment", "x " },
		  "shop",
		  12 },
	};
	struct profile *p = profile__new(types, 1, types[0], 1);
	struct groups g;

	(void)state;
	assert_non_null(p);
	group(p, &(struct groups_opts){ 0 }, s, ARRAY_SIZE(s), &g);
	assert_int_equal(g.cnt, 13);
	assert_string_equal(label_of(&g.v[0], "container_id"), "aa11");
	assert_string_equal(label_of(&g.v[3], "container_id"), "bb22");
	assert_null(label_of(&g.v[0], "service_version"));
	assert_string_equal(label_of(&g.v[4], "unit"), "app.service");
	assert_null(g.v[6].labels[0].key);
	assert_string_equal(label_of(&g.v[9], "service_version"), "2");
	assert_string_equal(label_of(&g.v[10], "service_namespace"), "team");
	assert_string_equal(label_of(&g.v[10], "deployment_environment"), "prod");
	groups__done(&g);
	profile__free(p);
}

/* The configuration names those that say nothing. */
static void configured(void **state)
{
	static const struct process_rule rules[] = {
		{ .name = "shop",
		  .patterns = { [PROCESS_COMM] = "python*", [PROCESS_UNIT] = "app*" } },
		{ .name = "batch", .patterns = { [PROCESS_COMM] = "cron*" } },
		{ .name = "front", .patterns = { [PROCESS_CONTAINER] = "nginx" } },
		{ .name = "composed", .patterns = { [PROCESS_CONTAINER] = "db" } },
		{ .name = "by-id", .patterns = { [PROCESS_CONTAINER] = "bb*" } },
		{ .name = "late", .patterns = { [PROCESS_COMM] = "python3" } },
		{ .name = "team",
		  .patterns = { [PROCESS_NAMESPACE] = "team", [PROCESS_POD] = "a-?" } },
	};
	static const struct grouped s[] = {
		{ { "comm", "python3", "unit", "app.service" }, "shop", 0 },
		{ { "comm", "sh", "unit", "app.service" }, "app", 1 },
		{ { "comm", "python3", "unit", "other.service" }, "late", 2 },
		/* what a process says itself comes first */
		{ { "comm", "python3", "unit", "app.service", "service_name", "own" }, "own", 3 },
		{ { "comm", "python3", "unit", "app.service", "service_name", "shop" }, "shop", 0 },
		/* outside of containers and units it is one, whatever its programs are called */
		{ { "comm", "cron" }, "batch", 4 },
		{ { "comm", "crond" }, "batch", 4 },
		{ { "comm", "acron" }, "acron", 5 },
		{ { "comm", "nginx", "container_id", "aa11", "container", "nginx" }, "front", 6 },
		{ { "comm", "nginx", "container_id", "bb22", "container", "nginx" }, "front", 7 },
		{ { "comm", "nginx", "container_id", "bb22" }, "by-id", 8 },
		{ { "comm", "x", "container_id", "cc33", "pod", "a-1", "namespace", "team" },
		  "team",
		  9 },
		{ { "comm", "x", "container_id", "dd44", "pod", "a-10", "namespace", "team" },
		  "a",
		  10 },
		/* of Compose */
		{ { "comm", "x", "container_id", "ee55", "container", "shop-db-1",
		    "container_service", "db" },
		  "composed",
		  11 },
		{ { "comm", "x", "container_id", "ff66", "container", "shop-web-1",
		    "container_service", "web" },
		  "web",
		  12 },
	};
	const struct groups_opts opts = { .services = rules, .service_cnt = ARRAY_SIZE(rules) };
	struct profile *p = profile__new(types, 1, types[0], 1);
	struct groups g;

	(void)state;
	assert_non_null(p);
	group(p, &opts, s, ARRAY_SIZE(s), &g);
	assert_string_equal(label_of(&g.v[0], "unit"), "app.service");
	assert_string_equal(label_of(&g.v[12], "container"), "shop-web-1");
	groups__done(&g);
	profile__free(p);
}

/* What a place says beyond what counts is not said: the configuration's name holds. */
static void configured_where_too_much_is_said(void **state)
{
	static const struct process_rule rule = { .name = "shop",
						  .patterns = { [PROCESS_COMM] = "evil" } };
	const struct groups_opts opts = { .services = &rule, .service_cnt = 1 };
	struct profile *p = profile__new(types, 1, types[0], 1);
	struct groups g;

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < 2 * GROUPS_MAX_SAID; i++) {
		char name[32];

		snprintf(name, sizeof(name), "s%zu", i);
		sample(p, 1, (const char *const[]){ "comm", "evil", "service_name", name, NULL });
	}
	assert_int_equal(groups_make(p, &opts, &g), 0);
	assert_int_equal(g.cnt, GROUPS_MAX_SAID + 1);
	assert_string_equal(g.v[GROUPS_MAX_SAID - 1].service, "s7");
	assert_string_equal(g.v[GROUPS_MAX_SAID].service, "shop");
	groups__done(&g);
	profile__free(p);
}

/* One place that says something else each time makes few groups, and takes nobody's. */
static void said_too_much(void **state)
{
	static const char *const places[][2] = { { "container_id", "aa11" },
						 { "unit", "app.service" },
						 { "comm", "evil" } };
	struct profile *p = profile__new(types, 1, types[0], 1);
	struct groups g;
	size_t n = 0, other[ARRAY_SIZE(places)];

	(void)state;
	assert_non_null(p);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		for (size_t j = 0; j < 2 * GROUPS_MAX; j++) {
			char name[32];

			snprintf(name, sizeof(name), "s%zu-%zu", i, j);
			sample(p, 1,
			       (const char *const[]){ places[i][0], places[i][1], "service_name",
						      name, "service_version", name, NULL });
		}
	/* said before, said as the others say, and not said */
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		char name[32];

		snprintf(name, sizeof(name), "s%zu-0", i);
		sample(p, 1,
		       (const char *const[]){ places[i][0], places[i][1], "service_name", name,
					      "service_version", name, NULL });
		sample(p, 1, (const char *const[]){ places[i][0], places[i][1], NULL });
	}
	sample(p, 1, (const char *const[]){ "comm", "good", "service_name", "good", NULL });
	assert_int_equal(groups_make(p, &(struct groups_opts){ 0 }, &g), 0);
	assert_int_equal(g.cnt, ARRAY_SIZE(places) * (GROUPS_MAX_SAID + 1) + 1);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		other[i] = i * (GROUPS_MAX_SAID + 1) + GROUPS_MAX_SAID;
		for (size_t j = 0; j < 2 * GROUPS_MAX; j++, n++) {
			size_t group = i * (GROUPS_MAX_SAID + 1) + MIN(j, GROUPS_MAX_SAID);
			char name[32];

			snprintf(name, sizeof(name), "s%zu-%zu", i, j);
			assert_int_equal(g.of[n], group);
			if (j < GROUPS_MAX_SAID)
				assert_string_equal(g.v[group].service, name);
		}
		/* without what was said */
		assert_null(label_of(&g.v[other[i]], "service_version"));
	}
	assert_string_equal(g.v[other[0]].service, "aa11");
	assert_string_equal(g.v[other[1]].service, "app");
	assert_string_equal(g.v[other[2]].service, "evil");
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		assert_int_equal(g.of[n++], i * (GROUPS_MAX_SAID + 1));
		assert_int_equal(g.of[n++], other[i]);
	}
	assert_string_equal(g.v[g.of[n]].service, "good");
	groups__done(&g);
	profile__free(p);
}

static void too_many(void **state)
{
	struct profile *p = profile__new(types, 1, types[0], 1);
	size_t cnt = 2 * GROUPS_MAX;
	struct groups g;

	(void)state;
	assert_non_null(p);
	/* each of them twice */
	for (size_t i = 0; i < 2 * cnt; i++) {
		char name[32];

		snprintf(name, sizeof(name), "unit%zu.service", i % cnt);
		sample(p, (int64_t)i, (const char *const[]){ "unit", name, NULL });
	}
	assert_int_equal(groups_make(p, &(struct groups_opts){ 0 }, &g), 0);
	assert_int_equal(g.cnt, GROUPS_MAX);
	for (size_t i = 0; i < 2 * cnt; i++)
		assert_int_equal(g.of[i], MIN(i % cnt, (size_t)GROUPS_MAX - 1));
	assert_string_equal(g.v[0].service, "unit0");
	assert_string_equal(g.v[GROUPS_MAX - 2].service, "unit498");
	assert_string_equal(g.v[GROUPS_MAX - 1].service, "other");
	assert_null(g.v[GROUPS_MAX - 1].labels[0].key);
	groups__done(&g);
	/* nothing at all */
	profile__free(p);
	p = profile__new(types, 1, types[0], 1);
	assert_int_equal(groups_make(p, &(struct groups_opts){ 0 }, &g), 0);
	assert_int_equal(g.cnt, 0);
	groups__done(&g);
	profile__free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(workloads),
		cmocka_unit_test(services),
		cmocka_unit_test(falls_apart),
		cmocka_unit_test(pods),
		cmocka_unit_test(static_pods),
		cmocka_unit_test(said),
		cmocka_unit_test(said_too_much),
		cmocka_unit_test(configured),
		cmocka_unit_test(configured_where_too_much_is_said),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
