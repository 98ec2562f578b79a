// SPDX-License-Identifier: BSD-2-Clause
#include "record/inherited.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"

#define FILES 1024	       /* a session raises it further (kernel/session.c) */
#define MEMORY_SZ (1ULL << 30) /* is enough to read the debug information of large programs */

static struct {
	int resource;
	const char *name, *option; /* of the shell's ulimit */
	rlim_t enough, unit;	   /* that ulimit takes */
	rlim_t least;		   /* below it nothing can be recorded */
	rlim_t spare; /* below the hard limit, to end in order: reaching that one kills */
	struct rlimit inherited;
	bool known;
} limits[] = {
	{ .resource = RLIMIT_NOFILE,
	  .name = "open files",
	  .option = "n",
	  .enough = FILES,
	  .unit = 1 },
	{ .resource = RLIMIT_AS,
	  .name = "KiB of address space",
	  .option = "v",
	  .enough = MEMORY_SZ,
	  .least = 64U << 20,
	  .unit = 1024 },
	{ .resource = RLIMIT_DATA,
	  .name = "KiB of data",
	  .option = "d",
	  .enough = MEMORY_SZ,
	  .least = 32U << 20,
	  .unit = 1024 },
	{ .resource = RLIMIT_CPU,
	  .name = "seconds of CPU time",
	  .option = "t",
	  .enough = RLIM_INFINITY,
	  .unit = 1,
	  .spare = 2 },
	/* libbpf lifts it before Linux 5.11, where maps count */
	{ .resource = RLIMIT_MEMLOCK, .unit = 1024 },
};

static struct {
	int signal;
	sighandler_t handler; /* ours */
	struct sigaction inherited;
	bool known;
} signals[] = {
	{ .signal = SIGPIPE, .handler = SIG_IGN },
	{ .signal = SIGXFSZ, .handler = SIG_IGN },
	/* ignored by some who start us, which would hide the end of a command */
	{ .signal = SIGCHLD, .handler = SIG_DFL },
};

static sigset_t blocked; /* what of them is taken by signalfd is blocked later */

/* A constructor, since limits are raised, and signals blocked, wherever they are met. */
static void __attribute__((constructor)) remember(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		limits[i].known = !getrlimit(limits[i].resource, &limits[i].inherited);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signals[i].known = !sigaction(signals[i].signal, NULL, &signals[i].inherited);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
}

/* Opens /dev/null in place of a standard descriptor that is closed. The flags make reading stdin and writing
 * stdout fail as before; messages to stderr vanish. O_CLOEXEC: a command finds it closed. */
static void fill(int fd, int flags)
{
	if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
		(void)!open("/dev/null", flags | O_CLOEXEC);
}

static void raise_limit(int resource, rlim_t enough, rlim_t spare)
{
	struct rlimit l;

	if (getrlimit(resource, &l) || l.rlim_cur >= enough)
		return;
	l.rlim_cur = enough;
	l.rlim_max = MAX(l.rlim_max, enough);
	/* more than the hard limit takes CAP_SYS_RESOURCE */
	if (!setrlimit(resource, &l) || getrlimit(resource, &l))
		return;
	l.rlim_cur = l.rlim_max > spare ? l.rlim_max - spare : l.rlim_max;
	(void)setrlimit(resource, &l);
}

void inherited_adapt(void)
{
	/* each gets the lowest number that is free */
	fill(STDIN_FILENO, O_WRONLY);
	fill(STDOUT_FILENO, O_RDONLY);
	fill(STDERR_FILENO, O_WRONLY);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		signal(signals[i].signal, signals[i].handler);
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		raise_limit(limits[i].resource, limits[i].enough, limits[i].spare);
}

int inherited_check(void)
{
	struct rlimit l;
	char enough[24];
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(limits) && !err; i++) {
		if (getrlimit(limits[i].resource, &l) || l.rlim_cur >= limits[i].enough)
			continue;
		err = l.rlim_cur < limits[i].least ? -ENOMEM : 0;
		if (limits[i].enough == RLIM_INFINITY)
			snprintf(enough, sizeof(enough), "unlimited");
		else
			snprintf(enough, sizeof(enough), "%" PRIu64,
				 (uint64_t)(limits[i].enough / limits[i].unit));
		(err ? log_error : log_info)(
			"%" PRIu64
			" %s are all that is allowed: %s (ulimit -%s %s, or CAP_SYS_RESOURCE)",
			(uint64_t)(l.rlim_cur / limits[i].unit), limits[i].name,
			err		? "too little to record anything" :
			limits[i].spare ? "the recording ends with them" :
					  "names may be missing, or the run fail",
			limits[i].option, enough);
	}
	return err;
}

void inherited_restore(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		if (limits[i].known)
			(void)setrlimit(limits[i].resource, &limits[i].inherited);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (signals[i].known)
			(void)sigaction(signals[i].signal, &signals[i].inherited, NULL);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
}
