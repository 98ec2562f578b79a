/* SPDX-License-Identifier: BSD-2-Clause */
/* perf_maps on processes of our own making: which file is taken for a process's map, and which is
 * not, while it lives and when it has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "target/names.h"
#include "target/objects.h"
#include "target/perf_maps.h"
#include "target/procs.h"
#include "toolrun.h"

#define TGID 10
#define MAP "root/tmp/perf-7.map" /* the process calls itself 7 */
#define ADDR 0x1000
#define AGE_NS (100 * NSEC_PER_SEC) /* of the process */
#define LATER_NS 2000000	    /* than what the clocks may be apart */
#define EARLIER_NS 12000000	    /* than a tick before a process begins */

static struct procs *ps;
static struct objects *objects;
static struct perf_maps *pm;
static uint32_t proc;

static void add_process(void)
{
	uint64_t start_ns = util_boottime_ns() - AGE_NS;
	char text[256];
	int n;

	assert_true(toolrun("mkdir -p proc/10 root/tmp && ln -sfn ../../root proc/10/root"));
	n = snprintf(text, sizeof(text),
		     "10 (x) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %" PRIu64 " 0 0\n",
		     start_ns / (NSEC_PER_SEC / 100));
	toolrun_write("proc/10/stat", text, n);
	n = snprintf(text, sizeof(text),
		     "Name:\tx\\nUid:\t1\t1\t1\t1\nUid:\t77\t%d\t78\t79\nNSpid:\t10\t33\t7\n",
		     geteuid() + 1000);
	toolrun_write("proc/10/status", text, n);
	proc = procs__add(ps, TGID, 0, start_ns, "x", false, 1);
	assert_int_not_equal(proc, PROCS_NONE);
}

static void write_map(const char *name)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "1000 10 %s\n", name);

	toolrun_write(MAP, text, n);
	/* the process's user */
	if (chown(toolrun_path(MAP), geteuid() + 1000, (gid_t)-1))
		skip();
}

static int setup(void **state)
{
	(void)state;
	if (!toolrun("rm -rf proc root && mkdir proc root"))
		return 1;
	ps = procs__new(toolrun_path("proc"));
	objects = objects__new();
	pm = perf_maps__new(ps, objects);
	if (!ps || !objects || !pm)
		return 1;
	add_process();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	perf_maps__free(pm);
	objects__free(objects);
	procs__free(ps);
	return 0;
}

/* name: NULL if the address has none. */
static void check(uint32_t map, const char *name)
{
	const uint64_t addr = ADDR;
	struct symbols s;
	int err = perf_maps__symbolize(pm, map, &addr, 1, &s);

	assert_int_equal(err, name ? 0 : -ENOENT);
	if (!name)
		return;
	assert_int_equal(s.frame_cnt, 1);
	assert_string_equal(s.strings + s.frames[0].name, name);
	symbols__done(&s);
}

static void check_stats(uint64_t read, uint64_t refused, uint64_t lost)
{
	struct perf_maps_stats stats;

	perf_maps__stats(pm, &stats);
	assert_int_equal(stats.read, read);
	assert_int_equal(stats.refused, refused);
	assert_int_equal(stats.lost, lost);
}

/* The map's number, which somebody keeps. */
static uint32_t hold_map(void)
{
	uint32_t map = perf_maps__of(pm, proc);

	perf_maps__ref(pm, map);
	return map;
}

/* The process ends now, and procs lets go of it. */
static void end_process(void)
{
	assert_true(toolrun("rm -r proc/10"));
	procs__end(ps, proc);
	perf_maps__end(pm, proc);
	procs__remove(ps, proc);
}

/* Until what is written has a time that is so much later. */
static void wait_file_clock(uint64_t ns)
{
	uint64_t until = util_realtime_ns() + ns;
	struct timespec t;

	do
		clock_gettime(CLOCK_REALTIME_COARSE, &t);
	while (t.tv_sec * NSEC_PER_SEC + t.tv_nsec < until);
}

/* Moves the time at which the map was last written. */
static void age_map(int64_t ns)
{
	uint64_t at = util_realtime_ns() - ns;
	struct timespec t = { .tv_sec = at / NSEC_PER_SEC, .tv_nsec = at % NSEC_PER_SEC };

	assert_int_equal(utimensat(AT_FDCWD, toolrun_path(MAP), (struct timespec[]){ t, t }, 0), 0);
}

