/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of formats, in which a profile is written. A new one is a row here and a writer. */
#ifndef FORMATS_H
#define FORMATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct kind;
struct profile;

struct format {
	const char *name; /* as -f takes it: [a-z]+ */
	const char *ext;  /* the end of file names, without the dot before it */
	/* pid: the process that the profile is of, whose memory is told; 0: several. 0; -errno: what the
	 * stream refused, or -ENOMEM */
	int (*write)(const struct profile *p, const struct kind *kind, pid_t pid, FILE *f);
	bool binary;	   /* not to be written to a terminal */
	bool one_process;  /* and no children: what is at an address is its mappings' to say */
	bool only_threads; /* it has a form for this kind alone */
	/* Its readers name Go's functions as go tool pprof does. */
	bool like_pprof;
	const char
		*reader; /* the command that looks into a file of this format; NULL: any reader */
};

extern const struct format formats[]; /* the first one is the default */
extern const size_t format_cnt;

/* Is a profile of this kind not for a terminal? */
bool formats_is_binary(const struct format *f, const struct kind *kind);

/* The format of this name, or NULL. */
const struct format *formats_find(const char *name);

/* The names of all formats, in a sentence: "pprof, folded". What does not fit is cut. */
#define FORMATS_NAMES_SZ 96
void formats_names(char *buf, size_t buf_sz);

#endif
