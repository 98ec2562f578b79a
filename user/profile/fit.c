/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/fit.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/profile.h"
#include "profile/units.h"

#define TYPES_SZ 256

/* What becomes of a profile's values: the i-th is that of from[i], times factor[i]. */
struct change {
	size_t cnt;
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

/* Values that both have, as indices; in the order of a at first. */
struct pairs {
	size_t cnt, of_a[PROFILE_MAX_VALUES], of_b[PROFILE_MAX_VALUES];
	bool in_a[PROFILE_MAX_VALUES], in_b[PROFILE_MAX_VALUES]; /* by index: it is one of them */
};

static void find_pairs(const struct profile *a, const struct profile *b, struct pairs *ret)
{
	*ret = (struct pairs){ 0 };
	for (size_t i = 0; i < a->value_cnt; i++)
		for (size_t k = 0; k < b->value_cnt && !ret->in_a[i]; k++) {
			int64_t a_factor, b_factor;
			const char *unit;

			if (ret->in_b[k] ||
			    strcmp(type_of(&a->value_types[i]), type_of(&b->value_types[k])) != 0 ||
			    !common_unit(&a->value_types[i], &b->value_types[k], &unit, &a_factor,
					 &b_factor))
				continue;
			ret->in_a[i] = ret->in_b[k] = true;
			ret->of_a[ret->cnt] = i;
			ret->of_b[ret->cnt++] = k;
		}
}

/* What is left of both is not to have the same name: it would be the same in units that do not fit. */
static bool clashes(const struct profile *a, const struct profile *b, const struct pairs *pairs)
{
	for (size_t i = 0; i < a->value_cnt; i++)
		for (size_t k = 0; k < b->value_cnt; k++)
			if (!pairs->in_a[i] && !pairs->in_b[k] &&
			    !strcmp(type_of(&a->value_types[i]), type_of(&b->value_types[k])))
				return true;
	return false;
}

static void sort_by_b(struct pairs *p)
{
	for (size_t i = 1; i < p->cnt; i++)
		for (size_t k = i; k && p->of_b[k] < p->of_b[k - 1]; k--) {
			size_t a = p->of_a[k], b = p->of_b[k];

			p->of_a[k] = p->of_a[k - 1];
			p->of_b[k] = p->of_b[k - 1];
			p->of_a[k - 1] = a;
			p->of_b[k - 1] = b;
		}
}

/* Puts them in the order that sorts first: of names, then of units. What is equal in both is the same
 * already. */
static void order_pairs(const struct profile *a, const struct profile *b, struct pairs *p)
{
	struct pairs by_b = *p;
	int order = 0;

	sort_by_b(&by_b);
	for (size_t i = 0; !order && i < p->cnt; i++)
		order = strcmp(type_of(&a->value_types[p->of_a[i]]),
			       type_of(&b->value_types[by_b.of_b[i]]));
	for (size_t i = 0; !order && i < p->cnt; i++)
		order = strcmp(unit_of(&a->value_types[p->of_a[i]]),
			       unit_of(&b->value_types[by_b.of_b[i]]));
	if (order > 0)
		*p = by_b;
}

/* What becomes of both; they have the types of a, whose units may be new. */
static void plan_changes(const struct profile *a, const struct profile *b, const struct pairs *p,
			 struct change *to_a, struct change *to_b)
{
	to_a->cnt = to_b->cnt = p->cnt;
	for (size_t i = 0; i < p->cnt; i++) {
		const struct profile_value_type *t = &a->value_types[p->of_a[i]];
		const char *unit;

		common_unit(t, &b->value_types[p->of_b[i]], &unit, &to_a->factor[i],
			    &to_b->factor[i]);
		to_a->from[i] = p->of_a[i];
		to_b->from[i] = p->of_b[i];
		to_a->types[i] = (struct profile_value_type){ type_of(t), unit };
	}
}

static int note_left_out(struct strtab *left_out, const struct profile *p, const bool *kept)
{
	for (size_t i = 0; i < p->value_cnt; i++)
		if (!kept[i] && strtab__add(left_out, type_of(&p->value_types[i])) == PROFILE_NONE)
			return -ENOMEM;
	return 0;
}

static void scale(int64_t *value, int64_t factor)
{
	int64_t product;

	if (!__builtin_mul_overflow(*value, factor, &product))
		*value = product;
	else
		*value = *value < 0 ? INT64_MIN : INT64_MAX;
}

/* before, after: those of a sample, which may overlap. */
static void change_values(const int64_t *before, size_t before_cnt, int64_t *after,
			  const struct change *c)
{
	int64_t copy[PROFILE_MAX_VALUES];

	memcpy(copy, before, before_cnt * sizeof(*before));
	for (size_t i = 0; i < c->cnt; i++) {
		after[i] = copy[c->from[i]];
		scale(&after[i], c->factor[i]);
	}
}

static bool has_type(const struct profile *p, const char *type)
{
	for (size_t i = 0; i < p->value_cnt; i++)
		if (!strcmp(type_of(&p->value_types[i]), type))
			return true;
	return false;
}

static int change(struct profile *p, const struct change *c)
{
	size_t folded = p->folded_value, before_cnt = p->value_cnt;
	int err = profile__set_types(p, c->types, c->cnt, c->period_type);

	if (err)
		return err;
	/* the last one stands for one that is gone */
	p->folded_value = c->cnt - 1;
	for (size_t i = 0; i < c->cnt; i++)
		if (c->from[i] == folded)
			p->folded_value = i;
	if (!has_type(p, strtab__get(p->strings, p->default_type)))
		p->default_type = 0;
	for (size_t i = 0; i < p->sample_cnt; i++)
		change_values(p->values + i * before_cnt, before_cnt,
			      profile__values(p, &p->samples[i]), c);
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

int profile_fit(struct profile *a, struct profile *b, struct strtab *left_out, char *text,
		size_t text_sz)
{
	char ours[TYPES_SZ], theirs[TYPES_SZ];
	struct change to_a, to_b;
	struct pairs pairs;
	const char *unit;
	int err;

	if (are_same(a, b))
		return 0;
	find_pairs(a, b, &pairs);
	if (!pairs.cnt || clashes(a, b, &pairs))
		return util_fail(-EINVAL, text, text_sz, "its values are %s, and not %s",
				 types_text(b, theirs), types_text(a, ours));
	if (strcmp(type_of(&a->period_type), type_of(&b->period_type)) != 0 ||
	    !common_unit(&a->period_type, &b->period_type, &unit, &to_a.period_factor,
			 &to_b.period_factor))
		return util_fail(-EINVAL, text, text_sz,
				 "its samples are taken by %s, and not by %s",
				 period_text(b, theirs), period_text(a, ours));
	to_a.period_type = (struct profile_value_type){ type_of(&a->period_type), unit };
	order_pairs(a, b, &pairs);
	plan_changes(a, b, &pairs, &to_a, &to_b);
	err = note_left_out(left_out, a, pairs.in_a);
	err = err ?: note_left_out(left_out, b, pairs.in_b);
	err = err ?: change(a, &to_a);
	if (err)
		return err;
	/* the texts from before are gone */
	memcpy(to_b.types, a->value_types, sizeof(to_b.types));
	to_b.period_type = a->period_type;
	return change(b, &to_b);
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int profile_fit_say(struct profile *p, const struct strtab *left_out, char *text, size_t text_sz)
{
	uint32_t cnt = strtab__cnt(left_out);
	const char **names = calloc(cnt + 1, sizeof(*names));
	char line[TYPES_SZ + 64];
	size_t len = 0;

	*text = '\0';
	if (!names)
		return -ENOMEM;
	for (uint32_t i = 1; i < cnt; i++)
		names[i - 1] = strtab__get(left_out, i);
	qsort(names, cnt - 1, sizeof(*names), by_text);
	for (uint32_t i = 1; i < cnt && len < text_sz; i++)
		len += (size_t)snprintf(text + len, text_sz - len, "%s%s", i > 1 ? ", " : "",
					names[i - 1]);
	free(names);
	if (cnt == 1)
		return 0;
	snprintf(line, sizeof(line), "left out, since some of the profiles do not have it: %s",
		 text);
	return profile__add_comment(p, line);
}
