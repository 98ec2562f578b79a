/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes a section of the agent's configuration means. Of a target, something is recorded
 * that is not recorded of all; to a service, the processes belong that do not say to which one:
 *
 *	[target "redis"]
 *	comm = redis-server
 *	profile = heap,block
 *	[service "shop"]
 *	unit = shop-*
 */
#ifndef AGENT_PROCESS_RULE_H
#define AGENT_PROCESS_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCESS_RULES_MAX 32 /* sections of a sort */

enum process_key {
	PROCESS_COMM,	   /* name of the main thread */
	PROCESS_EXE,	   /* path of the program, as it is in the process's own mount namespace */
	PROCESS_CGROUP,	   /* path of the control group (v2), with a slash in front */
	PROCESS_CONTAINER, /* its id, its name, or the service of Compose or Swarm that it is one of */
	PROCESS_POD,
	PROCESS_NAMESPACE, /* of Kubernetes */
	PROCESS_UNIT,
	PROCESS_NR_KEYS,
};

/* Texts are its own. */
struct process_rule {
	char *name;
	char *patterns[PROCESS_NR_KEYS]; /* as of fnmatch(3), '*' also for '/'; NULL: any */
	uint32_t kinds;			 /* of a target; bit i: enum bpfprof_kind i */
};

/* Of a process; NULL or "": it has none, or that is not known. */
struct process_facts {
	const char *of[PROCESS_NR_KEYS]; /* of[PROCESS_CONTAINER]: the id */
	const char *container_name, *container_service;
};

/* What it is called in the configuration: "comm". */
const char *process_rule_key(enum process_key key);

/* Is it one? 0, or -EINVAL with one sentence in text, without newline. */
int process_rule__check(const struct process_rule *rule, char *text, size_t text_sz);
void process_rule__done(struct process_rule *rule);

/* Does the process match all patterns that there are? */
bool process_rule__matches(const struct process_rule *rule, const struct process_facts *facts);

#endif
