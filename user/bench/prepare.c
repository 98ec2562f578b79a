// SPDX-License-Identifier: BSD-2-Clause
/* What comes before a run, and is not measured: --prepare. */
#include <linux/types.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "bench/parts.h"
#include "options.h"

/* Until it has ended. 0; -EINTR: somebody wants us to end; -ETIME; -errno. */
static int wait_for(const struct bench *b, struct launch *l)
{
	uint64_t end_ns = util_monotonic_ns() + b->opts->bench.timeout_ns;
	struct pollfd fds[] = { { .fd = util_pidfd_open(l->pid), .events = POLLIN },
				{ .fd = b->signal_fd, .events = POLLIN } };
	int err = fds[0].fd < 0 ? -errno : 0;

	while (!err && !launch_ended(l)) {
		uint64_t now = util_monotonic_ns();

		if (now >= end_ns)
			err = -ETIME;
		else if (poll(fds, ARRAY_SIZE(fds),
			      (int)MIN((end_ns - now) / 1000000 + 1, UINT64_C(1000000))) > 0 &&
			 fds[1].revents)
			err = -EINTR;
	}
	if (fds[0].fd >= 0)
		close(fds[0].fd);
	return err;
}

/* 0 or -errno. */
static int run(const struct bench *b, const char *script, struct launch *l)
{
	char *const argv[] = { "sh", "-c", (char *)script, NULL };
	struct launch_settings how = {
		.user = b->as_user ? &b->user : NULL,
		.own_session = true,
	};
	int err = launch_prepare(argv, &how, l);

	if (err)
		return err;
	err = launch_go(l);
	err = err ?: wait_for(b, l);
	if (err)
		kill(-l->pid, SIGKILL);
	launch_done(l);
	return err;
}

int bench_prepare(const struct bench *b)
{
	const char *command = b->opts->bench.prepare;
	struct launch l;
	char *script;
	int err;

	if (!command)
		return 0;
	/* our standard output is for the result */
	err = asprintf(&script, "exec </dev/null >&2\n%s", command) < 0 ? -ENOMEM : 0;
	if (!err) {
		err = run(b, script, &l);
		free(script);
	}
	if (err == -EINTR)
		return err;
	if (err == -ETIME)
		log_error("--prepare '%s' took longer than --timeout", command);
	else if (err)
		log_error("cannot run --prepare '%s': %s", command, strerror(-err));
	else if (launch_exit_status(&l))
		log_error("--prepare '%s' failed with exit status %d", command,
			  launch_exit_status(&l));
	return err || launch_exit_status(&l) ? -EINVAL : 0;
}
