/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs with known waits share: threads that wait for each other in turns, and the
 * account of for how long.
 *
 * `PROGRAM SECONDS MODE[,MODE...]|all [now] [exit] [NAME=NUMBER...]` prints "ready", waits for
 * SIGUSR1 (with `now` it does not), goes through n=N rounds of each mode, in which the lock is held
 * for hold=US, and prints the truth as one line of JSON:
 *     {"waits":[{"mode":"mutex","side":"waiter","frames":["waiter_thread","waiter_mutex"],
 *       "thread":"w mutex","count":40,"ns":..,"low":..,"high":..,"woken":""}, ...]}
 * count: waits in which the thread went to sleep, by the kernel's own count: where it does not get
 * the CPU at once, what it waits for may have come by then.
 * low, high: the wait is in between, by clocks that the program reads around it. Low is from when
 * the waiter was seen asleep to just before the release, or to its time-out, which is never early;
 * high is from just before the waiter asks to when it goes on, less what it waited for a CPU; for
 * the holder, to when the release is over, less what the waiter waited for a CPU before it slept.
 * ns: an estimate, for measurements. From just before the waiter asks, less what it was ready
 * before it slept, to just before the holder releases, or half way through that where it releases
 * several; if the wait ends some time behind the holder's last function, or by a timer, which may
 * be late, to when the waiter goes on, less what it was ready since it slept.
 * The threads wait for their turns by looking at the clock, never in a futex: all of those that
 * there are belong to the modes. Waiters are called "w MODE", holders "h MODE", with tag=N (one
 * digit) "wN MODE" and "hN MODE".
 */
#ifndef WAITS_H
#define WAITS_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>

#if __has_include(<linux/futex.h>) /* musl-gcc has only musl's headers */
#include <linux/futex.h>
#endif

#include "prog.h"

#define WAITS_MAX_WAITERS 4

struct waits_mode {
	const char *name;
	const char *waiter_fn, *holder_fn; /* names of wait and release, as they are in stacks */
	const char *woken;		   /* the label */
	int waiters;
	int no_mutex; /* nobody holds: a time-out, a signal */
	int inside;   /* release calls waits_hold itself */
	int slow;     /* the wait ends some time behind release */
	int greedy;   /* the holder does not let go of the CPU for 3 ms after its release */
	int alone;    /* the wait ends by itself after hold, or somewhat earlier */
	void (*prepare)(int round); /* in the holder, before the waiters are let in; or NULL */
	void (*wait)(void);
	void (*release)(void);
	void (*after)(void); /* in the waiter, or NULL */
};

struct waits_waiter {
	pthread_t thread;
	int tid, started, done, slept;
	long sleeps; /* before it asks: how often it has gone to sleep */
	uint64_t ready_ns, from_ns, until_ns;
	/* when it asked, was seen asleep; what it waited for a CPU: in all its life before it
	 * asked, and from then until it slept */
	uint64_t asked_ns, seen_ns, queued_ns, queued_first_ns;
	uint64_t longest_ns; /* the wait, at most */
};

static int waits_argc;
static char **waits_argv;
static const struct waits_mode *waits_now; /* the mode at work */
static struct waits_waiter waits_waiter[WAITS_MAX_WAITERS];
static int waits_round, waits_open, waits_quit, waits_unsupported;
static long waits_n, waits_hold_us, waits_tag;
static uint64_t waits_release_ns; /* when the release began */

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static inline uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline void pause_us(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&t, NULL);
}

static inline int waits_get(const int *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void waits_set(int *p, int value)
{
	__atomic_store_n(p, value, __ATOMIC_RELEASE);
}

static inline void waits_until(const int *p, int value)
{
	while (waits_get(p) != value)
		pause_us(30);
}

/* How often the calling thread has gone to sleep. */
static inline long times_slept(void)
{
	struct rusage r;

	getrusage(RUSAGE_THREAD, &r);
	return r.ru_nvcsw;
}

/* A file of a thread of ours, "" if there is none. */
static inline void read_task(int tid, const char *name, char *text, size_t sz)
{
	char path[64];
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sz - 1);
		close(fd);
	}
	text[n < 0 ? 0 : n] = 0;
}

