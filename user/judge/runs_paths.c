// SPDX-License-Identifier: BSD-2-Clause
/* Files and folders of profiles. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "judge/runs.h"
#include "profile/pprof_read.h"

static int add_file(struct runs *r, enum runs_side side, const char *path, char *err, size_t err_sz)
{
	char *data;
	size_t sz;
	int ret = util_read_file(path, PPROF_READ_MAX, &data, &sz);

	if (ret)
		return util_fail(ret, err, err_sz, "cannot read '%s': %s", path, strerror(-ret));
	ret = runs__add(r, side, path, data, sz, err, err_sz);
	free(data);
	return ret;
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

static int add_folder(struct runs *r, enum runs_side side, const char *path, char *err,
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
		char *file;

		if (!ret && asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0)
			ret = util_fail(-ENOMEM, err, err_sz, "out of memory");
		else if (!ret) {
			ret = add_file(r, side, file, err, err_sz);
			free(file);
		}
		free(entries[i]);
	}
	free(entries);
	return ret;
}

int runs__add_path(struct runs *r, enum runs_side side, const char *path, char *err, size_t err_sz)
{
	struct stat st;

	if (stat(path, &st))
		return util_fail(-errno, err, err_sz, "cannot read '%s': %s", path,
				 strerror(errno));
	return (S_ISDIR(st.st_mode) ? add_folder : add_file)(r, side, path, err, err_sz);
}
