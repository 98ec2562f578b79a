/* SPDX-License-Identifier: BSD-2-Clause */
#include "spool/dump_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "spool/new_file.h"

#define TMP_PREFIX ".dump-"
#define TMP_SUFFIX ".tmp"
#define MAX_TRIES 1000 /* of names that are taken */

struct dump_folder {
	int spool, fd;
	char tmp[DUMP_FOLDER_NAME_SZ]; /* "": there is none any more */
};

/* ---- what is left of others ---- */

static bool is_tmp(const char *name)
{
	size_t len = strlen(name), prefix = strlen(TMP_PREFIX), suffix = strlen(TMP_SUFFIX);

	return len > prefix + suffix && !strncmp(name, TMP_PREFIX, prefix) &&
	       !strcmp(name + len - suffix, TMP_SUFFIX);
}

/* The folder's own descriptor stays as it is. */
static DIR *open_dir(int folder)
{
	int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

/* A folder of files alone. */
static void remove_folder(int spool, const char *name, int fd)
{
	DIR *dir = open_dir(fd);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		(void)unlinkat(fd, e->d_name, 0);
	if (dir)
		closedir(dir);
	(void)unlinkat(spool, name, AT_REMOVEDIR);
}

/* One that nobody writes any more. */
static void remove_left(int spool, const char *name)
{
	int fd = openat(spool, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		remove_folder(spool, name, fd);
	close(fd);
}

static void clean_up(int spool)
{
	DIR *dir = open_dir(spool);
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (is_tmp(e->d_name))
			remove_left(spool, e->d_name);
	if (dir)
		closedir(dir);
}

/* ---- a new one ---- */

/* Makes the folder of this name. 0; -EEXIST: it is another one's, or one that cleans up has taken it
 * for a left one before it was locked; -errno. */
static int make(struct dump_folder *d, const char *name)
{
	struct stat st;
	int fd;

	if (mkdirat(d->spool, name, 0700))
		return -errno;
	fd = openat(d->spool, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -EEXIST : -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st) || !st.st_nlink) {
		close(fd);
		return -EEXIST;
	}
	d->fd = fd;
	snprintf(d->tmp, sizeof(d->tmp), "%s", name);
	return 0;
}

int dump_folder__new(int spool, struct dump_folder **ret)
{
	struct dump_folder *d = calloc(1, sizeof(*d));
	int err = d ? -EEXIST : -ENOMEM;
	char name[DUMP_FOLDER_NAME_SZ];

	*ret = NULL;
	if (!d)
		return err;
	*d = (struct dump_folder){ .spool = spool, .fd = -1 };
	clean_up(spool);
	for (int i = 1; err == -EEXIST && i <= MAX_TRIES; i++) {
		snprintf(name, sizeof(name), TMP_PREFIX "%d" TMP_SUFFIX, i);
		err = make(d, name);
	}
	if (err)
		dump_folder__free(d);
	else
		*ret = d;
	return err;
}

void dump_folder__free(struct dump_folder *d)
{
	if (!d)
		return;
	if (*d->tmp)
		remove_folder(d->spool, d->tmp, d->fd);
	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

int dump_folder__add(struct dump_folder *d, const char *name, int (*write)(void *ctx, FILE *f),
		     void *ctx)
{
	struct stat st;

	return new_file_write(d->fd, name, true, write, ctx, &st);
}

/* An empty folder is one that another may be renamed to, which is the only way to take a name that all
 * file systems have. */
static int take_name(struct dump_folder *d, const char *name)
{
	int err = 0;

	if (mkdirat(d->spool, name, 0700))
		return -errno;
	if (renameat(d->spool, d->tmp, d->spool, name))
		err = -errno;
	if (err)
		(void)unlinkat(d->spool, name, AT_REMOVEDIR);
	return err == -EEXIST ? -EIO : err;
}

int dump_folder__commit(struct dump_folder *d, uint64_t time_ns,
			char ret_name[static DUMP_FOLDER_NAME_SZ])
{
	time_t seconds = (time_t)(time_ns / NSEC_PER_SEC);
	int err = fsync(d->fd) ? -errno : -EEXIST;
	char text[32];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "dump-%Y%m%dT%H%M%SZ", &tm);
	for (int i = 1; err == -EEXIST && i <= MAX_TRIES; i++) {
		snprintf(ret_name, DUMP_FOLDER_NAME_SZ, "%s", text);
		if (i > 1)
			snprintf(ret_name + strlen(text), DUMP_FOLDER_NAME_SZ - strlen(text), "-%d",
				 i);
		err = take_name(d, ret_name);
	}
	if (err)
		return err;
	*d->tmp = '\0';
	/* it is there, on the disk or not */
	(void)fsync(d->spool);
	return 0;
}
