/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reader: its processes have no rights, die for asking for some, and are replaced whenever they do;
 * and no answer is believed. The source is included, so that a liar can take the worker's place.
 */
#include "target/reader.c"
#include "target/reader_asks.c"

#include <fcntl.h>
#include <linux/capability.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "base/caps.h"
#include "context_made.h"
#include "helper/sandbox.h"
#include "target/path_walk.h"
#include "toolrun.h"
#include "truth.h"

#define SELF "/proc/self/exe"
#define HANGS_NS (60 * NSEC_PER_SEC) /* what takes so long would never end */

/* ---- the sandboxes ---- */

static int open_fd(void)
{
	return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
}

static void try_open(void)
{
	(void)open("/etc/passwd", O_RDONLY);
}

static void try_open2(void)
{
	(void)syscall(SYS_open, "/etc/passwd", O_RDONLY);
}

static void try_open_to_write(void)
{
	(void)open("/dev/null", O_WRONLY);
}

static void try_create(void)
{
	(void)open("/tmp/bpfprof-made-by-the-opener", O_RDONLY | O_CREAT, 0600);
}

static void try_socket(void)
{
	(void)socket(AF_INET, SOCK_STREAM, 0);
}

static void try_exec(void)
{
	(void)execl("/bin/true", "true", (char *)NULL);
}

static void try_fork(void)
{
	(void)fork();
}

static void try_kill(void)
{
	(void)kill(getppid(), 0);
}

static void try_ptrace(void)
{
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static void try_vm_read(void)
{
	char from, to;
	struct iovec local = { &to, 1 }, remote = { &from, 1 };

	(void)syscall(SYS_process_vm_readv, 1, &local, 1, &remote, 1, 0);
}

static void try_write(void)
{
	(void)!write(0, "", 1);
}

static void try_unlink(void)
{
	(void)unlink("/nonexistent/nothing");
}

static void try_become_root(void)
{
	(void)syscall(SYS_setresuid, 0, 0, 0);
}

static void try_stat(void)
{
	struct stat st;

	(void)fstatat(AT_FDCWD, "/etc/passwd", &st, 0);
}

static void try_map_file(void)
{
	(void)mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, 0, 0);
}

