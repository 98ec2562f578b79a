// SPDX-License-Identifier: BSD-2-Clause
#include "profile/change.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"
#include "profile/merge.h"
#include "profile/profile.h"

static void turn(struct profile *p)
{
	for (size_t i = 0; i < p->sample_cnt * p->value_cnt; i++)
		p->values[i] = util_negate_saturated(p->values[i]);
}

static void leave_out(struct profile *p, const char *key)
{
	for (size_t i = 0; i < p->sample_cnt; i++) {
		struct profile_sample *s = &p->samples[i];
		struct profile_label *labels = &p->labels[s->label];
		uint32_t cnt = 0;

		for (uint32_t k = 0; k < s->label_cnt; k++)
			if (strcmp(strtab__get(p->strings, labels[k].key), key) != 0)
				labels[cnt++] = labels[k];
		s->label_cnt = cnt;
	}
}

static int add_up(const struct profile *before, const struct profile *after, struct profile **ret)
{
	struct profile_merge *m = profile_merge__new();
	int err = m ? 0 : -errno;

	/* the second one says what is first in it */
	if (!err)
		err = profile_merge__add(m, after, NULL, 0);
	if (!err)
		err = profile_merge__add(m, before, NULL, 0);
	if (!err) {
		*ret = profile_merge__take(m);
		err = *ret ? 0 : -errno;
	}
	profile_merge__free(m);
	return err;
}

int change_make(struct profile *before, struct profile *after, const char *without_label,
		struct profile **ret)
{
	struct profile *p;
	int err;

	leave_out(before, without_label);
	leave_out(after, without_label);
	turn(before);
	err = add_up(before, after, &p);
	if (err)
		return err;
	profile__drop_zeros(p);
	p->time_ns = after->time_ns;
	p->duration_ns = after->time_ns - before->time_ns;
	err = profile__finish(p);
	if (err)
		profile__free(p);
	else
		*ret = p;
	return err;
}
