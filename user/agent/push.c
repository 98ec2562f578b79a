/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/push.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/destination.h"
#include "base/log.h"
#include "base/util.h"
#include "helper/fd_message.h"
#include "helper/helper.h"
#include "spool/cursor.h"
#include "spool/labels.h"
#include "spool/spool.h"

#define MAX_SETTLED 256	 /* records at once that cannot be sent any more, at some us each */
#define MAX_MESSAGES 256 /* of the courier's at once: the loop has other things to do */
#define MAX_SAID 32	 /* lines that it may have written in QUIET_NS, of a destination */
#define LIVED_NS (60 * NSEC_PER_SEC) /* a courier that lived so long has not died of its start */
#define MAX_BACKOFF_S 60
/* Without a word for so long, and after so many statuses: where all of us were stopped it has its turn first. */
#define UNHEARD_NS (60 * NSEC_PER_SEC)
#define UNHEARD 3
#define KILLED_MS 200		     /* that one which was killed may take to end */
#define MAX_BODY (1ULL << 30)	     /* bytes that an attempt may have sent */
#define QUIET_NS (60 * NSEC_PER_SEC) /* between two complaints of the same */

_Static_assert((int)WIRE_NR_FILES == (int)DESTINATION_NR_FILES &&
		       WIRE_TOKEN == 1 << DESTINATION_TOKEN && WIRE_KEY == 1 << DESTINATION_KEY,
	       "a file's bit is its number");

/* Proxies, as curl(1) has them. */
static const char *const environment[] = { "http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy",
					   "ALL_PROXY",	 "no_proxy",	"NO_PROXY",    NULL };

struct target {
	const struct destination *d; /* NULL: the place is free */
	struct cursor cursor;
	uint64_t given[CURSOR_MAX_OPEN]; /* records that the courier has, of those that are open */
	size_t given_cnt;
	size_t under_way; /* of these, those that it has not told the end of */
	struct push_stats stats;
	uint64_t complain_ns; /* not before, of files that cannot be read */
	uint64_t records_ns;  /* the same, of records that cannot be opened */
	uint64_t cursor_ns;   /* the same, of what cannot be noted */
	uint64_t uncomplained;
	uint64_t said_ns; /* until then so many lines are written */
	uint32_t said, unsaid;
};

struct push {
	struct spool *spool;
	char node[256];
	char program[PATH_MAX];
	struct target targets[WIRE_MAX_DESTINATIONS];
	int epoll_fd, timer_fd, sock; /* sock: -1: there is no courier */
	int listening;		      /* -1: nobody may ask */
	char *status;		      /* the last one */
	size_t status_sz;
	pid_t pid;
	uint64_t started_ns;
	unsigned int deaths;  /* in a row */
	unsigned int unheard; /* statuses that it was told since it said something */
	uint64_t unheard_ns;  /* when it was told the first of them */
	uint32_t generations[WIRE_MAX_DESTINATIONS];
	uint64_t settled;
	uint64_t ended_cpu_ns; /* CPU time of couriers that have ended */
	bool stopped;	       /* nothing is handed out any more */
	struct wire in, out;
};

/* ---- the courier ---- */

/* -errno: it does not listen, which it always does. */
static int tell(struct push *p, size_t text_sz, const int *fds, size_t cnt)
{
	if (p->sock < 0)
		return -EPIPE;
	return fd_message_send(p->sock, &p->out, WIRE_HEAD_SZ + text_sz, fds, cnt, MSG_DONTWAIT);
}

static int tell_status(struct push *p)
{
	size_t sz = p->listening >= 0 ? p->status_sz : 0;

	int err;

	wire_begin(&p->out, WIRE_STATUS);
	memcpy(p->out.text, p->status, sz);
	err = tell(p, sz, NULL, 0);
	/* what the socket never takes it cannot have heard */
	if ((!err || err == -EAGAIN) && !p->unheard++)
		p->unheard_ns = util_monotonic_ns();
	return err;
}