static void try_map_code(void)
{
	(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void try_make_code(void)
{
	static char page[8192] __attribute__((aligned(4096)));

	(void)mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static void try_bpf(void)
{
	(void)syscall(SYS_bpf, 0, NULL, 0);
}

static void try_io_uring(void)
{
	(void)syscall(SYS_io_uring_setup, 1, NULL);
}

static void try_prctl(void)
{
	(void)prctl(PR_SET_DUMPABLE, 1);
}

static void try_x32(void)
{
	(void)syscall(0x40000000 | SYS_pread64, 0, NULL, 0, 0);
}

/* close(2) by the system calls of 32-bit programs, where 6 is something else */
static void try_ia32(void)
{
	int ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(6), "b"(100) : "memory");
}

/* What both are for, as far as it needs nobody else. */
static void try_malloc(void)
{
	for (size_t sz = 16; sz < 64U << 20; sz *= 2) {
		char *p = malloc(sz);

		if (!p)
			_exit(1);
		memset(p, 1, sz);
		p = realloc(p, sz * 2);
		free(p);
	}
}

static void try_close(void)
{
	(void)close(1);
}

/* How a child ends that does this in the sandbox. */
static int fate(enum sandbox kind, void (*act)(void))
{
	pid_t pid, parent = getpid();
	int fd = open_fd(), status;

	pid = fork();
	if (!pid) {
		if (sandbox_enter(kind, fd, fd, parent, UINT64_MAX))
			_exit(99);
		act();
		_exit(0);
	}
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void expect_killed(enum sandbox kind, const char *what, void (*act)(void))
{
	int status = fate(kind, act);

	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
		fail_msg("%s by %s: wait status 0x%x", what,
			 kind == SANDBOX_READER ? "the reader" : "the opener", status);
}

#define EXPECT_KILLED(kind, what) expect_killed(kind, #what, try_##what)

static void test_reader_sandbox(void **state)
{
	(void)state;
	EXPECT_KILLED(SANDBOX_READER, open);
	EXPECT_KILLED(SANDBOX_READER, open2);
	EXPECT_KILLED(SANDBOX_READER, socket);
	EXPECT_KILLED(SANDBOX_READER, exec);
	EXPECT_KILLED(SANDBOX_READER, fork);
	EXPECT_KILLED(SANDBOX_READER, kill);
	EXPECT_KILLED(SANDBOX_READER, ptrace);
	EXPECT_KILLED(SANDBOX_READER, vm_read);
	EXPECT_KILLED(SANDBOX_READER, write);
	EXPECT_KILLED(SANDBOX_READER, unlink);
	EXPECT_KILLED(SANDBOX_READER, become_root);
	EXPECT_KILLED(SANDBOX_READER, stat);
	EXPECT_KILLED(SANDBOX_READER, map_file);
	EXPECT_KILLED(SANDBOX_READER, map_code);
	EXPECT_KILLED(SANDBOX_READER, make_code);
	EXPECT_KILLED(SANDBOX_READER, bpf);
	EXPECT_KILLED(SANDBOX_READER, io_uring);
	EXPECT_KILLED(SANDBOX_READER, prctl);
	EXPECT_KILLED(SANDBOX_READER, x32);
	EXPECT_KILLED(SANDBOX_READER, ia32);
	assert_int_equal(fate(SANDBOX_READER, try_malloc), 0);
	assert_int_equal(fate(SANDBOX_READER, try_close), 0);
}

static void test_opener_sandbox(void **state)
{
	(void)state;
	EXPECT_KILLED(SANDBOX_OPENER, open_to_write);
	EXPECT_KILLED(SANDBOX_OPENER, create);
	EXPECT_KILLED(SANDBOX_OPENER, socket);
	EXPECT_KILLED(SANDBOX_OPENER, exec);
	EXPECT_KILLED(SANDBOX_OPENER, fork);
	EXPECT_KILLED(SANDBOX_OPENER, kill);
	EXPECT_KILLED(SANDBOX_OPENER, ptrace);
	EXPECT_KILLED(SANDBOX_OPENER, vm_read);
	EXPECT_KILLED(SANDBOX_OPENER, unlink);
	EXPECT_KILLED(SANDBOX_OPENER, become_root);
	EXPECT_KILLED(SANDBOX_OPENER, map_file);
	EXPECT_KILLED(SANDBOX_OPENER, x32);
	EXPECT_KILLED(SANDBOX_OPENER, ia32);
	assert_int_equal(fate(SANDBOX_OPENER, try_open), 0);
	assert_int_equal(fate(SANDBOX_OPENER, try_close), 0);
}

/* ---- a reader that works ---- */

static int describe(struct reader *r)
{
	struct reader_file f;
	int fd = open(SELF, O_PATH | O_CLOEXEC), err;

	err = reader__describe(r, fd, false, &f);
	close(fd);
	if (err)
		return err;
	assert_true(f.segment_cnt >= 2);
	assert_int_equal(strncmp(f.interp, "ld-", 3), 0);
	reader_file__done(&f);
	return 0;
}

/* A line of /proc/PID/status, by its beginning. */
static const char *status_of(pid_t pid, const char *what)
{
	static char line[256];
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, what, strlen(what)))
			break;
	fclose(f);
	line[strcspn(line, "\n")] = '\0';
	return line + strlen(what);
}

/* What it was executed as. */
static const char *program_of(pid_t pid)
{
	static char name[256];
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	name[fread(name, 1, sizeof(name) - 1, f)] = '\0';
	fclose(f);
	return name;
}

static void test_rights(void **state)
{
	static const char *const caps[] = { "CapInh:\t", "CapPrm:\t", "CapEff:\t", "CapAmb:\t",
					    "CapBnd:\t" };
	struct reader *r = reader__new(1);
	char path[64], link[64];
	ssize_t n;

	(void)state;
	assert_int_equal(describe(r), 0);
	assert_string_equal(status_of(reader__pid(r), "Name:\t"), "bpfprof-reader");
	assert_string_equal(status_of(reader__pid(r), "Seccomp:\t"), "2");
	assert_string_equal(status_of(reader__pid(r), "NoNewPrivs:\t"), "1");
	assert_string_equal(status_of(r->opener, "Seccomp:\t"), "2");
	assert_string_equal(status_of(r->opener, "NoNewPrivs:\t"), "1");
	/* a program of its own: no copy of this one */
	assert_string_equal(program_of(reader__pid(r)), "bpfprof-reader");
	assert_string_equal(program_of(r->opener), "bpfprof-opener");
	/* the bounding set can only be emptied by root */
	for (size_t i = 0; i < ARRAY_SIZE(caps) - (geteuid() != 0); i++)
		assert_string_equal(status_of(reader__pid(r), caps[i]), "0000000000000000");
	if (geteuid()) {
		reader__free(r);
		return;
	}
	/* CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_CHECKPOINT_RESTORE */
	assert_string_equal(status_of(r->opener, "CapEff:\t"), "0000010000080004");
	assert_string_equal(status_of(reader__pid(r), "Uid:\t"), "65534\t65534\t65534\t65534");
	for (int fd = 0; fd < 16; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", reader__pid(r), fd);
		n = readlink(path, link, sizeof(link) - 1);
		link[MAX(n, 0)] = '\0';
		assert_int_equal(strncmp(link, "socket:", fd < 2 ? 7 : 0), 0);
		assert_int_equal(n > 0, fd < 2);
	}
	reader__free(r);
}

/* The memory of a process, which is only opened where there is no harm in waiting for that. */
static void test_memory(void **state)
{
	static const char text[] = "what stands in this process's memory";
	struct reader *r = reader__new(1);
	char got[sizeof(text)];
	struct reader_stats stats;
	int fd = open("/proc/self/mem", O_PATH | O_CLOEXEC);

	(void)state;
	assert_true(fd >= 0);
	for (int i = 0; i < 6; i++) {
		memset(got, 0, sizeof(got));
		assert_int_equal(reader__bytes(r, fd, (uint64_t)(uintptr_t)text, got, sizeof(got)),
				 0);
		assert_memory_equal(got, text, sizeof(text));
		/* nothing is there; what was sent for it does not stand in the way of the next request */
		assert_true(reader__bytes(r, fd, 0, got, sizeof(got)) < 0);
		assert_int_equal(i % 2 ? kill(reader__pid(r), SIGKILL) : 0, 0);
	}
	close(fd);
	/* what is open already is read as it is; the last one that was killed is found to have died */
	fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	for (int i = 0; i < 2; i++) {
		memset(got, 0, sizeof(got));
		assert_int_equal(reader__bytes(r, fd, (uint64_t)(uintptr_t)text, got, sizeof(got)),
				 0);
		assert_memory_equal(got, text, sizeof(text));
	}
	reader__stats(r, &stats);
	assert_int_equal(stats.died, 3);
	assert_int_equal(stats.timed_out + stats.lied, 0);
	close(fd);
	reader__free(r);
}

/* Without CAP_KILL it can still be ended: its saved user is the parent's. */
static void test_without_kill(void **state)
{
	uint64_t permitted, effective;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(caps_get(&permitted, &effective), 0);
	if (geteuid() || !(effective & CAPS_BIT(CAP_KILL)))
		skip();
	pid = fork();
	if (!pid) {
		bool good =
			!caps_set(permitted & ~CAPS_BIT(CAP_KILL), effective & ~CAPS_BIT(CAP_KILL));
		struct reader *r = reader__new(1);

		good = good && !describe(r) &&
		       !strcmp(status_of(r->worker, "Uid:\t"), "65534\t65534\t0\t65534") &&
		       !strcmp(status_of(r->worker, "CapPrm:\t"), "0000000000000000") &&
		       !kill(r->worker, SIGKILL);
		_exit(!good);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/*
 * A program whose file has capabilities gives them to all its callers: none of them gets an opener
 * that has more than the caller. Being root adds them just so.
 */
static void test_not_lent(void **state)
{
	struct reader_opened ready;
	int pair[2], fds[READER_MAX_FILES];
	char parent[16];
	size_t cnt;
	pid_t pid;

	(void)state;
	snprintf(parent, sizeof(parent), "%d", getpid());
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (!pid) {
		if (dup2(pair[1], 0) || dup2(pair[1], 1) != 1)
			_exit(98);
		execl(SELF, "bpfprof-opener", "0", "1", parent, "1000000000", (char *)NULL);
		_exit(99);
	}
	close(pair[1]);
	assert_int_equal(
		fd_message_receive(pair[0], &ready, sizeof(ready), fds, ARRAY_SIZE(fds), &cnt, 0),
		sizeof(ready));
	assert_string_equal(status_of(pid, "Name:\t"), "bpfprof-opener");
	assert_string_equal(status_of(pid, "CapPrm:\t"), "0000000000000000");
	close(pair[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Requests that no collector makes end the worker before anything is done about them. */
static void test_requests(void **state)
{
	static const struct reader_request bad[] = {
		{ .op = READER_NR_OPS },
		{ .op = UINT32_MAX },
		{ .op = READER_DESCRIBE, .files = 1U << READER_MAX_FILES },
		{ .op = READER_BYTES, .cnt = READER_MAX_BYTES + 1 },
		{ .op = READER_NAMES, .cnt = READER_MAX_ADDRESSES + 1ULL },
		{ .op = READER_PERF_MAP, .cnt = UINT64_MAX },
		{ .op = READER_CONTEXT, .cnt = READER_MAX_BYTES + 1 },
		{ .op = READER_SITES, .cnt = READER_MAX_BYTES + 1 },
	};
	struct reader *r = reader__new(1);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int status;
		uint8_t byte;

		assert_int_equal(make_ready(r), 0);
		assert_int_equal(stream__put(&r->stream, &bad[i], sizeof(bad[i])), 0);
		assert_int_equal(stream__flush(&r->stream), 0);
		assert_int_equal(stream__get(&r->stream, &byte, 1), -EPIPE);
		assert_int_equal(waitpid(r->worker, &status, 0), r->worker);
		assert_int_equal(status, 0);
		r->worker = 0;
		stop_all(r);
	}
	assert_int_equal(describe(r), 0);
	reader__free(r);
}

/* It is the file that is asked for, all of it, and only as often as it answers. */
static void test_killed(void **state)
{
	static const int signals[] = { SIGKILL, SIGSEGV, SIGBUS, SIGABRT };
	struct reader *r = reader__new(1);
	struct reader_stats stats;
	uint64_t start, ns, worst = 0, sum = 0;

	(void)state;
	assert_int_equal(describe(r), 0);
	for (int i = 0; i < 100; i++) {
		/* the opener's turn as well */
		assert_int_equal(kill(i % 5 ? reader__pid(r) : r->opener, signals[i % 4]), 0);
		start = util_monotonic_ns();
		assert_int_equal(describe(r), 0);
		ns = util_monotonic_ns() - start;
		worst = MAX(worst, ns);
		sum += ns;
	}
	reader__stats(r, &stats);
	assert_int_equal(stats.died, 100);
	assert_int_equal(stats.timed_out + stats.lied, 0);
	print_message(
		"figure: a killed reader is replaced in: %.1f ms on average, %.1f ms at most\n",
		sum / 100 / 1e6, worst / 1e6);
	reader__free(r);
}

/* A path's place comes as a descriptor that reads nothing; an opener that walks for ever is given
 * up. */
static void test_open(void **state)
{
	struct reader *r = reader__new(1);
	struct reader_stats stats;
	struct stat want, st;
	char path[PATH_MAX + 1];
	uint64_t start;
	int fd;

	(void)state;
	assert_int_equal(stat(SELF, &want), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(i == 1 ? kill(r->opener, SIGKILL) : 0, 0);
		fd = reader__open(r, SELF);
		assert_true(fd >= 0);
		assert_int_equal(fcntl(fd, F_GETFL) & O_PATH, O_PATH);
		assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
		assert_int_equal(fstat(fd, &st), 0);
		assert_true(st.st_dev == want.st_dev && st.st_ino == want.st_ino);
		close(fd);
	}
	assert_int_equal(reader__open(r, "/nonexistent"), -ENOENT);
	assert_int_equal(reader__open(r, SELF "/below"), -ENOTDIR);
	memset(path, '/', PATH_MAX);
	path[PATH_MAX] = '\0';
	assert_int_equal(reader__open(r, path), -ENAMETOOLONG);
	path[PATH_MAX - 1] = '\0';
	fd = reader__open(r, path);
	assert_true(fd >= 0);
	close(fd);
	/* the other request goes on with the same opener */
	assert_int_equal(describe(r), 0);
	assert_int_equal(kill(r->opener, SIGSTOP), 0);
	start = util_monotonic_ns();
	assert_int_equal(reader__open(r, SELF), -ETIMEDOUT);
	assert_true(util_monotonic_ns() - start >= STALLED_MS * MS);
	assert_true(util_monotonic_ns() - start < HANGS_NS);
	fd = reader__open(r, SELF);
	assert_true(fd >= 0);
	close(fd);
	reader__stats(r, &stats);
	assert_int_equal(stats.died, 1);
	assert_int_equal(stats.timed_out, 1);
	assert_int_equal(stats.lied, 0);
	reader__free(r);
}

/* Nobody of us gets the CPU for longer than a file may take. */
static void lose_cpu(void *ctx)
{
	struct reader *r = ctx;

	usleep(1500 * STALLED_MS);
	assert_int_equal(kill(r->opener, SIGCONT), 0);
	reader__meanwhile(r, NULL, NULL);
}

/* What keeps us from hearing of it is no fault of the file. */
static void test_open_on_busy_machine(void **state)
{
	struct reader *r = reader__new(1);
	struct reader_stats stats;
	int fd;

	(void)state;
	assert_non_null(r);
	assert_int_equal(describe(r), 0);
	assert_int_equal(kill(r->opener, SIGSTOP), 0);
	reader__meanwhile(r, lose_cpu, r);
	fd = reader__open(r, SELF);
	assert_true(fd >= 0);
	close(fd);
	reader__stats(r, &stats);
	assert_int_equal(stats.timed_out, 0);
	reader__free(r);
}

/* A name in a folder is not looked for anywhere else. */
static void test_open_at(void **state)
{
	struct reader *r = reader__new(1);
	int folder = open(toolrun_folder(), O_PATH | O_CLOEXEC), fd;
	struct stat st;

	(void)state;
	assert_true(toolrun("mkdir sub && touch sub/file && ln -s sub/file link && ln -s sub way"));
	fd = reader__open_at(r, folder, "sub");
	assert_true(fd >= 0);
	close(folder);
	folder = fd;
	fd = reader__open_at(r, folder, "file");
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_PATH, O_PATH);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	close(fd);
	assert_int_equal(reader__open_at(r, folder, "nothing"), -ENOENT);
	close(folder);
	folder = open(toolrun_folder(), O_PATH | O_CLOEXEC);
	fd = reader__open_at(r, folder, "link");
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	close(fd);
	fd = reader__open_at(r, folder, "way");
	assert_true(fd >= 0);
	assert_int_equal(reader__open_at(r, fd, "file"), -ENOTDIR);
	close(fd);
	close(folder);
	reader__free(r);
}

/* What is asked of the folder d, and for whom, and whether it leads there. */
static const struct {
	uint32_t uid, gid, mode;
	uint32_t who;
	bool leads;
} ways[] = {
	{ 1000, 1000, 0700, PATH_WALK_US, true },
	{ 1000, 1000, 0000, PATH_WALK_US, true },
	{ 1000, 1000, 0700, 1000, true },
	{ 1000, 1000, 0600, 1000, false },
	{ 1000, 1000, 0700, 2000, false },
	{ 1000, 1000, 0700, PATH_WALK_ANYBODY, false },
	{ 1000, 1000, 0701, 2000, true },
	{ 1000, 1000, 0701, PATH_WALK_ANYBODY, true },
	/* its own group, that of root, and one that others may be in */
	{ 1000, 1000, 0710, 2000, false },
	{ 0, 0, 0550, 2000, false },
	{ 1000, 0, 0710, 2000, false },
	{ 1000, 3000, 0710, 2000, true },
	{ 1000, 3000, 0710, PATH_WALK_ANYBODY, false },
	{ 0, 3000, 0710, 2000, true },
	{ PATH_WALK_ANYBODY, 3000, 0700, PATH_WALK_ANYBODY, false },
};

/* We may go anywhere; that is lent to nobody. In the middle of a path, by a link, at its root, and behind "..". */
static void test_open_in(void **state)
{
	static const char *const paths[] = { "/d/sub/file", "/link", "/d/../file" };
	struct reader *r;
	int root, d, fd;

	(void)state;
	if (geteuid())
		skip();
	r = reader__new(1);
	assert_true(
		toolrun("mkdir -p walk/d/sub && chmod 755 walk walk/d/sub && cd walk && "
			"touch file d/file d/sub/file && ln -s d/sub/file link"));
	root = open(toolrun_path("walk"), O_PATH | O_CLOEXEC);
	d = open(toolrun_path("walk/d"), O_PATH | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		const char *folder = toolrun_path("walk/d");
		int want = ways[i].leads ? 0 : -EACCES;

		assert_int_equal(chown(folder, ways[i].uid, ways[i].gid), 0);
		assert_int_equal(chmod(folder, ways[i].mode), 0);
		for (size_t k = 0; k <= ARRAY_SIZE(paths); k++) {
			fd = k < ARRAY_SIZE(paths) ?
				     reader__open_in(r, root, paths[k], ways[i].who) :
				     reader__open_in(r, d, "/file", ways[i].who);
			assert_int_equal(MIN(fd, 0), want);
			if (fd >= 0)
				close(fd);
		}
		/* what is no folder on the way */
		fd = reader__open_in(r, root, "/d", ways[i].who);
		assert_true(fd >= 0);
		close(fd);
	}
	close(root);
	close(d);
	reader__free(r);
}

static void test_perf_map(void **state)
{
	static const char text[] = "1000 10 one\nnothing\n2000 10 two\n";
	const uint64_t addrs[] = { 0x1001, 0x1801, 0x2001 };
	struct reader *r = reader__new(1);
	int fd = memfd_create("perf-map", MFD_CLOEXEC);
	struct perf_map_names n;

	(void)state;
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(reader__perf_map(r, fd, addrs, 3, &n), 0);
		assert_int_equal(n.symbols.frame_cnt, 2);
		assert_string_equal(n.symbols.strings + n.symbols.frames[0].name, "one");
		assert_string_equal(n.symbols.strings + n.symbols.frames[1].name, "two");
		assert_int_equal(n.symbols.first[1], 1);
		assert_int_equal(n.symbols.first[2], 1);
		assert_int_equal(n.ignored, 1);
		symbols__done(&n.symbols);
		/* and once by a fresh worker */
		assert_int_equal(kill(reader__pid(r), SIGKILL), 0);
	}
	close(fd);
	reader__free(r);
}

static void test_services(void **state)
{
	static const char text[] = "A=b\0OTEL_SERVICE_NAME=shop";
	static struct context_bytes context;
	struct reader *r = reader__new(1);
	int fd = memfd_create("environ", MFD_CLOEXEC);
	struct said s;

	(void)state;
	assert_int_equal(reader__environ(r, fd, &s), -ENODATA);
	assert_int_equal(write(fd, text, sizeof(text)), sizeof(text));
	context_message(&context, "cart");
	for (int i = 0; i < 2; i++) {
		assert_int_equal(reader__environ(r, fd, &s), 0);
		assert_string_equal(s.text[SAID_SERVICE], "shop");
		assert_int_equal(reader__context(r, context.data, context.sz, &s), 0);
		assert_string_equal(s.text[SAID_SERVICE], "cart");
		assert_int_equal(reader__context(r, context.data, context.sz - 1, &s), -EBADMSG);
		assert_int_equal(reader__context(r, NULL, 0, &s), 0);
		assert_string_equal(s.text[SAID_SERVICE], "");
		/* and once by a fresh worker */
		assert_int_equal(kill(reader__pid(r), SIGKILL), 0);
	}
	memset(context.data, 0, sizeof(context.data));
	assert_int_equal(reader__context(r, context.data, READER_MAX_BYTES, &s), -EBADMSG);
	assert_int_equal(reader__context(r, context.data, READER_MAX_BYTES + 1, &s), -E2BIG);
	close(fd);
	reader__free(r);
}

/* Requests that are not as the collector makes them are refused, and harm nobody. */
static void test_container(void **state)
{
	static const char text[] = "[{\"id\":\"0123456789ab\",\"names\":[\"web\"]}]";
	static const struct {
		uint64_t whose;
		const char *id;
		size_t sz;
	} bad[] = { { CONTAINER_FILE_NR, "a", 2 },
		    { UINT64_MAX, "a", 2 },
		    { CONTAINER_FILE_STORAGE, "", 0 },
		    { CONTAINER_FILE_STORAGE, "ab", 2 } };
	struct reader *r = reader__new(1);
	int fd = memfd_create("containers.json", MFD_CLOEXEC);
	char *id = malloc(READER_MAX_BYTES + 1);
	struct container_said s;

	(void)state;
	assert_non_null(id);
	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct query q = query(READER_CONTAINER, fd, take_container, &s);

		q.request.offset = bad[i].whose;
		q.request.cnt = q.input_sz = bad[i].sz;
		q.input = bad[i].id;
		assert_int_equal(reader_ask(r, &q), -EINVAL);
	}
	memset(id, 'a', READER_MAX_BYTES + 1);
	id[READER_MAX_BYTES] = '\0';
	assert_int_equal(reader__container(r, fd, CONTAINER_FILE_STORAGE, id, &s), -E2BIG);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			reader__container(r, fd, CONTAINER_FILE_STORAGE, "0123456789ab", &s), 0);
		assert_string_equal(s.text[CONTAINER_NAME], "web");
		assert_int_equal(
			reader__container(r, fd, CONTAINER_FILE_STORAGE, "0123456789a", &s),
			-ENOENT);
		assert_string_equal(s.text[CONTAINER_NAME], "");
		/* and once by a fresh worker */
		assert_int_equal(kill(reader__pid(r), SIGKILL), 0);
	}
	/* no file at all */
	assert_int_equal(reader__container(r, -1, CONTAINER_FILE_DOCKER, "a", &s), -EBADF);
	assert_int_equal(ftruncate(fd, CONTAINER_FILE_MAX + 1), 0);
	assert_int_equal(reader__container(r, fd, CONTAINER_FILE_DOCKER, "a", &s), -EFBIG);
	free(id);
	close(fd);
	reader__free(r);
}

