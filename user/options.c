/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses the command line with getopt_long and says in one sentence what is wrong with it. */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "config.h"
#include "judge/write.h"
#include "report/formats.h"
#include "kinds.h"
#include "options_bench.h"
#include "options_diff.h"
#include "options_serve.h"
#include "options_table.h"
#include "options_view.h"
#include "spool/spool.h"

#define GETOPT_MAX 64 /* options that there may be */

static const char *const events[] = {
	[OPTIONS_CPU_CLOCK] = "cpu-clock",
	[OPTIONS_CYCLES] = "cycles",
};

/* A parse under way. */
struct parser {
	struct options *o;
	const struct option_table *table;
	const char *not_for_dump; /* the first one of the command line that --dump does not take */
	int from_config;	  /* arguments that are the configuration's, the first ones */
	int set_by[OPT_END];	  /* which of them has set an option last; 0: none */
	bool given[OPT_END];	  /* the options that there were */
	bool kinds_from_config;
	char *err;
	size_t err_sz;
};

static int __attribute__((format(printf, 2, 3))) fail(struct parser *p, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->err, p->err_sz, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Puts what an argument of the configuration made fail behind its place. */
static int fail_in_config(struct parser *p, const struct config *c, int arg)
{
	char text[512];

	snprintf(text, sizeof(text), "%s", p->err);
	return fail(p, "%s:%u: %s", c->path, c->lines[arg - 1], text);
}

/* Of an option that does not go with the others. */
static int __attribute__((format(printf, 3, 4)))
fail_of(struct parser *p, int val, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(p->err, p->err_sz, fmt, ap);
	va_end(ap);
	return p->set_by[val] ? fail_in_config(p, p->o->config, p->set_by[val]) : -EINVAL;
}

static int fail_no_memory(struct parser *p)
{
	fail(p, "out of memory");
	return -ENOMEM;
}

uint64_t options_min_wait_ns(const struct options *o, enum bpfprof_kind kind)
{
	if (!kinds[kind].waits)
		return 0;
	if (o->min_wait_given)
		return o->min_wait_ns;
	return o->all ? kinds[kind].min_wait_all_ns : kinds[kind].min_wait_ns;
}

static int add_id(struct parser *p, struct options_ids *list, const char *option, uint32_t id)
{
	uint32_t *ids;

	for (size_t i = 0; i < list->cnt; i++)
		if (list->ids[i] == id)
			return 0;
	if (list->cnt == BPFPROF_MAX_FILTERED)
		return fail(p, "%s takes at most %d ids: use --all with --cgroup or --comm instead",
			    option, BPFPROF_MAX_FILTERED);
	if (!(list->cnt & (list->cnt - 1))) { /* full: capacities are powers of two */
		ids = reallocarray(list->ids, MAX(2 * list->cnt, (size_t)1), sizeof(*ids));
		if (!ids)
			return fail_no_memory(p);
		list->ids = ids;
	}
	list->ids[list->cnt++] = id;
	return 0;
}

/* "1,2,3" -> list, without repetitions. */
static int parse_ids(struct parser *p, struct options_ids *list, const char *option,
		     const char *arg)
{
	while (true) {
		size_t sz = strcspn(arg, ",");
		char word[16];
		uint64_t id;
		int err;

		snprintf(word, sizeof(word), "%.*s", (int)MIN(sz, sizeof(word)), arg);
		if (sz >= sizeof(word) || util_parse_u64(word, 1, INT32_MAX, &id))
			return fail(p,
				    "%s: '%.*s' is no id: give decimal numbers from 1 on, "
				    "separated by commas",
				    option, (int)MIN(sz, (size_t)64), arg);
		err = add_id(p, list, option, (uint32_t)id);
		if (err)
			return err;
		if (!arg[sz])
			return 0;
		arg += sz + 1;
	}
}

static int add_custom(struct parser *p, const char *text, size_t len)
{
	char why[256];
	int err = custom_wanted__add(&p->o->custom, text, len, why, sizeof(why));

	if (err)
		fail(p, "--profile: %s", why);
	return err;
}

static int parse_kinds(struct parser *p, const char *arg)
{
	bool config = optind <= 1 + p->from_config;

	/* the command line's are others, not more */
	if (p->kinds_from_config && !config) {
		memset(p->o->kinds, 0, sizeof(p->o->kinds));
		custom_wanted__done(&p->o->custom);
	}
	p->kinds_from_config = config;
	p->o->kinds_given = true;
	while (true) {
		size_t sz = custom_wanted_length(arg);
		int kind = kinds_find(arg, sz);

		if (custom_wanted_is(arg, sz)) {
			int err = add_custom(p, arg, sz);

			if (err)
				return err;
			kind = BPFPROF_CUSTOM;
		}
		if (kind < 0) {
			char names[KINDS_NAMES_SZ];

			kinds_names(names, sizeof(names));
			return fail(p, "--profile: there is no kind '%.*s': choose from %s",
				    (int)MIN(sz, (size_t)64), arg, names);
		}
		p->o->kinds[kind] = true;
		if (!arg[sz])
			return 0;
		arg += sz + 1;
	}
}

static int parse_format(struct parser *p, const char *arg)
{
	char names[FORMATS_NAMES_SZ];

	p->o->format = formats_find(arg);
	if (p->o->format)
		return 0;
	formats_names(names, sizeof(names));
	return fail(p, "--format: unknown format '%s': choose from %s", arg, names);
}

static int parse_event(struct parser *p, const char *arg)
{
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		if (!strcmp(arg, events[i])) {
			p->o->event = (enum options_event)i;
			return 0;
		}
	}
	return fail(p, "--event: unknown event '%s': choose from cpu-clock, cycles", arg);
}

