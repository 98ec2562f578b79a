/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of record/dump_records and spool/dump_folder: records are chosen by when their windows end and
 * added up with the labels of their groups; what is no record is counted and left out; a dump is there
 * whole or not at all.
 */
#include <linux/types.h>

#include "record/dump_records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "golden_profile.h"
#include "kinds.h"
#include "profile/pprof.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"
#include "spool/dump_folder.h"
#include "spool/labels.h"
#include "spool/spool.h"

#define SEC NSEC_PER_SEC
#define START (1764154444ULL * SEC) /* 2025-11-26T10:54:04Z */

static char base[64], folder[128], text[512];
static struct spool *spool;

/* ---- records ---- */

struct record {
	enum bpfprof_kind kind;
	const char *says; /* its kind in the header; NULL: as it is; "": there is no header */
	const char *service, *unit;
	uint64_t begin_ns, duration_ns;
	int64_t value;
	int64_t held;	  /* the third value */
	size_t value_cnt; /* 0: all */
};

static struct profile *make(const struct record *r)
{
	const struct kind *k = &kinds[r->kind];
	struct profile *p = profile__new(k->value_types, r->value_cnt ? r->value_cnt : k->value_cnt,
					 k->period_type, 1000);
	struct profile_mapping m = { .start = 4096, .limit = 8192 };
	int64_t values[PROFILE_MAX_VALUES] = { r->value, r->value * 1000, r->held, r->held * 1000 };
	uint32_t loc;

	assert_non_null(p);
	p->time_ns = (int64_t)r->begin_ns;
	p->duration_ns = (int64_t)r->duration_ns;
	m.filename = profile__string(p, "/bin/x");
	loc = golden_location(p, profile__add_mapping(p, &m), 4096, "f", "f", "x.c", 1);
	profile__add_sample(p, &loc, 1, NULL, 0, values);
	assert_int_equal(profile__finish(p), 0);
	return p;
}

static int write_record(void *ctx, FILE *f)
{
	const struct record *r = ctx;
	struct profile *p = make(r);
	struct labels l = { 0 };
	char *data;
	size_t sz;
	int err;

	labels__add(&l, "kind", r->says ? r->says : kinds[r->kind].name);
	labels__add(&l, "service_name", r->service);
	labels__add(&l, "unit", r->unit);
	assert_int_equal(labels__encode(&l, &data, &sz), 0);
	err = pprof_write_extra(p, data, r->says && !*r->says ? 0 : sz, 0, f);
	free(data);
	profile__free(p);
	return err;
}

static void add(const struct record *r)
{
	assert_int_equal(spool__add(spool, r->begin_ns, "x", write_record, (void *)r), 0);
}

static int write_text(void *ctx, FILE *f)
{
	return fputs(ctx, f) < 0 ? -EIO : 0;
}

/* ---- dumps ---- */

static bool goes_on(void)
{
	return false;
}

static struct dump_records found;

static size_t find(uint64_t from_ns, uint64_t to_ns)
{
	struct dump_time when = { from_ns, to_ns };

	dump_records__done(&found);
	assert_int_equal(spool__list(spool), 0);
	assert_int_equal(dump_records__find(spool, &when, &found), 0);
	return found.cnt;
}

/* The sum of a value; -1: there is no profile. */
static int64_t sum_of(enum bpfprof_kind kind, size_t value, uint64_t from_ns, uint64_t to_ns,
		      struct dump_account *a)
{
	struct dump_time when = { from_ns, to_ns };
	struct profile *p;
	int64_t ret = 0;

	find(from_ns, to_ns);
	assert_int_equal(dump_records__sum(spool, &found, kind, &when, goes_on, &p, a), 0);
	if (!p)
		return -1;
	for (size_t i = 0; i < p->sample_cnt; i++)
		ret += profile__values(p, &p->samples[i])[value];
	profile__free(p);
	return ret;
}

