// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes as events and /proc tell of them: life spans, inheritance, ranges of code against a
 * model that keeps every page by itself, and opening what was mapped without being led astray.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/util.h"
#include "target/proc_maps.h"
#include "target/procs.h"
#include "target/objects_parts.h"
#include "toolrun.h"

#define TICK (NSEC_PER_SEC / 100)

static const struct proc_file lib_a = { .kind = PROC_FILE_REGULAR,
					.path = (char *)"/lib/a",
					.ino = 1 };
static const struct proc_file lib_b = { .kind = PROC_FILE_REGULAR,
					.path = (char *)"/lib/b",
					.ino = 2 };

static struct procs *ps;
static struct objects *objects; /* opens paths */

static int setup(void **state)
{
	(void)state;
	if (!toolrun("rm -rf proc && mkdir proc"))
		return 1;
	ps = procs__new(toolrun_path("proc"));
	return !ps;
}

static int teardown(void **state)
{
	(void)state;
	procs__free(ps);
	return 0;
}

/* ---- /proc of our own making ---- */

/* A process that started `ticks` after the machine did. state: as in stat(5). */
static void make_proc(uint32_t pid, uint64_t ticks, char state, int threads, const char *maps)
{
	char name[64], text[256];
	int n;

	assert_true(toolrun("mkdir -p proc/%u", pid));
	n = snprintf(text, sizeof(text),
		     "%u (x) y) %c 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 %d 0 %" PRIu64 " 0 0\n", pid,
		     state, threads, ticks);
	snprintf(name, sizeof(name), "proc/%u/stat", pid);
	toolrun_write(name, text, n);
	snprintf(name, sizeof(name), "proc/%u/maps", pid);
	toolrun_write(name, maps, strlen(maps));
}

static void remove_proc(uint32_t pid)
{
	assert_true(toolrun("rm -r proc/%u", pid));
}

static void mmap_event(uint32_t tgid, uint64_t time, uint64_t start, uint64_t end, uint64_t offset,
		       const struct proc_file *f)
{
	assert_int_equal(procs__on_mmap(ps, tgid, time, start, end - start, offset, f), 0);
}

/* The path that is mapped at addr, "" if there is none. */
static const char *path_at(uint32_t idx, uint64_t addr)
{
	const struct proc_map *m = procs__map_at(ps, idx, addr);

	return m ? procs__file(ps, m->file)->path : "";
}

/* ---- entries ---- */

static void test_add_and_find(void **state)
{
	uint32_t a, b;

	(void)state;
	assert_int_equal(procs__find_live(ps, 10), PROCS_NONE);
	assert_int_equal(procs__find(ps, 10, 0, 5, 100), PROCS_NONE);
	a = procs__add(ps, 10, 3, 5 * TICK, "ten", false, 0);
	b = procs__add(ps, 11, 0, 6 * TICK, "a name longer than sixteen", true, 0);
	assert_int_not_equal(a, b);
	assert_int_equal(procs__find_live(ps, 10), a);
	assert_string_equal(procs__get(ps, a)->comm, "ten");
	assert_string_equal(procs__get(ps, b)->comm, "a name longer t");
	assert_true(procs__get(ps, b)->kthread);
	assert_int_equal(procs__find(ps, 10, 3, 5 * TICK, 1), a);
	/* the key decides where it is known, not the time */
	assert_int_equal(procs__find(ps, 10, 3, 5 * TICK, UINT64_MAX - 1), a);
	assert_int_equal(procs__find(ps, 10, 2, 5 * TICK, 1), PROCS_NONE);
	assert_int_equal(procs__find(ps, 10, 3, 6 * TICK, 1), PROCS_NONE);
	/* seen again: the same */
	assert_int_equal(procs__add(ps, 10, 3, 5 * TICK, "new", false, 0), a);
	assert_string_equal(procs__get(ps, a)->comm, "new");
	assert_int_equal(procs__cnt(ps), 2);
}

static void test_contradiction(void **state)
{
	uint32_t a = procs__add(ps, 10, 3, 5 * TICK, "old", false, 0), b, c;

	(void)state;
	/* an exec that no event told of */
	b = procs__add(ps, 10, 4, 5 * TICK, "new", false, 0);
	assert_int_not_equal(a, b);
	assert_true(procs__get(ps, a)->to_ns < UINT64_MAX);
	assert_int_equal(procs__find_live(ps, 10), b);
	assert_int_equal(procs__find(ps, 10, 3, 5 * TICK, 1), a);
	assert_int_equal(procs__find(ps, 10, 4, 5 * TICK, 1), b);
	/* another process by the same number */
	c = procs__add(ps, 10, 4, 9 * TICK, "other", false, 0);
	assert_int_not_equal(b, c);
	assert_int_equal(procs__find(ps, 10, 4, 5 * TICK, 1), b);
	assert_int_equal(procs__find(ps, 10, 4, 9 * TICK, 1), c);
	assert_int_equal(procs__find_live(ps, 10), c);
}

static void test_fork(void **state)
{
	uint32_t parent = procs__add(ps, 10, 3, 5 * TICK, "parent", false, 0), child, orphan;

	(void)state;
	mmap_event(10, 50, 0x1000, 0x3000, 0, &lib_a);
	/* a new thread is no new process */
	assert_int_equal(procs__on_fork(ps, 10, 10, 90), 0);
	assert_int_equal(procs__cnt(ps), 1);
	assert_int_equal(procs__on_fork(ps, 20, 10, 100), 0);
	child = procs__find_live(ps, 20);
	assert_int_not_equal(child, PROCS_NONE);
	assert_string_equal(procs__get(ps, child)->comm, "parent");
	assert_string_equal(path_at(child, 0x2fff), "/lib/a");
	/* from here on each has its own */
	mmap_event(20, 110, 0x1000, 0x2000, 0, &lib_b);
	mmap_event(10, 120, 0x8000, 0x9000, 0, &lib_b);
	assert_string_equal(path_at(parent, 0x1000), "/lib/a");
	assert_string_equal(path_at(child, 0x1000), "/lib/b");
	assert_string_equal(path_at(child, 0x8000), "");
	/* a sample from it tells its start */
	assert_int_equal(procs__find(ps, 20, 3, 7 * TICK, 99), PROCS_NONE);
	assert_int_equal(procs__find(ps, 20, 4, 7 * TICK, 100), PROCS_NONE);
	assert_int_equal(procs__find(ps, 20, 3, 7 * TICK, 100), child);
	assert_int_equal(procs__get(ps, child)->start_ns, 7 * TICK);
	assert_int_equal(procs__find(ps, 20, 3, 8 * TICK, 100), PROCS_NONE);
	/* of a parent that is not known */
	assert_int_equal(procs__on_fork(ps, 30, 29, 200), 0);
	orphan = procs__find_live(ps, 30);
	assert_int_equal(procs__space(ps, orphan)->map_cnt, 0);
	assert_false(procs__space(ps, orphan)->known);
	assert_int_equal(procs__find(ps, 30, 17, 9 * TICK, 201), orphan);
	assert_int_equal(procs__get(ps, orphan)->exec_id, 17);
}

static void test_exec(void **state)
{
	uint32_t before = procs__add(ps, 10, 3, 5 * TICK, "shell", false, 0), after, unknown;

	(void)state;
	mmap_event(10, 50, 0x1000, 0x3000, 0, &lib_a);
	assert_int_equal(procs__on_exec(ps, 10, 100, "prog"), 0);
	after = procs__find_live(ps, 10);
	assert_int_not_equal(before, after);
	assert_string_equal(procs__get(ps, after)->comm, "prog");
	assert_int_equal(procs__get(ps, after)->start_ns, 5 * TICK);
	assert_true(procs__space(ps, after)->known);
	mmap_event(10, 110, 0x1000, 0x3000, 0, &lib_b);
	/* addresses of the former program still mean what they meant */
	assert_string_equal(path_at(before, 0x1000), "/lib/a");
	assert_string_equal(path_at(after, 0x1000), "/lib/b");
	assert_string_equal(path_at(after, 0x3000), "");
	/* each sample goes to its own, however late it is read */
	assert_int_equal(procs__find(ps, 10, 3, 5 * TICK, 99), before);
	assert_int_equal(procs__find(ps, 10, 4, 5 * TICK, 99), after);
	assert_int_equal(procs__find(ps, 10, 5, 5 * TICK, 120), PROCS_NONE);
	/* a process nothing else is known of: by time, until its key is learnt */
	assert_int_equal(procs__on_exec(ps, 40, 1000, "late"), 0);
	unknown = procs__find_live(ps, 40);
	assert_int_equal(procs__find(ps, 40, 8, 6 * TICK, 999), PROCS_NONE);
	assert_int_equal(procs__find(ps, 40, 8, 6 * TICK, 1000), unknown);
	assert_int_equal(procs__find(ps, 40, 9, 6 * TICK, 1001), PROCS_NONE);
	assert_int_equal(procs__find(ps, 40, 8, 7 * TICK, 1001), PROCS_NONE);
}

