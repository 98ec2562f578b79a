/* SPDX-License-Identifier: BSD-2-Clause */
/* Shows what is in profiles. A new form is a row of the table of formats in view.c, with a writer. */
#ifndef VIEW_H
#define VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct profile;
struct view_format;

struct view_options {
	const struct view_format *format; /* NULL: text */
	const char *value;		  /* its type's name; NULL: the profile's default */
	const char *focus;		  /* see view_check_focus; NULL: all stacks are shown */
	size_t limit;			  /* lines; 0: all */
	bool tree;
	double min_share;   /* of the whole, 0 to 1: what is below that is left out of the tree */
	bool has_min_share; /* it was given */
	const char **bases; /* files of the side to compare with, NULL-terminated; NULL: none */
};

#define VIEW_DEFAULTS              \
	{                          \
		.min_share = 0.005 \
	}

/* What the files of a side are together. */
struct view_side {
	const char *name; /* of the first file, and how many more */
	size_t files;
	int64_t duration_ns; /* 0: not known */
};

/* A profile, as it is to be shown. */
struct view {
	const struct profile *profile; /* finished */
	size_t value;		       /* index of its value_types */
	const char *title;	       /* of what files it was made */
	const struct view_side *sides; /* base and new, of a difference; NULL: there is one side */
	const struct view_options *opts;
};

struct view_format {
	const char *name; /* as -f takes it: [a-z]+ */
	/* the end of file names, without the dot before it: without -o a file is written in this
	 * folder, named like the first one that was read. NULL: standard output is. */
	const char *ext;
	bool whole; /* shows all: --focus, --tree and --limit are not for it */
	/* 0 or -errno */
	int (*write)(const struct view *v, FILE *f);
};

/* The format of this name, or NULL. */
const struct view_format *view_format_find(const char *name);

/* The names of all, in a sentence. What does not fit is cut. */
#define VIEW_FORMAT_NAMES_SZ 64
void view_format_names(char *buf, size_t buf_sz);

/* Is it an extended regular expression (regex(7))? 0, or -EINVAL with a sentence in err. */
int view_check_focus(const char *focus, char *err, size_t err_sz);

/* "base: a and 2 more, 3 files over 30 s": harmless. Cut to text_sz. */
void view_side_text(const struct view_side *s, const char *which, char *text, size_t text_sz);

/* Is there more of one side than of the other? That is said then. */
#define VIEW_UNEVEN \
	"The sides differ in their number of files or in duration: costs are shown as they are"
bool view_sides_differ(const struct view_side *sides);

/* Adds the files of each side up (sum_files) and writes what is shown of them to a path, "-" for
 * standard output, NULL for where the format goes. Says what is wrong. 0 or -errno. */
int view_files(const struct view_options *o, char *const *files, const char *output);

#endif