/* The sum of the first one. */
static int64_t sum(enum bpfprof_kind kind, uint64_t from_ns, uint64_t to_ns, struct dump_account *a)
{
	return sum_of(kind, 0, from_ns, to_ns, a);
}

static void by_the_end_of_windows(void **state)
{
	struct dump_account a;

	(void)state;
	/* windows of 10 s, of two groups and kinds each; one in the middle was cut early */
	for (int i = 0; i < 12; i++) {
		uint64_t begin = START + (uint64_t)i * 10 * SEC + SEC / 3,
			 cut = i == 6 ? 4 * SEC : 0;
		struct record r = { .service = "one",
				    .begin_ns = begin - (i > 6 ? 6 * SEC : 0),
				    .duration_ns = cut ? cut : 10 * SEC,
				    .value = INT64_C(1) << 2 * i };

		add(&r);
		r.service = "two";
		r.value *= 2;
		add(&r);
		r.kind = BPFPROF_OFFCPU;
		add(&r);
	}
	/* all of it */
	assert_int_equal(sum(BPFPROF_CPU, 0, UINT64_MAX - 1, &a), (1 << 24) - 1);
	assert_int_equal(a.added, 24);
	assert_int_equal(a.begin_ns, START + SEC / 3);
	assert_int_equal(a.end_ns, START + 114 * SEC + SEC / 3);
	assert_int_equal(sum(BPFPROF_OFFCPU, 0, UINT64_MAX - 1, &a), 2 * ((1 << 24) - 1) / 3);
	assert_int_equal(sum(BPFPROF_HEAP, 0, UINT64_MAX - 1, &a), -1);
	assert_int_equal(a.added, 0);
	/* both ends belong to it */
	for (int i = 0; i < 12; i++) {
		uint64_t end =
			START + (uint64_t)(i + 1) * 10 * SEC - (i >= 6 ? 6 * SEC : 0) + SEC / 3;

		assert_int_equal(sum(BPFPROF_CPU, end, end, &a), 3 << 2 * i);
		assert_int_equal(a.added, 2);
		assert_int_equal(a.end_ns, end);
		assert_int_equal(sum(BPFPROF_CPU, end - 1, end - 1, &a), -1);
		assert_int_equal(sum(BPFPROF_CPU, end + 1, end + 1, &a), -1);
	}
	/* of the others few are looked at */
	assert_in_range(find(START + 94 * SEC, UINT64_MAX - 1), 6, 12);
	assert_in_range(find(0, START + 15 * SEC), 6, 6);
	assert_int_equal(found.unknown.broken, 0);
}

/* A clock that was set back, between two agents: numbers tell what came later. */
static void clocks_are_set(void **state)
{
	static const uint64_t begins[] = { 1000, 1010, 500, 510, 2000 };
	struct dump_account a;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++) {
		const struct record r = { .service = "s",
					  .begin_ns = START + begins[i] * SEC,
					  .duration_ns = 10 * SEC,
					  .value = 1 << i };

		add(&r);
	}
	assert_int_equal(sum(BPFPROF_CPU, START + 1005 * SEC, START + 1030 * SEC, &a), 3);
	assert_int_equal(sum(BPFPROF_CPU, START + 505 * SEC, START + 530 * SEC, &a), 12);
	assert_int_equal(sum(BPFPROF_CPU, START + 2000 * SEC, START + 2010 * SEC, &a), 16);
}

/* "KEY=VALUE …" of a sample, as they are sorted. */
static const char *labels_of(const struct profile *p, size_t sample)
{
	const struct profile_sample *s = &p->samples[sample];
	static char all[512];
	size_t n = 0;

	*all = '\0';
	for (uint32_t i = 0; i < s->label_cnt; i++)
		n += snprintf(all + n, sizeof(all) - n, "%s%s=%s", n ? " " : "",
			      strtab__get(p->strings, p->labels[s->label + i].key),
			      strtab__get(p->strings, p->labels[s->label + i].str));
	return all;
}

