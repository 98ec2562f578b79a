// SPDX-License-Identifier: BSD-2-Clause
/* Lines of /proc/PID/maps and /proc/PID/stat: made ones, with all that names may hold, and our own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "target/proc_maps.h"
#include "target/proc_text.h"
#include "toolrun.h"

static bool parse(const char *text, struct proc_maps_line *ret)
{
	static char line[PROCS_MAX_LINE + 1];

	snprintf(line, sizeof(line), "%s", text);
	return proc_maps_parse(line, ret);
}

static void test_line(void **state)
{
	struct proc_maps_line l;

	(void)state;
	assert_true(
		parse("7f0012345000-7f0012346000 r-xp 0001a000 fe:01 12345                      "
		      "/usr/lib/libx.so",
		      &l));
	assert_int_equal(l.start, 0x7f0012345000);
	assert_int_equal(l.end, 0x7f0012346000);
	assert_int_equal(l.offset, 0x1a000);
	assert_true(l.exec);
	assert_int_equal(l.file.kind, PROC_FILE_REGULAR);
	assert_int_equal(l.file.maj, 0xfe);
	assert_int_equal(l.file.min, 1);
	assert_int_equal(l.file.ino, 12345);
	assert_int_equal(l.file.build_id_sz, 0);
	assert_string_equal(l.file.path, "/usr/lib/libx.so");

	assert_true(parse("1000-2000 rw-p 00000000 00:00 0 ", &l));
	assert_false(l.exec);
	assert_int_equal(l.file.kind, PROC_FILE_ANON);
	assert_string_equal(l.file.path, "");
	/* without the blank that the kernel puts behind the inode */
	assert_true(parse("1000-2000 rwxp 00000000 00:00 0", &l));
	assert_true(l.exec);
	assert_int_equal(l.file.kind, PROC_FILE_ANON);
	/* the widest figures that there can be */
	assert_true(
		parse("7fffffffe000-7ffffffff000 --xs ffffffffffff000 fff:fffff "
		      "18446744073709551615 /x",
		      &l));
	assert_int_equal(l.file.ino, UINT64_MAX);
	assert_int_equal(l.file.maj, 0xfff);
	assert_int_equal(l.file.min, 0xfffff);
	assert_int_equal(l.offset, 0xffffffffffff000);
}

static void test_names(void **state)
{
	struct proc_maps_line l;

	(void)state;
	assert_true(parse("1000-2000 r-xp 00000000 00:00 0                          [vdso]", &l));
	assert_int_equal(l.file.kind, PROC_FILE_VDSO);
	assert_true(
		parse("1000-2000 r-xp 00000000 fe:01 7                          /dir/[vdso]", &l));
	assert_int_equal(l.file.kind, PROC_FILE_REGULAR);
	assert_string_equal(l.file.path, "/dir/[vdso]");
	/* a relative name can come from a file whose mount is gone: still no vDSO */
	assert_true(parse("1000-2000 r-xp 00000000 fe:01 7                          [vdso]", &l));
	assert_int_equal(l.file.kind, PROC_FILE_REGULAR);
	assert_true(parse("1000-2000 r-xp 00000000 00:00 0                          [vdso] ", &l));
	assert_int_equal(l.file.kind, PROC_FILE_ANON);
	assert_true(parse(
		"1000-2000 r-xp 00000000 00:00 0                          [anon:JIT [vdso]]", &l));
	assert_int_equal(l.file.kind, PROC_FILE_ANON);
	assert_true(parse(
		"1000-2000 r-xp 00000000 00:01 2053                       /memfd:x (deleted)", &l));
	assert_int_equal(l.file.kind, PROC_FILE_REGULAR);
	assert_string_equal(l.file.path, "/memfd:x (deleted)");
	/* names are raw: blanks, the kernel's \012 for a newline, a colour, what looks like a line
	 */
	assert_true(parse("1000-2000 r-xp 00000000 fe:01 7 /a b\\012c\033[31m 3000-4000 r-xp", &l));
	assert_string_equal(l.file.path, "/a b\\012c\033[31m 3000-4000 r-xp");
	assert_true(parse("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0  [vsyscall]",
			  &l) == false);
}

