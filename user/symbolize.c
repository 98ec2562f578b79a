/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks each object, and each perf map, once for the names of all of its addresses, and the kernel's
 * symbols for the kernel's. */
#include <linux/types.h>

#include "symbolize.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "bpfprof.h"
#include "kernel/ksyms.h"
#include "profile/profile.h"
#include "target/kallsyms.h"
#include "target/objects.h"
#include "target/perf_maps.h"

#define MAX_NAME 4352 /* of a location without symbol: a base name and an offset */

struct place { /* a location in an object, or in code that a perf map may name */
	bool in_perf_map;
	uint32_t object; /* or the perf map */
	uint32_t location;
	uint64_t vaddr;	 /* in an object; else in the process */
	uint64_t offset; /* that is shown if it has no name */
};

struct job {
	struct profile *p;
	struct objects *o;
	struct perf_maps *maps;
	struct kallsyms *kallsyms;
	bool kallsyms_asked;
	struct ksyms *ksyms; /* or NULL */
	uint32_t *kernel;    /* locations in the kernel */
	size_t kernel_cnt, kernel_cap;
	struct place *places;
	size_t place_cnt, place_cap;
	struct profile_line *lines; /* scratch */
	size_t line_cap;
	struct symbolize_stats stats;
};

/* ---- without a name ---- */

static int set_line(struct job *j, uint32_t location, const struct profile_function *f,
		    int64_t line)
{
	struct profile_line l = { .function = profile__add_function(j->p, f), .line = line };

	if (l.function == PROFILE_NONE)
		return -ENOMEM;
	return profile__set_lines(j->p, location, &l, 1);
}

/* object: NULL for a location of no mapping. The function's empty system_name says that this is no
 * name. */
static int name_by_offset(struct job *j, uint32_t location, const char *object, uint64_t offset)
{
	struct profile_function f = {};
	const char *slash = object ? strrchr(object, '/') : NULL;
	char name[MAX_NAME];

	if (object)
		snprintf(name, sizeof(name), "%s+0x%" PRIx64,
			 slash && slash[1] ? slash + 1 : object, offset);
	else
		snprintf(name, sizeof(name), "0x%" PRIx64, offset);
	f.name = profile__string(j->p, name);
	if (f.name == PROFILE_NONE)
		return -ENOMEM;
	return set_line(j, location, &f, 0);
}

/* ---- kernel ---- */

/* name: NULL if no symbol holds the address */
static int set_kernel_name(struct job *j, uint32_t location, const char *name)
{
	struct profile_function f = {};

	if (!name)
		return name_by_offset(j, location, "[kernel.kallsyms]",
				      j->p->locations[location].address);
	f.name = f.system_name = profile__string(j->p, name);
	if (f.name == PROFILE_NONE)
		return -ENOMEM;
	j->stats.named++;
	return set_line(j, location, &f, 0);
}

/* By the symbols of all of the kernel, where it cannot be asked for single ones. */
static int name_by_kallsyms(struct job *j, uint32_t location)
{
	uint64_t addr = j->p->locations[location].address;
	struct kallsyms_symbol sym;

	if (!j->kallsyms_asked) {
		j->kallsyms_asked = true;
		j->kallsyms = kallsyms__load();
		if (!j->kallsyms && errno == ENOMEM)
			return -ENOMEM;
	}
	if (!j->kallsyms || kallsyms__find(j->kallsyms, addr, &sym))
		return set_kernel_name(j, location, NULL);
	return set_kernel_name(j, location, sym.name);
}

/* Names a batch of kernel locations. */
static int name_batch(struct job *j, const uint32_t *locations, size_t cnt)
{
	const char *names[BPFPROF_KSYM_BATCH];
	uint64_t addrs[BPFPROF_KSYM_BATCH];
	bool asked = j->ksyms != NULL;
	int err = 0;

	for (size_t i = 0; i < cnt; i++)
		addrs[i] = j->p->locations[locations[i]].address;
	if (asked && ksyms__name(j->ksyms, addrs, cnt, names))
		asked = false;
	for (size_t i = 0; i < cnt && !err; i++)
		err = asked ? set_kernel_name(j, locations[i], names[i]) :
			      name_by_kallsyms(j, locations[i]);
	return err;
}

static int name_kernel(struct job *j)
{
	int err = 0;

	for (size_t i = 0; i < j->kernel_cnt && !err; i += BPFPROF_KSYM_BATCH)
		err = name_batch(j, j->kernel + i, MIN(j->kernel_cnt - i, BPFPROF_KSYM_BATCH));
	return err;
}

static int add_kernel(struct job *j, uint32_t location)
{
	if (util_reserve(&j->kernel, &j->kernel_cap, j->kernel_cnt + 1, sizeof(*j->kernel)))
		return -ENOMEM;
	j->kernel[j->kernel_cnt++] = location;
	return 0;
}

/* ---- objects, perf maps ---- */

static int compare_places(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	if (a->in_perf_map != b->in_perf_map)
		return a->in_perf_map - b->in_perf_map;
	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	if (a->vaddr != b->vaddr)
		return a->vaddr < b->vaddr ? -1 : 1;
	return a->location < b->location ? -1 : a->location > b->location;
}

static const char *mapping_name(const struct job *j, uint32_t location)
{
	const struct profile_mapping *m = &j->p->mappings[j->p->locations[location].mapping];

	return strtab__get(j->p->strings, m->filename);
}

