/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the processes of a reader going, asks them, and trusts no answer. */
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/allocators.h"
#include "target/custom_sites.h"
#include "target/dwarf.h"
#include "helper/fd_message.h"
#include "target/names.h"
#include "target/perf_map.h"
#include "target/probe_sites.h"
#include "target/reader_start.h"
#include "target/reader_wire.h"
#include "target/said.h"
#include "target/stream.h"
#include "target/unwind_build.h"

#define MS 1000000ULL
/* Without a request, until a worker lets go of what it has kept for the next one. */
#define REST_S 30
#define STALLED_MS 1000	   /* that a request may keep its processes from doing anything */
#define KILLED_MS 200	   /* that a killed process may take to end before it counts as a zombie */
#define MAX_ZOMBIES 64	   /* processes that are killed but wait for a file system's server */
#define MAX_TRIES 3	   /* workers that may die of one request */
#define MAX_BACKOFF_MS 256 /* between the death of a worker and the start of the next one */
#define START_NS (10000 * MS)	 /* that fresh processes may take until they can be asked */
#define OPEN_NS (1000 * MS)	 /* that getting hold of a path may take */
#define MAX_TIMEOUT_HALVINGS 5	 /* how often the time for a request is halved */
#define MAX_STALL_HALVINGS 3	 /* how often the time without a sign of life is */
#define MAX_VADDR (1ULL << 47)	 /* of a program */
#define MAX_PARTS 4096		 /* of an unwind table */
#define MAX_TABLE (256U << 20)	 /* bytes of its parts */
#define MAX_STRINGS (256U << 20) /* bytes of the names of one request */
#define MAX_FRAMES (16U << 20)	 /* of the addresses of one request */

/* How long an answer may take. Reading names has a limit of its own, which is below. */
static const uint64_t limit_ns[READER_NR_OPS] = {
	[READER_DESCRIBE] = 3000 * MS,	    [READER_DESCRIBE_DEBUG] = 3000 * MS,
	[READER_BYTES] = 3000 * MS,	    [READER_CRC] = 10000 * MS,
	[READER_UNWIND_TABLE] = 15000 * MS, [READER_HAS_USDT] = 3000 * MS,
	[READER_ALLOCATORS] = 10000 * MS,   [READER_NAMES] = 40000 * MS,
	[READER_PLAIN_NAMES] = 40000 * MS,  [READER_SPLIT_FILES] = 40000 * MS,
	[READER_PERF_MAP] = 10000 * MS,	    [READER_ENVIRON] = 3000 * MS,
	[READER_CONTEXT] = 3000 * MS,	    [READER_SITES] = 10000 * MS,
	[READER_CUSTOM] = 10000 * MS,
};

struct reader {
	pid_t worker, opener; /* 0: none */
	bool direct;	      /* there is never an opener */
	int files_fd; /* SOCK_SEQPACKET: to the opener, or, where there is none, to the worker */
	bool ready;   /* all of them have entered their sandboxes */
	unsigned int timeout_factor;
	unsigned int deaths;	/* since the last answer */
	unsigned int time_outs; /* the same */
	/* so far: nothing that is answered speaks for the files, and folders, that keep silent */
	unsigned int stalls;
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
	p.fd = (int)syscall(SYS_pidfd_open, *pid, 0);
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
	if (r->files_fd >= 0)
		close(r->files_fd);
	r->stream.fd = r->files_fd = -1;
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

/* The ends of sockets that fresh processes get are [1], but for the worker's of files. */
struct sockets {
	int requests[2]; /* from us to the worker */
	int paths[2];	 /* from us to the opener */
	int files[2];	 /* [0]: the worker's; from the opener, or, where there is none, from us */
};

static int make_sockets(struct sockets *s, bool direct)
{
	*s = (struct sockets){ { -1, -1 }, { -1, -1 }, { -1, -1 } };
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s->requests) ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->files) ||
	    (!direct && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, s->paths)) ||
	    !set_rest(s->requests[1]))
		return -errno;
	return 0;
}