static void test_no_lines(void **state)
{
	static const char *const rows[] = {
		"",
		"\n",
		"x",
		"1000",
		"1000-",
		"1000-2000",
		"1000-2000 ",
		"1000-2000 r-x",
		"1000-2000 r-xp",
		"1000-2000 r-xp ",
		"1000-2000 r-xpp 0 0:0 0",
		"1000-2000 r-xp 0",
		"1000-2000 r-xp 0 ",
		"1000-2000 r-xp 0 0",
		"1000-2000 r-xp 0 0:0",
		"1000 2000 r-xp 0 0:0 0",
		"2000-1000 r-xp 0 0:0 0",
		"1000-1000 r-xp 0 0:0 0",
		"1000-11111111111111111111 r-xp 0 0:0 0",
		"zzz-2000 r-xp 0 0:0 0",
		"Size:                  4 kB",
	};
	struct proc_maps_line l;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (parse(rows[i], &l))
			fail_msg("'%s' is taken for a line of maps", rows[i]);
}

/* ---- files ---- */

static void make_proc(uint32_t pid)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%u", toolrun_folder(), pid);
	if (mkdir(path, 0700) && errno != EEXIST)
		abort();
}

static void write_proc(uint32_t pid, const char *file, const char *text)
{
	char name[64];

	make_proc(pid);
	snprintf(name, sizeof(name), "%u/%s", pid, file);
	toolrun_write(name, text, strlen(text));
}

static void test_long_lines(void **state)
{
	static const size_t lengths[] = { 8900, PROCS_MAX_LINE - 100, 3 * PROCS_MAX_LINE };
	static char text[6 * PROCS_MAX_LINE];
	struct proc_maps_reader r;
	struct proc_maps_line l;
	char *at = text;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		at += sprintf(at, "%zx000-%zx000 r-xp 00000000 fe:01 7 /", i + 1, i + 2);
		memset(at, 'a', lengths[i]);
		at += lengths[i];
		at += sprintf(at, "\n");
	}
	at += sprintf(at, "this is no line\n");
	sprintf(at, "9000-a000 r-xp 00000000 fe:01 8 /last"); /* no newline */
	write_proc(7, "maps", text);

	assert_int_equal(proc_maps_open(&r, toolrun_folder(), 7, 0, PROC_MAPS_MAX), 0);
	for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
		assert_true(proc_maps_next(&r, &l));
		assert_int_equal(l.start, (i + 1) << 12);
		if (lengths[i] < PROCS_MAX_LINE)
			assert_int_equal(strlen(l.file.path), lengths[i] + 1);
		else
			assert_true(strlen(l.file.path) < PROCS_MAX_LINE);
	}
	/* the rest of the line that was cut is not taken for one of its own */
	assert_true(proc_maps_next(&r, &l));
	assert_int_equal(l.start, 0x9000);
	assert_string_equal(l.file.path, "/last");
	assert_false(proc_maps_next(&r, &l));
	proc_maps_close(&r);
	/* once more does no harm */
	proc_maps_close(&r);
}

static void test_cut_at_every_length(void **state)
{
	static char text[PROCS_MAX_LINE + 64];
	struct proc_maps_reader r;
	struct proc_maps_line l;

	(void)state;
	/* around the size of the buffer, where a newline may fall on either side */
	for (size_t len = PROCS_MAX_LINE - 2; len <= PROCS_MAX_LINE + 2; len++) {
		int head = sprintf(text, "1000-2000 r-xp 00000000 fe:01 7 /");

		memset(text + head, 'b', len - head);
		strcpy(text + len, "\n2000-3000 r-xp 0 0:0 0\n");
		write_proc(8, "maps", text);
		assert_int_equal(proc_maps_open(&r, toolrun_folder(), 8, 0, PROC_MAPS_MAX), 0);
		assert_true(proc_maps_next(&r, &l));
		assert_int_equal(l.start, 0x1000);
		assert_int_equal(strlen(l.file.path), MIN(len, PROCS_MAX_LINE) - head + 1);
		assert_true(proc_maps_next(&r, &l));
		assert_int_equal(l.start, 0x2000);
		assert_false(proc_maps_next(&r, &l));
		proc_maps_close(&r);
	}
}