/* Whether a scan has come before the exec or behind it is not known: the first sample tells. */
static void test_exec_in_scan(void **state)
{
	for (uint32_t counted = 0; counted < 2; counted++) {
		uint64_t began_ns = util_monotonic_ns();
		uint32_t tgid = 70 + counted, exec_id = 4 + !counted, after;

		procs__add(ps, tgid, 4, 5 * TICK, "shell", false, began_ns);
		assert_int_equal(procs__on_exec(ps, tgid, began_ns, "prog"), 0);
		after = procs__find_live(ps, tgid);
		assert_int_equal(procs__find(ps, tgid, exec_id, 5 * TICK, began_ns + TICK), after);
		assert_int_equal(procs__on_exec(ps, tgid, began_ns + 2 * TICK, "next"), 0);
		assert_int_equal(procs__find(ps, tgid, exec_id + 1, 5 * TICK, began_ns + 3 * TICK),
				 procs__find_live(ps, tgid));
		assert_int_not_equal(procs__find_live(ps, tgid), after);
	}
	(void)state;
}

/* The exec has been told, and is not counted yet. */
static void test_sampled_in_exec(void **state)
{
	const uint64_t ms = 1000000;
	uint32_t before, after;

	(void)state;
	procs__add(ps, 10, 3, 5 * TICK, "shell", false, 0);
	assert_int_equal(procs__on_fork(ps, 20, 10, 100 * ms), 0);
	before = procs__find_live(ps, 20);
	assert_int_equal(procs__on_exec(ps, 20, 200 * ms, "prog"), 0);
	after = procs__find_live(ps, 20);
	assert_int_not_equal(before, after);
	assert_int_equal(procs__find(ps, 20, 4, 7 * TICK, 200 * ms), after);
	/* what it was when it was forked, though nobody knows yet when that was */
	assert_int_equal(procs__find(ps, 20, 3, 7 * TICK, 200 * ms), before);
	assert_int_equal(procs__get(ps, before)->start_ns, 7 * TICK);
	/* the machine may have stood still in between; but another process is another one */
	assert_int_equal(procs__on_fork(ps, 21, 10, 100 * ms), 0);
	before = procs__find_live(ps, 21);
	assert_int_equal(procs__on_exec(ps, 21, 200 * ms, "prog"), 0);
	assert_int_equal(procs__on_fork(ps, 21, 11, 5000 * ms), 0);
	procs__end(ps, procs__find_live(ps, 21));
	assert_int_equal(procs__find(ps, 21, 3, 7 * TICK, 4000 * ms), before);
	assert_int_equal(procs__on_fork(ps, 22, 10, 100 * ms), 0);
	assert_int_equal(procs__on_fork(ps, 22, 10, 200 * ms), 0);
	after = procs__find_live(ps, 22);
	assert_int_equal(procs__find(ps, 22, 3, 8 * TICK, 300 * ms), after);
	assert_int_equal(procs__find(ps, 22, 3, 7 * TICK, 300 * ms), PROCS_NONE);
}

/* fork, exec, exec, all between two readings, told apart by time alone. */
static void test_short_lives(void **state)
{
	uint32_t e[3];

	(void)state;
	assert_int_equal(procs__on_fork(ps, 50, 49, 100), 0);
	e[0] = procs__find_live(ps, 50);
	assert_int_equal(procs__on_exec(ps, 50, 200, "first"), 0);
	e[1] = procs__find_live(ps, 50);
	assert_int_equal(procs__on_exec(ps, 50, 300, "second"), 0);
	e[2] = procs__find_live(ps, 50);
	assert_int_equal(procs__find(ps, 50, 5, TICK, 150), e[0]);
	assert_int_equal(procs__find(ps, 50, 6, TICK, 250), e[1]);
	assert_int_equal(procs__find(ps, 50, 7, TICK, 350), e[2]);
	assert_int_equal(procs__find(ps, 50, 6, TICK, 350), e[1]);
}

static void test_pid_reuse(void **state)
{
	uint32_t old = procs__add(ps, 10, 3, 5 * TICK, "old", false, 0), new;

	(void)state;
	mmap_event(10, 50, 0x1000, 0x3000, 0, &lib_a);
	/* its exit was lost; a fork of the same number says that it is over */
	assert_int_equal(procs__on_fork(ps, 10, 7, 500), 0);
	new = procs__find_live(ps, 10);
	assert_int_not_equal(old, new);
	assert_int_equal(procs__get(ps, old)->to_ns, 500);
	assert_string_equal(path_at(new, 0x1000), "");
	assert_int_equal(procs__find(ps, 10, 3, 5 * TICK, 499), old);
	assert_int_equal(procs__find(ps, 10, 3, 50 * TICK, 501), new);
}

static void test_comm(void **state)
{
	uint32_t a = procs__add(ps, 10, 3, 5 * TICK, "old", false, 0);

	(void)state;
	procs__on_comm(ps, 10, 11, "thread");
	assert_string_equal(procs__get(ps, a)->comm, "old");
	procs__on_comm(ps, 10, 10, "new");
	assert_string_equal(procs__get(ps, a)->comm, "new");
	procs__on_comm(ps, 12, 12, "nobody");
	assert_int_equal(procs__find_live(ps, 12), PROCS_NONE);
}

static void test_exit(void **state)
{
	uint32_t a = procs__add(ps, 10, 3, 5 * TICK, "a", false, 0);

	(void)state;
	make_proc(10, 5, 'R', 3, "");
	procs__on_exit(ps, 10, 11, 100);
	assert_int_equal(procs__get(ps, a)->to_ns, UINT64_MAX);
	/* the main thread ends first: a zombie with threads, which may still be sampled */
	make_proc(10, 5, 'Z', 2, "");
	procs__on_exit(ps, 10, 10, 200);
	assert_true(procs__get(ps, a)->leader_exited);
	assert_false(procs__is_gone(ps, a));
	assert_int_equal(procs__get(ps, a)->to_ns, UINT64_MAX);
	assert_int_equal(procs__find_live(ps, 10), a);
	remove_proc(10);
	procs__on_exit(ps, 10, 12, 300);
	assert_int_equal(procs__get(ps, a)->to_ns, 300);
	assert_int_equal(procs__find_live(ps, 10), PROCS_NONE);
	/* dead, and yet its samples are its own */
	assert_int_equal(procs__find(ps, 10, 3, 5 * TICK, 250), a);
	procs__on_exit(ps, 99, 99, 400);
	assert_int_equal(procs__cnt(ps), 1);
}

static void forked(uint32_t pid, uint32_t parent, uint64_t time)
{
	/* whatever /proc says, it is not asked */
	make_proc(pid, 5, 'S', 1, "");
	assert_int_equal(procs__on_fork(ps, pid, parent, time), 0);
}

/* An exec that changes the credentials, by a setuid program, tells of an exit of the main thread
 * before anything is mapped. */
static void test_exit_of_setuid(void **state)
{
	struct proc_file file = { .kind = PROC_FILE_REGULAR, .path = (char *)"/bin/su", .ino = 7 };
	uint32_t a;

	(void)state;
	make_proc(10, 5, 'R', 1, "");
	assert_int_not_equal(procs__add(ps, 10, 3, 5 * TICK, "a", false, 0), PROCS_NONE);
	assert_int_equal(procs__on_exec(ps, 10, 100, "su"), 0);
	a = procs__find_live(ps, 10);
	procs__on_exit(ps, 10, 10, 110);
	assert_int_equal(procs__find_live(ps, 10), a);
	assert_false(procs__get(ps, a)->leader_exited);
	assert_int_equal(procs__get(ps, a)->thread_cnt, 1);
	/* what has mapped something ends, whatever /proc says */
	assert_int_equal(procs__on_mmap(ps, 10, 120, 0x1000, 0x1000, 0, &file), 0);
	procs__on_exit(ps, 10, 10, 130);
	assert_int_equal(procs__find_live(ps, 10), PROCS_NONE);
}

