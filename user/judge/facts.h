/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a profile says of the run that it is from: comments `KEY=VALUE`, each key at most once. Files of
 * others have none.
 */
#ifndef JUDGE_FACTS_H
#define JUDGE_FACTS_H

#include <stddef.h>
#include <stdint.h>

struct profile;

#define FACTS_RUN "bpfprof.run" /* text: files of a side with the same one are of one run */
#define FACTS_BLOCK \
	"bpfprof.block"		   /* number: runs of a block were made together, in random order */
#define FACTS_SLOT "bpfprof.slot"  /* number: place in the block */
#define FACTS_SEED "bpfprof.seed"  /* number that the order was drawn by */
#define FACTS_OPS "bpfprof.ops"	   /* number: units of work that the run did, above 0 */
#define FACTS_CPU "bpfprof.cpu_ns" /* number: CPU time of the run, exactly */
#define FACTS_WALL "bpfprof.wall_ns"	/* number: how long it took */
#define FACTS_MACHINE "bpfprof.machine" /* text: processor, kernel, number of CPUs */

#define FACTS_TEXT_SZ 256
#define FACTS_NONE UINT64_MAX /* a number that is not said */

struct run_facts {
	char run[FACTS_TEXT_SZ], machine[FACTS_TEXT_SZ]; /* "": not said */
	uint64_t block, slot, seed, ops, cpu_ns, wall_ns;
};

/* 0; -EBADMSG: a value is no number, too long, or a key stands there twice; *ret_key is the key. */
int facts_read(const struct profile *p, struct run_facts *ret, const char **ret_key);

#endif
