/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's remark behind the path of a file that has no name any more: proc_pid_maps(5). */
#ifndef BASE_DELETED_H
#define BASE_DELETED_H

#include <stddef.h>
#include <string.h>

#define DELETED_REMARK " (deleted)"

/* The length of a path of len bytes without the remark. A file may be called so, too: it is then cut. */
static inline size_t deleted_path_length(const char *path, size_t len)
{
	const size_t remark = strlen(DELETED_REMARK);

	return len > remark && !memcmp(path + len - remark, DELETED_REMARK, remark) ? len - remark :
										      len;
}

#endif
