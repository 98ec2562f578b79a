// SPDX-License-Identifier: BSD-2-Clause
/* The loop between the server, which asks, and the recordings, which answer. */
#include <linux/types.h>

#include "serve/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/stop_signals.h"
#include "base/util.h"
#include "kernel/features.h"
#include "kernel/uprobes.h"
#include "kinds.h"
#include "options.h"
#include "record/inherited.h"
#include "record/ready.h"
#include "record/rights.h"
#include "serve/asked.h"
#include "serve/changes.h"
#include "serve/custom_found.h"
#include "serve/http_server.h"
#include "serve/listening.h"
#include "serve/process.h"
#include "serve/profile_file.h"
#include "serve/recordings.h"

_Static_assert(SERVE_NAME_SZ == CUSTOM_NAME_SZ && CUSTOM_NAMES_MAX <= SERVE_MAX_CUSTOM,
	       "what there is in a process has room in a message");

#define HAS_ENDED "the process has ended"

struct serve {
	const struct options *opts;
	struct recordings recordings;
	struct custom_found custom;
	struct changes changes;
	struct http_server *server;
	struct listening listening;
	int signal_fd, pidfd; /* pidfd: of the process served, -1: it is none */
	bool stopped;
	uint64_t watchdog_ns; /* see ready_alive */
};

/* ---- what is asked ---- */

static void on_answer(void *ctx, const struct asked *a, unsigned int status, int fd,
		      const char *text)
{
	struct serve *s = ctx;

	http_server__answer(s->server, a->number, status, fd, text);
	changes__drop(&s->changes, a->number);
}

static void on_first(void *ctx, const struct asked *a, struct profile *p)
{
	struct serve *s = ctx;
	int err = changes__add(&s->changes, a, p);

	if (err == -ESRCH)
		http_server__answer(s->server, a->number, 404, -1, HAS_ENDED);
	else if (err)
		http_server__answer(s->server, a->number, 503, -1,
				    err == -EBUSY ? "too many requests wait already" :
						    "failed to compute delta");
}

static void refuse(struct serve *s, const struct asked *a, int err)
{
	char text[128] = "failed to collect profile";
	unsigned int status = 500;

	if (err == -EBUSY) {
		status = 503;
		snprintf(text, sizeof(text), "too many profiles are being recorded already");
	} else if (err == -ESRCH) {
		status = 404;
		snprintf(text, sizeof(text), "no process %u", a->pid);
	} else if (a->endpoint->what == ENDPOINT_CPU) {
		snprintf(text, sizeof(text), "Could not enable CPU profiling: %s", strerror(-err));
	}
	on_answer(s, a, status, -1, text);
}

static void take_profile(struct serve *s, struct asked *a)
{
	struct recording_opts opts = { .pid = a->pid, .frequency = a->hz ?: s->opts->frequency };
	struct recording *r;
	int err = 0;

	a->kind = (enum bpfprof_kind)kinds_find(a->endpoint->kind, strlen(a->endpoint->kind));
	opts.kinds[a->kind] = true;
	r = recordings__find(&s->recordings, a->pid, a->kind, opts.frequency);
	rights_to_load(true);
	if (!r)
		err = recordings__open(&s->recordings, &opts, &r);
	if (!err)
		err = recording__add(r, a);
	rights_to_load(false);
	if (err)
		refuse(s, a, err);
}

/* Has the process a custom profile of this name? 0; -ENOENT: it has not; -errno. */
static int find_custom(struct serve *s, const struct asked *a)
{
	int err;

	rights_to_load(true);
	err = custom_found__look(&s->custom, &s->recordings, a->pid);
	rights_to_load(false);
	return err ? err : custom_names__has(&s->custom.names, a->name) ? 0 : -ENOENT;
}

