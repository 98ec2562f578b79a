/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/merge.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "profile/copier.h"
#include "profile/facts.h"
#include "profile/profile.h"

#define LEFT_OUT "more comments were left out"

struct comment {
	char *text;
	size_t place; /* in the profile that has it nearest to its beginning */
};

struct profile_merge {
	struct profile *p; /* NULL: nothing was added yet */
	struct hash locations;
	uint32_t first;	    /* mapping, PROFILE_NONE: there is none */
	int64_t end_ns;	    /* 0: none has a time */
	int64_t longest_ns; /* of those that have none */
	bool several, hide_nothing, no_default;
	struct comment comments[MERGE_MAX_COMMENTS + 1]; /* sorted; the last place is scratch */
	size_t comment_cnt;
	bool comments_left_out;
};

struct profile_merge *profile_merge__new(void)
{
	struct profile_merge *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	hash__init(&m->locations, sizeof(uint32_t), 0, HASH_MAX);
	m->first = PROFILE_NONE;
	return m;
}

static void clear(struct profile_merge *m)
{
	hash__done(&m->locations);
	while (m->comment_cnt)
		free(m->comments[--m->comment_cnt].text);
	m->p = NULL;
	m->first = PROFILE_NONE;
	m->end_ns = m->longest_ns = 0;
	m->several = m->hide_nothing = m->no_default = m->comments_left_out = false;
}

void profile_merge__free(struct profile_merge *m)
{
	if (!m)
		return;
	profile__free(m->p);
	clear(m);
	free(m);
}

/* ---- what has to be the same ---- */

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

static bool same_type(const struct profile_value_type *a, const struct profile_value_type *b)
{
	return same_text(a->type, b->type) && same_text(a->unit, b->unit);
}

static bool same_types(const struct profile *a, const struct profile *b)
{
	if (a->value_cnt != b->value_cnt || !same_type(&a->period_type, &b->period_type))
		return false;
	for (size_t i = 0; i < a->value_cnt; i++)
		if (!same_type(&a->value_types[i], &b->value_types[i]))
			return false;
	return true;
}

/* ---- what is one for the whole ---- */

static bool same_string(const struct profile *a, uint32_t a_id, const struct profile *b,
			uint32_t b_id)
{
	return !strcmp(strtab__get(a->strings, a_id), strtab__get(b->strings, b_id));
}

/* What stands in a file may be anything: no time is before 1970, and none ends after INT64_MAX. */
static void add_time(struct profile_merge *m, const struct profile *p)
{
	int64_t duration_ns = MAX(p->duration_ns, 0);

	if (p->time_ns <= 0) {
		m->longest_ns = MAX(m->longest_ns, duration_ns);
		return;
	}
	m->p->time_ns = m->p->time_ns ? MIN(m->p->time_ns, p->time_ns) : p->time_ns;
	m->end_ns = MAX(m->end_ns, util_add_saturated(p->time_ns, duration_ns));
}

static void add_header(struct profile_merge *m, struct copier *c, bool is_first)
{
	const struct profile *p = c->from;
	struct profile *to = m->p;

	add_time(m, p);
	to->period = is_first ? p->period : MAX(to->period, p->period);
	to->folded_value = MAX(to->folded_value, p->folded_value);
	if (is_first) {
		to->drop_frames = copier__string(c, p->drop_frames);
		to->keep_frames = copier__string(c, p->keep_frames);
		to->default_type = copier__string(c, p->default_type);
	} else {
		m->no_default |= !same_string(to, to->default_type, p, p->default_type);
		m->hide_nothing |= !same_string(to, to->drop_frames, p, p->drop_frames) ||
				   !same_string(to, to->keep_frames, p, p->keep_frames);
	}
}

/* ---- comments ---- */

static bool comes_before(const struct comment *a, const struct comment *b)
{
	return a->place != b->place ? a->place < b->place : strcmp(a->text, b->text) < 0;
}

/* What does not fit any more is never missed: those before it only come to stand further ahead. */
static int add_comment(struct profile_merge *m, const char *text, size_t place)
{
	size_t i = 0;

	if (strnlen(text, MERGE_MAX_COMMENT) == MERGE_MAX_COMMENT) {
		m->comments_left_out = true;
		return 0;
	}
	while (i < m->comment_cnt && strcmp(m->comments[i].text, text) != 0)
		i++;
	if (i == m->comment_cnt) {
		m->comments[i] = (struct comment){ strdup(text), place };
		if (!m->comments[i].text)
			return -ENOMEM;
		m->comment_cnt++;
	}
	m->comments[i].place = MIN(m->comments[i].place, place);
	for (; i && comes_before(&m->comments[i], &m->comments[i - 1]); i--) {
		struct comment before = m->comments[i - 1];

		m->comments[i - 1] = m->comments[i];
		m->comments[i] = before;
	}
	if (m->comment_cnt > MERGE_MAX_COMMENTS) {
		free(m->comments[--m->comment_cnt].text);
		m->comments_left_out = true;
	}
	return 0;
}

