/* SPDX-License-Identifier: BSD-2-Clause */
/* symbolize on profiles of this very program, the kernel, and addresses of nobody. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "capture/symbolize.h"
#include "target/kallsyms.h"
#include "target/names_cache.h"
#include "target/objects.h"
#include "target/perf_maps.h"
#include "target/procs.h"
#include "target/reader.h"
#include "toolrun.h"

/* Questions for names of a file, and the addresses in them. */
static uint64_t asked, asked_addrs;
static int fail_with; /* what they are answered by, if not 0 */

int __real_reader__names(struct reader *r, const int fds[static READER_NAMES_FILES],
			 const uint64_t *vaddrs, size_t cnt, bool plain, struct symbols *ret);
int __wrap_reader__names(struct reader *r, const int fds[static READER_NAMES_FILES],
			 const uint64_t *vaddrs, size_t cnt, bool plain, struct symbols *ret);

int __wrap_reader__names(struct reader *r, const int fds[static READER_NAMES_FILES],
			 const uint64_t *vaddrs, size_t cnt, bool plain, struct symbols *ret)
{
	asked++;
	asked_addrs += cnt;
	return fail_with ? fail_with : __real_reader__names(r, fds, vaddrs, cnt, plain, ret);
}

/* A function that knows its line. */
__attribute__((noinline)) static int known_function(int x)
{
	static const int line = __LINE__ - 2;

	volatile int y = x;

	return y + line;
}

__attribute__((always_inline)) static inline int inlined_function(int x)
{
	volatile int y = x;

	return y * y;
}

/* A function that has another one in itself. */
__attribute__((noinline)) static int outer_function(int x)
{
	volatile int y = inlined_function(x);

	return y + 1;
}

static struct profile *new_profile(void)
{
	struct profile_value_type samples = { "samples", "count" }, cpu = { "cpu", "nanoseconds" };
	struct profile *p = profile__new(&samples, 1, cpu, 1);

	assert_non_null(p);
	return p;
}

static uint32_t add_mapping(struct profile *p, const char *filename, uint64_t start, uint64_t limit,
			    uint64_t offset)
{
	struct profile_mapping m = { .start = start, .limit = limit, .offset = offset };
	uint32_t idx;

	m.filename = profile__string(p, filename);
	idx = profile__add_mapping(p, &m);
	assert_int_not_equal(idx, PROFILE_NONE);
	return idx;
}

static uint32_t add_location(struct profile *p, uint32_t mapping, uint64_t address)
{
	uint32_t idx = profile__add_location(p, mapping, address);

	assert_int_not_equal(idx, PROFILE_NONE);
	return idx;
}

static const struct profile_function *function(const struct profile *p, uint32_t location,
					       uint32_t line)
{
	assert_true(line < p->locations[location].line_cnt);
	return &p->functions[p->lines[p->locations[location].line + line].function];
}

static const char *name(const struct profile *p, uint32_t location)
{
	return strtab__get(p->strings, function(p, location, 0)->name);
}

static const char *system_name(const struct profile *p, uint32_t location)
{
	return strtab__get(p->strings, function(p, location, 0)->system_name);
}

/* Our own executable mapping that holds addr, as /proc/self/maps has it. */
static void find_mapping(uint64_t addr, uint64_t *start, uint64_t *end, uint64_t *off)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[4096];
	bool found = false;

	assert_non_null(f);
	while (!found && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %" SCNx64, start, end, off) == 3)
			found = *start <= addr && addr < *end;
	}
	fclose(f);
	assert_true(found);
}

