/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run says about itself: the comments in the profile, the summary on standard error, the
 * account of --stats. */
#ifndef REPORT_H
#define REPORT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "bpfprof.h"
#include "capture/capture.h"
#include "capture/collect.h"
#include "capture/symbolize.h"

struct options;
struct profile;
struct run_facts;

/* Debug information that was fetched: files. */
struct report_debuginfod {
	uint64_t asked, cached, fetched, bytes, missing, late, refused;
};

/* Facts about a finished recording; times in ns. */
struct report {
	const struct options *opts;
	const char *target; /* "pid:1234", "all", "command:ls" */
	const bool *kinds;  /* that were recorded */
	int cpus;
	bool is_window; /* one of several: their summaries are short */
	uint64_t duration_ns, startup_ns;
	uint64_t run_ns;	       /* from the start of the run to the end of the window */
	const struct run_facts *facts; /* of the run, for those who compare runs; NULL: none */
	struct collect_account accounts[BPFPROF_NR_KINDS];
	struct symbolize_stats symbols[BPFPROF_NR_KINDS];
	uint64_t left_out[BPFPROF_NR_KINDS];	    /* samples: struct capture_profile */
	size_t samples[BPFPROF_NR_KINDS];	    /* distinct ones in the profile */
	struct capture_stats stats;		    /* so far, but for late_ns */
	struct capture_files_stats files;	    /* so far */
	uint64_t readers_peak_rss;		    /* bytes; for report_stats alone */
	const struct report_debuginfod *debuginfod; /* so far; NULL: none is asked for */
};

/* Writes into the profile how it was made, what was lost and what is not whole. 0 or -ENOMEM. */
int report_comment(const struct report *r, enum bpfprof_kind kind, struct profile *p);

/* The lines at the end of a run: one for the profile, its hottest functions, how to look further.
 * path: "-" for standard output. */
void report_summary(const struct report *r, enum bpfprof_kind kind, const struct profile *p,
		    const char *path);

/* The sum of a value over a profile, for people: "6.00 s", "512.00 KiB". */
void report_quantity(const struct profile *p, size_t value, char *buf, size_t buf_sz);

/*
 * Is everything there? Nothing may be lost, and of the stacks of a kind 1 % may be cut short.
 * Returns 0, or -ENODATA with what is not as it should be in text, a list without full stop.
 */
int report_strict(const struct report *r, char *text, size_t text_sz);

/* The JSON object of --stats. */
void report_stats(const struct report *r, FILE *f);

#endif