/* The same, read when it has ended. */
static void test_exit_of_setuid_that_ended(void **state)
{
	struct proc_file file = { .kind = PROC_FILE_REGULAR, .path = (char *)"/bin/su", .ino = 7 };
	uint32_t a, b;
	size_t cnt;

	(void)state;
	forked(60, 10, 50);
	assert_int_equal(procs__on_exec(ps, 60, 100, "su"), 0);
	a = procs__find_live(ps, 60);
	procs__on_exit(ps, 60, 60, 110);
	assert_int_equal(procs__on_mmap(ps, 60, 120, 0x1000, 0x1000, 0, &file), 0);
	assert_int_equal(procs__find_live(ps, 60), a);
	assert_string_equal(procs__get(ps, a)->comm, "su");
	assert_true(procs__space(ps, a)->known);
	assert_int_equal(procs__get(ps, a)->thread_cnt, 1);
	procs__on_exit(ps, 60, 60, 130);
	assert_int_equal(procs__find_live(ps, 60), PROCS_NONE);
	assert_int_equal(procs__get(ps, a)->to_ns, 130);
	/* what has mapped something has ended: the number is another one's */
	assert_int_equal(procs__on_mmap(ps, 60, 140, 0x1000, 0x1000, 0, &file), 0);
	b = procs__find_live(ps, 60);
	assert_int_not_equal(b, a);
	assert_string_equal(procs__get(ps, b)->comm, "");
	/* each that has ended once */
	(void)procs__ended(ps, &cnt);
	for (size_t i = 0; i < cnt; i++)
		assert_int_not_equal(procs__ended(ps, &cnt)[i], b);
}

/* A process of which all threads were counted ends with the last of them. */
static void test_threads_counted(void **state)
{
	struct proc_file file = { .kind = PROC_FILE_REGULAR, .path = (char *)"/bin/new", .ino = 7 };
	uint32_t a, b, c;

	(void)state;
	forked(20, 10, 100);
	a = procs__find_live(ps, 20);
	assert_int_equal(procs__get(ps, a)->thread_cnt, 1);
	assert_int_equal(procs__on_fork(ps, 20, 20, 110), 0);
	assert_int_equal(procs__on_fork(ps, 20, 20, 120), 0);
	assert_int_equal(procs__get(ps, a)->thread_cnt, 3);
	procs__on_exit(ps, 20, 20, 130);
	procs__on_exit(ps, 20, 21, 140);
	assert_int_equal(procs__find_live(ps, 20), a);
	procs__on_exit(ps, 20, 22, 150);
	assert_int_equal(procs__find_live(ps, 20), PROCS_NONE);
	assert_int_equal(procs__get(ps, a)->to_ns, 150);
	/* an exec has ended the others, the main one too; the number stays */
	forked(30, 10, 200);
	assert_int_equal(procs__on_fork(ps, 30, 30, 210), 0);
	assert_int_equal(procs__on_fork(ps, 30, 30, 220), 0);
	procs__on_exit(ps, 30, 30, 230);
	procs__on_exit(ps, 30, 31, 240);
	assert_int_equal(procs__on_exec(ps, 30, 250, "new"), 0);
	b = procs__find_live(ps, 30);
	assert_int_equal(procs__get(ps, b)->thread_cnt, 1);
	assert_int_equal(procs__on_mmap(ps, 30, 255, 0x1000, 0x1000, 0, &file), 0);
	procs__on_exit(ps, 30, 30, 260);
	assert_int_equal(procs__get(ps, b)->to_ns, 260);
	/* met by a scan before its fork was told */
	c = procs__add(ps, 40, 1, 5 * TICK, "c", false, 400);
	assert_int_equal(procs__get(ps, c)->thread_cnt, 0);
	forked(40, 10, 390);
	assert_int_equal(procs__find_live(ps, 40), c);
	procs__on_exit(ps, 40, 40, 410);
	assert_int_equal(procs__get(ps, c)->to_ns, 410);
}

/* A thread is sampled on its way out, when its end has been told. */
static void test_sampled_after_end(void **state)
{
	uint32_t first, second;

	(void)state;
	assert_int_equal(procs__on_fork(ps, 50, 49, 100), 0);
	first = procs__find_live(ps, 50);
	procs__on_exit(ps, 50, 50, 200);
	assert_int_equal(procs__on_fork(ps, 50, 49, 300), 0);
	second = procs__find_live(ps, 50);
	assert_int_not_equal(first, second);
	assert_int_equal(procs__find(ps, 50, 5, TICK, 99), PROCS_NONE);
	assert_int_equal(procs__find(ps, 50, 5, TICK, 250), first);
	assert_int_equal(procs__find(ps, 50, 5, 3 * TICK, 350), second);
	/* an exec is no end of that kind: what comes then is the next program's, unless it is not counted yet */
	assert_int_equal(procs__on_fork(ps, 60, 49, 100), 0);
	first = procs__find_live(ps, 60);
	assert_int_equal(procs__on_exec(ps, 60, 200, "new"), 0);
	second = procs__find_live(ps, 60);
	assert_int_equal(procs__find(ps, 60, 5, TICK, 250), second);
	assert_int_equal(procs__find(ps, 60, 3, TICK, 250), PROCS_NONE);
	assert_int_equal(procs__find(ps, 60, 4, TICK, 150), first);
}

/* A process that nobody waits for has ended all the same: nothing runs in it any more. */
static void test_zombie(void **state)
{
	uint32_t a = procs__add(ps, 10, 3, 5 * TICK, "a", false, 0);
	uint32_t b = procs__add(ps, 11, 3, 5 * TICK, "b", false, 0);

	(void)state;
	make_proc(10, 5, 'Z', 1, "");
	make_proc(11, 5, 'X', 0, "");
	assert_true(procs__is_gone(ps, a));
	assert_true(procs__is_gone(ps, b));
	procs__on_exit(ps, 10, 10, 100);
	assert_int_equal(procs__get(ps, a)->to_ns, 100);
}

static void test_is_gone(void **state)
{
	uint32_t a = procs__add(ps, 10, 3, 5 * TICK + 123, "a", false, 0);

	(void)state;
	assert_true(procs__is_gone(ps, a));
	make_proc(10, 5, 'S', 1, "");
	assert_false(procs__is_gone(ps, a));
	/* the number is another's */
	make_proc(10, 6, 'S', 1, "");
	assert_true(procs__is_gone(ps, a));
}

/* Where we lack what it takes to ask, nobody has gone for that. */
static void test_is_gone_unknown(void **state)
{
	uint32_t a = procs__add(ps, 10, 3, 5 * TICK + 123, "a", false, 0);
	struct procs *real = procs__new("/proc");
	uint32_t b = procs__add(real, getpid(), 3, 0, "b", false, 0);
	struct rlimit had, none;
	bool gone, has, really;
	enum main_thread main_thread;

	(void)state;
	make_proc(10, 5, 'S', 1, "");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = had.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	gone = procs__is_gone(ps, a);
	has = procs__has_number(ps, 10);
	really = procs__is_gone(real, b);
	main_thread = main_thread_of(getpid());
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &had), 0);
	assert_true(!gone && has && !really);
	assert_int_equal(main_thread, MAIN_THREAD_RUNS);
	assert_false(procs__has_number(ps, 11));
	procs__free(real);
}

/* Whose numbers are not those of system calls: no process has this one here. */
static void test_is_gone_elsewhere(void **state)
{
	const uint32_t pid = 1U << 30;
	struct procs *other;
	uint32_t a;

	(void)state;
	assert_true(toolrun("ln -s 1 proc/self"));
	other = procs__new(toolrun_path("proc"));
	a = procs__add(other, pid, 3, 5 * TICK + 123, "a", false, 0);
	assert_true(procs__is_gone(other, a));
	make_proc(pid, 5, 'S', 1, "");
	assert_false(procs__is_gone(other, a));
	procs__free(other);
}