/* remedy: what to do instead where the time is too long. */
static int parse_time(struct parser *p, uint64_t *ret, const char *option, const char *remedy,
		      const char *arg)
{
	switch (util_parse_duration(arg, ret)) {
	case 0:
		return 0;
	case -ERANGE:
		return fail(p, "%s: '%s' is out of range: %s", option, arg, remedy);
	default:
		return fail(p,
			    "%s: '%s' is no time above 0: write for example 30, 30s, 500ms or 5m",
			    option, arg);
	}
}

static int parse_min_wait(struct parser *p, const char *arg)
{
	uint64_t ns = 0;
	int err = util_parse_duration(arg, &ns);

	/* 0 is out of that function's range */
	if (err && (err != -ERANGE || strtod(arg, NULL) != 0))
		return fail(p,
			    "--min-wait: '%s' is no time that a wait can last: write for example "
			    "0, 10us or 1ms",
			    arg);
	p->o->min_wait_ns = ns;
	p->o->min_wait_given = true;
	return 0;
}

static int parse_wait_rate(struct parser *p, const char *arg)
{
	if (util_parse_duration(arg, &p->o->wait_rate_ns) ||
	    p->o->wait_rate_ns > OPTIONS_MAX_WAIT_RATE_NS)
		return fail(p,
			    "--wait-rate: '%s' is no time above 0 and up to 4s: write for example "
			    "100us or 1ms",
			    arg);
	return 0;
}

/* Bytes from min to max, with k, M or G behind for powers of 1024. 0 or -EINVAL. */
static int parse_bytes(const char *arg, uint64_t min, uint64_t max, uint64_t *ret)
{
	char digits[32];
	size_t len = strcspn(arg, "kKmMgG");
	uint64_t unit = 1;

	if (arg[len])
		unit = arg[len] == 'k' || arg[len] == 'K' ? 1024 :
		       arg[len] == 'm' || arg[len] == 'M' ? 1024 * 1024 :
							    1024 * 1024 * 1024;
	snprintf(digits, sizeof(digits), "%.*s", (int)MIN(len, sizeof(digits)), arg);
	if (len >= sizeof(digits) || (arg[len] && arg[len + 1]) ||
	    util_parse_u64(digits, 1, max / unit, ret) || *ret * unit < min)
		return -EINVAL;
	*ret *= unit;
	return 0;
}

static int parse_heap_rate(struct parser *p, const char *arg)
{
	if (!parse_bytes(arg, 1, UINT32_MAX, &p->o->heap_rate))
		return 0;
	return fail(p,
		    "--heap-rate: '%s' is no number of bytes from 1 on and below 4G: 512k is the "
		    "default, 1 records every allocation",
		    arg);
}

static int parse_spool_size(struct parser *p, const char *arg)
{
	if (!parse_bytes(arg, SPOOL_MIN_SZ, INT64_MAX, &p->o->spool_sz))
		return 0;
	return fail(p, "--spool-size: '%s' is no number of bytes from 1M on, such as 500M or 2G",
		    arg);
}

static int parse_max_memory(struct parser *p, const char *arg)
{
	if (!parse_bytes(arg, 1 << 20, INT64_MAX, &p->o->max_memory))
		return 0;
	return fail(p, "--max-memory: '%s' is no number of bytes from 1M on, such as 150M", arg);
}

static int parse_budget(struct parser *p, double *ret, const char *name, const char *arg)
{
	double percent;

	if (util_parse_percent(arg, 100, &percent) || !(percent > 0))
		return fail(p, "%s: '%s' is no percentage above 0 and up to 100, which is no limit",
			    name, arg);
	*ret = percent;
	return 0;
}

