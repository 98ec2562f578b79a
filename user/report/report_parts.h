/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of report.h share: what is said in profiles and at the end of a run alike. */
#ifndef REPORT_PARTS_H
#define REPORT_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "report/report.h"

struct json;

extern const char *const report_lost_text[BPFPROF_NR_LOST]; /* why samples were lost */

/* Samples lost, for whatever reason. */
uint64_t report_lost(const struct collect_account *a);

/* Share of whole stacks in percent; 100 of nothing is whole. */
double report_whole_percent(const struct collect_account *a);

/* What is the same for all kinds: the account of one that is recorded, the last one. */
const struct collect_account *report_any_account(const struct report *r);

/* A time as --min-wait takes it. Returns buf. */
const char *report_time_text(uint64_t ns, char *buf, size_t buf_sz);

/* What only this kind says; NULL: nothing. A kind that says nothing of its own needs no row. */
struct report_kind {
	/* How it was sampled: ", " and a few words. */
	void (*how)(const struct report *r, enum bpfprof_kind kind, char *buf, size_t buf_sz);
	/* As report_say_notes. */
	int (*notes)(const struct report *r, enum bpfprof_kind kind, struct profile *to);
	/* Keys in its object of --stats. */
	void (*stats)(const struct report *r, enum bpfprof_kind kind, struct json *j);
};

extern const struct report_kind report_kinds[BPFPROF_NR_KINDS];

void report_stats_cache(struct json *j, const char *key, const struct bpfprof_cache_stats *cache);

/*
 * Lines for people: comments of the profile `to`, or, if it is NULL, on standard error. 0 or
 * -ENOMEM.
 */
int __attribute__((format(printf, 2, 3))) report_say(struct profile *to, const char *fmt, ...);
int report_say_lost(const struct collect_account *a, struct profile *to); /* one for each reason */
int report_say_cut(const struct collect_account *a, struct profile *to);  /* likewise, of stacks */
/* What was lost of processes, and what only some kinds have to say. */
int report_say_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to);

#endif
