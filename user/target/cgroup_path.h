/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a control group's path says of the processes in it: which container, which pod, which unit of
 * systemd. Paths are made by whoever made the groups: systemd (systemd.slice(5), systemd.scope(5)),
 * kubelet with its two drivers, containerd, CRI-O, docker, podman, LXC, systemd-nspawn. Nothing is
 * asked; a path of nobody's form says nothing.
 *
 * Groups of a user's manager are called as he likes, also as somebody else's: there his units and
 * containers have its name and a slash in front, as user@1000.service/x.service, and no pods are.
 */
#ifndef TARGET_CGROUP_PATH_H
#define TARGET_CGROUP_PATH_H

#include <stddef.h>

#define CGROUP_ID_SZ 128
#define CGROUP_UNIT_SZ 256

struct cgroup_path {
	char container[CGROUP_ID_SZ]; /* its id; of LXC and systemd-nspawn its name; "": none */
	char pod[37]; /* the pod's uid with dashes, or 32 digits of a static pod; "": none */
	/* the innermost service or scope of systemd, of the host where there is a container, unescaped; "": none */
	char unit[CGROUP_UNIT_SZ];
};

/* path: below the root of the hierarchy, with a slash in front; any bytes. Names that are too long
 * are none. */
void cgroup_path__parse(const char *path, struct cgroup_path *ret);

#endif
