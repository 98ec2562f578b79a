/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the processes of a reader going, and asks them. */
#include <linux/types.h>

#include "target/reader.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "helper/fd_message.h"
#include "target/proc_maps.h"
#include "target/reader_ask.h"
#include "target/reader_start.h"
#include "target/stream.h"

#define MS 1000000ULL
/* Without a request, until a worker lets go of what it has kept for the next one. */
#define REST_S 30
#define STALLED_MS 1000	   /* that a request may keep its processes from doing anything */
#define KILLED_MS 200	   /* that a killed process may take to end before it counts as a zombie */
#define MAX_ZOMBIES 64	   /* processes that are killed but wait for a file system's server */
#define MAX_TRIES 3	   /* workers that may die of one request */
#define MAX_BACKOFF_MS 256 /* between the death of a worker and the start of the next one */
#define START_NS (10000 * MS)  /* that fresh processes may take until they can be asked */
#define OPEN_NS (10000 * MS)   /* that getting hold of a path may take, where nothing stalls */
#define MAX_TIMEOUT_HALVINGS 5 /* how often the time for a request is halved */
#define MAX_STALL_HALVINGS 3   /* how often the time without a sign of life is */
#define STALL_NS (600 * NSEC_PER_SEC) /* until one of them is forgotten */

/* How long an answer may take. Reading names has a limit of its own, which is below. */
static const uint64_t limit_ns[READER_NR_OPS] = {
	[READER_DESCRIBE] = 3000 * MS,	    [READER_DESCRIBE_DEBUG] = 3000 * MS,
	[READER_BYTES] = 3000 * MS,	    [READER_CRC] = 10000 * MS,
	[READER_UNWIND_TABLE] = 15000 * MS, [READER_HAS_USDT] = 3000 * MS,
	[READER_ALLOCATORS] = 10000 * MS,   [READER_NAMES] = 40000 * MS,
	[READER_PLAIN_NAMES] = 40000 * MS,  [READER_SPLIT_FILES] = 40000 * MS,
	[READER_PERF_MAP] = 10000 * MS,	    [READER_ENVIRON] = 3000 * MS,
	[READER_CONTEXT] = 3000 * MS,	    [READER_SITES] = 10000 * MS,
	[READER_CUSTOM] = 10000 * MS,	    [READER_CONTAINER] = 3000 * MS,
	[READER_PIECES] = 3000 * MS,
};

struct reader {
	pid_t worker, opener; /* 0: none */
	int opener_fd;	      /* SOCK_SEQPACKET */
	bool ready;	      /* both have entered their sandboxes */
	unsigned int timeout_factor;
	unsigned int deaths;	/* since the last answer */
	unsigned int time_outs; /* the same */
	/* lately: nothing that is answered speaks for the files, and folders, that keep silent */
	unsigned int stalls;
	uint64_t stalled_ns; /* the last one, or when the one before was forgotten */
	/* the request that is waited for */
	uint64_t next_tick_ns, used_ns; /* CPU time */
	unsigned int idle_ticks;	/* since that has grown */
	void (*meanwhile)(void *ctx);
	void *meanwhile_ctx;
	pid_t zombies[MAX_ZOMBIES];
	size_t zombie_cnt;
	struct reader_stats stats;
	uint64_t peak_rss;    /* of workers that have ended */
	struct stream stream; /* to the worker */
};

/* ---- processes ---- */

static void meanwhile(struct reader *r)
{
	if (r->meanwhile)
		r->meanwhile(r->meanwhile_ctx);
}

/* The same for so long. */
static void rest(struct reader *r, unsigned int ms)
{
	for (unsigned int slept = 0; slept < ms; slept += STREAM_TICK_MS) {
		usleep(1000 * STREAM_TICK_MS);
		meanwhile(r);
	}
}

