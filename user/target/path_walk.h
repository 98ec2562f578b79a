/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks a path in the root of another program, a container's, whose folders and links may be
 * anybody's: nothing leads out of that root.
 */
#ifndef TARGET_PATH_WALK_H
#define TARGET_PATH_WALK_H

#include <stdint.h>

/* No users' ids. */
#define PATH_WALK_US UINT32_MAX		   /* where we may go will do */
#define PATH_WALK_ANYBODY (UINT32_MAX - 1) /* only where everybody may */

/*
 * What is at path, seen from the folder root: links are followed as if root were "/", and ".."
 * leads back the way that was gone. An O_PATH descriptor of a regular file or whatever else is
 * there, or -errno; -ELOOP and -ENAMETOOLONG where links lead too far.
 *
 * who: the user for whom it is looked for, who may have less rights than we do: -EACCES where a folder
 * on the way is others' alone. Who is in a group nobody knows here: one that more than the folder's
 * owner, or root, may be in counts as one that this user is in.
 */
int path_walk(int root, const char *path, uint32_t who);

#endif
