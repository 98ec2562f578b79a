// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "list.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "kinds.h"
#include "target/allocators.h"
#include "target/custom_sites.h"
#include "target/objects.h"
#include "target/procs.h"

#define MAX_PROFILES 256 /* custom ones that are told apart */

/* A custom profile: in how many places its values are added, and removed. */
struct custom_count {
	char name[CUSTOM_NAME_SZ];
	size_t adds, removes;
};

/* What there is in a process. */
struct there {
	uint64_t threads;
	char allocators[512]; /* "9 in libc.so.6, 4 in prog" */
	struct custom_count custom[MAX_PROFILES];
	size_t custom_cnt;
	uint64_t custom_refused; /* probes, and those of more profiles */
};

/* ---- what is found ---- */

static uint64_t thread_cnt(uint32_t pid)
{
	char path[64];
	uint64_t n = 0;
	DIR *tasks;

	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	tasks = opendir(path);
	for (struct dirent *d; tasks && (d = readdir(tasks));)
		n += d->d_name[0] != '.';
	if (tasks)
		closedir(tasks);
	return n;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void add_allocator(struct there *t, struct objects *objects, uint32_t object)
{
	struct allocator_points points;
	size_t len = strlen(t->allocators);

	if (objects__allocators(objects, object, &points))
		return;
	if (points.cnt)
		snprintf(t->allocators + len, sizeof(t->allocators) - len, "%s%zu in %s",
			 len ? ", " : "", points.cnt,
			 base_name(objects__info(objects, object)->path));
	allocator_points__done(&points);
}

static void add_site(struct there *t, const struct custom_site *s)
{
	size_t i = 0;

	while (i < t->custom_cnt && strcmp(t->custom[i].name, s->name))
		i++;
	if (i == MAX_PROFILES) {
		t->custom_refused++;
		return;
	}
	if (i == t->custom_cnt) {
		memcpy(t->custom[i].name, s->name, sizeof(s->name));
		t->custom_cnt++;
	}
	t->custom[i].adds += !s->removes;
	t->custom[i].removes += s->removes;
}

static void add_custom(struct there *t, struct objects *objects, uint32_t object)
{
	struct custom_sites found;

	if (objects__custom_sites(objects, object, &found))
		return;
	for (size_t i = 0; i < found.cnt; i++)
		add_site(t, &found.sites[i]);
	t->custom_refused += found.refused;
	custom_sites__done(&found);
}

/* Through all files that it maps, each once. 0 or -errno. */
static int look_at(struct there *t, struct objects *objects, struct procs *procs, uint32_t proc)
{
	const struct proc_space *s = procs__space(procs, proc);
	uint8_t *seen = NULL;
	size_t seen_cap = 0;
	int err = 0;

	for (size_t i = 0; !err && i < s->map_cnt; i++) {
		int fd = procs__open(procs, objects, proc, &s->maps[i]);
		uint32_t object = OBJECTS_NONE;

		if (fd >= 0)
			object = objects__add(objects, fd,
					      procs__file(procs, s->maps[i].file)->path);
		if (object == OBJECTS_NONE)
			continue;
		err = util_reserve_zeroed(&seen, &seen_cap, object, sizeof(*seen));
		if (err || seen[object])
			continue;
		seen[object] = 1;
		add_allocator(t, objects, object);
		add_custom(t, objects, object);
	}
	free(seen);
	return err;
}

static int find(uint32_t pid, struct there *t)
{
	struct objects *objects = objects__new();
	struct procs *procs = procs__new("/proc");
	uint32_t proc = PROCS_NONE;
	int err = -ENOMEM;

	if (objects && procs)
		proc = procs__add(procs, pid, 0, 0, "", false, 0);
	if (proc != PROCS_NONE)
		err = procs__read_maps(procs, proc, 0);
	if (!err)
		err = look_at(t, objects, procs, proc);
	t->threads = thread_cnt(pid);
	procs__free(procs);
	objects__free(objects);
	return err ? err : t->threads ? 0 : -ESRCH;
}

/* ---- what is said ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct custom_count *)a)->name,
		      ((const struct custom_count *)b)->name);
}

static void print_custom(FILE *f, struct there *t)
{
	qsort(t->custom, t->custom_cnt, sizeof(t->custom[0]), compare_names);
	for (size_t i = 0; i < t->custom_cnt; i++)
		fprintf(f, "  there     %s: added in %zu places, removed in %zu\n",
			t->custom[i].name, t->custom[i].adds, t->custom[i].removes);
	if (!t->custom_cnt)
		fprintf(f, "  there     none that the files which it maps define\n");
	if (t->custom_refused)
		fprintf(f, "  there     %" PRIu64 " probes that cannot be used\n",
			t->custom_refused);
}

static void print_there(FILE *f, enum bpfprof_kind kind, struct there *t)
{
	char text[1024];

	switch (kind) {
	case BPFPROF_HEAP:
		if (*t->allocators)
			fprintf(f, "  there     functions that allocate and free: %s\n",
				util_printable(text, sizeof(text), t->allocators));
		else
			fprintf(f, "  there     no allocator that is known\n");
		break;
	case BPFPROF_THREADS:
	case BPFPROF_THREADCREATE:
		fprintf(f, "  there     %" PRIu64 " threads alive\n", t->threads);
		break;
	case BPFPROF_CUSTOM:
		print_custom(f, t);
		break;
	default: /* it comes and goes: only a recording tells */
		break;
	}
}

int list_print(uint32_t pid, FILE *f)
{
	struct there *t = pid ? calloc(1, sizeof(*t)) : NULL;
	int err = !pid ? 0 : t ? find(pid, t) : -ENOMEM;

	if (err)
		log_error("cannot look at process %u: %s", pid,
			  err == -ESRCH || err == -ENOENT ? "there is none" : strerror(-err));
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		kinds_print(f, i);
		if (t)
			print_there(f, i, t);
	}
	free(t);
	return err;
}