static void take_custom(struct serve *s, struct asked *a, const char *name, size_t sz)
{
	int err = -ENOENT;

	memcpy(a->name, name, MIN(sz, sizeof(a->name) - 1));
	if (custom_name_ok(a->name))
		err = find_custom(s, a);
	if (err == -ENOENT)
		http_server__answer(s->server, a->number, 404, -1, "Unknown profile");
	else if (err)
		refuse(s, a, err);
	else
		take_profile(s, a);
}

static void take_cmdline(struct serve *s, const struct asked *a)
{
	size_t sz = 0;
	char *text;
	int err = process_cmdline((pid_t)a->pid, &text, &sz), fd;

	if (err) {
		refuse(s, a, -ESRCH);
		return;
	}
	fd = profile_file_of(text, sz);
	free(text);
	http_server__answer(s->server, a->number, fd < 0 ? 500 : 200, fd, NULL);
	if (fd >= 0)
		close(fd);
}

/* Samples of a kind, of recordings that go on. */
static uint64_t count_samples(const struct serve *s, uint32_t pid, enum bpfprof_kind kind)
{
	const struct recording *r = recordings__find(&s->recordings, pid, kind, s->opts->frequency);

	return r ? recording__samples(r, kind) : 0;
}

static void count_all(const struct serve *s, const struct asked *a, uint64_t threads,
		      uint64_t ret[static ENDPOINTS_MAX])
{
	for (size_t i = 0; i < endpoint_cnt; i++) {
		const char *name = endpoints[i].kind;
		int kind = name ? kinds_find(name, strlen(name)) : -1;

		if (endpoints[i].at_once)
			ret[i] = threads;
		else if (kind == BPFPROF_FDS)
			ret[i] = process_fds((pid_t)a->pid);
		else if (kind >= 0)
			ret[i] = count_samples(s, a->pid, (enum bpfprof_kind)kind);
	}
}

/* Returns how many there are. */
static size_t list_custom(struct serve *s, uint32_t pid, struct serve_custom ret[CUSTOM_NAMES_MAX])
{
	struct recording *r =
		recordings__find(&s->recordings, pid, BPFPROF_CUSTOM, s->opts->frequency);
	const struct custom_names *names = &s->custom.names;

	rights_to_load(true);
	(void)custom_found__look(&s->custom, &s->recordings, pid);
	rights_to_load(false);
	for (size_t i = 0; i < names->cnt; i++) {
		ret[i].held = 0;
		memcpy(ret[i].name, names->all[i].name, sizeof(ret[i].name));
	}
	if (r)
		recording__custom(r, ret, names->cnt);
	return names->cnt;
}

static void take_index(struct serve *s, const struct asked *a)
{
	uint64_t counts[ENDPOINTS_MAX] = { 0 }, threads;
	struct serve_custom custom[CUSTOM_NAMES_MAX];

	if (process_threads((pid_t)a->pid, &threads)) {
		refuse(s, a, -ESRCH);
		return;
	}
	count_all(s, a, threads, counts);
	http_server__answer_index(s->server, a->number, counts, custom,
				  list_custom(s, a->pid, custom));
}

/* By whatever is recorded of the process, which knows its code. */
static void take_symbol(struct serve *s, const struct asked *a, const uint64_t *addresses,
			size_t cnt)
{
	struct recording_opts opts = { .pid = a->pid,
				       .frequency = s->opts->frequency,
				       .kinds[BPFPROF_THREADS] = true };
	struct recording *r = recordings__of(&s->recordings, a->pid);
	int err = 0, fd;

	/* to find names takes a while, too */
	s->recordings.took_long = true;
	rights_to_load(true);
	if (!r)
		err = recordings__open(&s->recordings, &opts, &r);
	rights_to_load(false);
	fd = err ? err : recording__symbols(r, addresses, cnt);
	if (fd < 0) {
		refuse(s, a, fd);
		return;
	}
	http_server__answer(s->server, a->number, 200, fd, NULL);
	close(fd);
}

