/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks a path in the root of another program, a container's, whose folders and links may be
 * anybody's: nothing leads out of that root.
 */
#ifndef TARGET_PATH_WALK_H
#define TARGET_PATH_WALK_H

/*
 * What is at path, seen from the folder root: links are followed as if root were "/", and ".."
 * leads back the way that was gone. An O_PATH descriptor of a regular file or whatever else is
 * there, or -errno; -ELOOP and -ENAMETOOLONG where links lead too far.
 */
int path_walk(int root, const char *path);

#endif
