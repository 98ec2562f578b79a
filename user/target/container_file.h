/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of a container in the file that its runtime has written of it, which is JSON. Only the
 * runtime writes the file, but whoever has made the container chooses much of what is in it, and its
 * environment, with secrets, is there, too: nothing is kept but names, and of these only what a runtime
 * or Kubernetes would let through.
 */
#ifndef TARGET_CONTAINER_FILE_H
#define TARGET_CONTAINER_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_FILE_MAX (1U << 20) /* bytes; what is larger is not read */
#define CONTAINER_NAME_SZ 254	      /* with the NUL */

/* Whose file it is. */
enum container_file {
	CONTAINER_FILE_DOCKER,	   /* config.v2.json (moby: container.Container) */
	CONTAINER_FILE_CONTAINERD, /* config.json (OCI runtime-spec), annotations of CRI and nerdctl */
	CONTAINER_FILE_CRIO,	   /* the same, annotations of CRI-O */
	/* containers.json, volatile-containers.json (containers/storage): all of podman's containers */
	CONTAINER_FILE_STORAGE,
	CONTAINER_FILE_NR,
};

enum container_fact {
	CONTAINER_NAME,	   /* by its runtime */
	CONTAINER_SERVICE, /* of Compose or Swarm, which it is one container of */
	/* as kubelet tells the runtime; true only of what is in a pod's group, as anybody may write so */
	CONTAINER_POD_UID,
	CONTAINER_POD,
	CONTAINER_NAMESPACE,
	CONTAINER_IN_POD, /* its name there */
	CONTAINER_FACTS,
};

/* Letters, digits, '_', '.' and '-', the first one a letter or a digit; of the pod no capitals, and no '_'.
 * "": not known. Behind the NUL all bytes are 0. */
struct container_said {
	char text[CONTAINER_FACTS][CONTAINER_NAME_SZ];
};

/*
 * What the text of a file says of the container of this id, the whole one. 0, and *ret may say nothing;
 * -EBADMSG: it is no JSON; -ENOENT: it is of another container, or has none of this id; -ENOMEM.
 */
int container_file_parse(enum container_file whose, const char *data, size_t sz, const char *id,
			 struct container_said *ret);

/* The same of a file, open for reading. -EFBIG: it is larger than CONTAINER_FILE_MAX; -errno of reading.
 * For one thread. */
int container_file_read(enum container_file whose, int fd, const char *id,
			struct container_said *ret);

/* Is it as it would be after parsing? For what another process has made. */
bool container_said__is_clean(const struct container_said *s);

#endif
