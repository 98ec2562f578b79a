// SPDX-License-Identifier: BSD-2-Clause
/* Files that appear whole or not at all. */
#include "base/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

static void folder_of(const char *path, char folder[PATH_MAX])
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		snprintf(folder, PATH_MAX, ".");
	else if (slash == path)
		snprintf(folder, PATH_MAX, "/");
	else
		snprintf(folder, PATH_MAX, "%.*s", (int)(slash - path), path);
}

static bool may_write(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) != O_RDONLY;
}

int output_probe(const char *path)
{
	char folder[PATH_MAX];
	const char *base;
	struct stat st;
	size_t len = strlen(path);

	if (!strcmp(path, "-"))
		return may_write(STDOUT_FILENO) ? 0 : -EBADF;
	base = strrchr(path, '/');
	base = base ? base + 1 : path;
	/* room for the suffix of the temporary name */
	if (!len || len >= PATH_MAX - 32 || strlen(base) + 7 > NAME_MAX)
		return len ? -ENAMETOOLONG : -EINVAL;
	if (path[len - 1] == '/')
		return -EISDIR;
	if (!lstat(path, &st)) {
		if (S_ISDIR(st.st_mode))
			return -EISDIR;
		/* a name that leads elsewhere may have been put there by somebody else */
		if (S_ISLNK(st.st_mode))
			return -ELOOP;
		if (S_ISCHR(st.st_mode))
			return access(path, W_OK) ? -errno : 0;
		if (!S_ISREG(st.st_mode))
			return -EEXIST;
	}
	folder_of(path, folder);
	if (stat(folder, &st))
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	/* of the file system, too: root may write anywhere else */
	return access(folder, W_OK | X_OK) ? -errno : 0;
}

const char *output_reason(int err)
{
	switch (err) {
	case -ELOOP:
		return "it is a symbolic link (name the file itself)";
	case -EISDIR:
		return "it is a folder (name a file in it)";
	case -EFBIG:
		return "no file may be so large (ulimit -f shows the limit)";
	case -E2BIG:
		return "there is too much to be shown";
	case -EBADF:
		return "it is closed";
	default:
		return strerror(-err);
	}
}

/* Says why a path cannot be written. */
static int refuse(const char *path, int err, char *text, size_t text_sz)
{
	return util_fail(err, text, text_sz, "cannot write '%s': %s",
			 strcmp(path, "-") ? path : "standard output", output_reason(err));
}

/* A page, since a full disk has room for files without anything in them. */
static int write_page(int fd)
{
	static const char page[4096];
	ssize_t n = 0;

	for (size_t done = 0; done < sizeof(page); done += (size_t)n) {
		n = write(fd, page + done, sizeof(page) - done);
		if (n <= 0)
			return n ? -errno : -EIO;
	}
	return 0;
}

/* Whether a file can be made at path and hold anything, only the file system knows: the folder may be gone or
 * take no files, the disk may be full. */
static int try(const char *path)
{
	struct stat st;
	char *tmp;
	int fd, err;

	if (!strcmp(path, "-") || (!lstat(path, &st) && S_ISCHR(st.st_mode)))
		return 0;
	if (asprintf(&tmp, "%s.XXXXXX", path) < 0)
		return -ENOMEM;
	fd = mkostemp(tmp, O_CLOEXEC);
	err = fd < 0 ? -errno : write_page(fd);
	if (fd >= 0) {
		unlink(tmp);
		/* some file systems tell now */
		if (close(fd) && !err)
			err = -errno;
	}
	free(tmp);
	return err;
}

int output_check(const char *path, bool binary, char *text, size_t text_sz)
{
	int err = output_probe(path) ?: try(path);

	if (err)
		return refuse(path, err, text, text_sz);
	if (binary && !strcmp(path, "-") && isatty(STDOUT_FILENO))
		return util_fail(
			-EINVAL, text, text_sz,
			"'-o -' writes to standard output, which is a terminal (redirect it)");
	return 0;
}

