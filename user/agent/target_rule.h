/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which processes a [target] section of the agent's configuration means, and what of them is recorded
 * that is not recorded of all:
 *
 *	[target "redis"]
 *	comm = redis-server
 *	profile = heap,block
 */
#ifndef AGENT_TARGET_RULE_H
#define AGENT_TARGET_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TARGET_RULES_MAX 32 /* sections */
#define TARGET_PROCESSES_MAX \
	32 /* processes of a section: each costs those that share its allocator */

enum target_key {
	TARGET_COMM,	  /* name of the main thread */
	TARGET_EXE,	  /* path of the program, as it is in the process's own mount namespace */
	TARGET_CGROUP,	  /* path of the control group (v2), with a slash in front */
	TARGET_CONTAINER, /* its id, or its name in the pod */
	TARGET_POD,
	TARGET_NAMESPACE, /* of Kubernetes */
	TARGET_UNIT,
	TARGET_NR_KEYS,
};

/* Texts are its own. */
struct target_rule {
	char *name;
	char *patterns[TARGET_NR_KEYS]; /* as of fnmatch(3), '*' also for '/'; NULL: any */
	uint32_t kinds;			/* bit i: enum bpfprof_kind i */
};

/* Of a process; NULL or "": it has none, or that is not known. */
struct target_facts {
	const char *of[TARGET_NR_KEYS]; /* of[TARGET_CONTAINER]: the id */
	const char *container_name;
};

/* What it is called in the configuration: "comm". */
const char *target_rule_key(enum target_key key);

/* Is it one? 0, or -EINVAL with one sentence in text, without newline. */
int target_rule__check(const struct target_rule *rule, char *text, size_t text_sz);
void target_rule__done(struct target_rule *rule);

/* Does the process match all patterns that there are? */
bool target_rule__matches(const struct target_rule *rule, const struct target_facts *facts);

#endif