static int parse_frequency(struct parser *p, const char *arg)
{
	uint64_t hz;

	if (util_parse_u64(arg, 1, OPTIONS_MAX_FREQUENCY, &hz))
		return fail(p,
			    "--frequency: '%s' is not a number from 1 to %d (samples per second)",
			    arg, OPTIONS_MAX_FREQUENCY);
	p->o->frequency = (uint32_t)hz;
	return 0;
}

static int parse_comm(struct parser *p, const char *arg)
{
	size_t plain = 0; /* bytes that a matching name has at least */

	if (!*arg)
		return fail(p, "--comm: the pattern is empty");
	for (const char *c = arg; *c; c++) {
		if (*c == '\\' && c[1])
			c++;
		else if (*c == '*')
			continue;
		plain++;
	}
	/* a pattern that can match nothing would end in an empty profile that nobody understands */
	if (plain >= BPFPROF_COMM_SZ)
		return fail(p,
			    "--comm: '%s' matches nothing, since the kernel cuts names to %d "
			    "bytes: use '%.*s*'",
			    arg, BPFPROF_COMM_SZ - 1, BPFPROF_COMM_SZ - 1, arg);
	p->o->comm = arg;
	return 0;
}

static int parse_path(struct parser *p, const char **ret, const char *option, const char *arg)
{
	if (!*arg)
		return fail(p, "%s: the path is empty", option);
	*ret = arg;
	return 0;
}

static int parse_keep(struct parser *p, const char *arg)
{
	uint64_t keep;

	if (util_parse_u64(arg, 1, UINT32_MAX, &keep))
		return fail(p, "--keep: '%s' is no number of sets from 1 on, such as 6", arg);
	p->o->keep = (uint32_t)keep;
	return 0;
}

static int parse_debuginfod_wait(struct parser *p, const char *arg)
{
	if (!util_parse_duration(arg, &p->o->debuginfod_wait_ns) &&
	    p->o->debuginfod_wait_ns <= OPTIONS_MAX_DEBUGINFOD_WAIT_NS)
		return 0;
	return fail(
		p,
		"--debuginfod-wait: '%s' is no time above 0 and up to 1h: write for example 10s "
		"or 2m",
		arg);
}

static int parse_ready_fd(struct parser *p, const char *arg)
{
	uint64_t fd;

	if (util_parse_u64(arg, STDERR_FILENO + 1, INT_MAX, &fd))
		return fail(p, "--ready-fd: '%s' is no descriptor from 3 on, such as 3 with 3>file",
			    arg);
	p->o->ready_fd = (int)fd;
	return 0;
}

/* An option that every command takes. Returns false if val is none. */
static bool apply_common(struct options *o, int val)
{
	switch (val) {
	case 'q':
		o->log_level = LOG_ERROR;
		return true;
	case 'v':
		o->log_level = LOG_DEBUG;
		return true;
	case 'h':
		o->command = OPTIONS_HELP;
		return true;
	case OPT_VERSION:
		o->command = OPTIONS_VERSION;
		return true;
	default:
		return false;
	}
}

