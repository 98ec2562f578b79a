/* SPDX-License-Identifier: BSD-2-Clause */
/* What was judged, in words and in forms that other programs read. Errors of the stream are the caller's:
 * ferror(3). */
#ifndef JUDGE_WRITE_H
#define JUDGE_WRITE_H

#include <stdio.h>

struct judge_metric;
struct judge_result;
struct judge_row;

/* What is written: words, or the profile of picture.h. */
enum judge_shape {
	JUDGE_WORDS,
	JUDGE_PPROF,
	JUDGE_FOLDED,
	JUDGE_PAGE,
};

struct judge_format {
	const char *name;
	void (*write)(const struct judge_result *r, FILE *f); /* words; NULL of other shapes */
	enum judge_shape shape;
};

extern const struct judge_format judge_formats[];
extern const size_t judge_format_cnt;

/* "text, json, …" */
const char *judge_format_names(char *text, size_t sz);

/* NULL: there is none of this name. */
const struct judge_format *judge_format_find(const char *name);

void judge_write_text(const struct judge_result *r, FILE *f);
void judge_write_json(const struct judge_result *r, FILE *f);
void judge_write_markdown(const struct judge_result *r, FILE *f);
void judge_write_junit(const struct judge_result *r, FILE *f);
void judge_write_github(const struct judge_result *r, FILE *f);

/* ---- what the forms share: each writes to text and returns it ---- */

#define WRITE_SZ 768

/* "+5.1 % [+4.0 %, +6.2 %]" */
const char *write_interval(const struct judge_row *row, char *text, size_t sz);
/* "1.25 s", "3.2 MB" */
const char *write_cost(double cost, const char *unit, char *text, size_t sz);
/* "work", "work and what it calls", "total"; printable */
const char *write_name(const struct judge_result *r, const struct judge_row *row, char *text,
		       size_t sz);
/* What the evidence is of, in the singular: "run", or "build". */
const char *write_unit(const struct judge_result *r);
/* "OK, at most +2.1 %", "MOVED from f (a caller)", "CANNOT TELL, 6 more runs a side" */
const char *write_verdict(const struct judge_result *r, const struct judge_metric *m,
			  const struct judge_row *row, char *text, size_t sz);
const char *write_p(double p, char *text, size_t sz);
/* The line that says it all. */
const char *write_headline(const struct judge_result *r, char *text, size_t sz);
/* How the runs of a metric were laid out, and what that allows. */
const char *write_design(const struct judge_result *r, const struct judge_metric *m, char *text,
			 size_t sz);
/* What is to be known before it is believed: the i-th remark; NULL behind the last one. */
const char *write_remark(const struct judge_result *r, const struct judge_metric *m, int i,
			 char *text, size_t sz);

#endif