static void test_self(void **state)
{
	uint64_t addr = (uint64_t)(uintptr_t)&known_function, start, end, off;
	struct symbolize_source sources[2] = { { .what = SYMBOLIZE_OBJECT },
					       { .what = SYMBOLIZE_OBJECT } };
	struct objects *o = objects__new();
	struct profile *p = new_profile();
	uint32_t map, other, known, nobody, twin, marker;
	struct symbolize_stats stats;
	int known_line;

	(void)state;
	known_line = known_function(0);
	find_mapping(addr, &start, &end, &off);
	sources[0].object = sources[1].object =
		objects__add(o, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/opt/bin/self");
	map = add_mapping(p, "/opt/bin/self", start, end, off);
	/* the same file in another process, elsewhere */
	other = add_mapping(p, "/opt/bin/self", start + (1ULL << 32), end + (1ULL << 32), off);
	known = add_location(p, map, addr);
	twin = add_location(p, other, addr + (1ULL << 32));
	nobody = add_location(p, map, end - 1);
	marker = profile__add_marker(p, "[unwind: no table]");
	assert_int_equal(symbolize(p, o, NULL, NULL, NULL, sources, 2, false, &stats), 0);

	assert_string_equal(name(p, known), "known_function");
	assert_string_equal(system_name(p, known), "known_function");
	assert_int_equal(function(p, known, 0)->start_line, known_line);
	assert_non_null(strstr(strtab__get(p->strings, function(p, known, 0)->filename),
			       "test_symbolize.c"));
	assert_int_equal(p->lines[p->locations[known].line].function,
			 p->lines[p->locations[twin].line].function);
	/* a name made of base name and file address, which does not count as one */
	assert_int_equal(strncmp(name(p, nobody), "self+0x", 7), 0);
	assert_string_equal(system_name(p, nobody), "");
	assert_string_equal(name(p, marker), "[unwind: no table]");
	assert_int_equal(stats.locations, 3);
	assert_int_equal(stats.named, 2);
	assert_int_equal(stats.with_line, 2);
	assert_true(stats.ns > 0);
	profile__free(p);
	objects__free(o);
}

static void test_nobody(void **state)
{
	struct symbolize_source sources[2] = { { .what = SYMBOLIZE_NOTHING },
					       { .what = SYMBOLIZE_OBJECT } };
	struct objects *o = objects__new();
	struct profile *p = new_profile();
	uint32_t anon, text, none, data;
	struct symbolize_stats stats;
	char path[] = "/tmp/bpfprof-test-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(write(fd, "no elf", 6), 6);
	sources[1].object = objects__add(o, fd, "/opt/data");
	anon = add_location(p, add_mapping(p, "//anon", 0x10000, 0x20000, 0), 0x10123);
	data = add_location(p, add_mapping(p, "/opt/data", 0x30000, 0x40000, 0x1000), 0x30010);
	text = add_location(p, add_mapping(p, "/opt/unknown", 0x50000, 0x60000, 0), 0x50001);
	none = add_location(p, PROFILE_NONE, 0xabc);
	/* of the third mapping nothing is known: there are two sources */
	assert_int_equal(symbolize(p, o, NULL, NULL, NULL, sources, 2, false, &stats), 0);
	assert_string_equal(name(p, anon), "anon+0x123");
	assert_string_equal(name(p, data), "data+0x1010");
	assert_string_equal(name(p, text), "unknown+0x1");
	assert_string_equal(name(p, none), "0xabc");
	assert_string_equal(system_name(p, none), "");
	assert_int_equal(stats.locations, 4);
	assert_int_equal(stats.named, 0);
	profile__free(p);
	objects__free(o);
}

/* Memory of this very program, which the program has named itself; an object's addresses are not
 * looked for there, and its own not in an object. */
static void test_perf_map(void **state)
{
	struct symbolize_source sources[3] = { { .what = SYMBOLIZE_PERF_MAP },
					       { .what = SYMBOLIZE_OBJECT },
					       { .what = SYMBOLIZE_PERF_MAP } };
	struct procs *ps = procs__new("/proc");
	struct objects *o = objects__new();
	struct profile *p = new_profile();
	struct perf_maps *maps = perf_maps__new(ps, o);
	uint64_t start, end, off, addr = (uint64_t)(uintptr_t)known_function;
	uint32_t jit, unnamed, code, memfd, mapping;
	struct symbolize_stats stats;
	char path[64];
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	f = fopen(path, "wx");
	assert_non_null(f);
	find_mapping(addr, &start, &end, &off);
	fprintf(f, "10100 20 named;so\n%" PRIx64 " 100 wrong\n30008 10 _Z5sharev\n", addr);
	assert_int_equal(fclose(f), 0);
	sources[0].object = sources[2].object =
		perf_maps__of(maps, procs__add(ps, getpid(), 0, 0, "self", false, 0));
	sources[1].object =
		objects__add(o, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "/opt/bin/self");
	mapping = add_mapping(p, "//anon", 0x10000, 0x20000, 0);
	jit = add_location(p, mapping, 0x10110);
	unnamed = add_location(p, mapping, 0x10123);
	code = add_location(p, add_mapping(p, "/opt/bin/self", start, end, off), addr);
	memfd = add_location(p, add_mapping(p, "/memfd:jit", 0x30000, 0x31000, 0x4000), 0x30010);
	assert_int_equal(symbolize(p, o, NULL, maps, NULL, sources, 3, false, &stats), 0);
	unlink(path);
	assert_string_equal(name(p, jit), "named;so");
	assert_string_equal(system_name(p, jit), "named;so");
	assert_string_equal(name(p, unnamed), "anon+0x123");
	assert_string_equal(system_name(p, unnamed), "");
	assert_string_equal(name(p, code), "known_function");
	assert_string_equal(name(p, memfd), "share()");
	assert_string_equal(system_name(p, memfd), "_Z5sharev");
	assert_int_equal(stats.locations, 4);
	assert_int_equal(stats.named, 3);
	perf_maps__free(maps);
	procs__free(ps);
	profile__free(p);
	objects__free(o);
}

/* ---- with a cache ---- */

#define CODE_SZ 512 /* bytes of code that are looked at; with sanitizers a function has as many */

/* This very program, or a copy of it, as an object. */
struct self {
	struct objects *o;
	uint32_t object;
	uint64_t start, end, off; /* where it is mapped */
};

static struct self open_self(const char *path)
{
	struct self s = { .o = objects__new() };

	find_mapping((uint64_t)(uintptr_t)known_function, &s.start, &s.end, &s.off);
	s.object = objects__add(s.o, open(path, O_RDONLY | O_CLOEXEC), path);
	assert_int_not_equal(s.object, OBJECTS_NONE);
	return s;
}

/* A profile of code that begins with a function that has another one in itself, byte by byte, in
 * two processes; and of an address that is in no function. */
static struct profile *profile_of(const struct self *s, uint64_t cnt)
{
	struct profile *p = new_profile();

	for (uint64_t process = 0; process < 2; process++) {
		uint64_t moved = process << 32;
		uint32_t map =
			add_mapping(p, "/opt/bin/self", s->start + moved, s->end + moved, s->off);

		for (uint64_t i = 0; i < cnt; i++)
			add_location(p, map, (uint64_t)(uintptr_t)outer_function + moved + i);
		add_location(p, map, s->end - 1 + moved);
	}
	return p;
}

static struct symbolize_stats name_all(struct profile *p, const struct self *s,
				       struct names_cache *cache)
{
	const struct symbolize_source sources[2] = { { SYMBOLIZE_OBJECT, s->object },
						     { SYMBOLIZE_OBJECT, s->object } };
	struct symbolize_stats stats;

	assert_int_equal(symbolize(p, s->o, cache, NULL, NULL, sources, 2, false, &stats), 0);
	return stats;
}

/* The profile as it is written. Ends it. */
static char *bytes_of(struct profile *p, size_t *ret_sz)
{
	char *buf = NULL;
	FILE *f = open_memstream(&buf, ret_sz);

	assert_non_null(f);
	for (uint32_t i = 0; i < p->location_cnt; i++)
		assert_int_not_equal(profile__add_sample(p, &i, 1, NULL, 0, (int64_t[]){ 1 }),
				     PROFILE_NONE);
	assert_int_equal(profile__finish(p), 0);
	assert_int_equal(pprof_write(p, f), 0);
	fclose(f);
	profile__free(p);
	return buf;
}

static void need_same(struct profile *a, struct profile *b)
{
	size_t a_sz, b_sz;
	char *x = bytes_of(a, &a_sz), *y = bytes_of(b, &b_sz);

	assert_int_equal(a_sz, b_sz);
	assert_memory_equal(x, y, a_sz);
	free(x);
	free(y);
}

/* A larger profile asks for what is new in it, the same one once more for nothing. */
static void test_cache(void **state)
{
	const uint64_t few = CODE_SZ / 2 + 1, all = CODE_SZ + 1;
	struct self s = open_self("/proc/self/exe");
	struct names_cache *cache = names_cache__new();
	const struct {
		uint64_t cnt, hits, misses, asked;
	} steps[] = {
		{ CODE_SZ / 2, 0, few, 1 },
		{ CODE_SZ, few, all - few, 2 },
		{ CODE_SZ, all, 0, 2 },
		{ CODE_SZ / 2, few, 0, 2 },
	};
	struct symbolize_stats stats;

	(void)state;
	assert_non_null(cache);
	asked = asked_addrs = 0;
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct profile *plain = profile_of(&s, steps[i].cnt);
		struct profile *p = profile_of(&s, steps[i].cnt);
		struct symbolize_stats want;

		stats = name_all(p, &s, cache);
		assert_int_equal(stats.hits, steps[i].hits);
		assert_int_equal(stats.misses, steps[i].misses);
		assert_int_equal(stats.evicted, 0);
		assert_int_equal(asked, steps[i].asked + i);
		/* as without a cache, which asks for all of it */
		want = name_all(plain, &s, NULL);
		assert_int_equal(want.hits, 0);
		assert_int_equal(want.misses, steps[i].cnt + 1);
		assert_int_equal(stats.locations, want.locations);
		assert_int_equal(stats.named, want.named);
		assert_int_equal(stats.with_line, want.with_line);
		need_same(p, plain);
	}
	/* each address once, and by those without a cache */
	assert_int_equal(asked_addrs, all + 2 * few + 2 * all);
	names_cache__free(cache);
	objects__free(s.o);
}

