// SPDX-License-Identifier: BSD-2-Clause
#include "target/proc_text.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/raw_call.h"
#include "base/rest.h"
#include "base/util.h"
#include "target/proc_maps.h"

#define PROC "/proc/"
#define TICK_MS 20
#define MAX_IDLE_TICKS 50 /* in which the helper was not about to go on */
#define MAX_HALVINGS 3	  /* of that, one for each process that is left alone */
#define MAX_NS (10 * NSEC_PER_SEC)
#define MAX_REMEMBERED 64
/* Of all processes together: as many ticks, in so long. */
#define CREDIT_TICKS 100
#define CREDIT_NS (10 * NSEC_PER_SEC)
#define NO_CREDIT_MS 1
#define MAX_HELPERS 4096

/* A process that did not let us have one of its files in time. */
struct silent {
	uint32_t pid; /* 0: none */
	struct rest rest;
};

static struct silent silent[MAX_REMEMBERED];

static struct {
	uint64_t until_ns;
	int ticks; /* in which a helper was not about to go on */
} waited;

/* The last helpers, for who wants to know them by their samples. */
static struct {
	pid_t pids[MAX_HELPERS];
	size_t cnt;
} helpers;

struct text {
	pid_t pid;	/* of the helper */
	uint32_t of;	/* whose file it is */
	int from, to;	/* a pair of sockets */
	int fd;		/* the file, once the helper has opened it; -1 */
	atomic_int err; /* that the helper has met; 0 */
	bool link;	/* it is where it leads to that is wanted */
	bool ended;	/* nothing more is to come */
	uint64_t deadline_ns;
	char path[64];
	char buf[16384];
	char stack[16384] __attribute__((aligned(16)));
};

/* ---- the helper, which writes to no errno and asks for no memory: both are ours; so are its descriptors, and
 * it closes none: where it is killed in the middle nobody would know ---- */

/* No SIGPIPE where nobody reads any more. */
static long put(const struct text *t, const char *buf, long sz)
{
	return raw_call(SYS_sendto, t->to, (long)buf, sz, MSG_NOSIGNAL, 0);
}

static long copy_all(struct text *t, int fd)
{
	long n, done, sent;

	while ((n = raw_call(SYS_read, fd, (long)t->buf, sizeof(t->buf), 0, 0)) > 0)
		for (done = 0; done < n; done += sent) {
			sent = put(t, t->buf + done, n - done);
			if (sent < 0)
				return sent;
		}
	return n;
}

static long copy_link(struct text *t)
{
	long n = raw_call(SYS_readlink, (long)t->path, (long)t->buf, sizeof(t->buf), 0, 0);

	return n <= 0 ? n : put(t, t->buf, n);
}

