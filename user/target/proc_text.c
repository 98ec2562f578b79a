// SPDX-License-Identifier: BSD-2-Clause
#include "target/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/rest.h"
#include "base/thread.h"
#include "base/util.h"
#include "target/proc_maps.h"

#define PROC "/proc/"
#define STACK_SZ (64U << 10)
#define TICK_NS (20 * NSEC_PER_SEC / 1000)
#define MAX_IDLE_TICKS 50 /* in which the thread was not about to go on */
#define MAX_HALVINGS 3	  /* of that, one for each process that is left alone */
#define MAX_NS (10 * NSEC_PER_SEC)
#define MAX_LEFT 64 /* threads that still wait */
/* Of all processes together: as many ticks, in so long. */
#define CREDIT_TICKS 100
#define CREDIT_NS (10 * NSEC_PER_SEC)
#define NO_CREDIT_NS (NSEC_PER_SEC / 1000)

static struct rests silent; /* processes that did not let us have one of their files in time */

static struct {
	uint64_t until_ns;
	int ticks; /* in which a thread was not about to go on */
} waited;

enum state {
	ASKED, /* what is below is the thread's until it is DONE */
	DONE,
	LEFT, /* nobody waits for it any more: all of it is the thread's */
};

struct worker {
	sem_t wanted, done;
	atomic_int state;
	atomic_int tid; /* 0: it has not run yet */
	bool quit;
	char path[64];
	bool link; /* it is where it leads to that is wanted */
	int fd;	   /* -1: it is not open */
	ssize_t n; /* bytes in buf, fewer than it holds at the end; or -errno */
	char buf[64U << 10];
};

static struct worker *worker; /* NULL: there is none */
static pid_t worker_of;	      /* a child of ours has no thread */
static atomic_int left_cnt;

/* ---- the thread, which asks for no memory: it would get some of its own ---- */

static ssize_t fill(struct worker *w)
{
	size_t sz = 0;
	ssize_t n = 1;

	if (w->fd < 0)
		w->fd = open(w->path, O_RDONLY | O_CLOEXEC);
	if (w->fd < 0)
		return -errno;
	while (n > 0 && sz < sizeof(w->buf)) {
		n = read(w->fd, w->buf + sz, sizeof(w->buf) - sz);
		sz += n > 0 ? (size_t)n : 0;
	}
	return n < 0 ? -errno : (ssize_t)sz;
}

static ssize_t follow(struct worker *w)
{
	ssize_t n = readlink(w->path, w->buf, sizeof(w->buf));

	return n < 0 ? -errno : n;
}

