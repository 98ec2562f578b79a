/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control groups (cgroup v2) that samples came from, by the kernel's ids: paths, and what these
 * say (cgroup_path.h). A group is looked up when its id is first met, since it may be gone when a
 * profile is written; the kernel gives no id twice.
 */
#ifndef TARGET_CGROUPS_H
#define TARGET_CGROUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "target/cgroup_path.h"
#include "target/pod_names.h"

#define CGROUPS_MAX 16384 /* at a time */

struct cgroups;
struct objects;

struct cgroup {
	char *path; /* from the root of the hierarchy, with a slash in front, as the kernel has it */
	struct cgroup_path what;
	struct pod_names names; /* see cgroup__find_names */
	/* private */
	uint32_t refs;
	struct cgroups *of;
	uint64_t names_ns; /* when its names may be looked for again, CLOCK_MONOTONIC */
	uint64_t first_ns; /* when that was done first; 0: not yet */
	uint32_t asks;	   /* how often its runtime's files were looked for */
};

/* Borrows objects, whose readers read files of containers; NULL: none is read. Where there is no
 * hierarchy, none is found. NULL with errno. */
struct cgroups *cgroups__new(struct objects *objects);
/* References are void then. */
void cgroups__free(struct cgroups *c);

/* What cannot be known of where processes belong, since the host has cgroup v1, and what to do; NULL:
 * nothing. */
const char *cgroups_missing(void);

/* The group of this id, as bpf_get_current_cgroup_id has it, with a reference, which the caller gives
 * back. NULL: it is the root, or it was gone already, or there are too many. */
struct cgroup *cgroups__find(struct cgroups *c, uint64_t id);
void cgroup__ref(struct cgroup *g);
void cgroup__unref(struct cgroup *g);

/*
 * Looks for the names of a group's container and pod, if they are not known: in kubelet's folders
 * (pod_names.h), then in the runtime's files (container_names.h). Both are made later than a first
 * sample may come: it is tried again, once a second while the pod's name is not known, for what else
 * is missing 1, 10 and 60 s after the first time.
 */
void cgroup__find_names(struct cgroup *g);
/* May there be more of them later? */
bool cgroup__awaits_names(const struct cgroup *g);

#endif
