/* SPDX-License-Identifier: BSD-2-Clause */
/* What bench consists of: bench.c goes through the plan, commands.c has what is run, one_run.c lets a side run
 * once, prepare.c what comes before it, set.c keeps the profiles, ops.c has what a probe counts, boxed.c finds out whether a command works for
 * a given time. For these alone. */
#ifndef BENCH_PARTS_H
#define BENCH_PARTS_H

#include <linux/types.h>
#include <limits.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "judge/runs.h"
#include "profile/facts.h"
#include "record/launch.h"

struct options;

extern const char *const bench_side_names[2]; /* "base", "new" */

/* The folder of the profiles: base/0001.cpu.pb.gz, new/0002.cpu.pb.gz … by the number of the run. */
struct bench_set {
	char path[PATH_MAX];
	bool open; /* those below are */
	int folder,
		sides[2]; /* descriptors: the commands, whose user owns them, may put links in their places */
	bool made;	     /* by us, now */
	bool temporary;	     /* it is removed in the end */
	uint32_t runs;	     /* numbers that are taken */
	uint64_t blocks;     /* the same */
	uint64_t looks;	     /* at what was there before */
	uint64_t builds;     /* the highest number of one that was there before; 0: it has none */
	uint64_t ops_before; /* what each did, where all did as much; FACTS_NONE: they do not say */
};

struct bench {
	const struct options *opts;
	char ***commands[2]; /* by side and build: as many as there are builds, else one */
	struct bench_set set;
	struct launch_user user;
	bool as_user;
	regex_t ops_regex;
	uint64_t seed, look;
	uint64_t ops; /* of each run, as it is given or was found out; FACTS_NONE: not known */
	int signal_fd;
};

/* A run that is to be made. */
struct bench_run {
	enum runs_side side;
	uint64_t build; /* of the side's, from 0 on; 0 as well where there are no builds */
	uint32_t padding;
	uint64_t
		pause_ns; /* it is stopped in the middle for so long, once it has run for as long; 0:
			      not */
};

/* --prepare: runs it. 0; -EINTR: somebody wants us to end; -EINVAL: said. */
int bench_prepare(const struct bench *b);

/*
 * Lets a side run once, prepared, and puts its profiles where bench_set_begun has them. What it says of itself is in
 * *ret, with its operations. 0; -EINTR: somebody wants us to end; -EINVAL: said.
 */
int bench_one_run(struct bench *b, const struct bench_run *run, struct run_facts *ret);

/* Makes the commands of both sides, of all their builds. 0 or -errno, said. */
int bench_open_commands(struct bench *b);
void bench_close_commands(struct bench *b);
/* The command of a run: its words. */
char **bench_command(const struct bench *b, const struct bench_run *run);

/* The number of its build, as files and commands have it; FACTS_NONE: there are no builds. */
uint64_t bench_build_number(const struct bench *b, const struct bench_run *run);

/* --ops-probe: can both sides be probed, as far as can be told before they run? 0 or -errno, said. */
int bench_ops_check(const struct bench *b);
/* The same of a run: takes what was counted, FACTS_NONE: nothing, into *ret. 0; -EINVAL, said. */
int bench_ops_take(const struct bench *b, enum runs_side side, uint64_t counted,
		   struct run_facts *ret);

/* Opens or makes the folder. NULL: one that is removed in the end. append: it is there. 0 or -errno,
 * said. */
int bench_set_open(struct bench *b, const char *path, bool append);
void bench_set_close(struct bench_set *set);
/* The output of the run that is going on, as options have it, and its file of a kind. */
void bench_set_begun(const struct bench_set *set, char path[PATH_MAX]);
/* What the run that has just ended says of itself. 0; -EINVAL, said: it says too little. */
int bench_set_peek(const struct bench *b, enum runs_side side, struct run_facts *ret);
/* Adds its profiles to runs, which are never finished: what there is in them. 0 or -errno, said. */
int bench_set_read_begun(const struct bench *b, enum runs_side side, struct runs *runs);
/* Takes the files of the run that has ended under its number, and says in them, and in facts, what it is.
 * 0 or -errno, said. */
int bench_set_add(const struct bench *b, enum runs_side side, uint32_t run,
		  struct run_facts *facts);
/* The same without keeping anything. */
void bench_set_drop(const struct bench *b);
/* Files of a run, which is not to count. */
void bench_set_remove(const struct bench *b, enum runs_side side, uint32_t run);
/* Says of all runs that are there what one of them did. 0 or -errno, said. */
int bench_set_say_ops(const struct bench *b, uint64_t ops);
/* All that is there. The caller's; NULL, said. */
struct runs *bench_set_read(const struct bench *b);

/*
 * Runs that say nothing of their work, and take the same time: is that since they end by the clock? Finds
 * it out by stopping one for a while. 0: they do the same work each time; -EINVAL, said; -EINTR.
 */
int bench_find_boxed(struct bench *b, const struct runs *runs);

#endif