/* Events that had happened before the scan looked are read after it: they are in what it found. */
static void test_events_before_scan(void **state)
{
	uint32_t a = procs__add(ps, 10, 3, 5 * TICK, "a", false, 1000), b;

	(void)state;
	assert_int_equal(procs__on_fork(ps, 10, 7, 900), 0);
	mmap_event(10, 910, 0x1000, 0x2000, 0, &lib_b);
	mmap_event(10, 920, 0x5000, 0x6000, 0, &lib_b);
	assert_int_equal(procs__on_exec(ps, 10, 950, "a"), 0);
	mmap_event(10, 960, 0x1000, 0x2000, 0, &lib_a);
	assert_true(procs__space(ps, a)->known);
	assert_string_equal(path_at(a, 0x5000), "");
	assert_int_equal(procs__find_live(ps, 10), a);
	assert_int_equal(procs__get(ps, a)->exec_id, 3);
	assert_int_equal(procs__get(ps, a)->to_ns, UINT64_MAX);
	assert_int_equal(procs__on_exec(ps, 10, 1100, "b"), 0);
	b = procs__find_live(ps, 10);
	assert_int_not_equal(a, b);
	assert_string_equal(path_at(a, 0x1000), "/lib/a");
	/* a later scan that did not meet it */
	procs__end(ps, b);
	assert_int_equal(procs__find_live(ps, 10), PROCS_NONE);
	assert_int_equal(procs__find(ps, 10, 4, 5 * TICK, 1200), b);
}

/* Its maps were read when it had run another program for a while, of which the event comes later.
 */
static void test_maps_read_after_exec(void **state)
{
	uint32_t a = procs__add(ps, 10, 3, 5 * TICK, "a", false, 0);

	(void)state;
	make_proc(10, 5, 'S', 1, "1000-3000 r-xp 00000000 fe:01 7 /bin/new\n");
	assert_int_equal(procs__read_maps(ps, a, 0), 0);
	assert_int_equal(procs__on_exec(ps, 10, util_monotonic_ns() - NSEC_PER_SEC, "new"), 0);
	/* not a name of the new program for the old one's addresses */
	assert_string_equal(path_at(a, 0x1000), "");
	/* and no more reading for what has ended */
	assert_int_equal(procs__read_maps(ps, a, 0), -ESRCH);
	assert_int_equal(procs__read_maps(ps, procs__find_live(ps, 10), 0), 0);
	assert_string_equal(path_at(procs__find_live(ps, 10), 0x1000), "/bin/new");
}

static void test_remove(void **state)
{
	uint32_t idx[64], again;

	(void)state;
	/* numbers that share a bucket too */
	for (uint32_t i = 0; i < 64; i++) {
		idx[i] = procs__add(ps, 1 + i * 4096, 1, (i + 1) * TICK, "p", false, 0);
		mmap_event(1 + i * 4096, 10, 0x1000, 0x2000, 0, &lib_a);
	}
	for (uint32_t i = 0; i < 64; i += 2)
		procs__remove(ps, idx[i]);
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t want = i % 2 ? idx[i] : PROCS_NONE;

		assert_int_equal(procs__find_live(ps, 1 + i * 4096), want);
		assert_int_equal(procs__find(ps, 1 + i * 4096, 1, (i + 1) * TICK, 5), want);
		assert_int_equal(procs__get(ps, idx[i])->tgid, i % 2 ? 1 + i * 4096 : 0);
	}
	/* twice is once */
	procs__remove(ps, idx[0]);
	/* numbers are used again, and nothing of the former owner is left */
	for (uint32_t i = 0; i < 32; i++) {
		again = procs__add(ps, 777 + i, 1, TICK, "new", false, 0);
		assert_true(again < 64);
		assert_int_equal(procs__space(ps, again)->map_cnt, 0);
		assert_int_equal(procs__get(ps, again)->to_ns, UINT64_MAX);
	}
	assert_int_equal(procs__cnt(ps), 64);
	again = procs__add(ps, 5000, 1, TICK, "new", false, 0);
	assert_int_equal(again, 64);
}

/* ---- ranges ---- */

#define PAGES 48
#define BASE 0x400000ULL
#define PG 4096ULL

/* What a page means: file number + 1, 0 for none, and the offset in the file. */
struct meaning {
	uint32_t file;
	uint64_t offset;
};

static void check_model(uint32_t idx, const struct meaning *model)
{
	const struct proc_space *p = procs__space(ps, idx);

	for (size_t i = 0; i < p->map_cnt; i++) {
		assert_true(p->maps[i].start < p->maps[i].end);
		assert_true(!i || p->maps[i - 1].end <= p->maps[i].start);
	}
	for (uint64_t page = 0; page < PAGES; page++) {
		uint64_t addr = BASE + page * PG;
		const struct proc_map *m = procs__map_at(ps, idx, addr);

		assert_ptr_equal(m, procs__map_at(ps, idx, addr + PG - 1));
		if (!model[page].file) {
			assert_null(m);
			continue;
		}
		assert_non_null(m);
		assert_string_equal(procs__file(ps, m->file)->path,
				    model[page].file == 1 ? "/lib/a" : "/lib/b");
		assert_int_equal(m->offset + (addr - m->start), model[page].offset);
	}
	assert_null(procs__map_at(ps, idx, BASE - 1));
	assert_null(procs__map_at(ps, idx, BASE + PAGES * PG));
	assert_null(procs__map_at(ps, idx, 0));
	assert_null(procs__map_at(ps, idx, UINT64_MAX));
}

static void test_ranges_against_model(void **state)
{
	struct meaning model[PAGES];
	size_t changes = 0, kept = 0;

	(void)state;
	srand(7);
	for (uint32_t round = 0; round < 400; round++) {
		uint32_t idx = procs__add(ps, 100 + round, 1, TICK, "m", false, 0);

		memset(model, 0, sizeof(model));
		for (int step = 0; step < 30; step++) {
			uint64_t first = (uint64_t)rand() % PAGES;
			uint64_t cnt = 1 + (uint64_t)rand() % (PAGES - first);
			uint32_t file = 1 + (uint32_t)rand() % 2, gen = procs__space(ps, idx)->gen;
			bool changed = false;
			/* often the offset that the neighbours have too, so that ranges mean the
			 * same */
			uint64_t offset = (rand() % 3 ? first + PAGES : (uint64_t)rand() % 4) * PG;

			if (rand() % 2)
				cnt = MIN(cnt, 4);
			mmap_event(100 + round, 1 + step, BASE + first * PG,
				   BASE + (first + cnt) * PG, offset, file == 1 ? &lib_a : &lib_b);
			for (uint64_t i = 0; i < cnt; i++) {
				struct meaning now = { file, offset + i * PG };
				struct meaning *m = &model[first + i];

				changed |=
					m->file && (m->file != now.file || m->offset != now.offset);
				*m = now;
			}
			if ((procs__space(ps, idx)->gen != gen) != changed)
				fail_msg("round %u step %d: an address %s, generation %u -> %u",
					 round, step,
					 changed ? "changed its meaning" : "means the same", gen,
					 procs__space(ps, idx)->gen);
			changes += changed;
			kept += !changed;
			check_model(idx, model);
		}
		procs__remove(ps, idx);
	}
	assert_true(changes > 1000 && kept > 1000);
}

/* A sample is read after what happened since: its addresses mean what they meant at its time. */
static void test_past_against_model(void **state)
{
	enum {
		STEPS = 24
	};
	static struct meaning model[STEPS + 1][PAGES]; /* after the events up to that time */

	(void)state;
	srand(8);
	for (uint32_t round = 0; round < 200; round++) {
		uint64_t oldest = 0;
		uint32_t idx;

		procs__free(ps);
		ps = procs__new(toolrun_path("proc"));
		assert_non_null(ps);
		idx = procs__add(ps, 100 + round, 1, TICK, "m", false, 0);
		memset(model, 0, sizeof(model));
		for (uint64_t now = 1; now <= STEPS; now++) {
			uint64_t first = (uint64_t)rand() % PAGES;
			uint64_t len = 1 + (uint64_t)rand() % MIN(PAGES - first, 12);
			uint32_t file = 1 + (uint32_t)rand() % 2;
			uint64_t offset = (rand() % 2 ? first + PAGES : (uint64_t)rand() % 4) * PG;

			memcpy(model[now], model[now - 1], sizeof(model[0]));
			mmap_event(100 + round, now, BASE + first * PG, BASE + (first + len) * PG,
				   offset, file == 1 ? &lib_a : &lib_b);
			for (uint64_t i = 0; i < len; i++)
				model[now][first + i] = (struct meaning){ file, offset + i * PG };
			if (rand() % 8 == 0) {
				uint64_t until = now - (uint64_t)rand() % MIN(now, 5);

				oldest = MAX(oldest, until);
				procs__drop_retired(ps, oldest);
			}
		}
		for (uint64_t time = oldest; time <= STEPS + 1; time++) {
			for (uint64_t page = 0; page < PAGES; page++) {
				const struct meaning *want = &model[MIN(time, STEPS)][page];
				uint64_t addr = BASE + page * PG;
				const struct proc_map *m = procs__map_at_time(ps, idx, addr, time);

				/* where there was nothing yet, nothing can have been sampled */
				if (!want->file)
					continue;
				assert_non_null(m);
				assert_true(addr >= m->start && addr < m->end);
				assert_string_equal(procs__file(ps, m->file)->path,
						    want->file == 1 ? "/lib/a" : "/lib/b");
				assert_int_equal(m->offset + (addr - m->start), want->offset);
			}
		}
		procs__drop_retired(ps, UINT64_MAX);
		assert_int_equal(procs__space(ps, idx)->retired_cnt, 0);
	}
}