/* An option of `record`, or of `agent`. */
static int apply_record(struct parser *p, int val, const char *arg)
{
	struct options *o = p->o;

	switch (val) {
	case 'p':
		return parse_ids(p, &o->pids, "--pid", arg);
	case 'a':
		o->all = true;
		return 0;
	case OPT_FOLLOW:
		o->follow = true;
		return 0;
	case 't':
		return parse_ids(p, &o->tids, "--tid", arg);
	case OPT_CGROUP:
		return parse_path(p, &o->cgroup, "--cgroup", arg);
	case OPT_COMM:
		return parse_comm(p, arg);
	case 'U':
		o->user_only = true;
		return 0;
	case 'K':
		o->kernel_only = true;
		return 0;
	case 'P':
		return parse_kinds(p, arg);
	case 'd':
		return parse_time(p, &o->duration_ns, "--duration",
				  "leave the option out to run until Ctrl-C", arg);
	case 'F':
		return parse_frequency(p, arg);
	case OPT_EVENT:
		return parse_event(p, arg);
	case OPT_HEAP_RATE:
		return parse_heap_rate(p, arg);
	case OPT_HEAP_BUDGET:
		return parse_budget(p, &o->heap_budget, "--heap-budget", arg);
	case OPT_MIN_AGE:
		return parse_time(p, &o->min_age_ns, "--min-age", "nothing is held that long", arg);
	case OPT_MIN_WAIT:
		return parse_min_wait(p, arg);
	case OPT_WAIT_RATE:
		return parse_wait_rate(p, arg);
	case OPT_WAIT_BUDGET:
		return parse_budget(p, &o->wait_budget, "--wait-budget", arg);
	case 'o':
		return parse_path(p, &o->output, "--output", arg);
	case 'f':
		return parse_format(p, arg);
	case OPT_WINDOW:
		return parse_time(p, &o->window_ns, "--window", "it has to be above 0, such as 10s",
				  arg);
	case OPT_KEEP:
		return parse_keep(p, arg);
	case OPT_CONFIG:
		return parse_path(p, &o->config_path, "--config", arg);
	case OPT_CHECK_CONFIG:
		o->command = OPTIONS_CHECK_CONFIG;
		return parse_path(p, &o->config_path, "--check-config", arg);
	case OPT_DUMP:
		o->command = OPTIONS_DUMP;
		return parse_time(p, &o->dump_ns, "--dump", "nothing is kept that long", arg);
	case OPT_SPOOL:
		return parse_path(p, &o->spool, "--spool", arg);
	case OPT_LISTEN:
		return parse_path(p, &o->listen, "--listen", arg);
	case OPT_SPOOL_SIZE:
		return parse_spool_size(p, arg);
	case OPT_MAX_CPU:
		return parse_budget(p, &o->max_cpu, "--max-cpu", arg);
	case OPT_MAX_MEMORY:
		return parse_max_memory(p, arg);
	case OPT_DEBUGINFOD:
		o->debuginfod = true;
		return 0;
	case OPT_DEBUGINFOD_WAIT:
		return parse_debuginfod_wait(p, arg);
	case OPT_DEBUGINFOD_CACHE:
		return parse_path(p, &o->debuginfod_cache, "--debuginfod-cache", arg);
	case OPT_STATS:
		return parse_path(p, &o->stats, "--stats", arg);
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case OPT_READY_FD:
		return parse_ready_fd(p, arg);
	case OPT_OWN_SAMPLES:
		o->own_samples = true;
		return 0;
	default: /* OPT_NO_LABELS */
		o->thread_labels = false;
		return 0;
	}
}

/* What getopt_long(3) is given: one of the two for each option of the table. */
struct getopt_tables {
	struct option longs[GETOPT_MAX + 1];
	char shorts[2 * GETOPT_MAX + 3];
};

static void fill_getopt_tables(const struct option_table *t, struct getopt_tables *ret)
{
	struct option *l = ret->longs;
	char *s = ret->shorts;

	/* '+': what follows the first operand belongs to the command to start; ':': a missing
	 * argument is told apart */
	if (!t->takes_files)
		*s++ = '+';
	*s++ = ':';
	for (size_t i = 0; i < t->cnt && l < ret->longs + GETOPT_MAX; i++) {
		const struct option_row *r = &t->rows[i];

		if (!r->name)
			continue;
		*l++ = (struct option){ r->name, r->arg ? required_argument : no_argument, NULL,
					r->val };
		if (r->val >= OPT_CGROUP)
			continue;
		*s++ = (char)r->val;
		if (r->arg)
			*s++ = ':';
	}
	*l = (struct option){ 0 };
	*s = '\0';
}

/* What stands before --help. */
static const char *help_of(const struct parser *p)
{
	switch (p->o->help) {
	case OPTIONS_AGENT:
		return "agent ";
	case OPTIONS_VIEW:
		return "view ";
	case OPTIONS_MERGE:
		return "merge ";
	case OPTIONS_DIFF:
		return "diff ";
	case OPTIONS_BENCH:
		return "bench ";
	case OPTIONS_SERVE:
		return "serve ";
	case OPTIONS_CHECK:
		return "check ";
	case OPTIONS_LIST:
		return "list ";
	default:
		return "";
	}
}

/* What getopt_long answered with '?'. It tells the cases apart by optopt: see getopt(3), and
 * glibc's getopt.c. */
static int fail_option(struct parser *p, char **argv)
{
	if (!optopt)
		return fail(p, "unknown or ambiguous option '%s': see bpfprof %s--help",
			    argv[optind - 1], help_of(p));
	if (option_find(p->table, optopt))
		return fail(p, "--%s takes no argument", option_find(p->table, optopt)->name);
	return fail(p, "unknown option '-%c': see bpfprof %s--help", optopt, help_of(p));
}

static bool takes_with_dump(int val)
{
	return val == OPT_DUMP || val == OPT_SPOOL || val == OPT_CONFIG;
}

/* Reads options until --help, --version, an operand or the end. *ret_dashes: they were ended by
 * "--". */
