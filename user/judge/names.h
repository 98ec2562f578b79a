/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of functions as two builds of a program have them in common. */
#ifndef JUDGE_NAMES_H
#define JUDGE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define NAMES_SZ 1024

/*
 * Writes the name without what compilers add and number: hashes, clones, versions, counters of closures.
 * Templates' arguments stay. Cut to ret_sz - 1 bytes. False: it is no name, but an address, or nothing.
 */
bool names_canonical(const char *name, char *ret, size_t ret_sz);

/* Bytes of the object in "object+0xoffset", which stands where nothing has a name; 0: it is something else. */
size_t names_nameless(const char *name);

/* Of a path: behind the last '/'. */
const char *names_base(const char *path);

/* Bytes of the class, namespace, module or package in front of the function's own name; 0: it has
 * none. */
size_t names_scope(const char *name);

/* 0 (nothing in common) to 1 (the same): 1 - edit distance / length of the longer one. */
double names_similarity(const char *a, const char *b);

#endif
