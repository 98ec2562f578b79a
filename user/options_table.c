/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of options, and --help, which is printed from it. */
#include "options_table.h"

#include <string.h>

#include "base/util.h"
#include "judge/write.h"
#include "report/formats.h"
#include "kinds.h"

#define HELP_COLUMN 29 /* behind the longest option with its argument */
#define HELP_WIDTH 100

/* That each command has. */
#define MESSAGE_ROWS                                                          \
	{ .help = "Messages:" }, { "quiet", 'q', NULL, NULL, "errors only" }, \
		{ "verbose", 'v', NULL, NULL, "say more" },                   \
		{ "version", OPT_VERSION, NULL, NULL, "print the version" },  \
	{                                                                     \
		"help", 'h', NULL, NULL, "print this"                         \
	}

/* Of diff and bench. */
#define JUDGE_ROWS                                                                                 \
	{ .help = "What fails:" },                                                                 \
		{ "fail-on", OPT_FAIL_ON, "CHANGE", "cpu:+5%",                                     \
		  "METRIC:+X%: a change of this size is to be caught, in the total and in every "  \
		  "function; METRIC:FUNCTION:+X%: in this function; may be given several times" }, \
		{ "alpha", OPT_ALPHA, "P", "0.05",                                                 \
		  "the chance of a false alarm, for all that fails" },                             \
		{ "min-effect", OPT_MIN_EFFECT, "PERCENT", "1",                                    \
		  "smaller changes of the total are none; twice that of a function" },             \
		{ "min-share", OPT_MIN_SHARE, "PERCENT", "0.5",                                    \
		  "of the total, below which a function is left out; twice that with what it "     \
		  "calls" },                                                                       \
	{                                                                                          \
		"strict", OPT_STRICT, NULL, NULL, "exit status 3 if it cannot be told"             \
	}

#define JUDGE_FORM_ROWS                                                                          \
	{ "format", 'f', "NAME", "text", "form of the result, see below" },                      \
	{                                                                                        \
		"source-root", OPT_SOURCE_ROOT, "DIR", NULL,                                     \
			"with -f github: folder of the sources, from which on annotations name " \
			"files"                                                                  \
	}

