/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a profile says of the run that it is from: comments `KEY=VALUE`, each key at most once. Files of
 * others have none.
 */
#ifndef PROFILE_FACTS_H
#define PROFILE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

#define FACTS_RUN "bpfprof.run" /* text: files of a side with the same one are of one run */
#define FACTS_BLOCK \
	"bpfprof.block"		  /* number: runs of a block were made together, in random order */
#define FACTS_SLOT "bpfprof.slot" /* number: place in the block */
#define FACTS_BUILD "bpfprof.build" /* number: of the build of its side that ran, from 1 on */
#define FACTS_SEED "bpfprof.seed"   /* number that the order was drawn by */
#define FACTS_LOOK "bpfprof.look"  /* number: of the verdict that the run was made for, from 1 on */
#define FACTS_OPS "bpfprof.ops"	   /* number: units of work that the run did, above 0 */
#define FACTS_CPU "bpfprof.cpu_ns" /* number: CPU time of the run, exactly */
#define FACTS_WALL "bpfprof.wall_ns" /* number: how long it took */
#define FACTS_OTHERS \
	"bpfprof.other_ns"		/* number: CPU time that it did not get meanwhile: of
					   others, and stolen from the machine */
#define FACTS_SEEN "bpfprof.seen"	/* number: samples of the profile's kind */
#define FACTS_LOST "bpfprof.lost"	/* number: of these, what is not in the profile */
#define FACTS_MACHINE "bpfprof.machine" /* text: processor, number of CPUs, kernel */

#define FACTS_TEXT_SZ 256
#define FACTS_NONE UINT64_MAX /* a number that is not said */

struct run_facts {
	char run[FACTS_TEXT_SZ], machine[FACTS_TEXT_SZ]; /* "": not said */
	uint64_t block, slot, build, seed, look, ops, cpu_ns, wall_ns, other_ns, seen, lost;
};

/* Nothing is said. */
void facts_clear(struct run_facts *f);

/* Does a comment say something of the run? */
bool facts_is_one(const char *comment);

/* 0; -EBADMSG: a value is no number, too long, or a key stands there twice; *ret_key is the key. */
int facts_read(const struct profile *p, struct run_facts *ret, const char **ret_key);

/* Says in the profile what is said in f, in place of what it said of that before. 0 or -ENOMEM. */
int facts_write(struct profile *p, const struct run_facts *f);

#endif