/* Names that are not two strings are refused by the worker, those that are too long here. */
static void test_find_sites(void **state)
{
	static const struct {
		const char *text;
		size_t sz;
	} bad[] = { { "", 0 },	   { "", 1 },	       { "a", 1 },
		    { "a\0b", 3 }, { "\0main\0x", 7 }, { "\0main\0\0", 7 } };
	struct reader *r = reader__new(1);
	int fds[] = { open(SELF, O_PATH | O_CLOEXEC), -1 };
	struct query q = query(READER_SITES, fds[0], take_sites, NULL);
	struct probe_sites s;
	char *name = calloc(1, PROBE_SITES_MAX_NAME + 1);

	(void)state;
	assert_non_null(name);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(reader__sites(r, fds, "", "main", PROBE_SITES_HIT, &s), 0);
		assert_int_equal(s.cnt, 1);
		probe_sites__done(&s);
		assert_int_equal(reader__sites(r, fds, "", "no function", PROBE_SITES_HIT, &s),
				 -ENOENT);
		assert_int_equal(reader__sites(r, fds, "nobody", "main", PROBE_SITES_HIT, &s),
				 -ENOENT);
		/* and once by a fresh worker */
		assert_int_equal(kill(reader__pid(r), SIGKILL), 0);
	}
	q.ret = &s;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		q.input = bad[i].text;
		q.input_sz = q.request.cnt = bad[i].sz;
		assert_int_equal(reader_ask(r, &q), -EINVAL);
	}
	memset(name, 'x', PROBE_SITES_MAX_NAME);
	assert_int_equal(reader__sites(r, fds, "", name, PROBE_SITES_HIT, &s), -EINVAL);
	assert_int_equal(reader__sites(r, fds, name, "", PROBE_SITES_HIT, &s), -EINVAL);
	name[PROBE_SITES_MAX_NAME - 1] = '\0';
	assert_int_equal(reader__sites(r, fds, name, name, PROBE_SITES_HIT, &s), -ENOENT);
	free(name);
	close(fds[0]);
	reader__free(r);
}

