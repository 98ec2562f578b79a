/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the service is called that a process belongs to, by what can be known of it without asking
 * anybody: stores of profiles have a series for each (service_name; service.name in OpenTelemetry).
 */
#ifndef AGENT_SERVICE_H
#define AGENT_SERVICE_H

#include <stddef.h>

#define SERVICE_NAME_SZ 257

/* NULL or "": not known. */
struct service_facts {
	const char *said; /* by the process itself, else by the configuration */
	const char *pod, *container_service, *container, *container_id, *unit, *comm;
};

/*
 * The name by the first that is known: what the process or the configuration says, the workload that
 * has made the pod, the service of Compose or Swarm that the container is one of, the container's
 * name, the container's id, cut to twelve digits as Docker shows it where it is no name, behind the
 * user's manager that it is below, the unit of systemd (services without ".service"), the program's
 * name. "unknown" if nothing is.
 * ret: valid UTF-8 if the facts are, without control characters, cut at a character.
 */
void service_name(const struct service_facts *f, char ret[static SERVICE_NAME_SZ]);

/*
 * The workload of a pod, by how Kubernetes names pods: a Deployment's have a hash and five random
 * characters behind its name, a DaemonSet's and a Job's the latter, a CronJob's a time of eight
 * digits before them, a StatefulSet's a number (SafeEncodeString in
 * apimachinery/pkg/util/rand). Bytes of the pod's name that are the workload's.
 */
size_t service_workload(const char *pod);

/*
 * The same of a static pod, which kubelet runs from a file and names by that and the node, in lower case
 * (generatePodName in pkg/kubelet/config); its uid is a hash: 32 digits. 0: it is none, or of no node
 * called so.
 */
size_t service_static_pod(const char *pod, const char *uid, const char *node);

#endif