static const struct option_row record_rows[] = {
	{ .help = "What to profile:" },
	{ "pid", 'p', "LIST", NULL,
	  "processes by id, separated by commas, with all their threads" },
	{ "follow", OPT_FOLLOW, NULL, NULL, "with --pid: also the children that they start" },
	{ "all", 'a', NULL, NULL, "the whole machine" },
	{ .arg = "-- COMMAND [ARG...]",
	  .help = "start it, profile it and its children until it ends" },

	{ .help = "Only part of it:" },
	{ "tid", 't', "LIST", NULL, "only these threads" },
	{ "cgroup", OPT_CGROUP, "PATH", NULL, "only what runs in this control group or below" },
	{ "comm", OPT_COMM, "GLOB", NULL, "only threads whose name matches, such as 'nginx*'" },
	{ "user", 'U', NULL, NULL, "only user frames" },
	{ "kernel", 'K', NULL, NULL, "only kernel frames" },

	{ .help = "How:" },
	{ "profile", 'P', "LIST", "cpu,heap,block,threadcreate",
	  "profile kinds, separated by commas; with --all without heap" },
	{ "duration", 'd', "TIME", NULL,
	  "30, 30s, 500ms, 5m; without it until Ctrl-C or the target's end" },
	{ "frequency", 'F', "HZ", "99", "CPU samples a second on each CPU" },
	{ "event", OPT_EVENT, "NAME", "cpu-clock",
	  "what takes CPU samples: cpu-clock, or cycles where there is a hardware counter" },

	{ .help = "Heap:" },
	{ "heap-rate", OPT_HEAP_RATE, "BYTES", "512k",
	  "mean bytes between two samples; 1: every allocation" },
	{ "heap-budget", OPT_HEAP_BUDGET, "PERCENT", "1",
	  "of the target's CPU time that the probes may cost; where -P names kinds 5; above it "
	  "they "
	  "are attached in slices, and what is in use is left out; 100: no limit" },
	{ "min-age", OPT_MIN_AGE, "TIME", NULL,
	  "only memory that has been held that long at the end" },

	{ .help = "Waits (block, mutex, offcpu):" },
	{ "min-wait", OPT_MIN_WAIT, "TIME", "1us",
	  "leave out shorter waits; of offcpu 0, with --all 1ms" },
	{ "wait-rate", OPT_WAIT_RATE, "TIME", NULL,
	  "record a shorter wait with probability length / TIME, weighted accordingly, for busy "
	  "systems; without it all that --wait-budget allows" },
	{ "wait-budget", OPT_WAIT_BUDGET, "PERCENT", "1",
	  "of the target's CPU time, or of one CPU if that is more, that recording waits may cost; "
	  "above it --wait-rate is set as needed; 100: no limit" },

	{ .help = "Names:" },
	{ "debuginfod", OPT_DEBUGINFOD, NULL, NULL,
	  "ask the servers that DEBUGINFOD_URLS names for debug information that is not here: "
	  "build ids leave the machine" },
	{ "debuginfod-wait", OPT_DEBUGINFOD_WAIT, "TIME", "10s",
	  "that the end waits for it; a server that gives nothing for as long is not asked again" },
	{ "debuginfod-cache", OPT_DEBUGINFOD_CACHE, "DIR", OPTIONS_DEBUGINFOD_CACHE,
	  "the folder where it is kept, up to 2 GiB; it is made if it is not there" },

	{ .help = "Result:" },
	{ "output", 'o', "PATH", "bpfprof.TARGET.KIND.EXT", "the file, - for standard output" },
	{ "format", 'f', "NAME", "pprof", "form of the result, see below" },
	{ "window", OPT_WINDOW, "TIME", NULL,
	  "write a set of files for each TIME, numbered from 0001 on, adjoining and complete" },
	{ "keep", OPT_KEEP, "N", NULL, "with --window: keep only the last N sets" },
	{ "stats", OPT_STATS, "FILE", NULL,
	  "write a JSON account of the run, - for standard output" },
	{ "strict", OPT_STRICT, NULL, NULL,
	  "exit status 1 if anything was lost, or more than 1 % of the stacks are not whole; "
	  "everything is written all the same" },
	{ "ready-fd", OPT_READY_FD, "N", NULL,
	  "write READY to descriptor N when everything is attached" },
	{ "no-labels", OPT_NO_LABELS, NULL, NULL, "do not label samples with the thread's name" },

	MESSAGE_ROWS,
};

