// SPDX-License-Identifier: BSD-2-Clause
#include "spool/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int new_file_write(int folder, const char *name, bool sync, int (*write)(void *ctx, FILE *f),
		   void *ctx, struct stat *ret)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	int err;

	if (!f) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	err = write(ctx, f);
	if (!err && (fflush(f) || (sync && fsync(fd)) || fstat(fd, ret)))
		err = -errno;
	if (fclose(f) && !err)
		err = -errno;
	return err;
}
