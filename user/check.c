// SPDX-License-Identifier: BSD-2-Clause
/* Prints what this kernel and these rights allow, and where heap profiles would probe. */
#include <linux/types.h>

#include "check.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/features.h"
#include "heap/launch_heap.h"
#include "target/allocators.h"
#include "target/cgroups.h"
#include "target/objects.h"
#include "target/procs.h"

static void print_row(FILE *f, const char *name, bool ok, const char *text)
{
	fprintf(f, "%-22s %-4s %s\n", name, ok ? "yes" : "no", text);
}

static void print_library(FILE *f)
{
	char path[PATH_MAX], text[256] =
				     "heap profile of programs started with -- COMMAND, at a "
				     "few ns for each call";
	const char *why = launch_heap_library(path, sizeof(path));

	if (why)
		snprintf(text, sizeof(text), "%s: started programs are probed as running ones are",
			 why);
	print_row(f, "preload library", !why, text);
}

static void print_groups(FILE *f)
{
	const char *missing = cgroups_missing();

	print_row(f, "control groups", !missing,
		  missing ? missing : "container, pod and unit of what is recorded");
}

/* What an object's allocator would be probed at. Returns false if it has none. */
static bool print_points(FILE *f, struct objects *objects, uint32_t object)
{
	struct allocator_points points;
	char path[PATH_MAX], name[256], insn[160];
	const char *sep = "";
	bool found;

	if (objects__allocators(objects, object, &points))
		return false;
	found = points.cnt > 0;
	if (found)
		fprintf(f, "  %s:\n    ",
			util_printable(path, sizeof(path), objects__info(objects, object)->path));
	for (size_t i = 0; i < points.cnt; i++) {
		const struct allocator_point *p = &points.points[i];

		fprintf(f, "%s%s+%u %s%s", sep, util_printable(name, sizeof(name), p->name),
			p->skew, util_printable(insn, sizeof(insn), p->insn),
			p->emulated ? "" : " (single-stepped)");
		/* as many to a line as can be read at a glance */
		sep = i % 4 == 3 ? ",\n    " : ", ";
	}
	if (found)
		putc('\n', f);
	allocator_points__done(&points);
	return found;
}

/* The allocators that this program has mapped itself: the C library's, and what LD_PRELOAD names.
 */
static void print_allocators(FILE *f)
{
	struct objects *objects = objects__new();
	struct procs *procs = procs__new("/proc");
	uint32_t proc = PROCS_NONE, last = OBJECTS_NONE;
	bool found = false;

	fprintf(f, "\nallocators here, and the instructions that a heap profile probes in them:\n");
	if (objects && procs)
		proc = procs__add(procs, (uint32_t)getpid(), 0, 0, "", false, 0);
	if (proc != PROCS_NONE && !procs__read_maps(procs, proc, 0)) {
		const struct proc_space *s = procs__space(procs, proc);

		for (size_t i = 0; i < s->map_cnt; i++) {
			const struct proc_file *file = procs__file(procs, s->maps[i].file);
			int fd = procs__open(procs, objects, proc, &s->maps[i]);
			uint32_t object =
				fd < 0 ? OBJECTS_NONE : objects__add(objects, fd, file->path);

			if (object != OBJECTS_NONE && object != last)
				found |= print_points(f, objects, object);
			last = object;
		}
	}
	if (!found)
		fprintf(f, "  none found: looked for %s\n", allocators_names());
	procs__free(procs);
	objects__free(objects);
}

int check_print(FILE *f)
{
	int ret = 0;

	for (int i = 0; i < NR_FEATURES; i++) {
		struct feature_result r = features_probe(i);

		print_row(f, r.name, r.ok, r.text);
		if (!r.ok && r.needed)
			ret = -EPERM;
	}
	print_groups(f);
	print_library(f);
	print_allocators(f);
	return ret;
}