/* A file may have the same comments millions of times: where one stands first is what counts. */
static int add_comments(struct profile_merge *m, const struct profile *p)
{
	bool *seen = calloc(strtab__cnt(p->strings), sizeof(*seen));
	int err = seen ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < p->comment_cnt; i++) {
		const char *text = strtab__get(p->strings, p->comments[i]);

		if (seen[p->comments[i]])
			continue;
		seen[p->comments[i]] = true;
		if (strcmp(text, LEFT_OUT) != 0)
			err = add_comment(m, text, i);
		else
			m->comments_left_out = true;
	}
	free(seen);
	return err;
}

/* ---- the first mapping ---- */

static int compare_mappings(const struct profile *p, const struct profile_mapping *a,
			    const struct profile_mapping *b)
{
	int r = (a->start > b->start) - (a->start < b->start);

	if (!r)
		r = (a->limit > b->limit) - (a->limit < b->limit);
	if (!r)
		r = (a->offset > b->offset) - (a->offset < b->offset);
	if (!r)
		r = strcmp(strtab__get(p->strings, a->filename),
			   strtab__get(p->strings, b->filename));
	return r ? r :
		   strcmp(strtab__get(p->strings, a->build_id),
			  strtab__get(p->strings, b->build_id));
}

static void add_first_mapping(struct profile_merge *m, struct copier *c)
{
	uint32_t mapping = c->from->mapping_cnt ? copier__mapping(c, 0) : PROFILE_NONE;

	if (mapping != PROFILE_NONE &&
	    (m->first == PROFILE_NONE ||
	     compare_mappings(m->p, &m->p->mappings[mapping], &m->p->mappings[m->first]) < 0))
		m->first = mapping;
}

/* ---- all of it ---- */

/* The labels of a source as ids of the sum's, for the caller to free. NULL: there is no memory. */
static struct profile_label *make_labels(struct profile *p,
					 const struct profile_merge_label *labels, size_t cnt)
{
	struct profile_label *ret = calloc(cnt + 1, sizeof(*ret));

	for (size_t i = 0; ret && i < cnt; i++) {
		ret[i].key = profile__string(p, labels[i].key);
		ret[i].str = profile__string(p, labels[i].value);
		if (ret[i].key == PROFILE_NONE || ret[i].str == PROFILE_NONE) {
			free(ret);
			ret = NULL;
		}
	}
	return ret;
}

static int add(struct profile_merge *m, struct copier *c, bool is_first)
{
	const struct profile *p = c->from;

	for (size_t i = 0; i < p->sample_cnt && !c->failed; i++)
		copier__sample(c, &p->samples[i]);
	if (!c->failed)
		add_first_mapping(m, c);
	if (!c->failed)
		add_header(m, c, is_first);
	return c->failed ? -ENOMEM : add_comments(m, p);
}

int profile_merge__add(struct profile_merge *m, const struct profile *p,
		       const struct profile_merge_label *labels, size_t label_cnt)
{
	struct profile_label *extra = NULL;
	bool is_first = !m->p;
	struct copier c;
	int err;

	if (is_first)
		m->p = profile__new(p->value_types, p->value_cnt, p->period_type, p->period);
	if (!m->p)
		return -errno;
	if (!same_types(m->p, p))
		return -EINVAL;
	m->several |= !is_first;
	err = copier__init(&c, p);
	if (!err) {
		extra = make_labels(m->p, labels, label_cnt);
		err = extra ? 0 : -ENOMEM;
	}
	if (!err) {
		copier__begin(&c, m->p);
		c.known = &m->locations;
		c.extra = extra;
		c.extra_cnt = label_cnt;
		err = add(m, &c, is_first);
	}
	copier__done(&c);
	free(extra);
	return err;
}

struct profile *profile_merge__so_far(struct profile_merge *m)
{
	return m->p;
}

struct profile *profile_merge__take(struct profile_merge *m)
{
	struct profile *p = m->p;
	int err = p ? 0 : -ENODATA;

	for (size_t i = 0; !err && i < m->comment_cnt; i++)
		if (!m->several || !facts_is_one(m->comments[i].text))
			err = profile__add_comment(p, m->comments[i].text);
	if (!err && m->comments_left_out)
		err = profile__add_comment(p, LEFT_OUT);
	if (err) {
		errno = -err;
		profile__free(p);
		clear(m);
		return NULL;
	}
	p->duration_ns = MAX(m->end_ns - p->time_ns, m->longest_ns);
	if (m->hide_nothing)
		p->drop_frames = p->keep_frames = 0;
	if (m->no_default)
		p->default_type = 0;
	if (m->first != PROFILE_NONE)
		profile__put_first(p, m->first);
	clear(m);
	return p;
}
