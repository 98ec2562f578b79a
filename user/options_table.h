/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of each command, one row each: what getopt_long(3) is given, and what --help prints.
 * scripts/check-docs compares the manual and the shell completions with --help.
 */
#ifndef OPTIONS_TABLE_H
#define OPTIONS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "options.h"

/* Values of options that have no short form. */
enum {
	OPT_CGROUP = 256,
	OPT_COMM,
	OPT_FOLLOW,
	OPT_NO_LABELS,
	OPT_EVENT,
	OPT_HEAP_RATE,
	OPT_HEAP_BUDGET,
	OPT_MIN_AGE,
	OPT_MIN_WAIT,
	OPT_WAIT_RATE,
	OPT_WAIT_BUDGET,
	OPT_STATS,
	OPT_WINDOW,
	OPT_KEEP,
	OPT_SPOOL,
	OPT_SPOOL_SIZE,
	OPT_MAX_CPU,
	OPT_MAX_MEMORY,
	OPT_LISTEN,
	OPT_CONFIG,
	OPT_CHECK_CONFIG,
	OPT_DUMP,
	OPT_DEBUGINFOD,
	OPT_DEBUGINFOD_WAIT,
	OPT_DEBUGINFOD_CACHE,
	OPT_STRICT,
	OPT_READY_FD,
	OPT_OWN_SAMPLES,
	OPT_VALUE,
	OPT_BASE,
	OPT_FOCUS,
	OPT_LIMIT,
	OPT_TREE,
	OPT_MIN_SHARE,
	OPT_FAIL_ON,
	OPT_ALPHA,
	OPT_MIN_EFFECT,
	OPT_SEED,
	OPT_AGAINST,
	OPT_AA,
	OPT_APPEND,
	OPT_REPEAT,
	OPT_MAX_REPEAT,
	OPT_BUILDS,
	OPT_WARMUP,
	OPT_PREPARE,
	OPT_TIMEOUT,
	OPT_OPS,
	OPT_OPS_REGEX,
	OPT_CROSS_MACHINE,
	OPT_SOURCE_ROOT,
	OPT_OPS_PROBE,
	OPT_ALWAYS,
	OPT_ALLOW_REMOTE,
	OPT_TOKEN_FILE,
	OPT_VERSION,
	OPT_END,
};

struct option_row {
	const char *name; /* long form, without dashes; NULL: a heading, or what is no option */
	int val;	  /* what getopt_long answers: the letter of the short form, or OPT_… */
	const char *arg;  /* what --help calls its argument; NULL: it takes none */
	const char *def;  /* argument that is in force where the option is not given; NULL: none */
	const char *help; /* printed behind it, the default before its first ';' */
};

struct option_table {
	const struct option_row *rows;
	size_t cnt;
	const char *usage;  /* what --help begins with */
	const char *manual; /* where there is more: a page of section 8 */
	/* Operands are files, and options may stand behind them (options_view.c). Otherwise what
	 * follows the first operand is a command's. */
	bool takes_files;
};

/* The page of all commands. */
#define OPTIONS_MAIN_PAGE "bpfprof"

const struct option_table *option_table(enum options_command command);

/* The option of this value, or NULL. */
const struct option_row *option_find(const struct option_table *t, int val);

/* What --help prints: lines of at most 100 columns. */
void options_usage(enum options_command command, FILE *f);

#endif
