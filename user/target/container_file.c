// SPDX-License-Identifier: BSD-2-Clause
#include "target/container_file.h"

#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/util.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz"
#define CAPITALS "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

/* Labels and annotations. The first one that there is counts. */
static const struct {
	enum container_file whose;
	const char *key;
	enum container_fact fact;
} keys[] = {
	/* dockershim, cri-dockerd: kubelet's types.KubernetesContainerNameLabel and its like */
	{ CONTAINER_FILE_DOCKER, "io.kubernetes.pod.uid", CONTAINER_POD_UID },
	{ CONTAINER_FILE_DOCKER, "io.kubernetes.pod.name", CONTAINER_POD },
	{ CONTAINER_FILE_DOCKER, "io.kubernetes.pod.namespace", CONTAINER_NAMESPACE },
	{ CONTAINER_FILE_DOCKER, "io.kubernetes.container.name", CONTAINER_IN_POD },
	{ CONTAINER_FILE_DOCKER, "com.docker.swarm.service.name", CONTAINER_SERVICE },
	{ CONTAINER_FILE_DOCKER, "com.docker.compose.service", CONTAINER_SERVICE },
	/* containerd: internal/cri/annotations */
	{ CONTAINER_FILE_CONTAINERD, "io.kubernetes.cri.sandbox-uid", CONTAINER_POD_UID },
	{ CONTAINER_FILE_CONTAINERD, "io.kubernetes.cri.sandbox-name", CONTAINER_POD },
	{ CONTAINER_FILE_CONTAINERD, "io.kubernetes.cri.sandbox-namespace", CONTAINER_NAMESPACE },
	{ CONTAINER_FILE_CONTAINERD, "io.kubernetes.cri.container-name", CONTAINER_IN_POD },
	/* nerdctl: pkg/labels; Compose's are among them */
	{ CONTAINER_FILE_CONTAINERD, "nerdctl/name", CONTAINER_NAME },
	{ CONTAINER_FILE_CONTAINERD, "com.docker.compose.service", CONTAINER_SERVICE },
	/* CRI-O: server/container_create.go */
	{ CONTAINER_FILE_CRIO, "io.kubernetes.pod.uid", CONTAINER_POD_UID },
	{ CONTAINER_FILE_CRIO, "io.kubernetes.pod.name", CONTAINER_POD },
	{ CONTAINER_FILE_CRIO, "io.kubernetes.pod.namespace", CONTAINER_NAMESPACE },
	{ CONTAINER_FILE_CRIO, "io.kubernetes.container.name", CONTAINER_IN_POD },
};

/* Docker: names.RestrictedNameChars, which podman and nerdctl have taken over. Kubernetes: RFC 1123; a
 * pod's own container, which holds its namespaces, is "POD" to some. */
static bool is_name(enum container_fact fact, const char *s, size_t len)
{
	const char *may =
		fact < CONTAINER_POD_UID ? LETTERS CAPITALS DIGITS "-._" : LETTERS DIGITS "-.";

	return len && len < CONTAINER_NAME_SZ && strspn(s, may) >= len && !strchr("-._", *s);
}

static void put(struct container_said *ret, enum container_fact fact, const char *s, size_t len)
{
	if (!*ret->text[fact] && is_name(fact, s, len))
		memcpy(ret->text[fact], s, len);
}

bool container_said__is_clean(const struct container_said *s)
{
	for (int i = 0; i < CONTAINER_FACTS; i++) {
		const char *text = s->text[i];
		size_t len = strnlen(text, CONTAINER_NAME_SZ);

		if (len && !is_name((enum container_fact)i, text, len))
			return false;
		for (size_t at = len; at < CONTAINER_NAME_SZ; at++)
			if (text[at])
				return false;
	}
	return true;
}

/* ---- JSON ---- */

static void put_value(struct container_said *ret, enum container_fact fact, const json_t *v)
{
	if (json_is_string(v))
		put(ret, fact, json_string_value(v), json_string_length(v));
}