/* What is compared above: functions in each other, lines, and an address without a name. */
static void test_cached_kinds(void **state)
{
	struct self s = open_self("/proc/self/exe");
	struct names_cache *cache = names_cache__new();
	struct profile *p = profile_of(&s, CODE_SZ);
	struct symbolize_stats stats;
	bool inlined = false;

	(void)state;
	assert_non_null(cache);
	assert_int_equal(outer_function(1), 2);
	name_all(p, &s, cache);
	profile__free(p);
	p = profile_of(&s, CODE_SZ);
	stats = name_all(p, &s, cache);
	assert_int_equal(stats.misses, 0);
	for (uint32_t i = 0; i < p->location_cnt; i++) {
		if (p->locations[i].line_cnt < 2 || strcmp(name(p, i), "inlined_function"))
			continue;
		assert_string_equal(
			strtab__get(p->strings, function(p, i, p->locations[i].line_cnt - 1)->name),
			"outer_function");
		inlined = true;
	}
	assert_true(inlined);
	assert_int_equal(strncmp(name(p, CODE_SZ), "self+0x", 7), 0);
	assert_string_equal(system_name(p, CODE_SZ), "");
	profile__free(p);
	names_cache__free(cache);
	objects__free(s.o);
}

static void gone(void *ctx, uint32_t object)
{
	(void)ctx;
	(void)object;
}

