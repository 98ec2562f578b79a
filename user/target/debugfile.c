/* SPDX-License-Identifier: BSD-2-Clause */
/* Looks up separate debug files and checks that they belong to the object. */
#include "target/debugfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "target/fetched.h"
#include "target/path_walk.h"

static bool same_inode(const struct file_stat *a, const struct file_stat *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/* May the file at st be read for the object? By the rules of debugfile.h. */
static bool may_serve(const struct debugfile_object *o, const struct file_stat *st)
{
	if (!o->st || file_stat_trusted(o->st))
		return file_stat_trusted(st) && !(o->st && same_inode(st, o->st));
	/* an object that others than its owner may write could ask for what only its owner may read */
	return !same_inode(st, o->st) &&
	       (st->mode & S_IROTH ||
		(st->uid == o->st->uid && !(o->st->mode & (S_IWGRP | S_IWOTH))));
}

/* Who asks for it, as path_walk has it: whoever may have written the object. The owner of one that a group may write,
 * too, as that may be the owner's own. */
static uint32_t who_asks(const struct debugfile_object *o)
{
	if (!o->st || file_stat_trusted(o->st))
		return PATH_WALK_US;
	return o->st->mode & S_IWOTH ? PATH_WALK_ANYBODY : o->st->uid;
}

/* An ELF file at a path in a root that may be read for the object. Nothing is left open if it fails:
 * -ENOENT, -ENOMEM */
__attribute__((format(printf, 4, 5))) static int
open_elf(struct debugfile *d, const struct debugfile_object *o, int root, const char *fmt, ...)
{
	va_list ap;
	int n, err;

	va_start(ap, fmt);
	n = vsnprintf(d->path, sizeof(d->path), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(d->path))
		return -ENOENT;
	d->fd = reader__open_in(o->reader, root, d->path, who_asks(o));
	if (d->fd < 0)
		return -ENOENT;
	d->root = root;
	err = file_stat_regular(d->fd, &d->st);
	if (!err)
		err = may_serve(o, &d->st) ? reader__describe(o->reader, d->fd, true, &d->file) :
					     -EPERM;
	if (err)
		debugfile__close(d);
	return err == -ENOMEM ? err : err ? -ENOENT : 0;
}

static bool has_id(const struct reader_file *f, const uint8_t *id, size_t sz)
{
	return sz && f->build_id_sz == sz && !memcmp(f->build_id, id, sz);
}

/* Keeps what was opened only if it has that build id. */
static int check_id(struct debugfile *d, const uint8_t *id, size_t sz, int err)
{
	if (err || has_id(&d->file, id, sz))
		return err;
	debugfile__close(d);
	return -ENOENT;
}

static int open_by_build_id(struct debugfile *d, const struct debugfile_object *o, int root,
			    const uint8_t *id, size_t sz)
{
	char hex[2 * ELF_FILE_MAX_BUILD_ID + 1];

	if (sz < 2)
		return -ENOENT;
	for (size_t i = 0; i < sz; i++)
		sprintf(hex + 2 * i, "%02x", id[i]);
	return check_id(
		d, id, sz,
		open_elf(d, o, root, DEBUGFILE_FOLDER "/.build-id/%.2s/%s.debug", hex, hex + 2));
}

/* Keeps what was opened only if it is what the object's .gnu_debuglink means. A build id says so
 * without a look at all of the file. */
static int check_link(struct debugfile *d, const struct debugfile_object *o)
{
	const struct reader_file *f = o->file;
	uint32_t crc;
	int err;

	if (f->build_id_sz && d->file.build_id_sz)
		return check_id(d, f->build_id, f->build_id_sz, 0);
	err = reader__crc(o->reader, d->fd, &crc);
	if (!err && crc == f->debuglink_crc)
		return 0;
	debugfile__close(d);
	return err == -ENOMEM ? err : -ENOENT;
}

static int open_by_link(struct debugfile *d, const struct debugfile_object *o, int root)
{
	static const char *const before[] = { "", "", DEBUGFILE_FOLDER };
	static const char *const between[] = { "/", "/.debug/", "/" };
	const char *slash = strrchr(o->path, '/');
	int err = -ENOENT;

	if (o->path[0] != '/' || !o->file->debuglink[0])
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(before) && err == -ENOENT; i++) {
		err = open_elf(d, o, root, "%s%.*s%s%s", before[i], (int)(slash - o->path), o->path,
			       between[i], o->file->debuglink);
		if (!err)
			err = check_link(d, o);
	}
	return err;
}

