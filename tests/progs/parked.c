// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program of n=N threads (200) that are parked, each in one of several functions, at several
 * depths, and two that spin (not with `still`); the second one, `clock`, looks for pauses of its
 * own, for look=MS (20) of every look + 5 ms. When all are where they shall be it is ready. Upon the first SIGUSR1 it prints
 *     {"threads":[{"tid":12,"name":"park 7","frames":["park_thread","deeper","park_sem"],
 *       "parked_ns":...}, ...], "clock":13, "spinner":14}
 * and then, for each, {"longest_ns":..., "looks":...}: the longest pause since the last one.
 */
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "waits.h"

#define MAX_PARKED 4000
#define NR_DEPTHS 7

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t held_rw = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t sem;
static uint32_t word;
static int empty_pipe[2], epoll_fd, event_fd, listen_fd;

#define PARK(name, ...)              \
	static NOIPA void name(void) \
	{                            \
		__VA_ARGS__;         \
		NO_TAIL_CALL();      \
	}
PARK(park_mutex, pthread_mutex_lock(&held))
/* each has its own: they would wait for a moment for one of all */
PARK(park_cond, pthread_mutex_t mine = PTHREAD_MUTEX_INITIALIZER;
     pthread_cond_t never = PTHREAD_COND_INITIALIZER; pthread_mutex_lock(&mine);
     pthread_cond_wait(&never, &mine))
PARK(park_sem, sem_wait(&sem))
PARK(park_rwlock, pthread_rwlock_wrlock(&held_rw))
PARK(park_barrier, pthread_barrier_wait(&barrier))
PARK(park_futex, futex(&word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0))
PARK(park_read, char byte; if (read(empty_pipe[0], &byte, 1)) _exit(4))
PARK(park_event, uint64_t n; if (read(event_fd, &n, sizeof(n))) _exit(4))
PARK(park_poll, struct pollfd p = { .fd = empty_pipe[0], .events = POLLIN }; poll(&p, 1, -1))
PARK(park_epoll, struct epoll_event e; epoll_wait(epoll_fd, &e, 1, -1))
PARK(park_select, select(0, NULL, NULL, NULL, NULL))
PARK(park_accept, accept(listen_fd, NULL, NULL))
PARK(park_sleep, pause_us(1000000000))
PARK(park_pause, pause())
PARK(park_sigwait, sigset_t s; int sig; sigemptyset(&s); sigaddset(&s, SIGRTMAX); sigwait(&s, &sig))

static const struct park {
	const char *name;
	void (*fn)(void);
} parks[] = {
	{ "park_mutex", park_mutex },	  { "park_cond", park_cond },
	{ "park_sem", park_sem },	  { "park_rwlock", park_rwlock },
	{ "park_barrier", park_barrier }, { "park_futex", park_futex },
	{ "park_read", park_read },	  { "park_event", park_event },
	{ "park_poll", park_poll },	  { "park_epoll", park_epoll },
	{ "park_select", park_select },	  { "park_accept", park_accept },
	{ "park_sleep", park_sleep },	  { "park_pause", park_pause },
	{ "park_sigwait", park_sigwait },
};
#define NR_PARKS (sizeof(parks) / sizeof(parks[0]))

struct parked {
	int tid, depth;
	const struct park *park;
	uint64_t since_ns;
};
static struct parked parked[MAX_PARKED];

static NOIPA void deeper(int n, void (*fn)(void))
{
	volatile char room[200];

	room[n] = 0;
	(void)room[n];
	if (n > 1)
		deeper(n - 1, fn);
	else
		fn();
	NO_TAIL_CALL();
}

static NOIPA void *park_thread(void *arg)
{
	struct parked *p = arg;
	char name[16];

	snprintf(name, sizeof(name), "park %d", (int)(p - parked));
	prctl(PR_SET_NAME, name);
	p->since_ns = now_ns();
	/* comes to a CPU once more: what a virtual machine loses before would count as sleep */
	pause_us(1);
	waits_set(&p->tid, gettid());
	if (p->depth)
		deeper(p->depth, p->park->fn);
	else
		p->park->fn();
	_exit(4); /* nobody is to come back */
}

