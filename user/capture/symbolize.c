/* SPDX-License-Identifier: BSD-2-Clause */
/* From locations to places: in an object, a perf map, the kernel. From places to answers: those
 * that the cache knows, and the rest in one question to each. From answers to lines. */
#include <linux/types.h>

#include "capture/symbolize.h"

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
#include "target/names_cache.h"
#include "target/objects.h"
#include "target/perf_maps.h"

#define MAX_NAME 4352 /* of a location without symbol: a base name and an offset */
/* Bytes of all strings of a profile: files are anybody's, and may make up names as they like. Honest ones are a few MB. */
#define MAX_STRINGS (256U << 20)

struct place { /* a location in an object, or in code that a perf map may name */
	bool in_perf_map;
	uint32_t object; /* or the perf map */
	uint32_t location;
	uint64_t vaddr;	 /* in an object; else in the process */
	uint64_t offset; /* that is shown if it has no name */
};

/* A function that is in the profile by now: neighbouring addresses are in the same one, and its
 * strings need not be looked up again. */
struct known_function {
	const char *strings;	   /* those of the frame */
	struct symbol_frame frame; /* without what differs from address to address */
	uint32_t function;	   /* 1 + its index; 0: none */
};

#define KNOWN_FUNCTIONS 64 /* a power of two */

struct job {
	struct profile *p;
	struct objects *o;
	struct names_cache *cache; /* or NULL */
	struct perf_maps *maps;
	struct kallsyms *kallsyms;
	bool kallsyms_asked;
	struct ksyms *ksyms; /* or NULL */
	bool plain;
	uint32_t *kernel; /* locations in the kernel */
	size_t kernel_cnt, kernel_cap;
	struct place *places;
	size_t place_cnt, place_cap;
	struct profile_line *lines; /* scratch */
	size_t line_cap;
	struct known_function known[KNOWN_FUNCTIONS];
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

/* name: NULL if no symbol holds the address; offset: how far it is in the symbol */
static int set_kernel_name(struct job *j, uint32_t location, const char *name, uint64_t offset)
{
	struct profile_function f = {};

	if (!name)
		return name_by_offset(j, location, "[kernel.kallsyms]",
				      j->p->locations[location].address);
	f.name = f.system_name = profile__string(j->p, name);
	if (f.name == PROFILE_NONE)
		return -ENOMEM;
	j->stats.named++;
	j->p->locations[location].from_entry = symbol_from_entry(offset, 0);
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
		return set_kernel_name(j, location, NULL, 0);
	return set_kernel_name(j, location, sym.name, addr - sym.start);
}

/* Names a batch of kernel locations. */
static int name_batch(struct job *j, const uint32_t *locations, size_t cnt)
{
	const char *names[BPFPROF_KSYM_BATCH];
	uint64_t addrs[BPFPROF_KSYM_BATCH], offsets[BPFPROF_KSYM_BATCH];
	bool asked = j->ksyms != NULL;
	int err = 0;

	for (size_t i = 0; i < cnt; i++)
		addrs[i] = j->p->locations[locations[i]].address;
	if (asked && ksyms__name(j->ksyms, addrs, cnt, names, offsets))
		asked = false;
	for (size_t i = 0; i < cnt && !err; i++)
		err = asked ? set_kernel_name(j, locations[i], names[i], offsets[i]) :
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
		if (!objects__vaddr(j->o, place.object, offset, 0, &place.vaddr))
			return name_by_offset(j, location, mapping_name(j, location), offset);
		place.offset = place.vaddr;
	}
	if (util_reserve(&j->places, &j->place_cap, j->place_cnt + 1, sizeof(*j->places)))
		return -ENOMEM;
	j->places[j->place_cnt++] = place;
	return 0;
}

/* The index of a frame's function in the profile, or PROFILE_NONE. */
static uint32_t function_of(struct job *j, const struct symbol_frame *frame, const char *strings)
{
	struct known_function *known = &j->known[frame->name & (KNOWN_FUNCTIONS - 1)];
	struct symbol_frame key = *frame;
	struct profile_function f;

	key.line = key.from_entry = 0;
	if (known->function && known->strings == strings &&
	    !memcmp(&known->frame, &key, sizeof(key)))
		return known->function - 1;
	f = (struct profile_function){
		.name = profile__string(j->p, strings + frame->name),
		.system_name = profile__string(j->p, strings + frame->system_name),
		.filename = profile__string(j->p, strings + frame->file),
		.start_line = frame->start_line,
		.wrapper = frame->wrapper,
	};
	if (f.name == PROFILE_NONE || f.system_name == PROFILE_NONE || f.filename == PROFILE_NONE)
		return PROFILE_NONE;
	*known = (struct known_function){ strings, key, profile__add_function(j->p, &f) + 1 };
	return known->function - 1;
}