/* 0 or -EAGAIN */
static int start_all(struct reader *r)
{
	pid_t opener = -1, worker = -1;
	struct sockets s;

	r->ready = false;
	reap(r);
	if (r->zombie_cnt + 2 > MAX_ZOMBIES)
		return -EAGAIN;
	if (!make_sockets(&s, r->direct)) {
		opener = r->direct ? 0 : reader_start(SANDBOX_OPENER, s.paths[1], s.files[1]);
		worker = reader_start(SANDBOX_READER, s.requests[1], s.files[0]);
	}
	r->opener = MAX(opener, 0);
	r->worker = MAX(worker, 0);
	if (opener < 0 || worker < 0) {
		close_pair(s.requests);
		close_pair(s.paths);
		close_pair(s.files);
		stop_all(r);
		return -EAGAIN;
	}
	stream__init(&r->stream, s.requests[0]);
	r->files_fd = r->direct ? s.files[1] : s.paths[0];
	close(s.requests[1]);
	close(s.files[0]);
	if (!r->direct) {
		close(s.files[1]);
		close(s.paths[1]);
	}
	return 0;
}

static struct reader *new_reader(unsigned int timeout_factor, bool direct)
{
	struct reader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->timeout_factor = timeout_factor;
	r->direct = direct;
	stream__init(&r->stream, -1);
	r->files_fd = -1;
	(void)start_all(r);
	return r;
}

struct reader *reader__new(unsigned int timeout_factor)
{
	return new_reader(timeout_factor, false);
}

struct reader *reader__new_direct(unsigned int timeout_factor)
{
	return new_reader(timeout_factor, true);
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

/* Is a process about to go on, were there a CPU for it? proc(5), /proc/PID/stat. */
static bool is_runnable(pid_t pid)
{
	char path[64], *buf, *s;
	bool runnable;
	size_t sz;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (util_read_file(path, 4096, &buf, &sz))
		return false;
	s = strrchr(buf, ')');
	runnable = s && !strncmp(s, ") R", 3);
	free(buf);
	return runnable;
}

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
	       !is_runnable(r->worker) && !is_runnable(r->opener);
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
	r->stalls++;
	return -ETIMEDOUT;
}

static struct stream_wait wait_for(struct reader *r, uint64_t ns)
{
	uint64_t now = util_monotonic_ns();

	r->idle_ticks = 0;
	/* most are answered before anything else has to be done; of many in a row, each goes on with the ticks */
	if (now > r->next_tick_ns + STREAM_TICK_MS * MS)
		r->next_tick_ns = now + STREAM_TICK_MS * MS;
	return (struct stream_wait){
		.deadline_ns = now + ns,
		.tick = tick,
		.ctx = r,
	};
}

/* The opener's first message. 0 or -errno. */
static int hear_opener(struct reader *r, const struct stream_wait *w)
{
	struct reader_opened opened = {};
	int fds[READER_MAX_FILES], err = stream_wait(r->files_fd, POLLIN, w);
	size_t cnt = 0;
	ssize_t n;

	if (err)
		return err;
	n = fd_message_receive(r->files_fd, &opened, sizeof(opened), fds, ARRAY_SIZE(fds), &cnt,
			       MSG_DONTWAIT);
	for (size_t i = 0; i < cnt; i++)
		close(fds[i]);
	if (n <= 0)
		return n ? (int)n : -EPIPE;
	return n == sizeof(opened) && !opened.err && !cnt ? 0 : -EPROTO;
}

/*
 * Starts the processes unless they are there, and waits until all can be asked, so that the time
 * it takes to execute a program, on a busy machine, is none that a file takes to be read. 0 or
 * -errno.
 */
static int make_ready(struct reader *r)
{
	int err = r->worker ? 0 : start_all(r);
	struct stream_wait w = wait_for(r, r->timeout_factor * START_NS);
	uint32_t word = 0;

	if (err || r->ready)
		return err;
	r->stream.wait = w;
	err = stream__get(&r->stream, &word, sizeof(word));
	if (!err && word != READER_READY)
		err = -EPROTO;
	if (!err && !r->direct)
		err = hear_opener(r, &w);
	r->ready = !err;
	return err;
}