static void count(void *ctx)
{
	++*(int *)ctx;
}

/* What neither answers nor works is killed, sooner every time; other things are done meanwhile. */
static void test_stopped(void **state)
{
	struct reader *r = reader__new(1);
	struct reader_stats stats;
	const unsigned int limit = STALLED_MS / STREAM_TICK_MS;
	unsigned int stalls;
	int ticks = 0;
	uint64_t start, ns;
	pid_t pid;

	(void)state;
	reader__meanwhile(r, count, &ticks);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(i ? make_ready(r) : describe(r), 0);
		pid = reader__pid(r);
		assert_int_equal(kill(pid, SIGSTOP), 0);
		stalls = r->stalls;
		start = util_monotonic_ns();
		assert_int_equal(describe(r), -ETIMEDOUT);
		ns = util_monotonic_ns() - start;
		assert_true(ns < HANGS_NS);
		/* on a busy machine so many ticks may take longer than an answer may */
		if (r->stalls > stalls)
			assert_int_equal(r->idle_ticks, (limit >> stalls) + 1);
		else
			assert_true(ns >= limit_ns[READER_DESCRIBE] >> i);
		/* on a busy machine it may be left behind for a while */
		while (r->zombie_cnt)
			reap(r);
		assert_int_equal(kill(pid, 0), -1);
	}
	assert_true(ticks > 20);
	assert_int_equal(describe(r), 0);
	assert_int_equal(r->time_outs, 0);
	reader__stats(r, &stats);
	assert_int_equal(stats.timed_out, 2);
	reader__free(r);
}

