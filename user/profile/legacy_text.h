/* SPDX-License-Identifier: BSD-2-Clause */
/* Takes lines, words and numbers off the front of a text, where it stands. Nothing is read outside of it. */
#ifndef PROFILE_LEGACY_TEXT_H
#define PROFILE_LEGACY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is left of it. */
struct legacy_text {
	const char *at, *end;
};

static inline size_t legacy_left(const struct legacy_text *t)
{
	return (size_t)(t->end - t->at);
}

/* A line, without its end and without blanks around it. False: there is none left. */
bool legacy_line(struct legacy_text *t, struct legacy_text *ret);

/* Is there nothing to read in a line: is it empty, or a comment? */
bool legacy_is_comment(const struct legacy_text *line);

void legacy_skip_blanks(struct legacy_text *t);

/* Each takes what it names, if that is what comes next; else it takes nothing. */
bool legacy_take(struct legacy_text *t, const char *word);
/* Up to the next blank: *ret is not empty. */
bool legacy_take_word(struct legacy_text *t, struct legacy_text *ret);
/* A decimal number, with blanks before it. False also if it is larger than 63 bits. */
bool legacy_take_number(struct legacy_text *t, int64_t *ret);
bool legacy_take_signed(struct legacy_text *t, int64_t *ret);
/* 1 to 16 digits, without a prefix or with 0x. */
bool legacy_take_hex(struct legacy_text *t, uint64_t *ret);

#endif
