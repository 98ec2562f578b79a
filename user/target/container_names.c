// SPDX-License-Identifier: BSD-2-Clause
#include "target/container_names.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "target/container_file.h"
#include "target/file_stat.h"
#include "target/objects.h"
#include "target/reader.h"

#define ID_MIN 12 /* as short as any tool cuts one */
#define NAMESPACES_MAX 64
#define TASKS "/io.containerd.runtime.v2.task"
#define STORAGE "/storage/overlay-containers"
/* Of containerd's namespaces the one whose containers are docker's. */
#define DOCKERS "moby"

struct place {
	enum container_file whose;
	const char *folder;
	bool has_namespaces; /* a folder for each */
	bool is_list;	     /* of all containers, none of which has a folder */
	const char *below,
		*in; /* the file's name; the folder that it has in the container's, or NULL */
};

/* Docker first: it lets its users choose annotations. */
static const struct place places[] = {
	{ CONTAINER_FILE_DOCKER, "/var/lib/docker/containers", .below = "config.v2.json" },
	{ CONTAINER_FILE_CONTAINERD, "/run/containerd" TASKS, .has_namespaces = true,
	  .below = "config.json" },
	{ CONTAINER_FILE_CONTAINERD, "/run/k3s/containerd" TASKS, .has_namespaces = true,
	  .below = "config.json" },
	{ CONTAINER_FILE_CONTAINERD, "/run/k0s/containerd" TASKS, .has_namespaces = true,
	  .below = "config.json" },
	{ CONTAINER_FILE_CONTAINERD, "/var/snap/microk8s/common/run/containerd" TASKS,
	  .has_namespaces = true, .below = "config.json" },
	{ CONTAINER_FILE_CRIO, "/run/containers" STORAGE, .in = "userdata",
	  .below = "config.json" },
	{ CONTAINER_FILE_CRIO, "/var/lib/containers" STORAGE, .in = "userdata",
	  .below = "config.json" },
	{ CONTAINER_FILE_STORAGE, "/var/lib/containers" STORAGE, .is_list = true,
	  .below = "containers.json" },
	{ CONTAINER_FILE_STORAGE, "/var/lib/containers" STORAGE, .is_list = true,
	  .below = "volatile-containers.json" },
};

struct look {
	struct objects *objects;
	const char *uid, *id;
	struct pod_names *names;
};

static bool is_known(const struct look *l)
{
	const struct pod_names *n = l->names;

	return n->container && (!*l->uid || (n->pod && n->space));
}

static void add(char **to, const char *text)
{
	if (!*to && *text)
		*to = strdup(text);
}

static void take(const struct look *l, const struct container_said *s)
{
	const char *uid = s->text[CONTAINER_POD_UID];

	if (!*l->uid) {
		add(&l->names->container, s->text[CONTAINER_NAME]);
		add(&l->names->service, s->text[CONTAINER_SERVICE]);
	} else if (!*uid || !strcmp(uid, l->uid)) { /* containerd does not say it before 1.6 */
		add(&l->names->pod, s->text[CONTAINER_POD]);
		add(&l->names->space, s->text[CONTAINER_NAMESPACE]);
		add(&l->names->container, s->text[CONTAINER_IN_POD]);
	}
}

/* The file that name is in the folder; what others could have written counts for nothing. */
static int ask(const struct look *l, enum container_file whose, int folder, const char *name)
{
	struct container_said said;
	struct file_stat st;
	int fd = objects__open_at(l->objects, folder, name), err;

	if (fd < 0)
		return fd;
	err = file_stat_regular(fd, &st);
	if (!err && !file_stat_trusted(&st))
		err = -EPERM;
	if (!err && st.size > CONTAINER_FILE_MAX)
		err = -EFBIG;
	if (!err)
		err = objects__read_container(l->objects, fd, whose, l->id, &said);
	close(fd);
	if (!err)
		take(l, &said);
	return err;
}

/* The folder of this name in another one, which is closed. NULL: the other one itself. */
static int descend(const struct look *l, int folder, const char *name)
{
	int fd;

	if (!name || folder < 0)
		return folder;
	fd = objects__open_at(l->objects, folder, name);
	close(folder);
	return fd;
}

static int look_in(const struct look *l, const struct place *p, const char *path, const char *space)
{
	int folder = descend(l, objects__open(l->objects, path), space), err;

	if (!p->is_list)
		folder = descend(l, descend(l, folder, l->id), p->in);
	if (folder < 0)
		return folder;
	err = ask(l, p->whose, folder, p->below);
	close(folder);
	return err;
}

static int look_in_namespaces(const struct look *l, const struct place *p, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;
	int err = 0, n = 0;

	if (!dir)
		return 0;
	while (!is_known(l) && !reader_harmed(err) && n < NAMESPACES_MAX && (e = readdir(dir)))
		if (e->d_name[0] != '.' && strcmp(e->d_name, DOCKERS)) {
			err = look_in(l, p, path, e->d_name);
			n++;
		}
	closedir(dir);
	return err;
}

/* It becomes a file's name: names of LXC and the like are no ids. */
static bool is_id(const char *id)
{
	size_t len = strlen(id);

	return len >= ID_MIN && strspn(id, "0123456789abcdefABCDEF-") == len && id[0] != '-';
}

int container_names__find(const char *root, struct objects *objects, const char *uid,
			  const char *id, struct pod_names *names)
{
	const struct look l = { objects, uid, id, names };
	char path[PATH_MAX];
	int err = 0;

	for (size_t i = 0; is_id(id) && i < ARRAY_SIZE(places) && !is_known(&l); i++) {
		const struct place *p = &places[i];

		snprintf(path, sizeof(path), "%s%s", root, p->folder);
		err = p->has_namespaces ? look_in_namespaces(&l, p, path) :
					  look_in(&l, p, path, NULL);
		if (err && err != -ENOENT)
			log_debug("container %s: what %s has of it is not taken: %s", id, path,
				  strerror(-err));
		if (reader_harmed(err))
			return err;
	}
	return 0;
}
