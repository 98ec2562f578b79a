/* SPDX-License-Identifier: BSD-2-Clause */
/* What the legacy formats consist of: legacy.c puts it together. For it alone. */
#ifndef PROFILE_LEGACY_PARTS_H
#define PROFILE_LEGACY_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "profile/profile.h"

#define LEGACY_MAX_VALUES 4 /* of a sample: those of the heap */

struct frames;
struct strtab;

/* ---- addresses: legacy_maps.c ---- */

/* Where the mappings of one process are: as they were, but where two of different files overlap. */
struct legacy_maps {
	const struct profile *p;
	uint32_t *sorted; /* mappings, as they are printed: the program's, then by address */
	size_t cnt;
	uint64_t *moved; /* of each mapping, by how much */
};

/* 0 or -ENOMEM. */
int legacy_maps__make(const struct profile *p, struct legacy_maps *ret);
void legacy_maps__done(struct legacy_maps *m);
uint64_t legacy_maps__address(const struct legacy_maps *m, uint32_t location);
/* As /proc/PID/maps has them. 0 or -ENOMEM. */
int legacy_maps__print(const struct legacy_maps *m, FILE *f);

/* ---- stacks: legacy_records.c ---- */

/* Samples that become one line. */
struct legacy_record {
	uint32_t key;			     /* of keys */
	const struct profile_sample *sample; /* the first one: its stack */
	int64_t size;			     /* label "bytes" */
	int64_t value[LEGACY_MAX_VALUES];
};

struct legacy_records {
	struct strtab *keys; /* "@ 0x1 0x2", and behind a newline what tells equal stacks apart */
	struct legacy_record *records;
	size_t cnt, cap;
};

enum legacy_apart {
	LEGACY_BY_STACK,
	LEGACY_BY_SIZE,	  /* too */
	LEGACY_BY_LABELS, /* too: key's second line is Go's "# labels: {"thread":"worker"}" */
};

/*
 * Adds up the samples with equal stacks; by: what else keeps them apart. They are sorted by
 * value[order], the largest first, then by their keys. Samples of which nothing is left are left out.
 * 0; -ENOMEM; -EINVAL: there are more than LEGACY_MAX_VALUES.
 */
int legacy_records__make(const struct legacy_maps *m, enum legacy_apart by, size_t order,
			 struct legacy_records *ret);
/* Once more, when values have changed. */
void legacy_records__sort(struct legacy_records *r, size_t order);
void legacy_records__done(struct legacy_records *r);

/* ---- frames: debug1_frames.c ---- */

/* The lines of a stack, then an empty one. all: the runtime's leaves, too. 0 or -ENOMEM. */
int debug1_print_frames(const struct legacy_maps *m, const struct frames *fr,
			const struct profile_sample *s, bool all, FILE *f);

#endif
