/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the mappings of a process were, in lines as /proc/PID/maps has them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/legacy_parts.h"

#define KERNEL_HALF (UINT64_C(1) << 63)

static bool is_same(const struct profile_mapping *a, const struct profile_mapping *b)
{
	return a->start == b->start && a->limit == b->limit && a->offset == b->offset &&
	       a->filename == b->filename;
}

/* By address; what is the same stands together. */
static int compare_mappings(const void *pa, const void *pb, void *arg)
{
	const struct profile *p = arg;
	uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
	const struct profile_mapping *a = &p->mappings[ia], *b = &p->mappings[ib];

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->limit != b->limit)
		return a->limit < b->limit ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (a->filename != b->filename)
		return a->filename < b->filename ? -1 : 1;
	return ia < ib ? -1 : ia > ib;
}

/* Above all that the process has. */
static uint64_t first_free(const struct profile *p)
{
	uint64_t end = 0;

	for (size_t i = 0; i < p->mapping_cnt; i++)
		if (p->mappings[i].limit < KERNEL_HALF)
			end = MAX(end, p->mappings[i].limit);
	return end;
}

/* Readers ask for the file at an address, and are to be told one. */
static void move_overlapping(struct legacy_maps *m)
{
	uint64_t end = 0, free_at = first_free(m->p), size;
	const struct profile_mapping *before = NULL, *at;

	for (size_t i = 0; i < m->cnt; i++) {
		at = &m->p->mappings[m->sorted[i]];
		if (before && is_same(before, at)) {
			m->moved[m->sorted[i]] = m->moved[m->sorted[i - 1]];
			continue;
		}
		before = at;
		size = at->limit - at->start;
		if (at->start >= end || size >= KERNEL_HALF - free_at) {
			end = MAX(end, at->limit);
			continue;
		}
		m->moved[m->sorted[i]] = free_at - at->start;
		free_at += size;
	}
}

int legacy_maps__make(const struct profile *p, struct legacy_maps *ret)
{
	*ret = (struct legacy_maps){
		.p = p,
		.sorted = calloc(p->mapping_cnt + 1, sizeof(*ret->sorted)),
		.cnt = p->mapping_cnt,
		.moved = calloc(p->mapping_cnt + 1, sizeof(*ret->moved)),
	};
	if (!ret->sorted || !ret->moved) {
		legacy_maps__done(ret);
		return -ENOMEM;
	}
	for (size_t i = 0; i < ret->cnt; i++)
		ret->sorted[i] = (uint32_t)i;
	qsort_r(ret->sorted, ret->cnt, sizeof(*ret->sorted), compare_mappings, (void *)p);
	move_overlapping(ret);
	return 0;
}

void legacy_maps__done(struct legacy_maps *m)
{
	free(m->sorted);
	free(m->moved);
	*m = (struct legacy_maps){ 0 };
}

uint64_t legacy_maps__address(const struct legacy_maps *m, uint32_t location)
{
	const struct profile_location *l = &m->p->locations[location];

	return l->address + (l->mapping == PROFILE_NONE ? 0 : m->moved[l->mapping]);
}

static int print_mapping(const struct legacy_maps *m, uint32_t mapping, FILE *f)
{
	const struct profile_mapping *at = &m->p->mappings[mapping];
	const char *file = strtab__get(m->p->strings, at->filename);
	size_t sz = strlen(file) * 3 + 1;
	char *clean = malloc(sz);

	if (!clean)
		return -ENOMEM;
	util_printable(clean, sz, file);
	/* "//anon" is no file's name: the kernel prints none */
	fprintf(f, "%08" PRIx64 "-%08" PRIx64 " r-xp %08" PRIx64 " 00:00 0",
		at->start + m->moved[mapping], at->limit + m->moved[mapping], at->offset);
	if (*clean && strncmp(clean, "//", 2) != 0)
		fprintf(f, " %s", clean);
	fputc('\n', f);
	free(clean);
	return 0;
}

int legacy_maps__print(const struct legacy_maps *m, FILE *f)
{
	const struct profile_mapping *first = m->p->mappings, *at, *before = NULL;
	int err = m->cnt ? print_mapping(m, 0, f) : 0;

	for (size_t i = 0; i < m->cnt && !err; i++) {
		at = &m->p->mappings[m->sorted[i]];
		if (!is_same(at, first) && !(before && is_same(at, before)))
			err = print_mapping(m, m->sorted[i], f);
		before = at;
	}
	return err;
}
