/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Goes from folder to folder by descriptors, and never asks the kernel for "..": folders that are
 * moved meanwhile lead nowhere else. openat2(2) could do it, but seccomp cannot see what it is to
 * open a file for.
 */
#include "target/path_walk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define MAX_DEPTH 64 /* folders on the way */
#define MAX_LINKS 40 /* as the kernel: path_resolution(7) */

struct walk {
	int root;
	uint32_t who;
	int way[MAX_DEPTH]; /* descriptors below it */
	size_t depth;
	char rest[PATH_MAX]; /* that is still to go */
	unsigned int links;
};

static void back_to(struct walk *w, size_t depth)
{
	while (w->depth > depth)
		close(w->way[--w->depth]);
}

/* Takes the next name off the rest; it begins to lead to "" behind the last one. */
static void next_name(struct walk *w, char ret[PATH_MAX])
{
	const char *from = w->rest + strspn(w->rest, "/");
	size_t len = strcspn(from, "/");

	memcpy(ret, from, len);
	ret[len] = '\0';
	memmove(w->rest, from + len, strlen(from + len) + 1);
}

/* The rest begins with where the link leads. */
static int follow(struct walk *w, const char *link)
{
	char rest[PATH_MAX];
	int n = snprintf(rest, sizeof(rest), "%s/%s", link, w->rest);

	if (++w->links > MAX_LINKS)
		return -ELOOP;
	if (n < 0 || (size_t)n >= sizeof(rest))
		return -ENAMETOOLONG;
	if (link[0] == '/')
		back_to(w, 0);
	strcpy(w->rest, rest);
	return 0;
}

static int here(const struct walk *w)
{
	return w->depth ? w->way[w->depth - 1] : w->root;
}

/* May the user look for a name here? 0 or -errno. */
static int may_search(const struct walk *w)
{
	bool may = false;
	struct statx st;

	if (w->who == PATH_WALK_US)
		return 0;
	if (statx(here(w), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_MODE | STATX_UID | STATX_GID, &st))
		return -errno;
	if (w->who != PATH_WALK_ANYBODY)
		/* a user's own group has the same number, as a rule */
		may = (st.stx_mode & S_IXUSR && st.stx_uid == w->who) ||
		      (st.stx_mode & S_IXGRP && st.stx_gid && st.stx_gid != st.stx_uid);
	return may || st.stx_mode & S_IXOTH ? 0 : -EACCES;
}

static int enter(struct walk *w, const char *name)
{
	int fd = openat(here(w), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	char link[PATH_MAX];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = readlinkat(fd, "", link, sizeof(link));
	if (n >= 0 && n < PATH_MAX) {
		close(fd);
		link[n] = '\0';
		return follow(w, link);
	}
	/* what is no link fails: readlink(2) */
	if (n >= 0 || w->depth == MAX_DEPTH) {
		close(fd);
		return -ENAMETOOLONG;
	}
	w->way[w->depth++] = fd;
	return 0;
}

int path_walk(int root, const char *path, uint32_t who)
{
	struct walk w = { .root = root, .who = who };
	char name[PATH_MAX];
	int err = 0, ret;

	if (strlen(path) >= sizeof(w.rest))
		return -ENAMETOOLONG;
	strcpy(w.rest, path);
	for (next_name(&w, name); name[0]; next_name(&w, name)) {
		if (!strcmp(name, "."))
			continue;
		err = may_search(&w);
		if (!err && !strcmp(name, ".."))
			back_to(&w, w.depth ? w.depth - 1 : 0);
		else if (!err)
			err = enter(&w, name);
		if (err)
			break;
	}
	ret = err ? err : w.depth ? w.way[--w.depth] : -EISDIR;
	back_to(&w, 0);
	return ret;
}