/* One that works on is not silent. */
static void test_busy(void **state)
{
	struct reader *r = reader__new(1);
	uint64_t start, limit = limit_ns[READER_DESCRIBE];
	pid_t stopped;

	(void)state;
	assert_int_equal(describe(r), 0);
	stopped = r->worker;
	assert_int_equal(kill(stopped, SIGSTOP), 0);
	r->worker = fork();
	if (!r->worker) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			;
	}
	start = util_monotonic_ns();
	assert_true(limit > STALLED_MS * MS);
	assert_int_equal(describe(r), -ETIMEDOUT);
	assert_in_range(util_monotonic_ns() - start, limit, HANGS_NS);
	assert_int_equal(kill(stopped, SIGKILL), 0);
	assert_int_equal(waitpid(stopped, NULL, 0), stopped);
	assert_int_equal(describe(r), 0);
	reader__free(r);
}

/* Nothing of it is left, in the process table or among the descriptors. */
static void test_leaves_nothing(void **state)
{
	int before = open_fd(), after, status;
	pid_t pid;

	(void)state;
	close(before);
	for (int i = 0; i < 3; i++) {
		struct reader *r = reader__new(1);

		assert_int_equal(describe(r), 0);
		assert_int_equal(kill(reader__pid(r), SIGKILL), 0);
		assert_int_equal(describe(r), 0);
		reader__free(r);
	}
	after = open_fd();
	close(after);
	assert_int_equal(after, before);
	/* all of them were killed; on a busy machine that may take longer than they are waited for
	 */
	while ((pid = waitpid(-1, &status, 0)) > 0)
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(errno, ECHILD);
}

/* What no worker survives is given up, and others are answered. */
static void test_deadly(void **state)
{
	struct reader *r = reader__new(1);
	struct query q = query(READER_NAMES, -1, take_names, NULL);
	struct reader_stats stats;

	(void)state;
	assert_int_equal(describe(r), 0);
	/* more addresses than it has memory for */
	q.request.cnt = 1ULL << 40;
	assert_int_equal(reader_ask(r, &q), -EPIPE);
	assert_int_equal(describe(r), 0);
	reader__stats(r, &stats);
	assert_int_equal(stats.died, MAX_TRIES);
	reader__free(r);
}

/* The terminal's signals go to all of its processes, and the names are yet to be read. */
static void test_terminal(void **state)
{
	static const int signals[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP };
	struct reader *r = reader__new(1);
	struct reader_stats stats;

	(void)state;
	assert_int_equal(describe(r), 0);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		assert_int_equal(kill(reader__pid(r), signals[i]), 0);
		assert_int_equal(kill(r->opener, signals[i]), 0);
		assert_int_equal(describe(r), 0);
	}
	reader__stats(r, &stats);
	assert_int_equal(stats.died, 0);
	reader__free(r);
}

/* A file that is no regular one is refused by the opener's end at the latest, without waiting. */
static void test_irregular(void **state)
{
	struct reader *r = reader__new(1);
	struct reader_file f;
	int fd;

	(void)state;
	assert_int_equal(mkfifo(toolrun_path("fifo"), 0600), 0);
	fd = open(toolrun_path("fifo"), O_PATH | O_CLOEXEC);
	assert_int_equal(reader__describe(r, fd, false, &f), -ENOEXEC);
	close(fd);
	fd = open("/dev/zero", O_PATH | O_CLOEXEC);
	assert_int_equal(reader__describe(r, fd, false, &f), -ENOEXEC);
	close(fd);
	assert_int_equal(describe(r), 0);
	reader__free(r);
}

/* A file that others truncate and write again while it is read can confuse, but not kill: H17. */
static void test_truncated(void **state)
{
	struct reader *r = reader__new(1);
	struct reader_stats stats;
	uint64_t vaddr = 0x1100;
	int answered = 0, fd;
	size_t sz;
	/* a small one, which changes as often as it is read */
	char *whole = toolrun_read("/bin/true", &sz);
	pid_t pid;

	(void)state;
	toolrun_write("victim", whole, sz);
	fd = open(toolrun_path("victim"), O_RDWR | O_CLOEXEC);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (unsigned int i = 1;; i = i * 1103515245 + 12345)
			if (ftruncate(fd, i % sz) || pwrite(fd, whole, sz, 0) != (ssize_t)sz)
				_exit(1);
	}
	for (int i = 0; i < 1000; i++) {
		struct unwind_table t;
		struct reader_file f;
		struct symbols s;

		if (!reader__describe(r, fd, false, &f)) {
			reader_file__done(&f);
			answered++;
		}
		if (i % 4 == 0 && !reader__unwind_table(r, fd, &t))
			unwind_table__done(&t);
		if (i % 20 == 0 &&
		    !reader__names(r, (int[]){ fd, -1, -1, -1 }, &vaddr, 1, false, &s))
			symbols__done(&s);
	}
	reader__stats(r, &stats);
	assert_int_equal(stats.died + stats.timed_out + stats.lied, 0);
	assert_true(answered > 0);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	reader__free(r);
	close(fd);
	free(whole);
}

/* ---- a liar ---- */

static struct {
	uint8_t data[8192];
	size_t sz;
} answer;

static void say(const void *data, size_t sz)
{
	assert_true(answer.sz + sz <= sizeof(answer.data));
	memcpy(answer.data + answer.sz, data, sz);
	answer.sz += sz;
}

static void say_u32(uint32_t v)
{
	say(&v, sizeof(v));
}

