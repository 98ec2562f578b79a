/* SPDX-License-Identifier: BSD-2-Clause */
/* `bpfprof merge`: files of profiles become one. */
#ifndef MERGE_FILES_H
#define MERGE_FILES_H

/* files: NULL-terminated, at least one; output: a path, "-" for standard output. Says what is wrong, and
 * what has come of it. 0 or -errno. */
int merge_files(char *const *files, const char *output);

#endif
