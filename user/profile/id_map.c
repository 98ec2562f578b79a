/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/id_map.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

struct entry {
	uint64_t id;
	uint32_t to;
};

/* Room for ids up to twice as many as there are messages; the others are looked up. */
int id_map__init(struct id_map *m, size_t cnt)
{
	hash__init(&m->others, sizeof(struct entry), sizeof(uint64_t), HASH_MAX);
	m->low_cnt = 2 * cnt + 1;
	m->low = malloc(m->low_cnt * sizeof(*m->low));
	if (!m->low)
		return -ENOMEM;
	memset(m->low, 0xff, m->low_cnt * sizeof(*m->low));
	return 0;
}

void id_map__done(struct id_map *m)
{
	hash__done(&m->others);
	free(m->low);
}

int id_map__note(struct id_map *m, uint64_t id, uint32_t to)
{
	struct entry *e;
	bool is_new;

	if (to == NONE)
		return -ENOMEM;
	if (!id)
		return -EBADMSG;
	if (id < m->low_cnt) {
		is_new = m->low[id] == NONE;
		m->low[id] = to;
		return is_new ? 0 : -EBADMSG;
	}
	e = hash__insert(&m->others, &id, &is_new);
	if (!e)
		return -ENOMEM;
	e->to = to;
	return is_new ? 0 : -EBADMSG;
}

bool id_map__find_other(const struct id_map *m, uint64_t id, uint32_t *ret)
{
	const struct entry *e = hash__lookup(&m->others, &id);

	if (e)
		*ret = e->to;
	return e != NULL;
}
