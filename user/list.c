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
#include "custom/custom_names.h"
#include "kinds.h"
#include "target/allocators.h"
#include "target/objects.h"
#include "target/process_files.h"

/* What there is in a process. */
struct there {
	uint64_t threads, fds;
	char allocators[512]; /* "9 in libc.so.6, 4 in prog" */
	struct custom_names custom;
};

/* ---- what is found ---- */

/* Entries of a folder of a process: "task" has one for each thread, "fd" for each descriptor. */
static uint64_t entry_cnt(uint32_t pid, const char *folder)
{
	char path[64];
	uint64_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, folder);
	dir = opendir(path);
	for (struct dirent *d; dir && (d = readdir(dir));)
		n += d->d_name[0] != '.';
	if (dir)
		closedir(dir);
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

static int find(uint32_t pid, struct there *t)
{
	struct process_files files;
	int err = process_files__open(pid, NULL, NULL, &files);

	for (size_t i = 0; !err && i < files.cnt; i++) {
		add_allocator(t, files.objects, files.ids[i]);
		custom_names__add(&t->custom, files.objects, files.ids[i]);
	}
	process_files__close(&files);
	t->threads = entry_cnt(pid, "task");
	t->fds = entry_cnt(pid, "fd");
	return err ? err : t->threads ? 0 : -ESRCH;
}

/* ---- what is said ---- */

static void print_custom(FILE *f, struct custom_names *n)
{
	custom_names__sort(n);
	for (size_t i = 0; i < n->cnt; i++)
		fprintf(f, "  there     %s: added in %zu places, removed in %zu\n", n->all[i].name,
			n->all[i].adds, n->all[i].removes);
	if (!n->cnt)
		fprintf(f, "  there     none that the files which it maps define\n");
	if (n->refused)
		fprintf(f, "  there     %" PRIu64 " probes that cannot be used\n", n->refused);
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
		print_custom(f, &t->custom);
		break;
	case BPFPROF_FDS:
		fprintf(f, "  there     %" PRIu64 " descriptors open\n", t->fds);
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
			  err == -ESRCH || err == -ENOENT ? "there is none" :
			  err == -ETIMEDOUT ? "it keeps its files of /proc waiting (bpfprof(7))" :
					      strerror(-err));
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		kinds_print(f, i);
		if (t)
			print_there(f, i, t);
	}
	free(t);
	return err;
}