/* What comes of an answer, which is then cut off. */
static int hear(const struct query *q)
{
	static struct reader r;
	int pair[2], err;
	int32_t refused = 0;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(send(pair[1], answer.data, answer.sz, 0), answer.sz);
	assert_int_equal(shutdown(pair[1], SHUT_WR), 0);
	memset(&r, 0, sizeof(r));
	stream__init(&r.stream, pair[0]);
	r.stream.wait.deadline_ns = util_monotonic_ns() + 10 * NSEC_PER_SEC;
	err = get_answer(&r, q, &refused);
	close(pair[0]);
	close(pair[1]);
	return err;
}

/* Says what was said with one field changed. */
static int hear_with(const struct query *q, size_t at, const void *value, size_t sz)
{
	uint8_t before[64];
	int err;

	memcpy(before, answer.data + at, sz);
	memcpy(answer.data + at, value, sz);
	err = hear(q);
	memcpy(answer.data + at, before, sz);
	return err;
}

/* Every byte of the answer changed in some ways: whatever comes of it can be used and released. */
static void change_each_byte(const struct query *q, void (*use)(void *ret))
{
	static const uint8_t changes[] = { 0x01, 0x80, 0xff };

	for (size_t i = 0; i < answer.sz; i++) {
		for (size_t j = 0; j < ARRAY_SIZE(changes); j++) {
			uint8_t v = answer.data[i] ^ changes[j];
			int err = hear_with(q, i, &v, 1);

			assert_true(err <= 0);
			if (!err && *(int32_t *)answer.data == 0)
				use(q->ret);
		}
	}
	for (size_t sz = answer.sz, i = 0; i < sz; i++) {
		answer.sz = i;
		assert_int_not_equal(hear(q), 0);
		answer.sz = sz;
	}
}

#define LIE(q, type, field, v)                                                                   \
	do {                                                                                     \
		__typeof__(((type *)0)->field) value = (v);                                      \
		assert_int_equal(                                                                \
			hear_with(&(q), head_at + offsetof(type, field), &value, sizeof(value)), \
			-EPROTO);                                                                \
	} while (0)

static void use_file(void *ret)
{
	struct reader_file *f = ret;

	assert_true(strlen(f->interp) < sizeof(f->interp));
	assert_true(strlen(f->debuglink) < sizeof(f->debuglink));
	assert_true(strlen(f->alt_name) < sizeof(f->alt_name));
	assert_null(strchr(f->debuglink, '/'));
	assert_true(f->build_id_sz <= sizeof(f->build_id) && f->alt_id_sz <= sizeof(f->alt_id));
	for (size_t i = 0; i < f->segment_cnt; i++)
		assert_true(f->segments[i].vaddr <= MAX_VADDR);
	reader_file__done(f);
}

static void use_container(void *ret)
{
	const struct container_said *s = ret;

	for (int i = 0; i < CONTAINER_FACTS; i++)
		assert_true(strlen(s->text[i]) < CONTAINER_NAME_SZ);
}

static void test_container_lies(void **state)
{
	struct container_said s = { .text = { "shop-web-1", "web" } }, got;
	struct query q = query(READER_CONTAINER, -1, take_container, &got);
	const size_t head_at = sizeof(int32_t);

	(void)state;
	answer.sz = 0;
	say_u32(0);
	say(&s, sizeof(s));
	say_u32(READER_DONE);
	assert_int_equal(hear(&q), 0);
	assert_string_equal(got.text[CONTAINER_NAME], "shop-web-1");
	LIE(q, struct container_said, text[CONTAINER_NAME][0], '\n');
	assert_string_equal(got.text[CONTAINER_NAME], "");
	LIE(q, struct container_said, text[CONTAINER_POD][0], '_');
	LIE(q, struct container_said, text[CONTAINER_NAME][CONTAINER_NAME_SZ - 1], 'a');
	change_each_byte(&q, use_container);
}

static void lie_of_segment(const struct query *q, size_t at, size_t field, uint64_t v)
{
	assert_int_equal(hear_with(q, at + field, &v, sizeof(v)), -EPROTO);
}

static void test_description(void **state)
{
	struct reader_description d = {
		.segment_cnt = 2, .build_id_sz = 20, .interp = "ld.so", .debuglink = "a.debug"
	};
	struct reader_segment s[2] = { { 0, 0, 4096, 4096, 1 }, { 4096, 4096, 1, 1, 0 } };
	const size_t head_at = sizeof(int32_t);
	struct query q = query(READER_DESCRIBE, -1, take_description, NULL);
	struct reader_file f;
	char text[256];
	size_t segments_at;

	(void)state;
	q.ret = &f;
	answer.sz = 0;
	say_u32(0);
	say(&d, sizeof(d));
	say(s, sizeof(s));
	say_u32(READER_DONE);
	assert_int_equal(hear(&q), 0);
	assert_int_equal(f.segment_cnt, 2);
	use_file(&f);
	LIE(q, struct reader_description, segment_cnt, ELF_FILE_MAX_SEGMENTS + 1);
	segments_at = head_at + sizeof(d);
	lie_of_segment(&q, segments_at, offsetof(struct reader_segment, vaddr), MAX_VADDR);
	lie_of_segment(&q, segments_at, offsetof(struct reader_segment, offset), 1ULL << 63);
	lie_of_segment(&q, segments_at, offsetof(struct reader_segment, filesz), MAX_VADDR + 1);
	lie_of_segment(&q, segments_at, offsetof(struct reader_segment, memsz), UINT64_MAX);
	LIE(q, struct reader_description, build_id_sz, ELF_FILE_MAX_BUILD_ID + 1);
	LIE(q, struct reader_description, alt_id_sz, UINT32_MAX);
	memset(text, 'x', sizeof(text));
	assert_int_equal(hear_with(&q, head_at + offsetof(struct reader_description, interp), text,
				   sizeof(d.interp)),
			 -EPROTO);
	assert_int_equal(hear_with(&q, head_at + offsetof(struct reader_description, sanitizer),
				   text, sizeof(d.sanitizer)),
			 -EPROTO);
	assert_int_equal(
		hear_with(&q, head_at + offsetof(struct reader_description, debuglink), "../x", 5),
		-EPROTO);
	change_each_byte(&q, use_file);
}

static void use_table(void *ret)
{
	struct bpfprof_rule rule;

	for (uint64_t vaddr = 0; vaddr < 0x2000; vaddr += 16)
		truth_lookup(ret, vaddr, &rule);
	unwind_table__done(ret);
}

