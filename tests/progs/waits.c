// SPDX-License-Identifier: BSD-2-Clause
/* A program with known waits (waits.h): in what pthreads offer. Each mode is one kind of lock. */
#include <semaphore.h>

#include "waits.h"

#define CALL(name, ...)              \
	static NOIPA void name(void) \
	{                            \
		__VA_ARGS__;         \
		NO_TAIL_CALL();      \
	}

/* ---- mutexes ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t pi, robust;

static void take_mutex(int round)
{
	(void)round;
	pthread_mutex_lock(&mutex);
}
CALL(waiter_mutex, pthread_mutex_lock(&mutex))
CALL(holder_mutex, pthread_mutex_unlock(&mutex))
CALL(drop_mutex, pthread_mutex_unlock(&mutex))

/* Both have the same CPU, and the holder is first there (set_real_time): who is woken has to wait
 * for it, which is no part of the wait for the lock. */
static void take_greedy(int round)
{
	cpu_set_t set;

	if (round == 1) {
		CPU_ZERO(&set);
		CPU_SET(0, &set);
		sched_setaffinity(0, sizeof(set), &set);
		sched_setaffinity(waits_waiter[0].tid, sizeof(set), &set);
	}
	pthread_mutex_lock(&mutex);
}
CALL(waiter_greedy, pthread_mutex_lock(&mutex))
CALL(holder_greedy, pthread_mutex_unlock(&mutex))

static void take_pi(int round)
{
	(void)round;
	pthread_mutex_lock(&pi);
}
CALL(waiter_pi, pthread_mutex_lock(&pi))
CALL(holder_pi, pthread_mutex_unlock(&pi))
CALL(drop_pi, pthread_mutex_unlock(&pi))

static void take_robust(int round)
{
	(void)round;
	pthread_mutex_lock(&robust);
}
CALL(waiter_robust, pthread_mutex_lock(&robust))
CALL(holder_robust, pthread_mutex_unlock(&robust))
CALL(drop_robust, pthread_mutex_unlock(&robust))

static void make_mutexes(void)
{
	pthread_mutexattr_t a;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&pi, &a);
	pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_NONE);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &a);
	pthread_mutexattr_destroy(&a);
}

/* ---- rwlocks: a writer waits for a reader, readers wait for a writer ---- */

static pthread_rwlock_t rw = PTHREAD_RWLOCK_INITIALIZER;

static void take_read(int round)
{
	(void)round;
	pthread_rwlock_rdlock(&rw);
}

static void take_write(int round)
{
	(void)round;
	pthread_rwlock_wrlock(&rw);
}
CALL(waiter_write, pthread_rwlock_wrlock(&rw))
CALL(waiter_read, pthread_rwlock_rdlock(&rw))
CALL(holder_reads, pthread_rwlock_unlock(&rw))
CALL(holder_writes, pthread_rwlock_unlock(&rw))
CALL(drop_rw, pthread_rwlock_unlock(&rw))

/* ---- condition variables. Nobody holds the mutex when the waiter comes out. ---- */

static pthread_mutex_t cond_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int cond_is;

static inline __attribute__((always_inline)) void cond_await(void)
{
	pthread_mutex_lock(&cond_mutex);
	while (!cond_is)
		pthread_cond_wait(&cond, &cond_mutex);
	cond_is = 0;
	pthread_mutex_unlock(&cond_mutex);
}

static inline void cond_make(void)
{
	pthread_mutex_lock(&cond_mutex);
	cond_is = 1;
	pthread_mutex_unlock(&cond_mutex);
}
CALL(waiter_cond, cond_await())
CALL(holder_cond, cond_make(); pthread_cond_signal(&cond))
CALL(waiter_broadcast, cond_await())
CALL(holder_broadcast, cond_make(); pthread_cond_broadcast(&cond))

/* ---- the rest ---- */

static sem_t sem;
CALL(waiter_sem, sem_wait(&sem))
CALL(holder_sem, sem_post(&sem))

static pthread_barrier_t barrier;
CALL(waiter_barrier, pthread_barrier_wait(&barrier))
CALL(holder_barrier, pthread_barrier_wait(&barrier))

static pthread_once_t once;

static void make_once(int round)
{
	static const pthread_once_t fresh = PTHREAD_ONCE_INIT;

	(void)round;
	once = fresh;
}
CALL(waiter_once, pthread_once(&once, waits_hold))
CALL(holder_once, pthread_once(&once, waits_hold))

/* ---- join: a thread is waited for that ends as most do, or by the bare system call ---- */

static pthread_t joined;
static int joined_ends;

static void *holder_join(void *arg)
{
	(void)arg;
	name_thread('h', "join");
	waits_until(&joined_ends, 1);
	waits_release_ns = now_ns();
	return NULL;
}

static NOIPA void holder_exit(void)
{
	waits_release_ns = now_ns();
	syscall(SYS_exit, 0);
	__builtin_unreachable();
}

static NOIPA void *exit_thread(void *arg)
{
	name_thread('h', "exit");
	waits_until(&joined_ends, 1);
	holder_exit();
	return arg;
}

static void make_joined(int round)
{
	(void)round;
	joined_ends = 0;
	if (pthread_create(&joined, NULL,
			   strcmp(waits_now->name, "exit") ? holder_join : exit_thread, NULL))
		_exit(3);
}

static void end_joined(void)
{
	waits_set(&joined_ends, 1);
}
CALL(waiter_join, pthread_join(joined, NULL))
#ifdef __GLIBC__ /* musl's join waits for something else than the kernel's word */
CALL(waiter_exit, pthread_join(joined, NULL))
#endif

/* ---- nobody releases ---- */