static int tell_destination(struct push *p, uint32_t i)
{
	const struct destination *d = p->targets[i].d;
	struct labels l = { 0 };
	char *text = NULL;
	size_t sz = 0;
	int err;

	wire_begin(&p->out, WIRE_DESTINATION);
	p->out.destination = i;
	p->out.generation = ++p->generations[i];
	if (!d)
		return tell(p, 0, NULL, 0);
	labels__add(&l, "kind", d->kind);
	labels__add(&l, "url", d->url);
	labels__add(&l, "user", d->user);
	labels__add(&l, "tenant", d->tenant);
	labels__add(&l, "node", p->node);
	err = labels__encode(&l, &text, &sz);
	if (!err && sz > WIRE_MAX_TEXT)
		err = -E2BIG;
	if (!err) {
		memcpy(p->out.text, text, sz);
		err = tell(p, sz, NULL, 0);
	}
	free(text);
	return err;
}

static void set_timer(struct push *p, uint64_t seconds)
{
	struct itimerspec in = { .it_value.tv_sec = (time_t)seconds };

	(void)timerfd_settime(p->timer_fd, 0, &in, NULL);
}

static int watch(struct push *p, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/* They go out again. */
static void forget_given(struct target *t)
{
	t->given_cnt = 0;
	t->under_way = 0;
}

/* Forgets a courier that has ended. False: it has not. */
static bool reap(struct push *p)
{
	struct rusage u;
	pid_t pid = p->pid > 0 ? wait4(p->pid, NULL, WNOHANG, &u) : -1;

	if (!pid)
		return false;
	if (pid > 0)
		p->ended_cpu_ns +=
			(uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NSEC_PER_SEC +
			(uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
	p->pid = 0;
	return true;
}

/* Not one that the kernel or a debugger holds is waited for: the next one is started when it has ended. */
static void kill_courier(struct push *p)
{
	struct pollfd ended = { .events = POLLIN };

	if (p->pid <= 0)
		return;
	kill(p->pid, SIGKILL);
	ended.fd = util_pidfd_open(p->pid);
	(void)poll(&ended, 1, KILLED_MS);
	if (ended.fd >= 0)
		close(ended.fd);
	(void)reap(p);
}

/* It has died, or lied, or could not be started. */
static void end_courier(struct push *p)
{
	uint64_t lived = util_monotonic_ns() - p->started_ns;

	if (p->sock >= 0)
		close(p->sock);
	p->sock = -1;
	kill_courier(p);
	for (size_t i = 0; i < WIRE_MAX_DESTINATIONS; i++)
		forget_given(&p->targets[i]);
	p->deaths = lived > LIVED_NS ? 0 : p->deaths;
	set_timer(p, MIN(1U << MIN(p->deaths, 10U), MAX_BACKOFF_S));
	p->deaths++;
}

static int start_courier(struct push *p)
{
	int pair[2], err;
	pid_t pid;

	p->started_ns = util_monotonic_ns();
	p->unheard = 0;
	if (!reap(p))
		return -EAGAIN;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	pid = helper_start(SANDBOX_COURIER, p->program, environment, pair[1], pair[1]);
	close(pair[1]);
	p->sock = pair[0];
	if (pid < 0)
		return pid;
	p->pid = pid;
	err = watch(p, p->sock);
	if (!err && p->listening >= 0) {
		wire_begin(&p->out, WIRE_LISTEN);
		err = tell(p, 0, &p->listening, 1);
		if (!err && p->status)
			err = tell_status(p);
	}
	for (uint32_t i = 0; !err && i < WIRE_MAX_DESTINATIONS; i++)
		if (p->targets[i].d)
			err = tell_destination(p, i);
	if (!err) {
		/* what came in before */
		wire_begin(&p->out, WIRE_NEWS);
		err = tell(p, 0, NULL, 0);
	}
	return err;
}

/* ---- records ---- */

static bool is_given(const struct target *t, uint64_t number)
{
	for (size_t i = 0; i < t->given_cnt; i++)
		if (t->given[i] == number)
			return true;
	return false;
}

static void take_back(struct target *t, uint64_t number)
{
	for (size_t i = 0; i < t->given_cnt; i++)
		if (t->given[i] == number) {
			t->given[i] = t->given[--t->given_cnt];
			return;
		}
}

static void settle(struct push *p, struct target *t, uint64_t number)
{
	int err = cursor__settle(&t->cursor, number);
	uint64_t now;

	p->settled++;
	if (!err)
		return;
	now = util_monotonic_ns();
	if (now >= t->cursor_ns) {
		t->cursor_ns = now + QUIET_NS;
		log_error("push \"%s\": cannot note what is delivered: %s", t->d->name,
			  strerror(-err));
	}
}

static bool is_too_old(const struct target *t, uint64_t time_ns)
{
	return t->d->max_age_ns && util_realtime_ns() > time_ns + t->d->max_age_ns;
}

/* Will it be over by itself, whatever the record? */
static bool passes(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -EINTR;
}

/* One that is there and cannot be had: a link, or on a disk that is broken. */
static void give_up(struct target *t, uint64_t number, int err)
{
	uint64_t now = util_monotonic_ns();

	t->stats.outcome[WIRE_UNREADABLE]++;
	t->uncomplained++;
	if (now < t->records_ns)
		return;
	log_error("push \"%s\": profile %" PRIu64 " is given up, of %" PRIu64
		  " since this was last said: it cannot be opened: %s",
		  t->d->name, number, t->uncomplained, strerror(-err));
	t->records_ns = now + QUIET_NS;
	t->uncomplained = 0;
}

/* Opens one that is open for this destination. A descriptor; -ENOENT: it was settled instead; -errno:
 * it stays open, and may be asked for later. */
static int open_record(struct push *p, struct target *t, uint64_t number)
{
	uint64_t found, time_ns;
	int fd = -ENOENT;

	if (!spool__find(p->spool, number, &found, &time_ns) || found != number) {
		/* the spool had no room for it any more */
		t->stats.dropped++;
	} else if (is_too_old(t, time_ns)) {
		t->stats.too_old++;
	} else {
		fd = spool__open_record(p->spool, number);
		/* somebody has removed it */
		t->stats.dropped += fd == -ENOENT;
		/* else it would be asked for again and again, and none behind it */
		if (fd < 0 && fd != -ENOENT && !passes(fd)) {
			give_up(t, number, fd);
			fd = -ENOENT;
		}
	}
	if (fd == -ENOENT)
		settle(p, t, number);
	return fd;
}

/* One that is open, and that the courier has not: it was another one's. 0: there is none. */
static uint64_t find_orphan(const struct target *t)
{
	for (size_t i = 0; i < t->cursor.open_cnt; i++)
		if (!is_given(t, t->cursor.open[i]))
			return t->cursor.open[i];
	return 0;
}

/* Takes up the next one. Its number; 0: there is none, or there is no room. */
static uint64_t take_next(struct push *p, struct target *t)
{
	uint64_t number, time_ns;

	if (t->cursor.open_cnt == CURSOR_MAX_OPEN ||
	    !spool__find(p->spool, t->cursor.next, &number, &time_ns))
		return 0;
	t->stats.dropped += number - t->cursor.next;
	p->settled += number - t->cursor.next;
	cursor__take(&t->cursor, number);
	return number;
}

/* The record that was asked for, or any. A descriptor; -EAGAIN: many could not be sent any more, and
 * others wait for the loop to go on; another error: there is none that can be had. */
static int find_record(struct push *p, struct target *t, uint64_t wanted, uint64_t *ret_number)
{
	int fd, settled = 0;

	if (p->stopped)
		return -ENOENT;
	if (wanted) {
		*ret_number = wanted;
		fd = open_record(p, t, wanted);
		if (fd < 0)
			take_back(t, wanted);
		return fd;
	}
	while (settled++ < MAX_SETTLED) {
		*ret_number = find_orphan(t) ?: take_next(p, t);
		if (!*ret_number)
			return -ENOENT;
		fd = open_record(p, t, *ret_number);
		if (fd == -ENOENT)
			continue;
		if (fd >= 0)
			t->given[t->given_cnt++] = *ret_number;
		return fd;
	}
	return -EAGAIN;
}

/* Its files as they are now, behind the record. */
static void open_files(struct push *p, struct target *t, int *fds, size_t *cnt)
{
	for (int i = 0; i < DESTINATION_NR_FILES; i++) {
		int fd;

		if (!t->d->files[i])
			continue;
		fd = destination__open_file(t->d, i);
		if (fd >= 0) {
			p->out.files |= 1U << i;
			fds[(*cnt)++] = fd;
			continue;
		}
		p->out.missing |= 1U << i;
		if (util_monotonic_ns() < t->complain_ns)
			continue;
		t->complain_ns = util_monotonic_ns() + QUIET_NS;
		log_error("push \"%s\": cannot read %s '%s': %s", t->d->name,
			  destination_file_key(i), t->d->files[i], strerror(-fd));
	}
}

static int on_next(struct push *p, struct target *t)
{
	uint64_t wanted = p->in.number, number;
	int fds[1 + DESTINATION_NR_FILES], err;
	size_t cnt = 1;

	if (wanted && !is_given(t, wanted))
		return -EPROTO;
	wire_begin(&p->out, WIRE_NOTHING);
	p->out.destination = p->in.destination;
	p->out.generation = p->in.generation;
	p->out.slot = p->in.slot;
	fds[0] = find_record(p, t, wanted, &number);
	if (fds[0] < 0) {
		p->out.value = fds[0] == -EAGAIN;
		return tell(p, 0, NULL, 0);
	}
	p->out.what = WIRE_RECORD;
	p->out.number = number;
	open_files(p, t, fds, &cnt);
	err = tell(p, 0, fds, cnt);
	t->under_way += !err;
	while (cnt)
		close(fds[--cnt]);
	return err;
}

static int on_ended(struct push *p, struct target *t)
{
	if (!is_given(t, p->in.number) || !t->under_way || p->in.value > WIRE_KEPT ||
	    p->in.reason > WIRE_NO_REASON || p->in.bytes > MAX_BODY)
		return -EPROTO;
	t->under_way--;
	t->stats.bytes += p->in.bytes;
	if (p->in.reason != WIRE_NO_REASON)
		t->stats.failures[p->in.reason]++;
	if (p->in.value == WIRE_KEPT)
		return 0;
	take_back(t, p->in.number);
	t->stats.outcome[p->in.value]++;
	settle(p, t, p->in.number);
	return 0;
}

/* The courier says little, and whoever has taken it over shall not fill a disk. */
static bool may_say(struct target *t)
{
	uint64_t now = util_monotonic_ns();

	if (now >= t->said_ns) {
		if (t->unsaid)
			log_error("push \"%s\": %" PRIu32 " lines more are left out", t->d->name,
				  t->unsaid);
		t->said_ns = now + QUIET_NS;
		t->said = 0;
		t->unsaid = 0;
	}
	if (t->said < MAX_SAID) {
		t->said++;
		return true;
	}
	t->unsaid++;
	return false;
}

static int on_said(struct push *p, struct target *t, size_t text_sz)
{
	if (!may_say(t))
		return 0;
	p->in.text[MIN(text_sz, sizeof(p->in.text) - 1)] = '\0';
	if (p->in.value)
		log_error("push \"%s\": %s", t->d->name, p->in.text);
	else
		log_info("push \"%s\": %s", t->d->name, p->in.text);
	return 0;
}

/* 0; -EPROTO: it lies. */
static int take_message(struct push *p, size_t sz)
{
	struct target *t;

	if (sz < WIRE_HEAD_SZ || p->in.destination >= WIRE_MAX_DESTINATIONS)
		return -EPROTO;
	if (p->in.what == WIRE_HEARD)
		return 0;
	t = &p->targets[p->in.destination];
	/* said before it heard that the destination is another one, or no more */
	if (!t->d || p->in.generation != p->generations[p->in.destination])
		return 0;
	switch (p->in.what) {
	case WIRE_NEXT:
		return on_next(p, t);
	case WIRE_ENDED:
		return on_ended(p, t);
	case WIRE_SAID:
		return on_said(p, t, sz - WIRE_HEAD_SZ);
	default:
		return -EPROTO;
	}
}

static void replace_courier(struct push *p, const char *why)
{
	log_error("the courier %s: it is started again, and what it had under way goes out again",
		  why);
	end_courier(p);
}

static void take_messages(struct push *p)
{
	size_t cnt;
	ssize_t n;
	int fds[1], err = 0;

	/* what is behind these makes push__fd readable again */
	for (int i = 0; !err && p->sock >= 0 && i < MAX_MESSAGES; i++) {
		n = fd_message_receive(p->sock, &p->in, sizeof(p->in), fds, 0, &cnt, MSG_DONTWAIT);
		if (n == -EAGAIN)
			return;
		err = n > 0 ? take_message(p, (size_t)n) : n ? (int)n : -EPIPE;
		p->unheard = 0;
	}
	if (err)
		replace_courier(p, err == -EPIPE ? "has ended" : "makes no sense");
}

void push__handle(struct push *p)
{
	uint64_t expired;
	int err = 0;

	if (p->sock < 0 && read(p->timer_fd, &expired, sizeof(expired)) == sizeof(expired))
		err = start_courier(p);
	if (err) {
		log_error("cannot start the courier: %s", strerror(-err));
		end_courier(p);
	}
	take_messages(p);
}

void push__status(struct push *p, const char *text, size_t sz)
{
	char *copy = malloc(sz + 1);

	if (!copy || sz > WIRE_MAX_TEXT) {
		free(copy);
		return;
	}
	memcpy(copy, text, sz);
	free(p->status);
	p->status = copy;
	p->status_sz = sz;
	/* what it has said may not be read yet */
	take_messages(p);
	if (p->sock >= 0 && p->unheard >= UNHEARD &&
	    util_monotonic_ns() >= p->unheard_ns + UNHEARD_NS)
		replace_courier(p, "has not been heard of for a minute");
	(void)tell_status(p);
}

void push__news(struct push *p, uint64_t bytes)
{
	wire_begin(&p->out, WIRE_NEWS);
	p->out.value = bytes;
	/* one that has just died hears of it when it starts */
	(void)tell(p, 0, NULL, 0);
}

/* ---- destinations ---- */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* For the courier: how old profiles may be that it is given is our business. */
static bool same_destination(const struct destination *a, const struct destination *b)
{
	bool same = same_text(a->name, b->name) && same_text(a->url, b->url) &&
		    same_text(a->kind, b->kind) && same_text(a->user, b->user) &&
		    same_text(a->tenant, b->tenant);

	for (int i = 0; i < DESTINATION_NR_FILES; i++)
		same = same && same_text(a->files[i], b->files[i]);
	return same;
}

static const struct destination *find(const struct destination *v, size_t cnt, const char *name)
{
	for (size_t i = 0; i < cnt; i++)
		if (!strcmp(v[i].name, name))
			return &v[i];
	return NULL;
}

static struct target *target_of(struct push *p, const char *name)
{
	for (size_t i = 0; i < WIRE_MAX_DESTINATIONS; i++)
		if (p->targets[i].d && !strcmp(p->targets[i].d->name, name))
			return &p->targets[i];
	return NULL;
}

/* 0; -errno, said. */
static int open_target(struct push *p, struct target *t, const struct destination *d, char *text,
		       size_t text_sz)
{
	bool damaged;
	int err = cursor__open(&t->cursor, p->spool, d->name, &damaged);

	if (err)
		return util_fail(err, text, text_sz, "push \"%s\": cannot open its cursor: %s",
				 d->name, strerror(-err));
	if (damaged)
		log_error(
			"push \"%s\": its cursor is damaged: it goes on with what is still to come",
			d->name);
	t->d = d;
	return 0;
}

static void close_target(struct target *t)
{
	cursor__close(&t->cursor);
	*t = (struct target){ .cursor.fd = -1 };
}

int push__change(struct push *p, const struct destination *v, size_t cnt, char *text,
		 size_t text_sz)
{
	struct target fresh[WIRE_MAX_DESTINATIONS];
	size_t fresh_cnt = 0;
	bool untold = false;
	int err = 0;

	/* what may fail comes first */
	for (size_t i = 0; !err && i < cnt; i++) {
		if (target_of(p, v[i].name))
			continue;
		fresh[fresh_cnt] = (struct target){ .cursor.fd = -1 };
		err = open_target(p, &fresh[fresh_cnt], &v[i], text, text_sz);
		fresh_cnt += !err;
	}
	if (err) {
		while (fresh_cnt)
			close_target(&fresh[--fresh_cnt]);
		return err;
	}
	for (uint32_t i = 0; i < WIRE_MAX_DESTINATIONS; i++) {
		struct target *t = &p->targets[i];
		const struct destination *now = t->d ? find(v, cnt, t->d->name) : NULL;
		bool same = now && same_destination(t->d, now);

		if (!t->d)
			continue;
		if (now)
			t->d = now;
		else
			close_target(t);
		if (same)
			continue;
		/* what was under way for the old one goes to the new one */
		forget_given(t);
		untold |= tell_destination(p, i) != 0;
	}
	for (uint32_t i = 0; fresh_cnt && i < WIRE_MAX_DESTINATIONS; i++) {
		if (p->targets[i].d)
			continue;
		p->targets[i] = fresh[--fresh_cnt];
		untold |= tell_destination(p, i) != 0;
	}
	/* it does not read, and would be told nothing any more: the next one is told all of it */
	if (untold && p->sock >= 0)
		end_courier(p);
	return 0;
}

/* ---- from the start to the end ---- */

int push__new(struct spool *spool, const struct destination *v, size_t cnt, const char *node,
	      int listening, struct push **ret, char *text, size_t text_sz)
{
	struct push *p = calloc(1, sizeof(*p));
	int err;

	*ret = NULL;
	if (!p) {
		if (listening >= 0)
			close(listening);
		return util_fail(-ENOMEM, text, text_sz, "out of memory");
	}
	p->listening = listening;
	p->spool = spool;
	p->sock = -1;
	snprintf(p->node, sizeof(p->node), "%s", node);
	for (size_t i = 0; i < WIRE_MAX_DESTINATIONS; i++)
		p->targets[i].cursor.fd = -1;
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	err = p->epoll_fd < 0 || p->timer_fd < 0 ? -errno : watch(p, p->timer_fd);
	if (err)
		util_fail(err, text, text_sz, "cannot wait for the courier: %s", strerror(-err));
	else if (!util_find_part(WIRE_PROGRAM, p->program, sizeof(p->program)))
		err = util_fail(-ENOENT, text, text_sz,
				"there is no " WIRE_PROGRAM
				" beside this program or in ../lib/bpfprof");
	if (!err)
		err = push__change(p, v, cnt, text, text_sz);
	if (!err) {
		err = start_courier(p);
		if (err)
			util_fail(err, text, text_sz, "cannot start %s: %s", p->program,
				  strerror(-err));
	}
	if (err)
		push__free(p);
	else
		*ret = p;
	return err;
}

void push__free(struct push *p)
{
	if (!p)
		return;
	if (p->timer_fd >= 0 && p->epoll_fd >= 0)
		end_courier(p);
	for (size_t i = 0; i < WIRE_MAX_DESTINATIONS; i++)
		close_target(&p->targets[i]);
	if (p->timer_fd >= 0)
		close(p->timer_fd);
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
	if (p->listening >= 0)
		close(p->listening);
	free(p->status);
	free(p);
}

int push__fd(const struct push *p)
{
	return p->epoll_fd;
}

/* Of those that were never taken up, the first that is still there; or what comes next. */
static uint64_t first_left(const struct push *p, const struct target *t)
{
	uint64_t number, time_ns;

	if (!spool__find(p->spool, t->cursor.next, &number, &time_ns))
		number = spool__end(p->spool);
	return MAX(number, t->cursor.next);
}

bool push__is_done(const struct push *p)
{
	for (size_t i = 0; i < WIRE_MAX_DESTINATIONS; i++)
		if (p->targets[i].d && (p->targets[i].cursor.open_cnt ||
					first_left(p, &p->targets[i]) < spool__end(p->spool)))
			return false;
	return true;
}

uint64_t push__settled(const struct push *p)
{
	return p->settled;
}

void push__stop(struct push *p)
{
	p->stopped = true;
}

size_t push__under_way(const struct push *p)
{
	size_t cnt = 0;

	for (size_t i = 0; i < WIRE_MAX_DESTINATIONS; i++)
		cnt += p->targets[i].under_way;
	return cnt;
}

pid_t push__courier(const struct push *p, uint64_t *ret_cpu_ns)
{
	struct timespec ts;
	clockid_t clock;

	*ret_cpu_ns = p->ended_cpu_ns;
	if (p->pid > 0 && !clock_getcpuclockid(p->pid, &clock) && !clock_gettime(clock, &ts))
		*ret_cpu_ns += (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
	return p->pid;
}

bool push__stats(const struct push *p, const char *name, struct push_stats *ret)
{
	const struct target *t = target_of((struct push *)p, name);
	uint64_t first;

	if (!t)
		return false;
	first = first_left(p, t);
	*ret = t->stats;
	/* as take_next counts them, which a store that is away does not come to */
	ret->dropped += first - t->cursor.next;
	ret->pending = t->cursor.open_cnt + spool__end(p->spool) - first;
	return true;
}
