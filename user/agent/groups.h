/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The groups that a profile of the whole machine falls into: a container each, outside of containers
 * a unit of systemd each, and outside of both a program each, by its name; what is in a pod is apart
 * from what is in another one, or in none. Where processes say which service they are of, or the
 * configuration says it, one place falls apart by that; and outside of containers, pods and units a
 * service is one group, whatever its programs are called. By the labels of its samples
 * (capture/window.c).
 *
 * A process may say something else each time that it is executed: what is said in one place, but for
 * the first GROUPS_MAX_SAID, counts as not said.
 */
#ifndef AGENT_GROUPS_H
#define AGENT_GROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/service.h"

struct process_rule;
struct profile;

#define GROUPS_MAX 500	  /* of a profile; what more there are is one together, "other" */
#define GROUPS_MAX_SAID 8 /* different services in a container, in a unit, of a program */
#define GROUP_LABELS 9

struct group {
	char service[SERVICE_NAME_SZ];
	/* that all of its samples have: keys are static, values the profile's; NULL ends them */
	struct {
		const char *key, *value;
	} labels[GROUP_LABELS + 1];
};

struct groups {
	struct group *v;
	size_t cnt;
	uint32_t *of; /* by sample */
};

struct groups_opts {
	/* the services of processes that say nothing: the first one that matches */
	const struct process_rule *services;
	size_t service_cnt;
	const char *node; /* of Kubernetes, as far as is known: the host's name; NULL: not known */
};

/* The profile has to outlive *ret, which is the caller's to release. 0 or -ENOMEM. */
int groups_make(const struct profile *p, const struct groups_opts *opts, struct groups *ret);
void groups__done(struct groups *g);

#endif
