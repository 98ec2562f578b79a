/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/fit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "profile/profile.h"
#include "profile/units.h"

#define TYPES_SZ 256

/* What becomes of a profile's values: the i-th is that of from[i], times factor[i]. */
struct change {
	struct profile_value_type types[PROFILE_MAX_VALUES], period_type;
	size_t from[PROFILE_MAX_VALUES];
	int64_t factor[PROFILE_MAX_VALUES], period_factor;
};

static const char *type_of(const struct profile_value_type *t)
{
	return t->type ? t->type : "";
}

static const char *unit_of(const struct profile_value_type *t)
{
	return t->unit ? t->unit : "";
}

/* Finds the unit that both can have, and how many of it each of theirs is. False: there is none. */
static bool common_unit(const struct profile_value_type *a, const struct profile_value_type *b,
			const char **ret, int64_t *a_factor, int64_t *b_factor)
{
	const struct units_scale *a_list, *b_list, *in_a = units_find(unit_of(a), &a_list),
						   *in_b = units_find(unit_of(b), &b_list);
	int order = strcmp(unit_of(a), unit_of(b));

	*ret = unit_of(a);
	*a_factor = *b_factor = 1;
	if (!order)
		return true;
	if (!in_a || !in_b || a_list != b_list)
		return false;
	/* of two names for the same unit, the one that sorts first */
	if (in_b->factor < in_a->factor || (in_a == in_b && order > 0))
		*ret = unit_of(b);
	if (in_a->factor > in_b->factor)
		*a_factor = (int64_t)(in_a->factor / in_b->factor);
	else
		*b_factor = (int64_t)(in_b->factor / in_a->factor);
	return true;
}

/* Of names first. What is equal in both is the same already. */
static bool sorts_before(const struct profile *a, const struct profile *b)
{
	int order = 0;

	for (size_t i = 0; !order && i < a->value_cnt; i++)
		order = strcmp(type_of(&a->value_types[i]), type_of(&b->value_types[i]));
	for (size_t i = 0; !order && i < a->value_cnt; i++)
		order = strcmp(unit_of(&a->value_types[i]), unit_of(&b->value_types[i]));
	return order < 0;
}

/* Finds for each value of a the one of b. */
static bool pair_values(const struct profile *a, const struct profile *b, struct change *to_a,
			struct change *to_b)
{
	bool taken[PROFILE_MAX_VALUES] = { false };
	size_t i, k;

	for (i = 0; i < a->value_cnt; i++) {
		const struct profile_value_type *t = &a->value_types[i];
		const char *unit;

		for (k = 0; k < b->value_cnt; k++)
			if (!taken[k] && !strcmp(type_of(t), type_of(&b->value_types[k])) &&
			    common_unit(t, &b->value_types[k], &unit, &to_a->factor[i],
					&to_b->factor[i]))
				break;
		if (k == b->value_cnt)
			return false;
		taken[k] = true;
		to_a->from[i] = i;
		to_b->from[i] = k;
		to_a->types[i] = (struct profile_value_type){ type_of(t), unit };
	}
	return a->value_cnt == b->value_cnt;
}

static void scale(int64_t *value, int64_t factor)
{
	int64_t product;

	if (!__builtin_mul_overflow(*value, factor, &product))
		*value = product;
	else
		*value = *value < 0 ? INT64_MIN : INT64_MAX;
}

static void change_values(int64_t *values, size_t cnt, const struct change *c)
{
	int64_t before[PROFILE_MAX_VALUES];

	memcpy(before, values, cnt * sizeof(*values));
	for (size_t i = 0; i < cnt; i++) {
		values[i] = before[c->from[i]];
		scale(&values[i], c->factor[i]);
	}
}

static int change(struct profile *p, const struct change *c)
{
	size_t folded = p->folded_value;
	int err = profile__set_types(p, c->types, c->period_type);

	if (err)
		return err;
	for (size_t i = 0; i < p->value_cnt; i++)
		if (c->from[i] == folded)
			p->folded_value = i;
	for (size_t i = 0; i < p->sample_cnt; i++)
		change_values(profile__values(p, &p->samples[i]), p->value_cnt, c);
	scale(&p->period, c->period_factor);
	return 0;
}

/* "samples/count cpu/nanoseconds" */
static const char *types_text(const struct profile *p, char buf[static TYPES_SZ])
{
	size_t len = 0;

	for (size_t i = 0; i < p->value_cnt && len < TYPES_SZ; i++)
		len += (size_t)snprintf(buf + len, TYPES_SZ - len, "%s%s/%s", i ? " " : "",
					type_of(&p->value_types[i]), unit_of(&p->value_types[i]));
	return buf;
}

/* "cpu/nanoseconds" */
static const char *period_text(const struct profile *p, char buf[static TYPES_SZ])
{
	const struct profile_value_type *t = &p->period_type;

	if (!*type_of(t) && !*unit_of(t))
		return "nothing";
	snprintf(buf, TYPES_SZ, "%s/%s", type_of(t), unit_of(t));
	return buf;
}

static bool is_same(const struct profile_value_type *a, const struct profile_value_type *b)
{
	return !strcmp(type_of(a), type_of(b)) && !strcmp(unit_of(a), unit_of(b));
}

static bool are_same(const struct profile *a, const struct profile *b)
{
	bool same = a->value_cnt == b->value_cnt && is_same(&a->period_type, &b->period_type);

	for (size_t i = 0; same && i < a->value_cnt; i++)
		same = is_same(&a->value_types[i], &b->value_types[i]);
	return same;
}

int profile_fit(struct profile *a, struct profile *b, char *text, size_t text_sz)
{
	bool swapped = a->value_cnt == b->value_cnt && !sorts_before(a, b);
	struct profile *first = swapped ? b : a, *second = swapped ? a : b;
	char ours[TYPES_SZ], theirs[TYPES_SZ];
	struct change to_first, to_second;
	const char *unit;
	int err;

	if (are_same(a, b))
		return 0;
	if (!pair_values(first, second, &to_first, &to_second))
		return util_fail(-EINVAL, text, text_sz, "its values are %s, and not %s",
				 types_text(b, theirs), types_text(a, ours));
	if (strcmp(type_of(&a->period_type), type_of(&b->period_type)) != 0 ||
	    !common_unit(&first->period_type, &second->period_type, &unit, &to_first.period_factor,
			 &to_second.period_factor))
		return util_fail(-EINVAL, text, text_sz,
				 "its samples are taken by %s, and not by %s",
				 period_text(b, theirs), period_text(a, ours));
	to_first.period_type = (struct profile_value_type){ type_of(&first->period_type), unit };
	err = change(first, &to_first);
	if (err)
		return err;
	/* the texts from before are gone */
	memcpy(to_second.types, first->value_types, sizeof(to_second.types));
	to_second.period_type = first->period_type;
	return change(second, &to_second);
}