/* Has a child ended? If so it is no more. */
static bool ended(struct reader *r, pid_t pid)
{
	struct rusage u = {};

	if (!wait4(pid, NULL, WNOHANG, &u))
		return false;
	r->stats.cpu_ns += (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NSEC_PER_SEC +
			   (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
	r->peak_rss = MAX(r->peak_rss, (uint64_t)u.ru_maxrss * 1024);
	return true;
}

/* Forgets those left behind that have ended meanwhile. */
static void reap(struct reader *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->zombie_cnt; i++)
		if (!ended(r, r->zombies[i]))
			r->zombies[n++] = r->zombies[i];
	r->zombie_cnt = n;
}

/* Kills a process and waits for its end, but not for one that the kernel keeps waiting itself. */
static void end(struct reader *r, pid_t *pid)
{
	struct pollfd p = { .events = POLLIN };

	if (!*pid)
		return;
	kill(*pid, SIGKILL);
	p.fd = util_pidfd_open(*pid);
	for (int i = 0; i < KILLED_MS / STREAM_TICK_MS && poll(&p, 1, STREAM_TICK_MS) <= 0; i++)
		meanwhile(r);
	if (p.fd >= 0)
		close(p.fd);
	/* there is room, see start_all */
	if (!ended(r, *pid))
		r->zombies[r->zombie_cnt++] = *pid;
	*pid = 0;
}

static void stop_all(struct reader *r)
{
	if (r->stream.fd >= 0)
		close(r->stream.fd);
	if (r->opener_fd >= 0)
		close(r->opener_fd);
	r->stream.fd = r->opener_fd = -1;
	end(r, &r->worker);
	end(r, &r->opener);
}

static void close_pair(const int pair[2])
{
	for (size_t i = 0; i < 2; i++)
		if (pair[i] >= 0)
			close(pair[i]);
}

/* How long a worker waits for a request: it may not say so itself. */
static bool set_rest(int worker_fd)
{
	struct timeval t = { .tv_sec = REST_S };

	return !setsockopt(worker_fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

/* 0 or -EAGAIN */
static int start_all(struct reader *r)
{
	int requests[2] = { -1, -1 }, paths[2] = { -1, -1 }, files[2] = { -1, -1 };
	pid_t opener = -1, worker = -1;

	r->ready = false;
	reap(r);
	if (r->zombie_cnt + 2 > MAX_ZOMBIES)
		return -EAGAIN;
	if (!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, requests) &&
	    !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, paths) &&
	    !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, files) &&
	    set_rest(requests[1])) {
		opener = reader_start(SANDBOX_OPENER, paths[1], files[1]);
		worker = reader_start(SANDBOX_READER, requests[1], files[0]);
	}
	r->opener = MAX(opener, 0);
	r->worker = MAX(worker, 0);
	close_pair(files);
	if (opener < 0 || worker < 0) {
		close_pair(requests);
		close_pair(paths);
		stop_all(r);
		return -EAGAIN;
	}
	close(requests[1]);
	close(paths[1]);
	stream__init(&r->stream, requests[0]);
	r->opener_fd = paths[0];
	return 0;
}

struct reader *reader__new(unsigned int timeout_factor)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->timeout_factor = timeout_factor;
	stream__init(&r->stream, -1);
	r->opener_fd = -1;
	(void)start_all(r);
	return r;
}

void reader__free(struct reader *r)
{
	if (!r)
		return;
	stop_all(r);
	reap(r);
	free(r);
}