/* What was fetched, and by whom it may be read for, is not ruled by who may read it here. */
static int open_fetched(struct debugfile *d, const struct debugfile_object *o, const uint8_t *id,
			size_t sz)
{
	int fd = o->fetched && sz ? fetched__find(o->fetched, id, sz) : -1, err;

	if (fd >= 0)
		d->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (d->fd < 0)
		return -ENOENT;
	d->root = -1;
	d->fetched = true;
	d->path[0] = '\0';
	err = file_stat_regular(d->fd, &d->st);
	if (!err)
		err = reader__describe(o->fetched_reader, d->fd, true, &d->file);
	if (err)
		debugfile__close(d);
	return err == -ENOMEM ? err : check_id(d, id, sz, err ? -ENOENT : 0);
}

int debugfile__open(struct debugfile *d, const struct debugfile_object *o)
{
	int err = -ENOENT;

	*d = (struct debugfile){ .fd = -1 };
	for (size_t i = 0; i < o->root_cnt && err == -ENOENT; i++)
		err = open_by_build_id(d, o, o->roots[i], o->file->build_id, o->file->build_id_sz);
	for (size_t i = 0; i < o->root_cnt && err == -ENOENT; i++)
		err = open_by_link(d, o, o->roots[i]);
	return err == -ENOENT ? open_fetched(d, o, o->file->build_id, o->file->build_id_sz) : err;
}

/* Where the link leads from path, which has it. */
static int open_alt_by_link(struct debugfile *d, const struct debugfile_object *o, int root,
			    const struct reader_file *of, const char *path)
{
	const char *slash = strrchr(path, '/'), *tail = strstr(of->alt_name, "/.dwz/");
	int err = -ENOENT;

	if (!of->alt_name[0])
		return err;
	if (of->alt_name[0] == '/')
		err = open_elf(d, o, root, "%s", of->alt_name);
	else if (path[0] == '/')
		err = open_elf(d, o, root, "%.*s/%s", (int)(slash - path), path, of->alt_name);
	err = check_id(d, of->alt_id, of->alt_id_sz, err);
	if (err != -ENOENT || !tail)
		return err;
	return check_id(d, of->alt_id, of->alt_id_sz,
			open_elf(d, o, root, DEBUGFILE_FOLDER "%s", tail));
}

int debugfile__open_alt(struct debugfile *d, const struct debugfile_object *o,
			const struct debugfile *of)
{
	bool own = of->fd < 0;
	const struct reader_file *f = own ? o->file : &of->file;
	const char *path = own ? o->path : of->path;
	int err = -ENOENT;

	*d = (struct debugfile){ .fd = -1 };
	if (!f->alt_id_sz)
		return err;
	for (size_t i = 0; i < o->root_cnt && err == -ENOENT; i++)
		err = open_by_build_id(d, o, o->roots[i], f->alt_id, f->alt_id_sz);
	for (size_t i = 0; i < o->root_cnt && err == -ENOENT; i++)
		if (own || of->root == o->roots[i])
			err = open_alt_by_link(d, o, o->roots[i], f, path);
	return err == -ENOENT ? open_fetched(d, o, f->alt_id, f->alt_id_sz) : err;
}

int debugfile__open_split(struct debugfile *d, const struct debugfile_object *o, const char *path,
			  const char *ending)
{
	int err = -ENOENT;

	*d = (struct debugfile){ .fd = -1 };
	for (size_t i = 0; i < o->root_cnt && err == -ENOENT && path[0] == '/'; i++)
		err = open_elf(d, o, o->roots[i], "%s%s", path, ending);
	return err;
}

void debugfile__close(struct debugfile *d)
{
	reader_file__done(&d->file);
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}
