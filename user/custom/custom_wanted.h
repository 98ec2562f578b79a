/* SPDX-License-Identifier: BSD-2-Clause */
/* Which custom profiles are wanted, as -P names them. */
#ifndef CUSTOM_WANTED_H
#define CUSTOM_WANTED_H

#include <stdbool.h>
#include <stddef.h>

#define CUSTOM_WANTED_MAX 32 /* names, and pairs */

/* A function, and where the value is: in its argument of this number, 1 to 6; 0: what it returns. */
struct custom_function {
	const char *file; /* a path, or the name of a file: "libssl.so.3", "libssl" */
	const char *function;
	unsigned int arg;
};

/* Two functions, of which one adds what the other removes. */
struct custom_pair {
	const char *name;
	struct custom_function add, remove;
};

struct custom_wanted {
	bool all;			      /* that programs have */
	const char *names[CUSTOM_WANTED_MAX]; /* these at least */
	size_t name_cnt;
	struct custom_pair pairs[CUSTOM_WANTED_MAX];
	size_t pair_cnt;
	char *texts[CUSTOM_WANTED_MAX]; /* by name: that it, and its pair, are in */
};

/* How much of a list of kinds the first element takes: a comma is one of a pair's as well. */
size_t custom_wanted_length(const char *list);
/* Does the text, of this length, name custom profiles, and not a kind of another name? */
bool custom_wanted_is(const char *text, size_t len);
/*
 * Adds "custom", "custom:NAME" or "NAME=add:FILE:FUNCTION:WHERE,remove:FILE:FUNCTION:WHERE". 0;
 * -EINVAL with a sentence in err; -ENOMEM.
 */
int custom_wanted__add(struct custom_wanted *w, const char *text, size_t len, char *err,
		       size_t err_sz);
void custom_wanted__done(struct custom_wanted *w);

/* Is the profile of this name wanted? */
bool custom_wanted__has(const struct custom_wanted *w, const char *name);
/* Those that were named, pairs among them: how many, and which; NULL behind the last one. */
size_t custom_wanted__cnt(const struct custom_wanted *w);
const char *custom_wanted__name(const struct custom_wanted *w, size_t i);

#endif
