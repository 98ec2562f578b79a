/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives names and lines to the locations of a profile. */
#ifndef SYMBOLIZE_H
#define SYMBOLIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ksyms;
struct names_cache;
struct objects;
struct perf_maps;
struct profile;

/* What a mapping of the profile maps, by index of profile.mappings. */
struct symbolize_source {
	enum {
		SYMBOLIZE_NOTHING,
		SYMBOLIZE_OBJECT,
		SYMBOLIZE_PERF_MAP,
		SYMBOLIZE_KERNEL
	} what;
	uint32_t object; /* of objects, or of perf_maps */
};

struct symbolize_stats {
	uint64_t locations, named, with_line, ns;
	uint64_t hits;	  /* addresses in objects that the cache knew */
	uint64_t misses;  /* those that objects were asked for */
	uint64_t evicted; /* answers that the cache gave up meanwhile */
};

/*
 * cache, maps, ksyms: may be NULL. sources has source_cnt >= p->mapping_cnt entries. Locations
 * whose address no symbol covers get one line named "object+0xoffset", the object by its base name
 * and the offset as a file's virtual address, of memory without a file from the mapping's start;
 * those of no mapping "0xaddress". Kernel symbols are read once if any location needs them. A
 * source that fails is left out: its locations are named by offset. 0 or -ENOMEM.
 *
 * `object+0xoffset` lines do not count as names: profile__finish must leave has_functions unset for
 * them. They are therefore marked by functions whose system_name is "".
 *
 * With a cache, objects are asked only for the addresses that it does not know; the names are the
 * same. Perf maps and the kernel are asked each time: a process may put other code at an address
 * whenever it likes, and modules come and go, so that an earlier name could be another function's.
 *
 * plain: objects are asked for names without inlined functions and lines (objects__symbolize), but
 * for those that the cache knows with them.
 */
int symbolize(struct profile *p, struct objects *o, struct names_cache *cache,
	      struct perf_maps *maps, struct ksyms *ksyms, const struct symbolize_source *sources,
	      size_t source_cnt, bool plain, struct symbolize_stats *ret_stats);

#endif
