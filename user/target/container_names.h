/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of containers, by the files that their runtimes keep of them: no socket is asked. Where there
 * is a pod, what kubelet's folders have (pod_names.h) stays.
 *
 *   docker      /var/lib/docker/containers/<id>/config.v2.json
 *   containerd  io.containerd.runtime.v2.task/<namespace>/<id>/config.json in /run/containerd,
 *               /run/k3s/containerd, /run/k0s/containerd, /var/snap/microk8s/common/run/containerd
 *   CRI-O       overlay-containers/<id>/userdata/config.json in /run/containers/storage and
 *               /var/lib/containers/storage
 *   podman      containers.json and volatile-containers.json in the latter's overlay-containers
 *
 * Root alone writes them, into folders of root's; those of users' containers, in their homes, are not
 * looked at. No link below these folders is followed.
 */
#ifndef TARGET_CONTAINER_NAMES_H
#define TARGET_CONTAINER_NAMES_H

#include "target/pod_names.h"

struct objects;

/*
 * Adds what is not in *names yet. uid, id: as cgroup_path.h has them; uid "": it is in no pod, and what
 * a file says of one does not count, nor does it if it tells of another one. root: "", but in tests. 0,
 * also where nothing was found; -errno where something did harm (reader_harmed). 0.2 ms for a container
 * of docker, 0.06 ms where there is no runtime.
 */
int container_names__find(const char *root, struct objects *objects, const char *uid,
			  const char *id, struct pod_names *names);

#endif