/* The number of an object is given to another one, whose names are not the former one's. */
static void test_number_used_again(void **state)
{
	struct self s = open_self("/proc/self/exe");
	struct names_cache *cache = names_cache__new();
	struct symbolize_stats stats;
	struct profile *p;

	(void)state;
	assert_non_null(cache);
	for (int i = 0; i < 2; i++) {
		p = profile_of(&s, CODE_SZ);
		stats = name_all(p, &s, cache);
		assert_int_equal(stats.hits, 0);
		assert_int_equal(stats.misses, CODE_SZ + 1);
		profile__free(p);
		objects__release_unused(s.o, gone, NULL);
		assert_int_equal(
			objects__add(s.o, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "self"),
			s.object);
	}
	names_cache__free(cache);
	objects__free(s.o);
}

static void write_perf_map(const char *path, uint64_t addr, const char *function)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fprintf(f, "%" PRIx64 " 10 %s\n", addr, function);
	assert_int_equal(fclose(f), 0);
}

/* Code that is made at run time has the name that it has now; an object of the same number has
 * others at the same addresses. */
static void test_cache_perf_map(void **state)
{
	struct symbolize_source sources[2] = { { .what = SYMBOLIZE_PERF_MAP },
					       { .what = SYMBOLIZE_OBJECT } };
	static const char *const functions[] = { "one", "another" };
	uint64_t addr = (uint64_t)(uintptr_t)outer_function, vaddr;
	struct names_cache *cache = names_cache__new();
	struct self s = open_self("/proc/self/exe");
	struct procs *ps = procs__new("/proc");
	struct perf_maps *maps = perf_maps__new(ps, s.o);
	struct symbolize_stats stats;
	char path[64];

	(void)state;
	assert_non_null(cache);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	sources[0].object = perf_maps__of(maps, procs__add(ps, getpid(), 0, 0, "self", false, 0));
	sources[1].object = s.object;
	assert_int_equal(sources[0].object, sources[1].object);
	assert_true(objects__vaddr(s.o, s.object, addr - s.start + s.off, 0, &vaddr));
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		struct profile *p = new_profile();
		uint32_t map = add_mapping(p, "//anon", vaddr & ~4095UL, (vaddr | 4095) + 1, 0);
		uint32_t jit = add_location(p, map, vaddr), code = PROFILE_NONE;

		write_perf_map(path, vaddr, functions[i]);
		if (i)
			code = add_location(
				p, add_mapping(p, "/opt/bin/self", s.start, s.end, s.off), addr);
		assert_int_equal(symbolize(p, s.o, cache, maps, NULL, sources, 2, false, &stats),
				 0);
		assert_string_equal(name(p, jit), functions[i]);
		assert_true(!i || !strcmp(name(p, code), "outer_function"));
		assert_int_equal(stats.hits, 0);
		assert_int_equal(stats.misses, i);
		profile__free(p);
	}
	unlink(path);
	names_cache__free(cache);
	perf_maps__free(maps);
	procs__free(ps);
	objects__free(s.o);
}

