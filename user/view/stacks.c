/* SPDX-License-Identifier: BSD-2-Clause */
/* Names, sorts and adds up the stacks of a profile. */
#include "view/stacks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "profile/difference.h"
#include "profile/ranks.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
#define MAX_UNIT 64 /* of a label, with a NUL: each number has it again */

struct entry {
	uint32_t key[2];
	uint32_t index;
};

/* What is only needed while stacks are made. */
struct maker {
	const struct profile *p;
	struct stacks *st;
	bool by_name;		  /* two builds have different objects */
	uint32_t *location_frame; /* of location i the first of its frames, in line_frame */
	uint32_t *line_frame;
	size_t line_cnt, line_cap, frame_cap, label_cap, stack_cap, set_cap;
	struct hash frame_index, label_index;
};

/* ---- Frames ---- */

/* The index of an entry with this key; that of a new one is `cnt`, and *ret_new is set. UINT32_MAX:
 * no memory. */
static uint32_t index_of(struct hash *h, uint32_t a, uint32_t b, size_t cnt, bool *ret_new)
{
	uint32_t key[2] = { a, b };
	struct entry *e = hash__insert(h, key, ret_new);

	if (!e)
		return UINT32_MAX;
	if (*ret_new)
		e->index = cnt;
	return e->index;
}

/* Of all names that there are so far. */
static int rank_strings(struct stacks *st)
{
	free(st->ranks);
	st->ranks = ranks_make(st->frames.names);
	return st->ranks ? 0 : -ENOMEM;
}

/* The first of two strings in order; one that is there comes before none. */
static uint32_t first_of(const struct stacks *st, uint32_t a, uint32_t b)
{
	return !b || (a && st->ranks[a] <= st->ranks[b]) ? a : b;
}

static int add_frame(struct maker *m, const struct stacks_frame *f)
{
	struct stacks *st = m->st;
	struct stacks_frame *have;
	bool is_new;
	uint32_t i = index_of(&m->frame_index, f->name, m->by_name ? 0 : f->object, st->frame_cnt,
			      &is_new);

	if (i == UINT32_MAX ||
	    util_reserve(&st->frame, &m->frame_cap, st->frame_cnt + 1, sizeof(*st->frame)) ||
	    util_reserve(&m->line_frame, &m->line_cap, m->line_cnt + 1, sizeof(*m->line_frame)))
		return -ENOMEM;
	have = &st->frame[i];
	if (is_new) {
		st->frame[st->frame_cnt++] = *f;
	} else {
		have->file = first_of(st, have->file, f->file);
		have->object = first_of(st, have->object, f->object);
	}
	m->line_frame[m->line_cnt++] = i;
	return 0;
}

static int add_location(struct maker *m, uint32_t location)
{
	const struct profile_location *l = &m->p->locations[location];
	struct frames *fr = &m->st->frames;
	struct stacks_frame f = { 0 };
	int err = 0;

	if (l->mapping != PROFILE_NONE)
		f.object = frames__string(fr, m->p->mappings[l->mapping].filename);
	for (uint32_t i = 0; !err && i < frames__cnt(fr, location); i++) {
		f.name = frames__name(fr, location, i);
		f.file = 0;
		if (i < l->line_cnt)
			f.file = frames__string(
				fr, m->p->functions[m->p->lines[l->line + i].function].filename);
		if (f.object == UINT32_MAX || f.file == UINT32_MAX)
			return -ENOMEM;
		err = add_frame(m, &f);
	}
	return err;
}

/* Paths are compared as frames are added: all of them are to be there before. */
static int rank_paths(struct maker *m)
{
	struct frames *fr = &m->st->frames;
	const struct profile *p = m->p;

	for (size_t i = 0; i < p->mapping_cnt; i++)
		if (frames__string(fr, p->mappings[i].filename) == UINT32_MAX)
			return -ENOMEM;
	for (size_t i = 0; i < p->function_cnt; i++)
		if (frames__string(fr, p->functions[i].filename) == UINT32_MAX)
			return -ENOMEM;
	return rank_strings(m->st);
}

static bool is_empty(const struct maker *m, const struct profile_sample *s)
{
	for (size_t v = 0; v < m->p->value_cnt; v++)
		if (profile__values(m->p, s)[v])
			return false;
	return true;
}

