// SPDX-License-Identifier: BSD-2-Clause
#include "target/process_files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/util.h"
#include "target/objects.h"
#include "target/procs.h"

/* The object behind a mapping, or OBJECTS_NONE. */
static uint32_t object_of(struct process_files *f, uint32_t proc, const struct proc_map *map)
{
	int fd = procs__open(f->procs, f->objects, proc, map);

	return fd < 0 ? OBJECTS_NONE :
			objects__add(f->objects, fd, procs__file(f->procs, map->file)->path);
}

static int add_all(struct process_files *f, uint32_t proc)
{
	const struct proc_space *s = procs__space(f->procs, proc);
	bool *seen = NULL;
	size_t seen_cap = 0, cap = 0;
	int err = 0;

	for (size_t i = 0; !err && i < s->map_cnt; i++) {
		uint32_t object = object_of(f, proc, &s->maps[i]);

		if (object == OBJECTS_NONE)
			continue;
		err = util_reserve_zeroed(&seen, &seen_cap, object, sizeof(*seen));
		if (err || seen[object])
			continue;
		seen[object] = true;
		err = util_reserve(&f->ids, &cap, f->cnt + 1, sizeof(*f->ids));
		if (!err)
			f->ids[f->cnt++] = object;
	}
	free(seen);
	return err;
}

int process_files__open(uint32_t pid, void (*meanwhile)(void *ctx), void *ctx,
			struct process_files *ret)
{
	uint32_t proc = PROCS_NONE;
	int err = -ENOMEM;

	*ret = (struct process_files){ .objects = objects__new(), .procs = procs__new("/proc") };
	if (ret->objects)
		objects__meanwhile(ret->objects, meanwhile, ctx);
	if (ret->objects && ret->procs)
		proc = procs__add(ret->procs, pid, 0, 0, "", false, 0);
	if (proc != PROCS_NONE)
		err = procs__read_maps(ret->procs, proc, 0);
	return err ? err : add_all(ret, proc);
}

void process_files__close(struct process_files *f)
{
	procs__free(f->procs);
	objects__free(f->objects);
	free(f->ids);
}