static const struct option_row agent_rows[] = {
	{ .help = "Configuration:" },
	{ "config", OPT_CONFIG, "FILE", NULL,
	  "an INI file of these options, without dashes, of stores to push to, and of targets "
	  "whose "
	  "heap and locks are recorded; what stands on the command line counts more" },
	{ "check-config", OPT_CHECK_CONFIG, "FILE", NULL, "say whether it is right, and end" },

	{ .help = "What it has:" },
	{ "dump", OPT_DUMP, "TIME", NULL,
	  "add up the last minutes, such as 5m, of the folder of an agent that runs or has run: a "
	  "file "
	  "for each kind; print the name of the folder that they are in, and end" },

	{ .help = "How:" },
	{ "profile", 'P', "LIST", "cpu,offcpu,threadcreate",
	  "profile kinds, separated by commas, of the whole machine" },
	{ "window", OPT_WINDOW, "TIME", "10s",
	  "that a profile covers; windows adjoin, and begin at multiples of it, by the clock and "
	  "an offset that each machine has of its own" },
	{ "duration", 'd', "TIME", NULL, "30, 30s, 500ms, 5m; without it until SIGTERM" },
	{ "own-samples", OPT_OWN_SAMPLES, NULL, NULL,
	  "have what bpfprof itself does in the profiles, too" },
	{ "frequency", 'F', "HZ", "19", "CPU samples a second on each CPU" },
	{ "event", OPT_EVENT, "NAME", "cpu-clock",
	  "what takes CPU samples: cpu-clock, or cycles where there is a hardware counter" },

	{ .help = "Heap, as a rule of targets alone:" },
	{ "heap-rate", OPT_HEAP_RATE, "BYTES", "512k",
	  "mean bytes between two samples; 1: every allocation" },
	{ "heap-budget", OPT_HEAP_BUDGET, "PERCENT", "1",
	  "of their CPU time that the probes may cost; above it they are attached in slices, and "
	  "what is in use is left out; 100: no limit" },
	{ "min-age", OPT_MIN_AGE, "TIME", NULL,
	  "only memory that has been held that long when a window ends" },

	{ .help = "Waits (block, mutex, offcpu):" },
	{ "min-wait", OPT_MIN_WAIT, "TIME", "1us", "leave out shorter waits; of offcpu 1ms" },
	{ "wait-rate", OPT_WAIT_RATE, "TIME", NULL,
	  "record a shorter wait with probability length / TIME, weighted accordingly; without it "
	  "all that --wait-budget allows" },
	{ "wait-budget", OPT_WAIT_BUDGET, "PERCENT", "0.25",
	  "of the CPU time of all, or of one CPU if that is more, that recording waits may cost; "
	  "above it --wait-rate is set as needed; 100: no limit" },

	{ .help = "What it may cost:" },
	{ "max-cpu", OPT_MAX_CPU, "PERCENT", NULL,
	  "of the CPU time of the whole machine, all its processes and BPF programs together; "
	  "above "
	  "it gives up, in this order: CPU samples, names of inlined functions, waits, heap "
	  "and targets" },
	{ "max-memory", OPT_MAX_MEMORY, "BYTES", NULL,
	  "of all its processes and BPF maps; above it the same" },

	{ .help = "Result:" },
	{ "spool", OPT_SPOOL, "DIR", OPTIONS_AGENT_SPOOL,
	  "the folder for the profiles, one for each window, kind, and container, unit or program; "
	  "it is made if it is not there" },
	{ "spool-size", OPT_SPOOL_SIZE, "BYTES", "1G",
	  "that the folder may hold; the oldest profiles go to make room" },
	{ "listen", OPT_LISTEN, "ADDRESS", OPTIONS_AGENT_LISTEN,
	  "where /metrics, /-/healthy and /-/ready are answered over HTTP; none: nowhere" },
	{ "ready-fd", OPT_READY_FD, "N", NULL,
	  "write READY to descriptor N when everything is attached" },
	{ "no-labels", OPT_NO_LABELS, NULL, NULL, "do not label samples with the thread's name" },

	MESSAGE_ROWS,
};

static const struct option_row serve_rows[] = {
	{ .help = "What to serve:" },
	{ "pid", 'p', "PID", NULL, "this process, until it ends" },
	{ "all", 'a', NULL, NULL, "any process: requests name one, by pid=" },

	{ .help = "How:" },
	{ "always", OPT_ALWAYS, "LIST", NULL,
	  "with --pid: kinds that are recorded all the time, separated by commas: heap, block, "
	  "mutex, offcpu, threadcreate, custom, fds; without it what is asked for, for as long" },
	{ "frequency", 'F', "HZ", "99",
	  "CPU samples a second on each CPU; hz= says another one for a request" },
	{ "heap-rate", OPT_HEAP_RATE, "BYTES", "512k",
	  "mean bytes between two samples of the heap; 1: every allocation" },
	{ "heap-budget", OPT_HEAP_BUDGET, "PERCENT", "5",
	  "of the process's CPU time that the probes of the heap may cost; above it they are "
	  "attached in slices, and what is in use is left out; 100: no limit" },
	{ "wait-budget", OPT_WAIT_BUDGET, "PERCENT", "1",
	  "of the process's CPU time, or of one CPU if that is more, that recording waits may "
	  "cost; above it shorter ones are recorded by chance; 100: no limit" },

	{ .help = "Who may ask:" },
	{ "listen", OPT_LISTEN, "ADDRESS", OPTIONS_SERVE_LISTEN, "where is served" },
	{ "allow-remote", OPT_ALLOW_REMOTE, NULL, NULL,
	  "let --listen name an address that other machines reach" },
	{ "token-file", OPT_TOKEN_FILE, "FILE", NULL,
	  "who asks has to have what its first line says, as a Bearer or as the password in the "
	  "address" },
	{ "ready-fd", OPT_READY_FD, "N", NULL, "write READY to descriptor N when it serves" },

	MESSAGE_ROWS,
};