/* Of what is too much, the lines that are whole are left; and no more is read. */
static void test_too_much(void **state)
{
	static const char text[] = "1000-2000 r-xp 0 fe:01 7 /a\n2000-3000 r-xp 0 fe:01 8 /bcd\n";
	const size_t first = strcspn(text, "\n"), all = sizeof(text) - 1;
	struct proc_maps_reader r;
	struct proc_maps_line l;

	(void)state;
	write_proc(8, "maps", text);
	for (size_t max = 0; max <= all + 1; max++) {
		size_t lines = (max > first) + (max >= all);

		assert_int_equal(proc_maps_open(&r, toolrun_folder(), 8, 0, max), 0);
		assert_int_equal(r.sz, MIN(max, all));
		assert_int_equal(r.cut, max < all);
		for (size_t i = 0; i < lines; i++) {
			assert_true(proc_maps_next(&r, &l));
			assert_string_equal(l.file.path, i ? "/bcd" : "/a");
		}
		assert_false(proc_maps_next(&r, &l));
		proc_maps_close(&r);
	}
}

static void test_of_a_thread(void **state)
{
	struct proc_maps_reader r;
	struct proc_maps_line l;

	(void)state;
	write_proc(9, "maps", "");
	assert_true(toolrun("mkdir -p 9/task/10"));
	toolrun_write("9/task/10/maps", "5000-6000 r-xp 0 0:0 0\n", 23);
	assert_int_equal(proc_maps_open(&r, toolrun_folder(), 9, 0, PROC_MAPS_MAX), 0);
	assert_false(proc_maps_next(&r, &l));
	proc_maps_close(&r);
	assert_int_equal(proc_maps_open(&r, toolrun_folder(), 9, 10, PROC_MAPS_MAX), 0);
	assert_true(proc_maps_next(&r, &l));
	assert_int_equal(l.start, 0x5000);
	proc_maps_close(&r);
	assert_int_equal(proc_maps_open(&r, toolrun_folder(), 9, 11, PROC_MAPS_MAX), -ESRCH);
	assert_int_equal(proc_maps_open(&r, toolrun_folder(), 12345, 0, PROC_MAPS_MAX), -ESRCH);
}

/* Our own maps hold this function and strlen's, where dladdr(3) says. */
static void test_our_own(void **state)
{
	const void *const here[] = { (const void *)test_our_own, (const void *)getpid,
				     (const void *)cmocka_set_message_output };
	struct proc_maps_reader r;
	struct proc_maps_line l;
	size_t found = 0;
	bool vdso = false;

	(void)state;
	assert_int_equal(proc_maps_open(&r, "/proc", getpid(), 0, PROC_MAPS_MAX), 0);
	while (proc_maps_next(&r, &l)) {
		vdso |= l.file.kind == PROC_FILE_VDSO;
		for (size_t i = 0; i < ARRAY_SIZE(here); i++) {
			uint64_t addr = (uintptr_t)here[i];
			struct stat st;
			Dl_info info;

			if (addr < l.start || addr >= l.end)
				continue;
			assert_true(l.exec);
			assert_int_equal(l.file.kind, PROC_FILE_REGULAR);
			assert_int_not_equal(dladdr(here[i], &info), 0);
			if (info.dli_fname[0] == '/') {
				assert_int_equal(stat(info.dli_fname, &st), 0);
				assert_int_equal(l.file.ino, st.st_ino);
			}
			found++;
		}
	}
	proc_maps_close(&r);
	assert_int_equal(found, ARRAY_SIZE(here));
	assert_true(vdso);
}

/* ---- stat ---- */

static void expect_start(const char *stat_text, int want, uint64_t want_ticks)
{
	uint64_t ns = 77;

	write_proc(20, "stat", stat_text);
	if (proc_stat_start(toolrun_folder(), 20, &ns) != want)
		fail_msg("'%s' should give %d", stat_text, want);
	if (!want)
		assert_int_equal(ns, want_ticks * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK)));
}

#define FIELDS_4_TO_21 "1 20 20 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 1 0 "