static void take_ask(struct serve *s, const struct serve_wire *m, size_t text_sz)
{
	struct asked a = { .number = m->number,
			   .pid = m->pid,
			   .hz = MIN(m->hz, SERVE_MAX_HZ),
			   .seconds = MIN(m->seconds, SERVE_MAX_SECONDS),
			   .debug = m->debug };

	/* what the server asks for may be what has got into it */
	if (m->endpoint >= endpoint_cnt || !m->pid || m->pid > INT32_MAX ||
	    (s->opts->pids.cnt && m->pid != s->opts->pids.ids[0])) {
		http_server__answer(s->server, m->number, 400, -1, "this is not served");
		return;
	}
	a.endpoint = &endpoints[m->endpoint];
	switch (a.endpoint->what) {
	case ENDPOINT_INDEX:
		take_index(s, &a);
		break;
	case ENDPOINT_CMDLINE:
		take_cmdline(s, &a);
		break;
	case ENDPOINT_SYMBOL:
		take_symbol(s, &a, (const uint64_t *)m->text, text_sz / sizeof(uint64_t));
		break;
	default:
		if (a.endpoint->named)
			take_custom(s, &a, m->text, text_sz);
		else
			take_profile(s, &a);
	}
}

static void drop(struct serve *s, uint64_t number)
{
	recordings__drop(&s->recordings, number);
	changes__drop(&s->changes, number);
}

static void drop_all(struct serve *s)
{
	recordings__drop_all(&s->recordings);
	changes__drop_all(&s->changes);
}

static void take_messages(struct serve *s)
{
	const struct serve_wire *m;
	size_t sz;

	if (http_server__tend(s->server, util_monotonic_ns()))
		drop_all(s);
	/* some take a while, as opening a recording: those that go on come first */
	s->recordings.took_long = false;
	for (size_t i = 0; i < SERVE_MAX_ASKED && !s->recordings.took_long &&
			   (m = http_server__receive(s->server, &sz));
	     i++) {
		if (m->what == SERVE_GONE)
			drop(s, m->number);
		else
			take_ask(s, m, sz);
	}
}

/* The second profiles that are due, and those that there will not be. */
static void take_changes(struct serve *s)
{
	struct asked a;

	while (changes__ended(&s->changes, &a))
		on_answer(s, &a, 404, -1, HAS_ENDED);
	while (changes__take(&s->changes, util_monotonic_ns(), &a))
		take_profile(s, &a);
}

/* ---- the loop ---- */

static bool is_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return fd >= 0 && poll(&p, 1, 0) > 0;
}

static int timeout_ms(const struct serve *s)
{
	uint64_t now = util_monotonic_ns(), ns = http_server__next_ns(s->server);

	ns = MIN(ns, recordings__next_ns(&s->recordings));
	ns = MIN(ns, changes__next_ns(&s->changes));
	return now >= ns ? 0 : (int)MIN((ns - now + 999999) / 1000000, 1000);
}

static int wait_for_more(const struct serve *s)
{
	struct pollfd fds[3 + 2 * RECORDINGS_MAX + SERVE_MAX_ASKED];
	size_t n = 3;

	fds[0] = (struct pollfd){ .fd = s->signal_fd, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = s->pidfd, .events = POLLIN };
	fds[2] = (struct pollfd){ .fd = http_server__fd(s->server), .events = POLLIN };
	n += recordings__fds(&s->recordings, fds + n);
	n += changes__fds(&s->changes, fds + n);
	return poll(fds, n, timeout_ms(s)) < 0 && errno != EINTR ? -errno : 0;
}

/* 0, when it was asked to end, or its process has; -errno. */
static int loop(struct serve *s)
{
	int err = 0;

	while (!err && !s->stopped) {
		err = wait_for_more(s);
		ready_alive(s->watchdog_ns);
		take_messages(s);
		take_changes(s);
		recordings__poll(&s->recordings);
		/* those who wait have been answered just now */
		s->stopped = is_readable(s->signal_fd);
		if (!s->stopped && is_readable(s->pidfd)) {
			recordings__poll(&s->recordings);
			take_changes(s);
			log_info("process %u has ended", s->opts->pids.ids[0]);
			http_server__finish(s->server);
			s->stopped = true;
		}
	}
	return err;
}