static void add_answer(struct names_cache *cache, uint64_t object, uint64_t vaddr,
		       const char *function)
{
	const struct symbol_frame frame = { .name = 1, .system_name = 1 };
	char strings[32] = "";

	snprintf(strings + 1, sizeof(strings) - 1, "%s", function);
	names_cache__insert(cache, object, vaddr, &(struct symbol_frames){ &frame, 1, strings });
}

/* Two answers whose strings are at the same place of their halves of the cache. */
static void test_cache_halves(void **state)
{
	struct self s = open_self("/proc/self/exe");
	struct names_cache *cache = names_cache__new();
	struct profile *p = profile_of(&s, 2);
	uint64_t first = (uint64_t)(uintptr_t)outer_function - s.start + s.off, vaddr, serial;

	(void)state;
	assert_non_null(cache);
	assert_true(objects__vaddr(s.o, s.object, first, 0, &vaddr));
	serial = objects__info(s.o, s.object)->serial;
	add_answer(cache, serial, vaddr, "older");
	/* a half has 16,384 answers */
	for (uint64_t i = 1; i < 16384; i++)
		names_cache__insert(cache, serial + 1, i, &(struct symbol_frames){});
	add_answer(cache, serial, vaddr + 1, "young");
	name_all(p, &s, cache);
	assert_string_equal(name(p, 0), "older");
	assert_string_equal(name(p, 1), "young");
	profile__free(p);
	names_cache__free(cache);
	objects__free(s.o);
}