static void test_stat(void **state)
{
	uint64_t ns;

	(void)state;
	expect_start("20 (cat) S " FIELDS_4_TO_21 "12345 999 0 0\n", 0, 12345);
	expect_start("20 (a) S 1 2) R " FIELDS_4_TO_21 "777 999\n", 0, 777);
	expect_start("20 (x\ny) Z\n) R " FIELDS_4_TO_21 "42 0\n", 0, 42);
	expect_start("20 (() R " FIELDS_4_TO_21 "43 0\n", 0, 43);
	expect_start("20 () R " FIELDS_4_TO_21 "44 0\n", 0, 44);
	/* over, though its parent does not know; but not while other threads run */
	expect_start("20 (cat) Z " FIELDS_4_TO_21 "45 0\n", -ESRCH, 0);
	expect_start("20 (cat) X " FIELDS_4_TO_21 "45 0\n", -ESRCH, 0);
	expect_start("20 (cat) Z 1 20 20 0 -1 4194304 100 0 0 0 5 6 0 0 20 0 3 0 46 0\n", 0, 46);
	expect_start("", -EBADMSG, 0);
	expect_start("20 (cat", -EBADMSG, 0);
	expect_start("20 (cat)", -EBADMSG, 0);
	expect_start("20 (cat) S 1 20 20", -EBADMSG, 0);
	expect_start("20 (cat) S " FIELDS_4_TO_21 "x", -EBADMSG, 0);
	assert_int_equal(proc_stat_start(toolrun_folder(), 21, &ns), -ESRCH);
}

