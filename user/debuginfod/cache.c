// SPDX-License-Identifier: BSD-2-Clause
#include "debuginfod/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define BLOCK 512 /* stat(2): st_blocks */
#define PART ".part-"
#define ENDING ".debug"
#define MAX_NAME 160
#define BEGINS 16 /* of a file */

struct cache {
	int folder;
	uint64_t max_sz;
};

/* A file of it. */
struct entry {
	char name[MAX_NAME];
	uint64_t bytes;
	struct timespec used;
};

struct entries {
	struct entry *v;
	size_t cnt, cap;
	uint64_t bytes;
};

/* ---- the folder ---- */

static int open_folder(struct cache *c, const char *path, char *text, size_t text_sz)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return util_fail(-errno, text, text_sz,
				 "cannot make the folder '%s': %s (--debuginfod-cache names "
				 "another one)",
				 path, strerror(errno));
	c->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (c->folder < 0 && (errno == ENOTDIR || errno == ELOOP))
		return util_fail(-errno, text, text_sz, "'%s' is no folder (a link is none)", path);
	if (c->folder < 0 || fstat(c->folder, &st))
		return util_fail(-errno, text, text_sz, "cannot open the folder '%s': %s", path,
				 strerror(errno));
	if (st.st_uid != geteuid())
		return util_fail(-EPERM, text, text_sz,
				 "the folder '%s' is another user's: it has to be one of our own",
				 path);
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return util_fail(
			-EPERM, text, text_sz,
			"others have rights to the folder '%s': chmod 0700 takes them away", path);
	return 0;
}

int cache__open(const char *path, uint64_t max_sz, struct cache **ret, char *text, size_t text_sz)
{
	struct cache *c = calloc(1, sizeof(*c));
	int err;

	*ret = NULL;
	if (!c)
		return util_fail(-ENOMEM, text, text_sz, "out of memory");
	*c = (struct cache){ .folder = -1, .max_sz = max_sz };
	err = open_folder(c, path, text, text_sz);
	if (err)
		cache__close(c);
	else
		*ret = c;
	return err;
}

void cache__close(struct cache *c)
{
	if (!c)
		return;
	if (c->folder >= 0)
		close(c->folder);
	free(c);
}

/* ---- room ---- */

static bool ends_with(const char *s, const char *ending)
{
	size_t len = strlen(s), sz = strlen(ending);

	return len >= sz && !strcmp(s + len - sz, ending);
}

/* Removes what was being fetched by one that is no more. */
static void remove_left_behind(struct cache *c, const char *name)
{
	int fd = openat(c->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return;
	if (!flock(fd, LOCK_EX | LOCK_NB))
		(void)unlinkat(c->folder, name, 0);
	close(fd);
}

/* What a file takes. Some file systems give it its blocks later. */
static uint64_t bytes_of(const struct stat *st)
{
	return MAX((uint64_t)st->st_blocks * BLOCK, (uint64_t)st->st_size);
}

/* 0 or -ENOMEM. */
static int take_entry(struct cache *c, struct entries *e, const char *name)
{
	struct stat st;
	bool part = !strncmp(name, PART, strlen(PART));

	if (part)
		remove_left_behind(c, name);
	if ((!part && !ends_with(name, ENDING)) || strlen(name) >= MAX_NAME ||
	    fstatat(c->folder, name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return 0;
	e->bytes += bytes_of(&st);
	if (part)
		return 0;
	if (util_reserve(&e->v, &e->cap, e->cnt + 1, sizeof(*e->v)))
		return -ENOMEM;
	e->v[e->cnt] = (struct entry){ .bytes = bytes_of(&st), .used = st.st_mtim };
	strcpy(e->v[e->cnt++].name, name);
	return 0;
}

static int scan(struct cache *c, struct entries *ret)
{
	int fd = openat(c->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	*ret = (struct entries){ 0 };
	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (e = readdir(dir)))
		err = take_entry(c, ret, e->d_name);
	closedir(dir);
	return err;
}

static int by_use(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

/* Until it holds no more than it may, what is being fetched counted. 0 or -errno. */
static int make_room(struct cache *c)
{
	struct entries e;
	int err = scan(c, &e);

	if (!err && e.bytes > c->max_sz && e.cnt)
		qsort(e.v, e.cnt, sizeof(*e.v), by_use);
	for (size_t i = 0; !err && i < e.cnt && e.bytes > c->max_sz; i++) {
		if (unlinkat(c->folder, e.v[i].name, 0) && errno != ENOENT)
			err = -errno;
		e.bytes -= e.v[i].bytes;
	}
	free(e.v);
	return err;
}

/* ---- files ---- */

static void name_file(const char *id, char ret[MAX_NAME])
{
	snprintf(ret, MAX_NAME, "%s" ENDING, id);
}

static int look(struct cache *c, const char *name)
{
	int fd = openat(c->folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int cache__find(struct cache *c, const char *id)
{
	char name[MAX_NAME];

	name_file(id, name);
	(void)utimensat(c->folder, name, NULL, AT_SYMLINK_NOFOLLOW);
	return look(c, name);
}

int cache__look(struct cache *c, const struct cache_part *part)
{
	return look(c, part->name);
}

/* 0, -EAGAIN or -errno. */
static int begin(struct cache *c, struct cache_part *ret)
{
	uint64_t number;
	struct stat st;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = util_monotonic_ns();
	snprintf(ret->name, sizeof(ret->name), PART "%016" PRIx64, number);
	ret->fd = openat(c->folder, ret->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			 0600);
	if (ret->fd < 0)
		return -errno;
	/* somebody may have taken it for one that was left behind, before it was locked */
	if (!flock(ret->fd, LOCK_EX) && !fstat(ret->fd, &st) && st.st_nlink)
		return 0;
	close(ret->fd);
	ret->fd = -1;
	return -EAGAIN;
}

int cache__begin(struct cache *c, struct cache_part *ret)
{
	int err = -EAGAIN;

	for (int i = 0; err == -EAGAIN && i < BEGINS; i++)
		err = begin(c, ret);
	return err;
}

int cache__end(struct cache *c, struct cache_part *part, const char *id, uint64_t *ret_sz)
{
	char name[MAX_NAME];
	struct stat st = { 0 };
	int err = 0;

	if (id) {
		name_file(id, name);
		err = fstat(part->fd, &st) ? -errno : make_room(c);
		if (!err && renameat(c->folder, part->name, c->folder, name))
			err = -errno;
		*ret_sz = (uint64_t)st.st_size;
	}
	if (!id || err)
		(void)unlinkat(c->folder, part->name, 0);
	close(part->fd);
	part->fd = -1;
	return err;
}

void cache__remove(struct cache *c, const char *id)
{
	char name[MAX_NAME];

	name_file(id, name);
	(void)unlinkat(c->folder, name, 0);
}
