/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control groups (cgroup v2) that samples came from, by the kernel's ids: paths, and what these
 * say (cgroup_path.h). A group is looked up when its id is first met, since it may be gone when a
 * profile is written; the kernel gives no id twice.
 */
#ifndef TARGET_CGROUPS_H
#define TARGET_CGROUPS_H

#include <stdint.h>

#include "target/cgroup_path.h"
#include "target/pod_names.h"

#define CGROUPS_MAX 16384 /* at a time */

struct cgroups;

struct cgroup {
	char *path; /* from the root of the hierarchy, with a slash in front, as the kernel has it */
	struct cgroup_path what;
	struct pod_names names; /* see cgroup__find_names */
	/* private */
	uint32_t refs;
	uint64_t names_ns; /* when its names may be looked for again, CLOCK_MONOTONIC */
};

/* Where there is no hierarchy, none is found. NULL with errno. */
struct cgroups *cgroups__new(void);
/* References are void then. */
void cgroups__free(struct cgroups *c);

/* The group of this id, as bpf_get_current_cgroup_id has it, with a reference, which the caller gives
 * back. NULL: it is the root, or it was gone already, or there are too many. */
struct cgroup *cgroups__find(struct cgroups *c, uint64_t id);
void cgroup__ref(struct cgroup *g);
void cgroup__unref(struct cgroup *g);

/* Looks for a group's names in Kubernetes, if they are not known: kubelet makes its folders later than
 * a container's first sample may come. Once a second at most. */
void cgroup__find_names(struct cgroup *g);

#endif