/* How often a thread of ours has gone to sleep, or is about to: the count grows just before it
 * leaves its CPU (proc_pid_status(5)). */
static inline long times_slept_of(int tid)
{
	const char *name = "\nvoluntary_ctxt_switches:";
	char text[4096], *at;

	read_task(tid, "status", text, sizeof(text));
	at = strstr(text, name);
	return at ? atol(at + strlen(name)) : -1;
}

/* That a thread has been ready in all its life, on a CPU or waiting for one; of one that runs, up
 * to some ms ago (proc_pid_schedstat(5)). */
static inline uint64_t ready_ns(int tid, uint64_t *ret_queued)
{
	unsigned long long ran = 0, queued = 0;
	char text[128];

	read_task(tid, "schedstat", text, sizeof(text));
	if (sscanf(text, "%llu %llu", &ran, &queued) != 2)
		_exit(3);
	*ret_queued = queued;
	return ran + queued;
}

/* Has a thread of ours left its CPU in a system call (proc_pid_syscall(5))? Its state is that of a
 * sleeper before it has. */
static inline int is_asleep(int tid)
{
	char text[256];

	read_task(tid, "syscall", text, sizeof(text));
	return text[0] >= '0' && text[0] <= '9';
}

/* Has a thread of ours, which had gone to sleep so often before, left its CPU to sleep once more? */
static inline int has_slept(int tid, long before)
{
	if (times_slept_of(tid) <= before)
		return 0;
	/* who asks for the system call of a thread that does not run is kept waiting until the
	 * thread is off its CPU (task_current_syscall() of Linux) */
	is_asleep(tid);
	return 1;
}

/* Of a waiter, 'w', or a holder, 'h', as stacks are labelled with it. */
static inline const char *thread_name(char side, const char *name, char text[16])
{
	char tag[2] = { (char)(waits_tag ? '0' + waits_tag % 10 : 0), 0 };

	snprintf(text, 16, "%c%s %.12s", side, tag, name);
	return text;
}

static inline void name_thread(char side, const char *name)
{
	char text[16];

	prctl(PR_SET_NAME, thread_name(side, name, text));
}

/* A real-time thread that looks for something now and then leaves those whom it waits for no CPU
 * where each look is expensive: only from when all are asleep to when the CPU is let go of. */
static inline void set_real_time(int on)
{
	struct sched_param p = { .sched_priority = on };

	sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &p);
}

/* Returns once a waiter that was let in is asleep, or its wait over. */
static inline void waits_see(struct waits_waiter *w)
{
	waits_until(&w->started, waits_round);
	while (!has_slept(w->tid, w->sleeps) && waits_get(&w->done) != waits_round)
		pause_us(10);
	w->seen_ns = now_ns();
}

/* Lets the waiters in, and returns once all have been asleep for a while. */
static NOIPA void waits_hold(void)
{
	uint64_t queued, asleep_ns;
	int i;

	waits_set(&waits_open, waits_round);
	for (i = 0; i < waits_now->waiters; i++) {
		struct waits_waiter *w = &waits_waiter[i];

		waits_see(w);
		/* what it did before it slept is no part of the wait */
		asleep_ns = ready_ns(w->tid, &queued);
		w->from_ns += asleep_ns - w->ready_ns;
		w->ready_ns = asleep_ns;
		w->queued_first_ns = queued - w->queued_ns;
	}
	if (waits_now->greedy)
		set_real_time(1);
	pause_us(waits_hold_us);
	waits_release_ns = now_ns();
}

/* from_ns and ready_ns of one moment, and not of before and after a loss of the CPU; where it is
 * lost all the time, of the shortest of some moments. */
static inline void waits_take_times(struct waits_waiter *w)
{
	uint64_t begin_ns, end_ns, queued, ready, shortest = UINT64_MAX;
	int i;

	for (i = 0; i < 50 && shortest > 50000; i++) {
		begin_ns = now_ns();
		ready_ns(w->tid, &queued);
		ready = queued + clock_ns(CLOCK_THREAD_CPUTIME_ID);
		end_ns = now_ns();
		if (end_ns - begin_ns < shortest) {
			shortest = end_ns - begin_ns;
			w->asked_ns = begin_ns;
			w->queued_ns = queued;
			w->ready_ns = ready;
			w->from_ns = end_ns;
		}
	}
}

