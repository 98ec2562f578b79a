// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program whose threads leave the CPU for known reasons, each in a function of its own, after
 * SIGUSR1. Mode: the path of a file that it may write, for what waits for a disk; without one
 * nothing does. Prints
 *     {"off":[{"frame":"off_sleep","thread":"off sleep","count":100,"ns":...}, ...]}
 * count: how often the thread has gone to sleep in off_rounds;
 * ns: from before the calls to behind them, summed up. rounds=N (60): calls of each, more
 * where the disk is fast. spin=MS: two
 * threads share a CPU for so long; ns is what they did not get of it.
 */
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "waits.h"

#define NAP_MS 5
#define FILE_SZ (8 << 20)

static int off_pipe[2], off_word, off_fd = -1;
static char *off_map;
static const char *off_path;
static int off_ended;

static NOIPA void off_sleep(int i)
{
	(void)i;
	pause_us(NAP_MS * 1000);
	NO_TAIL_CALL();
}

static NOIPA void off_poll(int i)
{
	(void)i;
	poll(NULL, 0, NAP_MS);
	NO_TAIL_CALL();
}

static NOIPA void off_epoll(int i)
{
	static int fd = -1;
	struct epoll_event e;

	(void)i;
	if (fd < 0)
		fd = epoll_create1(EPOLL_CLOEXEC);
	epoll_wait(fd, &e, 1, NAP_MS);
	NO_TAIL_CALL();
}

static NOIPA void off_read(int i)
{
	char byte;

	(void)i;
	if (read(off_pipe[0], &byte, 1) != 1)
		_exit(4);
	NO_TAIL_CALL();
}

static NOIPA void off_write(int i)
{
	(void)i;
	pause_us(NAP_MS * 1000);
	if (write(off_pipe[1], "", 1) != 1)
		_exit(4);
	NO_TAIL_CALL();
}

