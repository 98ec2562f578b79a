/* SPDX-License-Identifier: BSD-2-Clause */
/* symbolize on profiles of this very program, the kernel, and addresses of nobody. */
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
#include "profile/profile.h"
#include "symbolize.h"
#include "target/kallsyms.h"
#include "target/objects.h"
#include "target/perf_maps.h"
#include "target/procs.h"

/* A function that knows its line. */
__attribute__((noinline)) static int known_function(int x)
{
	static const int line = __LINE__ - 2;

	volatile int y = x;

	return y + line;
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
	assert_int_equal(symbolize(p, o, NULL, NULL, sources, 2, &stats), 0);

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
	assert_int_equal(symbolize(p, o, NULL, NULL, sources, 2, &stats), 0);
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
	assert_int_equal(symbolize(p, o, maps, NULL, sources, 3, &stats), 0);
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
	assert_int_equal(symbolize(p, o, NULL, NULL, &source, 1, &stats), 0);
	assert_string_equal(want.name, "vfs_read");
	assert_string_equal(name(p, in), want.name);
	assert_string_equal(system_name(p, in), want.name);
	assert_int_equal(function(p, in, 0)->filename, 0);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
