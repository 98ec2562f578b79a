// SPDX-License-Identifier: BSD-2-Clause
/* One run of a side: recorded by a process of its own, which starts the command. */
#include <linux/types.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "bench/output.h"
#include "bench/parts.h"
#include "bench/plan.h"
#include "bench/strays.h"
#include "options.h"
#include "record/run.h"

enum {
	FROM_SIGNALS,
	FROM_RUN,
	FROM_COMMAND,
	FROM_OUTPUT,
	FROM_CNT
};

/* A run that goes on. */
struct going {
	struct bench *b;
	const struct bench_run *run;
	pid_t pid, command; /* command: 0 before it is started */
	struct pollfd fds[FROM_CNT];
	struct bench_output out;
	uint64_t deadline_ns, stop_ns, cont_ns; /* 0: never */
	bool timed_out, interrupted;
};

/* ---- the process that records ---- */

static void __attribute__((noreturn))
record(const struct bench *b, const struct bench_run *run, int output, int tell)
{
	char path[PATH_MAX], padding[PLAN_MAX_PADDING + 32] = "BPFPROF_PADDING=";
	struct launch_settings how = {
		.env = (char *const[]){ padding, NULL },
		.user = b->as_user ? &b->user : NULL,
		.own_group = true,
		.tell_fd = tell,
	};
	struct options o = *b->opts;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	memset(padding + strlen(padding), 'x', run->padding);
	bench_set_begun(&b->set, path);
	o.command = OPTIONS_RECORD;
	o.argv = bench_command(b, run);
	o.launch = &how;
	o.follow = true;
	o.output = path;
	o.strict = false;
	log_set_level(MIN(log_get_level(), LOG_ERROR));
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
	    dup2(output, STDERR_FILENO) < 0)
		_exit(126);
	_exit(run_record(&o));
}

/* 0 or -errno. */
static int start(struct going *g)
{
	int output[2] = { -1, -1 }, tell[2] = { -1, -1 }, err = 0;

	if (pipe2(output, O_CLOEXEC) || pipe2(tell, O_CLOEXEC))
		err = -errno;
	if (!err) {
		g->pid = fork();
		err = g->pid < 0 ? -errno : 0;
		if (!g->pid)
			record(g->b, g->run, output[1], tell[1]);
	}
	for (int i = err ? 0 : 1; i < 2; i++) {
		if (output[i] >= 0)
			close(output[i]);
		if (tell[i] >= 0)
			close(tell[i]);
	}
	if (err)
		return err;
	g->fds[FROM_SIGNALS] = (struct pollfd){ .fd = g->b->signal_fd, .events = POLLIN };
	g->fds[FROM_COMMAND] = (struct pollfd){ .fd = tell[0], .events = POLLIN };
	g->fds[FROM_OUTPUT] = (struct pollfd){ .fd = output[0], .events = POLLIN };
	g->fds[FROM_RUN] = (struct pollfd){
		.fd = util_pidfd_open(g->pid),
		.events = POLLIN,
	};
	fcntl(output[0], F_SETFL, O_NONBLOCK);
	return g->fds[FROM_RUN].fd < 0 ? -errno : 0;
}

/* ---- while it goes on ---- */

static void end_run(struct going *g)
{
	kill(g->pid, SIGTERM);
	if (g->command)
		kill(-g->command, SIGKILL);
}

static void command_started(struct going *g)
{
	uint64_t now = util_monotonic_ns();

	if (read(g->fds[FROM_COMMAND].fd, &g->command, sizeof(g->command)) != sizeof(g->command))
		g->command = 0;
	close(g->fds[FROM_COMMAND].fd);
	g->fds[FROM_COMMAND].fd = -1;
	g->deadline_ns = now + g->b->opts->bench.timeout_ns;
	if (g->run->pause_ns)
		g->stop_ns = now + g->run->pause_ns;
}

/* What is due by now. */
static void keep_time(struct going *g)
{
	uint64_t now = util_monotonic_ns();

	if (g->stop_ns && now >= g->stop_ns) {
		kill(-g->command, SIGSTOP);
		g->cont_ns = g->stop_ns + g->run->pause_ns;
		g->stop_ns = 0;
	}
	if (g->cont_ns && now >= g->cont_ns) {
		kill(-g->command, SIGCONT);
		g->cont_ns = 0;
	}
	if (g->deadline_ns && now >= g->deadline_ns) {
		g->timed_out = true;
		g->deadline_ns = 0;
		end_run(g);
	}
}

