/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line: parsed once into a struct that nothing changes afterwards. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log.h"
#include "bpfprof.h"
#include "custom/custom_wanted.h"
#include "view/view.h"
#include "judge/judge.h"

struct config;
struct format;
struct judge_format;
struct launch_settings;

#define OPTIONS_MAX_FREQUENCY 1000000 /* the parser's limit; run clamps to the kernel's */
#define OPTIONS_DEFAULT_FREQUENCY 99
#define OPTIONS_DEFAULT_HEAP_RATE 524288
#define OPTIONS_DEFAULT_HEAP_BUDGET 1 /* where the default kinds are to cost 3 together */
#define OPTIONS_NAMED_HEAP_BUDGET 5   /* where kinds are named */
#define OPTIONS_MAX_WAIT_RATE_NS UINT32_MAX
#define OPTIONS_DEFAULT_WAIT_BUDGET 1
#define OPTIONS_AGENT_WAIT_BUDGET 0.25
#define OPTIONS_DEBUGINFOD_WAIT_NS 10000000000ULL
#define OPTIONS_MAX_DEBUGINFOD_WAIT_NS 3600000000000ULL
#define OPTIONS_DEBUGINFOD_CACHE "/var/cache/bpfprof"
#define OPTIONS_MIN_WINDOW_NS 10000000ULL /* to end one takes as long */
/* Of the agent. */
#define OPTIONS_AGENT_FREQUENCY 19
#define OPTIONS_AGENT_WINDOW_NS 10000000000ULL
#define OPTIONS_AGENT_MIN_WINDOW_NS 1000000000ULL
#define OPTIONS_AGENT_SPOOL "/var/lib/bpfprof"
#define OPTIONS_AGENT_LISTEN "127.0.0.1:6061"
#define OPTIONS_AGENT_SPOOL_SZ (1ULL << 30)
#define OPTIONS_SERVE_LISTEN "127.0.0.1:6060"

enum options_command {
	OPTIONS_RECORD,
	OPTIONS_AGENT,
	OPTIONS_CHECK,
	OPTIONS_LIST,
	OPTIONS_VIEW,
	OPTIONS_MERGE,
	OPTIONS_DIFF,
	OPTIONS_BENCH,
	OPTIONS_SERVE,
	OPTIONS_CHECK_CONFIG, /* of the agent: it is right */
	OPTIONS_DUMP,	      /* the last minutes of the agent's folder */
	OPTIONS_HELP,	      /* print options_usage to standard output, exit 0 */
	OPTIONS_MANUAL,	      /* show the manual page of `help` */
	OPTIONS_VERSION,
};

enum options_event {
	OPTIONS_CPU_CLOCK, /* a timer on each CPU: works everywhere */
	OPTIONS_CYCLES,	   /* the processor's cycle counter: needs a PMU */
};

#define OPTIONS_BENCH_FREQUENCY 997
#define OPTIONS_BENCH_TIMEOUT_NS 600000000000ULL

/* Of OPTIONS_BENCH. */
struct bench_options {
	const char *against;   /* the base's command, as one argument; NULL with aa */
	bool aa;	       /* the base is the same command */
	const char *append;    /* the folder of a set that is to grow; NULL: a new one */
	uint64_t repeat;       /* runs a side before the first verdict, at least 1; 0: not said */
	uint64_t max_repeat;   /* before the last one, at least as many */
	uint64_t builds;       /* of a side, 2 or more; 0: both commands are as they are */
	uint64_t warmup;       /* runs a side that do not count */
	const char *prepare;   /* command for a shell, before each run; or NULL */
	uint64_t timeout_ns;   /* of a run */
	uint64_t ops;	       /* of each run; 0: not said */
	const char *ops_regex; /* extended regular expression with a group; or NULL */
	const char *ops_probe; /* as ops_probe_parse takes it; or NULL */
};

/* Distinct ids in 1..INT32_MAX, in the order in which they were given; at most
 * BPFPROF_MAX_FILTERED. */
struct options_ids {
	uint32_t *ids;
	size_t cnt;
};

/* Strings are borrowed from argv, or from config. */
struct options {
	enum options_command command;
	enum options_command help; /* for OPTIONS_HELP: of which command */

	/* What is profiled. For OPTIONS_RECORD exactly one of pids, all, argv is given, for
	 * OPTIONS_AGENT it is all; for OPTIONS_SERVE one of pids, or none: what a request names. */
	struct options_ids pids;
	bool all;
	char **argv;			      /* command to start, NULL-terminated; or NULL */
	const struct launch_settings *launch; /* how it is started, see launch.h; NULL: as it is */
	bool follow;			      /* children too; always so with a command */