static void test_odd_ranges(void **state)
{
	uint32_t idx = procs__add(ps, 10, 1, TICK, "p", false, 0);

	(void)state;
	mmap_event(10, 1, 0x1000, 0x1000, 0, &lib_a);
	assert_int_equal(procs__on_mmap(ps, 10, 2, UINT64_MAX - 10, 100, 0, &lib_a), 0);
	assert_int_equal(procs__on_mmap(ps, 10, 2, 0x1000, UINT64_MAX, 0, &lib_a), 0);
	assert_int_equal(procs__space(ps, idx)->map_cnt, 0);
	mmap_event(10, 3, 0, 0x1000, 0, &lib_a);
	assert_string_equal(path_at(idx, 0), "/lib/a");
	mmap_event(10, 3, UINT64_MAX - 0xfff, UINT64_MAX, 0, &lib_b);
	assert_string_equal(path_at(idx, UINT64_MAX - 1), "/lib/b");
	assert_string_equal(path_at(idx, UINT64_MAX), "");
}

/* However many a program makes, they are bounded, and no address keeps a meaning that it lost. */
static void test_too_many_ranges(void **state)
{
	uint32_t idx = procs__add(ps, 10, 1, TICK, "p", false, 0);

	(void)state;
	for (uint64_t i = 0; i < PROCS_MAX_MAPS + 10; i++)
		mmap_event(10, 1 + i, (16 + i * 4) * PG, (16 + i * 4 + 3) * PG, i * PG, &lib_a);
	assert_int_equal(procs__space(ps, idx)->map_cnt, PROCS_MAX_MAPS);
	assert_int_equal(procs__space(ps, idx)->cut_cnt, 10);
	/* in the middle of one, over the whole of one, at the edge of one */
	mmap_event(10, 1, 17 * PG, 18 * PG, 77 * PG, &lib_b);
	mmap_event(10, 1, 20 * PG, 23 * PG, 77 * PG, &lib_b);
	mmap_event(10, 1, 23 * PG, 25 * PG, 77 * PG, &lib_b);
	assert_true(procs__space(ps, idx)->map_cnt <= PROCS_MAX_MAPS);
	assert_string_not_equal(path_at(idx, 17 * PG), "/lib/a");
	assert_string_not_equal(path_at(idx, 20 * PG), "/lib/a");
	assert_string_not_equal(path_at(idx, 24 * PG), "/lib/a");
	assert_string_equal(path_at(idx, 16 * PG), "/lib/a");
	assert_string_equal(path_at(idx, 26 * PG), "/lib/a");
}

static void test_files(void **state)
{
	struct proc_file with_id = lib_a, other_id,
			 vdso = { .kind = PROC_FILE_VDSO, .path = (char *)"[vdso]" };
	char path[] = "/lib/c";
	struct proc_file borrowed = { .kind = PROC_FILE_REGULAR, .path = path };
	uint32_t idx = procs__add(ps, 10, 1, TICK, "p", false, 0), seen = 0;

	(void)state;
	with_id.build_id_sz = 20;
	memset(with_id.build_id, 7, 20);
	other_id = with_id;
	other_id.build_id[19] = 8;
	for (int i = 1; i < 4; i++) {
		mmap_event(10, i, 0x1000, 0x2000, 0, &lib_a);
		mmap_event(10, i, 0x2000, 0x3000, 0, &with_id);
		mmap_event(10, i, 0x3000, 0x4000, 0, &other_id);
		mmap_event(10, i, 0x4000, 0x5000, 0, &vdso);
		mmap_event(10, i, 0x5000, 0x6000, 0, &borrowed);
		strcpy(path, "/lib/c");
	}
	/* each is there once: five files have five numbers */
	for (uint64_t addr = 0x1000; addr <= 0x5000; addr += 0x1000) {
		const struct proc_map *m = procs__map_at(ps, idx, addr);

		assert_non_null(m);
		assert_true(m->file < 5);
		seen |= 1 << m->file;
	}
	assert_int_equal(seen, 0x1f);
	/* the path is ours */
	strcpy(path, "XXXX");
	assert_string_equal(path_at(idx, 0x5000), "/lib/c");
	assert_int_equal(procs__space(ps, idx)->gen, 1);
}

static uint32_t files_gone[8], files_gone_cnt;

static bool note_gone(void *ctx, uint32_t file)
{
	assert_ptr_equal(ctx, ps);
	/* it is still there */
	assert_non_null(procs__file(ps, file)->path);
	assert_true(files_gone_cnt < ARRAY_SIZE(files_gone));
	files_gone[files_gone_cnt++] = file;
	return true;
}

static size_t release_files(void)
{
	files_gone_cnt = 0;
	assert_int_equal(procs__release_files(ps, note_gone, ps), 0);
	return files_gone_cnt;
}

static bool is_rewritten(void *ctx, uint32_t file)
{
	return file == *(uint32_t *)ctx;
}

/* A file that was written over has another number from then on, unless its build id tells the two apart. */
static void test_rewritten_files(void **state)
{
	struct proc_file with_id = lib_a;
	uint32_t idx = procs__add(ps, 10, 1, TICK, "p", false, 0), rewritten, first, second;

	(void)state;
	with_id.build_id_sz = 20;
	mmap_event(10, 1, 0x1000, 0x2000, 0, &lib_a);
	mmap_event(10, 1, 0x2000, 0x3000, 0, &with_id);
	first = procs__map_at(ps, idx, 0x1000)->file;
	procs__on_rewritten(ps, is_rewritten, &rewritten);
	rewritten = first;
	mmap_event(10, 2, 0x4000, 0x5000, 0, &lib_a);
	second = procs__map_at(ps, idx, 0x4000)->file;
	assert_int_not_equal(second, first);
	assert_int_equal(procs__map_at(ps, idx, 0x1000)->file, first);
	/* it is asked once */
	rewritten = procs__map_at(ps, idx, 0x2000)->file;
	mmap_event(10, 3, 0x5000, 0x6000, 0, &lib_a);
	assert_int_equal(procs__map_at(ps, idx, 0x5000)->file, second);
	mmap_event(10, 3, 0x6000, 0x7000, 0, &with_id);
	assert_int_equal(procs__map_at(ps, idx, 0x6000)->file, rewritten);
	/* both go */
	procs__on_rewritten(ps, NULL, NULL);
	procs__remove(ps, idx);
	assert_int_equal(procs__file_cnt(ps), 3);
	assert_int_equal(release_files(), 3);
	assert_int_equal(procs__file_cnt(ps), 0);
}