/* The user who called sudo gets what was made for them. */
static void give_to_sudo_user(int fd)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	uint64_t u, g;

	if (geteuid() || !uid || !gid || util_parse_u64(uid, 0, UINT32_MAX - 1, &u) ||
	    util_parse_u64(gid, 0, UINT32_MAX - 1, &g))
		return;
	/* if that fails the file is root's, which is no reason to lose it */
	if (fchown(fd, u, g))
		return;
}

int output_make_folder(const char *path, char *text, size_t text_sz)
{
	int fd, err;

	if (mkdir(path, 0700)) {
		err = -errno;
		return util_fail(err, text, text_sz, "cannot make the folder '%s': %s", path,
				 err == -EEXIST ? "it is there already" : strerror(-err));
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		return util_fail(err, text, text_sz, "cannot open the folder '%s': %s", path,
				 strerror(-err));
	}
	give_to_sudo_user(fd);
	return fd;
}

/* What was a device a moment ago, and nothing that has been put in its place since. */
static int open_device(const char *path, struct output *ret)
{
	int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC), err = -EEXIST;
	struct stat st;

	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISCHR(st.st_mode)) {
		ret->f = fdopen(fd, "w");
		if (ret->f)
			return 0;
		err = -errno;
	}
	close(fd);
	return err;
}

int output_open(const char *path, struct output *ret)
{
	struct stat st;
	int fd, err;

	*ret = (struct output){ .sync = true };
	err = output_probe(path);
	if (err)
		return err;
	if (!strcmp(path, "-")) {
		ret->f = fdopen(dup(STDOUT_FILENO), "w");
		return ret->f ? 0 : -errno;
	}
	/* a device, such as /dev/null, is written to: a file in its place would harm everybody */
	if (!lstat(path, &st) && S_ISCHR(st.st_mode))
		return open_device(path, ret);
	err = -ENOMEM;
	ret->path = strdup(path);
	if (!ret->path || asprintf(&ret->tmp, "%s.XXXXXX", path) < 0)
		goto cleanup;
	/* made anew with mode 0600, so that no link can be in its place */
	fd = mkostemp(ret->tmp, O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		goto cleanup;
	}
	give_to_sudo_user(fd);
	ret->f = fdopen(fd, "w");
	if (ret->f)
		return 0;
	err = -errno;
	close(fd);
	unlink(ret->tmp);

cleanup:
	free(ret->path);
	free(ret->tmp);
	memset(ret, 0, sizeof(*ret));
	return err;
}

int output_commit(struct output *o)
{
	int err = 0;

	if (fflush(o->f) || ferror(o->f))
		err = errno ? -errno : -EIO;
	if (!err && o->tmp && o->sync && fsync(fileno(o->f)) && errno != EINVAL)
		err = -errno;
	if (fclose(o->f) && !err)
		err = -errno;
	if (!err && o->tmp && rename(o->tmp, o->path))
		err = -errno;
	if (err && o->tmp)
		unlink(o->tmp);
	free(o->path);
	free(o->tmp);
	memset(o, 0, sizeof(*o));
	return err;
}

void output_abort(struct output *o)
{
	if (!o->f)
		return;
	fclose(o->f);
	if (o->tmp)
		unlink(o->tmp);
	free(o->path);
	free(o->tmp);
	memset(o, 0, sizeof(*o));
}

int output_end(struct output *o, int err)
{
	/* of a stream that has failed, its end tells the reason */
	if (!err || ferror(o->f))
		return output_commit(o);
	output_abort(o);
	return err;
}

int output_write(const char *path, int (*write)(void *ctx, FILE *f), void *ctx, char *text,
		 size_t text_sz)
{
	struct output o;
	int err = output_open(path, &o);

	if (!err)
		err = output_end(&o, write(ctx, o.f));
	return err ? refuse(path, err, text, text_sz) : 0;
}
