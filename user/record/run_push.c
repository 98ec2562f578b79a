// SPDX-License-Identifier: BSD-2-Clause
/* The agent's stores: what is in the spool goes there, and where that is may change meanwhile. */
#include <linux/types.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/push.h"
#include "base/listen.h"
#include "base/log.h"
#include "base/util.h"
#include "config.h"
#include "options.h"
#include "record/ready.h"
#include "record/run_parts.h"
#include "spool/spool.h"

/* For the last window, when the run has ended: it is handed out no longer than that, nor while nothing arrives. */
#define FLUSH_NS (10 * NSEC_PER_SEC)
#define STALLED_NS (2 * NSEC_PER_SEC)
/* And then for the answers to what is under way: a service is killed 60 s after it was told to end. */
#define ENDED_NS (10 * NSEC_PER_SEC)

void run_log_setup(const struct options *o, const char *option, const char *value, const char *text)
{
	const struct config *c = o->config;
	unsigned int line = c ? config__line(c, value) : 0;

	if (line)
		log_error("%s:%u: %s: %s", c->path, line, option, text);
	else
		log_error("--%s: %s", option, text);
}

/* With these destinations, none if c is NULL. */
static int new_push(struct run *r, const struct config *c, int listening, char *text,
		    size_t text_sz)
{
	char node[256] = "";

	(void)gethostname(node, sizeof(node) - 1);
	return push__new(r->spool, c ? c->push : NULL, c ? c->push_cnt : 0, node, listening,
			 &r->push, text, text_sz);
}

int run_open_push(struct run *r)
{
	const struct options *o = r->opts;
	int listening = -1, err;
	char text[512];

	r->totals.reload_ns = util_realtime_ns();
	if (strcmp(o->listen, "none") != 0) {
		listening = listen_open(o->listen, text, sizeof(text));
		if (listening < 0) {
			r->wrong_setup = true;
			run_log_setup(o, "listen", o->listen, text);
			return listening;
		}
	}
	if (listening < 0 && (!o->config || !o->config->push_cnt))
		return 0;
	err = new_push(r, o->config, listening, text, sizeof(text));
	if (err)
		log_error("%s", text);
	return err;
}

const struct config *run_config(const struct run *r)
{
	return r->fresh ? r->fresh->config : r->opts->config;
}

void run_close_push(struct run *r)
{
	push__free(r->push);
	r->push = NULL;
	if (r->fresh)
		options_done(r->fresh);
	free(r->fresh);
	r->fresh = NULL;
}

void run_push_news(struct run *r)
{
	struct spool_stats stats;

	if (!r->push)
		return;
	spool__stats(r->spool, &stats);
	push__news(r->push, stats.added_bytes - r->pushed_bytes);
	r->pushed_bytes = stats.added_bytes;
}

/* ---- SIGHUP ---- */

static bool same_options(const struct config *a, const struct config *b)
{
	if (a->arg_cnt != b->arg_cnt)
		return false;
	for (size_t i = 0; i < a->arg_cnt; i++)
		if (strcmp(a->args[i], b->args[i]) != 0)
			return false;
	return true;
}

/* The first destinations start the courier, unless it is there already. */
static int change(struct run *r, const struct config *c, char *text, size_t text_sz)
{
	if (r->push)
		return push__change(r->push, c->push, c->push_cnt, text, text_sz);
	return c->push_cnt ? new_push(r, c, -1, text, text_sz) : 0;
}

static int reload(struct run *r)
{
	const struct options *now = r->fresh ? r->fresh : r->opts;
	struct options *fresh = calloc(1, sizeof(*fresh));
	bool had_push = r->push != NULL;
	char text[1024] = "out of memory";
	int err;

	if (!now->config) {
		log_info("there is no --config that could be read again");
		free(fresh);
		return 0;
	}
	err = fresh ? options_parse(r->opts->all_cnt, r->opts->all_args, fresh, text,
				    sizeof(text)) :
		      -ENOMEM;
	if (!err) {
		err = change(r, fresh->config, text, sizeof(text));
		if (err)
			options_done(fresh);
	}
	r->totals.reload_failed = err != 0;
	if (err) {
		log_error("the configuration stays as it was: %s", text);
		free(fresh);
		return 0;
	}
	r->totals.reload_ns = util_realtime_ns();
	log_info("the configuration was read again%s",
		 same_options(now->config, fresh->config) ?
			 "" :
			 "; options that are others now are taken at the next start");
	if (r->fresh)
		options_done(r->fresh);
	free(r->fresh);
	r->fresh = fresh;
	run_reload_targets(r);
	return had_push || !r->push ? 0 : run_watch_push(r);
}

int run_reload(struct run *r)
{
	char text[64];
	int err;

	r->reload = false;
	/* sd_notify(3): Type=notify-reload */
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64,
		 util_monotonic_ns() / 1000);
	ready_say(text);
	err = reload(r);
	ready_say("READY=1");
	return err;
}

/* ---- the end ---- */

void run_flush_push(struct run *r)
{
	uint64_t begin = util_monotonic_ns(), last = begin, now = begin, settled;
	struct pollfd fds[] = { { .fd = -1, .events = POLLIN },
				{ .fd = r->signal_fd, .events = POLLIN } };
	uint64_t until = begin + FLUSH_NS;
	bool stopped = false;

	if (!r->push)
		return;
	fds[0].fd = push__fd(r->push);
	settled = push__settled(r->push);
	while (!push__is_done(r->push) && now < until && !run_is_aborted(r) &&
	       (!stopped || push__under_way(r->push))) {
		(void)poll(fds, ARRAY_SIZE(fds), 100);
		push__handle(r->push);
		now = util_monotonic_ns();
		if (push__settled(r->push) != settled)
			last = now;
		settled = push__settled(r->push);
		if (!stopped && (now >= until || now - last >= STALLED_NS)) {
			/* cut off, it would be sent again although a store may have it */
			push__stop(r->push);
			stopped = true;
			until = now + ENDED_NS;
		}
	}
	if (!push__is_done(r->push))
		log_info("not all profiles are delivered: the rest goes out after the next start");
}