/* A file goes when no process maps it, none did a moment ago, and nobody keeps its number. */
static void test_release_files(void **state)
{
	/* a file that was replaced is remembered beside what may be its copy, memory is not */
	const struct proc_file mem_a = { .kind = PROC_FILE_REGULAR,
					 .path = (char *)"/memfd:a",
					 .ino = 3 };
	const struct proc_file mem_b = { .kind = PROC_FILE_REGULAR,
					 .path = (char *)"/memfd:b",
					 .ino = 4 };
	uint32_t idx = procs__add(ps, 10, 1, TICK, "p", false, 0), other, a, b;

	(void)state;
	mmap_event(10, 1, 0x1000, 0x2000, 0, &mem_a);
	mmap_event(10, 1, 0x2000, 0x3000, 0, &lib_b);
	a = procs__map_at(ps, idx, 0x1000)->file;
	b = procs__map_at(ps, idx, 0x2000)->file;
	assert_int_equal(procs__file_cnt(ps), 2);
	assert_int_equal(release_files(), 0);
	/* a child has them too */
	assert_int_equal(procs__on_fork(ps, 11, 10, 2), 0);
	other = procs__find_live(ps, 11);
	mmap_event(10, 3, 0x1000, 0x2000, 0, &lib_b);
	assert_string_equal(path_at(idx, 0x1000), "/lib/b");
	procs__drop_retired(ps, 1000);
	assert_int_equal(release_files(), 0);
	procs__end(ps, other);
	procs__remove(ps, other);
	/* kept by number */
	procs__ref_file(ps, a);
	procs__ref_file(ps, a);
	procs__unref_file(ps, a);
	assert_int_equal(release_files(), 0);
	procs__unref_file(ps, a);
	assert_int_equal(release_files(), 1);
	assert_int_equal(files_gone[0], a);
	assert_int_equal(procs__file_cnt(ps), 1);
	/* its number is another file's */
	mmap_event(10, 1001, 0x5000, 0x6000, 0, &mem_b);
	assert_int_equal(procs__map_at(ps, idx, 0x5000)->file, a);
	assert_string_equal(path_at(idx, 0x5000), "/memfd:b");
	assert_string_equal(path_at(idx, 0x1000), "/lib/b");
	assert_int_equal(procs__map_at(ps, idx, 0x1000)->file, b);
	/* samples of what was replaced a moment ago may still come */
	mmap_event(10, 2000, 0x5000, 0x6000, 0, &lib_b);
	assert_int_equal(procs__map_at(ps, idx, 0x5000)->file, b);
	assert_int_equal(release_files(), 0);
	assert_string_equal(procs__file(ps, procs__map_at_time(ps, idx, 0x5000, 1500)->file)->path,
			    "/memfd:b");
	procs__drop_retired(ps, 3000);
	assert_int_equal(release_files(), 1);
	assert_int_equal(files_gone[0], a);
	/* what may be copied from */
	mmap_event(10, 3001, 0x2000, 0x3000, 0, &lib_a);
	mmap_event(10, 3001, 0x1000, 0x2000, 0, &lib_a);
	mmap_event(10, 3001, 0x5000, 0x6000, 0, &lib_a);
	assert_string_equal(path_at(idx, 0x2000), "/lib/a");
	procs__drop_retired(ps, 4000);
	assert_int_equal(release_files(), 0);
	procs__remove(ps, idx);
	assert_int_equal(release_files(), 2);
	assert_int_equal(procs__file_cnt(ps), 0);
}

/* Files that chance to lie in one bucket are found when others of it have gone. */
static void test_many_files(void **state)
{
	char path[32];
	struct proc_file f = { .kind = PROC_FILE_REGULAR, .path = path };
	uint32_t idx = procs__add(ps, 10, 1, TICK, "p", false, 0), file[20000];

	(void)state;
	for (uint32_t i = 0; i < ARRAY_SIZE(file); i++) {
		snprintf(path, sizeof(path), "/memfd:%u", i);
		f.ino = i + 1;
		mmap_event(10, 1, 0x1000, 0x2000, 0, &f);
		file[i] = procs__map_at(ps, idx, 0x1000)->file;
		if (i % 3 == 0)
			procs__ref_file(ps, file[i]);
		if (i % 7 == 0) {
			procs__drop_retired(ps, 1000);
			files_gone_cnt = 0;
			for (int n = 0; n < 2; n++, files_gone_cnt = 0)
				assert_int_equal(procs__release_files(ps, note_gone, ps), 0);
		}
		assert_true(file[i] <= i / 3 + 16);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(file); i += 3) {
		snprintf(path, sizeof(path), "/memfd:%u", i);
		f.ino = i + 1;
		mmap_event(10, 2, 0x3000, 0x4000, 0, &f);
		assert_int_equal(procs__map_at(ps, idx, 0x3000)->file, file[i]);
	}
}

static size_t hash_adds, hash_nexts;

void *__real_hash__add(struct hash *h, uint64_t hash);
void *__wrap_hash__add(struct hash *h, uint64_t hash);
void *__wrap_hash__add(struct hash *h, uint64_t hash)
{
	hash_adds++;
	return __real_hash__add(h, hash);
}

void *__real_hash__next(const struct hash *h, const void *entry);
void *__wrap_hash__next(const struct hash *h, const void *entry);
void *__wrap_hash__next(const struct hash *h, const void *entry)
{
	hash_nexts++;
	return __real_hash__next(h, entry);
}

/* A file is found without a look at all the others that are as much like it as can be, however many there are. */
static void test_like_files(void **state)
{
	enum {
		CNT = 10000
	};
	char path[] = "/lib/0";
	uint32_t idx = procs__add(ps, 10, 1, TICK, "p", false, 0);

	(void)state;
	for (int kind = 0; kind < 4; kind++, path[5]++) {
		struct proc_file f = { .kind = PROC_FILE_REGULAR, .path = path, .build_id_sz = 20 };
		uint32_t first = 0;

		hash_adds = hash_nexts = 0;
		for (uint32_t i = 0; i < 2 * CNT; i++) {
			uint32_t which = i % CNT, number;

			f.ino = kind == 1 ? which : 1;
			f.maj = kind == 2 ? which : 1;
			f.min = kind == 3 ? which : 1;
			if (!kind)
				memcpy(f.build_id, &which, sizeof(which));
			mmap_event(10, 1, 0x1000, 0x2000, 0, &f);
			number = procs__map_at(ps, idx, 0x1000)->file;
			first = i ? first : number;
			assert_int_equal(number, first + which);
		}
		assert_int_equal(hash_adds, CNT);
		/* those of which half of the hash is the same */
		assert_in_range(hash_nexts, 0, 64);
	}
}

/* ---- reading maps ---- */

static void test_read_maps(void **state)
{
	uint32_t idx = procs__add(ps, 10, 1, 5 * TICK, "p", false, 0), gen;

	(void)state;
	make_proc(10, 5, 'S', 1,
		  "1000-3000 r-xp 00000000 fe:01 7 /bin/p\n"
		  "3000-4000 r--p 00002000 fe:01 7 /bin/p\n"
		  "4000-5000 rwxp 00000000 00:00 0 \n"
		  "7000-8000 r-xp 00000000 00:00 0 [vdso]\n"
		  "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0 [vsyscall]\n");
	assert_int_equal(procs__read_maps(ps, idx, 0), 0);
	assert_true(procs__space(ps, idx)->known);
	assert_int_equal(procs__space(ps, idx)->map_cnt, 3);
	assert_string_equal(path_at(idx, 0x2fff), "/bin/p");
	assert_null(procs__map_at(ps, idx, 0x3000));
	assert_int_equal(procs__file(ps, procs__map_at(ps, idx, 0x4000)->file)->kind,
			 PROC_FILE_ANON);
	assert_int_equal(procs__file(ps, procs__map_at(ps, idx, 0x7000)->file)->kind,
			 PROC_FILE_VDSO);
	gen = procs__space(ps, idx)->gen;
	/* nothing new */
	assert_int_equal(procs__read_maps(ps, idx, 0), 0);
	assert_int_equal(procs__space(ps, idx)->gen, gen);
	assert_int_equal(procs__space(ps, idx)->map_cnt, 3);
	/* something else at a known address */
	make_proc(10, 5, 'S', 1, "2000-3000 r-xp 00000000 fe:01 8 /bin/q\n");
	assert_int_equal(procs__read_maps(ps, idx, 0), 0);
	assert_string_equal(path_at(idx, 0x2000), "/bin/q");
	assert_int_not_equal(procs__space(ps, idx)->gen, gen);
}

/* What a process maps at the longest of paths is more than is read: what was read is known, it is said that something
 * is missing, and whoever asks again does not wait for it. */
static void test_read_too_much(void **state)
{
	enum {
		PATH = 60000,
		LINES = PROC_MAPS_MAX / PATH + 1
	};
	uint32_t idx = procs__add(ps, 10, 1, 5 * TICK, "p", false, 0), other;
	char *text = calloc(LINES, PATH + 64), *at = text;
	const struct proc_space *s;

	(void)state;
	assert_non_null(text);
	for (size_t i = 1; i <= LINES; i++) {
		at += sprintf(at, "%zx000-%zx000 r-xp 00000000 fe:01 7 /", 2 * i, 2 * i + 1);
		memset(at, 'a', PATH);
		at += PATH;
		*at++ = '\n';
	}
	make_proc(10, 5, 'S', 1, text);
	free(text);
	assert_int_equal(procs__read_maps(ps, idx, 0), 0);
	s = procs__space(ps, idx);
	assert_true(s->known);
	assert_in_range(s->map_cnt, LINES - 2, LINES - 1);
	assert_int_equal(s->cut_cnt, 1);
	/* events were lost: what is there by now is asked for after a while */
	make_proc(10, 5, 'S', 1, "1000-2000 r-xp 00000000 fe:01 8 /bin/p\n");
	procs__on_lost(ps);
	assert_int_equal(procs__read_maps(ps, idx, 0), -ETIMEDOUT);
	assert_null(procs__map_at(ps, idx, 0x1000));
	assert_non_null(procs__map_at(ps, idx, 0x2000));
	/* nobody else waits for that */
	make_proc(11, 5, 'S', 1, "1000-2000 r-xp 00000000 fe:01 8 /bin/p\n");
	other = procs__add(ps, 11, 1, 5 * TICK, "q", false, 0);
	assert_int_equal(procs__read_maps(ps, other, 0), 0);
	assert_int_equal(procs__space(ps, other)->cut_cnt, 0);
}