/* ---- the two that spin ---- */

static int spinner_tid, clock_tid;
static uint64_t longest_ns, looks;

static NOIPA void *spinner_thread(void *arg)
{
	prctl(PR_SET_NAME, "spinner");
	waits_set(&spinner_tid, gettid());
	spin();
	NO_TAIL_CALL();
	return arg;
}

/*
 * The thread's own pauses: looks at the clock all the time. No other thread takes the CPU away from
 * it while it looks, as it is a real-time one (where that is allowed), which rests now and then so
 * that others need not wait for long: a pause is what the kernel, or who stops the process, does to
 * it.
 */
static NOIPA void clock_look(void)
{
	uint64_t last = now_ns(), now, end = last + waits_number("look", 20) * 1000000;

	do {
		now = now_ns();
		if (now - last > __atomic_load_n(&longest_ns, __ATOMIC_RELAXED))
			__atomic_store_n(&longest_ns, now - last, __ATOMIC_RELAXED);
		last = now;
		looks++;
	} while (now < end);
}

static NOIPA void *clock_thread(void *arg)
{
	struct sched_param rt = { .sched_priority = 1 };

	prctl(PR_SET_NAME, "clock");
	sched_setscheduler(0, SCHED_FIFO, &rt);
	waits_set(&clock_tid, gettid());
	for (;;) {
		clock_look();
		pause_us(5000);
	}
	return arg;
}

static void make_things(void)
{
	struct sockaddr_un a = {
		.sun_family = AF_UNIX
	}; /* its name is empty: the kernel chooses one, unix(7) */

	if (pipe(empty_pipe))
		_exit(3);
	sem_init(&sem, 0, 0);
	pthread_barrier_init(&barrier, NULL, MAX_PARKED + 1);
	pthread_mutex_lock(&held);
	pthread_rwlock_wrlock(&held_rw);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	event_fd = eventfd(0, EFD_CLOEXEC);
	listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(listen_fd, (struct sockaddr *)&a, sizeof(a.sun_family)) || listen(listen_fd, 1))
		_exit(3);
}

static void make_threads(int n)
{
	pthread_attr_t attr;
	int i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	for (i = 0; i < n; i++) {
		pthread_t t;

		parked[i].park = &parks[i % NR_PARKS];
		parked[i].depth = i % NR_DEPTHS;
		if (pthread_create(&t, &attr, park_thread, &parked[i]))
			_exit(3);
	}
	for (i = 0; i < n; i++)
		while (!waits_get(&parked[i].tid) || !is_asleep(parked[i].tid))
			pause_us(100);
}

static void say_threads(int n)
{
	int i, k;

	waits_say("{\"threads\":[");
	for (i = 0; i < n; i++) {
		waits_say("%s{\"tid\":%d,\"name\":\"park %d\",\"frames\":[\"park_thread\",",
			  i ? "," : "", parked[i].tid, i);
		for (k = 0; k < parked[i].depth; k++)
			waits_say("\"deeper\",");
		waits_say("\"%s\"],\"parked_ns\":%ld}", parked[i].park->name,
			  (long)parked[i].since_ns);
	}
	waits_say("],\"clock\":%d,\"spinner\":%d}\n", clock_tid, spinner_tid);
	waits_flush();
}

int main(int argc, char **argv)
{
	long n;
	pthread_t t;
	sigset_t set;
	int sig;

	waits_begin(argc, argv);
	n = waits_number("n", 200);
	if (n < 0 || n > MAX_PARKED)
		return 2;
	make_things();
	make_threads(n);
	if (!waits_has("still")) {
		waits_thread(&t, spinner_thread, NULL);
		waits_thread(&t, clock_thread, NULL);
		while (!waits_get(&spinner_tid) || !waits_get(&clock_tid))
			pause_us(100);
	}
	prog_ready();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &sig);
	say_threads(n);
	for (;;) {
		sigwait(&set, &sig);
		waits_say("{\"longest_ns\":%ld,\"looks\":%ld}\n",
			  (long)__atomic_exchange_n(&longest_ns, 0, __ATOMIC_RELAXED), (long)looks);
		waits_flush();
	}
}