static int parse_options(struct parser *p, int argc, char **argv, bool *ret_dashes)
{
	struct getopt_tables tables;
	int val, next = 1;

	fill_getopt_tables(p->table, &tables);
	optind = 0; /* glibc: start afresh, and read "+" again */
	opterr = 0;
	while ((val = getopt_long(argc, argv, tables.shorts, tables.longs, NULL)) != -1) {
		int err;

		if (val == '?')
			return fail_option(p, argv);
		if (val == ':')
			return fail(p, "--%s needs an argument: see bpfprof %s--help",
				    option_find(p->table, optopt)->name, help_of(p));
		next = optind;
		if (apply_common(p->o, val)) {
			if (p->o->command == OPTIONS_HELP || p->o->command == OPTIONS_VERSION)
				return 0;
			continue;
		}
		p->given[val] = true;
		p->set_by[val] = optind <= 1 + p->from_config ? optind - 1 : 0;
		if (!p->not_for_dump && optind > 1 + p->from_config && !takes_with_dump(val))
			p->not_for_dump = option_find(p->table, val)->name;
		err = p->o->command == OPTIONS_DIFF ?
			      options_diff_apply(p->o, val, optarg, p->err, p->err_sz) :
		      p->o->command == OPTIONS_BENCH && options_bench_takes(val) ?
			      options_bench_apply(p->o, val, optarg, p->err, p->err_sz) :
		      options_serve_takes(val) ?
			      options_serve_apply(p->o, val, optarg, p->err, p->err_sz) :
		      p->table->takes_files ?
			      options_view_apply(p->o, val, optarg, p->err, p->err_sz) :
			      apply_record(p, val, optarg);
		if (err)
			return err;
	}
	/* not argv[optind - 1] alone: that may be the argument of the last option */
	*ret_dashes = optind > next && !strcmp(argv[optind - 1], "--");
	return 0;
}

static int check_target(struct parser *p)
{
	const struct options *o = p->o;
	bool narrowed = o->tids.cnt || o->cgroup || o->comm;

	if (o->pids.cnt && o->all)
		return fail(p, "--pid and --all exclude each other: give one of them");
	if (o->argv && (o->pids.cnt || o->all))
		return fail(p, "a command to start and %s exclude each other: give one of them",
			    o->all ? "--all" : "--pid");
	if (!o->pids.cnt && !o->all && !o->argv)
		return narrowed ?
			       fail(p,
				    "nothing to profile: --tid, --cgroup and --comm only narrow a "
				    "target: "
				    "add --all or --pid PID") :
			       fail(p, "nothing to profile: give --pid PID, --all or -- COMMAND");
	if (o->follow && o->all)
		return fail(p, "--follow goes with --pid: --all has every process already");
	return 0;
}

/* What formats of one process cannot have. */
static int check_format(struct parser *p)
{
	const struct options *o = p->o;
	const struct format *f = o->format;

	if (f->one_process && (o->all || o->pids.cnt > 1 || o->follow))
		return fail(p, "--format %s is of one process: it does not go with %s", f->name,
			    o->all    ? "--all" :
			    o->follow ? "--follow" :
					"several ids of --pid");
	for (int i = 0; i < BPFPROF_NR_KINDS && f->only_threads; i++)
		if (o->kinds[i] && i != BPFPROF_THREADS)
			return fail(p,
				    "--format %s is of threads, and not of %s: give -P threads, or "
				    "the format debug1",
				    f->name, kinds[i].name);
	return 0;
}

static int check_window(struct parser *p)
{
	const struct options *o = p->o;

	if (o->keep && !o->window_ns)
		return fail(p, "--keep goes with --window: it says how many sets of files stay");
	if (o->window_ns && o->window_ns < OPTIONS_MIN_WINDOW_NS)
		return fail(p, "--window is too short: give it at least 10ms");
	if (o->window_ns && o->duration_ns && o->window_ns > o->duration_ns)
		return fail(p, "--window is longer than --duration: give it at most that long");
	if (o->window_ns && o->output && !strcmp(o->output, "-"))
		return fail(p,
			    "--output - and --window: several files do not go to standard "
			    "output: give a file");
	if (o->window_ns && o->stats && !strcmp(o->stats, "-"))
		return fail(p,
			    "--stats - and --window: several files do not go to standard "
			    "output: give a file");
	return 0;
}

static int check_debuginfod(struct parser *p)
{
	struct options *o = p->o;

	if (!o->debuginfod && (o->debuginfod_wait_ns || o->debuginfod_cache))
		return fail(p, "%s goes with --debuginfod",
			    o->debuginfod_wait_ns ? "--debuginfod-wait" : "--debuginfod-cache");
	if (o->debuginfod && o->kernel_only)
		return fail(p, "--debuginfod goes with user frames: --kernel has none");
	o->debuginfod_wait_ns = o->debuginfod_wait_ns ?: OPTIONS_DEBUGINFOD_WAIT_NS;
	o->debuginfod_cache = o->debuginfod_cache ?: OPTIONS_DEBUGINFOD_CACHE;
	return 0;
}