	/* What narrows it. */
	struct options_ids tids;
	const char *cgroup; /* path, or NULL */
	const char *comm;   /* pattern that some thread name can match, see glob_compile; or NULL */
	bool user_only, kernel_only; /* not both */

	bool kinds
		[BPFPROF_NR_KINDS]; /* at least one; of OPTIONS_SERVE those that are always recorded */
	bool chosen[BPFPROF_NR_KINDS]; /* of these, only of the configuration's targets */
	struct custom_wanted custom;   /* of BPFPROF_CUSTOM, which profiles */
	bool kinds_given;	       /* they were named: one that cannot be had is an error */
	uint64_t duration_ns;	       /* 0: until it is interrupted, or the target ends */
	uint32_t frequency;	       /* per second and CPU, 1..OPTIONS_MAX_FREQUENCY */
	enum options_event event;
	uint64_t heap_rate;    /* mean bytes between samples, 1..UINT32_MAX */
	double heap_budget;    /* percent of the target's CPU time, above 0, up to 100: no limit */
	uint64_t min_age_ns;   /* heap: only what has been held so long; 0: all */
	uint64_t min_wait_ns;  /* see options_min_wait_ns */
	bool min_wait_given;   /* it was named: 0 means 0 */
	double wait_budget;    /* the same, of the target's CPU time or of one CPU */
	uint64_t wait_rate_ns; /* a shorter wait is recorded with probability length / rate; 0, or
				  up to OPTIONS_MAX_WAIT_RATE_NS */

	char **files; /* of OPTIONS_VIEW and OPTIONS_MERGE: at least one, NULL-terminated */
	struct view_options view;

	/* Of OPTIONS_DIFF. */
	char **bases, **news; /* files and folders, at least one each */
	size_t base_cnt, new_cnt;
	bool cross_machine; /* the files may be of different machines */
	struct judge_options judge;
	const struct judge_format *judge_format;

	struct bench_options bench;

	const char *output; /* "-": standard output; NULL: a name made from the target, of
			       OPTIONS_VIEW where its format goes; of OPTIONS_MERGE it is given;
			       of OPTIONS_BENCH a folder, NULL: none */
	const struct format *format;
	/* of each set of files, at least OPTIONS_MIN_WINDOW_NS; 0: one set for the whole run */
	uint64_t window_ns;
	uint32_t keep; /* sets; 0: all */
	int all_cnt;   /* what options_parse was given */
	char **all_args;
	const char *config_path; /* the agent's, or NULL */
	struct config *config;	 /* what is in it */
	const char *spool;	 /* the agent's folder */
	const char *listen;	 /* where it is asked how it is, see listen_open; or "none"; of
				    OPTIONS_SERVE where it serves */
	bool allow_remote;	 /* also at addresses that other machines reach */
	const char *token_file;	 /* who asks has to have what is in there; NULL: nothing */
	uint64_t spool_sz;	 /* bytes that it may hold, SPOOL_MIN_SZ at least */
	double max_cpu;		 /* percent of all CPUs that it may cost; 0: no limit */
	uint64_t max_memory;	 /* bytes; 0: no limit */
	bool own_samples;	 /* those of bpfprof itself are not left out */
	uint64_t dump_ns;	 /* OPTIONS_DUMP: how far back */
	bool debuginfod;	 /* debug information is fetched from servers */
	uint64_t debuginfod_wait_ns;
	const char *debuginfod_cache; /* the folder for it */
	const char *stats;	      /* "-": standard output; NULL: none */
	bool strict;		      /* see report_strict */
	int ready_fd;		      /* see ready.h; -1: none */
	bool thread_labels;	      /* keep threads of different names apart, by a label */
	enum log_level log_level;
};

/*
 * Fills *ret. Returns 0; or -EINVAL or -ENOMEM with one sentence in err, without newline, in *ret the
 * command and nothing to be freed. The sentence quotes arguments as they are: print it through
 * log_error. err_sz >= 1. Not reentrant (getopt_long).
 */
int options_parse(int argc, char **argv, struct options *ret, char *err, size_t err_sz);

/* Frees what options_parse allocated. */
void options_done(struct options *o);

/* Waits of this kind that are shorter are left out: as given, or the kind's default. */
uint64_t options_min_wait_ns(const struct options *o, enum bpfprof_kind kind);

#endif