static const struct option_row view_rows[] = {
	{ .arg = "FILE...",
	  .help = "profiles that bpfprof, Go, or anyone else has written; several are added up" },

	{ .help = "What is shown:" },
	{ "base", OPT_BASE, "FILE", NULL,
	  "what it costs more and less than in this profile; may be given several times, which are "
	  "added up" },
	{ "value", OPT_VALUE, "NAME", NULL,
	  "which of the values, such as alloc_space; without it the one that the file names, else "
	  "the last" },
	{ "focus", OPT_FOCUS, "REGEX", NULL,
	  "only stacks with a function whose name matches (extended regular expression); shares "
	  "stay those of the whole" },

	{ .help = "How:" },
	{ "format", 'f', "NAME", "text", "form of the result" },
	{ "tree", OPT_TREE, NULL, NULL,
	  "who called whom, from the root down, instead of the table of functions" },
	{ "limit", OPT_LIMIT, "N", NULL, "lines at most; without it all" },
	{ "min-share", OPT_MIN_SHARE, "PERCENT", "0.5",
	  "of the whole, below which --tree leaves a branch out" },
	{ "output", 'o', "PATH", NULL,
	  "the file, - for standard output; without it a page in this folder, text to standard "
	  "output" },

	MESSAGE_ROWS,
};

static const struct option_row merge_rows[] = {
	{ .arg = "FILE...",
	  .help = "profiles that bpfprof, Go, or anyone else has written, of the same values" },
	{ "output", 'o', "PATH", NULL, "the file for the sum, - for standard output" },

	MESSAGE_ROWS,
};

static const struct option_row diff_rows[] = {
	{ .arg = "BASE... -- NEW...",
	  .help = "profiles that bpfprof, Go, or anyone else has written, each of one run, and "
		  "folders of them" },

	JUDGE_ROWS,

	{ .help = "How:" },
	{ "seed", OPT_SEED, "N", NULL,
	  "of the arrangements that are drawn where there are too many; without it from the "
	  "files" },
	{ "cross-machine", OPT_CROSS_MACHINE, NULL, NULL,
	  "let in runs of different machines; only what functions have of the whole is compared" },
	JUDGE_FORM_ROWS,
	{ "output", 'o', "PATH", "-", "the file, - for standard output" },

	MESSAGE_ROWS,
};

static const struct option_row bench_rows[] = {
	{ .help = "What to compare:" },
	{ "against", OPT_AGAINST, "COMMAND", NULL,
	  "the base, as one argument, split into words as a shell does, but without one" },
	{ "aa", OPT_AA, NULL, NULL,
	  "the same command on both sides: how small a change can be seen here" },
	{ .arg = "-- COMMAND [ARG...]", .help = "the new side; one word is split as the base is" },

	{ .help = "How often:" },
	{ "repeat", OPT_REPEAT, "K", "10", "runs a side" },
	{ "max-repeat", OPT_MAX_REPEAT, "K", NULL,
	  "while it cannot be told, twice as many, up to so many; --alpha is shared out among the "
	  "verdicts" },
	{ "builds", OPT_BUILDS, "N", NULL,
	  "builds of each side, which are the evidence: {i} in both commands is 1 to N" },
	{ "append", OPT_APPEND, "DIR", NULL,
	  "add runs to a folder that --output has made, and judge all of them" },
	{ "warmup", OPT_WARMUP, "N", "1", "runs a side before, which do not count" },
	{ "prepare", OPT_PREPARE, "COMMAND", NULL, "run by sh before each run, and not measured" },
	{ "timeout", OPT_TIMEOUT, "TIME", "10m", "a run that takes longer has failed" },

	{ .help = "How much they do:" },
	{ "ops", OPT_OPS, "N", NULL, "units of work of each run" },
	{ "ops-regex", OPT_OPS_REGEX, "REGEX", NULL,
	  "its first group is their number in what a run prints, the last one counts (extended "
	  "regular expression)" },
	{ "ops-probe", OPT_OPS_PROBE, "PROBE", NULL,
	  "they are counted as they are done, in all processes of a run: uprobe:[FILE:]FUNCTION, "
	  "each call, or usdt:[FILE:]PROVIDER:NAME; without FILE of the command's program" },

	{ .help = "What is recorded:" },
	{ "profile", 'P', "LIST", "cpu", "profile kinds, separated by commas" },
	{ "frequency", 'F', "HZ", "997", "CPU samples a second on each CPU" },
	{ "event", OPT_EVENT, "NAME", "cpu-clock",
	  "what takes CPU samples: cpu-clock, or cycles where there is a hardware counter" },
	{ "heap-rate", OPT_HEAP_RATE, "BYTES", "512k",
	  "mean bytes between two samples; 1: every allocation" },
	{ "output", 'o', "DIR", NULL,
	  "keep the profiles in this folder, which is made; without it they are gone in the end" },

	JUDGE_ROWS,
	{ "seed", OPT_SEED, "N", NULL,
	  "of the order of the runs; without it another one each time" },
	JUDGE_FORM_ROWS,

	MESSAGE_ROWS,
};