/*
 * Options that mean nothing, as their kind is not recorded. Not of the agent: a configuration may
 * have them for targets that come later.
 */
static int check_kind_options(struct parser *p)
{
	static const struct {
		int val;
		enum bpfprof_kind kind;
	} of_kind[] = {
		{ 'F', BPFPROF_CPU },
		{ OPT_EVENT, BPFPROF_CPU },
		{ OPT_HEAP_RATE, BPFPROF_HEAP },
		{ OPT_HEAP_BUDGET, BPFPROF_HEAP },
		{ OPT_MIN_AGE, BPFPROF_HEAP },
	};

	for (size_t i = 0; i < ARRAY_SIZE(of_kind); i++) {
		const char *kind = kinds[of_kind[i].kind].name;

		if (p->given[of_kind[i].val] && !p->o->kinds[of_kind[i].kind])
			return fail(p, "--%s goes with the %s profile: add -P %s",
				    option_find(p->table, of_kind[i].val)->name, kind, kind);
	}
	return 0;
}

static int check_output(struct parser *p)
{
	const struct options *o = p->o;
	bool agent = o->command == OPTIONS_AGENT || o->command == OPTIONS_CHECK_CONFIG;
	int waits_option = o->min_wait_given  ? OPT_MIN_WAIT :
			   o->wait_rate_ns    ? OPT_WAIT_RATE :
			   o->wait_budget > 0 ? OPT_WAIT_BUDGET :
						0;
	bool waits = false;
	int kind_cnt = 0;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		kind_cnt += o->kinds[i];
		waits |= o->kinds[i] && kinds[i].waits;
	}
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (o->kernel_only && o->kinds[i] && !kinds[i].in_kernel)
			return fail(p, "--kernel: the %s profile has no kernel frames",
				    kinds[i].name);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (o->all && o->kinds[i] && kinds[i].of_processes)
			return fail_of(p, 'P',
				       "%s profiles are recorded of processes, and not of the "
				       "whole machine: %s",
				       kinds[i].name,
				       agent ? "use bpfprof --pid" : "give --pid or -- COMMAND");
	if (agent && o->min_age_ns && !o->kinds[BPFPROF_HEAP])
		return fail_of(p, OPT_MIN_AGE,
			       "--min-age goes with the heap profile: give a [target] profile = "
			       "heap");
	if (waits_option && !waits)
		return fail_of(p, waits_option,
			       "--%s goes with the block, mutex and offcpu profiles: add one of "
			       "them to -P",
			       option_find(p->table, waits_option)->name);
	if (!(o->wait_budget > 0))
		p->o->wait_budget = agent ? OPTIONS_AGENT_WAIT_BUDGET : OPTIONS_DEFAULT_WAIT_BUDGET;
	if (!(o->heap_budget > 0))
		p->o->heap_budget = o->kinds_given && !agent ? OPTIONS_NAMED_HEAP_BUDGET :
							       OPTIONS_DEFAULT_HEAP_BUDGET;
	if (o->user_only && o->kernel_only)
		return fail(p,
			    "--user and --kernel exclude each other: leave both out to have all "
			    "frames");
	if (o->output && !strcmp(o->output, "-")) {
		if (kind_cnt > 1 || o->custom.all || custom_wanted__cnt(&o->custom) > 1)
			return fail(p,
				    "--output -: standard output takes one profile: name one kind "
				    "with --profile");
		if (o->stats && !strcmp(o->stats, "-"))
			return fail(p,
				    "--output - and --stats - both want standard output: give one "
				    "of them a file");
	}
	return 0;
}

/* What is wrong with the whole, and the defaults that depend on it. */
static int finish_record(struct parser *p, int argc, char **argv, bool dashes)
{
	struct options *o = p->o;
	int err;

	if (optind < argc && !dashes)
		return fail(p, "unexpected argument '%s': a command to start goes behind --",
			    argv[optind]);
	if (dashes && optind == argc)
		return fail(p, "-- needs a command to start behind it");
	if (optind < argc)
		o->argv = argv + optind;
	for (int i = 0; i < BPFPROF_NR_KINDS && !o->kinds_given; i++)
		o->kinds[i] = kinds[i].by_default && (!o->all || kinds[i].default_with_all) &&
			      (!o->kernel_only || kinds[i].in_kernel);
	err = check_target(p);
	if (err)
		return err;
	err = check_format(p);
	if (err)
		return err;
	if (o->argv && !o->format->one_process)
		o->follow = true;
	err = check_kind_options(p);
	if (!err)
		err = check_output(p);
	if (!err)
		err = check_debuginfod(p);
	return err ? err : check_window(p);
}