static NOIPA void *waiter_thread(void *arg)
{
	struct waits_waiter *w = (struct waits_waiter *)arg;
	const struct waits_mode *m = waits_now;
	uint64_t queued, woken_ns;
	int round;

	name_thread('w', m->name);
	waits_set(&w->tid, gettid());
	for (round = 1; round <= waits_n; round++) {
		waits_until(&waits_open, round);
		waits_take_times(w);
		w->sleeps = times_slept();
		waits_set(&w->started, round);
		m->wait();
		w->slept = times_slept() > w->sleeps;
		ready_ns(w->tid, &queued);
		woken_ns = queued + clock_ns(CLOCK_THREAD_CPUTIME_ID) - w->ready_ns;
		w->until_ns = now_ns();
		/* an interrupt is none of its waits, and may be taken for one */
		w->longest_ns = w->until_ns - w->asked_ns - (queued - w->queued_ns);
		/* when it was ready to go on */
		w->until_ns -= woken_ns;
		if (m->after)
			m->after();
		waits_set(&w->done, round);
	}
	pause(); /* libc's lock of its stacks, which ending threads take, is none of the modes */
	return NULL;
}

struct waits_sum {
	uint64_t count, ns, low, high, longest;
};

static inline uint64_t waits_over(uint64_t to, uint64_t from)
{
	return to > from ? to - from : 0;
}

static inline void waits_one_round(const struct waits_mode *m, int round, struct waits_sum *sum)
{
	uint64_t released, cpu_ns;
	int i;

	waits_round = round;
	if (m->prepare)
		m->prepare(round);
	if (m->alone) {
		waits_set(&waits_open, round);
		waits_see(&waits_waiter[0]);
	} else if (!m->inside) {
		waits_hold();
	}
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (m->release)
		m->release();
	cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	released = now_ns();
	while (m->greedy && now_ns() < released + 3000000)
		;
	if (m->greedy)
		set_real_time(0);
	for (i = 0; i < m->waiters; i++) {
		struct waits_waiter *w = &waits_waiter[i];
		uint64_t end, no_sooner;

		waits_until(&w->done, round);
		end = m->slow || m->alone ? w->until_ns : waits_release_ns;
		/* who releases several wakes one behind the other */
		if (m->waiters > 1 && !m->inside && !m->slow)
			end += cpu_ns / 2;
		if (!w->slept)
			continue;
		sum->count++;
		sum->longest += w->longest_ns;
		sum->ns += waits_over(end, w->from_ns);
		no_sooner = m->alone ? w->asked_ns + waits_hold_us * 1000 : waits_release_ns;
		sum->low += waits_over(no_sooner, w->seen_ns);
		sum->high += m->slow ? w->longest_ns : released - w->asked_ns - w->queued_first_ns;
	}
}

static NOIPA void *holder_thread(void *arg)
{
	struct waits_sum *sum = (struct waits_sum *)arg;
	const struct waits_mode *m = waits_now;
	int i;

	name_thread('h', m->name);
	for (i = 0; i < m->waiters; i++)
		while (!waits_get(&waits_waiter[i].tid))
			pause_us(30);
	for (i = 1; i <= waits_n && !waits_unsupported; i++)
		waits_one_round(m, i, sum);
	waits_set(&waits_quit, 1);
	pause();
	return NULL;
}

static char waits_text[1 << 19];
static size_t waits_text_len;

static inline __attribute__((format(printf, 1, 2))) void waits_say(const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(waits_text + waits_text_len, sizeof(waits_text) - waits_text_len, format,
		      args);
	va_end(args);
	if (n < 0 || (size_t)n >= sizeof(waits_text) - waits_text_len)
		_exit(3);
	waits_text_len += n;
}

static inline void waits_flush(void)
{
	const char *at = waits_text;

	while (waits_text_len) {
		ssize_t n = write(STDOUT_FILENO, at, waits_text_len);

		if (n <= 0)
			_exit(1);
		at += n;
		waits_text_len -= n;
	}
}