static const struct option_row check_rows[] = {
	MESSAGE_ROWS,
};

static const struct option_row list_rows[] = {
	{ .help = "Whose:" },
	{ "pid", 'p', "PID", NULL, "also what there is of each kind in this process" },

	MESSAGE_ROWS,
};

static const struct option_table record_table = {
	.rows = record_rows,
	.cnt = ARRAY_SIZE(record_rows),
	.usage = "usage: bpfprof [record] [OPTIONS] (--pid PID[,PID...] | --all | -- COMMAND "
		 "[ARG...])\n"
		 "       bpfprof agent    profiles of the whole machine, all the time: see bpfprof "
		 "agent --help\n"
		 "       bpfprof serve    profiles over HTTP, as net/http/pprof has them: see "
		 "bpfprof "
		 "serve --help\n"
		 "       bpfprof check    what this kernel and these rights allow\n"
		 "       bpfprof list     the profile kinds: what they measure and cost; with "
		 "--pid PID "
		 "what is there\n"
		 "       bpfprof view     shows profiles: see bpfprof view --help\n"
		 "       bpfprof merge    adds up profiles: see bpfprof merge --help\n"
		 "       bpfprof diff     what got worse, and whether it is real: see bpfprof diff "
		 "--help\n"
		 "       bpfprof bench    runs two commands in turns, and compares them: see "
		 "bpfprof "
		 "bench --help\n"
		 "       bpfprof help     the manual page, or that of a command: bpfprof help "
		 "diff\n",
	.manual = "bpfprof-record",
};

static const struct option_table agent_table = {
	.rows = agent_rows,
	.cnt = ARRAY_SIZE(agent_rows),
	.usage =
		"usage: bpfprof agent [OPTIONS]\n"
		"Records profiles of the whole machine all the time, and keeps the last of them in "
		"a folder.\n",
	.manual = "bpfprof-agent",
};

static const struct option_table view_table = {
	.rows = view_rows,
	.cnt = ARRAY_SIZE(view_rows),
	.usage = "usage: bpfprof view [OPTIONS] FILE...\n"
		 "Shows what is in profiles. Needs no rights.\n\n",
	.manual = "bpfprof-view",
	.takes_files = true,
};

static const struct option_table merge_table = {
	.rows = merge_rows,
	.cnt = ARRAY_SIZE(merge_rows),
	.usage = "usage: bpfprof merge -o PATH FILE...\n"
		 "Adds up profiles. Needs no rights.\n\n",
	.manual = "bpfprof-view",
	.takes_files = true,
};

static const struct option_table diff_table = {
	.rows = diff_rows,
	.cnt = ARRAY_SIZE(diff_rows),
	.usage = "usage: bpfprof diff [OPTIONS] BASE... -- NEW...\n"
		 "Says what got worse from one side to the other, and whether that is real. Needs "
		 "no "
		 "rights.\n"
		 "Exit status: 0 nothing got worse, 1 something did, 2 wrong input, 3 with "
		 "--strict.\n\n",
	.manual = "bpfprof-diff",
};

static const struct option_table bench_table = {
	.rows = bench_rows,
	.cnt = ARRAY_SIZE(bench_rows),
	.usage =
		"usage: bpfprof bench [OPTIONS] (--against COMMAND | --aa) -- COMMAND [ARG...]\n"
		"Runs two commands in turns, and says which one costs more, where, and whether "
		"that is real.\n"
		"Exit status: 0 nothing got worse, 1 something did, 2 a run failed or the input is "
		"wrong,\n"
		"3 with --strict.\n",
	.manual = "bpfprof-bench",
};

