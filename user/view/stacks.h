/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A profile as pictures of it need it: stacks of frames from the root to the leaf, sorted, with equal
 * ones next to each other, and labels as text. The order follows from content alone, so that equal
 * profiles look the same.
 */
#ifndef VIEW_STACKS_H
#define VIEW_STACKS_H

#include <stddef.h>
#include <stdint.h>

#include "profile/frames.h"
#include "profile/profile.h"

/* Frames are equal if name and object are; in a difference (profile/difference.h) if the name is, and the
 * object is the first in order where there are several. Strings are ids of stacks.frames.names, harmless for
 * terminals. */
struct stacks_frame {
	uint32_t name;
	uint32_t object; /* path of the executable, library or kernel; 0: none */
	uint32_t file; /* of the source, the first in order where there are several; 0: not known */
};

/* A label: key and value; a number with its unit, unless that is the key. */
struct stacks_label {
	uint32_t key, value;
};

/* A set of labels that samples have. */
struct stacks_set {
	uint32_t first, cnt; /* into stacks.set_labels, ascending */
};

struct stacks_sample {
	size_t first;	 /* into stacks.stack_frames */
	uint32_t cnt;	 /* frames, at least 1 */
	uint32_t common; /* so many of them, from the root on, are those of the sample before it */
	uint32_t set;
	size_t value; /* index of the first one, into stacks.values */
};

struct stacks {
	struct frames frames;
	struct stacks_frame *frame; /* sorted by name, then object */
	struct stacks_label *label; /* sorted by key, then value */
	struct stacks_set *set;	    /* sorted by labels; each is used */
	/* sorted by frames, then set; no two of them have both in common */
	struct stacks_sample *sample;
	uint32_t *stack_frames; /* indices of frames */
	uint32_t *set_labels;	/* indices of labels */
	int64_t *values;	/* as many of each sample as the profile has types */
	uint32_t *ranks;	/* of strings of frames.names */
	size_t frame_cnt, label_cnt, set_cnt, sample_cnt;
};

/* Of all samples together. A made file of some KB may have a location with a million lines, in each of 100000
 * samples: to show that would take hours, and all memory. */
#define STACKS_MAX_FRAMES (1U << 27)

/* Samples of no frame have one, "[no stack]". 0; -ENOMEM; -E2BIG: there are too many frames. */
int stacks__make(const struct profile *p, struct stacks *ret);
void stacks__done(struct stacks *st);

#endif
