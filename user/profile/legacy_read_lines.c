/* SPDX-License-Identifier: BSD-2-Clause */
/* Contention, counts and threads: lines of numbers and addresses. */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "profile/legacy_reader.h"

#define MS 1000000
#define GHZ 1e9

/* Behind comments. False: there is none. */
static bool first_line(struct legacy_text *in, struct legacy_text *ret)
{
	while (legacy_line(in, ret))
		if (!legacy_is_comment(ret))
			return true;
	return false;
}

/* ---- contention ---- */

/* What the head says. */
struct waits {
	int64_t hz; /* of the cycles that are counted; 0: they are ns */
	int64_t period;
	int64_t ms; /* how long it was collected */
};

bool legacy_is_contention(struct legacy_text in)
{
	return legacy_take(&in, "--- contentionz ") || legacy_take(&in, "--- contention:") ||
	       legacy_take(&in, "--- mutex:");
}

/* "cycles/second = 1000": 1; 0: it is none; -EBADMSG. */
static int take_setting(struct waits *w, struct legacy_text line)
{
	struct {
		const char *key;
		int64_t *value;
	} known[] = { { "cycles/second", &w->hz },
		      { "sampling period", &w->period },
		      { "ms since reset", &w->ms },
		      { "discarded samples", &(int64_t){ 0 } } };

	if (!memchr(line.at, '=', legacy_left(&line)))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct legacy_text in = line;

		if (!legacy_take(&in, known[i].key))
			continue;
		legacy_skip_blanks(&in);
		if (legacy_take(&in, "=") && legacy_take_number(&in, known[i].value) &&
		    in.at == in.end)
			return 1;
	}
	return -EBADMSG;
}

static int read_settings(struct legacy_reader *r, struct waits *w)
{
	struct legacy_text in = r->in, line;

	while (legacy_line(&in, &line)) {
		int more = legacy_is_comment(&line) ? 1 : take_setting(w, line);

		if (more <= 0)
			return more;
		r->in = in;
	}
	return 0;
}

static int add_wait(struct legacy_reader *r, const struct waits *w, struct legacy_text line)
{
	int64_t cycles, values[2];

	if (!legacy_take_number(&line, &cycles) || !legacy_take_number(&line, &values[0]))
		return -EBADMSG;
	legacy_skip_blanks(&line);
	if (!legacy_take(&line, "@"))
		return -EBADMSG;
	values[1] = cycles;
	if (w->period > 0) {
		double ns = w->hz ? (double)cycles * (double)w->period / ((double)w->hz / GHZ) :
				    (double)cycles;

		values[1] = ns >= 0x1p63 ? INT64_MAX : (int64_t)ns;
		if (__builtin_mul_overflow(values[0], w->period, &values[0]))
			values[0] = INT64_MAX;
	}
	return legacy_add_frames(r, line) ?: legacy_add_sample(r, values, 0);
}

int legacy_read_contention(struct legacy_reader *r)
{
	static const struct profile_value_type types[] = { { "contentions", "count" },
							   { "delay", "nanoseconds" } };
	struct waits w = { .period = 1 };
	struct legacy_text line;
	int err, more = 0;

	legacy_line(&r->in, &line);
	err = read_settings(r, &w)	  ?:
		      legacy_find_maps(r) ?:
		      legacy_begin(r, types, ARRAY_SIZE(types), types[0], w.period);
	if (!err && __builtin_mul_overflow(w.ms, (int64_t)MS, &r->out->duration_ns))
		err = -EBADMSG;
	while (!err && (more = legacy_next(r, &line)) > 0)
		err = add_wait(r, &w, line);
	return err ?: more;
}

/* ---- counts ---- */

/* "NAME profile: total 5" */
static bool take_head(struct legacy_text *in, struct legacy_text *ret_name)
{
	struct legacy_text line;
	int64_t total;

	return first_line(in, &line) && legacy_take_word(&line, ret_name) &&
	       legacy_take(&line, " profile: total ") && legacy_take_number(&line, &total) &&
	       line.at == line.end;
}