/* ---- requests ---- */

struct query {
	struct reader_request request;
	int fds[READER_MAX_FILES];
	const void *input; /* what follows the request */
	size_t input_sz;
	/* Takes what follows the answer's beginning. On failure nothing is left in *ret. */
	int (*take)(struct reader *r, const struct query *q, void *ret);
	void (*release)(void *ret); /* what was taken; NULL: it holds nothing */
	void *ret;
};

/* What an opener would tell the worker: here they are, and they are closed. */
static int give_open_files(struct reader *r, const int *fds, size_t cnt)
{
	struct reader_opened opened = {};
	int err = fd_message_send(r->files_fd, &opened, sizeof(opened), fds, cnt, MSG_DONTWAIT);

	return err ? err :
		     fd_message_send(r->files_fd, &opened, sizeof(opened), NULL, 0, MSG_DONTWAIT);
}

/* Gives away the request's descriptors. The messages of one request never fill the socket. */
static int send_files(struct reader *r, const struct query *q)
{
	int fds[READER_MAX_FILES];
	size_t cnt = 0;

	for (size_t i = 0; i < READER_MAX_FILES; i++)
		if (q->request.files & 1U << i)
			fds[cnt++] = q->fds[i];
	if (!cnt)
		return 0;
	return r->direct ? give_open_files(r, fds, cnt) :
			   fd_message_send(r->files_fd, "", 1, fds, cnt, MSG_DONTWAIT);
}

