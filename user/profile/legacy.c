/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes profiles in the formats of gperftools and of the first releases of Go. */
#include "profile/legacy.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/strtab.h"
#include "base/util.h"
#include "profile/frames.h"
#include "profile/legacy_parts.h"

/* Where values are, as enum legacy_form says. */
enum {
	ALLOC_OBJECTS,
	ALLOC_SPACE,
	INUSE_OBJECTS,
	INUSE_SPACE
};
enum {
	HOW_MANY,
	DELAY
};

/* go tool pprof takes a second frame that 31 of 32 records have for that of a signal handler: behind so
 * many there is one more that has none. */
#define RECORDS_ALIKE 30
#define NO_ADDRESS 1	 /* where readers want one that is not 0 */
#define MAX_WHOLE 0x1p53 /* a double counts so far without gaps */

struct writer {
	const struct profile *p;
	const struct legacy *what;
	bool debug;	      /* frames, and no mappings */
	struct frames frames; /* with debug */
	struct legacy_maps maps;
	struct legacy_records records;
	FILE *f;
};

/* The value by which lines are sorted. */
static size_t order_of(const struct writer *w)
{
	switch (w->what->form) {
	case LEGACY_HEAP:
		return w->p->value_cnt > INUSE_SPACE ? INUSE_SPACE : ALLOC_SPACE;
	case LEGACY_CONTENTION:
	case LEGACY_MUTEX:
		return DELAY;
	default:
		return HOW_MANY;
	}
}

static const char *key_of(const struct writer *w, const struct legacy_record *r)
{
	return strtab__get(w->records.keys, r->key);
}

/* "@ 0x1 0x2", then the frames. 0 or -ENOMEM. */
static int print_stack(const struct writer *w, const struct legacy_record *r, bool all)
{
	const char *key = key_of(w, r);

	fprintf(w->f, "%.*s\n", (int)strcspn(key, "\n"), key);
	return w->debug ? debug1_print_frames(&w->maps, &w->frames, r->sample, all, w->f) : 0;
}

static int print_maps(const struct writer *w, const char *head)
{
	if (w->debug)
		return 0;
	fprintf(w->f, "%s\n", head);
	return legacy_maps__print(&w->maps, w->f);
}

/* ---- counts ---- */

static int write_count(const struct writer *w)
{
	bool all = w->what->form == LEGACY_CPU;
	int64_t total = 0;
	int err = 0;

	for (size_t i = 0; i < w->records.cnt; i++)
		total = util_add_saturated(total, w->records.records[i].value[HOW_MANY]);
	fprintf(w->f, "%s profile: total %" PRId64 "\n", w->what->name, total);
	for (size_t i = 0; i < w->records.cnt && !err; i++) {
		const struct legacy_record *r = &w->records.records[i];
		const char *key = key_of(w, r);

		fprintf(w->f, "%" PRId64 " %s\n", r->value[HOW_MANY],
			r->sample->loc_cnt ? key : "@ 0x1");
		if (w->debug)
			err = debug1_print_frames(&w->maps, &w->frames, r->sample, all, w->f);
	}
	return err ? err : print_maps(w, "--- Memory map: ---");
}

/* ---- contention ---- */

static int write_contention(const struct writer *w)
{
	bool mutex = w->what->form == LEGACY_MUTEX;
	int err = 0;

	fprintf(w->f, "--- %s:\ncycles/second=1000000000\n", mutex ? "mutex" : "contention");
	if (mutex)
		fputs("sampling period=1\n", w->f);
	for (size_t i = 0; i < w->records.cnt && !err; i++) {
		const struct legacy_record *r = &w->records.records[i];

		fprintf(w->f, "%" PRId64 " %" PRId64 " ", r->value[DELAY], r->value[HOW_MANY]);
		err = print_stack(w, r, true);
	}
	return err ? err : print_maps(w, "--- Memory map: ---");
}

/* ---- heap ---- */

/*
 * What was sampled, by the chance 1 - exp(-size / rate) of each object. False if that is no whole
 * number: then the reader, which scales it up again, would not get what the profile has.
 */
static bool as_sampled(const struct writer *w, const struct legacy_record *r,
		       int64_t ret[LEGACY_MAX_VALUES])
{
	double chance = -expm1(-(double)MAX(r->size, 1) / (double)w->p->period), sampled;

	for (size_t i = 0; i + 1 < w->p->value_cnt; i += 2) {
		sampled = round((double)r->value[i] * chance);
		if (fabs(sampled / chance - (double)r->value[i]) > 1 || r->size < 0 ||
		    sampled * (double)r->size > MAX_WHOLE)
			return false;
		ret[i] = (int64_t)sampled;
		ret[i + 1] = (int64_t)sampled * r->size;
	}
	return true;
}

/* All values, or none. */
static bool scale_down(struct writer *w)
{
	int64_t ignored[LEGACY_MAX_VALUES];

	if (w->p->period <= 1)
		return false;
	for (size_t i = 0; i < w->records.cnt; i++)
		if (!as_sampled(w, &w->records.records[i], ignored))
			return false;
	for (size_t i = 0; i < w->records.cnt; i++)
		(void)as_sampled(w, &w->records.records[i], w->records.records[i].value);
	legacy_records__sort(&w->records, order_of(w));
	return true;
}

/* In use; what was allocated stands there as well, if nothing else is known. */
static size_t in_use(const struct writer *w)
{
	return w->p->value_cnt > INUSE_SPACE ? INUSE_OBJECTS : ALLOC_OBJECTS;
}