static struct timespec deadline(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	t.tv_nsec += waits_hold_us * 1000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static pthread_mutex_t never_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never_cond = PTHREAD_COND_INITIALIZER;
static sem_t never_sem;

static NOIPA void waiter_timedwait(void)
{
	struct timespec t = deadline(CLOCK_REALTIME);

	pthread_mutex_lock(&never_mutex);
	while (pthread_cond_timedwait(&never_cond, &never_mutex, &t) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&never_mutex);
}

static NOIPA void waiter_semtimed(void)
{
	struct timespec t = deadline(CLOCK_REALTIME);

	while (!sem_timedwait(&never_sem, &t) || errno != ETIMEDOUT)
		;
}

static void on_signal(int sig)
{
	(void)sig;
}

static NOIPA void waiter_signal(void)
{
	while (!sem_wait(&never_sem) || errno != EINTR)
		;
}

static void send_signal(void)
{
	syscall(SYS_tgkill, getpid(), waits_waiter[0].tid, SIGUSR2);
}

static const struct waits_mode modes[] = {
	{ .name = "mutex",
	  .waiter_fn = "waiter_mutex",
	  .holder_fn = "holder_mutex",
	  .waiters = 1,
	  .prepare = take_mutex,
	  .wait = waiter_mutex,
	  .release = holder_mutex,
	  .after = drop_mutex },
	{ .name = "greedy",
	  .waiter_fn = "waiter_greedy",
	  .holder_fn = "holder_greedy",
	  .waiters = 1,
	  .greedy = 1,
	  .prepare = take_greedy,
	  .wait = waiter_greedy,
	  .release = holder_greedy,
	  .after = drop_mutex },
	{ .name = "pi",
	  .waiter_fn = "waiter_pi",
	  .holder_fn = "holder_pi",
	  .waiters = 1,
	  .prepare = take_pi,
	  .wait = waiter_pi,
	  .release = holder_pi,
	  .after = drop_pi },
	{ .name = "robust",
	  .waiter_fn = "waiter_robust",
	  .holder_fn = "holder_robust",
	  .waiters = 1,
	  .prepare = take_robust,
	  .wait = waiter_robust,
	  .release = holder_robust,
	  .after = drop_robust },
	{ .name = "rwlock_wr",
	  .waiter_fn = "waiter_write",
	  .holder_fn = "holder_reads",
	  .waiters = 1,
	  .prepare = take_read,
	  .wait = waiter_write,
	  .release = holder_reads,
	  .after = drop_rw },
	{ .name = "rwlock_rd",
	  .waiter_fn = "waiter_read",
	  .holder_fn = "holder_writes",
	  .waiters = 3,
	  .prepare = take_write,
	  .wait = waiter_read,
	  .release = holder_writes,
	  .after = drop_rw },
	{ .name = "cond",
	  .waiter_fn = "waiter_cond",
	  .holder_fn = "holder_cond",
	  .waiters = 1,
	  .wait = waiter_cond,
	  .release = holder_cond },
	{ .name = "broadcast",
	  .waiter_fn = "waiter_broadcast",
	  .holder_fn = "holder_broadcast",
	  .waiters = 1,
	  .wait = waiter_broadcast,
	  .release = holder_broadcast },
	{ .name = "sem",
	  .waiter_fn = "waiter_sem",
	  .holder_fn = "holder_sem",
	  .waiters = 1,
	  .wait = waiter_sem,
	  .release = holder_sem },
	{ .name = "barrier",
	  .waiter_fn = "waiter_barrier",
	  .holder_fn = "holder_barrier",
	  .waiters = 3,
	  .wait = waiter_barrier,
	  .release = holder_barrier },
	{ .name = "once",
	  .waiter_fn = "waiter_once",
	  .holder_fn = "holder_once",
	  .waiters = 2,
	  .inside = 1,
	  .prepare = make_once,
	  .wait = waiter_once,
	  .release = holder_once },
	{ .name = "join",
	  .waiter_fn = "waiter_join",
	  .holder_fn = "",
	  .waiters = 1,
	  .slow = 1,
	  .prepare = make_joined,
	  .wait = waiter_join,
	  .release = end_joined },
#ifdef __GLIBC__
	{ .name = "exit",
	  .waiter_fn = "waiter_exit",
	  .holder_fn = "holder_exit",
	  .waiters = 1,
	  .slow = 1,
	  .prepare = make_joined,
	  .wait = waiter_exit,
	  .release = end_joined },
#endif
	{ .name = "timedwait",
	  .waiter_fn = "waiter_timedwait",
	  .woken = "time-out",
	  .waiters = 1,
	  .no_mutex = 1,
	  .alone = 1,
	  .wait = waiter_timedwait },
	{ .name = "semtimed",
	  .waiter_fn = "waiter_semtimed",
	  .woken = "time-out",
	  .waiters = 1,
	  .no_mutex = 1,
	  .alone = 1,
	  .wait = waiter_semtimed },
	{ .name = "signal",
	  .waiter_fn = "waiter_signal",
	  .woken = "signal",
	  .waiters = 1,
	  .no_mutex = 1,
	  .wait = waiter_signal,
	  .release = send_signal },
};

int main(int argc, char **argv)
{
	const char *mode = waits_begin(argc, argv);
	struct sigaction act = { .sa_handler = on_signal };

	sigaction(SIGUSR2, &act, NULL);
	make_mutexes();
	sem_init(&sem, 0, 0);
	sem_init(&never_sem, 0, 0);
	pthread_barrier_init(&barrier, NULL, 4);
	waits_run(mode, modes, sizeof(modes) / sizeof(modes[0]));
	return 0;
}
