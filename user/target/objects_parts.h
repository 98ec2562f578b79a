/* SPDX-License-Identifier: BSD-2-Clause */
/* What objects.c and objects_debug.c share. */
#ifndef TARGET_OBJECTS_PARTS_H
#define TARGET_OBJECTS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/rest.h"
#include "target/fetched.h"
#include "target/file_stat.h"
#include "target/objects.h"
#include "target/reader.h"
#include "target/readers.h"
#include "target/roots.h"

#define OBJECTS_MAX_OPEN 2048 /* descriptors kept */

struct object {
	uint32_t refs;
	int fd;	      /* -1: the vDSO, not readable, or closed for others */
	bool is_file; /* not the vDSO */
	bool used;    /* since the hand came by */
	bool lost;    /* closed, and gone since */
	struct reader *reader;
	struct reader_file file; /* as its headers say, if it is readable */
	struct object_info info;
	char *path;
	struct file_stat st; /* of the file when it was added */
	bool set_aside;
	struct rest rest;   /* it took too long */
	bool unfetched;	    /* names do without what was fetched: see forget_fetched */
	bool has_root;	    /* was asked for: see objects__set_root */
	uint32_t root;	    /* of a process that has mapped it, or ROOTS_NONE */
	uint64_t missed_ns; /* when its debug file was looked for and not found; 0: that is open */
};

struct objects {
	struct object *objects; /* serial 0: there is none of this number */
	size_t end, cap;
	uint32_t *unused; /* numbers */
	size_t unused_cnt, unused_cap;
	uint64_t serial;		    /* the last one */
	uint64_t gone_lost, gone_set_aside; /* of objects that were released */
	struct hash by_file, by_build_id;
	uint32_t open[OBJECTS_MAX_OPEN]; /* those that have a descriptor */
	size_t open_cnt, max_open, hand;
	uint32_t vdso;
	struct roots roots;
	uint64_t harms;		 /* of what is no object: silent paths, perf maps */
	uint64_t wakes, wake_ns; /* objects__wakes; when it changes next, 0: it does not */
	struct readers readers;
	struct fetched_files fetched;
};

/*
 * Can the object be read, and is its file what it was when it was added? One that was overwritten
 * in place has other code at the same addresses. 0 or -errno.
 */
int objects_make_ready(struct objects *o, uint32_t id);

/* An object that does harm is not asked again. Returns err. */
int objects_judge(struct objects *o, struct object *obj, int err);

#endif