static void test_read_maps_of_another(void **state)
{
	uint32_t idx = procs__add(ps, 10, 1, 5 * TICK, "p", false, 0);

	(void)state;
	assert_int_equal(procs__read_maps(ps, idx, 0), -ESRCH);
	/* the number is another's by now: not a byte of its maps is taken */
	make_proc(10, 6, 'S', 1, "1000-3000 r-xp 00000000 fe:01 7 /bin/other\n");
	assert_int_equal(procs__read_maps(ps, idx, 0), -ESRCH);
	assert_int_equal(procs__space(ps, idx)->map_cnt, 0);
	assert_false(procs__space(ps, idx)->known);
}

static void test_read_maps_of_a_thread(void **state)
{
	uint32_t idx = procs__add(ps, 10, 1, 5 * TICK, "p", false, 0);

	(void)state;
	make_proc(10, 5, 'Z', 2, "");
	assert_true(toolrun("mkdir -p proc/10/task/12"));
	toolrun_write("proc/10/task/12/maps", "1000-2000 r-xp 0 fe:01 7 /bin/p\n", 32);
	assert_int_equal(procs__read_maps(ps, idx, 12), 0);
	assert_string_equal(path_at(idx, 0x1000), "/bin/p");
}

/* ---- opening ---- */

static bool holds_maps;		  /* no process tells what it has mapped */
static unsigned int asked_maps;	  /* processes, for that */
static unsigned int system_opens; /* paths that the opener of the system's files walked */

int __real_reader__open(struct reader *r, const char *path);
int __wrap_reader__open(struct reader *r, const char *path);
int __wrap_reader__open(struct reader *r, const char *path)
{
	bool of_maps = strstr(path, "/map_files/");

	asked_maps += of_maps;
	system_opens += r == readers__get(&objects->readers, READERS_SYSTEM);
	return holds_maps && of_maps ? -ETIMEDOUT : __real_reader__open(r, path);
}

/* Opens what pid's maps say of addr, in a /proc where the files of the test lie. */
static int open_at(uint32_t idx, uint64_t addr)
{
	const struct proc_map *m = procs__map_at(ps, idx, addr);

	assert_non_null(m);
	return procs__open(ps, objects, idx, m);
}

static struct stat stat_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st;
}

static void map_file(uint32_t pid, uint64_t addr, const char *path, const struct stat *st)
{
	struct proc_file f = { .kind = PROC_FILE_REGULAR,
			       .path = (char *)path,
			       .maj = major(st->st_dev),
			       .min = minor(st->st_dev),
			       .ino = st->st_ino };

	mmap_event(pid, 1, addr, addr + 0x1000, 0, &f);
}

static void expect_text(int fd, const char *want)
{
	char buf[64] = "", path[64];
	int readable;

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_PATH, O_PATH);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	readable = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(readable, buf, sizeof(buf) - 1) >= 0);
	assert_string_equal(buf, want);
	close(readable);
	close(fd);
}

static void test_open_by_path(void **state)
{
	uint32_t idx = procs__add(ps, 10, 1, 5 * TICK, "p", false, 0);
	const char *path = toolrun_path("file");
	struct stat st;

	(void)state;
	toolrun_write("file", "old", 3);
	st = stat_of(path);
	map_file(10, 0x1000, path, &st);
	expect_text(open_at(idx, 0x1000), "old");
	/* its own root comes first: a container's file of the same path */
	assert_true(
		toolrun("mkdir -p proc/10/root$(dirname %s) && ln %s proc/10/root%s && "
			"rm file && echo -n new >file",
			path, path, path));
	expect_text(open_at(idx, 0x1000), "old");
	/* replaced, as an upgrade does: not the file that was mapped */
	assert_true(toolrun("rm -r proc/10/root"));
	assert_int_equal(open_at(idx, 0x1000), -ESTALE);
	assert_true(toolrun("rm file"));
	assert_int_equal(open_at(idx, 0x1000), -ENOENT);
	/* the right inode of another device */
	toolrun_write("file", "new", 3);
	st = stat_of(path);
	st.st_dev = makedev(major(st.st_dev), minor(st.st_dev) + 1);
	map_file(10, 0x2000, path, &st);
	assert_int_equal(open_at(idx, 0x2000), -ESTALE);
}

/* What is written over in its place after the process has ended is not what it had mapped. */
static void test_open_written_over(void **state)
{
	uint32_t idx = procs__add(ps, 10, 1, 5 * TICK, "p", false, 0);
	const char *path = toolrun_path("file");
	struct stat st;

	(void)state;
	toolrun_write("file", "old", 3);
	st = stat_of(path);
	map_file(10, 0x1000, path, &st);
	/* by the kernel's clock, which ticks */
	usleep(20000);
	procs__on_exit(ps, 10, 10, util_monotonic_ns());
	assert_false(procs__lives(ps, idx));
	expect_text(open_at(idx, 0x1000), "old");
	usleep(20000);
	assert_true(toolrun("echo -n new >file"));
	assert_int_equal(stat_of(path).st_ino, st.st_ino);
	assert_int_equal(open_at(idx, 0x1000), -ESTALE);
}

static void test_open_by_build_id(void **state)
{
	uint32_t idx = procs__add(ps, 10, 1, 5 * TICK, "p", false, 0);
	struct proc_file f = { .kind = PROC_FILE_REGULAR, .build_id_sz = 20 };

	(void)state;
	/* events that carry a build id carry no inode: the caller compares */
	f.path = (char *)toolrun_path("file");
	toolrun_write("file", "any", 3);
	mmap_event(10, 1, 0x1000, 0x2000, 0, &f);
	expect_text(open_at(idx, 0x1000), "any");
}

static void test_open_by_map_files(void **state)
{
	uint32_t idx = procs__add(ps, 10, 1, 5 * TICK, "p", false, 0);
	struct stat st;

	(void)state;
	assert_true(toolrun(
		"mkdir -p proc/10/map_files && echo -n mapped >proc/10/map_files/1000-2000"));
	st = stat_of(toolrun_path("proc/10/map_files/1000-2000"));
	map_file(10, 0x1000, "/no/such/file (deleted)", &st);
	expect_text(open_at(idx, 0x1000), "mapped");
	/* another process by the same number has something else there */
	st.st_ino++;
	map_file(10, 0x1000, "/no/such/file (deleted)", &st);
	assert_int_equal(open_at(idx, 0x1000), -ENOENT);
}

/* A process that holds its map is left alone, not its files, and whatever reads the system's does not wait for it. */
static void test_open_held_map(void **state)
{
	uint32_t idx = procs__add(ps, 10, 1, 5 * TICK, "p", false, 0), other;
	const char *path = toolrun_path("file");
	struct stat st, mapped;

	(void)state;
	toolrun_write("file", "by path", 7);
	assert_true(
		toolrun("mkdir -p proc/10/map_files proc/11/map_files && "
			"echo -n mapped >proc/10/map_files/2000-3000 && "
			"ln proc/10/map_files/2000-3000 proc/11/map_files/2000-3000"));
	st = stat_of(path);
	mapped = stat_of(toolrun_path("proc/10/map_files/2000-3000"));
	map_file(10, 0x1000, path, &st);
	map_file(10, 0x2000, "/no/such/file (deleted)", &mapped);
	asked_maps = system_opens = 0;
	holds_maps = true;
	expect_text(open_at(idx, 0x1000), "by path");
	assert_int_equal(open_at(idx, 0x2000), -EAGAIN);
	assert_int_equal(asked_maps, 1);
	holds_maps = false;
	assert_int_equal(open_at(idx, 0x2000), -EAGAIN);
	assert_int_equal(asked_maps, 1);
	other = procs__add(ps, 11, 1, 5 * TICK, "q", false, 0);
	map_file(11, 0x2000, "/no/such/file (deleted)", &mapped);
	expect_text(open_at(other, 0x2000), "mapped");
	assert_int_equal(asked_maps, 2);
	assert_int_equal(system_opens, 0);
}