static NOIPA void off_child(int i)
{
	pid_t pid = vfork();

	(void)i;
	if (!pid) {
		/* a child that shares the memory, and only calls the kernel */
		struct timespec t = { 0, NAP_MS * 1000000 };

		syscall(SYS_nanosleep, &t, NULL);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	NO_TAIL_CALL();
}

static NOIPA void off_wait4(int i)
{
	pid_t pid = fork();

	(void)i;
	if (!pid) {
		pause_us(NAP_MS * 1000);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	NO_TAIL_CALL();
}

static NOIPA void off_futex(int i)
{
	struct timespec t = { 0, NAP_MS * 1000000 };

	(void)i;
	futex(&off_word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);
	NO_TAIL_CALL();
}

static NOIPA void off_disk(int i)
{
	static char *buf;

	if (!buf && posix_memalign((void **)&buf, 4096, 65536))
		_exit(4);
	if (pread(off_fd, buf, 65536, (off_t)i * 65536 % FILE_SZ) != 65536)
		_exit(5);
	NO_TAIL_CALL();
}

static NOIPA void off_sync(int i)
{
	static int fd = -1;
	char path[4200];

	if (fd < 0) {
		snprintf(path, sizeof(path), "%s.sync", off_path);
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
		unlink(path);
	}
	if (pwrite(fd, &i, sizeof(i), i * 4096L) < 0 || fsync(fd))
		_exit(5);
	NO_TAIL_CALL();
}

static NOIPA void off_fault(int i)
{
	prog_sink += off_map[((size_t)i * 7919 * 4096) % FILE_SZ];
	NO_TAIL_CALL();
}

struct off {
	const char *frame;
	void (*fn)(int i);
	int needs_file;
	uint64_t ns;
	long count;
};
static struct off offs[] = {
	{ "off_sleep", off_sleep, 0, 0, 0 }, { "off_poll", off_poll, 0, 0, 0 },
	{ "off_epoll", off_epoll, 0, 0, 0 }, { "off_read", off_read, 0, 0, 0 },
	{ "off_write", off_write, 0, 0, 0 }, { "off_wait4", off_wait4, 0, 0, 0 },
	{ "off_child", off_child, 0, 0, 0 }, { "off_futex", off_futex, 0, 0, 0 },
	{ "off_disk", off_disk, 1, 0, 0 },   { "off_sync", off_sync, 1, 0, 0 },
	{ "off_fault", off_fault, 1, 0, 0 },
};
#define NR_OFFS (sizeof(offs) / sizeof(offs[0]))

/* A fast disk may answer before its thread has left the CPU: it is read until that was so often enough. */
#define MORE_ROUNDS 50

static int waits_enough(const struct off *o, int i, int rounds)
{
	return i >= rounds && (!o->needs_file || i >= MORE_ROUNDS * rounds ||
			       o->count + times_slept() >= rounds / 2);
}

static NOIPA void off_rounds(struct off *o, int rounds)
{
	int i;

	o->count = -times_slept();
	for (i = 0; !waits_enough(o, i, rounds); i++) {
		uint64_t from = now_ns();

		o->fn(i);
		o->ns += now_ns() - from;
	}
	o->count += times_slept();
}

static NOIPA void *off_thread(void *arg)
{
	struct off *o = arg;
	char name[16];

	snprintf(name, sizeof(name), "off %s", o->frame + 4);
	prctl(PR_SET_NAME, name);
	prctl(PR_SET_TIMERSLACK, 1);
	/* nothing on the way to the number itself has to be fetched then, which may be slept for */
	times_slept();
	off_rounds(o, (int)waits_number("rounds", 60));
	__atomic_add_fetch(&off_ended, 1, __ATOMIC_ACQ_REL);
	pause();
	return NULL;
}

/* ---- two threads on a CPU ---- */

static struct off spins[2] = { { "off_spin_a", NULL, 0, 0, 0 }, { "off_spin_b", NULL, 0, 0, 0 } };
static int spin_both;

static NOIPA void off_spin(struct off *o)
{
	uint64_t from = now_ns(), cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t end = from + waits_number("spin", 400) * 1000000;

	while (now_ns() < end)
		prog_sink++;
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	o->ns = now_ns() - from - cpu_ns;
}

static void *spin_thread(void *arg)
{
	struct off *o = arg;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(0, &set);
	sched_setaffinity(0, sizeof(set), &set);
	prctl(PR_SET_NAME, o == &spins[0] ? "off spin_a" : "off spin_b");
	__atomic_add_fetch(&spin_both, 1, __ATOMIC_ACQ_REL);
	waits_until(&spin_both, 2);
	off_spin(o);
	__atomic_add_fetch(&off_ended, 1, __ATOMIC_ACQ_REL);
	pause();
	return NULL;
}

/* What the file says is on the disk, and nowhere else. */
static int make_file(const char *path)
{
	static char block[65536];
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), i;

	memset(block, 'x', sizeof(block));
	if (fd < 0)
		return -1;
	for (i = 0; i < FILE_SZ / 65536; i++)
		if (write(fd, block, sizeof(block)) != sizeof(block))
			return -1;
	if (fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		return -1;
	off_map = mmap(NULL, FILE_SZ, PROT_READ, MAP_SHARED, fd, 0);
	if (off_map == MAP_FAILED || madvise(off_map, FILE_SZ, MADV_RANDOM))
		return -1;
	off_fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	unlink(path);
	return off_fd;
}

static void say_off(const struct off *o, int first)
{
	waits_say("%s{\"frame\":\"%s\",\"thread\":\"off %s\",\"count\":%ld,\"ns\":%ld}",
		  first ? "" : ",", o->frame, o->frame + 4, o->count, (long)o->ns);
}

int main(int argc, char **argv)
{
	int has_file, wanted = 2;
	pthread_t t;
	size_t i;

	off_path = waits_begin(argc, argv);
	if (pipe(off_pipe))
		return 3;
	has_file = off_path[0] == '/' && make_file(off_path) >= 0;
	waits_go();
	for (i = 0; i < NR_OFFS; i++) {
		if (offs[i].needs_file && !has_file)
			continue;
		waits_thread(&t, off_thread, &offs[i]);
		wanted++;
	}
	while (waits_get(&off_ended) != wanted - 2)
		pause_us(1000);
	/* by themselves: they would keep the others waiting for a CPU */
	waits_thread(&t, spin_thread, &spins[0]);
	waits_thread(&t, spin_thread, &spins[1]);
	while (waits_get(&off_ended) != wanted)
		pause_us(1000);
	waits_say("{\"off\":[");
	for (i = 0; i < NR_OFFS; i++)
		say_off(&offs[i], !i);
	say_off(&spins[0], 0);
	say_off(&spins[1], 0);
	waits_say("]}\n");
	waits_end();
	return 0;
}
