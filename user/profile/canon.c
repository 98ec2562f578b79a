/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers a profile's entries by their content. Strings are sorted first; with their numbers
 * functions are compared, with these locations, with these samples: each comparison is one of small
 * integers.
 */
#include "profile/canon.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))

typedef int (*compare_fn)(const void *a, const void *b, void *canon);

/* Notes in number[] what the samples use, directly and by way of it. */
static void mark_used(struct canon *c)
{
	const struct profile *p = c->profile;
	const struct profile_location *l;
	size_t i, j;

	for (i = 0; i < p->sample_cnt; i++)
		for (j = 0; j < p->samples[i].loc_cnt; j++)
			c->locations.number[p->loc_ids[p->samples[i].loc + j]] = 1;
	if (p->mapping_cnt)
		c->mappings.number[0] = 1;
	for (i = 0; i < p->location_cnt; i++) {
		l = &p->locations[i];
		if (!c->locations.number[i])
			continue;
		if (l->mapping != PROFILE_NONE)
			c->mappings.number[l->mapping] = 1;
		for (j = 0; j < l->line_cnt; j++)
			c->functions.number[p->lines[l->line + j].function] = 1;
	}
}

static void mark_strings(struct canon *c)
{
	const struct profile *p = c->profile;
	uint32_t *used = c->string_number;
	const struct profile_label *label;
	const struct profile_function *f;
	size_t i;

	for (i = 0; i < p->mapping_cnt; i++)
		if (c->mappings.number[i])
			used[p->mappings[i].filename] = used[p->mappings[i].build_id] = 1;
	for (i = 0; i < p->function_cnt; i++) {
		f = &p->functions[i];
		if (c->functions.number[i])
			used[f->name] = used[f->system_name] = used[f->filename] = 1;
	}
	for (i = 0; i < p->label_cnt; i++) {
		label = &p->labels[i];
		used[label->key] = used[label->str] = used[label->num_unit] = 1;
	}
	for (i = 0; i < p->comment_cnt; i++)
		used[p->comments[i]] = 1;
	used[p->drop_frames] = used[p->keep_frames] = used[p->default_type] = 1;
	used[0] = 1;
}

