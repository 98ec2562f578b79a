/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks up separate debug files below a root directory and checks that they belong to the object.
 */
#include "target/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "target/file_stat.h"

/* Opens a file below root, also by a symbolic link as long as that leads to below it as well. */
static int open_below(const char *root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd;
	struct file_stat st;

	if (root_fd < 0)
		return -ENOENT;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	close(root_fd);
	if (fd >= 0 && file_stat_regular(fd, &st)) {
		close(fd);
		return -ENOENT;
	}
	return fd < 0 ? -ENOENT : fd;
}

static int open_elf(struct debugfile *d, struct reader *r, const char *root, const char *path)
{
	int err;

	d->fd = open_below(root, path);
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