/* What is recorded of targets alone. */
static int choose_kinds(struct parser *p)
{
	struct options *o = p->o;
	const struct config *c = o->config;

	for (size_t i = 0; c && i < c->target_cnt; i++)
		for (int k = 0; k < BPFPROF_NR_KINDS; k++) {
			if (!(c->targets[i].kinds & 1U << k))
				continue;
			if (o->kinds[k] && !o->chosen[k])
				return fail(p,
					    "%s:%u: [target \"%s\"]: %s is recorded of the whole "
					    "machine already (profile)",
					    c->path, c->target_lines[i], c->targets[i].name,
					    kinds[k].name);
			o->kinds[k] = o->chosen[k] = true;
		}
	return 0;
}

/* The same for the agent. */
static int finish_agent(struct parser *p, int argc, char **argv, bool dashes)
{
	struct options *o = p->o;
	int err;

	if (optind < argc || dashes)
		return fail(p, "unexpected argument '%s': agent takes options alone",
			    argv[dashes ? optind - 1 : optind]);
	if (o->dump_ns && p->not_for_dump)
		return fail(p, "--dump goes with --spool or --config, and not with --%s",
			    p->not_for_dump);
	if (o->window_ns < OPTIONS_AGENT_MIN_WINDOW_NS)
		return fail_of(p, OPT_WINDOW, "--window is too short: give it at least 1s");
	for (int i = 0; i < BPFPROF_NR_KINDS && !o->kinds_given; i++)
		o->kinds[i] = kinds[i].by_default_in_agent;
	err = choose_kinds(p);
	return err ? err : check_output(p);
}

/* The same for runs of bench, which are recordings of commands. */
static int finish_bench(struct parser *p, int argc, char **argv, bool dashes)
{
	struct options *o = p->o;
	const char *output = o->output;
	int err;

	if (optind == argc && o->bench.aa)
		return fail(p, "nothing to compare: give the command behind --");
	if (optind == argc)
		return fail(p, "nothing to compare: give --against 'BASE COMMAND' -- COMMAND");
	err = options_bench_check(o, p->err, p->err_sz);
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++)
		if (o->kinds[i] && (kinds[i].only_held || i == BPFPROF_THREADS))
			return fail(p, "bench compares no %s profiles: leave them out of -P",
				    kinds[i].name);
	/* the folder is no file of a recording */
	o->output = NULL;
	err = err ?: finish_record(p, argc, argv, dashes);
	o->output = output;
	return err;
}

/* The same for serve. */
static int finish_serve(struct parser *p, int argc, char **argv, bool dashes)
{
	if (optind < argc || dashes)
		return fail(p, "unexpected argument '%s': serve takes options alone",
			    argv[dashes ? optind - 1 : optind]);
	return options_serve_check(p->o, p->err, p->err_sz);
}

static enum options_command command_of(const char *word)
{
	static const char *const names[] = {
		[OPTIONS_RECORD] = "record", [OPTIONS_AGENT] = "agent", [OPTIONS_CHECK] = "check",
		[OPTIONS_LIST] = "list",     [OPTIONS_VIEW] = "view",	[OPTIONS_MERGE] = "merge",
		[OPTIONS_DIFF] = "diff",     [OPTIONS_BENCH] = "bench", [OPTIONS_SERVE] = "serve",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(word, names[i]))
			return (enum options_command)i;
	return OPTIONS_HELP;
}

static const struct options options_defaults = {
	.frequency = OPTIONS_DEFAULT_FREQUENCY,
	.heap_rate = OPTIONS_DEFAULT_HEAP_RATE,
	.format = &formats[0],
	.thread_labels = true,
	.view = VIEW_DEFAULTS,
	.judge = JUDGE_DEFAULTS,
	.judge_format = &judge_formats[0],
	.ready_fd = -1,
	.log_level = LOG_INFO,
};

static void set_agent_defaults(struct options *o)
{
	o->all = true;
	o->frequency = OPTIONS_AGENT_FREQUENCY;
	o->window_ns = OPTIONS_AGENT_WINDOW_NS;
	o->spool = OPTIONS_AGENT_SPOOL;
	o->spool_sz = OPTIONS_AGENT_SPOOL_SZ;
	o->listen = OPTIONS_AGENT_LISTEN;
}

