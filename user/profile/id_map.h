/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the ids of a file lead. Most writers number from 1 on: these are found by their place. */
#ifndef PROFILE_ID_MAP_H
#define PROFILE_ID_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct id_map {
	/* private */
	uint32_t *low; /* of the ids below low_cnt; UINT32_MAX: there is none */
	size_t low_cnt;
	struct hash others;
};

/* For about so many ids. 0 or -ENOMEM. */
int id_map__init(struct id_map *m, size_t cnt);
/* Also if it was not begun, and is all 0. */
void id_map__done(struct id_map *m);

/* 0; -EBADMSG: ids are not 0, and no two are the same; -ENOMEM, also if `to` is UINT32_MAX. */
int id_map__note(struct id_map *m, uint64_t id, uint32_t to);

bool id_map__find_other(const struct id_map *m, uint64_t id, uint32_t *ret);

/* False: there is no such id. */
static inline bool id_map__find(const struct id_map *m, uint64_t id, uint32_t *ret)
{
	if (id >= m->low_cnt)
		return id_map__find_other(m, id, ret);
	*ret = m->low[id];
	return *ret != UINT32_MAX;
}

#endif
