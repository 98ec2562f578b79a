// SPDX-License-Identifier: BSD-2-Clause
/* Turns the command line into one action and its result into an exit status. */
#include <linux/types.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/log.h"
#include "base/output.h"
#include "base/own_stack.h"
#include "bench/bench.h"
#include "check.h"
#include "diff.h"
#include "kernel/uprobes.h"
#include "list.h"
#include "options.h"
#include "options_table.h"
#include "record/dump.h"
#include "record/inherited.h"
#include "record/ready.h"
#include "record/rights.h"
#include "record/run.h"
#include "serve/serve.h"
#include "view/merge_files.h"
#include "view/view.h"

enum {
	EXIT_WRITTEN = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2
};

static int finish_stdout(void)
{
	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return EXIT_WRITTEN;
	log_error("cannot write standard output: %s", output_reason(-(errno ?: EIO)));
	return EXIT_FAILED;
}

/* Becomes man(1). Returns only if it cannot. */
static int show_manual(const char *page)
{
	inherited_restore();
	execlp("man", "man", "8", page, NULL);
	log_error("cannot start man(1) for %s(8): %s", page, strerror(errno));
	return EXIT_FAILED;
}

/* They are anybody's, and nothing else is needed for them. */
static bool reads_profiles(enum options_command command)
{
	return command == OPTIONS_VIEW || command == OPTIONS_MERGE || command == OPTIONS_DIFF;
}

static int act(int argc, char **argv)
{
	struct options opts;
	char err[512];
	bool wrong;
	int status;

	knobs_read();
	wrong = options_parse(argc, argv, &opts, err, sizeof(err)) != 0;
	/* a service's messages are collected, unless somebody looks on */
	if ((opts.command == OPTIONS_AGENT || opts.command == OPTIONS_SERVE) &&
	    !isatty(STDERR_FILENO))
		log_use_logfmt();
	if (wrong) {
		log_error("%s", err);
		return EXIT_USAGE;
	}
	log_set_level(opts.log_level);
	/* before a file that is opened gets its number */
	if (ready_check(opts.ready_fd)) {
		log_error("--ready-fd %d is not open", opts.ready_fd);
		options_done(&opts);
		return EXIT_FAILED;
	}
	if (reads_profiles(opts.command) && rights_for_files()) {
		log_error("cannot give up capabilities");
		return EXIT_USAGE;
	}
	switch (opts.command) {
	case OPTIONS_MANUAL:
		status = show_manual(opts.help == OPTIONS_HELP ? OPTIONS_MAIN_PAGE :
								 option_table(opts.help)->manual);
		break;
	case OPTIONS_HELP:
		options_usage(opts.help, stdout);
		status = finish_stdout();
		break;
	case OPTIONS_VERSION:
		printf("bpfprof %s\n", BPFPROF_VERSION);
		status = finish_stdout();
		break;
	case OPTIONS_LIST:
		status = list_print(opts.pids.cnt ? opts.pids.ids[0] : 0, stdout) ||
					 finish_stdout() ?
				 EXIT_FAILED :
				 EXIT_WRITTEN;
		break;
	case OPTIONS_CHECK_CONFIG:
		printf("%s: right\n", opts.config_path);
		status = finish_stdout();
		break;
	case OPTIONS_CHECK:
		status = check_print(stdout) || finish_stdout() ? EXIT_FAILED : EXIT_WRITTEN;
		break;
	case OPTIONS_VIEW:
		status = view_files(&opts.view, opts.files, opts.output) ? EXIT_FAILED :
									   EXIT_WRITTEN;
		break;
	case OPTIONS_MERGE:
		status = merge_files(opts.files, opts.output) ? EXIT_FAILED : EXIT_WRITTEN;
		break;
	case OPTIONS_DIFF:
		status = diff_sides(&opts);
		break;
	case OPTIONS_BENCH:
		status = bench_sides(&opts);
		break;
	case OPTIONS_SERVE:
		status = serve(&opts);
		break;
	case OPTIONS_DUMP:
		status = run_dump(&opts);
		break;
	default:
		status = run_record(&opts);
	}
	options_done(&opts);
	return status;
}

struct invocation {
	int argc;
	char **argv;
	int status;
};

static void act_on(void *arg)
{
	struct invocation *i = arg;

	i->status = act(i->argc, i->argv);
}

/* A process that attaches for us, and is kept waiting, shares our descriptors: they would be open until it ends, and
 * whoever reads what we write would wait for that. */
static void close_shared(void)
{
	(void)fflush(NULL);
	(void)close_range(0, UINT_MAX, 0);
}

int main(int argc, char **argv)
{
	struct invocation i = { argc, argv, EXIT_FAILED };

	/* a reader that goes away, or a file that is too large, is an error of write, with a message */
	inherited_adapt();
	own_stack_run(act_on, &i);
	if (uprobes_are_late())
		close_shared();
	return i.status;
}