/* ---- begin and end ---- */

/* 0 or -errno, said. */
static int open_signals(struct serve *s)
{
	sigset_t set;

	stop_signals(&set);
	if (!sigprocmask(SIG_BLOCK, &set, NULL)) {
		s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
		if (s->signal_fd >= 0)
			return 0;
	}
	log_error("cannot set up signals: %s", strerror(errno));
	return -errno;
}

/* The process that was named ends what is served of it. 0 or -errno, said. */
static int open_process(struct serve *s)
{
	const struct options_ids *pids = &s->opts->pids;
	uint64_t threads;

	if (!pids->cnt)
		return 0;
	s->pidfd = util_pidfd_open(pids->ids[0]);
	if ((s->pidfd >= 0 || errno == ENOSYS) && !process_threads((pid_t)pids->ids[0], &threads))
		return 0;
	log_error("no process %u", pids->ids[0]);
	return -ESRCH;
}

/* The machine, and what we may do there. 0 or -errno, said. */
static int check(void)
{
	struct feature_result ns = features_probe(FEATURE_PID_NAMESPACE);
	const char *missing = features_missing();

	if (!ns.ok)
		log_error("%s", ns.text);
	else if (missing)
		log_error("%s", missing);
	return ns.ok && !missing ? 0 : -ENOTSUP;
}

/* What is recorded all the time. 0 or -errno, said. */
static int open_always(struct serve *s)
{
	struct recording_opts opts = { .always = true, .frequency = s->opts->frequency };
	struct recording *r;
	bool any = false;
	int err;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		any |= s->opts->kinds[i];
	if (!any)
		return 0;
	opts.pid = s->opts->pids.ids[0];
	memcpy(opts.kinds, s->opts->kinds, sizeof(opts.kinds));
	err = recordings__open(&s->recordings, &opts, &r);
	if (err == -ESRCH)
		log_error("no process %u", opts.pid);
	return err;
}

static int open_server(struct serve *s)
{
	struct http_server_opts opts = {
		.listening = s->listening.fd,
		.pid = s->opts->pids.cnt ? s->opts->pids.ids[0] : 0,
		.any_host = !s->listening.loopback,
		.token = s->listening.token,
	};
	char text[256];
	int err = http_server__new(&opts, &s->server, text, sizeof(text));

	if (err)
		log_error("%s", text);
	return err;
}

static int open_all(struct serve *s)
{
	int err = open_signals(s);

	if (!err)
		err = check();
	if (!err)
		err = open_process(s);
	if (!err)
		err = open_always(s);
	if (!err)
		err = open_server(s);
	if (!err)
		err = inherited_check();
	if (err)
		return err;
	err = rights_reduce_but_load(uprobes_by_events(uprobes_probe(UPROBES_SESSION)));
	if (err)
		log_info("all rights are kept, since they cannot be given up: %s", strerror(-err));
	log_info("serving http://%s/debug/pprof/", s->listening.address);
	ready_tell(s->opts->ready_fd);
	return 0;
}

int serve(const struct options *opts)
{
	struct serve s = {
		.opts = opts, .signal_fd = -1, .pidfd = -1, .watchdog_ns = ready_watchdog_ns()
	};
	bool unusable;
	int err;

	s.recordings = (struct recordings){
		.opts = opts, .answer = on_answer, .first = on_first, .ctx = &s
	};
	s.listening.fd = -1;
	err = listening_open(opts, &s.listening);
	unusable = err != 0;
	if (!err)
		err = open_all(&s);
	if (!err) {
		err = loop(&s);
		ready_say("STOPPING=1");
	}
	http_server__free(s.server);
	recordings__done(&s.recordings);
	changes__drop_all(&s.changes);
	listening_close(&s.listening);
	for (int *fd = (int[]){ s.signal_fd, s.pidfd, -2 }; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
	return unusable ? 2 : err ? 1 : 0;
}
