// SPDX-License-Identifier: BSD-2-Clause
/* What others ask the agent for: to end its window, and to dump the last minutes, which another
 * process does. */
#include <linux/types.h>

#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/log.h"
#include "capture/capture.h"
#include "helper/helper.h"
#include "options.h"
#include "record/dump.h"
#include "record/run_parts.h"

int run_end_window(struct run *r)
{
	int err = capture__cut(r->capture);

	/* not just now: what waits comes first */
	if (err == -EAGAIN)
		return 0;
	r->cut = false;
	return err;
}

void run_want_dump(struct run *r)
{
	if (r->dumping || r->dump)
		log_error("a dump is under way already: SIGUSR2 starts no other one");
	else
		r->dump = true;
}

/* It asks for the end of the window as any other dump does. */
void run_start_dump(struct run *r)
{
	static const char *const levels[] = {
		[LOG_ERROR] = "--quiet", [LOG_INFO] = NULL, [LOG_DEBUG] = "--verbose"
	};
	const char *argv[] = { "bpfprof", "agent",	  "--dump=" DUMP_BY_SIGNAL,
			       "--spool", r->opts->spool, levels[r->opts->log_level],
			       NULL };
	pid_t pid = helper_start_self(argv);

	r->dump = false;
	if (pid < 0)
		log_error("cannot start a dump: %s", strerror(-pid));
	else
		r->dumping = pid;
}

/* What went wrong it has said itself, if it could. */
void run_end_dump(struct run *r)
{
	int status;

	if (!r->dumping || waitpid(r->dumping, &status, WNOHANG) != r->dumping)
		return;
	r->dumping = 0;
	if (WIFSIGNALED(status))
		log_error("the dump was ended by signal %d: nothing was dumped", WTERMSIG(status));
}
