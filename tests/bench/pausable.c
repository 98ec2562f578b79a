// SPDX-License-Identifier: BSD-2-Clause
/*
 * The main command, whose clocks and programs for waits and threads can be detached and attached
 * again while it runs: so what they cost is measured in turns of less than a second, in which a
 * machine that others use as well, and a load, change less than from one run to the next. A line of
 * its input asks for it, "off" or "on"; a line of its output, the same, says that it is done. The
 * heap's probes, which are attached now and then, stay as they are.
 *
 * Linked with -Wl,--wrap (ld(1)) for what it takes the place of.
 */
#include <linux/types.h>

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "kernel/probe_waits.h"
#include "kernel/session.h"
#include "options.h"
#include "run.h"
#include "run_parts.h"

int __real_session__arm(struct session *s, char *err, size_t err_sz);
int __wrap_session__arm(struct session *s, char *err, size_t err_sz);
void __real_run_waits_tick(struct run *r);
void __wrap_run_waits_tick(struct run *r);

static bool off;

/* Called some ten times a second, lest a CPU goes and comes back. */
int __wrap_session__arm(struct session *s, char *err, size_t err_sz)
{
	return off ? 0 : __real_session__arm(s, err, err_sz);
}

static int turn(struct run *r, bool to_off)
{
	char text[512];

	off = to_off;
	if (off) {
		session__disarm(r->session);
		probe_waits__free(r->waits);
		r->waits = NULL;
		return 0;
	}
	r->waits = probe_waits__new(r->session);
	if (!r->waits)
		return -errno;
	return probe_waits__start(r->waits, util_monotonic_ns()) ?:
		       session__arm(r->session, text, sizeof(text));
}

static bool is_asked(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

void __wrap_run_waits_tick(struct run *r)
{
	char line[8] = "";

	if (is_asked() && read(STDIN_FILENO, line, sizeof(line) - 1) > 0) {
		int err = turn(r, !strcmp(line, "off\n"));

		printf("%s", err ? strerror(-err) : line);
		fflush(stdout);
	}
	__real_run_waits_tick(r);
}

int main(int argc, char **argv)
{
	struct options opts;
	char err[512];
	int status;

	if (options_parse(argc, argv, &opts, err, sizeof(err))) {
		fprintf(stderr, "%s\n", err);
		return 2;
	}
	log_set_level(opts.log_level);
	status = run_record(&opts);
	options_done(&opts);
	return status;
}
