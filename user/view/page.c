/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the page's data; what stands around it are page.html, page.css and the scripts. */
#include "view/page.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/util.h"
#include "page_parts.h"
#include "view/stacks.h"

struct page {
	const struct profile *p;
	const struct page_facts *facts;
	struct stacks st;
	struct hash callees;  /* struct callee, of what is written of the stacks so far */
	uint32_t *callee_cnt; /* of frame i, and last of the root */
	uint32_t *place;      /* of string i, among places; PROFILE_NONE: it is none of them */
	uint64_t scale[PROFILE_MAX_VALUES];
	struct json j;
};

/* ---- VLQ ---- */

static void put_digits(FILE *f, uint64_t v)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (; v > 31; v >>= 5)
		putc(digits[(v & 31) | 32], f);
	putc(digits[v], f);
}

static uint64_t magnitude(int64_t v)
{
	return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

static void put_signed(FILE *f, int64_t v, uint64_t scale)
{
	uint64_t m = magnitude(v) / scale;

	/* a scale of 1 leaves no bit of 2^63 for the sign: such a value is off by one */
	if (m >> 63)
		m--;
	put_digits(f, m << 1 | (v < 0));
}

static const int64_t *values_of(const struct page *pg, size_t sample)
{
	return pg->st.values + pg->st.sample[sample].value;
}

/* What divides all values of a type: nanoseconds are multiples of the period. */
static void find_scales(struct page *pg)
{
	for (size_t v = 0; v < pg->p->value_cnt; v++) {
		uint64_t scale = 0;

		for (size_t i = 0; i < pg->st.sample_cnt; i++) {
			uint64_t a = magnitude(values_of(pg, i)[v]), b = scale, rest;

			for (; b; a = b, b = rest)
				rest = a % b;
			scale = a;
		}
		pg->scale[v] = MAX(scale, 1U);
	}
}

/* ---- Fields ---- */

struct digits {
	FILE *f;
	char *text;
	size_t sz;
};

static int begin_digits(struct digits *d)
{
	d->f = open_memstream(&d->text, &d->sz);
	return d->f ? 0 : -ENOMEM;
}

/* err: what has gone wrong on the way; nothing is written then. Returns it. */
static int end_digits(struct digits *d, struct json *j, const char *key, int err)
{
	if (fclose(d->f))
		err = -ENOMEM;
	if (!err)
		json__string(j, key, d->text);
	free(d->text);
	return err;
}

static void write_types(struct page *pg)
{
	const struct profile *p = pg->p;
	struct json *j = &pg->j;

	json__begin_array(j, "types");
	for (size_t v = 0; v < p->value_cnt; v++) {
		json__begin_object(j, NULL);
		json__string(j, "type", p->value_types[v].type);
		json__string(j, "unit", p->value_types[v].unit);
		json__u64(j, "scale", pg->scale[v]);
		json__end_object(j);
	}
	json__end_array(j);
	json__u64(j, "show", pg->facts->value);
}

/* A string made harmless. */
static int write_clean(struct page *pg, const char *key, const char *text)
{
	struct frames *fr = &pg->st.frames;
	uint32_t id = frames__clean(fr, text);

	if (id == UINT32_MAX)
		return -ENOMEM;
	json__string(&pg->j, key, strtab__get(fr->names, id));
	return 0;
}

static int write_head(struct page *pg)
{
	const struct profile *p = pg->p;
	struct json *j = &pg->j;
	int err = write_clean(pg, "title", pg->facts->title);

	json__u64(j, "time_ms", p->time_ns > 0 ? (uint64_t)p->time_ns / 1000000 : 0);
	json__u64(j, "duration_ns", p->duration_ns > 0 ? (uint64_t)p->duration_ns : 0);
	json__begin_array(j, "comments");
	for (size_t i = 0; !err && i < p->comment_cnt; i++) {
		const char *comment = strtab__get(p->strings, p->comments[i]);

		if (*comment != '#')
			err = write_clean(pg, NULL, comment);
	}
	json__end_array(j);
	write_types(pg);
	return err;
}

/* ---- Differences ---- */

static int write_judged(struct page *pg, const char *key, const struct page_judged *judged)
{
	struct json *j = &pg->j;
	int err;

	if (!judged->text)
		return 0;
	json__begin_object(j, key);
	json__double(j, "sign", judged->sign);
	json__double(j, "common", judged->common);
	err = write_clean(pg, "text", judged->text);
	json__end_object(j);
	return err;
}

static int write_note(struct page *pg, const struct page_note *n, uint32_t frame)
{
	struct json *j = &pg->j;
	int err;

	json__begin_object(j, NULL);
	if (frame != PROFILE_NONE)
		json__u64(j, "frame", frame);
	err = write_judged(pg, "cum", &n->cum);
	if (!err)
		err = write_judged(pg, "self", &n->self);
	json__end_object(j);
	return err;
}

/* The frame of this name, PROFILE_NONE: there is none. Names are sorted, and each is there once. */
static uint32_t find_frame(const struct stacks *st, const char *name)
{
	size_t low = 0, high = st->frame_cnt;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int order = strcmp(strtab__get(st->frames.names, st->frame[middle].name), name);

		if (!order)
			return (uint32_t)middle;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return PROFILE_NONE;
}

static int write_notes(struct page *pg)
{
	struct stacks *st = &pg->st;
	int err = 0;

	json__begin_array(&pg->j, "judged");
	for (size_t i = 0; !err && i < pg->facts->note_cnt; i++) {
		const struct page_note *n = &pg->facts->notes[i];
		uint32_t id = frames__clean(&st->frames, n->name ? n->name : "");
		uint32_t frame;

		if (id == UINT32_MAX)
			return -ENOMEM;
		frame = find_frame(st, strtab__get(st->frames.names, id));
		if ((!n->name || frame != PROFILE_NONE) && (n->cum.text || n->self.text))
			err = write_note(pg, n, frame);
	}
	json__end_array(&pg->j);
	return err;
}

static int write_difference(struct page *pg)
{
	const struct page_facts *facts = pg->facts;
	int err = 0;

	if (facts->sides[0]) {
		json__begin_array(&pg->j, "sides");
		err = write_clean(pg, NULL, facts->sides[0]);
		if (!err)
			err = write_clean(pg, NULL, facts->sides[1]);
		json__end_array(&pg->j);
	}
	if (!err && facts->warning)
		err = write_clean(pg, "warning", facts->warning);
	return err || !facts->notes ? err : write_notes(pg);
}

/* ---- Frames, labels, stacks ---- */

/* Is there no more of names and labels than a page may have? */
static int check_text(const struct stacks *st)
{
	uint32_t strings = strtab__cnt(st->frames.names);
	uint32_t *sizes = malloc(strings * sizeof(*sizes));
	uint64_t all = 0;

	if (!sizes)
		return -ENOMEM;
	for (uint32_t i = 0; i < strings; i++)
		sizes[i] = (uint32_t)strlen(strtab__get(st->frames.names, i));
	for (size_t i = 0; i < st->frame_cnt; i++)
		all += sizes[st->frame[i].name];
	for (size_t i = 0; i < st->label_cnt; i++)
		all += sizes[st->label[i].value];
	free(sizes);
	return all > PAGE_MAX_TEXT ? -E2BIG : 0;
}

/* Numbers a path when it is met first, and writes it. */
static uint32_t place(struct page *pg, uint32_t string, uint32_t *cnt)
{
	if (pg->place[string] == PROFILE_NONE) {
		pg->place[string] = (*cnt)++;
		json__string(&pg->j, NULL, strtab__get(pg->st.frames.names, string));
	}
	return pg->place[string];
}

static int write_frames(struct page *pg)
{
	const struct stacks *st = &pg->st;
	uint32_t strings = strtab__cnt(st->frames.names), cnt = 0;
	struct digits d;

	pg->place = malloc((strings + 1) * sizeof(*pg->place));
	if (!pg->place || begin_digits(&d))
		return -ENOMEM;
	memset(pg->place, 0xff, (strings + 1) * sizeof(*pg->place));
	json__begin_array(&pg->j, "names");
	for (size_t i = 0; i < st->frame_cnt; i++)
		json__string(&pg->j, NULL, strtab__get(st->frames.names, st->frame[i].name));
	json__end_array(&pg->j);
	json__begin_array(&pg->j, "places");
	place(pg, 0, &cnt);
	for (size_t i = 0; i < st->frame_cnt; i++) {
		put_digits(d.f, place(pg, st->frame[i].object, &cnt));
		put_digits(d.f, place(pg, st->frame[i].file, &cnt));
	}
	json__end_array(&pg->j);
	return end_digits(&d, &pg->j, "frames", 0);
}

static void write_keys(struct page *pg)
{
	const struct stacks *st = &pg->st;

	json__begin_array(&pg->j, "keys");
	for (size_t i = 0; i < st->label_cnt; i++)
		if (!i || st->label[i].key != st->label[i - 1].key)
			json__string(&pg->j, NULL, strtab__get(st->frames.names, st->label[i].key));
	json__end_array(&pg->j);
	json__begin_array(&pg->j, "values");
	for (size_t i = 0; i < st->label_cnt; i++) {
		if (!i || st->label[i].key != st->label[i - 1].key) {
			if (i)
				json__end_array(&pg->j);
			json__begin_array(&pg->j, NULL);
		}
		json__string(&pg->j, NULL, strtab__get(st->frames.names, st->label[i].value));
	}
	if (st->label_cnt)
		json__end_array(&pg->j);
	json__end_array(&pg->j);
}

static int write_labels(struct page *pg)
{
	const struct stacks *st = &pg->st;
	/* of each label: its key, and which of the key's values it is */
	uint32_t(*index)[2] = calloc(st->label_cnt + 1, sizeof(*index));
	struct digits d;

	if (!index || begin_digits(&d)) {
		free(index);
		return -ENOMEM;
	}
	write_keys(pg);
	for (size_t i = 1; i < st->label_cnt; i++) {
		bool same = st->label[i].key == st->label[i - 1].key;

		index[i][0] = index[i - 1][0] + !same;
		index[i][1] = same ? index[i - 1][1] + 1 : 0;
	}
	for (size_t i = 0; i < st->set_cnt; i++) {
		put_digits(d.f, st->set[i].cnt);
		for (uint32_t k = 0; k < st->set[i].cnt; k++) {
			const uint32_t *at = index[st->set_labels[st->set[i].first + k]];

			put_digits(d.f, at[0]);
			put_digits(d.f, at[1]);
		}
	}
	free(index);
	return end_digits(&d, &pg->j, "sets", 0);
}

/* Of a caller's callees the i-th to be met. */
struct callee {
	uint32_t key[2]; /* caller, callee */
	uint32_t number; /* i, from 1 */
};

/* A frame: which callee of its caller it is, or 0 and the frame. */
static int put_frame(struct page *pg, FILE *f, uint32_t caller, uint32_t frame)
{
	uint32_t key[2] = { caller, frame };
	bool is_new;
	struct callee *c = hash__insert(&pg->callees, key, &is_new);

	if (!c)
		return -ENOMEM;
	put_digits(f, c->number);
	if (is_new) {
		c->number = ++pg->callee_cnt[caller];
		put_digits(f, frame);
	}
	return 0;
}

static int put_path(struct page *pg, FILE *f, const struct stacks_sample *s)
{
	const uint32_t *frames = pg->st.stack_frames + s->first;
	int err = 0;

	for (uint32_t k = s->common; !err && k < s->cnt; k++)
		err = put_frame(pg, f, k ? frames[k - 1] : (uint32_t)pg->st.frame_cnt, frames[k]);
	return err;
}

static int write_stacks(struct page *pg)
{
	const struct stacks *st = &pg->st;
	struct digits d;
	size_t i, next;
	int err = 0;

	pg->callee_cnt = calloc(st->frame_cnt + 1, sizeof(*pg->callee_cnt));
	if (!pg->callee_cnt || begin_digits(&d))
		return -ENOMEM;
	for (i = 0; !err && i < st->sample_cnt; i = next) {
		const struct stacks_sample *s = &st->sample[i];

		put_digits(d.f, i ? s[-1].cnt - s->common : 0);
		put_digits(d.f, s->cnt - s->common);
		err = put_path(pg, d.f, s);
		for (next = i + 1; next < st->sample_cnt && st->sample[next].common == s->cnt &&
				   st->sample[next].cnt == s->cnt;)
			next++;
		put_digits(d.f, next - i);
		for (size_t k = i; k < next; k++) {
			put_digits(d.f, st->sample[k].set);
			for (size_t v = 0; v < pg->p->value_cnt; v++)
				put_signed(d.f, values_of(pg, k)[v], pg->scale[v]);
		}
	}
	return end_digits(&d, &pg->j, "stacks", err);
}

int page_write(const struct profile *p, const struct page_facts *facts, FILE *f)
{
	struct page pg = { .p = p, .facts = facts, .j = { .f = f, .in_html = true } };
	int err = stacks__make(p, &pg.st);

	if (err)
		return err;
	err = check_text(&pg.st);
	if (err) {
		stacks__done(&pg.st);
		return err;
	}
	hash__init(&pg.callees, sizeof(struct callee), sizeof(uint32_t[2]), HASH_MAX);
	find_scales(&pg);
	fwrite(page_head, 1, sizeof(page_head), f);
	json__begin_object(&pg.j, NULL);
	err = write_head(&pg);
	if (!err)
		err = write_difference(&pg);
	if (!err)
		err = write_frames(&pg);
	if (!err)
		err = write_labels(&pg);
	if (!err)
		err = write_stacks(&pg);
	json__end_object(&pg.j);
	fwrite(page_tail, 1, sizeof(page_tail), f);
	if (!err && ferror(f))
		err = -EIO;
	hash__done(&pg.callees);
	free(pg.callee_cnt);
	free(pg.place);
	stacks__done(&pg.st);
	return err;
}
