// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "capture/mapped_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/util.h"
#include "capture/code.h"
#include "target/objects.h"
#include "target/procs.h"

/* By number of a process. */
struct seen {
	uint64_t maps; /* hash of the mappings that were looked at */
	uint32_t tgid;
	uint64_t from_ns; /* that process, with this program */
	bool ended;	  /* it had, by then */
};

struct mapped_files {
	struct procs *procs;
	struct objects *objects;
	struct code *code;
	struct seen *seen;
	size_t seen_cap;
	uint64_t wakes; /* objects__wakes, when it was looked at last */
};

struct mapped_files *mapped_files__new(struct procs *procs, struct objects *objects,
				       struct code *code)
{
	struct mapped_files *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->procs = procs;
	m->objects = objects;
	m->code = code;
	return m;
}

void mapped_files__free(struct mapped_files *m)
{
	if (!m)
		return;
	free(m->seen);
	free(m);
}

/* There are news of everybody if something may be asked for again: who maps it is not known here. */
static void note_wakes(struct mapped_files *m)
{
	uint64_t wakes = objects__wakes(m->objects);

	for (size_t i = 0; i < m->seen_cap && wakes != m->wakes; i++)
		m->seen[i].maps = 0;
	m->wakes = wakes;
}

int mapped_files__look(struct mapped_files *m, uint32_t proc, enum mapped_files_news *ret)
{
	const struct proc *p = procs__get(m->procs, proc);
	const struct proc_space *s = procs__space(m->procs, proc);
	uint64_t maps = util_hash(s->maps, s->map_cnt * sizeof(*s->maps), p->tgid);
	struct seen *seen;

	note_wakes(m);
	if (util_reserve_zeroed(&m->seen, &m->seen_cap, proc, sizeof(*m->seen)))
		return -ENOMEM;
	seen = &m->seen[proc];
	if (seen->tgid != p->tgid || seen->from_ns != p->from_ns)
		*ret = MAPPED_FILES_FIRST;
	else
		*ret = seen->maps == maps ? MAPPED_FILES_SAME : MAPPED_FILES_OTHER;
	*seen = (struct seen){ .maps = maps,
			       .tgid = p->tgid,
			       .from_ns = p->from_ns,
			       .ended = p->to_ns != UINT64_MAX };
	return 0;
}

bool mapped_files__has_looked_back(const struct mapped_files *m, uint32_t proc)
{
	const struct proc *p = procs__get(m->procs, proc);

	return proc < m->seen_cap && m->seen[proc].tgid == p->tgid &&
	       m->seen[proc].from_ns == p->from_ns && m->seen[proc].ended;
}

void mapped_files__forget(struct mapped_files *m, uint32_t tgid)
{
	for (size_t i = 0; i < m->seen_cap; i++)
		if (m->seen[i].tgid == tgid)
			m->seen[i] = (struct seen){ 0 };
}

/* What is put into a file is not in a copy of its code. */
uint32_t mapped_files__object(struct mapped_files *m, uint32_t proc, const struct proc_map *map)
{
	return map->copy == PROC_MAP_COPY ? OBJECTS_NONE : code__object(m->code, proc, map);
}

/* Is the open file the one behind the object? In another mount namespace a path leads elsewhere,
 * and a build id can be forged. */
static bool is_object(struct mapped_files *m, int fd, uint32_t object)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return copy >= 0 &&
	       objects__add(m->objects, copy, objects__info(m->objects, object)->path) == object;
}

int mapped_files__open(struct mapped_files *m, uint32_t proc, const struct proc_map *map,
		       uint32_t object)
{
	int fd = procs__open(m->procs, m->objects, proc, map);

	if (fd < 0)
		return -1;
	/* what was found in one file of that name must not be done to another */
	if (is_object(m, fd, object))
		return fd;
	close(fd);
	return -1;
}
