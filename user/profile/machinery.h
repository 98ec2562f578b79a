/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of a stack is the program itself, and what is machinery: where a thread only sleeps, memory
 * is only handed out, or a program is only carried out. A wait or an allocation tells something at
 * the first frame of the program, seen from the leaf, and next to nothing at the leaf.
 *
 * Objects decide: the main program and libraries that are not of a distribution are the program
 * itself. Where they hold machinery as well (statically linked programs, templates, Go), names do.
 */
#ifndef PROFILE_MACHINERY_H
#define PROFILE_MACHINERY_H

#include <stdint.h>

#include "profile/machinery_match.h"

struct machinery;
struct profile;
struct profile_sample;

/* A frame of a stack: line-th of the loc-th location, both from 0, leaf first. */
struct machinery_frame {
	uint32_t loc;
	uint32_t line;
};

/* To be made once names are set; the profile must not change as long as it lives. NULL if there is
 * no memory. */
struct machinery *machinery__new(const struct profile *p);
void machinery__free(struct machinery *m);

/*
 * The first frame from the leaf that is the program's own. Without one: the first with a name that
 * is a library's or a runtime's, and says what for it waits or allocates; else the function of the C
 * library that was called; else the leaf.
 */
struct machinery_frame machinery__first(const struct machinery *m, const struct profile_sample *s);

/*
 * Sets the profile's drop_frames to what `what` (enum machinery_drop) stands for, and keep_frames to
 * those of it below which frames of the program are found in this profile, such as an operator new
 * of its own: the reader hides a function with all that it called. If these are too many, nothing is
 * hidden. 0 or -ENOMEM.
 */
int machinery_hide(struct profile *p, unsigned int what);

#endif