/* Of the locations that samples use, and of no others. */
static int add_frames(struct maker *m)
{
	const struct profile *p = m->p;
	int err = 0;

	for (size_t i = 0; i < p->location_cnt; i++)
		m->location_frame[i] = PROFILE_NONE;
	for (size_t i = 0; i < p->sample_cnt; i++) {
		const struct profile_sample *s = &p->samples[i];

		for (uint32_t k = 0; !is_empty(m, s) && k < s->loc_cnt; k++) {
			uint32_t location = p->loc_ids[s->loc + k];

			if (m->location_frame[location] != PROFILE_NONE)
				continue;
			m->location_frame[location] = m->line_cnt;
			err = add_location(m, location);
			if (err)
				return err;
		}
	}
	return 0;
}

/* ---- Sorting: what was numbered in the order of use gets numbers in the order of content ---- */

static int compare_text(const struct stacks *st, uint32_t a, uint32_t b)
{
	return COMPARE(st->ranks[a], st->ranks[b]);
}

static int compare_frames(const void *pa, const void *pb, void *arg)
{
	const struct stacks *st = arg;
	const struct stacks_frame *a = &st->frame[*(const uint32_t *)pa];
	const struct stacks_frame *b = &st->frame[*(const uint32_t *)pb];
	int order = compare_text(st, a->name, b->name);

	return order ? order : compare_text(st, a->object, b->object);
}

static int compare_labels(const void *pa, const void *pb, void *arg)
{
	const struct stacks *st = arg;
	const struct stacks_label *a = &st->label[*(const uint32_t *)pa];
	const struct stacks_label *b = &st->label[*(const uint32_t *)pb];
	int order = compare_text(st, a->key, b->key);

	return order ? order : compare_text(st, a->value, b->value);
}

/*
 * Sorts *array of cnt elements of sz bytes, and puts in the place of each number among the `use_cnt`
 * of `use` the one that its element has now. 0 or -ENOMEM.
 */
static int sort_numbered(struct stacks *st, void *array, size_t cnt, size_t sz,
			 int (*compare)(const void *, const void *, void *), uint32_t *use,
			 size_t use_cnt)
{
	char **elements = array, *sorted = malloc(cnt * sz + 1);
	uint32_t *order = calloc(cnt + 1, sizeof(*order)),
		 *number = calloc(cnt + 1, sizeof(*number));
	int err = -ENOMEM;

	if (!sorted || !order || !number)
		goto cleanup;
	for (size_t i = 0; i < cnt; i++)
		order[i] = i;
	qsort_r(order, cnt, sizeof(*order), compare, st);
	for (size_t i = 0; i < cnt; i++) {
		memcpy(sorted + i * sz, *elements + order[i] * sz, sz);
		number[order[i]] = i;
	}
	for (size_t i = 0; i < use_cnt; i++)
		use[i] = number[use[i]];
	free(*elements);
	*elements = sorted;
	sorted = NULL;
	err = 0;
cleanup:
	free(sorted);
	free(order);
	free(number);
	return err;
}

/* ---- Labels ---- */

/* Text, or a number with its unit. */
static uint32_t label_value(struct stacks *st, const struct profile_label *l)
{
	char unit[MAX_UNIT], number[MAX_UNIT + 32];

	if (l->str)
		return frames__string(&st->frames, l->str);
	util_printable(unit, sizeof(unit), strtab__get(st->frames.profile->strings, l->num_unit));
	if (l->num_unit == l->key)
		*unit = '\0';
	snprintf(number, sizeof(number), "%" PRId64 "%s%s", l->num, *unit ? " " : "", unit);
	return frames__clean(&st->frames, number);
}

static int add_label(struct maker *m, const struct profile_label *l)
{
	struct stacks *st = m->st;
	struct stacks_label label = { .key = frames__string(&st->frames, l->key),
				      .value = label_value(st, l) };
	bool is_new;
	uint32_t i;

	if (label.key == UINT32_MAX || label.value == UINT32_MAX)
		return -ENOMEM;
	i = index_of(&m->label_index, label.key, label.value, st->label_cnt, &is_new);
	if (i == UINT32_MAX ||
	    util_reserve(&st->label, &m->label_cap, st->label_cnt + 1, sizeof(*st->label)))
		return -ENOMEM;
	if (is_new)
		st->label[st->label_cnt++] = label;
	st->set_labels[st->set[st->set_cnt].first + st->set[st->set_cnt].cnt++] = i;
	return 0;
}

static int compare_numbers(const void *pa, const void *pb)
{
	return COMPARE(*(const uint32_t *)pa, *(const uint32_t *)pb);
}