static int add_place(struct job *j, uint32_t location, const struct symbolize_source *source)
{
	const struct profile_location *loc = &j->p->locations[location];
	const struct profile_mapping *m = &j->p->mappings[loc->mapping];
	uint64_t offset = loc->address - m->start + m->offset;
	struct place place = { .in_perf_map = source->what == SYMBOLIZE_PERF_MAP,
			       .object = source->object,
			       .location = location,
			       .vaddr = loc->address,
			       .offset = offset };

	if (!place.in_perf_map) {
		if (!objects__vaddr(j->o, place.object, offset, &place.vaddr))
			return name_by_offset(j, location, mapping_name(j, location), offset);
		place.offset = place.vaddr;
	}
	if (util_reserve(&j->places, &j->place_cap, j->place_cnt + 1, sizeof(*j->places)))
		return -ENOMEM;
	j->places[j->place_cnt++] = place;
	return 0;
}

static int set_frames(struct job *j, uint32_t location, const struct symbols *s, size_t i)
{
	size_t first = s->first[i], cnt = s->first[i + 1] - first, k;

	if (util_reserve(&j->lines, &j->line_cap, cnt, sizeof(*j->lines)))
		return -ENOMEM;
	for (k = 0; k < cnt; k++) {
		const struct symbol_frame *frame = &s->frames[first + k];
		struct profile_function f = {
			.name = profile__string(j->p, s->strings + frame->name),
			.system_name = profile__string(j->p, s->strings + frame->system_name),
			.filename = profile__string(j->p, s->strings + frame->file),
			.start_line = frame->start_line,
			.wrapper = frame->wrapper,
		};

		if (f.name == PROFILE_NONE || f.system_name == PROFILE_NONE ||
		    f.filename == PROFILE_NONE)
			return -ENOMEM;
		j->lines[k].function = profile__add_function(j->p, &f);
		j->lines[k].line = frame->line;
		if (j->lines[k].function == PROFILE_NONE)
			return -ENOMEM;
	}
	j->stats.named++;
	j->stats.with_line += s->frames[first].line != 0;
	return profile__set_lines(j->p, location, j->lines, cnt);
}

/* Names the places of one object, or one perf map. */
static int name_object(struct job *j, const struct place *places, size_t cnt)
{
	uint64_t *vaddrs = calloc(cnt, sizeof(*vaddrs));
	struct symbols s = {};
	size_t i, n = 0;
	int err;

	if (!vaddrs)
		return -ENOMEM;
	/* processes share objects: equal addresses are asked for once */
	for (i = 0; i < cnt; i++) {
		if (!n || vaddrs[n - 1] != places[i].vaddr)
			vaddrs[n++] = places[i].vaddr;
	}
	err = places[0].in_perf_map ?
		      perf_maps__symbolize(j->maps, places[0].object, vaddrs, n, &s) :
		      objects__symbolize(j->o, places[0].object, vaddrs, n, &s);
	if (err && err != -ENOMEM)
		err = 0; /* damaged, or there is none: all of it by offset */
	n = 0;
	for (i = 0; i < cnt && !err; i++) {
		if (vaddrs[n] != places[i].vaddr)
			n++;
		if (s.cnt && s.first[n] < s.first[n + 1])
			err = set_frames(j, places[i].location, &s, n);
		else
			err = name_by_offset(j, places[i].location,
					     mapping_name(j, places[i].location), places[i].offset);
	}
	symbols__done(&s);
	free(vaddrs);
	return err;
}

static int name_objects(struct job *j)
{
	size_t first, i;
	int err = 0;

	if (j->place_cnt)
		qsort(j->places, j->place_cnt, sizeof(*j->places), compare_places);
	for (first = 0; first < j->place_cnt && !err; first = i) {
		for (i = first; i < j->place_cnt &&
				j->places[i].in_perf_map == j->places[first].in_perf_map &&
				j->places[i].object == j->places[first].object;)
			i++;
		err = name_object(j, j->places + first, i - first);
	}
	return err;
}

/* ---- all of it ---- */

static int name_location(struct job *j, uint32_t location, const struct symbolize_source *sources,
			 size_t source_cnt)
{
	const struct profile_location *loc = &j->p->locations[location];
	const struct symbolize_source *source;
	const struct profile_mapping *m;

	if (loc->mapping == PROFILE_NONE)
		return name_by_offset(j, location, NULL, loc->address);
	m = &j->p->mappings[loc->mapping];
	source = loc->mapping < source_cnt ? &sources[loc->mapping] : NULL;
	if (source && source->what == SYMBOLIZE_KERNEL)
		return add_kernel(j, location);
	if (source && source->what != SYMBOLIZE_NOTHING)
		return add_place(j, location, source);
	return name_by_offset(j, location, strtab__get(j->p->strings, m->filename),
			      loc->address - m->start + m->offset);
}

int symbolize(struct profile *p, struct objects *o, struct perf_maps *maps, struct ksyms *ksyms,
	      const struct symbolize_source *sources, size_t source_cnt,
	      struct symbolize_stats *ret_stats)
{
	uint64_t start = util_monotonic_ns();
	struct job j = { .p = p, .o = o, .maps = maps, .ksyms = ksyms };
	uint32_t i;
	int err = 0;

	for (i = 0; i < p->location_cnt && !err; i++) {
		/* what has a line already is a marker */
		if (p->locations[i].line_cnt)
			continue;
		j.stats.locations++;
		err = name_location(&j, i, sources, source_cnt);
	}
	if (!err)
		err = name_objects(&j);
	if (!err)
		err = name_kernel(&j);
	kallsyms__free(j.kallsyms);
	free(j.kernel);
	free(j.places);
	free(j.lines);
	j.stats.ns = util_monotonic_ns() - start;
	*ret_stats = j.stats;
	return err;
}