static int timeout_ms(const struct going *g)
{
	const uint64_t times[] = { g->deadline_ns, g->stop_ns, g->cont_ns };
	uint64_t now = util_monotonic_ns(), next = UINT64_MAX;

	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		if (times[i])
			next = MIN(next, times[i]);
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)MIN((next - now) / 1000000 + 1, UINT64_C(1000000));
}

static void read_signal(struct going *g)
{
	struct signalfd_siginfo info;

	if (read(g->fds[FROM_SIGNALS].fd, &info, sizeof(info)) != sizeof(info))
		return;
	g->interrupted = true;
	end_run(g);
}

/* Until the process that records has ended. */
static void wait_for(struct going *g)
{
	while (true) {
		int n = poll(g->fds, FROM_CNT, timeout_ms(g));

		keep_time(g);
		if (n <= 0)
			continue;
		if (g->fds[FROM_OUTPUT].revents & POLLIN)
			bench_output__read(&g->out, g->fds[FROM_OUTPUT].fd);
		else if (g->fds[FROM_OUTPUT].revents)
			g->fds[FROM_OUTPUT].fd = -g->fds[FROM_OUTPUT].fd - 1;
		if (g->fds[FROM_COMMAND].revents)
			command_started(g);
		if (g->fds[FROM_SIGNALS].revents)
			read_signal(g);
		if (g->fds[FROM_RUN].revents)
			return;
	}
}

static void finish(struct going *g, int *ret_status)
{
	int *output = &g->fds[FROM_OUTPUT].fd;

	while (waitpid(g->pid, ret_status, 0) < 0 && errno == EINTR)
		;
	if (g->command)
		kill(-g->command, SIGKILL);
	if (strays_end())
		log_info(
			"'%s' left processes running, which were ended: they would disturb the "
			"next run",
			*bench_command(g->b, g->run));
	/* now nobody writes any more */
	if (*output < 0)
		*output = -*output - 1;
	bench_output__read(&g->out, *output);
	bench_output__end(&g->out);
	for (int i = FROM_RUN; i < FROM_CNT; i++)
		if (g->fds[i].fd >= 0)
			close(g->fds[i].fd);
}

/* ---- what has become of it ---- */

static int refuse(const struct going *g, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static int refuse(const struct going *g, const char *fmt, ...)
{
	char text[256], last[BENCH_OUTPUT_LAST];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	util_printable(last, sizeof(last), g->out.last);
	log_error("a run of the %s side, '%s', %s%s%s", bench_side_names[g->run->side],
		  *bench_command(g->b, g->run), text, *last ? "; it said: " : "", last);
	return -EINVAL;
}

static int check_end(const struct going *g, int status)
{
	if (g->interrupted)
		return -EINTR;
	if (g->timed_out)
		return refuse(g, "took longer than --timeout");
	if (WIFSIGNALED(status))
		return refuse(g, "was not recorded: signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) > 128)
		return refuse(g, "ended by signal %d", WEXITSTATUS(status) - 128);
	if (WEXITSTATUS(status))
		return refuse(g, "failed with exit status %d", WEXITSTATUS(status));
	return 0;
}

static int count_ops(const struct going *g, struct run_facts *ret)
{
	ret->ops = g->b->ops;
	if (!g->b->opts->bench.ops_regex)
		return 0;
	if (!g->out.found)
		return refuse(g, "printed nothing that --ops-regex matches");
	switch (bench_output__ops(&g->out, &ret->ops)) {
	case 0:
		return 0;
	case -EDOM:
		return refuse(g,
			      "printed %g operations, and a whole number is expected: let it print "
			      "one, or do so many that the rest is below 0.1 %%",
			      g->out.ops_cnt);
	default:
		return refuse(g, "printed %g operations: a number from 1 on is expected",
			      g->out.ops_cnt);
	}
}

int bench_one_run(struct bench *b, const struct bench_run *run, struct run_facts *ret)
{
	struct going g = { .b = b, .run = run };
	int status = 0, err = bench_prepare(b);

	if (err)
		return err;
	for (int i = 0; i < FROM_CNT; i++)
		g.fds[i].fd = -1;
	bench_output__begin(&g.out, b->opts->bench.ops_regex ? &b->ops_regex : NULL);
	err = start(&g);
	if (err) {
		log_error("cannot start a run: %s", strerror(-err));
		return -EINVAL;
	}
	wait_for(&g);
	finish(&g, &status);
	facts_clear(ret);
	err = check_end(&g, status);
	return err ? err : count_ops(&g, ret);
}
