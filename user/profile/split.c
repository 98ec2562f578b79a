/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/split.h"

#include <errno.h>
#include <stdlib.h>

#include "profile/copier.h"
#include "profile/profile.h"

/* Everything but samples. */
static struct profile *new_part(const struct profile *p)
{
	struct profile *to = profile__new(p->value_types, p->value_cnt, p->period_type, p->period);

	if (!to)
		return NULL;
	to->folded_value = p->folded_value;
	to->time_ns = p->time_ns;
	to->duration_ns = p->duration_ns;
	return to;
}

static void copy_texts(struct copier *c)
{
	const struct profile *p = c->from;

	c->to->drop_frames = copier__string(c, p->drop_frames);
	c->to->keep_frames = copier__string(c, p->keep_frames);
	c->to->default_type = copier__string(c, p->default_type);
	for (size_t i = 0; i < p->comment_cnt && !c->failed; i++) {
		uint32_t comment = copier__string(c, p->comments[i]);

		c->failed = c->failed || profile__add_comment_id(c->to, comment);
	}
}

/* The samples of the part are those of order[0..cnt). */
static int copy_part(struct copier *c, const uint32_t *order, size_t cnt, struct profile **ret)
{
	struct profile *to = new_part(c->from);

	*ret = to;
	if (!to)
		return -ENOMEM;
	copier__begin(c, to);
	for (size_t i = 0; i < cnt && !c->failed; i++)
		copier__sample(c, &c->from->samples[order[i]]);
	if (!c->failed)
		copy_texts(c);
	return c->failed ? -ENOMEM : 0;
}

static uint32_t *new_order(const struct profile *p)
{
	return malloc((p->sample_cnt + 1) * sizeof(uint32_t));
}

/* Numbers of samples by part, and where each part's begin: first[part_cnt] is the end. */
static void sort_by_part(const uint32_t *part_of, size_t sample_cnt, size_t part_cnt, size_t *first,
			 uint32_t *order)
{
	for (size_t i = 0; i < sample_cnt; i++)
		if (part_of[i] != PROFILE_NONE)
			first[part_of[i] + 1]++;
	for (size_t i = 0; i < part_cnt; i++)
		first[i + 1] += first[i];
	for (size_t i = 0; i < sample_cnt; i++)
		if (part_of[i] != PROFILE_NONE)
			order[first[part_of[i]]++] = (uint32_t)i;
	for (size_t i = part_cnt; i > 0; i--)
		first[i] = first[i - 1];
	first[0] = 0;
}

int profile_split(const struct profile *p, const uint32_t *part_of, size_t part_cnt,
		  struct profile **ret_parts)
{
	struct copier c;
	uint32_t *order = new_order(p);
	size_t *first = calloc(part_cnt + 1, sizeof(*first)), n = 0;
	int err = copier__init(&c, p);

	if (!order || !first)
		err = -ENOMEM;
	if (!err)
		sort_by_part(part_of, p->sample_cnt, part_cnt, first, order);
	for (; !err && n < part_cnt; n++)
		err = copy_part(&c, order + first[n], first[n + 1] - first[n], &ret_parts[n]);
	while (err && n > 0) {
		profile__free(ret_parts[--n]);
		ret_parts[n] = NULL;
	}
	copier__done(&c);
	free(order);
	free(first);
	return err;
}
