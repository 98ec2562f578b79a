// SPDX-License-Identifier: BSD-2-Clause
/* Files and folders of profiles: which files there are, and their way into the tables. */
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "judge/runs.h"
#include "judge/runs_parts.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"

#define AT_A_TIME 2 /* files in memory, whose profiles are several times as large */

struct file {
	enum runs_side side;
	char *path;
	pthread_t thread;
	bool in_thread; /* that reads it */
	/* what has become of it */
	int open_err;
	char *data;
	struct runs_file read;
};

struct files {
	struct file *list;
	size_t cnt, cap;
};

/* ---- which there are ---- */

/* The path becomes the list's. */
static int list_file(struct files *files, enum runs_side side, char *path, char *err, size_t err_sz)
{
	if (!path ||
	    util_reserve(&files->list, &files->cap, files->cnt + 1, sizeof(*files->list))) {
		free(path);
		return util_fail(-ENOMEM, err, err_sz, "out of memory");
	}
	files->list[files->cnt++] = (struct file){ .side = side, .path = path };
	return 0;
}

static int is_profile(const struct dirent *e)
{
	static const char *const ends[] = { ".pb.gz", ".pb", ".pprof", ".prof" };
	size_t sz = strlen(e->d_name);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t n = strlen(ends[i]);

		if (e->d_name[0] != '.' && sz > n && !strcmp(e->d_name + sz - n, ends[i]))
			return 1;
	}
	return 0;
}

/* not alphasort(3), which goes by the locale */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int list_folder(struct files *files, enum runs_side side, const char *path, char *err,
		       size_t err_sz)
{
	struct dirent **entries;
	int cnt = scandir(path, &entries, is_profile, by_bytes), ret = 0;

	if (cnt < 0)
		return util_fail(-errno, err, err_sz, "cannot read '%s': %s", path,
				 strerror(errno));
	if (!cnt)
		ret = util_fail(-ENOENT, err, err_sz,
				"'%s' has no profiles: files whose names end in .pb.gz, .pb, "
				".pprof or .prof",
				path);
	for (int i = 0; i < cnt; i++) {
		char *file = NULL;

		if (!ret && asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0)
			file = NULL;
		if (!ret)
			ret = list_file(files, side, file, err, err_sz);
		free(entries[i]);
	}
	free(entries);
	return ret;
}

static int list_path(struct files *files, enum runs_side side, const char *path, char *err,
		     size_t err_sz)
{
	struct stat st;

	if (stat(path, &st))
		return util_fail(-errno, err, err_sz, "cannot read '%s': %s", path,
				 strerror(errno));
	if (S_ISDIR(st.st_mode))
		return list_folder(files, side, path, err, err_sz);
	return list_file(files, side, strdup(path), err, err_sz);
}

/* ---- what is in them ---- */

static void *read_file(void *arg)
{
	struct file *f = arg;
	struct runs_file *read = &f->read;

	*read = (struct runs_file){ .side = f->side, .name = f->path };
	f->open_err = util_read_file(f->path, PPROF_READ_MAX, &f->data, &read->sz);
	if (f->open_err)
		return NULL;
	read->data = f->data;
	read->read_err = pprof_read_stacks(read->data, read->sz, &read->profile);
	return NULL;
}

static void begin(struct file *f)
{
	f->in_thread = !pthread_create(&f->thread, NULL, read_file, f);
	if (!f->in_thread)
		read_file(f);
}

static int add_file(struct runs *r, const struct file *f, char *err, size_t err_sz)
{
	if (f->open_err)
		return util_fail(f->open_err, err, err_sz, "cannot read '%s': %s", f->path,
				 strerror(-f->open_err));
	return runs__add_read(r, &f->read, err, err_sz);
}

static int add_files(struct runs *r, const struct files *files, char *err, size_t err_sz)
{
	int ret = 0;

	for (size_t i = 0; i < MIN(files->cnt, (size_t)AT_A_TIME); i++)
		begin(&files->list[i]);
	for (size_t i = 0; i < files->cnt; i++) {
		struct file *f = &files->list[i];

		if (f->in_thread)
			pthread_join(f->thread, NULL);
		ret = ret ?: add_file(r, f, err, err_sz);
		profile__free(f->read.profile);
		free(f->data);
		free(f->path);
		if (!ret && i + AT_A_TIME < files->cnt)
			begin(&files->list[i + AT_A_TIME]);
	}
	return ret;
}

int runs__add_paths(struct runs *r, const struct runs_paths sides[2], char *err, size_t err_sz)
{
	struct files files = { 0 };
	char unlisted[1024];
	int listed = 0, ret;

	for (int side = 0; side < 2; side++)
		for (size_t i = 0; !listed && i < sides[side].cnt; i++)
			listed = list_path(&files, side, sides[side].paths[i], unlisted,
					   sizeof(unlisted));
	/* the files before the path that cannot be listed come first, also with what is wrong with them */
	ret = add_files(r, &files, err, err_sz);
	free(files.list);
	if (!ret && listed)
		return util_fail(listed, err, err_sz, "%s", unlisted);
	return ret;
}