static void test_table(void **state)
{
	/* 2 blocks with 3 rows, of 2 rules */
	struct reader_table t = { .part_cnt = 1, .row_cnt = 3, .rule_cnt = 2, .cfi_sz = 100 };
	struct reader_part p = { .vaddr = 0x1000, .text_sz = 512, .blob_sz = 96 };
	struct {
		struct bpfprof_part head;
		uint16_t blk[3];
		uint8_t off[3];
		uint8_t pad;
		uint16_t rule[3];
		uint8_t pad2[16];
		struct bpfprof_rule rules[2];
	} __attribute__((packed)) blob = {
		.head = { .blk_cnt = 2,
			  .row_cnt = 3,
			  .off_pos = 38,
			  .rule_pos = 42,
			  .rules_pos = 64 },
		.blk = { 0, 2, 3 },
		.off = { 0, 16, 8 },
		.rule = { 0, 1, 0 },
		.rules = { { .cfa = BPFPROF_CFA_SP, .cfa_off = 8 },
			   { .cfa = BPFPROF_CFA_FP, .cfa_off = 16 } },
	};
	struct query q = query(READER_UNWIND_TABLE, -1, take_table, NULL);
	struct unwind_table ret;
	struct bpfprof_rule rule;
	size_t head_at = sizeof(int32_t);

	(void)state;
	_Static_assert(sizeof(blob) == 96, "the blob is as the part says");
	q.ret = &ret;
	answer.sz = 0;
	say_u32(0);
	say(&t, sizeof(t));
	say(&p, sizeof(p));
	say(&blob, sizeof(blob));
	say_u32(READER_DONE);
	assert_int_equal(hear(&q), 0);
	truth_lookup(&ret, 0x1010, &rule);
	assert_int_equal(rule.cfa, BPFPROF_CFA_FP);
	use_table(&ret);
	LIE(q, struct reader_table, part_cnt, MAX_PARTS + 1);
	LIE(q, struct reader_table, row_cnt, UNWIND_MAX_ROWS + 1);
	head_at += sizeof(t);
	LIE(q, struct reader_part, vaddr, 0x1001);
	LIE(q, struct reader_part, vaddr, UINT64_MAX - 255);
	LIE(q, struct reader_part, vaddr, MAX_VADDR + 256);
	LIE(q, struct reader_part, text_sz, 768);
	LIE(q, struct reader_part, text_sz, 1);
	LIE(q, struct reader_part, blob_sz, BPFPROF_CHUNK_SZ);
	LIE(q, struct reader_part, blob_sz, 31);
	head_at += sizeof(p);
	LIE(q, struct bpfprof_part, blk_cnt, UINT32_MAX);
	LIE(q, struct bpfprof_part, row_cnt, 4);
	LIE(q, struct bpfprof_part, row_cnt, UINT32_MAX);
	LIE(q, struct bpfprof_part, off_pos, 36);
	LIE(q, struct bpfprof_part, off_pos, UINT32_MAX);
	LIE(q, struct bpfprof_part, rule_pos, 43);
	LIE(q, struct bpfprof_part, rule_pos, UINT32_MAX - 1);
	LIE(q, struct bpfprof_part, rules_pos, 112);
	LIE(q, struct bpfprof_part, rules_pos, 80 + 16);
	LIE(q, __typeof__(blob), blk[1], 4);
	LIE(q, __typeof__(blob), blk[2], 1);
	LIE(q, __typeof__(blob), rule[2], 2);
	change_each_byte(&q, use_table);
}

static void use_points(void *ret)
{
	struct allocator_points *points = ret;

	for (size_t i = 0; i < points->cnt; i++) {
		const struct allocator_point *p = &points->points[i];

		assert_in_range(p->group, ALLOCATOR_ALLOC, ALLOCATOR_USDT_FREE);
		assert_true(strlen(p->name) < sizeof(p->name));
		assert_true(strlen(p->insn) < sizeof(p->insn));
		assert_true(!i || p->offset > p[-1].offset);
	}
	allocator_points__done(points);
}

static void test_points(void **state)
{
	struct reader_point p[2] = { { .offset = 16, .name = "malloc", .insn = "push r12" },
				     { .offset = 32, .group = ALLOCATOR_FREE, .name = "free" } };
	struct query q = query(READER_ALLOCATORS, -1, take_points, NULL);
	struct allocator_points ret;
	size_t head_at = sizeof(int32_t);
	uint64_t cnt = 2, many = ALLOCATORS_MAX_POINTS + 1;

	(void)state;
	q.ret = &ret;
	answer.sz = 0;
	say_u32(0);
	say(&cnt, sizeof(cnt));
	say(p, sizeof(p));
	say_u32(READER_DONE);
	assert_int_equal(hear(&q), 0);
	assert_int_equal(ret.cnt, 2);
	use_points(&ret);
	assert_int_equal(hear_with(&q, head_at, &many, sizeof(many)), -EPROTO);
	head_at += sizeof(cnt);
	LIE(q, struct reader_point, group, ALLOCATOR_USDT_FREE + 1);
	LIE(q, struct reader_point, offset, 32);
	change_each_byte(&q, use_points);
}

static void use_sites(void *ret)
{
	struct probe_sites *s = ret;

	assert_in_range(s->cnt, 1, PROBE_SITES_MAX);
	for (size_t i = 0; i < s->cnt; i++)
		assert_true(s->sites[i].ref_ctr <= INT64_MAX && s->sites[i].offset <= INT64_MAX &&
			    (!i || s->sites[i].offset > s->sites[i - 1].offset));
	probe_sites__done(s);
}

static void test_sites(void **state)
{
	struct probe_site p[2] = { { .offset = 16, .ref_ctr = 64 }, { .offset = 32 } };
	struct query q = query(READER_SITES, -1, take_sites, NULL);
	struct probe_sites ret;
	size_t head_at = sizeof(int32_t);
	uint64_t cnt = 2, none = 0, many = PROBE_SITES_MAX + 1;

	(void)state;
	q.ret = &ret;
	answer.sz = 0;
	say_u32(0);
	say(&cnt, sizeof(cnt));
	say(p, sizeof(p));
	say_u32(READER_DONE);
	assert_int_equal(hear(&q), 0);
	assert_int_equal(ret.cnt, 2);
	assert_memory_equal(ret.sites, p, sizeof(p));
	use_sites(&ret);
	assert_int_equal(hear_with(&q, head_at, &none, sizeof(none)), -EPROTO);
	assert_int_equal(hear_with(&q, head_at, &many, sizeof(many)), -EPROTO);
	head_at += sizeof(cnt);
	LIE(q, struct probe_site, offset, 32);
	LIE(q, struct probe_site, offset, UINT64_MAX);
	LIE(q, struct probe_site, ref_ctr, 1ULL << 63);
	change_each_byte(&q, use_sites);
}

static void use_names(void *ret)
{
	struct symbols *s = ret;

	for (size_t i = 0; i < s->cnt; i++)
		for (uint32_t k = s->first[i]; k < s->first[i + 1]; k++)
			assert_true(strlen(s->strings + s->frames[k].name) < s->strings_sz);
	symbols__done(s);
}

struct firsts {
	uint32_t of[3];
};

