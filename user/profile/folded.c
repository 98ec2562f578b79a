/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a profile as folded stacks: a line is a sequence of frame names and a value. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/difference.h"
#include "profile/frames.h"
#include "profile/profile.h"
#include "profile/text.h"

struct line {
	size_t first; /* into folded.names */
	size_t cnt;
	int64_t value;
	int64_t base; /* of a difference */
};

struct folded {
	const struct profile *p;
	bool is_difference;
	struct frames frames;
	uint32_t *names; /* of all lines, root first */
	size_t name_cnt, name_cap;
	struct line *lines;
	size_t line_cnt;
};

static int push_name(struct folded *fo, uint32_t name)
{
	if (util_reserve(&fo->names, &fo->name_cap, fo->name_cnt + 1, sizeof(*fo->names)))
		return -ENOMEM;
	fo->names[fo->name_cnt++] = name;
	return 0;
}

/* The process's name, else the thread's, as a string of the profile; 0 if the sample has neither. */
static uint32_t root_name(const struct profile *p, const struct profile_sample *s)
{
	const struct profile_label *l;
	uint32_t thread = 0, i;
	const char *key;

	for (i = 0; i < s->label_cnt; i++) {
		l = &p->labels[s->label + i];
		key = strtab__get(p->strings, l->key);
		if (l->str && !strcmp(key, "comm"))
			return l->str;
		if (l->str && !strcmp(key, "thread"))
			thread = l->str;
	}
	return thread;
}

/* A frame that is no frame of the profile: a name of frames, as that has made it. */
static int push_made(struct folded *fo, uint32_t name)
{
	return name == UINT32_MAX ? -ENOMEM : push_name(fo, name);
}

static int add_line(struct folded *fo, const struct profile_sample *s)
{
	struct line *line = &fo->lines[fo->line_cnt++];
	uint32_t root = root_name(fo->p, s), i, j, loc;

	*line = (struct line){ .first = fo->name_cnt,
			       .value = profile__values(fo->p, s)[fo->p->folded_value] };
	if (fo->is_difference && difference_of_base(fo->p, s)) {
		line->base = util_negate_saturated(line->value);
		line->value = 0;
	}
	if (root && push_made(fo, frames__string(&fo->frames, root)))
		return -ENOMEM;
	for (i = s->loc_cnt; i-- > 0;) {
		loc = fo->p->loc_ids[s->loc + i];
		for (j = frames__cnt(&fo->frames, loc); j-- > 0;)
			if (push_name(fo, frames__name(&fo->frames, loc, j)))
				return -ENOMEM;
	}
	/* without any frame flamegraph.pl would not recognise the line, and the totals would not
	 * add up */
	if (fo->name_cnt == line->first && push_made(fo, frames__clean(&fo->frames, "[no stack]")))
		return -ENOMEM;
	line->cnt = fo->name_cnt - line->first;
	return 0;
}

/* Any total order in which equal stacks are neighbours. */
static int compare_stacks(const void *pa, const void *pb, void *arg)
{
	const struct line *a = pa, *b = pb;
	const struct folded *fo = arg;

	if (a->cnt != b->cnt)
		return a->cnt < b->cnt ? -1 : 1;
	return memcmp(fo->names + a->first, fo->names + b->first, a->cnt * sizeof(*fo->names));
}

static void merge_lines(struct folded *fo)
{
	struct line *to = fo->lines;
	size_t i;

	if (!fo->line_cnt)
		return;
	qsort_r(fo->lines, fo->line_cnt, sizeof(*fo->lines), compare_stacks, fo);
	for (i = 1; i < fo->line_cnt; i++) {
		if (compare_stacks(to, &fo->lines[i], fo)) {
			*++to = fo->lines[i];
			continue;
		}
		to->value = util_add_saturated(to->value, fo->lines[i].value);
		to->base = util_add_saturated(to->base, fo->lines[i].base);
	}
	fo->line_cnt = (size_t)(to - fo->lines) + 1;
}

/* What follows the i-th name in the printed line, up to the next name or the end. */
#define SEPARATOR_SZ 48
static const char *separator(const struct folded *fo, const struct line *l, size_t i, char *buf)
{
	if (i + 1 < l->cnt)
		return ";";
	if (fo->is_difference)
		snprintf(buf, SEPARATOR_SZ, " %" PRId64 " %" PRId64 "\n", l->base, l->value);
	else
		snprintf(buf, SEPARATOR_SZ, " %" PRId64 "\n", l->value);
	return buf;
}

/* Compares a1 a2 with b1 b2, each pair as one string. */
static int compare_joined(const char *a1, const char *a2, const char *b1, const char *b2)
{
	for (;; a1++, b1++) {
		if (!*a1) {
			a1 = a2;
			a2 = "";
		}
		if (!*b1) {
			b1 = b2;
			b2 = "";
		}
		if (*a1 != *b1)
			return (unsigned char)*a1 < (unsigned char)*b1 ? -1 : 1;
		if (!*a1)
			return 0;
	}
}

/*
 * The order of the printed bytes, without printing them: up to the first name in which they differ
 * the lines are equal, and from there on they differ before the next ';', which no name contains.
 */
static int compare_printed(const void *pa, const void *pb, void *arg)
{
	const struct line *a = pa, *b = pb;
	const struct folded *fo = arg;
	const uint32_t *na = fo->names + a->first, *nb = fo->names + b->first;
	char buf_a[SEPARATOR_SZ], buf_b[SEPARATOR_SZ];
	size_t i = 0;

	/* at its last name a line goes on with a blank instead of a ';', so that name decides */
	while (i + 1 < a->cnt && i + 1 < b->cnt && na[i] == nb[i])
		i++;
	return compare_joined(strtab__get(fo->frames.names, na[i]), separator(fo, a, i, buf_a),
			      strtab__get(fo->frames.names, nb[i]), separator(fo, b, i, buf_b));
}

static void print_lines(const struct folded *fo, FILE *f)
{
	const struct line *l;
	char buf[SEPARATOR_SZ];
	size_t i, j;

	for (i = 0; i < fo->line_cnt; i++) {
		l = &fo->lines[i];
		for (j = 0; j < l->cnt; j++) {
			fputs(strtab__get(fo->frames.names, fo->names[l->first + j]), f);
			fputs(separator(fo, l, j, buf), f);
		}
	}
}

static int write_folded(const struct profile *p, bool is_difference, FILE *f)
{
	struct folded fo = { .p = p, .is_difference = is_difference };
	size_t i;
	int err = frames__make(p, true, &fo.frames);

	if (err)
		return err;
	fo.lines = calloc(p->sample_cnt + 1, sizeof(*fo.lines));
	if (!fo.lines)
		err = -ENOMEM;
	for (i = 0; !err && i < p->sample_cnt; i++)
		if (profile__values(p, &p->samples[i])[p->folded_value])
			err = add_line(&fo, &p->samples[i]);
	if (!err) {
		merge_lines(&fo);
		qsort_r(fo.lines, fo.line_cnt, sizeof(*fo.lines), compare_printed, &fo);
		print_lines(&fo, f);
		err = ferror(f) ? -EIO : 0;
	}
	frames__done(&fo.frames);
	free(fo.names);
	free(fo.lines);
	return err;
}

int folded_write(const struct profile *p, FILE *f)
{
	return write_folded(p, false, f);
}

int folded_write_difference(const struct profile *p, FILE *f)
{
	return write_folded(p, true, f);
}
