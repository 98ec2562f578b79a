/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the kernel, and it alone, about an open file. */
#include "target/file_stat.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/util.h"

#define TICK_NS (NSEC_PER_SEC / 100) /* of the slowest clock: CONFIG_HZ=100 */

int file_stat_regular(int fd, struct file_stat *ret)
{
	struct statx st;

	/* statx(2): what is cached will do */
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &st))
		return -errno;
	if (!S_ISREG(st.stx_mode))
		return -ENOTSUP;
	*ret = (struct file_stat){
		.dev = makedev(st.stx_dev_major, st.stx_dev_minor),
		.ino = st.stx_ino,
		.size = st.stx_size,
		.mtime_ns = (uint64_t)st.stx_mtime.tv_sec * NSEC_PER_SEC + st.stx_mtime.tv_nsec,
		.ctime_ns = (uint64_t)st.stx_ctime.tv_sec * NSEC_PER_SEC + st.stx_ctime.tv_nsec,
		.uid = st.stx_uid,
		.mode = st.stx_mode,
		.links = st.stx_nlink,
	};
	return 0;
}

bool file_stat_written_since(const struct file_stat *st, uint64_t ns)
{
	return st->ctime_ns + TICK_NS > ns + (uint64_t)util_realtime_shift_ns();
}

bool file_stat_same(const struct file_stat *a, const struct file_stat *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->mtime_ns == b->mtime_ns;
}

bool file_stat_trusted(const struct file_stat *st)
{
	return (!st->uid || st->uid == geteuid()) && !(st->mode & (S_IWGRP | S_IWOTH));
}
