// SPDX-License-Identifier: BSD-2-Clause
/* --debuginfod: what stacks lack debug information for is asked for while the run goes on, and waited for at its
 * end. */
#include <linux/types.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "capture/capture.h"
#include "courier/fetch_wire.h"
#include "debuginfod/fetch.h"
#include "debuginfod/servers.h"
#include "options.h"
#include "record/run_parts.h"
#include "report/report.h"

#define LOOK_NS (NSEC_PER_SEC / 2) /* between two looks */
#define LOOK_OBJECTS 4		   /* at each of them: samples are waiting */

int run_open_debuginfod(struct run *r)
{
	const struct options *o = r->opts;
	char servers[FETCH_MAX_TEXT], text[512];
	struct fetch_opts opts = {
		.servers = servers,
		.folder = o->debuginfod_cache,
		.patience =
			(unsigned int)((o->debuginfod_wait_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC),
	};
	int err;

	if (!o->debuginfod)
		return 0;
	err = servers_parse(getenv(SERVERS_VARIABLE), servers, sizeof(servers), text, sizeof(text));
	r->wrong_setup = err != 0;
	if (!err)
		err = fetch__new(&opts, &r->fetch, text, sizeof(text));
	if (err)
		log_error("--debuginfod: %s", text);
	return err;
}

void run_close_debuginfod(struct run *r)
{
	fetch__free(r->fetch);
	r->fetch = NULL;
}

static void want(void *ctx, const char *path, const uint8_t *build_id, size_t sz)
{
	struct run *r = ctx;

	fetch__ask(r->fetch, build_id, sz, path);
}

/* What has come goes to those who lack it. */
static void hand_over(struct run *r)
{
	struct fetch_arrived a;
	int err;

	while (fetch__next(r->fetch, &a)) {
		err = capture__give_debug(r->capture, a.id, a.id_sz, a.fd);
		fetch__settle(r->fetch, a.number,
			      !err	      ? NULL :
			      err == -EBADMSG ? "what came is not its debug information" :
						strerror(-err));
	}
}

void run_handle_debuginfod(struct run *r)
{
	fetch__handle(r->fetch);
	hand_over(r);
}

void run_tend_debuginfod(struct run *r)
{
	uint64_t now = util_monotonic_ns();

	if (!r->fetch || now < r->next_look_ns)
		return;
	if (!capture__lacking(r->capture, LOOK_OBJECTS, want, r))
		r->next_look_ns = now + LOOK_NS;
	hand_over(r);
}

static void wait_for_files(struct run *r)
{
	uint64_t until_ns = util_monotonic_ns() + r->opts->debuginfod_wait_ns,
		 now = util_monotonic_ns();
	struct pollfd fds[] = { { .events = POLLIN }, { .fd = r->signal_fd, .events = POLLIN } };
	int stops = r->stops;
	bool more;

	do {
		more = capture__lacking(r->capture, LOOK_OBJECTS, want, r);
		hand_over(r);
		if (!more && fetch__pending(r->fetch)) {
			fds[0].fd = fetch__fd(r->fetch);
			(void)poll(fds, ARRAY_SIZE(fds), (int)((until_ns - now) / 1000000 + 1));
		}
		run_handle_debuginfod(r);
		run_read_signals(r);
		now = util_monotonic_ns();
		/* what has come may tell of more, as those of dwz do */
	} while ((fetch__pending(r->fetch) || capture__lacking(r->capture, 0, want, r)) &&
		 now < until_ns && r->stops == stops);
	/* what has ended the waiting is none that ends the writing */
	r->stops = MIN(r->stops, 1);
}

static void say(const struct run *r)
{
	struct fetch_stats s;
	char missing[600], more[128] = "";

	fetch__stats(r->fetch, &s);
	if (!s.asked)
		return;
	fetch__missing(r->fetch, missing, sizeof(missing));
	if (s.refused)
		snprintf(more, sizeof(more), "; %" PRIu64 " more are not asked for, above %d",
			 s.refused, FETCH_MAX_FILES);
	log_info("debuginfod: %" PRIu64 " of %" PRIu64 " files of debug information, %" PRIu64
		 " of them from %s, %.1f MB fetched%s%s%s",
		 s.cached + s.fetched, s.asked, s.cached, r->opts->debuginfod_cache,
		 (double)s.bytes / 1e6, *missing ? "; not to be had: " : "", missing, more);
}

void run_finish_debuginfod(struct run *r)
{
	if (!r->fetch)
		return;
	wait_for_files(r);
	say(r);
}

bool run_debuginfod_stats(const struct run *r, struct report_debuginfod *ret)
{
	struct fetch_stats s;

	if (!r->fetch)
		return false;
	fetch__stats(r->fetch, &s);
	*ret = (struct report_debuginfod){ s.asked,   s.cached, s.fetched, s.bytes,
					   s.missing, s.late,	s.refused };
	return true;
}

static bool is_good(void *ctx, const uint8_t *id, size_t sz)
{
	return capture__has_debug(ctx, id, sz);
}

void run_forget_debuginfod(struct run *r)
{
	if (r->fetch)
		fetch__forget(r->fetch, is_good, r->capture);
}

int run_debuginfod_fd(const struct run *r)
{
	return r->fetch ? fetch__fd(r->fetch) : -1;
}
