/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks up separate debug files below a root directory and checks that they belong to the object.
 */
#include "target/debugfile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "target/file_stat.h"

/* Where a descriptor has led: d_path(), see proc(5) on /proc/PID/fd. */
static bool place_of(int fd, char ret[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, PATH_MAX);
	if (n <= 0 || n == PATH_MAX)
		return false;
	ret[n] = '\0';
	return true;
}

static bool is_below(int root_fd, int fd)
{
	char root[PATH_MAX], place[PATH_MAX];
	size_t len;

	if (!place_of(root_fd, root) || !place_of(fd, place))
		return false;
	len = strlen(root);
	return !strncmp(place, root, len) && place[len] == '/';
}

/*
 * Gets hold of a file below root, also by a symbolic link as long as that leads to below it as
 * well: asked when it is there, and before it is opened for reading.
 */
static int open_below(struct reader *r, const char *root, const char *path)
{
	int root_fd = reader__open(r, root), fd = -ENOENT;
	char full[PATH_MAX];
	struct file_stat st;
	int n = snprintf(full, sizeof(full), "%s/%s", root, path);

	if (root_fd >= 0 && n > 0 && (size_t)n < sizeof(full))
		fd = reader__open(r, full);
	if (fd >= 0 && (!is_below(root_fd, fd) || file_stat_regular(fd, &st))) {
		close(fd);
		fd = -ENOENT;
	}
	if (root_fd >= 0)
		close(root_fd);
	return fd < 0 ? -ENOENT : fd;
}

static int open_elf(struct debugfile *d, struct reader *r, const char *root, const char *path)
{
	int err;

	d->fd = open_below(r, root, path);
	if (d->fd < 0)
		return -ENOENT;
	err = reader__describe(r, d->fd, true, &d->file);
	if (err)
		debugfile__close(d);
	return err == -ENOMEM ? err : err ? -ENOENT : 0;
}

/* The same, if it has that build id. */
static int open_with_id(struct debugfile *d, struct reader *r, const char *root, const char *path,
			const uint8_t *id, size_t sz)
{
	int err = open_elf(d, r, root, path);

	if (!err && (!sz || d->file.build_id_sz != sz || memcmp(d->file.build_id, id, sz))) {
		debugfile__close(d);
		err = -ENOENT;
	}
	return err;
}

static int open_by_build_id(struct debugfile *d, struct reader *r, const uint8_t *id, size_t sz,
			    const char *root)
{
	char path[sizeof(".build-id/xx/.debug") + 2 * ELF_FILE_MAX_BUILD_ID];
	int n;

	if (sz < 2)
		return -ENOENT;
	n = sprintf(path, ".build-id/%02x/", id[0]);
	for (size_t i = 1; i < sz; i++)
		n += sprintf(path + n, "%02x", id[i]);
	strcpy(path + n, ".debug");
	return open_with_id(d, r, root, path, id, sz);
}

static int open_by_link(struct debugfile *d, struct reader *r, const struct reader_file *object,
			const char *object_path, const char *root)
{
	const char *slash = strrchr(object_path, '/');
	char path[PATH_MAX];
	uint32_t crc;
	int err, n;

	if (object_path[0] != '/' || !object->debuglink[0])
		return -ENOENT;
	/* from the root on; "" is the root itself */
	n = snprintf(path, sizeof(path), ".%.*s/%s", (int)(slash - object_path), object_path,
		     object->debuglink);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENOENT;
	err = open_elf(d, r, root, path);
	if (err)
		return err;
	err = reader__crc(r, d->fd, &crc);
	if (!err && crc != object->debuglink_crc)
		err = -ENOENT;
	if (err)
		debugfile__close(d);
	return err == -ENOMEM ? err : err ? -ENOENT : 0;
}

int debugfile__open(struct debugfile *d, struct reader *r, const struct reader_file *object,
		    const char *path, const char *root)
{
	int err;

	*d = (struct debugfile){ .fd = -1 };
	err = open_by_build_id(d, r, object->build_id, object->build_id_sz, root);
	if (err == -ENOENT)
		err = open_by_link(d, r, object, path, root);
	return err;
}

int debugfile__open_alt(struct debugfile *d, struct reader *r, const struct reader_file *of,
			const char *root)
{
	int err;

	*d = (struct debugfile){ .fd = -1 };
	err = open_by_build_id(d, r, of->alt_id, of->alt_id_sz, root);
	if (err != -ENOENT || strncmp(of->alt_name, "/.dwz/", 6))
		return err;
	return open_with_id(d, r, root, of->alt_name + 1, of->alt_id, of->alt_id_sz);
}

void debugfile__close(struct debugfile *d)
{
	reader_file__done(&d->file);
	if (d->fd >= 0)
		close(d->fd);
	*d = (struct debugfile){ .fd = -1 };
}