static void close_file(struct worker *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

static void free_worker(struct worker *w)
{
	close_file(w);
	sem_destroy(&w->wanted);
	sem_destroy(&w->done);
	free(w);
}

/* Signals are blocked here. */
static void *work(void *arg)
{
	struct worker *w = arg;

	w->tid = gettid();
	while (!sem_wait(&w->wanted) && !w->quit) {
		w->n = w->link ? follow(w) : fill(w);
		if (atomic_exchange(&w->state, DONE) == LEFT) {
			left_cnt--;
			break;
		}
		sem_post(&w->done);
	}
	free_worker(w);
	return NULL;
}

/* ---- us ---- */

static struct worker *start(void)
{
	struct worker *w = left_cnt < MAX_LEFT ? calloc(1, sizeof(*w)) : NULL;
	pthread_t thread;

	if (!w)
		return NULL;
	sem_init(&w->wanted, 0, 0);
	sem_init(&w->done, 0, 0);
	w->fd = -1;
	if (thread_start(&thread, STACK_SZ, work, w)) {
		free_worker(w);
		return NULL;
	}
	pthread_detach(thread);
	return w;
}

static struct worker *take_worker(void)
{
	if (worker_of != getpid()) {
		worker = NULL;
		left_cnt = 0;
		worker_of = getpid();
	}
	if (!worker)
		worker = start();
	return worker;
}

void proc_text_restart(void)
{
	if (!worker || worker_of != getpid())
		return;
	worker->quit = true;
	sem_post(&worker->wanted);
	worker = NULL;
}

/* One that begins to keep us waiting is waited for less patiently while there are others. */
static int max_idle_ticks(void)
{
	unsigned int cnt = rests__cnt(&silent);

	return MAX_IDLE_TICKS >> MIN(cnt, MAX_HALVINGS);
}

/* There may be more processes that keep us waiting than are remembered, and than there is time for. */
static bool has_credit(void)
{
	uint64_t now = util_monotonic_ns();

	if (now >= waited.until_ns) {
		waited.until_ns = now + CREDIT_NS;
		waited.ticks = 0;
	}
	return waited.ticks < CREDIT_TICKS;
}

static bool is_done_within(struct worker *w, uint64_t ns)
{
	uint64_t until_ns = util_monotonic_ns() + ns;
	const struct timespec until = { .tv_sec = (time_t)(until_ns / NSEC_PER_SEC),
					.tv_nsec = (long)(until_ns % NSEC_PER_SEC) };

	while (sem_clockwait(&w->done, CLOCK_MONOTONIC, &until))
		if (errno != EINTR)
			return false;
	return true;
}

/* Is it in the middle of something, and only waits for a CPU? */
static bool is_about_to_go_on(const struct worker *w)
{
	return !w->tid || proc_is_runnable(w->tid);
}

/* Until it is done. 0 or -ETIMEDOUT; without credit at once, and nobody is blamed for that. */
static int await(struct worker *w, struct rest_key process, uint64_t deadline_ns)
{
	bool credit = has_credit();
	int idle = 0;

	while (!is_done_within(w, credit ? TICK_NS : NO_CREDIT_NS)) {
		bool runnable = is_about_to_go_on(w);

		/* it may have done it just now */
		if (!credit && !runnable)
			return is_done_within(w, 0) ? 0 : -ETIMEDOUT;
		idle = runnable ? 0 : idle + 1;
		waited.ticks += !runnable;
		credit = has_credit();
		if (idle > max_idle_ticks() || util_monotonic_ns() > deadline_ns) {
			rests__begin(&silent, process);
			return -ETIMEDOUT;
		}
	}
	return 0;
}

/* Nobody waits for it any more. False: it is done after all. */
static bool leave(struct worker *w)
{
	left_cnt++;
	if (atomic_exchange(&w->state, LEFT) == DONE) {
		left_cnt--;
		return false;
	}
	worker = NULL;
	return true;
}

/* The next piece of the file, or where the link leads to. -ETIMEDOUT: the thread is not ours any more. */
static int ask(struct worker *w, struct rest_key process, uint64_t deadline_ns)
{
	int err;

	w->state = ASKED;
	sem_post(&w->wanted);
	err = await(w, process, deadline_ns);
	if (err && leave(w))
		return err;
	if (err)
		sem_wait(&w->done);
	return w->n < 0 ? (int)w->n : 0;
}

static int append(const struct worker *w, size_t n, char **buf, size_t *cap, size_t *sz)
{
	if (util_reserve(buf, cap, *sz + n + 1, 1))
		return -ENOMEM;
	memcpy(*buf + *sz, w->buf, n);
	*sz += n;
	(*buf)[*sz] = '\0';
	return 0;
}

/* Below /proc. ret_cut: it is cut behind max bytes; NULL: then it fails. */
static int get(const char *path, bool link, size_t max, char **ret, size_t *ret_sz, bool *ret_cut)
{
	/* "self" is 0, which is nobody else */
	const struct rest_key process = { { strtoul(path + strlen(PROC), NULL, 10), 1 } };
	uint64_t deadline_ns = util_monotonic_ns() + MAX_NS;
	struct worker *w;
	bool more = true, cut = false;
	size_t cap = 0;
	int err = 0;

	*ret = NULL;
	*ret_sz = 0;
	if (rests__has(&silent, process))
		return -ETIMEDOUT;
	w = take_worker();
	if (!w)
		return left_cnt < MAX_LEFT ? -EAGAIN : -ETIMEDOUT;
	if (strlen(path) >= sizeof(w->path))
		return -ENAMETOOLONG;
	strcpy(w->path, path);
	w->link = link;
	while (!err && more) {
		err = ask(w, process, deadline_ns);
		more = !err && !link && (size_t)w->n == sizeof(w->buf);
		if (!err && (size_t)w->n > max - *ret_sz) {
			err = ret_cut ? append(w, max - *ret_sz, ret, &cap, ret_sz) : -EFBIG;
			more = false;
			cut = true;
		} else if (!err) {
			err = append(w, (size_t)w->n, ret, &cap, ret_sz);
		}
	}
	if (w == worker)
		close_file(w);
	if (err)
		free(*ret);
	else if (ret_cut)
		*ret_cut = cut;
	return err;
}

/* Else it is a test's. */
static bool is_below_proc(const char *path)
{
	return !strncmp(path, PROC, strlen(PROC));
}

int proc_text_read(const char *path, size_t max, char **ret, size_t *ret_sz)
{
	return is_below_proc(path) ? get(path, false, max, ret, ret_sz, NULL) :
				     util_read_file(path, max, ret, ret_sz);
}

int proc_text_begin(const char *path, size_t max, char **ret, size_t *ret_sz, bool *ret_more)
{
	int err;

	if (is_below_proc(path))
		return get(path, false, max, ret, ret_sz, ret_more);
	err = util_read_file(path, SIZE_MAX / 2, ret, ret_sz);
	if (err)
		return err;
	*ret_more = *ret_sz > max;
	*ret_sz = MIN(*ret_sz, max);
	(*ret)[*ret_sz] = '\0';
	return 0;
}

ssize_t proc_text_link(const char *path, char *ret, size_t sz)
{
	char *to;
	size_t n;
	int err = get(path, true, SIZE_MAX, &to, &n, NULL);

	if (err)
		return err;
	n = MIN(n, sz);
	memcpy(ret, to, n);
	free(to);
	return (ssize_t)n;
}
