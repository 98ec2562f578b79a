/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks up separate debug files below a root directory and checks that they belong to the object.
 */
#include "target/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/util.h"

#define CRC_CHUNK (256U << 10)
#define MAX_ALTLINK 4096

static int open_elf(struct debugfile *d, const char *path)
{
	/* not blocking: it may be a FIFO */
	d->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (d->fd < 0)
		return -ENOENT;
	d->elf = elf_file__open_debug(d->fd);
	if (!d->elf) {
		int err = errno == ENOMEM ? -ENOMEM : -ENOENT;

		debugfile__close(d);
		return err;
	}
	return 0;
}

static bool has_build_id(const struct elf_file *elf, const uint8_t *id, size_t sz)
{
	size_t other_sz;
	const uint8_t *other = elf_file__build_id(elf, &other_sz);

	return sz && other_sz == sz && !memcmp(other, id, sz);
}

static int open_by_build_id(struct debugfile *d, const uint8_t *id, size_t sz, const char *root)
{
	char path[PATH_MAX];
	size_t i;
	int err, n;

	if (sz < 2)
		return -ENOENT;
	n = snprintf(path, sizeof(path), "%s/.build-id/%02x/", root, id[0]);
	if (n < 0 || n + 2 * sz + sizeof(".debug") > sizeof(path))
		return -ENOENT;
	for (i = 1; i < sz; i++)
		n += snprintf(path + n, sizeof(path) - n, "%02x", id[i]);
	snprintf(path + n, sizeof(path) - n, ".debug");
	err = open_elf(d, path);
	if (!err && !has_build_id(d->elf, id, sz)) {
		debugfile__close(d);
		err = -ENOENT;
	}
	return err;
}

/* The CRC of a whole file, as .gnu_debuglink has it (GDB manual, "Separate Debug Files"): zlib's.
 */
static int file_crc(const struct elf_file *elf, uint32_t *ret)
{
	unsigned char *buf = malloc(CRC_CHUNK);
	uint32_t crc = crc32(0, NULL, 0);
	ssize_t n;
	off_t off = 0;

	if (!buf)
		return -ENOMEM;
	while ((n = pread(elf_file__fd(elf), buf, CRC_CHUNK, off)) > 0) {
		crc = crc32(crc, buf, n);
		off += n;
	}
	free(buf);
	*ret = crc;
	return n ? -errno : 0;
}

/* Does a component of the path lead upwards? */
static bool leads_up(const char *path)
{
	const char *p = path;

	while ((p = strstr(p, ".."))) {
		if ((p == path || p[-1] == '/') && (!p[2] || p[2] == '/'))
			return true;
		p += 2;
	}
	return false;
}

static int open_by_link(struct debugfile *d, const struct elf_file *elf, const char *object,
			const char *root)
{
	const char *slash = strrchr(object, '/');
	char name[256], path[PATH_MAX];
	uint32_t want, crc;
	int err, n;

	if (object[0] != '/' || leads_up(object) || !elf_file__debuglink(elf, name, &want))
		return -ENOENT;
	n = snprintf(path, sizeof(path), "%s%.*s/%s", root, (int)(slash - object), object, name);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENOENT;
	err = open_elf(d, path);
	if (err)
		return err;
	err = file_crc(d->elf, &crc);
	if (!err && crc != want)
		err = -ENOENT;
	if (err)
		debugfile__close(d);
	return err == -ENOMEM ? err : err ? -ENOENT : 0;
}

int debugfile__open(struct debugfile *d, const struct elf_file *elf, const char *path,
		    const char *root)
{
	size_t sz;
	const uint8_t *id = elf_file__build_id(elf, &sz);
	int err;

	*d = (struct debugfile){ .fd = -1 };
	err = open_by_build_id(d, id, sz, root);
	if (err == -ENOENT)
		err = open_by_link(d, elf, path, root);
	return err;
}

int debugfile__open_alt(struct debugfile *d, const struct elf_file *elf, const char *root)
{
	char link[MAX_ALTLINK], path[PATH_MAX], *rest;
	struct elf_section s;
	const uint8_t *id;
	size_t len, sz;
	int err, n;

	*d = (struct debugfile){ .fd = -1 };
	if (!elf_file__section(elf, ".gnu_debugaltlink", &s) || s.size > sizeof(link) ||
	    elf_file__read(elf, s.offset, link, s.size))
		return -ENOENT;
	len = strnlen(link, s.size);
	if (len + 1 >= s.size)
		return -ENOENT;
	id = (const uint8_t *)link + len + 1;
	sz = s.size - len - 1;
	if (sz > ELF_FILE_MAX_BUILD_ID)
		return -ENOENT;
	err = open_by_build_id(d, id, sz, root);
	if (err != -ENOENT)
		return err;
	rest = strstr(link, "/.dwz/");
	if (!rest || leads_up(rest))
		return -ENOENT;
	n = snprintf(path, sizeof(path), "%s%s", root, rest);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENOENT;
	err = open_elf(d, path);
	if (!err && !has_build_id(d->elf, id, sz)) {
		debugfile__close(d);
		err = -ENOENT;
	}
	return err;
}

void debugfile__close(struct debugfile *d)
{
	elf_file__free(d->elf);
	if (d->fd >= 0)
		close(d->fd);
	*d = (struct debugfile){ .fd = -1 };
}