static int compare_sets(const void *pa, const void *pb, void *arg)
{
	const struct stacks *st = arg;
	const struct stacks_set *a = &st->set[*(const uint32_t *)pa];
	const struct stacks_set *b = &st->set[*(const uint32_t *)pb];

	for (uint32_t i = 0; i < a->cnt && i < b->cnt; i++) {
		uint32_t x = st->set_labels[a->first + i], y = st->set_labels[b->first + i];

		if (x != y)
			return COMPARE(x, y);
	}
	return COMPARE(a->cnt, b->cnt);
}

/* One set for each sample; then sorted, and each kept once. */
static int add_sets(struct maker *m)
{
	struct stacks *st = m->st;
	uint32_t *of_sample = calloc(st->sample_cnt + 1, sizeof(*of_sample));
	size_t cnt = 0, label_cnt = 0;
	int err;

	if (!of_sample)
		return -ENOMEM;
	for (size_t i = 0; i < st->set_cnt; i++)
		label_cnt += st->set[i].cnt;
	err = sort_numbered(st, &st->label, st->label_cnt, sizeof(*st->label), compare_labels,
			    st->set_labels, label_cnt);
	if (err)
		goto cleanup;
	for (size_t i = 0; i < st->set_cnt; i++)
		qsort(st->set_labels + st->set[i].first, st->set[i].cnt, sizeof(*st->set_labels),
		      compare_numbers);
	for (size_t i = 0; i < st->sample_cnt; i++)
		of_sample[i] = i;
	err = sort_numbered(st, &st->set, st->set_cnt, sizeof(*st->set), compare_sets, of_sample,
			    st->sample_cnt);
	if (err)
		goto cleanup;
	/* number i is that of the i-th set from now on, and of its equals before it */
	for (size_t i = 0; i < st->sample_cnt; i++)
		st->sample[i].set = of_sample[i];
	for (size_t i = 0; i < st->set_cnt; i++) {
		uint32_t last = cnt - 1, this = i;

		if (!cnt || compare_sets(&last, &this, st))
			st->set[cnt++] = st->set[i];
		of_sample[i] = cnt - 1;
	}
	for (size_t i = 0; i < st->sample_cnt; i++)
		st->sample[i].set = of_sample[st->sample[i].set];
	st->set_cnt = cnt;
cleanup:
	free(of_sample);
	return err;
}

/* ---- Samples ---- */

static int add_no_stack(struct maker *m)
{
	struct stacks_frame f = { .name = frames__clean(&m->st->frames, "[no stack]") };

	return f.name == UINT32_MAX ? -ENOMEM : add_frame(m, &f);
}

/* Its frames, as indices of line_frame's entries. */
static int add_stack(struct maker *m, const struct profile_sample *s, struct stacks_sample *ret)
{
	struct stacks *st = m->st;
	int err;

	for (uint32_t i = s->loc_cnt; i-- > 0;) {
		uint32_t location = m->p->loc_ids[s->loc + i];
		uint32_t cnt = frames__cnt(&st->frames, location);

		if (util_reserve(&st->stack_frames, &m->stack_cap, ret->first + ret->cnt + cnt,
				 sizeof(*st->stack_frames)))
			return -ENOMEM;
		while (cnt-- > 0)
			st->stack_frames[ret->first + ret->cnt++] =
				m->line_frame[m->location_frame[location] + cnt];
	}
	if (ret->cnt)
		return 0;
	err = add_no_stack(m);
	if (err || util_reserve(&st->stack_frames, &m->stack_cap, ret->first + 1,
				sizeof(*st->stack_frames)))
		return -ENOMEM;
	st->stack_frames[ret->first + ret->cnt++] = m->line_frame[m->line_cnt - 1];
	return 0;
}

/* Returns the number of frames of all stacks; a negative error. */
static int add_samples(struct maker *m, size_t *ret_frames)
{
	const struct profile *p = m->p;
	struct stacks *st = m->st;
	size_t at = 0, label_at = 0;
	int err = 0;

	for (size_t i = 0; !err && i < p->sample_cnt; i++) {
		const struct profile_sample *s = &p->samples[i];
		struct stacks_sample *to = &st->sample[st->sample_cnt];

		if (is_empty(m, s))
			continue;
		*to = (struct stacks_sample){ .first = at, .value = st->sample_cnt * p->value_cnt };
		memcpy(st->values + to->value, profile__values(p, s),
		       p->value_cnt * sizeof(*st->values));
		err = add_stack(m, s, to);
		st->set[st->set_cnt] = (struct stacks_set){ .first = label_at };
		for (uint32_t k = 0; !err && k < s->label_cnt; k++)
			err = add_label(m, &p->labels[s->label + k]);
		label_at += st->set[st->set_cnt++].cnt;
		at += to->cnt;
		st->sample_cnt++;
	}
	*ret_frames = at;
	return err;
}

