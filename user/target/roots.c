/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/roots.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* statx(2). Two mounts of one folder are two roots: other things may be mounted below them. */
static bool identify(int fd, struct root *ret)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_MNT_ID,
		  &st) ||
	    !S_ISDIR(st.stx_mode))
		return false;
	*ret = (struct root){ .fd = fd,
			      .dev = makedev(st.stx_dev_major, st.stx_dev_minor),
			      .ino = st.stx_ino,
			      .mount = st.stx_mask & STATX_MNT_ID ? st.stx_mnt_id : 0 };
	return true;
}

static bool add_own(struct roots *r)
{
	int fd = open("/", O_PATH | O_CLOEXEC);

	if (fd < 0 || !identify(fd, &r->v[ROOTS_OWN])) {
		if (fd >= 0)
			close(fd);
		return false;
	}
	r->v[ROOTS_OWN].refs = 1;
	r->cnt = 1;
	return true;
}

static uint32_t find(const struct roots *r, const struct root *root)
{
	for (size_t i = 0; i < r->cnt; i++)
		if (r->v[i].refs && r->v[i].dev == root->dev && r->v[i].ino == root->ino &&
		    r->v[i].mount == root->mount)
			return (uint32_t)i;
	return ROOTS_NONE;
}

/* The number of one that is free. */
static uint32_t take(struct roots *r)
{
	for (size_t i = 0; i < r->cnt; i++)
		if (!r->v[i].refs)
			return (uint32_t)i;
	return r->cnt < ROOTS_MAX ? (uint32_t)r->cnt++ : ROOTS_NONE;
}

uint32_t roots__add(struct roots *r, int fd)
{
	struct root root;
	uint32_t ret = ROOTS_NONE;

	if ((r->cnt || add_own(r)) && identify(fd, &root)) {
		ret = find(r, &root);
		if (ret == ROOTS_NONE && (ret = take(r)) != ROOTS_NONE) {
			r->v[ret] = root;
			fd = -1;
		}
	}
	if (fd >= 0)
		close(fd);
	if (ret != ROOTS_NONE)
		r->v[ret].refs++;
	return ret;
}

void roots__unref(struct roots *r, uint32_t root)
{
	if (root == ROOTS_NONE || --r->v[root].refs)
		return;
	close(r->v[root].fd);
	r->v[root].fd = -1;
}

int roots__fd(struct roots *r, uint32_t root)
{
	if (!r->cnt)
		(void)add_own(r);
	return root < r->cnt && r->v[root].refs ? r->v[root].fd : -1;
}

void roots__done(struct roots *r)
{
	for (size_t i = 0; i < r->cnt; i++)
		if (r->v[i].refs)
			close(r->v[i].fd);
	memset(r, 0, sizeof(*r));
}