static int compare_strings(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int number_strings(struct canon *c)
{
	const struct profile *p = c->profile;
	uint32_t all = strtab__cnt(p->strings), n = 0, i;

	/* beside the table's: two for each value type and for the period's */
	c->strings = calloc((size_t)all + 2 * (PROFILE_MAX_VALUES + 1), sizeof(*c->strings));
	c->string_number = calloc(all, sizeof(*c->string_number));
	if (!c->strings || !c->string_number)
		return -ENOMEM;
	mark_strings(c);
	for (i = 0; i < all; i++)
		if (c->string_number[i])
			c->strings[n++] = strtab__get(p->strings, i);
	for (i = 0; i < p->value_cnt; i++) {
		c->strings[n++] = p->value_types[i].type;
		c->strings[n++] = p->value_types[i].unit;
	}
	c->strings[n++] = p->period_type.type ? p->period_type.type : "";
	c->strings[n++] = p->period_type.unit ? p->period_type.unit : "";
	qsort(c->strings, n, sizeof(*c->strings), compare_strings);
	for (i = 0; i < n; i++)
		if (!i || strcmp(c->strings[i], c->strings[c->string_cnt - 1]))
			c->strings[c->string_cnt++] = c->strings[i];
	for (i = 0; i < all; i++)
		if (c->string_number[i])
			c->string_number[i] = canon__string(c, strtab__get(p->strings, i));
	return 0;
}

uint32_t canon__string(const struct canon *c, const char *s)
{
	const char **found =
		bsearch(&s, c->strings, c->string_cnt, sizeof(*c->strings), compare_strings);

	return found ? (uint32_t)(found - c->strings) : 0;
}

static int compare_mappings(const void *pa, const void *pb, void *canon)
{
	uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
	const struct canon *c = canon;
	const struct profile_mapping *a = &c->profile->mappings[ia], *b = &c->profile->mappings[ib];
	int r = COMPARE(a->start, b->start);

	if (!r)
		r = COMPARE(a->limit, b->limit);
	if (!r)
		r = COMPARE(a->offset, b->offset);
	if (!r)
		r = COMPARE(c->string_number[a->filename], c->string_number[b->filename]);
	if (!r)
		r = COMPARE(c->string_number[a->build_id], c->string_number[b->build_id]);
	/* what has names first, so that of a split entry the better half stands for the file */
	if (!r)
		r = COMPARE(b->has_functions, a->has_functions);
	if (!r)
		r = COMPARE(b->has_filenames, a->has_filenames);
	if (!r)
		r = COMPARE(b->has_lines, a->has_lines);
	return r ? r : COMPARE(b->has_inlines, a->has_inlines);
}

static int compare_functions(const void *pa, const void *pb, void *canon)
{
	uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
	const struct canon *c = canon;
	const struct profile_function *a = &c->profile->functions[ia],
				      *b = &c->profile->functions[ib];
	int r = COMPARE(c->string_number[a->name], c->string_number[b->name]);

	if (!r)
		r = COMPARE(c->string_number[a->system_name], c->string_number[b->system_name]);
	if (!r)
		r = COMPARE(c->string_number[a->filename], c->string_number[b->filename]);
	return r ? r : COMPARE(a->start_line, b->start_line);
}

static int compare_locations(const void *pa, const void *pb, void *canon)
{
	uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb, i;
	const struct canon *c = canon;
	const struct profile *p = c->profile;
	const struct profile_location *a = &p->locations[ia], *b = &p->locations[ib];
	uint32_t ma = a->mapping == PROFILE_NONE ? 0 : c->mappings.number[a->mapping];
	uint32_t mb = b->mapping == PROFILE_NONE ? 0 : c->mappings.number[b->mapping];
	const struct profile_line *la, *lb;
	int r = COMPARE(ma, mb);

	if (!r)
		r = COMPARE(a->address, b->address);
	if (!r)
		r = COMPARE(a->line_cnt, b->line_cnt);
	for (i = 0; !r && i < a->line_cnt; i++) {
		la = &p->lines[a->line + i];
		lb = &p->lines[b->line + i];
		r = COMPARE(c->functions.number[la->function], c->functions.number[lb->function]);
		if (!r)
			r = COMPARE(la->line, lb->line);
	}
	return r;
}

static int compare_samples(const void *pa, const void *pb, void *canon)
{
	uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb, i;
	const struct canon *c = canon;
	const struct profile *p = c->profile;
	const struct profile_sample *a = &p->samples[ia], *b = &p->samples[ib];
	const uint32_t *number = c->locations.number, *sa = p->loc_ids + a->loc,
		       *sb = p->loc_ids + b->loc;
	const struct profile_label *la, *lb;
	int r = 0;

	for (i = 0; !r && i < a->loc_cnt && i < b->loc_cnt; i++)
		if (sa[i] != sb[i])
			r = COMPARE(number[sa[i]], number[sb[i]]);
	if (!r)
		r = COMPARE(a->loc_cnt, b->loc_cnt);
	if (!r)
		r = COMPARE(a->label_cnt, b->label_cnt);
	for (i = 0; !r && i < a->label_cnt; i++) {
		la = &p->labels[a->label + i];
		lb = &p->labels[b->label + i];
		r = COMPARE(c->string_number[la->key], c->string_number[lb->key]);
		if (!r)
			r = COMPARE(c->string_number[la->str], c->string_number[lb->str]);
		if (!r)
			r = COMPARE(la->num, lb->num);
		if (!r)
			r = COMPARE(c->string_number[la->num_unit], c->string_number[lb->num_unit]);
	}
	return r;
}

bool canon__same_sample(const struct canon *c, uint32_t a, uint32_t b)
{
	return !compare_samples(&a, &b, (void *)c);
}

static int canon_table__init(struct canon_table *t, size_t cnt)
{
	t->number = calloc(cnt + 1, sizeof(*t->number));
	t->entry = calloc(cnt + 1, sizeof(*t->entry));
	return t->number && t->entry ? 0 : -ENOMEM;
}

static void canon_table__done(struct canon_table *t)
{
	free(t->number);
	free(t->entry);
}

/* Numbers the marked ones of cnt entries; if fixed, the first keeps its place. */
static void canon_table__sort(struct canon *c, struct canon_table *t, size_t cnt, bool fixed,
			      compare_fn compare)
{
	uint32_t n = 0, i;

	for (i = 0; i < cnt; i++)
		if (t->number[i])
			t->entry[n++] = i;
	if (n > fixed)
		qsort_r(t->entry + fixed, n - fixed, sizeof(*t->entry), compare, c);
	for (i = 0; i < n; i++) {
		/* of equal entries the first one stands for all; they are neighbours but for the
		 * fixed one */
		if (i && !compare(&t->entry[i], &t->entry[t->cnt - 1], c)) {
			t->number[t->entry[i]] = t->cnt;
		} else if (i && fixed && !compare(&t->entry[i], &t->entry[0], c)) {
			t->number[t->entry[i]] = 1;
		} else {
			t->entry[t->cnt] = t->entry[i];
			t->number[t->entry[t->cnt]] = t->cnt + 1;
			t->cnt++;
		}
	}
}

int canon__make(const struct profile *p, struct canon *ret)
{
	uint32_t i;
	int err;

	*ret = (struct canon){ .profile = p };
	ret->samples = calloc(p->sample_cnt + 1, sizeof(*ret->samples));
	if (!ret->samples || canon_table__init(&ret->mappings, p->mapping_cnt) ||
	    canon_table__init(&ret->functions, p->function_cnt) ||
	    canon_table__init(&ret->locations, p->location_cnt)) {
		err = -ENOMEM;
		goto out;
	}
	mark_used(ret);
	err = number_strings(ret);
	if (err)
		goto out;
	canon_table__sort(ret, &ret->mappings, p->mapping_cnt, true, compare_mappings);
	canon_table__sort(ret, &ret->functions, p->function_cnt, false, compare_functions);
	canon_table__sort(ret, &ret->locations, p->location_cnt, false, compare_locations);
	ret->sample_cnt = (uint32_t)p->sample_cnt;
	for (i = 0; i < ret->sample_cnt; i++)
		ret->samples[i] = i;
	qsort_r(ret->samples, ret->sample_cnt, sizeof(*ret->samples), compare_samples, ret);
out:
	if (err)
		canon__done(ret);
	return err;
}

void canon__done(struct canon *c)
{
	canon_table__done(&c->mappings);
	canon_table__done(&c->functions);
	canon_table__done(&c->locations);
	free(c->strings);
	free(c->string_number);
	free(c->samples);
	*c = (struct canon){ 0 };
}