static void test_stat_of_a_child(void **state)
{
	struct timespec before, after;
	uint64_t ns, tick = NSEC_PER_SEC / sysconf(_SC_CLK_TCK);
	pid_t pid;

	(void)state;
	clock_gettime(CLOCK_BOOTTIME, &before);
	pid = fork();
	if (!pid)
		for (;;)
			pause();
	clock_gettime(CLOCK_BOOTTIME, &after);
	assert_int_equal(proc_stat_start("/proc", pid, &ns), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	/* rounded down to a tick */
	assert_true(ns + tick > before.tv_sec * NSEC_PER_SEC + before.tv_nsec);
	assert_true(ns <= after.tv_sec * NSEC_PER_SEC + after.tv_nsec);
	assert_int_equal(proc_stat_start("/proc", pid, &ns), -ESRCH);
}

static void test_kthread(void **state)
{
	(void)state;
	write_proc(20, "stat", "20 (a) b) S 2 0 0 0 -1 2129984 0 0 0 0 0 0\n");
	assert_true(proc_is_kthread(toolrun_folder(), 20));
	write_proc(20, "stat", "20 (S 2 0 0 0 -1 2129984) S 2 0 0 0 -1 4194304 0 0 0 0 0 0\n");
	assert_false(proc_is_kthread(toolrun_folder(), 20));
	write_proc(20, "stat", "20 (a");
	assert_false(proc_is_kthread(toolrun_folder(), 20));
	assert_false(proc_is_kthread(toolrun_folder(), 21));
	assert_false(proc_is_kthread("/proc", getpid()));
}

static void expect_ids(const char *status, int want, uint32_t euid, uint32_t ns_pid)
{
	struct proc_ids ids = {};

	write_proc(9, "status", status);
	assert_int_equal(proc_status_ids(toolrun_folder(), 9, &ids), want);
	if (want)
		return;
	assert_int_equal(ids.euid, euid);
	assert_int_equal(ids.ns_pid, ns_pid);
}

static void test_status(void **state)
{
	struct proc_ids ids;

	(void)state;
	expect_ids("Name:\tx\nTgid:\t9\nUid:\t1\t2\t3\t4\nNSpid:\t9\nVmPeak:\t5 kB\n", 0, 2, 9);
	expect_ids("Name:\tx\nUid:\t1\t2\t3\t4\nNSpid:\t9\t44\t7\nNSpgid:\t1\t2\t3\n", 0, 2, 7);
	/* no pid namespaces; a name that looks like more, as the kernel writes it */
	expect_ids("Name:\ta\\nUid:\t5\t5\nUid:\t0\t4294967294\t0\t0\n", 0, 4294967294, 9);
	expect_ids("Name:\tx\nNSpid:\t9\n", -EBADMSG, 0, 0);
	expect_ids("Name:\tx\nUid:\t1\t2\nNSpid:\n", -EBADMSG, 0, 0);
	expect_ids("", -EBADMSG, 0, 0);
	assert_int_equal(proc_status_ids(toolrun_folder(), 12345, &ids), -ESRCH);
	assert_int_equal(proc_status_ids("/proc", getpid(), &ids), 0);
	assert_int_equal(ids.euid, geteuid());
	assert_int_equal(ids.ns_pid, getpid());
}

static size_t entries(const char *path)
{
	DIR *dir = opendir(path);
	size_t n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static size_t descriptors(void)
{
	return entries("/proc/self/fd");
}

static size_t threads(void)
{
	return entries("/proc/self/task") - 2;
}

/* What a thread reads for us is the same, also if there is too much of it, and leaves nothing behind. */
static void test_text(void **state)
{
	size_t before = descriptors(), sz, want_sz;
	char *got, *want, line[64], want_line[65] = "";
	bool more;

	(void)state;
	assert_int_equal(util_read_file("/proc/self/cmdline", 4096, &want, &want_sz), 0);
	assert_int_equal(proc_text_read("/proc/self/cmdline", 4096, &got, &sz), 0);
	assert_int_equal(sz, want_sz);
	assert_memory_equal(got, want, sz + 1);
	free(got);
	assert_int_equal(proc_text_read("/proc/self/cmdline", want_sz, &got, &sz), 0);
	free(got);
	assert_int_equal(proc_text_read("/proc/self/cmdline", want_sz - 1, &got, &sz), -EFBIG);
	assert_int_equal(proc_text_read("/proc/self/none", 4096, &got, &sz), -ENOENT);
	assert_int_equal(proc_text_begin("/proc/self/none", 4096, &got, &sz, &more), -ENOENT);
	for (size_t max = want_sz - 1; max <= want_sz; max++) {
		assert_int_equal(proc_text_begin("/proc/self/cmdline", max, &got, &sz, &more), 0);
		assert_int_equal(sz, max);
		assert_int_equal(more, max < want_sz);
		assert_memory_equal(got, want, sz);
		assert_int_equal(got[sz], 0);
		free(got);
	}
	free(want);
	/* one that is empty, of a kernel thread, where there are any */
	if (proc_is_kthread("/proc", 2)) {
		assert_int_equal(proc_text_read("/proc/2/cmdline", 4096, &got, &sz), 0);
		assert_int_equal(sz, 0);
		assert_string_equal(got, "");
		free(got);
	}
	assert_int_equal(proc_text_link("/proc/self/exe", line, sizeof(line)),
			 readlink("/proc/self/exe", want_line, sizeof(line)));
	assert_memory_equal(line, want_line, MIN(sizeof(line), strlen(want_line)));
	assert_int_equal(proc_text_link("/proc/self/none", line, sizeof(line)), -ENOENT);
	/* in many pieces, all of them or some */
	assert_int_equal(util_read_file("/proc/kallsyms", SIZE_MAX >> 1, &want, &want_sz), 0);
	assert_int_equal(proc_text_read("/proc/kallsyms", SIZE_MAX >> 1, &got, &sz), 0);
	assert_true(sz > 1U << 20);
	assert_int_equal(strlen(got), sz);
	assert_memory_equal(got, want, MIN(sz, want_sz) / 2);
	free(got);
	assert_int_equal(proc_text_begin("/proc/kallsyms", (1U << 20) - 9, &got, &sz, &more), 0);
	assert_int_equal(sz, (1U << 20) - 9);
	assert_true(more);
	assert_memory_equal(got, want, sz / 2);
	free(want);
	free(got);
	assert_int_equal(proc_text_read("/proc/kallsyms", 1U << 20, &got, &sz), -EFBIG);
	assert_int_equal(descriptors(), before);
}

/* One thread does it for all; a child has its own; it is started anew when that is asked for. */
static void test_thread(void **state)
{
	size_t sz, cnt;
	int status;
	pid_t pid;
	char *got;

	(void)state;
	assert_int_equal(proc_text_read("/proc/self/stat", 4096, &got, &sz), 0);
	free(got);
	cnt = threads();
	for (int i = 0; i < 2000; i++) {
		assert_int_equal(proc_text_read("/proc/self/stat", 4096, &got, &sz), 0);
		free(got);
	}
	assert_int_equal(threads(), cnt);
	pid = fork();
	if (!pid) {
		bool ok = threads() == 1 && !proc_text_read("/proc/self/stat", 4096, &got, &sz);

		_exit(!ok || threads() != 2 || strtol(got, NULL, 10) != getpid());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	proc_text_restart();
	while (threads() >= cnt)
		usleep(1000);
	assert_int_equal(threads(), cnt - 1);
	assert_int_equal(proc_text_read("/proc/self/stat", 4096, &got, &sz), 0);
	free(got);
	assert_int_equal(threads(), cnt);
}

/* A thread that still waits keeps nobody from ending. */
static void test_end(void **state)
{
	int end[2], status;
	char path[64], *got;
	size_t sz;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(end), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", end[0]);
	pid = fork();
	if (!pid)
		_exit(proc_text_read(path, 4096, &got, &sz) != -ETIMEDOUT || threads() != 2);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(end[0]);
	close(end[1]);
}

/* The first of these are waited for, until that has taken too long in all; the others are asked for again. */
static void test_many_silent(void **state)
{
	enum {
		CNT = 12
	};
	size_t before = descriptors(), left_alone = 0, served = 0, cnt = threads(), sz;
	int pipes[CNT][2], err;
	pid_t pids[CNT];
	char path[64], *got;

	(void)state;
	for (int i = 0; i < CNT; i++) {
		assert_int_equal(pipe(pipes[i]), 0);
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (!pids[i]) {
			close_range(3, pipes[i][0] - 1, 0);
			close_range(pipes[i][0] + 1, ~0U, 0);
			for (;;)
				pause();
		}
	}
	for (int i = 0; i < CNT; i++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pids[i], pipes[i][0]);
		assert_int_equal(proc_text_read(path, 4096, &got, &sz), -ETIMEDOUT);
	}
	for (int i = 0; i < CNT; i++) {
		/* which a thread that still waits may get */
		assert_int_equal(write(pipes[i][1], "xx", 2), 2);
		close(pipes[i][1]);
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pids[i], pipes[i][0]);
		err = proc_text_read(path, 4096, &got, &sz);
		assert_true(!err || err == -ETIMEDOUT);
		left_alone += err == -ETIMEDOUT;
		served += !err;
		if (!err)
			free(got);
	}
	for (int i = 0; i < CNT; i++) {
		kill(pids[i], SIGKILL);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		close(pipes[i][0]);
	}
	/* those that waited have got something, or the end */
	while (threads() > MAX(cnt, 2))
		usleep(1000);
	assert_true(left_alone && served);
	assert_int_equal(left_alone + served, CNT);
	assert_int_equal(descriptors(), before);
}

static void *sleep_on(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* A process of two threads that exits, or its main thread, when it is let go. Much memory: the other one is
 * a while on its way out. */
static pid_t start_threads(bool whole, int *ret_go)
{
	size_t sz = 256 << 20;
	pthread_t thread;
	int go[2], up[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(go) | pipe(up), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (mmap(NULL, sz, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) == MAP_FAILED ||
		    pthread_create(&thread, NULL, sleep_on, NULL) || write(up[1], "", 1) != 1 ||
		    read(go[0], &byte, 1) != 1)
			_exit(1);
		if (whole)
			_exit(0);
		syscall(SYS_exit, 0);
	}
	assert_int_equal(read(up[0], &byte, 1), 1);
	close(up[0]);
	close(up[1]);
	close(go[0]);
	*ret_go = go[1];
	return pid;
}

/* Its main thread has ended: the others go on, or are on their way out as well. */
static void test_main_thread(void **state)
{
	size_t left = 0;
	pid_t pid;
	int go;

	(void)state;
	pid = start_threads(false, &go);
	assert_int_equal(main_thread_of(pid), MAIN_THREAD_RUNS);
	assert_int_equal(write(go, "", 1), 1);
	while (main_thread_of(pid) == MAIN_THREAD_RUNS)
		usleep(1000);
	assert_int_equal(main_thread_of(pid), MAIN_THREAD_LEFT);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(main_thread_of(pid), MAIN_THREAD_ENDED);
	close(go);

	for (int i = 0; i < 5; i++) {
		pid = start_threads(true, &go);
		assert_int_equal(write(go, "", 1), 1);
		while (!waitpid(pid, NULL, WNOHANG))
			left += main_thread_of(pid) == MAIN_THREAD_LEFT;
		close(go);
	}
	assert_int_equal(left, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_no_lines),
		cmocka_unit_test(test_long_lines),
		cmocka_unit_test(test_cut_at_every_length),
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_of_a_thread),
		cmocka_unit_test(test_our_own),
		cmocka_unit_test(test_stat),
		cmocka_unit_test(test_stat_of_a_child),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_many_silent),
		cmocka_unit_test(test_kthread),
		cmocka_unit_test(test_status),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_main_thread),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