static uint32_t common_frames(const struct stacks *st, const struct stacks_sample *a,
			      const struct stacks_sample *b)
{
	const uint32_t *x = st->stack_frames + a->first, *y = st->stack_frames + b->first;
	uint32_t i = 0;

	while (i < a->cnt && i < b->cnt && x[i] == y[i])
		i++;
	return i;
}

static int compare_samples(const void *pa, const void *pb, void *arg)
{
	const struct stacks_sample *a = pa, *b = pb;
	const struct stacks *st = arg;
	uint32_t i = common_frames(st, a, b);

	if (i == a->cnt || i == b->cnt)
		return a->cnt != b->cnt ? COMPARE(a->cnt, b->cnt) : COMPARE(a->set, b->set);
	return COMPARE(st->stack_frames[a->first + i], st->stack_frames[b->first + i]);
}

static void add_values(int64_t *to, const int64_t *values, size_t cnt)
{
	for (size_t v = 0; v < cnt; v++)
		to[v] = util_add_saturated(to[v], values[v]);
}

static void sort_samples(struct stacks *st, size_t value_cnt)
{
	struct stacks_sample *last = NULL;

	qsort_r(st->sample, st->sample_cnt, sizeof(*st->sample), compare_samples, st);
	for (size_t i = 0; i < st->sample_cnt; i++) {
		struct stacks_sample *s = &st->sample[i];

		if (last && !compare_samples(last, s, st)) {
			add_values(st->values + last->value, st->values + s->value, value_cnt);
			continue;
		}
		s->common = last ? common_frames(st, last, s) : 0;
		last = last ? last + 1 : st->sample;
		*last = *s;
	}
	st->sample_cnt = last ? (size_t)(last - st->sample) + 1 : 0;
}

int stacks__make(const struct profile *p, struct stacks *ret)
{
	struct maker m = { .p = p, .st = ret, .by_name = difference_is(p) };
	size_t frames = 0, labels = 0;
	int err;

	*ret = (struct stacks){ 0 };
	hash__init(&m.frame_index, sizeof(struct entry), sizeof(uint32_t[2]), HASH_MAX);
	hash__init(&m.label_index, sizeof(struct entry), sizeof(uint32_t[2]), HASH_MAX);
	err = profile__frames(p) > STACKS_MAX_FRAMES ? -E2BIG :
						       frames__make(p, false, &ret->frames);
	if (err)
		goto cleanup;
	for (size_t i = 0; i < p->sample_cnt; i++)
		labels += p->samples[i].label_cnt;
	m.location_frame = calloc(p->location_cnt + 1, sizeof(*m.location_frame));
	ret->sample = calloc(p->sample_cnt + 1, sizeof(*ret->sample));
	ret->set = calloc(p->sample_cnt + 1, sizeof(*ret->set));
	ret->set_labels = calloc(labels + 1, sizeof(*ret->set_labels));
	ret->values = calloc(p->sample_cnt * p->value_cnt + 1, sizeof(*ret->values));
	if (!m.location_frame || !ret->sample || !ret->set || !ret->set_labels || !ret->values)
		err = -ENOMEM;
	if (!err)
		err = rank_paths(&m);
	if (!err)
		err = add_frames(&m);
	if (!err)
		err = add_samples(&m, &frames);
	if (!err)
		err = rank_strings(ret);
	if (!err)
		err = sort_numbered(ret, &ret->frame, ret->frame_cnt, sizeof(*ret->frame),
				    compare_frames, ret->stack_frames, frames);
	if (!err)
		err = add_sets(&m);
	if (!err)
		sort_samples(ret, p->value_cnt);
cleanup:
	hash__done(&m.frame_index);
	hash__done(&m.label_index);
	free(m.location_frame);
	free(m.line_frame);
	if (err)
		stacks__done(ret);
	return err;
}

void stacks__done(struct stacks *st)
{
	frames__done(&st->frames);
	free(st->frame);
	free(st->label);
	free(st->set);
	free(st->sample);
	free(st->stack_frames);
	free(st->set_labels);
	free(st->values);
	free(st->ranks);
	*st = (struct stacks){ 0 };
}
