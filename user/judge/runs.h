/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The evidence: the runs of both sides, each of one profile or several, as costs of stacks of functions.
 * What several builds of a program do not have in common is left out: addresses, lines, numbers of
 * clones. Files are anybody's and hostile.
 */
#ifndef JUDGE_RUNS_H
#define JUDGE_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/strtab.h"
#include "profile/facts.h"

enum runs_side {
	RUNS_BASE,
	RUNS_NEW
};

/* A function by its name alone: a program's file may be called otherwise on either side. */
struct runs_function {
	uint32_t name; /* canonical */
	uint32_t file; /* of its source, without folders; 0: not known */
	uint32_t path; /* the same with folders; the new side's, where it is there */
	int64_t line;  /* where it begins there, as far as that is known; 0: it is not */
	bool path_is_new;
	uint32_t object; /* the same of the program or library */
};

struct runs_stack {
	size_t at;    /* its functions, into frames; the leaf first, each once */
	uint32_t cnt; /* 1 or more */
};

/* Costs of a run by stack; a stack may have several. */
struct runs_cost {
	uint32_t stack;
	double value; /* in the metric's unit, above 0 */
	double count; /* samples, as far as that can be known, else events */
};

struct runs_column {
	bool there;	/* the run has this metric */
	bool exact;	/* nothing was sampled */
	bool by_chance; /* samples come one by one, each for itself: those of allocations */
	struct runs_cost *costs;
	size_t cnt, cap;
	double value, count; /* sums */
};

#define RUNS_METRICS_MAX 80 /* more than a file has value types */
#define RUNS_WALL "wall"    /* metric of what runs say of themselves: how long they took */

struct runs_metric {
	char name[64]; /* "cpu", "alloc_space"; printable */
	char unit[32]; /* "nanoseconds", "bytes", "count" … */
	bool whole;    /* runs have it, stacks have not */
	bool events;   /* it is what the profile is of, and each was counted */
};

struct runs_run {
	enum runs_side side;
	char *path;	 /* of its first file */
	int64_t time_ns; /* when it began; 0: not known */
	struct run_facts facts;
	uint32_t parts; /* runs that it is: see runs__join_builds(). 1 without builds */
	struct runs_column columns[RUNS_METRICS_MAX];
};

struct runs {
	struct strtab *strings;
	struct runs_function *functions;
	struct runs_stack *stacks;
	uint32_t *frames;
	struct runs_metric metrics[RUNS_METRICS_MAX];
	struct runs_run *runs; /* blocks adjoin once runs__finish was called */
	size_t function_cnt, stack_cnt, frame_cnt, metric_cnt, run_cnt;
	uint64_t digest; /* of all that was read */
	bool cross_machine; /* runs of different machines are let in; to be set before runs__finish() */
	bool machines_differ; /* there are such runs */
	bool are_builds;      /* each of them is a build: see runs__join_builds() */
	/* private */
	struct hash by_name, by_stack;
	size_t function_cap, stack_cap, frame_cap, run_cap;
};

/* NULL if there is no memory. */
struct runs *runs__new(void);
void runs__free(struct runs *r);

/*
 * Adds what is in a file. The name is for messages. 0; -EINVAL, -EBADMSG, -E2BIG, -ENOMEM with a
 * sentence in err.
 */
int runs__add(struct runs *r, enum runs_side side, const char *name, const void *data, size_t sz,
	      char *err, size_t err_sz);

/* Files, or folders of profiles: what is called *.pb.gz, *.pb, *.pprof or *.prof there, without folders below,
 * by name. */
struct runs_paths {
	char *const *paths;
	size_t cnt;
};

/*
 * Adds those of both sides, one file after the other. Two are in memory at a time, each read by a thread of its
 * own: the second one while the first one is added. 0, -errno or as above: the first that fails, in their
 * order.
 */
int runs__add_paths(struct runs *r, const struct runs_paths sides[2], char *err, size_t err_sz);

/* To be called when all are there: puts them in order, and refuses what cannot be compared. 0 or
 * -EINVAL with a sentence in err. */
int runs__finish(struct runs *r, char *err, size_t err_sz);

/*
 * To be called then. Where runs say which build of their side they are of, all runs of a build become one,
 * which is the evidence: with what all of them did, where they say how many operations that was, else with
 * what one did on average. 0 or -ENOMEM.
 */
int runs__join_builds(struct runs *r);

/* The metric of this name; -1: there is none. */
int runs__find_metric(const struct runs *r, const char *name);

static inline const char *runs__name(const struct runs *r, uint32_t function)
{
	return strtab__get(r->strings, r->functions[function].name);
}

#endif
