/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/difference.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "profile/fit.h"
#include "profile/merge.h"
#include "profile/profile.h"

bool difference_of_base(const struct profile *p, const struct profile_sample *s)
{
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *l = &p->labels[s->label + i];

		if (!strcmp(strtab__get(p->strings, l->key), DIFFERENCE_KEY) &&
		    !strcmp(strtab__get(p->strings, l->str), DIFFERENCE_VALUE))
			return true;
	}
	return false;
}

bool difference_is(const struct profile *p)
{
	for (size_t i = 0; i < p->sample_cnt; i++)
		if (difference_of_base(p, &p->samples[i]))
			return true;
	return false;
}

int64_t difference_whole(const struct profile *p, size_t value)
{
	int64_t all = 0, base = 0;

	for (size_t i = 0; i < p->sample_cnt; i++) {
		uint64_t size = util_magnitude(profile__values(p, &p->samples[i])[value]);
		int64_t v = (int64_t)MIN(size, (uint64_t)INT64_MAX);

		all = util_add_saturated(all, v);
		if (difference_of_base(p, &p->samples[i]))
			base = util_add_saturated(base, v);
	}
	return base ?: all;
}

static void turn_base(struct profile *p)
{
	for (size_t i = 0; i < p->sample_cnt; i++) {
		int64_t *values = profile__values(p, &p->samples[i]);

		if (!difference_of_base(p, &p->samples[i]))
			continue;
		for (size_t v = 0; v < p->value_cnt; v++)
			values[v] = util_negate_saturated(values[v]);
	}
}

static int add_up(const struct profile *base, const struct profile *now, struct profile **ret)
{
	static const struct profile_merge_label label = { DIFFERENCE_KEY, DIFFERENCE_VALUE };
	struct profile_merge *m = profile_merge__new();
	int err = m ? 0 : -errno;

	if (!err)
		err = profile_merge__add(m, now, NULL, 0);
	if (!err)
		err = profile_merge__add(m, base, &label, 1);
	if (!err) {
		*ret = profile_merge__take(m);
		err = *ret ? 0 : -errno;
	}
	profile_merge__free(m);
	return err;
}

int difference_make(struct profile *base, struct profile *now, struct profile **ret, char *text,
		    size_t text_sz)
{
	struct strtab *left_out;
	struct profile *p;
	int err;

	if (difference_is(base) || difference_is(now))
		return util_fail(-EINVAL, text, text_sz, "%s is a difference already",
				 difference_is(base) ? "the base" : "the new side");
	left_out = strtab__new();
	err = left_out ? profile_fit(base, now, left_out, text, text_sz) : -errno;
	if (!err)
		err = add_up(base, now, &p);
	if (err)
		goto out;
	turn_base(p);
	profile__drop_zeros(p);
	p->time_ns = now->time_ns;
	p->duration_ns = now->duration_ns;
	err = profile_fit_say(p, left_out, text, text_sz);
	err = err ?: profile__finish(p);
	if (err)
		profile__free(p);
	else
		*ret = p;
out:
	strtab__free(left_out);
	return err;
}