static long copy_file(struct text *t)
{
	t->fd = (int)raw_call(SYS_open, (long)t->path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
	return t->fd < 0 ? t->fd : copy_all(t, t->fd);
}

static int help(void *arg)
{
	struct text *t = arg;
	long err;

	(void)raw_call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	err = t->link ? copy_link(t) : copy_file(t);
	t->err = err < 0 ? (int)-err : 0;
	(void)raw_call(SYS_shutdown, t->to, SHUT_WR, 0, 0, 0);
	return 0;
}

/* ---- us ---- */

static bool is_left_alone(uint32_t pid)
{
	for (size_t i = 0; i < MAX_REMEMBERED; i++)
		if (silent[i].pid == pid)
			return silent[i].rest.until_ns && !rest__ends(&silent[i].rest);
	return false;
}

/* One that begins to keep us waiting is waited for less patiently while there are others. */
static int max_idle_ticks(void)
{
	uint64_t now = util_monotonic_ns();
	unsigned int cnt = 0;

	for (size_t i = 0; i < MAX_REMEMBERED; i++)
		cnt += silent[i].rest.until_ns > now;
	return MAX_IDLE_TICKS >> MIN(cnt, MAX_HALVINGS);
}

/* In the place of itself, or of one that is left alone for the shortest time, if at all. */
static void leave_alone(uint32_t pid)
{
	struct silent *s = &silent[0];

	for (size_t i = 0; i < MAX_REMEMBERED && s->pid != pid; i++)
		if (silent[i].pid == pid || silent[i].rest.until_ns < s->rest.until_ns)
			s = &silent[i];
	if (s->pid != pid)
		*s = (struct silent){ .pid = pid };
	rest__begin(&s->rest);
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

/* Until there is something, or the end. 0 or -ETIMEDOUT; without credit at once, and nobody is blamed for that. */
static int await(struct text *t)
{
	struct pollfd p = { .fd = t->from, .events = POLLIN };
	bool credit = has_credit(), runnable;
	int idle = 0, n;

	/* a signal ends no tick */
	while ((n = poll(&p, 1, credit ? TICK_MS : NO_CREDIT_MS)) <= 0) {
		runnable = n < 0 || proc_is_runnable(t->pid);
		/* it may have ended, and said all, just now */
		if (!credit && !runnable && poll(&p, 1, 0) <= 0)
			return -ETIMEDOUT;
		idle = n < 0 ? idle : runnable ? 0 : idle + 1;
		waited.ticks += !runnable;
		credit = has_credit();
		if (idle > max_idle_ticks() || util_monotonic_ns() > t->deadline_ns) {
			leave_alone(t->of);
			return -ETIMEDOUT;
		}
	}
	return 0;
}

/* It finds that nobody reads any more; what it waits for it can be killed at. But whoever is killed as it has opened
 * a file cannot say which. */
static void stop(struct text *t)
{
	struct pollfd p = { .fd = util_pidfd_open(t->pid), .events = POLLIN };

	(void)shutdown(t->from, SHUT_RDWR);
	if (p.fd < 0 || poll(&p, 1, has_credit() ? TICK_MS : NO_CREDIT_MS) <= 0)
		(void)kill(t->pid, SIGKILL);
	if (p.fd >= 0)
		close(p.fd);
}

static int finish(void *cookie)
{
	struct text *t = cookie;

	if (!t->ended)
		stop(t);
	while (waitpid(t->pid, NULL, __WALL) < 0 && errno == EINTR)
		;
	close(t->from);
	close(t->to);
	if (t->fd >= 0)
		close(t->fd);
	free(t);
	return 0;
}

static ssize_t get(void *cookie, char *buf, size_t sz)
{
	struct text *t = cookie;
	int err = t->ended ? 0 : await(t);
	ssize_t n = err || t->ended ? 0 : read(t->from, buf, sz);

	t->ended |= !err && !n;
	if (t->ended)
		err = -t->err;
	if (err)
		errno = -err;
	return err ? -1 : n;
}

/* NULL with errno. */
static struct text *start(const char *path, bool link)
{
	struct text *t = malloc(sizeof(*t));
	int pair[2], err;

	if (!t || strlen(path) >= sizeof(t->path) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
		err = !t ? ENOMEM : strlen(path) >= sizeof(t->path) ? ENAMETOOLONG : errno;
		free(t);
		errno = err;
		return NULL;
	}
	t->of = (uint32_t)strtoul(path + strlen(PROC), NULL, 10);
	t->from = pair[0];
	t->to = pair[1];
	t->fd = -1;
	t->err = 0;
	t->link = link;
	t->ended = false;
	t->deadline_ns = util_monotonic_ns() + MAX_NS;
	strcpy(t->path, path);
	/* no signal tells of its end: others would look after their children for it */
	t->pid = clone(help, t->stack + sizeof(t->stack), CLONE_VM | CLONE_FILES, t);
	if (t->pid > 0) {
		helpers.pids[helpers.cnt++ % MAX_HELPERS] = t->pid;
		return t;
	}
	err = errno;
	close(pair[0]);
	close(pair[1]);
	free(t);
	errno = err;
	return NULL;
}

/* Below /proc. */
static FILE *open_text(const char *path, bool link)
{
	const cookie_io_functions_t io = { .read = get, .close = finish };
	struct text *t;
	FILE *f;
	int c;

	if (is_left_alone((uint32_t)strtoul(path + strlen(PROC), NULL, 10))) {
		errno = ETIMEDOUT;
		return NULL;
	}
	t = start(path, link);
	f = t ? fopencookie(t, "r", io) : NULL;
	if (t && !f)
		(void)finish(t);
	if (!f)
		return NULL;
	/* whether it could be opened */
	c = getc(f);
	if (c == EOF && ferror(f)) {
		int err = errno;

		fclose(f);
		errno = err;
		return NULL;
	}
	if (c != EOF)
		(void)ungetc(c, f);
	else
		clearerr(f);
	return f;
}

FILE *proc_text_open(const char *path)
{
	/* else it is a test's */
	return strncmp(path, PROC, strlen(PROC)) ? fopen(path, "re") : open_text(path, false);
}

bool proc_text_had_helper(pid_t pid)
{
	for (size_t i = 0; i < MIN(helpers.cnt, (size_t)MAX_HELPERS); i++)
		if (helpers.pids[i] == pid)
			return true;
	return false;
}

ssize_t proc_text_link(const char *path, char *ret, size_t sz)
{
	FILE *f = open_text(path, true);
	size_t n;

	if (!f)
		return -1;
	n = fread(ret, 1, sz, f);
	fclose(f);
	return (ssize_t)n;
}

int proc_text_read(const char *path, size_t max, char **ret, size_t *ret_sz)
{
	FILE *f = proc_text_open(path);
	size_t cap = 0, sz = 0;
	char *buf = NULL;
	int err = f ? 0 : -errno;

	while (!err && !feof(f)) {
		err = util_reserve(&buf, &cap, sz + BUFSIZ + 1, 1);
		if (err)
			break;
		sz += fread(buf + sz, 1, BUFSIZ, f);
		if (ferror(f))
			err = -errno;
		else if (sz > max)
			err = -EFBIG;
	}
	if (f)
		fclose(f);
	if (err) {
		free(buf);
		return err;
	}
	buf[sz] = '\0';
	*ret = buf;
	*ret_sz = sz;
	return 0;
}