static void print_heap_values(const struct writer *w, const int64_t value[LEGACY_MAX_VALUES])
{
	size_t used = in_use(w);

	fprintf(w->f, "%" PRId64 ": %" PRId64 " [%" PRId64 ": %" PRId64 "] ", value[used],
		value[used + 1], value[ALLOC_OBJECTS], value[ALLOC_SPACE]);
}

static void print_heap_head(const struct writer *w, bool scaled)
{
	int64_t sum[LEGACY_MAX_VALUES] = { 0 };

	for (size_t i = 0; i < w->records.cnt; i++)
		for (size_t j = 0; j < w->p->value_cnt; j++)
			sum[j] = util_add_saturated(sum[j], w->records.records[i].value[j]);
	/* readers take two equal columns for a profile that has one: as Go does */
	if (in_use(w) == INUSE_OBJECTS && sum[INUSE_OBJECTS] == sum[ALLOC_OBJECTS] &&
	    sum[INUSE_SPACE] == sum[ALLOC_SPACE])
		sum[ALLOC_SPACE] = util_add_saturated(sum[ALLOC_SPACE], 1);
	fputs("heap profile: ", w->f);
	print_heap_values(w, sum);
	/* google-pprof divides by 0 where a line of the former form has nothing in use */
	if (w->debug)
		fprintf(w->f, "@ heap/%" PRId64 "\n", 2 * (scaled ? w->p->period : 1));
	else if (scaled)
		fprintf(w->f, "@ heap_v2/%" PRId64 "\n", w->p->period);
	else
		fputs("@ heapprofile\n", w->f);
}

static int write_heap(struct writer *w)
{
	int err = 0;

	print_heap_head(w, scale_down(w));
	for (size_t i = 0; i < w->records.cnt && !err; i++) {
		print_heap_values(w, w->records.records[i].value);
		err = print_stack(w, &w->records.records[i], false);
	}
	/* the columns are readers', the words people's */
	if (!err && in_use(w) == ALLOC_OBJECTS)
		fputs("\n# what is in use is not known: what was allocated stands in its place\n",
		      w->f);
	if (!err && w->what->memory)
		fprintf(w->f, "\n%s", w->what->memory);
	return err ? err : print_maps(w, "\nMAPPED_LIBRARIES:");
}

/* ---- CPU time ---- */

static void put_word(const struct writer *w, uint64_t word)
{
	word = htole64(word);
	fwrite(&word, sizeof(word), 1, w->f);
}

/* A leaf of 0 would end the file. */
static uint64_t leaf_of(const struct writer *w, const struct profile_sample *s)
{
	uint64_t leaf = s->loc_cnt ? legacy_maps__address(&w->maps, w->p->loc_ids[s->loc]) : 0;

	return leaf ? leaf : NO_ADDRESS;
}

static void put_record(const struct writer *w, const struct legacy_record *r)
{
	const struct profile_sample *s = r->sample;

	put_word(w, (uint64_t)MAX(r->value[HOW_MANY], 0));
	put_word(w, MAX(s->loc_cnt, 1U));
	/* the leaf is where the program was, the others are return addresses */
	put_word(w, leaf_of(w, s));
	for (uint32_t i = 1; i < s->loc_cnt; i++)
		put_word(w, legacy_maps__address(&w->maps, w->p->loc_ids[s->loc + i]) + 1);
}

static int write_cpu(const struct writer *w)
{
	put_word(w, 0);
	put_word(w, 3);
	put_word(w, 0);
	put_word(w, (uint64_t)MAX((w->p->period + 500) / 1000, 1));
	put_word(w, 0);
	for (size_t i = 0; i < w->records.cnt; i++) {
		put_record(w, &w->records.records[i]);
		/* it weighs nothing */
		if (i % RECORDS_ALIKE)
			continue;
		put_word(w, 0);
		put_word(w, 1);
		put_word(w, leaf_of(w, w->records.records[i].sample));
	}
	put_word(w, 0);
	put_word(w, 1);
	put_word(w, 0);
	return print_maps(w, "\nMAPPED_LIBRARIES:");
}

/* ---- all of it ---- */

static int add_up(struct writer *w)
{
	enum legacy_apart by = LEGACY_BY_STACK;

	if (w->what->form == LEGACY_HEAP)
		by = LEGACY_BY_SIZE;
	else if (w->debug && order_of(w) == HOW_MANY)
		by = LEGACY_BY_LABELS;
	return legacy_records__make(&w->maps, by, order_of(w), &w->records);
}

static int write_form(struct writer *w)
{
	switch (w->what->form) {
	case LEGACY_HEAP:
		return write_heap(w);
	case LEGACY_CONTENTION:
	case LEGACY_MUTEX:
		return write_contention(w);
	case LEGACY_CPU:
		return w->debug ? write_count(w) : write_cpu(w);
	default:
		return write_count(w);
	}
}

static int write_all(const struct profile *p, const struct legacy *what, bool debug, FILE *f)
{
	struct writer w = { .p = p, .what = what, .debug = debug, .f = f };
	int err = legacy_maps__make(p, &w.maps);

	if (!err && debug)
		err = frames__make(p, false, &w.frames);
	if (!err)
		err = add_up(&w);
	if (!err)
		err = write_form(&w);
	legacy_records__done(&w.records);
	if (w.frames.names)
		frames__done(&w.frames);
	legacy_maps__done(&w.maps);
	return err ? err : ferror(f) ? -EIO : 0;
}

int legacy_write(const struct profile *p, const struct legacy *what, FILE *f)
{
	return write_all(p, what, false, f);
}

int debug1_write(const struct profile *p, const struct legacy *what, FILE *f)
{
	return write_all(p, what, true, f);
}