bool legacy_is_count(struct legacy_text in)
{
	struct legacy_text name;

	return take_head(&in, &name);
}

static int add_count(struct legacy_reader *r, struct legacy_text line)
{
	int64_t count;

	if (!legacy_take_number(&line, &count))
		return -EBADMSG;
	legacy_skip_blanks(&line);
	if (!legacy_take(&line, "@"))
		return -EBADMSG;
	return legacy_add_frames(r, line) ?: legacy_add_sample(r, &count, 0);
}

static int begin_count(struct legacy_reader *r, const struct legacy_text *name)
{
	char text[256];
	struct profile_value_type type = { text, "count" };

	/* it is what people select values by */
	if (legacy_left(name) >= sizeof(text) || memchr(name->at, '\0', legacy_left(name)))
		return -EBADMSG;
	memcpy(text, name->at, legacy_left(name));
	text[legacy_left(name)] = '\0';
	return legacy_begin(r, &type, 1, type, 1);
}

int legacy_read_count(struct legacy_reader *r)
{
	struct legacy_text name, line;
	int err, more = 0;

	if (!take_head(&r->in, &name))
		return -EBADMSG;
	err = legacy_find_maps(r) ?: begin_count(r, &name);
	while (!err && (more = legacy_next(r, &line)) > 0)
		err = add_count(r, line);
	return err ?: more;
}

/* ---- threads ---- */

#define THREAD "--- Thread "
#define NO_MORE "---- no stack trace for"
#define SAME "same as previous thread"

bool legacy_is_threads(struct legacy_text in)
{
	struct legacy_text line;

	return first_line(&in, &line) &&
	       (legacy_take(&line, "--- threadz ") || legacy_take(&line, THREAD));
}

/* Addresses stand anywhere in the line, whatever else is in it: "PC: 0x1 0x2", "0x1: f(int)". */
static int add_addresses(struct legacy_reader *r, struct legacy_text line)
{
	const char *at;
	int err = 0;

	while (!err && (at = memmem(line.at, legacy_left(&line), "0x", 2))) {
		uint64_t address;

		line.at = at;
		if (legacy_take_hex(&line, &address))
			err = legacy_add_frame(r, address, !r->stack_cnt);
		else if (at + 2 < line.end && isxdigit((unsigned char)at[2]))
			err = -EBADMSG;
		else
			line.at += 2;
	}
	return err;
}

/* Addresses, or that it is as that of the last thread, which had so many frames. */
static int read_line(struct legacy_reader *r, struct legacy_text line, size_t before)
{
	if (r->in.at[-1] != '\n')
		return -EBADMSG;
	if (memmem(line.at, legacy_left(&line), SAME, strlen(SAME))) {
		r->stack_cnt = r->stack_cnt ?: before;
		return 0;
	}
	return add_addresses(r, line);
}

/* The lines up to the next thread. */
static int read_stack(struct legacy_reader *r, size_t before)
{
	struct legacy_text in = r->in, line, head;
	int err = 0;

	while (!err && legacy_line(&in, &line)) {
		head = line;
		if (legacy_take(&head, "---") || legacy_is_maps_head(line))
			break;
		r->in = in;
		err = read_line(r, line, before);
	}
	return err;
}

int legacy_read_threads(struct legacy_reader *r)
{
	static const struct profile_value_type type = { "thread", "count" };
	const int64_t one = 1;
	struct legacy_text line;
	size_t before = 0;
	int err = legacy_find_maps(r) ?: legacy_begin(r, &type, 1, type, 1);

	while (!err && legacy_line(&r->in, &line) && !legacy_is_maps_head(line) &&
	       !legacy_take(&line, NO_MORE)) {
		if (!legacy_take(&line, THREAD))
			continue;
		err = read_stack(r, before);
		before = r->stack_cnt;
		err = err ?: legacy_add_sample(r, &one, 0);
	}
	return err;
}