static bool is_text(const json_t *v, const char *s)
{
	return json_is_string(v) && json_string_length(v) == strlen(s) &&
	       !strcmp(json_string_value(v), s);
}

static void take_labels(enum container_file whose, const json_t *labels, struct container_said *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].whose == whose)
			put_value(ret, keys[i].fact, json_object_get(labels, keys[i].key));
}

static int take_docker(const json_t *root, const char *id, struct container_said *ret)
{
	const json_t *name = json_object_get(root, "Name");
	const char *s = json_string_value(name);

	if (!is_text(json_object_get(root, "ID"), id))
		return -ENOENT;
	/* "/shop-web-1": what other containers call it as well would have more slashes */
	if (s && *s == '/')
		put(ret, CONTAINER_NAME, s + 1, json_string_length(name) - 1);
	take_labels(CONTAINER_FILE_DOCKER,
		    json_object_get(json_object_get(root, "Config"), "Labels"), ret);
	return 0;
}

/* [{"id":"…","names":["…"],…},…] */
static int take_storage(const json_t *root, const char *id, struct container_said *ret)
{
	for (size_t i = 0; i < json_array_size(root); i++) {
		const json_t *c = json_array_get(root, i);

		if (!is_text(json_object_get(c, "id"), id))
			continue;
		put_value(ret, CONTAINER_NAME, json_array_get(json_object_get(c, "names"), 0));
		return 0;
	}
	return -ENOENT;
}

static int take(enum container_file whose, const json_t *root, const char *id,
		struct container_said *ret)
{
	switch (whose) {
	case CONTAINER_FILE_DOCKER:
		return take_docker(root, id, ret);
	case CONTAINER_FILE_STORAGE:
		return take_storage(root, id, ret);
	default: /* its folder alone has the id */
		take_labels(whose, json_object_get(root, "annotations"), ret);
		return 0;
	}
}

/* There may be secrets in it. */
static void wipe_and_free(void *p)
{
	if (p)
		explicit_bzero(p, malloc_usable_size(p));
	free(p);
}

/* By itself the library would open /dev/urandom, to be safe from keys that are made to collide; the kernel
 * has given us random bytes already: getauxval(3). */
static void prepare_library(void)
{
	const void *random = (const void *)getauxval(AT_RANDOM);
	size_t seed = 1;

	if (random)
		memcpy(&seed, random, sizeof(seed));
	json_object_seed(seed | 1);
	json_set_alloc_funcs(malloc, wipe_and_free);
}

int container_file_parse(enum container_file whose, const char *data, size_t sz, const char *id,
			 struct container_said *ret)
{
	/* numbers that no integer holds are no reason to refuse the names beside them */
	const size_t flags = JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL;
	json_error_t error;
	json_t *root;
	int err;

	*ret = (struct container_said){ 0 };
	prepare_library();
	root = json_loadb(data, sz, flags, &error);
	if (!root)
		return json_error_code(&error) == json_error_out_of_memory ? -ENOMEM : -EBADMSG;
	err = take(whose, root, id, ret);
	json_decref(root);
	return err;
}

int container_file_read(enum container_file whose, int fd, const char *id,
			struct container_said *ret)
{
	/* one more, to see that it is larger */
	static char buf[CONTAINER_FILE_MAX + 1];
	size_t sz = 0;
	ssize_t n = 1;
	int err = 0;

	*ret = (struct container_said){ 0 };
	while (!err && n && sz < sizeof(buf)) {
		n = pread(fd, buf + sz, sizeof(buf) - sz, (off_t)sz);
		if (n < 0)
			err = errno == EINTR ? 0 : -errno;
		else
			sz += (size_t)n;
	}
	if (!err)
		err = sz > CONTAINER_FILE_MAX ? -EFBIG :
						container_file_parse(whose, buf, sz, id, ret);
	explicit_bzero(buf, sz);
	return err;
}
