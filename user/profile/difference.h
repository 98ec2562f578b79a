/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The difference of two profiles, as `pprof -diff_base` has it: one profile, in which the samples of the
 * base have the label pprof::base=true, and values with the sign turned. Added up they are the
 * difference; what knows the label has both sides. pprof's percentages are of the base then.
 */
#ifndef PROFILE_DIFFERENCE_H
#define PROFILE_DIFFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;
struct profile_sample;

#define DIFFERENCE_KEY "pprof::base"
#define DIFFERENCE_VALUE "true"

/* Is it a sample of the base? */
bool difference_of_base(const struct profile *p, const struct profile_sample *s);

/* Has it any? */
bool difference_is(const struct profile *p);

/*
 * What shares of a value are shares of, as pprof has it: the sum of what it is in all samples, each
 * without its sign, or in those of the base alone, if they have any. With values on both sides of 0
 * the sum that profile__total() makes says nothing of how large a part is.
 */
int64_t difference_whole(const struct profile *p, size_t value);

/*
 * Both may get other units, and lose values that the other one has not (fit.h). *ret is finished, the caller's, and
 * has the times of `now`. 0, text has the names of such values, "": there are none; -EINVAL: there is no
 * difference, and text says why, without full stop; -ENOMEM.
 */
int difference_make(struct profile *base, struct profile *now, struct profile **ret, char *text,
		    size_t text_sz);

#endif