static int set_frames(struct job *j, uint32_t location, const struct symbol_frames *s)
{
	size_t i;

	if (util_reserve(&j->lines, &j->line_cap, s->cnt, sizeof(*j->lines)))
		return -ENOMEM;
	for (i = 0; i < s->cnt; i++) {
		j->lines[i].function = function_of(j, &s->frames[i], s->strings);
		j->lines[i].line = s->frames[i].line;
		if (j->lines[i].function == PROFILE_NONE)
			return -ENOMEM;
	}
	j->stats.named++;
	j->stats.with_line += s->frames[0].line != 0;
	j->p->locations[location].from_entry = s->frames[0].from_entry;
	return profile__set_lines(j->p, location, j->lines, s->cnt);
}

static int name_place(struct job *j, const struct place *place, const struct symbol_frames *answer)
{
	if (answer->cnt && strtab__bytes(j->p->strings) < MAX_STRINGS)
		return set_frames(j, place->location, answer);
	return name_by_offset(j, place->location, mapping_name(j, place->location), place->offset);
}

/* Of answers without inlined functions, in the cache: they are not to be taken for those with them. */
#define PLAIN (1ULL << 63)
/* Nor those that knew less debug information: how much there was stands above the serial number. */
static uint64_t serial_of(const struct job *j, const struct place *place)
{
	const struct object_info *info = objects__info(j->o, place->object);

	return info->serial | (uint64_t)info->fetched << NAMES_CACHE_SERIAL_BITS;
}

static bool look_up(const struct job *j, const struct place *place, struct symbol_frames *ret)
{
	uint64_t serial = serial_of(j, place);

	return names_cache__lookup(j->cache, serial, place->vaddr, ret) ||
	       (j->plain && names_cache__lookup(j->cache, serial | PLAIN, place->vaddr, ret));
}

/* Names the places of one object that the cache knows; the others move to the front. */
static int name_cached(struct job *j, struct place *places, size_t *cnt)
{
	struct symbol_frames answer;
	size_t left = 0, i;
	bool found = false;
	int err = 0;

	for (i = 0; i < *cnt && !err; i++) {
		if (!i || places[i - 1].vaddr != places[i].vaddr) {
			found = look_up(j, &places[i], &answer);
			j->stats.hits += found;
		}
		if (found)
			err = name_place(j, &places[i], &answer);
		else
			places[left++] = places[i];
	}
	*cnt = left;
	return err;
}

/* The addresses of places, each once: processes share objects. NULL: out of memory */
static uint64_t *addresses_of(const struct place *places, size_t cnt, size_t *ret_cnt)
{
	uint64_t *vaddrs = calloc(cnt, sizeof(*vaddrs));
	size_t n = 0;

	for (size_t i = 0; vaddrs && i < cnt; i++) {
		if (!n || vaddrs[n - 1] != places[i].vaddr)
			vaddrs[n++] = places[i].vaddr;
	}
	*ret_cnt = n;
	return vaddrs;
}

/* Names places by what their object, or their perf map, answers. */
static int name_asked(struct job *j, const struct place *places, size_t cnt)
{
	bool in_object = !places[0].in_perf_map;
	struct symbol_frames answer = {};
	struct symbols s = {};
	size_t i, n, next = 0;
	uint64_t *vaddrs = addresses_of(places, cnt, &n);
	int err;

	if (!vaddrs)
		return -ENOMEM;
	err = in_object ? objects__symbolize(j->o, places[0].object, vaddrs, n, j->plain, &s) :
			  perf_maps__symbolize(j->maps, places[0].object, vaddrs, n, &s);
	if (err && err != -ENOMEM)
		err = 0; /* damaged, or there is none: all of it by offset */
	j->stats.misses += in_object ? n : 0;
	for (i = 0; i < cnt && !err; i++) {
		if (s.cnt && (!i || places[i - 1].vaddr != places[i].vaddr)) {
			answer = symbols__of(&s, next++);
			if (in_object && j->cache)
				names_cache__insert(j->cache,
						    serial_of(j, places) | (j->plain ? PLAIN : 0),
						    places[i].vaddr, &answer);
		}
		err = name_place(j, &places[i], &answer);
	}
	symbols__done(&s);
	free(vaddrs);
	return err;
}

/* Names the places of one object, or one perf map. */
static int name_object(struct job *j, struct place *places, size_t cnt)
{
	int err = 0;

	/* other strings may lie by now where those of the object before did */
	memset(j->known, 0, sizeof(j->known));
	/* a file that was overwritten has other code at its addresses */
	if (j->cache && !places[0].in_perf_map && objects__unchanged(j->o, places[0].object))
		err = name_cached(j, places, &cnt);
	return err || !cnt ? err : name_asked(j, places, cnt);
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

int symbolize(struct profile *p, struct objects *o, struct names_cache *cache,
	      struct perf_maps *maps, struct ksyms *ksyms, const struct symbolize_source *sources,
	      size_t source_cnt, bool plain, struct symbolize_stats *ret_stats)
{
	uint64_t start = util_monotonic_ns(), evicted = cache ? names_cache__evicted(cache) : 0;
	struct job j = {
		.p = p, .o = o, .cache = cache, .maps = maps, .ksyms = ksyms, .plain = plain
	};
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
	if (cache)
		j.stats.evicted = names_cache__evicted(cache) - evicted;
	j.stats.ns = util_monotonic_ns() - start;
	*ret_stats = j.stats;
	return err;
}
