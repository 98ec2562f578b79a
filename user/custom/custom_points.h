/* SPDX-License-Identifier: BSD-2-Clause */
/* Where custom profiles are probed in each object, and their names. */
#ifndef CUSTOM_POINTS_H
#define CUSTOM_POINTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/probe_custom.h"

struct custom_points;
struct custom_wanted;
struct objects;

#define CUSTOM_MAX_SETS 64 /* profiles of different names */

/* Points of one object, by group. */
struct custom_object {
	struct uprobe_point *points[PROBE_CUSTOM_NR_GROUPS];
	size_t cnt[PROBE_CUSTOM_NR_GROUPS];
};

/* Borrows both. NULL with errno. */
struct custom_points *custom_points__new(const struct custom_wanted *wanted,
					 struct objects *objects);
void custom_points__free(struct custom_points *p);

/* Those of an object, which is looked into when it is first asked for, until it answers (objects__unanswered); NULL:
 * there are none, as far as is known. Borrowed until the next call. What cannot be probed is said. */
const struct custom_object *custom_points__get(struct custom_points *p, uint32_t object);

/*
 * Of those that were named, has one not been found so far, or only half? 0, or -ENOENT with a sentence in
 * err.
 */
int custom_points__check(const struct custom_points *p, char *err, size_t err_sz);

/* Profiles that were named, or found: numbers begin at 1. */
size_t custom_points__set_cnt(const struct custom_points *p);
const char *custom_points__set_name(const struct custom_points *p, uint32_t set);

#endif