static const struct option_table serve_table = {
	.rows = serve_rows,
	.cnt = ARRAY_SIZE(serve_rows),
	.usage = "usage: bpfprof serve [OPTIONS] (--pid PID | --all)\n"
		 "Serves profiles over HTTP, as Go's net/http/pprof does for a Go program.\n",
	.manual = "bpfprof-serve",
};

static const struct option_table check_table = {
	.rows = check_rows,
	.cnt = ARRAY_SIZE(check_rows),
	.usage = "usage: bpfprof check\n"
		 "Says what this kernel and these rights allow, and what to do for the rest.\n",
	.manual = OPTIONS_MAIN_PAGE,
};

static const struct option_table list_table = {
	.rows = list_rows,
	.cnt = ARRAY_SIZE(list_rows),
	.usage = "usage: bpfprof list [OPTIONS]\n"
		 "Prints the profile kinds: what they measure and cost.\n",
	.manual = OPTIONS_MAIN_PAGE,
};

const struct option_table *option_table(enum options_command command)
{
	switch (command) {
	case OPTIONS_CHECK:
		return &check_table;
	case OPTIONS_LIST:
		return &list_table;
	case OPTIONS_SERVE:
		return &serve_table;
	case OPTIONS_AGENT:
		return &agent_table;
	case OPTIONS_VIEW:
		return &view_table;
	case OPTIONS_MERGE:
		return &merge_table;
	case OPTIONS_DIFF:
		return &diff_table;
	case OPTIONS_BENCH:
		return &bench_table;
	default:
		return &record_table;
	}
}

const struct option_row *option_find(const struct option_table *t, int val)
{
	for (size_t i = 0; i < t->cnt; i++)
		if (t->rows[i].name && t->rows[i].val == val)
			return &t->rows[i];
	return NULL;
}

/* Prints words from HELP_COLUMN on, where the line is at `column`. */
static void print_wrapped(FILE *f, const char *text, int column)
{
	int sz;

	for (; *text; text += sz + (text[sz] == ' ')) {
		sz = (int)strcspn(text, " ");
		if (column > HELP_COLUMN && column + 1 + sz > HELP_WIDTH) {
			putc('\n', f);
			column = 0;
		}
		if (column > HELP_COLUMN)
			column += fprintf(f, " ");
		else
			column += fprintf(f, "%*s", HELP_COLUMN - column, "");
		column += fprintf(f, "%.*s", sz, text);
	}
	putc('\n', f);
}

static void print_row(FILE *f, const struct option_row *r)
{
	char help[512];
	int column, first;

	if (!r->name && !r->arg) {
		fprintf(f, "\n%s\n", r->help);
		return;
	}
	if (!r->name)
		column = fprintf(f, "  ");
	else if (r->val < OPT_CGROUP)
		column = fprintf(f, "  -%c, --%s ", r->val, r->name);
	else
		column = fprintf(f, "      --%s ", r->name);
	if (r->arg)
		column += fprintf(f, "%s ", r->arg);
	first = (int)strcspn(r->help, ";");
	snprintf(help, sizeof(help), "%.*s%s%s%s%s", first, r->help, r->def ? " (default " : "",
		 r->def ? r->def : "", r->def ? ")" : "", r->help + first);
	print_wrapped(f, help, column);
}

void options_usage(enum options_command command, FILE *f)
{
	const struct option_table *t = option_table(command);
	char names[KINDS_NAMES_SZ], forms[FORMATS_NAMES_SZ];

	fputs(t->usage, f);
	for (size_t i = 0; i < t->cnt; i++)
		print_row(f, &t->rows[i]);
	fputc('\n', f);
	if (option_find(t, 'P')) {
		kinds_names(names, sizeof(names));
		fprintf(f, "Profile kinds: %s.\n", names);
	}
	if (option_find(t, 'f')) {
		if (command == OPTIONS_DIFF || command == OPTIONS_BENCH)
			judge_format_names(forms, sizeof(forms));
		else if (t->takes_files)
			view_format_names(forms, sizeof(forms));
		else
			formats_names(forms, sizeof(forms));
		fprintf(f, "Formats: %s.\n", forms);
	}
	if (strcmp(t->manual, OPTIONS_MAIN_PAGE) != 0)
		fprintf(f, "More in bpfprof(8) and %s(8).\n", t->manual);
	else
		fprintf(f, "More in bpfprof(8).\n");
}