static void test_living(void **state)
{
	uint32_t map = perf_maps__of(pm, proc);

	(void)state;
	assert_int_equal(perf_maps__of(pm, proc), map);
	/* written after it was first met */
	write_map("first");
	check(map, "first");
	/* it goes on writing, and several profiles are named */
	write_map("second");
	check(map, "second");
	check_stats(1, 0, 0);
}

static int open_files(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

/* Profiles are made again and again: each has the names of its time, and none for want of a map
 * that came later; and the last one is of what the process itself has written. */
static void test_again_and_again(void **state)
{
	uint32_t map = hold_map();
	int before;

	(void)state;
	check(map, NULL);
	before = open_files();
	write_map("first");
	check(map, "first");
	/* another file of this name, not the same one written again */
	assert_true(toolrun("mv " MAP " root/tmp/old"));
	write_map("second");
	check(map, "second");
	assert_int_equal(open_files(), before);
	end_process();
	check(map, "second");
	wait_file_clock(LATER_NS);
	write_map("of another process");
	check(map, NULL);
	check(map, NULL);
	check_stats(1, 1, 0);
}

static void test_none(void **state)
{
	uint32_t map = perf_maps__of(pm, proc);

	(void)state;
	check(map, NULL);
	check_stats(0, 0, 0);
}

static void test_ended(void **state)
{
	uint32_t map = hold_map();

	(void)state;
	write_map("last words");
	end_process();
	check(map, "last words");
	check(map, "last words");
	check_stats(1, 0, 0);
}

/* It was held: what happens to the name afterwards does not matter. */
static void test_deleted(void **state)
{
	uint32_t map = hold_map();

	(void)state;
	write_map("deleted");
	end_process();
	assert_true(toolrun("rm -r root"));
	check(map, "deleted");
}

/* Another process has got the same number, and writes the same file. */
static void test_written_afterwards(void **state)
{
	uint32_t map = hold_map(), other;

	(void)state;
	write_map("first");
	end_process();
	wait_file_clock(LATER_NS);
	add_process();
	other = perf_maps__of(pm, proc);
	assert_int_not_equal(other, map);
	write_map("other");
	check(map, NULL);
	check(other, "other");
	check_stats(1, 1, 0);
}

/* It was written to after the process had ended, but before we took note of that. */
static void test_written_too_late(void **state)
{
	uint32_t map = hold_map();

	(void)state;
	assert_true(toolrun("rm -r proc/10"));
	procs__end(ps, proc);
	wait_file_clock(LATER_NS);
	write_map("too late");
	perf_maps__end(pm, proc);
	check(map, NULL);
	check_stats(0, 1, 0);
}

/* The file of one that had this number before. */
static void test_too_old(void **state)
{
	uint32_t map = perf_maps__of(pm, proc);

	(void)state;
	write_map("old");
	age_map(AGE_NS + NSEC_PER_SEC);
	check(map, NULL);
	check_stats(0, 1, 0);
}

static void test_just_old_enough(void **state)
{
	uint32_t map = perf_maps__of(pm, proc);

	(void)state;
	write_map("own");
	age_map(AGE_NS - NSEC_PER_SEC);
	check(map, "own");
}

/* Before an exec the process was another program. */
static void test_exec(void **state)
{
	uint32_t before = hold_map(), old = proc, after;

	(void)state;
	write_map("before");
	wait_file_clock(EARLIER_NS);
	assert_int_equal(procs__on_exec(ps, TGID, util_monotonic_ns(), "y"), 0);
	proc = procs__find_live(ps, TGID);
	assert_int_not_equal(proc, old);
	assert_int_equal(
		procs__find(ps, TGID, 1, procs__get(ps, old)->start_ns, util_monotonic_ns()), proc);
	after = perf_maps__of(pm, proc);
	assert_int_not_equal(before, after);
	check(after, NULL);
	perf_maps__end(pm, old);
	check(before, "before");
	check_stats(1, 1, 0);
}

static void refused(const char *command)
{
	uint32_t map = perf_maps__of(pm, proc);

	write_map("not to be read");
	assert_true(toolrun("%s", command));
	check(map, NULL);
	check_stats(0, 1, 0);
}

static void test_other_owner(void **state)
{
	(void)state;
	/* the process's real, saved and file system users do not count */
	refused("chown 77 " MAP);
}

static void test_of_root(void **state)
{
	uint32_t map = perf_maps__of(pm, proc);

	(void)state;
	write_map("by root");
	if (chown(toolrun_path(MAP), 0, (gid_t)-1))
		skip();
	check(map, "by root");
}

static void test_everybody_writes(void **state)
{
	(void)state;
	refused("chmod o+w " MAP);
}

static void test_hard_link(void **state)
{
	(void)state;
	refused("ln " MAP " root/tmp/second");
}

static void test_link(void **state)
{
	(void)state;
	refused("mv " MAP " root/tmp/second && ln -s second " MAP);
}

static void test_link_folder(void **state)
{
	(void)state;
	refused("mv root/tmp root/var && ln -s var root/tmp");
}

static void test_fifo(void **state)
{
	(void)state;
	refused("rm " MAP " && mkfifo " MAP);
}

static void test_folder(void **state)
{
	(void)state;
	refused("rm " MAP " && mkdir " MAP);
}

/* The process was gone before it could be held. */
static void test_gone(void **state)
{
	uint32_t map;

	(void)state;
	write_map("gone");
	assert_true(toolrun("rm -r proc/10"));
	map = perf_maps__of(pm, proc);
	check(map, NULL);
	check_stats(0, 0, 1);
}

/* Numbers of processes are used again at once, those of maps when nobody keeps them. */
static void test_numbers(void **state)
{
	uint32_t map = hold_map(), old = proc, other;

	(void)state;
	write_map("first");
	end_process();
	add_process();
	assert_int_equal(proc, old);
	other = perf_maps__of(pm, proc);
	assert_int_not_equal(other, map);
	assert_int_equal(perf_maps__cnt(pm), 2);
	perf_maps__unref(pm, map);
	assert_int_equal(perf_maps__cnt(pm), 1);
	/* of a living process it stays, though nobody keeps it */
	perf_maps__ref(pm, other);
	perf_maps__unref(pm, other);
	assert_int_equal(perf_maps__of(pm, proc), other);
	write_map("second");
	check(other, "second");
	end_process();
	assert_int_equal(perf_maps__cnt(pm), 0);
	/* what it was is not known of the one that has the number next */
	add_process();
	assert_int_equal(perf_maps__of(pm, proc), other);
	assert_true(toolrun("rm " MAP));
	check(other, NULL);
}

/* A thousand processes come and go, each with a map of its own. */
static void test_bounded(void **state)
{
	int before;

	(void)state;
	/* what opens paths is there from the first one on */
	(void)perf_maps__of(pm, proc);
	end_process();
	before = open_files();
	for (int i = 0; i < 1000; i++) {
		uint32_t map;

		add_process();
		map = hold_map();
		assert_int_equal(map, 0);
		procs__end(ps, proc);
		if (i % 2)
			perf_maps__unref(pm, map);
		perf_maps__end(pm, proc);
		procs__remove(ps, proc);
		if (i % 2 == 0)
			perf_maps__unref(pm, map);
	}
	assert_int_equal(perf_maps__cnt(pm), 0);
	assert_int_equal(open_files(), before);
}

/* Of very many that lived not all could be held; those that live still can be asked. */
static void test_many(void **state)
{
	uint32_t map = PERF_MAPS_NONE;
	int before = open_files();

	(void)state;
	write_map("many");
	for (size_t i = 0; i < PERF_MAPS_MAX_FDS + 20; i++) {
		map = hold_map();
		procs__end(ps, proc);
		perf_maps__end(pm, proc);
		procs__remove(ps, proc);
		add_process();
	}
	assert_true(open_files() <= before + PERF_MAPS_MAX_FDS);
	check(map, NULL);
	check(0, "many");
	check_stats(1, 0, 20);
	map = perf_maps__of(pm, proc);
	assert_true(open_files() <= before + PERF_MAPS_MAX_FDS);
	check(map, "many");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_living),
		TEST(test_again_and_again),
		TEST(test_none),
		TEST(test_ended),
		TEST(test_deleted),
		TEST(test_written_afterwards),
		TEST(test_written_too_late),
		TEST(test_too_old),
		TEST(test_just_old_enough),
		TEST(test_exec),
		TEST(test_other_owner),
		TEST(test_of_root),
		TEST(test_everybody_writes),
		TEST(test_hard_link),
		TEST(test_link),
		TEST(test_link_folder),
		TEST(test_fifo),
		TEST(test_folder),
		TEST(test_gone),
		TEST(test_numbers),
		TEST(test_bounded),
		TEST(test_many),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
