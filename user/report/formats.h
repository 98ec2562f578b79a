/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of formats, in which a profile is written. A new one is a row here and a writer. */
#ifndef FORMATS_H
#define FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct kind;
struct profile;

struct format {
	const char *name; /* as -f takes it: [a-z]+ */
	const char *ext;  /* the end of file names, without the dot before it */
	/* 0; -errno: what the stream refused, or -ENOMEM */
	int (*write)(const struct profile *p, const struct kind *kind, FILE *f);
	bool binary; /* not to be written to a terminal */
	/* Its readers name Go's functions as go tool pprof does. */
	bool like_pprof;
	const char
		*reader; /* the command that looks into a file of this format; NULL: any reader */
};

extern const struct format formats[]; /* the first one is the default */
extern const size_t format_cnt;

/* The format of this name, or NULL. */
const struct format *formats_find(const char *name);

/* The names of all formats, in a sentence: "pprof, folded". What does not fit is cut. */
#define FORMATS_NAMES_SZ 64
void formats_names(char *buf, size_t buf_sz);

#endif