static int get_answer(struct reader *r, const struct query *q, int32_t *ret_refused)
{
	uint32_t done;
	int err = stream__get(&r->stream, ret_refused, sizeof(*ret_refused));

	if (!err && (*ret_refused > 0 || *ret_refused < -4095))
		err = -EPROTO;
	if (!err && !*ret_refused)
		err = q->take(r, q, q->ret);
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

static int ask(struct reader *r, const struct query *q)
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
	ssize_t n = fd_message_receive(r->files_fd, &opened, sizeof(opened), fds, ARRAY_SIZE(fds),
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

/* folder: -1 if path is one. */
static int open_once(struct reader *r, int folder, const char *path, int *ret_fd)
{
	int err = make_ready(r);
	struct stream_wait w = wait_for(r, OPEN_NS >> MIN(r->stalls, MAX_STALL_HALVINGS));

	if (!err)
		err = fd_message_send(r->files_fd, path, strlen(path) + 1, &folder, folder >= 0,
				      MSG_DONTWAIT);
	if (!err)
		err = stream_wait(r->files_fd, POLLIN, &w);
	r->stalls += err == -ETIMEDOUT;
	return err ? err : get_descriptor(r, ret_fd);
}

static int open_path(struct reader *r, int folder, const char *path)
{
	int fd = -1, err, tries = 1;

	if (r->direct)
		return -EBADF;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	while ((err = open_once(r, folder, path, &fd)))
		if (!try_again(r, err, tries++))
			return err;
	/* what a file system's server has chosen is no failure of ours */
	return reader_harmed(fd) || fd == -EAGAIN ? -EIO : fd;
}

int reader__open(struct reader *r, const char *path)
{
	return open_path(r, -1, path);
}

int reader__open_at(struct reader *r, int folder, const char *name)
{
	return open_path(r, folder, name);
}

int reader__open_in(struct reader *r, int root, const char *path)
{
	return path[0] == '/' ? open_path(r, root, path) : -ENOENT;
}

static int take_number(struct reader *r, const struct query *q, void *ret)
{
	(void)q;
	return stream__get(&r->stream, ret, sizeof(uint32_t));
}

/* ---- answers ---- */

/* Is there a NUL in it? */
static bool is_string(const char *s, size_t sz)
{
	return memchr(s, 0, sz);
}

static int check_description(const struct reader_description *d)
{
	bool good = d->segment_cnt <= ELF_FILE_MAX_SEGMENTS &&
		    d->build_id_sz <= sizeof(d->build_id) && d->alt_id_sz <= sizeof(d->alt_id) &&
		    is_string(d->interp, sizeof(d->interp)) &&
		    is_string(d->sanitizer, sizeof(d->sanitizer)) &&
		    is_string(d->debuglink, sizeof(d->debuglink)) &&
		    is_string(d->alt_name, sizeof(d->alt_name)) && !strchr(d->debuglink, '/');

	return good ? 0 : -EPROTO;
}

static int take_segments(struct reader *r, struct reader_file *f, size_t cnt)
{
	f->segments = calloc(cnt + 1, sizeof(*f->segments));
	if (!f->segments)
		return -ENOMEM;
	for (; f->segment_cnt < cnt; f->segment_cnt++) {
		struct reader_segment s;
		int err = stream__get(&r->stream, &s, sizeof(s));

		if (err)
			return err;
		if (s.vaddr > MAX_VADDR || s.filesz > MAX_VADDR - s.vaddr ||
		    s.memsz > MAX_VADDR - s.vaddr || s.offset > INT64_MAX)
			return -EPROTO;
		f->segments[f->segment_cnt] = (struct elf_segment){
			.vaddr = s.vaddr,
			.offset = s.offset,
			.filesz = s.filesz,
			.memsz = s.memsz,
			.exec = s.exec,
		};
	}
	return 0;
}

static int take_description(struct reader *r, const struct query *q, void *ret)
{
	struct reader_file *f = ret;
	struct reader_description d;
	int err = stream__get(&r->stream, &d, sizeof(d));

	(void)q;
	memset(f, 0, sizeof(*f));
	if (!err)
		err = check_description(&d);
	if (err)
		return err;
	memcpy(f->build_id, d.build_id, sizeof(f->build_id));
	memcpy(f->alt_id, d.alt_id, sizeof(f->alt_id));
	f->build_id_sz = d.build_id_sz;
	f->alt_id_sz = d.alt_id_sz;
	strcpy(f->interp, d.interp);
	strcpy(f->sanitizer, d.sanitizer);
	strcpy(f->debuglink, d.debuglink);
	strcpy(f->alt_name, d.alt_name);
	f->debuglink_crc = d.debuglink_crc;
	f->is_whole = d.is_whole;
	f->has_debug_info = d.has_debug_info;
	f->may_be_split = d.may_be_split;
	err = take_segments(r, f, d.segment_cnt);
	if (err)
		reader_file__done(f);
	return err;
}

void reader_file__done(struct reader_file *f)
{
	free(f->segments);
	memset(f, 0, sizeof(*f));
}

static int take_bytes(struct reader *r, const struct query *q, void *ret)
{
	return stream__get(&r->stream, ret, q->request.cnt);
}

/* Does everything that the part names lie in it? */
static bool good_part(const struct unwind_part *p)
{
	const uint8_t *blob = p->blob;
	struct bpfprof_part head;
	uint16_t v, last = 0;
	uint64_t rules;

	if (p->blob_sz < sizeof(head))
		return false;
	memcpy(&head, blob, sizeof(head));
	if (head.row_cnt > BPFPROF_PART_MAX_ROWS ||
	    head.blk_cnt != p->text_sz >> BPFPROF_BLOCK_SHIFT ||
	    sizeof(head) + 2 * (head.blk_cnt + 1ULL) > head.off_pos ||
	    (uint64_t)head.off_pos + head.row_cnt > head.rule_pos ||
	    head.rule_pos + 2ULL * head.row_cnt > head.rules_pos || head.rules_pos > p->blob_sz ||
	    head.rule_pos % 2 || head.rules_pos % 16)
		return false;
	rules = (p->blob_sz - head.rules_pos) / sizeof(struct bpfprof_rule);
	for (size_t i = 0; i <= head.blk_cnt; i++) {
		memcpy(&v, blob + sizeof(head) + 2 * i, sizeof(v));
		if (v < last)
			return false;
		last = v;
	}
	if (last != head.row_cnt)
		return false;
	for (size_t i = 0; i < head.row_cnt; i++) {
		memcpy(&v, blob + head.rule_pos + 2 * i, sizeof(v));
		if (v >= rules)
			return false;
	}
	return true;
}

/* One part, behind those that there are. */
static int take_part(struct reader *r, struct unwind_table *t)
{
	struct unwind_part *p = &t->parts[t->part_cnt], *before = t->part_cnt ? p - 1 : NULL;
	const uint64_t block = 1ULL << BPFPROF_BLOCK_SHIFT;
	struct reader_part head;
	int err = stream__get(&r->stream, &head, sizeof(head));

	if (err)
		return err;
	if (head.vaddr % block || head.text_sz % block || head.vaddr > MAX_VADDR ||
	    (before && head.vaddr < before->vaddr + before->text_sz) ||
	    head.blob_sz > BPFPROF_CHUNK_SZ / 2 || t->blob_sz + head.blob_sz > MAX_TABLE)
		return -EPROTO;
	*p = (struct unwind_part){ .vaddr = head.vaddr,
				   .text_sz = head.text_sz,
				   .blob_sz = head.blob_sz,
				   .blob = malloc(head.blob_sz + 1) };
	if (!p->blob)
		return -ENOMEM;
	t->part_cnt++;
	t->blob_sz += head.blob_sz;
	err = stream__get(&r->stream, p->blob, head.blob_sz);
	return err ? err : good_part(p) ? 0 : -EPROTO;
}

static int take_table(struct reader *r, const struct query *q, void *ret)
{
	struct unwind_table *t = ret;
	struct reader_table head;
	int err = stream__get(&r->stream, &head, sizeof(head));

	(void)q;
	memset(t, 0, sizeof(*t));
	if (err || head.part_cnt > MAX_PARTS || head.row_cnt > UNWIND_MAX_ROWS)
		return err ? err : -EPROTO;
	t->parts = calloc(head.part_cnt + 1, sizeof(*t->parts));
	if (!t->parts)
		return -ENOMEM;
	t->row_cnt = head.row_cnt;
	t->rule_cnt = head.rule_cnt;
	t->cfi_sz = head.cfi_sz;
	t->unsupported_cnt = head.unsupported_cnt;
	while (!err && t->part_cnt < head.part_cnt)
		err = take_part(r, t);
	if (err)
		unwind_table__done(t);
	return err;
}

static int take_points(struct reader *r, const struct query *q, void *ret)
{
	struct allocator_points *points = ret;
	uint64_t cnt;
	int err = stream__get(&r->stream, &cnt, sizeof(cnt));

	(void)q;
	*points = (struct allocator_points){};
	if (err || !cnt || cnt > ALLOCATORS_MAX_POINTS)
		return !err && cnt ? -EPROTO : err;
	points->points = calloc(cnt, sizeof(*points->points));
	if (!points->points)
		return -ENOMEM;
	while (!err && points->cnt < cnt) {
		struct allocator_point *p = &points->points[points->cnt];
		struct reader_point from;

		err = stream__get(&r->stream, &from, sizeof(from));
		if (!err &&
		    (from.group > ALLOCATOR_USDT_FREE || !is_string(from.name, sizeof(from.name)) ||
		     !is_string(from.insn, sizeof(from.insn)) ||
		     (points->cnt && from.offset <= p[-1].offset)))
			err = -EPROTO;
		if (err)
			break;
		*p = (struct allocator_point){
			.group = (enum allocator_group)from.group,
			.offset = from.offset,
			.ref_ctr = from.ref_ctr,
			.cookie = from.cookie,
			.vaddr = from.vaddr,
			.skew = from.skew,
			.emulated = from.emulated,
		};
		memcpy(p->name, from.name, sizeof(p->name));
		memcpy(p->insn, from.insn, sizeof(p->insn));
		points->cnt++;
	}
	if (err)
		allocator_points__done(points);
	return err;
}
_Static_assert(sizeof(((struct reader_point *)0)->name) ==
			       sizeof(((struct allocator_point *)0)->name) &&
		       sizeof(((struct reader_point *)0)->insn) ==
			       sizeof(((struct allocator_point *)0)->insn),
	       "names fit");

static bool good_site(const struct probe_sites *s, const struct probe_site *site)
{
	return site->offset <= INT64_MAX && site->ref_ctr <= INT64_MAX &&
	       (!s->cnt || site->offset > s->sites[s->cnt - 1].offset);
}

static int take_sites(struct reader *r, const struct query *q, void *ret)
{
	struct probe_sites *s = ret;
	uint64_t cnt;
	int err = stream__get(&r->stream, &cnt, sizeof(cnt));

	(void)q;
	*s = (struct probe_sites){ 0 };
	if (err || !cnt || cnt > PROBE_SITES_MAX)
		return err ?: -EPROTO;
	s->sites = calloc(cnt, sizeof(*s->sites));
	if (!s->sites)
		return -ENOMEM;
	for (; !err && s->cnt < cnt; s->cnt++) {
		struct probe_site site;

		err = stream__get(&r->stream, &site, sizeof(site));
		if (!err && !good_site(s, &site))
			err = -EPROTO;
		if (err)
			break;
		s->sites[s->cnt] = site;
	}
	if (err)
		probe_sites__done(s);
	return err;
}

static bool good_custom_site(const struct custom_site *site)
{
	return site->offset <= INT64_MAX && site->ref_ctr <= INT64_MAX &&
	       site->value < 1U << BPFPROF_USDT_ARG_BITS && site->removes <= 1 &&
	       is_string(site->name, sizeof(site->name)) && custom_name_ok(site->name);
}

static int take_custom(struct reader *r, const struct query *q, void *ret)
{
	struct custom_sites *s = ret;
	uint64_t head[2];
	int err = stream__get(&r->stream, head, sizeof(head));

	(void)q;
	*s = (struct custom_sites){ 0 };
	if (err || head[0] > CUSTOM_SITES_MAX)
		return err ?: -EPROTO;
	s->refused = head[1];
	s->sites = calloc(head[0] + 1, sizeof(*s->sites));
	if (!s->sites)
		return -ENOMEM;
	for (; !err && s->cnt < head[0]; s->cnt++) {
		struct custom_site *site = &s->sites[s->cnt];

		err = stream__get(&r->stream, site, sizeof(*site));
		if (!err && !good_custom_site(site))
			err = -EPROTO;
		if (err)
			break;
	}
	if (err)
		custom_sites__done(s);
	return err;
}

/* Does every number lead to something? */
static bool good_names(const struct symbols *s)
{
	if (!s->strings_sz || s->strings[0] || s->strings[s->strings_sz - 1] || s->first[0] ||
	    s->first[s->cnt] != s->frame_cnt)
		return false;
	for (size_t i = 0; i < s->cnt; i++)
		if (s->first[i] > s->first[i + 1])
			return false;
	for (size_t i = 0; i < s->frame_cnt; i++) {
		const struct symbol_frame *f = &s->frames[i];

		if (f->name >= s->strings_sz || f->system_name >= s->strings_sz ||
		    f->file >= s->strings_sz)
			return false;
	}
	return true;
}

static int take_names(struct reader *r, const struct query *q, void *ret)
{
	size_t cnt = q->request.cnt;
	struct symbols *s = ret;
	struct reader_names head;
	int err = stream__get(&r->stream, &head, sizeof(head));

	memset(s, 0, sizeof(*s));
	if (err)
		return err;
	if (head.frame_cnt > MIN(cnt * (DWARF_MAX_INLINE + 1ULL), MAX_FRAMES) ||
	    head.strings_sz > MAX_STRINGS)
		return -EPROTO;
	s->cnt = cnt;
	s->frame_cnt = head.frame_cnt;
	s->strings_sz = head.strings_sz;
	s->first = calloc(cnt + 1, sizeof(*s->first));
	s->frames = calloc(s->frame_cnt + 1, sizeof(*s->frames));
	s->strings = malloc(s->strings_sz + 1);
	if (!s->first || !s->frames || !s->strings)
		err = -ENOMEM;
	if (!err)
		err = stream__get(&r->stream, s->first, (cnt + 1) * sizeof(*s->first));
	if (!err)
		err = stream__get(&r->stream, s->frames, s->frame_cnt * sizeof(*s->frames));
	if (!err)
		err = stream__get(&r->stream, s->strings, s->strings_sz);
	if (!err && !good_names(s))
		err = -EPROTO;
	if (err)
		symbols__done(s);
	return err;
}

static int take_perf_map(struct reader *r, const struct query *q, void *ret)
{
	struct perf_map_names *names = ret;
	struct reader_perf_map head;
	int err = stream__get(&r->stream, &head, sizeof(head));

	*names = (struct perf_map_names){};
	if (err)
		return err;
	names->ignored = head.ignored;
	names->unread = head.unread;
	return take_names(r, q, &names->symbols);
}

static int take_said(struct reader *r, const struct query *q, void *ret)
{
	struct said *s = ret;
	int err = stream__get(&r->stream, s, sizeof(*s));

	(void)q;
	if (!err && !said__is_clean(s))
		err = -EPROTO;
	if (err)
		*s = (struct said){ 0 };
	return err;
}

/* ---- what can be asked ---- */

static void release_file(void *ret)
{
	reader_file__done(ret);
}

static void release_table(void *ret)
{
	unwind_table__done(ret);
}

static void release_points(void *ret)
{
	allocator_points__done(ret);
}

static void release_custom(void *ret)
{
	custom_sites__done(ret);
}

static void release_sites(void *ret)
{
	probe_sites__done(ret);
}

static void release_names(void *ret)
{
	symbols__done(ret);
}

static void release_perf_map(void *ret)
{
	symbols__done(&((struct perf_map_names *)ret)->symbols);
}

static struct query query(enum reader_op op, int fd,
			  int (*take)(struct reader *, const struct query *, void *), void *ret)
{
	static void (*const release[READER_NR_OPS])(void *) = {
		[READER_DESCRIBE] = release_file,      [READER_DESCRIBE_DEBUG] = release_file,
		[READER_UNWIND_TABLE] = release_table, [READER_ALLOCATORS] = release_points,
		[READER_NAMES] = release_names,	       [READER_PLAIN_NAMES] = release_names,
		[READER_SPLIT_FILES] = release_names,  [READER_PERF_MAP] = release_perf_map,
		[READER_SITES] = release_sites,	       [READER_CUSTOM] = release_custom,
	};

	return (struct query){ .request = { .op = op, .files = fd < 0 ? 0 : READER_FILE_OBJECT },
			       .fds = { fd, -1, -1, -1 },
			       .take = take,
			       .release = release[op],
			       .ret = ret };
}

int reader__describe(struct reader *r, int fd, bool debug, struct reader_file *ret)
{
	struct query q =
		query(debug ? READER_DESCRIBE_DEBUG : READER_DESCRIBE, fd, take_description, ret);

	return ask(r, &q);
}

int reader__bytes(struct reader *r, int fd, uint64_t offset, void *buf, size_t sz)
{
	struct query q = query(READER_BYTES, fd, take_bytes, buf);

	if (sz > READER_MAX_BYTES)
		return -E2BIG;
	q.request.offset = offset;
	q.request.cnt = sz;
	return ask(r, &q);
}

int reader__crc(struct reader *r, int fd, uint32_t *ret)
{
	struct query q = query(READER_CRC, fd, take_number, ret);

	return ask(r, &q);
}

int reader__unwind_table(struct reader *r, int fd, struct unwind_table *ret)
{
	struct query q = query(READER_UNWIND_TABLE, fd, take_table, ret);

	return ask(r, &q);
}

int reader__has_usdt(struct reader *r, int fd, bool *ret)
{
	uint32_t found = 0;
	struct query q = query(READER_HAS_USDT, fd, take_number, &found);
	int err = ask(r, &q);

	*ret = found;
	return err;
}

int reader__allocators(struct reader *r, int fd, struct allocator_points *ret)
{
	struct query q = query(READER_ALLOCATORS, fd, take_points, ret);

	return ask(r, &q);
}

int reader__custom_sites(struct reader *r, int fd, struct custom_sites *ret)
{
	struct query q = query(READER_CUSTOM, fd, take_custom, ret);

	return ask(r, &q);
}

static int ask_names(struct reader *r, enum reader_op op, const int *fds, const uint64_t *vaddrs,
		     size_t cnt, struct symbols *ret)
{
	struct query q = query(op, fds[0], take_names, ret);

	if (cnt > READER_MAX_ADDRESSES)
		return -E2BIG;
	for (size_t i = 0; i < READER_NAMES_FILES; i++) {
		q.fds[i] = fds[i];
		q.request.files |= fds[i] < 0 ? 0 : 1U << i;
	}
	q.request.cnt = cnt;
	q.input = vaddrs;
	q.input_sz = cnt * sizeof(*vaddrs);
	return ask(r, &q);
}

int reader__names(struct reader *r, const int fds[static READER_NAMES_FILES],
		  const uint64_t *vaddrs, size_t cnt, bool plain, struct symbols *ret)
{
	return ask_names(r, plain ? READER_PLAIN_NAMES : READER_NAMES, fds, vaddrs, cnt, ret);
}

int reader__split_files(struct reader *r, const int fds[static READER_NAMES_FILES],
			const uint64_t *vaddrs, size_t cnt, struct symbols *ret)
{
	return ask_names(r, READER_SPLIT_FILES, fds, vaddrs, cnt, ret);
}

int reader__sites(struct reader *r, const int fds[static 2], const char *provider, const char *name,
		  uint32_t use, struct probe_sites *ret)
{
	struct query q = query(READER_SITES, fds[0], take_sites, ret);
	char text[2 * PROBE_SITES_MAX_NAME];

	*ret = (struct probe_sites){ 0 };
	if (strlen(provider) >= PROBE_SITES_MAX_NAME || strlen(name) >= PROBE_SITES_MAX_NAME)
		return -EINVAL;
	q.fds[1] = fds[1];
	q.request.files |= fds[1] < 0 ? 0 : READER_FILE_DEBUG;
	q.input_sz = strlen(provider) + strlen(name) + 2;
	memcpy(text, provider, strlen(provider) + 1);
	memcpy(text + strlen(provider) + 1, name, strlen(name) + 1);
	q.request.cnt = q.input_sz;
	q.request.offset = use;
	q.input = text;
	return ask(r, &q);
}

int reader__perf_map(struct reader *r, int fd, const uint64_t *addrs, size_t cnt,
		     struct perf_map_names *ret)
{
	struct query q = query(READER_PERF_MAP, fd, take_perf_map, ret);

	if (cnt > READER_MAX_ADDRESSES)
		return -E2BIG;
	q.request.cnt = cnt;
	q.input = addrs;
	q.input_sz = cnt * sizeof(*addrs);
	return ask(r, &q);
}

int reader__environ(struct reader *r, int fd, struct said *ret)
{
	struct query q = query(READER_ENVIRON, fd, take_said, ret);

	*ret = (struct said){ 0 };
	return ask(r, &q);
}

int reader__context(struct reader *r, const void *data, size_t sz, struct said *ret)
{
	struct query q = query(READER_CONTEXT, -1, take_said, ret);

	*ret = (struct said){ 0 };
	if (sz > READER_MAX_BYTES)
		return -E2BIG;
	q.request.cnt = sz;
	q.input = data;
	q.input_sz = sz;
	return ask(r, &q);
}
