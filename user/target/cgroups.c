// SPDX-License-Identifier: BSD-2-Clause
#include "target/cgroups.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/rest.h"
#include "base/util.h"
#include "target/container_names.h"

#define DROP_NS NSEC_PER_SEC /* between two looks for groups that nobody refers to */
/* FILEID_KERNFS, include/linux/exportfs.h: the handle is the id, 64 bits. */
#define KERNFS_HANDLE 0xfe
#define MOUNT "/sys/fs/cgroup"
#define MOUNT_BESIDE_V1 MOUNT "/unified"
#define REMEDY "boot with systemd.unified_cgroup_hierarchy=1"
#define NAMES_NS NSEC_PER_SEC /* between two times that names are looked for */

/* When files of runtimes are looked for, since the first time. */
static const uint64_t asks_ns[] = { 0, NSEC_PER_SEC, 10 * NSEC_PER_SEC, 60 * NSEC_PER_SEC };

struct by_id {
	uint64_t id;
	struct cgroup *group; /* NULL: nothing is known of it */
};

struct cgroups {
	int mount_fd; /* -1: there is no hierarchy */
	const char *mount;
	struct hash by_id; /* struct by_id */
	uint64_t next_drop_ns;
	struct objects *objects;
	struct rest rest; /* files of runtimes have done harm */
};

/* Beside the hierarchies of v1, the other one lies a folder below. */
static int open_mount(struct cgroups *c)
{
	static const char *const paths[] = { MOUNT, MOUNT_BESIDE_V1 };
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		int fd = open(paths[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0 && !fstatfs(fd, &fs) && fs.f_type == CGROUP2_SUPER_MAGIC) {
			c->mount = paths[i];
			return fd;
		}
		if (fd >= 0)
			close(fd);
	}
	return -1;
}

struct cgroups *cgroups__new(struct objects *objects)
{
	struct cgroups *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	hash__init(&c->by_id, sizeof(struct by_id), sizeof(uint64_t), CGROUPS_MAX);
	c->mount_fd = open_mount(c);
	c->objects = objects;
	return c;
}

static void free_group(struct cgroup *g)
{
	if (!g)
		return;
	pod_names__done(&g->names);
	free(g->path);
	free(g);
}

void cgroups__free(struct cgroups *c)
{
	struct hash_iter it;
	struct by_id *e;

	if (!c)
		return;
	it = hash__iter(&c->by_id);
	while ((e = hash_iter__next(&it)))
		free_group(e->group);
	hash__done(&c->by_id);
	if (c->mount_fd >= 0)
		close(c->mount_fd);
	free(c);
}

const char *cgroups_missing(void)
{
	struct cgroups c = { 0 };
	int fd = open_mount(&c);

	if (fd >= 0)
		close(fd);
	if (!c.mount)
		return "no cgroup v2 is mounted at " MOUNT
		       ": no container, pod and unit is known; " REMEDY;
	/* runtimes make groups for containers beside it, unless they ask systemd for them */
	if (!strcmp(c.mount, MOUNT_BESIDE_V1))
		return "cgroup v2 is beside v1 at " MOUNT_BESIDE_V1
		       ": units are known, and of containers and pods those that systemd made "
		       "groups for; " REMEDY;
	return NULL;
}

/* open_by_handle_at(2), which asks for CAP_DAC_READ_SEARCH; the alternative is to walk through all
 * groups. NULL: it is gone. The root's is "". */
static char *path_of(const struct cgroups *c, uint64_t id)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + sizeof(id)];
	} h = { .handle = { .handle_bytes = sizeof(id), .handle_type = KERNFS_HANDLE } };
	char link[64], path[PATH_MAX];
	size_t len = strlen(c->mount);
	ssize_t n;
	int fd;

	memcpy(h.handle.f_handle, &id, sizeof(id));
	fd = open_by_handle_at(c->mount_fd, &h.handle, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	close(fd);
	/* one above what is mounted here has another beginning */
	if (n < (ssize_t)len || n == sizeof(path) || memcmp(path, c->mount, len))
		return NULL;
	return strndup(path + len, (size_t)n - len);
}

static struct cgroup *look_up(struct cgroups *c, uint64_t id)
{
	char *path = c->mount_fd < 0 ? NULL : path_of(c, id);
	struct cgroup *g = path && *path ? calloc(1, sizeof(*g)) : NULL;

	if (!g) {
		free(path);
		return NULL;
	}
	g->of = c;
	g->path = path;
	cgroup_path__parse(path, &g->what);
	return g;
}

/* Those that nobody refers to make room for others. */
static void drop_unused(struct cgroups *c)
{
	struct hash_iter it = hash__iter(&c->by_id);
	struct by_id *e;

	while ((e = hash_iter__next(&it)))
		if (!e->group || !e->group->refs) {
			free_group(e->group);
			hash__remove(&c->by_id, e);
		}
}

struct cgroup *cgroups__find(struct cgroups *c, uint64_t id)
{
	struct by_id *e = hash__lookup(&c->by_id, &id);
	bool is_new = false;

	/* not for each record: whoever may make so many groups may keep it full */
	if (!e && c->by_id.cnt == CGROUPS_MAX && util_monotonic_ns() >= c->next_drop_ns) {
		drop_unused(c);
		c->next_drop_ns = util_monotonic_ns() + DROP_NS;
	}
	if (!e)
		e = hash__insert(&c->by_id, &id, &is_new);
	/* all that there is room for are referred to */
	if (!e)
		return NULL;
	if (is_new)
		e->group = look_up(c, id);
	if (!e->group)
		return NULL;
	cgroup__ref(e->group);
	return e->group;
}

void cgroup__ref(struct cgroup *g)
{
	g->refs++;
}

void cgroup__unref(struct cgroup *g)
{
	g->refs--;
}

static bool lacks_pod(const struct cgroup *g)
{
	return *g->what.pod && !g->names.pod;
}

static bool lacks_names(const struct cgroup *g)
{
	return lacks_pod(g) || (*g->what.container && !g->names.container);
}

bool cgroup__awaits_names(const struct cgroup *g)
{
	return lacks_pod(g) || (lacks_names(g) && g->asks < ARRAY_SIZE(asks_ns));
}

/* Files that do not answer are left alone for a while, whosever they are. */
static void ask_files(struct cgroup *g, uint64_t now)
{
	struct cgroups *c = g->of;

	(void)rest__ends(&c->rest);
	if (c->rest.until_ns || g->asks == ARRAY_SIZE(asks_ns) ||
	    now < g->first_ns + asks_ns[g->asks])
		return;
	g->asks++;
	if (c->objects && lacks_names(g) &&
	    container_names__find("", c->objects, g->what.pod, g->what.container, &g->names))
		rest__begin(&c->rest);
}

void cgroup__find_names(struct cgroup *g)
{
	uint64_t now;

	if (!cgroup__awaits_names(g))
		return;
	now = util_monotonic_ns();
	if (now < g->names_ns)
		return;
	g->names_ns = now + NAMES_NS;
	if (!g->first_ns)
		g->first_ns = now;
	if (*g->what.pod)
		pod_names__find(POD_NAMES_LOGS, g->what.pod, g->what.container, &g->names);
	ask_files(g, now);
}