static void samples_say_where_from(void **state)
{
	static const struct record records[] = {
		{ .service = "a", .unit = "a.service", .value = 1 },
		{ .service = "b", .unit = "b.service", .value = 2 },
		{ .service = "a", .unit = "a.service", .value = 4 },
		{ .service = "c\x1b[2J", .value = 8 },
		{ .value = 16 },
	};
	static const char *const want[] = {
		[1] = "service_name=b unit=b.service",
		[4] = "service_name=c\xef\xbf\xbd[2J",
	};
	struct dump_time when = { 0, UINT64_MAX - 1 };
	struct dump_account a;
	struct profile *p;
	size_t seen = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(records); i++) {
		struct record r = records[i];

		r.begin_ns = START;
		r.duration_ns = 10 * SEC;
		add(&r);
	}
	assert_int_equal(find(0, UINT64_MAX - 1), ARRAY_SIZE(records));
	assert_int_equal(dump_records__sum(spool, &found, BPFPROF_CPU, &when, goes_on, &p, &a), 0);
	assert_int_equal(a.added, ARRAY_SIZE(records));
	/* groups are apart, windows of one are not */
	assert_int_equal(p->sample_cnt, 4);
	for (size_t i = 0; i < p->sample_cnt; i++) {
		int64_t v = profile__values(p, &p->samples[i])[0];
		const char *labels = labels_of(p, i);

		if (v == 5)
			assert_string_equal(labels, "service_name=a unit=a.service");
		else if (v == 2 || v == 8)
			assert_string_equal(labels, want[v / 2]);
		else
			assert_true(v == 16 && !*labels);
		seen |= (size_t)v;
	}
	assert_int_equal(seen, 31);
	assert_int_equal(p->duration_ns, 10 * SEC);
	assert_string_equal(strtab__get(p->strings, p->comments[p->comment_cnt - 1]),
			    "the sum of 5 profiles");
	profile__free(p);
}

/* What readers are to hide follows from all that is in it. */
static void machinery_is_hidden(void **state)
{
	const struct record r = { .kind = BPFPROF_BLOCK,
				  .service = "s",
				  .begin_ns = START,
				  .duration_ns = SEC,
				  .value = 1 };
	struct dump_time when = { 0, UINT64_MAX - 1 };
	struct dump_account a;
	struct profile *p;

	(void)state;
	add(&r);
	find(0, UINT64_MAX - 1);
	assert_int_equal(dump_records__sum(spool, &found, BPFPROF_BLOCK, &when, goes_on, &p, &a),
			 0);
	assert_true(p->drop_frames);
	profile__free(p);
}

/* ---- what is none ---- */

static void path_of(uint64_t number, char path[static 256])
{
	snprintf(path, 256, "%s/%016d.20251126T105404Z.x", folder, (int)number);
}

static void replace(uint64_t number, const char *link)
{
	char path[256];

	path_of(number, path);
	assert_int_equal(unlink(path), 0);
	if (link)
		assert_int_equal(symlink(link, path), 0);
	else
		assert_int_equal(mkfifo(path, 0600), 0);
}