/* A file that was overwritten has other code at its addresses: the names are the old one's. */
static void test_cache_overwritten(void **state)
{
	struct names_cache *cache = names_cache__new();
	struct symbolize_stats stats;
	struct profile *p;
	struct self s;

	(void)state;
	assert_non_null(cache);
	assert_true(toolrun("cp /proc/%d/exe victim && touch -d @1000000000 victim", getpid()));
	s = open_self(toolrun_path("victim"));
	p = profile_of(&s, 1);
	stats = name_all(p, &s, cache);
	assert_int_equal(stats.named, 2);
	profile__free(p);
	assert_true(toolrun("touch victim"));
	p = profile_of(&s, 1);
	stats = name_all(p, &s, cache);
	assert_int_equal(stats.hits, 0);
	assert_int_equal(stats.named, 0);
	assert_int_equal(strncmp(name(p, 0), "self+0x", 7), 0);
	profile__free(p);
	names_cache__free(cache);
	objects__free(s.o);
}

/* A file that could not be asked has not said that there is no name. */
static void test_cache_failure(void **state)
{
	struct self s = open_self("/proc/self/exe");
	struct names_cache *cache = names_cache__new();
	struct symbolize_stats stats;
	struct profile *p;

	(void)state;
	assert_non_null(cache);
	fail_with = -EAGAIN;
	p = profile_of(&s, 1);
	stats = name_all(p, &s, cache);
	assert_int_equal(stats.named, 0);
	profile__free(p);
	fail_with = 0;
	p = profile_of(&s, 1);
	stats = name_all(p, &s, cache);
	assert_int_equal(stats.hits, 0);
	assert_int_equal(stats.named, 2);
	profile__free(p);
	names_cache__free(cache);
	objects__free(s.o);
}

/* As /proc/kallsyms has it; 0: it has not, or does not say. */
static uint64_t symbol_address(const char *name)
{
	char line[1024], other[512];
	FILE *f = fopen("/proc/kallsyms", "r");
	uint64_t addr, ret = 0;

	while (f && !ret && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx %*c %511s", &addr, other) == 2 && !strcmp(other, name))
			ret = addr;
	if (f)
		fclose(f);
	return ret;
}

static void test_kernel(void **state)
{
	struct symbolize_source source = { .what = SYMBOLIZE_KERNEL };
	struct kallsyms *k = kallsyms__load();
	struct objects *o = objects__new();
	struct profile *p = new_profile();
	struct kallsyms_symbol want;
	struct symbolize_stats stats;
	uint32_t map, in, out;
	uint64_t read;

	(void)state;
	read = k ? symbol_address("vfs_read") : 0;
	if (!read) {
		kallsyms__free(k);
		objects__free(o);
		profile__free(p);
		skip();
	}
	map = add_mapping(p, "[kernel.kallsyms]", read & ~4095UL, (read & ~4095UL) + 8192, 0);
	in = add_location(p, map, read + 1);
	out = add_location(p, map, 0x1000);
	assert_int_equal(kallsyms__find(k, read + 1, &want), 0);
	assert_int_equal(symbolize(p, o, NULL, NULL, NULL, &source, 1, false, &stats), 0);
	assert_string_equal(want.name, "vfs_read");
	assert_string_equal(name(p, in), want.name);
	assert_string_equal(system_name(p, in), want.name);
	assert_int_equal(function(p, in, 0)->filename, 0);
	assert_int_equal(p->locations[in].from_entry, 2);
	assert_int_equal(p->locations[out].from_entry, 0);
	assert_string_equal(name(p, out), "[kernel.kallsyms]+0x1000");
	assert_string_equal(system_name(p, out), "");
	assert_int_equal(stats.named, 1);
	kallsyms__free(k);
	profile__free(p);
	objects__free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_self),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_perf_map),
		cmocka_unit_test(test_kernel),
		cmocka_unit_test(test_cache),
		cmocka_unit_test(test_cached_kinds),
		cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_cache_perf_map),
		cmocka_unit_test(test_cache_halves),
		cmocka_unit_test(test_cache_overwritten),
		cmocka_unit_test(test_cache_failure),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