static void test_open_refuses(void **state)
{
	static const char *const names[] = { "fifo",	  "folder",  "socket-like",
					     "to-device", "to-fifo", "loop" };
	uint32_t idx = procs__add(ps, 10, 1, 5 * TICK, "p", false, 0);
	struct proc_file anon = { .kind = PROC_FILE_ANON, .path = (char *)"//anon" };
	struct proc_file f = { .kind = PROC_FILE_REGULAR, .build_id_sz = 20 };
	uint64_t addr = 0x100000;

	(void)state;
	assert_true(
		toolrun("rm -f fifo socket-like to-* loop; rm -rf folder; mkfifo fifo && "
			"mkdir folder && ln -s /dev/zero to-device && ln -s fifo to-fifo && "
			"ln -s loop loop && ln -s /dev/full socket-like"));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++, addr += 0x10000) {
		int fd;

		f.path = (char *)toolrun_path(names[i]);
		mmap_event(10, 1, addr, addr + 0x1000, 0, &f);
		/* and not only not opened: not waited for either, which a FIFO would make us */
		fd = open_at(idx, addr);
		if (fd >= 0)
			fail_msg("'%s' was opened", names[i]);
	}
	f.path = (char *)"/dev/zero";
	mmap_event(10, 1, addr, addr + 0x1000, 0, &f);
	assert_int_equal(open_at(idx, addr), -ENOTSUP);
	mmap_event(10, 1, 0x5000, 0x6000, 0, &anon);
	assert_int_equal(open_at(idx, 0x5000), -ENOTSUP);
	/* names that are no absolute paths must not be looked for in our own folder */
	f.path = (char *)"Makefile";
	mmap_event(10, 1, 0x7000, 0x8000, 0, &f);
	assert_true(open_at(idx, 0x7000) < 0);
	f.path = (char *)"";
	mmap_event(10, 1, 0x9000, 0xa000, 0, &f);
	assert_true(open_at(idx, 0x9000) < 0);
	/* and planted where the kernel would have a link to what is mapped */
	assert_true(
		toolrun("mkdir -p proc/10/map_files && mkfifo proc/10/map_files/b000-c000 && "
			"ln -s /dev/zero proc/10/map_files/c000-d000"));
	f.path = (char *)"/no/such";
	mmap_event(10, 1, 0xb000, 0xc000, 0, &f);
	mmap_event(10, 1, 0xc000, 0xd000, 0x1000, &f);
	assert_int_equal(open_at(idx, 0xb000), -ENOENT);
	assert_int_equal(open_at(idx, 0xc000), -ENOENT);
}

static void test_open_long_path(void **state)
{
	uint32_t idx = procs__add(ps, 10, 1, 5 * TICK, "p", false, 0);
	char *path = malloc(PROCS_MAX_LINE);
	struct proc_file f = { .kind = PROC_FILE_REGULAR, .path = path, .build_id_sz = 20 };

	(void)state;
	memset(path, 'p', PROCS_MAX_LINE - 1);
	path[0] = '/';
	path[PROCS_MAX_LINE - 1] = '\0';
	mmap_event(10, 1, 0x1000, 0x2000, 0, &f);
	assert_true(open_at(idx, 0x1000) < 0);
	free(path);
}

/* The real /proc: a file that we have mapped and deleted is still there for us. */
static void test_open_deleted(void **state)
{
	struct procs *real = procs__new("/proc");
	const struct proc_map *m;
	uint32_t idx;
	void *mem;
	int fd;

	(void)state;
	toolrun_write("doomed", "still here", 10);
	fd = open(toolrun_path("doomed"), O_RDONLY);
	mem = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	if (mem == MAP_FAILED) {
		print_message("the folder for temporary files is mounted noexec\n");
		procs__free(real);
		skip();
	}
	assert_int_equal(unlink(toolrun_path("doomed")), 0);
	idx = procs__add(real, getpid(), 0, 0, "self", false, 0);
	assert_int_equal(procs__read_maps(real, idx, 0), 0);
	m = procs__map_at(real, idx, (uintptr_t)mem);
	assert_non_null(m);
	assert_non_null(strstr(procs__file(real, m->file)->path, "doomed (deleted)"));
	fd = procs__open(real, objects, idx, m);
	if (fd == -EPERM || fd == -EACCES || (fd < 0 && geteuid())) {
		print_message("map_files cannot be followed without CAP_CHECKPOINT_RESTORE\n");
		munmap(mem, 4096);
		procs__free(real);
		skip();
	}
	expect_text(fd, "still here");
	/* our own program by its path */
	m = procs__map_at(real, idx, (uintptr_t)test_open_deleted);
	assert_non_null(m);
	fd = procs__open(real, objects, idx, m);
	assert_true(fd >= 0);
	close(fd);
	munmap(mem, 4096);
	procs__free(real);
}

/* A real process, from its start to its end and beyond. */
static void test_real_child(void **state)
{
	struct procs *real = procs__new("/proc");
	pid_t pid = fork();
	uint32_t idx;

	(void)state;
	if (!pid)
		for (;;)
			pause();
	assert_true(pid > 0);
	idx = procs__add(real, pid, 0, 0, "child", false, 0);
	assert_int_equal(procs__read_maps(real, idx, 0), 0);
	assert_non_null(procs__map_at(real, idx, (uintptr_t)test_real_child));
	assert_false(procs__is_gone(real, idx));
	kill(pid, SIGKILL);
	/* ended, not yet waited for */
	assert_int_equal(waitid(P_PID, pid, NULL, WEXITED | WNOWAIT), 0);
	assert_true(procs__is_gone(real, idx));
	procs__on_exit(real, pid, pid, 1000);
	assert_int_equal(procs__get(real, idx)->to_ns, 1000);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(procs__is_gone(real, idx));
	assert_int_equal(procs__read_maps(real, idx, 0), -ESRCH);
	/* what was known stays */
	assert_non_null(procs__map_at(real, idx, (uintptr_t)test_real_child));
	procs__free(real);
}

/* To open them waits for the end of an exec, which may be withheld: that is left to who reads them. */
static void test_memory_is_not_opened(void **state)
{
	static const char text[] = "what stands in this process's memory";
	struct procs *real = procs__new("/proc");
	uint32_t idx = procs__add(real, getpid(), 0, 0, "self", false, 0);
	int memory = procs__open_memory(real, idx), environ_fd = procs__open_environ(real, idx);
	char got[sizeof(text)] = "";

	(void)state;
	assert_int_equal(fcntl(memory, F_GETFL) & O_PATH, O_PATH);
	assert_int_equal(fcntl(environ_fd, F_GETFL) & O_PATH, O_PATH);
	assert_int_equal(objects__read_memory(objects, memory, (uintptr_t)text, got, sizeof(got)),
			 0);
	assert_memory_equal(got, text, sizeof(text));
	close(memory);
	close(environ_fd);
	procs__free(real);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_add_and_find),
		TEST(test_contradiction),
		TEST(test_fork),
		TEST(test_exec),
		TEST(test_exec_in_scan),
		TEST(test_sampled_in_exec),
		TEST(test_short_lives),
		TEST(test_pid_reuse),
		TEST(test_comm),
		TEST(test_exit),
		TEST(test_exit_of_setuid),
		TEST(test_exit_of_setuid_that_ended),
		TEST(test_threads_counted),
		TEST(test_sampled_after_end),
		TEST(test_zombie),
		TEST(test_is_gone),
		TEST(test_is_gone_unknown),
		TEST(test_is_gone_elsewhere),
		TEST(test_events_before_scan),
		TEST(test_maps_read_after_exec),
		TEST(test_remove),
		TEST(test_ranges_against_model),
		TEST(test_past_against_model),
		TEST(test_odd_ranges),
		TEST(test_too_many_ranges),
		TEST(test_files),
		TEST(test_rewritten_files),
		TEST(test_release_files),
		TEST(test_many_files),
		TEST(test_like_files),
		TEST(test_read_maps),
		TEST(test_read_too_much),
		TEST(test_read_maps_of_another),
		TEST(test_read_maps_of_a_thread),
		TEST(test_open_by_path),
		TEST(test_open_written_over),
		TEST(test_open_by_build_id),
		TEST(test_open_by_map_files),
		TEST(test_open_held_map),
		TEST(test_open_refuses),
		TEST(test_memory_is_not_opened),
		TEST(test_open_long_path),
		TEST(test_open_deleted),
		TEST(test_real_child),
	};
	int failed;

	objects = objects__new();
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	objects__free(objects);
	toolrun_cleanup();
	return failed;
}
