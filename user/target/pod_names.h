/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of pods and containers in Kubernetes, by the folders that kubelet keeps for logs: there is
 * one on each node, and nothing has to be asked, and no file be read.
 *
 *   <logs>/pods/<namespace>_<pod>_<uid>/
 *   <logs>/containers/<pod>_<namespace>_<container>-<container id>.log
 *
 * (pkg/kubelet/kuberuntime: BuildPodLogsDirectory, legacyLogSymlink.) Names of the second form are cut
 * where they are longer than a file's may be: then the id is not whole.
 */
#ifndef TARGET_POD_NAMES_H
#define TARGET_POD_NAMES_H

#define POD_NAMES_LOGS "/var/log"

struct pod_names {
	char *space, *pod, *container; /* NULL: not known; container: also of one in no pod */
	char *service; /* of Compose or Swarm, that a container in no pod is one of; NULL: none */
};

/* Adds to *ret, where what is known stays unless it is found anew. uid, container: ids as cgroup_path.h
 * has them; "": none. logs: POD_NAMES_LOGS, but in tests. What there is no memory for is not known.
 * pod_names__done frees. */
void pod_names__find(const char *logs, const char *uid, const char *container,
		     struct pod_names *ret);
void pod_names__done(struct pod_names *n);

#endif
