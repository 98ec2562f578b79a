/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds up the samples that become one line. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/strtab.h"
#include "base/util.h"
#include "profile/legacy_parts.h"

static bool is_nothing(const struct profile *p, const struct profile_sample *s)
{
	for (size_t i = 0; i < p->value_cnt; i++)
		if (profile__values(p, s)[i])
			return false;
	return true;
}

static int64_t size_of(const struct profile *p, const struct profile_sample *s)
{
	for (uint32_t i = 0; i < s->label_cnt; i++)
		if (!strcmp(strtab__get(p->strings, p->labels[s->label + i].key), "bytes"))
			return p->labels[s->label + i].num;
	return 0;
}

/* A word in quotes, harmless. 0 or -ENOMEM. */
static int print_quoted(const char *word, FILE *f)
{
	size_t sz = strlen(word) * 3 + 1;
	char *clean = malloc(sz);

	if (!clean)
		return -ENOMEM;
	fputc('"', f);
	for (const char *c = util_printable(clean, sz, word); *c; c++) {
		if (*c == '"' || *c == '\\')
			fputc('\\', f);
		fputc(*c, f);
	}
	fputc('"', f);
	free(clean);
	return 0;
}

/* As Go prints those of goroutines, which are all strings. */
static int print_labels(const struct profile *p, const struct profile_sample *s, FILE *f)
{
	bool any = false;
	int err = 0;

	for (uint32_t i = 0; i < s->label_cnt && !err; i++) {
		const struct profile_label *l = &p->labels[s->label + i];

		if (!l->str)
			continue;
		fputs(any ? ", " : "\n# labels: {", f);
		any = true;
		err = print_quoted(strtab__get(p->strings, l->key), f);
		fputc(':', f);
		if (!err)
			err = print_quoted(strtab__get(p->strings, l->str), f);
	}
	if (any)
		fputc('}', f);
	return err;
}

static int print_key(const struct legacy_maps *m, const struct profile_sample *s,
		     enum legacy_apart by, FILE *f)
{
	fputc('@', f);
	for (uint32_t i = 0; i < s->loc_cnt; i++)
		fprintf(f, " 0x%" PRIx64, legacy_maps__address(m, m->p->loc_ids[s->loc + i]) + 1);
	if (by == LEGACY_BY_LABELS)
		return print_labels(m->p, s, f);
	if (by == LEGACY_BY_SIZE)
		fprintf(f, "\n%" PRId64, size_of(m->p, s));
	return 0;
}

/* Its id, or UINT32_MAX. */
static uint32_t key_of(struct legacy_records *r, const struct legacy_maps *m,
		       const struct profile_sample *s, enum legacy_apart by)
{
	uint32_t ret = UINT32_MAX;
	char *text = NULL;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);
	int err = f ? print_key(m, s, by, f) : -ENOMEM;

	if (f && fclose(f))
		err = -ENOMEM;
	if (!err)
		ret = strtab__add(r->keys, text);
	free(text);
	return ret;
}

static int add(struct legacy_records *r, const struct legacy_maps *m,
	       const struct profile_sample *s, enum legacy_apart by)
{
	const int64_t *values = profile__values(m->p, s);
	uint32_t key = key_of(r, m, s, by);
	struct legacy_record *to;

	if (key == UINT32_MAX)
		return -ENOMEM;
	/* ids count up from 1 on, and stay the records' numbers until these are sorted */
	if (key > r->cnt) {
		if (util_reserve(&r->records, &r->cap, key, sizeof(*r->records)))
			return -ENOMEM;
		r->records[r->cnt++] =
			(struct legacy_record){ .key = key, .sample = s, .size = size_of(m->p, s) };
	}
	to = &r->records[key - 1];
	for (size_t i = 0; i < m->p->value_cnt; i++)
		to->value[i] = util_add_saturated(to->value[i], values[i]);
	return 0;
}

struct order {
	const struct legacy_records *r;
	size_t value;
};

static int compare_records(const void *pa, const void *pb, void *arg)
{
	const struct legacy_record *a = pa, *b = pb;
	const struct order *o = arg;

	if (a->value[o->value] != b->value[o->value])
		return a->value[o->value] > b->value[o->value] ? -1 : 1;
	return strcmp(strtab__get(o->r->keys, a->key), strtab__get(o->r->keys, b->key));
}

void legacy_records__sort(struct legacy_records *r, size_t order)
{
	struct order o = { r, order };

	if (r->cnt)
		qsort_r(r->records, r->cnt, sizeof(*r->records), compare_records, &o);
}

int legacy_records__make(const struct legacy_maps *m, enum legacy_apart by, size_t order,
			 struct legacy_records *ret)
{
	int err;

	*ret = (struct legacy_records){ 0 };
	if (m->p->value_cnt > LEGACY_MAX_VALUES)
		return -EINVAL;
	ret->keys = strtab__new();
	err = ret->keys ? 0 : -ENOMEM;
	for (size_t i = 0; i < m->p->sample_cnt && !err; i++)
		if (!is_nothing(m->p, &m->p->samples[i]))
			err = add(ret, m, &m->p->samples[i], by);
	if (err)
		legacy_records__done(ret);
	else
		legacy_records__sort(ret, order);
	return err;
}

void legacy_records__done(struct legacy_records *r)
{
	strtab__free(r->keys);
	free(r->records);
	*r = (struct legacy_records){ 0 };
}
