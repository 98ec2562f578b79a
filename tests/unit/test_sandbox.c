/* SPDX-License-Identifier: BSD-2-Clause */
/* helper/sandbox: what the courier, the fetcher and the server may do, and what ends them. Of readers and openers test_reader knows
 * more. */
#include "helper/sandbox.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"

static int port; /* somebody listens there */

/* In the sandbox: 0, or what was refused. */
static int connects(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) ? errno : 0;
}

static int looks_up(void)
{
	struct addrinfo *found;

	return getaddrinfo("localhost", "80", NULL, &found) ? ENOENT : 0;
}

static void *nothing(void *arg)
{
	return arg;
}

static int starts_threads(void)
{
	pthread_t t;
	int err = pthread_create(&t, NULL, nothing, NULL);

	return err ? err : pthread_join(t, NULL);
}

/* As it is where vdso(7) cannot tell. */
static int asks_for_time(void)
{
	struct timespec ts;
	struct timeval tv;

	return syscall(SYS_clock_gettime, CLOCK_REALTIME, &ts) ||
			       syscall(SYS_gettimeofday, &tv, NULL) || syscall(SYS_time, NULL) < 0 ?
		       errno :
		       0;
}

static int opens(const char *path, int how)
{
	return open(path, how, 0600) < 0 ? errno : 0;
}

static int reads_etc(void)
{
	return opens("/etc/hosts", O_RDONLY);
}

static int reads_tmp(void)
{
	return opens("/tmp", O_RDONLY);
}

static int reads_itself(void)
{
	return opens("/proc/self/maps", O_RDONLY);
}

static int writes(void)
{
	return opens("/etc/hosts", O_WRONLY);
}

static int creates(void)
{
	return opens("/etc/made-by-the-courier", O_RDONLY | O_CREAT);
}

static int file;			 /* 0, or one that is its standard output */
static uint64_t memory_max = UINT64_MAX; /* of all processes */

static int writes_file(void)
{
	signal(SIGXFSZ, SIG_IGN);
	if (write(1, "x", 1) != 1)
		return errno;
	return ftruncate(1, 0) || lseek(1, 0, SEEK_SET) ? errno : 0;
}

static int writes_too_much(void)
{
	signal(SIGXFSZ, SIG_IGN);
	if (lseek(1, 512 << 20, SEEK_SET) < 0)
		return 1;
	return write(1, "x", 1) == 1 ? 0 : errno;
}

static int packet_socket(void)
{
	return socket(AF_PACKET, SOCK_RAW, 0) < 0 ? errno : 0;
}

static int maps_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
			       MAP_FAILED ?
		       errno :
		       0;
}

static int listens(void)
{
	return listen(socket(AF_INET, SOCK_STREAM, 0), 1) ? errno : 0;
}

static int executes(void)
{
	execl("/bin/true", "true", (char *)NULL);
	return errno;
}

static int forks(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	return pid < 0 ? errno : 0;
}

static int kills(void)
{
	return kill(getppid(), 0) ? errno : 0;
}

static int traces(void)
{
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) ? errno : 0;
}

static int calls_bpf(void)
{
	return syscall(SYS_bpf, 0, NULL, 0) < 0 ? errno : 0;
}

static int becomes_root(void)
{
	return setresuid(0, 0, 0) ? errno : 0;
}

static int makes_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return mprotect(p, 4096, PROT_READ | PROT_EXEC) ? errno : 0;
}

/* What it exits with, or -1 if it is ended by SIGSYS. */
static int in_sandbox_of(enum sandbox kind, int (*act)(void))
{
	int pair[2], status;
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	pid = fork();
	if (!pid) {
		if (sandbox_enter(kind, pair[1], file ?: pair[1], getppid(), memory_max))
			_exit(120);
		_exit(act());
	}
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGSYS);
		return -1;
	}
	return WEXITSTATUS(status);
}

static int in_sandbox(int (*act)(void))
{
	return in_sandbox_of(SANDBOX_COURIER, act);
}

static void may(void **state)
{
	static int (*const acts[])(void) = { connects, looks_up, starts_threads, reads_etc,
					     asks_for_time };
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(at);

	(void)state;
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
	port = ntohs(at.sin_port);
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
		if (in_sandbox(acts[i]))
			fail_msg("act %zu is refused: %d", i, in_sandbox(acts[i]));
	close(fd);
}