static uint64_t cpu_ns(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (!pid || clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		return 0;
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

void reader__stats(const struct reader *r, struct reader_stats *ret)
{
	*ret = r->stats;
	ret->cpu_ns += cpu_ns(r->worker) + cpu_ns(r->opener);
}

uint64_t reader__peak_rss(const struct reader *r)
{
	return MAX(r->peak_rss, r->worker ? util_peak_rss(r->worker) : 0);
}

pid_t reader__pid(const struct reader *r)
{
	return r->worker;
}

void reader__meanwhile(struct reader *r, void (*call)(void *ctx), void *ctx)
{
	r->meanwhile = call;
	r->meanwhile_ctx = ctx;
}

/* ---- waiting ---- */

/*
 * Neither process has used its CPU for long: both wait for a file, whose server does not answer.
 * Counted in ticks, so that the time for which we got no CPU ourselves is not theirs.
 */
static bool is_stalled(struct reader *r)
{
	uint64_t used_ns = cpu_ns(r->worker) + cpu_ns(r->opener);

	if (used_ns != r->used_ns)
		r->idle_ticks = 0;
	r->used_ns = used_ns;
	return ++r->idle_ticks > r->timeout_factor * (STALLED_MS / STREAM_TICK_MS) >>
		       MIN(r->stalls, MAX_STALL_HALVINGS) &&
	       !proc_is_runnable(r->worker) && !proc_is_runnable(r->opener);
}

static void note_stall(struct reader *r)
{
	r->stalls++;
	r->stalled_ns = util_monotonic_ns();
}

static int tick(void *ctx)
{
	struct reader *r = ctx;
	uint64_t now = util_monotonic_ns();

	if (now < r->next_tick_ns)
		return 0;
	r->next_tick_ns = now + STREAM_TICK_MS * MS;
	meanwhile(r);
	if (!is_stalled(r))
		return 0;
	note_stall(r);
	return -ETIMEDOUT;
}

static struct stream_wait wait_for(struct reader *r, uint64_t ns)
{
	uint64_t now = util_monotonic_ns();

	r->idle_ticks = 0;
	if (r->stalls && now >= r->stalled_ns + STALL_NS) {
		r->stalls--;
		r->stalled_ns = now;
	}
	/* most are answered before anything else has to be done; of many in a row, each goes on with the ticks */
	if (now > r->next_tick_ns + STREAM_TICK_MS * MS)
		r->next_tick_ns = now + STREAM_TICK_MS * MS;
	return (struct stream_wait){
		.deadline_ns = now + ns,
		.tick = tick,
		.ctx = r,
	};
}

/*
 * Starts the processes unless they are there, and waits until both can be asked, so that the time
 * it takes to execute a program, on a busy machine, is none that a file takes to be read. 0 or
 * -errno.
 */
static int make_ready(struct reader *r)
{
	struct reader_opened opened = {};
	int fds[READER_MAX_FILES], err = r->worker ? 0 : start_all(r);
	struct stream_wait w = wait_for(r, r->timeout_factor * START_NS);
	uint32_t word = 0;
	size_t cnt = 0;
	ssize_t n;

	if (err || r->ready)
		return err;
	r->stream.wait = w;
	err = stream__get(&r->stream, &word, sizeof(word));
	if (!err)
		err = stream_wait(r->opener_fd, POLLIN, &w);
	if (err)
		return err;
	n = fd_message_receive(r->opener_fd, &opened, sizeof(opened), fds, ARRAY_SIZE(fds), &cnt,
			       MSG_DONTWAIT);
	for (size_t i = 0; i < cnt; i++)
		close(fds[i]);
	if (n <= 0)
		return n ? (int)n : -EPIPE;
	r->ready = n == sizeof(opened) && !opened.err && !cnt && word == READER_READY;
	return r->ready ? 0 : -EPROTO;
}

int reader__make_ready(struct reader *r)
{
	int err = make_ready(r);

	if (err && err != -EAGAIN)
		stop_all(r);
	return err;
}

/* ---- requests ---- */

/* Gives the opener the descriptors. */
static int send_files(struct reader *r, const struct query *q)
{
	int fds[READER_MAX_FILES];
	size_t cnt = 0;

	for (size_t i = 0; i < READER_MAX_FILES; i++)
		if (q->request.files & 1U << i)
			fds[cnt++] = q->fds[i];
	/* one message a request never fills the socket */
	return cnt ? fd_message_send(r->opener_fd, "", 1, fds, cnt, MSG_DONTWAIT) : 0;
}

static int get_answer(struct reader *r, const struct query *q, int32_t *ret_refused)
{
	uint32_t done;
	int err = stream__get(&r->stream, ret_refused, sizeof(*ret_refused));

	if (!err && (*ret_refused > 0 || *ret_refused < -4095))
		err = -EPROTO;
	if (!err && !*ret_refused)
		err = q->take(&r->stream, q, q->ret);
	if (err)
		return err;
	err = stream__get(&r->stream, &done, sizeof(done));
	if (!err && done != READER_DONE)
		err = -EPROTO;
	if (err && !*ret_refused && q->release)
		q->release(q->ret);
	return err;
}

static int ask_once(struct reader *r, const struct query *q, int32_t *ret_refused)
{
	int err = make_ready(r);

	if (err)
		return err;
	r->stream.wait = wait_for(r, r->timeout_factor * (limit_ns[q->request.op] >>
							  MIN(r->time_outs, MAX_TIMEOUT_HALVINGS)));
	err = send_files(r, q);
	if (!err)
		err = stream__put(&r->stream, &q->request, sizeof(q->request));
	if (!err)
		err = stream__put(&r->stream, q->input, q->input_sz);
	if (!err)
		err = stream__flush(&r->stream);
	return err ? err : get_answer(r, q, ret_refused);
}

/* A request has failed by err, for the tries-th time. Is it to be tried again? */
static bool try_again(struct reader *r, int err, int tries)
{
	if (err == -EAGAIN)
		return false;
	stop_all(r);
	r->stats.died += err == -EPIPE;
	r->stats.timed_out += err == -ETIMEDOUT;
	r->stats.lied += err == -EPROTO;
	/* it may have died of what it read before, or by another's hand */
	if (err != -EPIPE || tries == MAX_TRIES)
		return false;
	if (r->deaths++)
		rest(r, MIN(1U << MIN(r->deaths, 16U), MAX_BACKOFF_MS));
	return true;
}

int reader_ask(struct reader *r, const struct query *q)
{
	int32_t refused = 0;
	int err, tries = 1;

	while ((err = ask_once(r, q, &refused))) {
		r->time_outs += err == -ETIMEDOUT;
		if (!try_again(r, err, tries++))
			return err;
	}
	r->deaths = r->time_outs = 0;
	return refused == -ENOMEM || reader_harmed(refused) || refused == -EAGAIN ? -E2BIG :
										    refused;
}

/* ---- paths ---- */

static int get_descriptor(struct reader *r, int *ret_fd)
{
	struct reader_opened opened = {};
	int fds[READER_MAX_FILES];
	size_t cnt;
	ssize_t n = fd_message_receive(r->opener_fd, &opened, sizeof(opened), fds, ARRAY_SIZE(fds),
				       &cnt, MSG_DONTWAIT);

	if (n <= 0)
		return n ? (int)n : -EPIPE;
	if (n == sizeof(opened) && !opened.err && cnt == 1) {
		*ret_fd = fds[0];
		return 0;
	}
	while (cnt)
		close(fds[--cnt]);
	*ret_fd = opened.err;
	return opened.err < 0 && opened.err >= -4095 ? 0 : -EPROTO;
}

/* folder: -1 if path is one. path: sz bytes, with what follows it. */
static int open_once(struct reader *r, int folder, const char *path, size_t sz, int *ret_fd)
{
	int err = make_ready(r);
	/* on a busy machine that takes as long as it takes; what waits for a file's server is stalled */
	struct stream_wait w =
		wait_for(r, r->timeout_factor * OPEN_NS >> MIN(r->stalls, MAX_STALL_HALVINGS));

	if (!err)
		err = fd_message_send(r->opener_fd, path, sz, &folder, folder >= 0, MSG_DONTWAIT);
	if (!err)
		err = stream_wait(r->opener_fd, POLLIN, &w);
	/* a server that answers a bit at a time */
	if (err == -ETIMEDOUT && util_monotonic_ns() >= w.deadline_ns)
		note_stall(r);
	return err ? err : get_descriptor(r, ret_fd);
}

static int open_path(struct reader *r, int folder, const char *path, const uint32_t *who)
{
	size_t sz = strlen(path) + 1;
	char message[PATH_MAX + sizeof(*who)];
	int fd = -1, err, tries = 1;

	if (sz > PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(message, path, sz);
	if (who)
		memcpy(message + sz, who, sizeof(*who));
	sz += who ? sizeof(*who) : 0;
	while ((err = open_once(r, folder, message, sz, &fd)))
		if (!try_again(r, err, tries++))
			return err;
	/* what a file system's server has chosen is no failure of ours */
	return reader_harmed(fd) || fd == -EAGAIN ? -EIO : fd;
}

int reader__open(struct reader *r, const char *path)
{
	return open_path(r, -1, path, NULL);
}

int reader__open_at(struct reader *r, int folder, const char *name)
{
	return open_path(r, folder, name, NULL);
}

int reader__open_in(struct reader *r, int root, const char *path, uint32_t who)
{
	return path[0] == '/' ? open_path(r, root, path, &who) : -ENOENT;
}