/* Reads the options once more, those of the configuration before those of the command line. */
static int parse_with_config(struct parser *p, int argc, char **argv, bool *ret_dashes)
{
	struct options *o = p->o;
	enum options_command command = o->command;
	struct config *c = calloc(1, sizeof(*c));
	char **all;
	int err;

	if (!c)
		return fail_no_memory(p);
	err = config_read(o->config_path, p->table, c, p->err, p->err_sz);
	if (err) {
		free(c);
		return err == -ENOMEM ? err : -EINVAL;
	}
	all = calloc((size_t)argc + c->arg_cnt + 1, sizeof(*all));
	if (!all) {
		config__done(c);
		free(c);
		return fail_no_memory(p);
	}
	all[0] = argv[0];
	for (size_t i = 0; i < c->arg_cnt; i++)
		all[1 + i] = c->args[i];
	memcpy(all + 1 + c->arg_cnt, argv + 1, (size_t)(argc - 1) * sizeof(*all));
	options_done(o);
	*o = options_defaults;
	o->command = command;
	o->help = OPTIONS_AGENT;
	set_agent_defaults(o);
	o->config = c;
	o->config_path = c->path;
	p->from_config = (int)c->arg_cnt;
	err = parse_options(p, argc + p->from_config, all, ret_dashes);
	if (err == -EINVAL && optind <= 1 + p->from_config)
		err = fail_in_config(p, c, optind - 1);
	/* getopt counts from the beginning of what it was given */
	optind -= p->from_config;
	free(all);
	return err;
}

/* bpfprof help [COMMAND] */
static int parse_help(struct parser *p, int argc, char **argv)
{
	p->o->command = OPTIONS_MANUAL;
	p->o->help = argc > 2 ? command_of(argv[2]) : OPTIONS_HELP;
	if (argc > 3)
		return fail(p, "help takes one command");
	if (argc > 2 && p->o->help == OPTIONS_HELP)
		return fail(p, "help: there is no command '%s': see bpfprof --help", argv[2]);
	return 0;
}

static int parse(struct parser *p, int argc, char **argv)
{
	enum options_command command = OPTIONS_RECORD;
	bool dashes = false;
	int err;

	if (argc > 1 && !strcmp(argv[1], "help"))
		return parse_help(p, argc, argv);
	if (argc > 1 && command_of(argv[1]) != OPTIONS_HELP) {
		command = command_of(argv[1]);
		argc--;
		argv++;
	}
	p->o->command = p->o->help = command;
	p->table = option_table(command);
	if (command == OPTIONS_AGENT)
		set_agent_defaults(p->o);
	if (command == OPTIONS_BENCH)
		options_bench_defaults(p->o);
	if (command == OPTIONS_SERVE)
		options_serve_defaults(p->o);
	err = parse_options(p, argc, argv, &dashes);
	if (!err && p->o->config_path && p->o->command != OPTIONS_HELP &&
	    p->o->command != OPTIONS_VERSION)
		err = parse_with_config(p, argc, argv, &dashes);
	if (err || p->o->command == OPTIONS_HELP || p->o->command == OPTIONS_VERSION)
		return err;
	if (p->table->takes_files)
		return options_view_finish(p->o, argv + optind, p->err, p->err_sz);
	if (command == OPTIONS_DIFF)
		return options_diff_finish(p->o, argv + optind, p->err, p->err_sz);
	if (command == OPTIONS_RECORD)
		return finish_record(p, argc, argv, dashes);
	if (command == OPTIONS_BENCH)
		return finish_bench(p, argc, argv, dashes);
	if (command == OPTIONS_AGENT)
		return finish_agent(p, argc, argv, dashes);
	if (command == OPTIONS_SERVE)
		return finish_serve(p, argc, argv, dashes);
	if (optind < argc)
		return fail(p, "%s takes no arguments", argv[0]);
	if (p->o->pids.cnt > 1)
		return fail(p, "list takes one process: give --pid one id");
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret, char *err, size_t err_sz)
{
	struct parser p = { .o = ret, .err = err, .err_sz = err_sz };
	int res;

	*err = 0;
	*ret = options_defaults;
	if (argc < 1)
		return fail(&p, "nothing to profile: give --pid PID, --all or -- COMMAND");
	res = parse(&p, argc, argv);
	ret->all_cnt = argc;
	ret->all_args = argv;
	if (res)
		options_done(ret);
	return res;
}

void options_done(struct options *o)
{
	custom_wanted__done(&o->custom);
	free(o->pids.ids);
	free(o->tids.ids);
	o->pids = o->tids = (struct options_ids){ 0 };
	free(o->view.bases);
	o->view.bases = NULL;
	if (o->config)
		config__done(o->config);
	free(o->config);
	o->config = NULL;
}