static inline void waits_say_side(const struct waits_mode *m, const struct waits_sum *sum,
				  int waiter)
{
	const char *fn = waiter ? m->waiter_fn : m->holder_fn, *quote = *fn ? "\"" : "";
	char name[16];

	waits_say("%s{\"mode\":\"%s\",\"side\":\"%s\",\"frames\":[",
		  waits_text[waits_text_len - 1] == '[' ? "" : ",", m->name,
		  waiter ? "waiter" : "holder");
	/* a thread that is joined has a first function of its own */
	if (waiter || !m->slow)
		waits_say("\"%s_thread\",", waiter ? "waiter" : "holder");
	waits_say("%s%s%s],\"thread\":\"%s\",", quote, fn, quote,
		  thread_name(waiter ? 'w' : 'h', m->name, name));
	waits_say("\"count\":%ld,\"ns\":%ld,\"low\":%ld,\"high\":%ld,\"woken\":\"%s\"}",
		  (long)sum->count, (long)sum->ns, (long)sum->low,
		  (long)(waiter ? sum->longest : sum->high), m->woken ? m->woken : "");
}

static inline void waits_thread(pthread_t *t, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (pthread_create(t, &attr, fn, arg))
		_exit(3);
	pthread_attr_destroy(&attr);
}

/* Nobody is joined: that would be a wait. */
static inline void waits_run_mode(const struct waits_mode *m)
{
	struct waits_sum sum = { 0, 0, 0, 0, 0 };
	pthread_t holder;
	int i;

	waits_now = m;
	waits_open = waits_quit = waits_unsupported = 0;
	memset(waits_waiter, 0, sizeof(waits_waiter));
	for (i = 0; i < m->waiters; i++)
		waits_thread(&waits_waiter[i].thread, waiter_thread, &waits_waiter[i]);
	waits_thread(&holder, holder_thread, &sum);
	waits_until(&waits_quit, 1);
	if (waits_unsupported)
		return;
	waits_say_side(m, &sum, 1);
	if (!m->no_mutex)
		waits_say_side(m, &sum, 0);
}

static inline int waits_has(const char *word)
{
	int i;

	for (i = 3; i < waits_argc; i++)
		if (!strcmp(waits_argv[i], word))
			return 1;
	return 0;
}

/* The NUMBER of "NAME=NUMBER". */
static inline long waits_number(const char *name, long otherwise)
{
	size_t len = strlen(name);
	int i;

	for (i = 3; i < waits_argc; i++)
		if (!strncmp(waits_argv[i], name, len) && waits_argv[i][len] == '=')
			return atol(waits_argv[i] + len + 1);
	return otherwise;
}

/* Is it one of "a,b,c", or are all wanted? */
static inline int waits_wanted(const char *list, const char *name)
{
	size_t len = strlen(name);
	const char *at;

	if (!strcmp(list, "all"))
		return 1;
	for (at = list; (at = strstr(at, name)); at += len)
		if ((at == list || at[-1] == ',') && (!at[len] || at[len] == ','))
			return 1;
	return 0;
}

/* Returns the mode. No thread is there yet, so that all block the signal. */
static inline const char *waits_begin(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);
	sigset_t set;

	waits_argc = argc;
	waits_argv = argv;
	waits_n = waits_number("n", 40);
	waits_hold_us = waits_number("hold", 2000);
	waits_tag = waits_number("tag", 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	prctl(PR_SET_TIMERSLACK, 1);
	return mode;
}

/* Until the next SIGUSR1, which is blocked, so that one that comes early is not lost. */
static inline void waits_go(void)
{
	sigset_t set;
	int sig;

	prog_ready();
	if (waits_has("now")) {
		pause_us(waits_number("pause", 0) * 1000);
		return;
	}
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &sig);
}

static inline void waits_end(void)
{
	waits_flush();
	while (!waits_has("exit"))
		pause();
}

static inline void waits_run(const char *list, const struct waits_mode *modes, size_t cnt)
{
	size_t i;

	waits_go();
	waits_say("{\"waits\":[");
	for (i = 0; i < cnt; i++)
		if (waits_wanted(list, modes[i].name))
			waits_run_mode(&modes[i]);
	waits_say("]}\n");
	waits_end();
}

static inline __attribute__((unused)) long futex(void *addr, int op, unsigned val, const void *arg4,
						 void *addr2, unsigned val3)
{
	return syscall(SYS_futex, addr, op, val, arg4, addr2, val3);
}

#endif
