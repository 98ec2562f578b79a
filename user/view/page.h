/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a profile as a page of HTML that needs nothing else: flame graph, search, table. It opens
 * from a disk, asks no network, and runs no script but its own, which a Content-Security-Policy sees
 * to. Equal profiles give equal bytes.
 *
 * The profile stands in a script element of type application/json (html.spec.whatwg.org, data
 * blocks). model.js reads it:
 *
 *     title        text
 *     time_ms      since the epoch, 0: not known
 *     duration_ns
 *     comments     texts
 *     types        {type, unit, scale} for each value; values are multiples of scale
 *     show         index of the type that is shown first
 *     names        of frames
 *     places       paths of objects and source files, [0] is ""
 *     frames       VLQ: object, file (both in places) for each frame
 *     keys         of labels
 *     values       of each key, texts
 *     sets         VLQ: number of labels, then key and value of each
 *     stacks       VLQ: for each stack that differs from the one before it how many frames of that are
 *                  left, from the leaf; how many come in their place; these, from the root; how
 *                  many samples follow; and for each of them the set of its labels and its values.
 *                  A frame is written as the number, from 1, that it has among the callees of its
 *                  caller, or of the root, in the order in which they are met; a new one as 0 and
 *                  its index.
 *
 * A difference (profile/difference.h) has two sides, told by the label as there, and its functions are
 * told apart by name alone, as two builds have them in common. These fields are there with what they
 * say:
 *
 *     sides        texts: what base and new are
 *     warning      text
 *     judged       {frame, cum: {sign, common, text}, self: the same} of each note; without frame: of all
 *
 * VLQ: numbers as source maps (ECMA-426) write them, in digits of base 64 of which the lower five
 * bits, the lowest first, are of the number, and the sixth says that more follow. Only values have a
 * sign, the lowest bit of the first digit.
 */
#ifndef VIEW_PAGE_H
#define VIEW_PAGE_H

#include <stddef.h>
#include <stdio.h>

struct profile;

/* What was judged of a cost. */
struct page_judged {
	int sign;      /* 1: it is more, -1: less, 0: that is not certain */
	double common; /* what all costs have changed by, as a factor, and this one was judged without */
	const char *text; /* NULL: it was not judged */
};

/* The same of a function: with all that it calls, and by itself. */
struct page_note {
	const char *name; /* as the profile has it; NULL: all of it */
	struct page_judged cum, self;
};

/* Beside the profile. Whatever texts say is harmless. */
struct page_facts {
	const char *title;
	size_t value;		       /* index of the value type that is shown first */
	const char *sides[2];	       /* of a difference: what base and new are; NULL: not known */
	const char *warning;	       /* to be read before it is believed; NULL: none */
	const struct page_note *notes; /* NULL: it was not judged */
	size_t note_cnt;
};

/* Bytes of names and labels: each function of each object has its name again. A browser has no longer text. */
#define PAGE_MAX_TEXT (256U << 20)

/* 0; -ENOMEM; -E2BIG, as stacks__make, or there is too much text; -EIO: f has refused something. */
int page_write(const struct profile *p, const struct page_facts *facts, FILE *f);

#endif