static void hostile_records(void **state)
{
	const struct record good = {
		.service = "s", .begin_ns = START, .duration_ns = SEC, .value = 1
	};
	struct dump_time when = { 0, UINT64_MAX - 1 };
	struct dump_account a;
	struct record r;
	struct profile *p;
	char path[256];

	(void)state;
	add(&good); /* 1 */
	/* no record by its head */
	assert_int_equal(spool__add(spool, START, "x", write_text, "nothing of the sort"), 0);
	assert_int_equal(spool__add(spool, START, "x", write_text, ""), 0);
	r = good;
	r.says = "";
	add(&r);
	r.says = "nonsense";
	add(&r);
	r.says = "cpu/../../x";
	add(&r); /* 6 */
	/* nor by what is in it: other values, no end in time */
	r = good;
	r.says = "offcpu";
	add(&r);
	r = good;
	r.duration_ns = (uint64_t)-5;
	add(&r);
	r.duration_ns = INT64_MAX - 3;
	add(&r); /* 9 */
	/* cut short, and one that is too large by far */
	add(&good);
	path_of(10, path);
	assert_int_equal(truncate(path, 150), 0);
	add(&good);
	path_of(11, path);
	assert_int_equal(truncate(path, PPROF_READ_MAX + 1), 0);
	/* what is put in the place of one after they were listed, and what has gone */
	for (int i = 0; i < 5; i++)
		add(&good); /* 16 */
	assert_int_equal(spool__list(spool), 0);
	replace(12, NULL);
	replace(13, "0000000000000001.20251126T105404Z.x");
	path_of(14, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(dump_records__find(spool, &when, &found), 0);
	assert_int_equal(found.cnt, 1 + 3 + 2 + 2);
	assert_int_equal(found.unknown.broken, 5 + 2);
	assert_int_equal(found.unknown.gone, 1);
	replace(15, "0000000000000001.20251126T105404Z.x");
	path_of(16, path);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(dump_records__sum(spool, &found, BPFPROF_CPU, &when, goes_on, &p, &a), 0);
	assert_non_null(p);
	assert_int_equal(a.added, 1);
	assert_int_equal(a.broken, 2 + 2 + 1);
	assert_int_equal(a.gone, 1);
	assert_int_equal(p->sample_cnt, 1);
	assert_int_equal(profile__values(p, &p->samples[0])[0], 1);
	assert_string_equal(strtab__get(p->strings, p->comments[0]),
			    "the sum of 1 profiles; left out: 5 that are broken, 1 that went "
			    "meanwhile to make room");
	profile__free(p);
	assert_int_equal(dump_records__sum(spool, &found, BPFPROF_OFFCPU, &when, goes_on, &p, &a),
			 0);
	assert_null(p);
	assert_int_equal(a.broken, 1);
	/* in the list there is no such thing */
	find(0, UINT64_MAX - 1);
	assert_int_equal(found.cnt, 6);
	assert_int_equal(found.unknown.broken, 5);
	assert_int_equal(found.unknown.gone, 0);
}

/* Some have only the first values of their kind. */
static void other_values(void **state)
{
	struct record r = { .kind = BPFPROF_HEAP,
			    .service = "s",
			    .begin_ns = START,
			    .duration_ns = SEC,
			    .value = 1 };
	struct dump_account a;

	(void)state;
	add(&r);
	r.value_cnt = 2;
	r.value = 2;
	add(&r);
	r.value = 4;
	add(&r);
	assert_int_equal(sum(BPFPROF_HEAP, 0, UINT64_MAX - 1, &a), 7);
	assert_int_equal(a.added, 3);
	assert_int_equal(a.others, 0);
	assert_string_equal(a.values, "inuse_objects, inuse_space");
	assert_int_equal(a.broken, 0);
}

/* What is in use is so at the end of the last window: what was before has been freed, or is there again. */
static void what_is_in_use(void **state)
{
	struct record r = { .kind = BPFPROF_HEAP, .begin_ns = START, .duration_ns = SEC };
	struct dump_account a;

	(void)state;
	for (int i = 0; i < 5; i++, r.begin_ns += SEC) {
		r.service = "one";
		r.value = 1;
		r.held = 10 + i;
		add(&r);
		r.service = "two";
		r.held = i < 3 ? 100 : 0;
		add(&r);
	}
	assert_int_equal(sum(BPFPROF_HEAP, 0, UINT64_MAX - 1, &a), 10);
	assert_int_equal(sum_of(BPFPROF_HEAP, 2, 0, UINT64_MAX - 1, &a), 14);
	assert_int_equal(sum_of(BPFPROF_HEAP, 3, 0, UINT64_MAX - 1, &a), 14000);
	/* of an earlier time, as it was then */
	assert_int_equal(sum_of(BPFPROF_HEAP, 2, 0, START + 2 * SEC, &a), 111);
	assert_int_equal(a.added, 4);
}

static int asked;

static bool stops_at_third(void)
{
	return ++asked == 3;
}

static void it_is_stopped(void **state)
{
	const struct record r = {
		.service = "s", .begin_ns = START, .duration_ns = SEC, .value = 1
	};
	struct dump_time when = { 0, UINT64_MAX - 1 };
	struct dump_account a;
	struct profile *p;

	(void)state;
	for (int i = 0; i < 5; i++)
		add(&r);
	find(0, UINT64_MAX - 1);
	asked = 0;
	assert_int_equal(
		dump_records__sum(spool, &found, BPFPROF_CPU, &when, stops_at_third, &p, &a),
		-EINTR);
	assert_null(p);
	assert_int_equal(a.added, 2);
}

static uint64_t max = UINT64_MAX;

uint64_t __wrap_memory_max(void);

uint64_t __wrap_memory_max(void)
{
	return max;
}

static size_t grown;

size_t __wrap_profile__bytes(const struct profile *p);

/* As if each were as large. */
size_t __wrap_profile__bytes(const struct profile *p)
{
	(void)p;
	return grown ? ++grown * (DUMP_MAX_SUM / 4) : 0;
}

static void it_has_no_room(void **state)
{
	struct record r = { .service = "s", .duration_ns = SEC };
	struct dump_account a, b;

	(void)state;
	for (uint64_t i = 0; i < 8; i++) {
		r.begin_ns = START + i * SEC;
		r.value = 1 << i;
		add(&r);
	}
	grown = 1;
	/* the newest are there */
	assert_int_equal(sum(BPFPROF_CPU, 0, UINT64_MAX - 1, &a), 128 + 64 + 32);
	/* less, where there is no more memory */
	max = 2 * DUMP_MAX_SUM;
	grown = 1;
	assert_int_equal(sum(BPFPROF_CPU, 0, UINT64_MAX - 1, &b), 128);
	max = UINT64_MAX;
	grown = 0;
	assert_int_equal(b.added, 1);
	assert_int_equal(b.no_room, 7);
	assert_int_equal(a.added, 3);
	assert_int_equal(a.no_room, 5);
	assert_int_equal(a.begin_ns, START + 5 * SEC);
	dump_account_text(&a, text, sizeof(text));
	assert_string_equal(text, "5 older ones that would be too much for one file");
}

/* ---- folders ---- */

static bool exists(const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !lstat(path, &st);
}

static mode_t mode_of(const char *name)
{
	char path[256];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(lstat(path, &st), 0);
	return st.st_mode;
}

static struct dump_folder *begun(void)
{
	struct dump_folder *d;

	assert_int_equal(dump_folder__new(spool__folder(spool), &d), 0);
	return d;
}

static void folders_are_whole(void **state)
{
	char name[DUMP_FOLDER_NAME_SZ], path[256], *bytes;
	struct dump_folder *d = begun(), *e;
	struct spool_stats stats;
	size_t sz;

	(void)state;
	assert_int_equal(dump_folder__add(d, "a", write_text, "first"), 0);
	assert_int_equal(dump_folder__add(d, "b", write_text, ""), 0);
	assert_int_equal(dump_folder__add(d, "b", write_text, ""), -EEXIST);
	assert_false(exists("dump-20251126T105404Z"));
	/* of the same second, at the same time */
	e = begun();
	assert_int_equal(dump_folder__add(e, "a", write_text, "second"), 0);
	assert_int_equal(dump_folder__commit(d, START, name), 0);
	assert_string_equal(name, "dump-20251126T105404Z");
	dump_folder__free(d);
	assert_int_equal(mode_of(name), S_IFDIR | 0700);
	assert_int_equal(mode_of("dump-20251126T105404Z/a"), S_IFREG | 0600);
	assert_int_equal(mode_of("dump-20251126T105404Z/b"), S_IFREG | 0600);
	assert_int_equal(dump_folder__commit(e, START, name), 0);
	assert_string_equal(name, "dump-20251126T105404Z-2");
	dump_folder__free(e);
	snprintf(path, sizeof(path), "%s/dump-20251126T105404Z/a", folder);
	assert_int_equal(util_read_file(path, 64, &bytes, &sz), 0);
	assert_string_equal(bytes, "first");
	free(bytes);
	/* a name that something else has, too */
	snprintf(path, sizeof(path), "%s/dump-20251126T105404Z-3", folder);
	assert_int_equal(symlink("/tmp", path), 0);
	d = begun();
	assert_int_equal(dump_folder__commit(d, START, name), 0);
	assert_string_equal(name, "dump-20251126T105404Z-4");
	dump_folder__free(d);
	assert_false(exists(".dump-1.tmp") || exists(".dump-2.tmp"));
	/* nothing of it is the spool's */
	assert_int_equal(spool__list(spool), 0);
	spool__stats(spool, &stats);
	assert_int_equal(stats.records, 0);
}

static int fails(void *ctx, FILE *f)
{
	(void)ctx;
	fputs("half", f);
	return -ENOSPC;
}

static void folders_are_not_there(void **state)
{
	struct dump_folder *d = begun();

	(void)state;
	assert_int_equal(dump_folder__add(d, "a", write_text, "whole"), 0);
	assert_int_equal(dump_folder__add(d, "b", fails, NULL), -ENOSPC);
	assert_true(exists(".dump-1.tmp/a"));
	dump_folder__free(d);
	assert_false(exists(".dump-1.tmp"));
	dump_folder__free(NULL);
}

static void make_left(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s/file", folder, name);
	assert_int_equal(close(open(path, O_WRONLY | O_CREAT, 0600)), 0);
}

/* What one that was killed has left goes; what is being written, or is something else, stays. */
static void folders_are_left(void **state)
{
	char path[256];
	struct dump_folder *d;
	int lock;

	(void)state;
	make_left(".dump-1.tmp");
	make_left(".dump-77.tmp");
	make_left(".dump-3.tmp");
	make_left(".dump-4.tmpx");
	make_left("dump-5.tmp");
	make_left("elsewhere");
	snprintf(path, sizeof(path), "%s/.dump-6.tmp", folder);
	assert_int_equal(symlink("elsewhere", path), 0);
	snprintf(path, sizeof(path), "%s/.dump-3.tmp", folder);
	lock = open(path, O_RDONLY | O_DIRECTORY);
	assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
	d = begun();
	assert_false(exists(".dump-77.tmp") || exists(".dump-1.tmp/file"));
	assert_true(exists(".dump-1.tmp"));
	assert_true(exists(".dump-3.tmp/file") && exists(".dump-4.tmpx/file") &&
		    exists("dump-5.tmp/file") && exists("elsewhere/file"));
	dump_folder__free(d);
	close(lock);
}

static int setup(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/test_dump.XXXXXX");
	snprintf(folder, sizeof(folder), "%s/spool", mkdtemp(base));
	return spool__open(folder, 1ULL << 30, &spool, text, sizeof(text));
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	dump_records__done(&found);
	spool__close(spool);
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(by_the_end_of_windows),  TEST(clocks_are_set),	   TEST(what_is_in_use),
		TEST(samples_say_where_from), TEST(machinery_is_hidden),   TEST(hostile_records),
		TEST(other_values),	      TEST(it_is_stopped),	   TEST(it_has_no_room),
		TEST(folders_are_whole),      TEST(folders_are_not_there), TEST(folders_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
