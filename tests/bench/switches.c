// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits of known kinds, for what a profiler adds to each: ns of CPU time, all threads together.
 *
 *   switches pipe|threads|futex|cond|lock [CPU]
 *	pipe: two processes pinned to one CPU hand a byte to and fro through pipes. threads: two
 *	threads do. futex: two threads hand a word over that they wait for with futex(2). cond: with
 *	a mutex and a condition variable. lock: one thread takes and releases a mutex that nobody
 *	else wants. CPU: the one to be pinned to, the last one unless given.
 *   switches parked COUNT
 *	COUNT threads that wait, in different functions and at depths of 8 to 27
 *
 * Prints the ids of its processes. Then, for each line COUNT of standard input, what a hand-over
 * (lock: a pair) took, the mean of COUNT, and how often the thread that asked has slept in it. CPU
 * time and not the clock: neither what else runs nor a wait for the CPU is in it, but a context
 * switch and what is attached to it is, for one of the two pays for it.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOIPA __attribute__((noipa))
#define MAX_PARKED 10000
#define PARKED_STACK_SZ 65536

static int to_peer[2], from_peer[2];
static _Atomic uint32_t turn; /* 0: of the thread that asks, 1: of its peer */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t passed = PTHREAD_COND_INITIALIZER;
static clockid_t clocks[2];
static int clock_cnt = 1;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double cpu_ns(void)
{
	struct timespec t;
	double ns = 0;

	for (int i = 0; i < clock_cnt; i++) {
		if (clock_gettime(clocks[i], &t))
			die("clock_gettime");
		ns += t.tv_sec * 1e9 + t.tv_nsec;
	}
	return ns;
}

/* False once the other end is gone. */
static int pass_byte(int from, int to)
{
	char c = 0;

	return write(to, &c, 1) == 1 && read(from, &c, 1) == 1;
}

static void echo(void)
{
	char c;

	while (read(to_peer[0], &c, 1) == 1 && write(from_peer[1], &c, 1) == 1)
		;
}

static void futex_pass(uint32_t me)
{
	atomic_store(&turn, !me);
	syscall(SYS_futex, &turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	while (atomic_load(&turn) != me)
		syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, !me, NULL, NULL, 0);
}

static void cond_pass(uint32_t me)
{
	pthread_mutex_lock(&mutex);
	atomic_store(&turn, !me);
	pthread_cond_signal(&passed);
	while (atomic_load(&turn) != me)
		pthread_cond_wait(&passed, &mutex);
	pthread_mutex_unlock(&mutex);
}

static void lock_pair(void)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void *peer(void *arg)
{
	const char *mode = arg;

	if (!strcmp(mode, "threads"))
		echo();
	/* the first turn is the other thread's: wait for it as if it had just been passed on */
	while (!strcmp(mode, "futex")) {
		if (!atomic_load(&turn))
			syscall(SYS_futex, &turn, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
		else
			futex_pass(1);
	}
	if (!strcmp(mode, "cond")) {
		pthread_mutex_lock(&mutex);
		while (!atomic_load(&turn))
			pthread_cond_wait(&passed, &mutex);
		pthread_mutex_unlock(&mutex);
		for (;;)
			cond_pass(1);
	}
	return NULL;
}

/* One hand-over and back. False if there is nobody. */
static int round_trip(char mode)
{
	switch (mode) {
	case 'f':
		futex_pass(0);
		return 1;
	case 'c':
		cond_pass(0);
		return 1;
	case 'l':
		lock_pair();
		return 1;
	default:
		return pass_byte(from_peer[0], to_peer[1]);
	}
}

static int answer(char mode)
{
	char line[32];

	while (fgets(line, sizeof(line), stdin)) {
		long count = atol(line), trips = mode == 'l' ? count : count / 2;
		struct rusage before, after;
		double start;

		if (trips < 1)
			return 2;
		getrusage(RUSAGE_THREAD, &before);
		start = cpu_ns();
		for (long i = 0; i < trips; i++) {
			if (!round_trip(mode))
				return 1;
		}
		start = (cpu_ns() - start) / count;
		getrusage(RUSAGE_THREAD, &after);
		printf("%.2f %.3f\n", start, (double)(after.ru_nvcsw - before.ru_nvcsw) / trips);
		fflush(stdout);
	}
	return 0;
}

/*
 * On one CPU, which nobody else gets meanwhile, and without preempting each other: who is woken
 * would otherwise now and then run before the waker sleeps, so that the sleep does not come about.
 * With sched(7)'s SCHED_FIFO each hand-over is one sleep and one switch. Ask for short rounds.
 */
static void pin(int cpu)
{
	const struct sched_param param = { .sched_priority = 1 };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		die("sched_setscheduler");
}

static pid_t fork_peer(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(to_peer[1]);
		close(from_peer[0]);
		echo();
		_exit(0);
	}
	if (clock_getcpuclockid(pid, &clocks[clock_cnt++]))
		die("clock_getcpuclockid");
	return pid;
}

/* ---- parked threads ---- */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t none;
static volatile int sink;

static NOIPA void park_cond(void)
{
	pthread_mutex_lock(&gate);
	for (;;)
		pthread_cond_wait(&never, &gate);
}

static NOIPA void park_sem(void)
{
	while (sem_wait(&none))
		;
	sink++;
}

static NOIPA void park_sleep(void)
{
	for (;;)
		pause();
}

static NOIPA void park_read(void)
{
	char c;

	if (read(to_peer[0], &c, 1) < 0)
		abort();
	sink++;
}

static NOIPA void descend(int depth, int where)
{
	static void (*const park[])(void) = { park_cond, park_sem, park_sleep, park_read };

	if (depth > 0)
		descend(depth - 1, where);
	else
		park[where]();
	sink++; /* keeps the call from becoming a jump */
}

static void *parked(void *arg)
{
	int id = (int)(intptr_t)arg;

	descend(5 + id % 20, id % 4);
	return NULL;
}

static int park(int count)
{
	pthread_attr_t attr;
	pthread_t id;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PARKED_STACK_SZ);
	sem_init(&none, 0, 0);
	for (int i = 0; i < count && i < MAX_PARKED; i++) {
		errno = pthread_create(&id, &attr, parked, (void *)(intptr_t)i);
		if (errno)
			die("pthread_create");
	}
	printf("%d\n", getpid());
	fflush(stdout);
	return getchar() == EOF ? 0 : 1;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_t id;

	if (!strchr("ptfcl", mode[0]) || !mode[0])
		return 2;
	if (pipe(to_peer) || pipe(from_peer))
		die("pipe");
	if (!strcmp(mode, "parked"))
		return park(argc > 2 ? atoi(argv[2]) : 1000);
	pin(argc > 2 ? atoi(argv[2]) : (int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	clocks[0] = CLOCK_PROCESS_CPUTIME_ID;
	printf("%d", getpid());
	if (!strcmp(mode, "pipe"))
		printf(",%d", fork_peer());
	else if (mode[0] != 'l' && (errno = pthread_create(&id, NULL, peer, argv[1])))
		die("pthread_create");
	puts("");
	fflush(stdout);
	return answer(mode[0]);
}