static void test_names(void **state)
{
	static const char strings[] = "\0main\0inlined";
	const uint64_t vaddrs[2] = { 1, 2 };
	struct reader_names n = { .frame_cnt = 3, .strings_sz = sizeof(strings) };
	uint32_t first[3] = { 0, 2, 3 };
	struct symbol_frame frames[3] = { { .name = 6 }, { .name = 1 }, { .name = 1 } };
	struct query q = query(READER_NAMES, -1, take_names, NULL);
	size_t head_at = sizeof(int32_t);
	struct symbols ret;

	(void)state;
	q.ret = &ret;
	q.input = vaddrs;
	q.input_sz = sizeof(vaddrs);
	q.request.cnt = 2;
	answer.sz = 0;
	say_u32(0);
	say(&n, sizeof(n));
	say(first, sizeof(first));
	say(frames, sizeof(frames));
	say(strings, sizeof(strings));
	say_u32(READER_DONE);
	assert_int_equal(hear(&q), 0);
	assert_string_equal(ret.strings + ret.frames[ret.first[0]].name, "inlined");
	use_names(&ret);
	LIE(q, struct reader_names, frame_cnt, UINT64_MAX);
	LIE(q, struct reader_names, strings_sz, UINT64_MAX);
	LIE(q, struct reader_names, strings_sz, sizeof(strings) - 1);
	head_at += sizeof(n);
	LIE(q, struct firsts, of[0], 1);
	LIE(q, struct firsts, of[1], 4);
	LIE(q, struct firsts, of[2], 2);
	head_at += sizeof(first);
	LIE(q, struct symbol_frame, name, sizeof(strings));
	LIE(q, struct symbol_frame, system_name, UINT32_MAX);
	LIE(q, struct symbol_frame, file, sizeof(strings));
	change_each_byte(&q, use_names);
	/* more than anybody has memory for, of as many addresses as may be asked for */
	n.frame_cnt = READER_MAX_FRAMES + 1;
	q.request.cnt = READER_MAX_ADDRESSES;
	answer.sz = 0;
	say_u32(0);
	say(&n, sizeof(n));
	assert_int_equal(hear(&q), -EPROTO);
}

static void use_said(void *ret)
{
	assert_true(said__is_clean(ret));
}

static void test_said(void **state)
{
	struct query q = query(READER_ENVIRON, -1, take_said, NULL);
	size_t head_at = sizeof(int32_t);
	struct said ret, s = { 0 };

	(void)state;
	q.ret = &ret;
	strcpy(s.text[SAID_SERVICE], "shop");
	strcpy(s.text[SAID_VERSION], "1\xc3\xa4");
	answer.sz = 0;
	say_u32(0);
	say(&s, sizeof(s));
	say_u32(READER_DONE);
	assert_int_equal(hear(&q), 0);
	assert_memory_equal(&ret, &s, sizeof(s));
	LIE(q, struct said, text[SAID_SERVICE][0], '\n');
	LIE(q, struct said, text[SAID_VERSION][1], 'x');
	LIE(q, struct said, text[SAID_NAMESPACE][SAID_TEXT_SZ - 1], 'x');
	change_each_byte(&q, use_said);
}

/* Each piece as far as it goes; one that is larger than was asked for is a lie. */
static void test_pieces(void **state)
{
	const size_t page = sysconf(_SC_PAGESIZE);
	struct reader *r = reader__new(1);
	char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t addrs[] = { (uintptr_t)at, 0, (uintptr_t)at + page - 3, UINT64_MAX,
				   (uintptr_t)at + 8 };
	uint8_t *stack = mmap(NULL, READER_MAX_BYTES + 3 * page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t from_stack[] = { (uintptr_t)stack + 8, (uintptr_t)stack + 2 * page - 1,
					(uintptr_t)stack + 2 * page };
	static uint8_t large[3 * READER_MAX_BYTES];
	char got[ARRAY_SIZE(addrs) * 16];
	uint32_t sizes[ARRAY_SIZE(addrs)];
	int fd = open("/proc/self/mem", O_PATH | O_CLOEXEC);
	struct pieces pieces = { .max = 4, .buf = (uint8_t *)got, .sizes = sizes };
	struct query q = query(READER_PIECES, -1, take_pieces, &pieces);

	(void)state;
	assert_true(fd >= 0 && at != MAP_FAILED);
	for (size_t i = 0; i < page; i++)
		at[i] = (char)('a' + i % 26);
	assert_int_equal(munmap(at + page, page), 0);
	assert_int_equal(reader__pieces(r, fd, addrs, ARRAY_SIZE(addrs), 16, got, sizes), 0);
	for (size_t i = 0; i < ARRAY_SIZE(addrs); i++)
		assert_int_equal(sizes[i], i == 2 ? 3 : i % 2 ? 0 : 16);
	assert_memory_equal(got, "abcdefghijklmnop", 16);
	assert_memory_equal(got + 16, at + page - 3, 3);
	assert_memory_equal(got + 19, "ijklmnopqrstuvwx", 16);
	/* the guard behind a stack, and what was never touched */
	stack[page] = 1;
	assert_int_equal(mprotect(stack + 2 * page, page, PROT_NONE), 0);
	assert_int_equal(reader__pieces(r, fd, from_stack, ARRAY_SIZE(from_stack), READER_MAX_BYTES,
					large, sizes),
			 0);
	assert_int_equal(sizes[0], 2 * page - 8);
	assert_int_equal(sizes[1], 1);
	assert_int_equal(sizes[2], 0);
	assert_int_equal(reader__pieces(r, fd, addrs, 0, 16, NULL, NULL), 0);
	assert_int_equal(reader__pieces(r, fd, addrs, 1, READER_MAX_BYTES + 1, got, sizes), -E2BIG);
	/* without a file it is no request */
	assert_int_equal(reader__pieces(r, -1, addrs, 1, 16, got, sizes), -EPIPE);
	munmap(at, page);
	munmap(stack, READER_MAX_BYTES + 3 * page);
	close(fd);
	reader__free(r);
	q.request.cnt = 2;
	for (uint32_t sz = 4; sz <= 5; sz++) {
		answer.sz = 0;
		say_u32(0);
		say_u32(sz);
		say("abcde", sz);
		say_u32(0);
		say_u32(READER_DONE);
		assert_int_equal(hear(&q), sz == 4 ? 0 : -EPROTO);
	}
}

/* Neither an error that is none, nor one that would stand for something else here. */
static void test_refusals(void **state)
{
	struct query q = query(READER_HAS_USDT, -1, take_number, NULL);

	(void)state;
	answer.sz = 0;
	say_u32(1);
	assert_int_equal(hear(&q), -EPROTO);
	answer.sz = 0;
	say_u32(INT32_MIN);
	assert_int_equal(hear(&q), -EPROTO);
	answer.sz = 0;
	say_u32(-ENOEXEC);
	say_u32(READER_DONE + 1);
	assert_int_equal(hear(&q), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader_sandbox), cmocka_unit_test(test_opener_sandbox),
		cmocka_unit_test(test_rights),	       cmocka_unit_test(test_memory),
		cmocka_unit_test(test_without_kill),   cmocka_unit_test(test_not_lent),
		cmocka_unit_test(test_requests),       cmocka_unit_test(test_killed),
		cmocka_unit_test(test_open),	       cmocka_unit_test(test_open_at),
		cmocka_unit_test(test_open_in),	       cmocka_unit_test(test_open_on_busy_machine),
		cmocka_unit_test(test_perf_map),       cmocka_unit_test(test_busy),
		cmocka_unit_test(test_stopped),	       cmocka_unit_test(test_leaves_nothing),
		cmocka_unit_test(test_deadly),	       cmocka_unit_test(test_terminal),
		cmocka_unit_test(test_irregular),      cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_description),    cmocka_unit_test(test_table),
		cmocka_unit_test(test_points),	       cmocka_unit_test(test_names),
		cmocka_unit_test(test_refusals),       cmocka_unit_test(test_services),
		cmocka_unit_test(test_container),      cmocka_unit_test(test_container_lies),
		cmocka_unit_test(test_said),	       cmocka_unit_test(test_pieces),
		cmocka_unit_test(test_find_sites),     cmocka_unit_test(test_sites),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