static void may_not(void **state)
{
	static const struct {
		int (*act)(void);
		int err; /* -1: it is the end */
	} acts[] = {
		{ writes, EACCES },   { creates, EACCES },  { packet_socket, EAFNOSUPPORT },
		{ maps_code, EPERM }, { listens, -1 },	    { executes, -1 },
		{ forks, -1 },	      { kills, -1 },	    { traces, -1 },
		{ calls_bpf, -1 },    { becomes_root, -1 }, { makes_code, -1 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
		if (in_sandbox(acts[i].act) != acts[i].err)
			fail_msg("act %zu: %d, not %d", i, in_sandbox(acts[i].act), acts[i].err);
	/* where there is landlock, which older kernels have not */
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) < 1)
		skip();
	assert_int_equal(in_sandbox(reads_tmp), EACCES);
	assert_int_equal(in_sandbox(reads_itself), EACCES);
}

/* What fetches is a courier that writes into files that it is sent, up to a size; whatever else ends or refuses
 * a courier does so here. */
static void fetcher(void **state)
{
	static int (*const acts[])(void) = { connects, looks_up, starts_threads, reads_etc,
					     asks_for_time };
	static const struct {
		int (*act)(void);
		int err; /* -1: it is the end */
	} not_acts[] = {
		{ writes, EACCES }, { creates, EACCES }, { listens, -1 },      { executes, -1 },
		{ forks, -1 },	    { kills, -1 },	 { becomes_root, -1 }, { makes_code, -1 },
	};

	(void)state;
	file = memfd_create("file", MFD_CLOEXEC);
	assert_int_equal(in_sandbox_of(SANDBOX_COURIER, writes_file), EFBIG);
	assert_int_equal(in_sandbox_of(SANDBOX_FETCHER, writes_file), 0);
	assert_int_equal(in_sandbox_of(SANDBOX_FETCHER, writes_too_much), EFBIG);
	close(file);
	file = 0;
	for (size_t i = 1; i < ARRAY_SIZE(acts); i++)
		if (in_sandbox_of(SANDBOX_FETCHER, acts[i]))
			fail_msg("act %zu is refused", i);
	for (size_t i = 0; i < ARRAY_SIZE(not_acts); i++)
		if (in_sandbox_of(SANDBOX_FETCHER, not_acts[i].act) != not_acts[i].err)
			fail_msg("act %zu: %d, not %d", i,
				 in_sandbox_of(SANDBOX_FETCHER, not_acts[i].act), not_acts[i].err);
}

/* 400 MiB in two parts. */
static int takes_memory(void)
{
	for (int i = 0; i < 2; i++)
		if (mmap(NULL, 200U << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0) == MAP_FAILED)
			return i ? errno : 1;
	return 0;
}

/* Where all processes together may not have more than it may itself, it has half of that. */
static void memory(void **state)
{
	static const enum sandbox kinds[] = { SANDBOX_READER, SANDBOX_COURIER, SANDBOX_FETCHER };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		assert_int_equal(in_sandbox_of(kinds[i], takes_memory), 0);
		memory_max = 600U << 20;
		assert_int_equal(in_sandbox_of(kinds[i], takes_memory), ENOMEM);
		memory_max = UINT64_MAX;
	}
}

/* What serves has no use for a socket of its own, a file, or a thread. */
static void server_may_not(void **state)
{
	static const struct {
		int (*act)(void);
		int err; /* -1: it is the end */
	} acts[] = {
		{ connects, -1 },      { packet_socket, -1 },	 { starts_threads, -1 },
		{ reads_etc, EACCES }, { reads_itself, EACCES }, { writes, EACCES },
		{ maps_code, -1 },     { executes, -1 },	 { forks, -1 },
		{ kills, -1 },	       { traces, -1 },		 { calls_bpf, -1 },
		{ becomes_root, -1 },  { makes_code, -1 },
	};

	(void)state;
	assert_int_equal(in_sandbox_of(SANDBOX_SERVER, asks_for_time), 0);
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
		if (in_sandbox_of(SANDBOX_SERVER, acts[i].act) != acts[i].err)
			fail_msg("act %zu: %d, not %d", i,
				 in_sandbox_of(SANDBOX_SERVER, acts[i].act), acts[i].err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(may),
		cmocka_unit_test(may_not),
		cmocka_unit_test(fetcher),
		cmocka_unit_test(memory),
		cmocka_unit_test(server_may_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
