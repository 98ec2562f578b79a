/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of spool/: records are whole, the oldest go, numbers go on, and the folder is nobody else's;
 * a cursor is where it was, whatever happened; labels are what they were. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/util.h"
#include "spool/cursor.h"
#include "spool/labels.h"
#include "spool/names.h"
#include "spool/spool.h"

#define KIB 1024UL
#define TIME_NS (1764154444ULL * NSEC_PER_SEC) /* 2025-11-26T10:54:04Z */

static char base[64], folder[128];
static char text[512];

static struct spool *opened(uint64_t max_sz)
{
	struct spool *s;

	assert_int_equal(spool__open(folder, max_sz, &s, text, sizeof(text)), 0);
	return s;
}

static int refused(void)
{
	struct spool *s;
	int err;

	*text = '\0';
	err = spool__open(folder, SPOOL_MIN_SZ, &s, text, sizeof(text));
	assert_null(s);
	assert_true(*text && !strchr(text, '\n'));
	return err;
}

struct content {
	size_t sz;
	int err; /* behind it */
};

static int put(void *ctx, FILE *f)
{
	const struct content *c = ctx;

	for (size_t i = 0; i < c->sz; i++)
		putc('a' + (int)(i % 26), f);
	return c->err;
}

static int add(struct spool *s, const char *name, size_t sz)
{
	struct content c = { .sz = sz };

	return spool__add(s, TIME_NS, name, put, &c);
}

/* Names in the folder in their order, without those that begin with a dot; freed by the next call. */
static size_t listed(const char *names[], size_t max)
{
	static struct dirent **entries;
	static int cnt;
	size_t n = 0;

	for (int i = 0; i < cnt; i++)
		free(entries[i]);
	free(entries);
	cnt = scandir(folder, &entries, NULL, alphasort);
	assert_true(cnt >= 2);
	for (int i = 0; i < cnt; i++)
		if (entries[i]->d_name[0] != '.' && n < max)
			names[n++] = entries[i]->d_name;
	return n;
}

static bool exists(const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return !access(path, F_OK);
}

static void plant(const char *name, const char *what)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(what, f);
	fclose(f);
}

static void records_are_files(void **state)
{
	struct spool *s = opened(SPOOL_MIN_SZ);
	struct spool_stats stats;
	const char *names[8];
	char path[PATH_MAX], *bytes;
	struct stat st;
	size_t sz;

	(void)state;
	assert_int_equal(add(s, "nginx.cpu.pb.gz", 1000), 0);
	assert_int_equal(add(s, "redis.cpu.pb.gz", 0), 0);
	assert_int_equal(listed(names, 8), 2);
	assert_string_equal(names[0], "0000000000000001.20251126T105404Z.nginx.cpu.pb.gz");
	assert_string_equal(names[1], "0000000000000002.20251126T105404Z.redis.cpu.pb.gz");
	snprintf(path, sizeof(path), "%s/%s", folder, names[0]);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(util_read_file(path, 4096, &bytes, &sz), 0);
	assert_int_equal(sz, 1000);
	assert_memory_equal(bytes, "abcdefghijklmnopqrstuvwxyzabc", 29);
	free(bytes);
	spool__stats(s, &stats);
	assert_int_equal(stats.records, 2);
	/* a page, of which most is not used */
	assert_int_equal(stats.bytes, 4096);
	/* what has come in is counted as it is sent */
	assert_int_equal(stats.added, 2);
	assert_int_equal(stats.added_bytes, 1000);
	spool__close(s);
}

static void the_oldest_go(void **state)
{
	struct spool *s = opened(SPOOL_MIN_SZ);
	struct spool_stats stats;
	const char *names[32];
	char first[24];

	(void)state;
	/* ten have room, and a little */
	for (int i = 0; i < 35; i++) {
		assert_int_equal(add(s, "x", 100 * KIB), 0);
		spool__stats(s, &stats);
		assert_true(stats.bytes <= SPOOL_MIN_SZ);
	}
	assert_int_equal(stats.records, 10);
	assert_int_equal(stats.dropped, 25);
	assert_int_equal(stats.bytes, 10 * 100 * KIB);
	assert_int_equal(stats.dropped_bytes, 25 * 100 * KIB);
	assert_int_equal(listed(names, 32), 10);
	snprintf(first, sizeof(first), "%016d.", 26);
	assert_memory_equal(names[0], first, 17);
	/* one makes room for itself alone */
	assert_int_equal(add(s, "x", 900 * KIB), 0);
	assert_int_equal(listed(names, 32), 2);
	/* one that is larger than the folder changes nothing */
	assert_int_equal(add(s, "x", 2 * SPOOL_MIN_SZ), -EFBIG);
	assert_int_equal(listed(names, 32), 2);
	spool__close(s);
}

static void numbers_go_on(void **state)
{
	struct spool *s = opened(SPOOL_MIN_SZ);
	struct spool_stats stats;
	const char *names[8];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(add(s, "x", 200 * KIB), 0);
	spool__close(s);
	/* what is none, and what was being written when its writer was killed */
	plant("notes.txt", "mine");
	plant("0000000000000099.x", "no time");
	plant(".0000000000000005.tmp", "half");
	s = opened(SPOOL_MIN_SZ);
	assert_false(exists(".0000000000000005.tmp"));
	spool__stats(s, &stats);
	assert_int_equal(stats.records, 4);
	assert_true(stats.bytes >= 800 * KIB);
	assert_int_equal(stats.dropped, 0);
	assert_int_equal(add(s, "y", 0), 0);
	assert_true(exists("0000000000000005.20251126T105404Z.y"));
	/* in the order of their numbers, whatever the folder's is */
	assert_int_equal(add(s, "y", 300 * KIB), 0);
	assert_false(exists("0000000000000001.20251126T105404Z.x"));
	assert_true(exists("0000000000000002.20251126T105404Z.x"));
	spool__close(s);
	/* it is to hold less */
	s = opened(500 * KIB);
	spool__stats(s, &stats);
	assert_true(stats.bytes <= 500 * KIB);
	assert_int_equal(stats.records + stats.dropped, 5);
	assert_true(exists("notes.txt") && exists("0000000000000099.x"));
	assert_int_equal(listed(names, 8), stats.records + 2);
	spool__close(s);
}

/* What fails leaves nothing behind, and the next one has its number. */
static void writing_fails(void **state)
{
	struct spool *s = opened(SPOOL_MIN_SZ);
	struct content c = { .sz = 10 * KIB, .err = -EIO };
	struct spool_stats stats;
	const char *names[8];

	(void)state;
	assert_int_equal(spool__add(s, TIME_NS, "x", put, &c), -EIO);
	assert_int_equal(listed(names, 8), 0);
	assert_false(exists(".0000000000000001.tmp"));
	assert_int_equal(add(s, "x", 1), 0);
	assert_true(exists("0000000000000001.20251126T105404Z.x"));
	spool__stats(s, &stats);
	assert_int_equal(stats.records, 1);
	spool__close(s);
}

/* On a disk that is full, old ones make room. */
static void the_disk_is_full(void **state)
{
	struct spool_stats stats;
	struct spool *s;

	(void)state;
	assert_int_equal(mkdir(folder, 0700), 0);
	if (mount("spool", folder, "tmpfs", 0, "size=1m,mode=0700"))
		skip();
	s = opened(16 * SPOOL_MIN_SZ);
	for (int i = 0; i < 30; i++)
		assert_int_equal(add(s, "x", 100 * KIB), 0);
	spool__stats(s, &stats);
	assert_int_equal(stats.records + stats.dropped, 30);
	assert_in_range(stats.records, 5, 10);
	/* and one that has no room at all */
	assert_int_equal(add(s, "x", 2000 * KIB), -ENOSPC);
	spool__close(s);
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
}

/* Fills the disk that the folder is on. */
static void fill(const char *name)
{
	static const char page[4096];
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_return_code(fd, errno);
	while (write(fd, page, sizeof(page)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
	close(fd);
}

/* At the start as well, also for a store that is new; and where none do, it is said. */
static void the_disk_is_full_at_the_start(void **state)
{
	struct spool_stats before, after;
	char path[PATH_MAX];
	struct cursor c;
	struct spool *s;
	bool damaged;

	(void)state;
	assert_int_equal(mkdir(folder, 0700), 0);
	if (mount("spool", folder, "tmpfs", 0, "size=1m,mode=0700"))
		skip();
	s = opened(16 * SPOOL_MIN_SZ);
	for (int i = 0; i < 100; i++)
		assert_int_equal(add(s, "x", 1), 0);
	spool__close(s);
	fill("others");
	s = opened(16 * SPOOL_MIN_SZ);
	spool__stats(s, &before);
	assert_in_range(before.dropped, 1, 99);
	fill("more");
	assert_int_equal(cursor__open(&c, s, "store", &damaged), 0);
	assert_int_equal(c.next, 101);
	cursor__close(&c);
	spool__stats(s, &after);
	assert_int_equal(after.dropped, before.dropped + 1);
	assert_int_equal(add(s, "x", 1), 0);
	spool__close(s);
	/* nothing is there that could go */
	snprintf(path, sizeof(path), "rm %s/0*.x", folder);
	assert_int_equal(system(path), 0);
	fill("all");
	assert_int_equal(refused(), -ENOSPC);
	snprintf(path, sizeof(path),
		 "cannot write in the folder '%s': No space left on device: make room for it",
		 folder);
	assert_string_equal(text, path);
	assert_false(exists(".0000000000000000.tmp"));
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
}

/* Fails for want of quota as often as it says. */
static int put_later(void *ctx, FILE *f)
{
	int *times = ctx;

	fputc('x', f);
	return *times && (*times)-- ? -EDQUOT : 0;
}

static void the_quota_is_reached(void **state)
{
	struct spool *s = opened(SPOOL_MIN_SZ);
	struct spool_stats stats;
	int times = 3;

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(add(s, "x", 1), 0);
	assert_int_equal(spool__add(s, TIME_NS, "x", put_later, &times), 0);
	spool__stats(s, &stats);
	assert_int_equal(stats.dropped, 3);
	assert_int_equal(stats.records, 3);
	spool__close(s);
}

static void the_folder_is_ours(void **state)
{
	struct spool *s = opened(SPOOL_MIN_SZ);
	struct stat st;

	(void)state;
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0700);
	assert_int_equal(refused(), -EBUSY);
	assert_non_null(strstr(text, "another"));
	spool__close(s);
	s = opened(SPOOL_MIN_SZ);
	spool__close(s);
	/* others may write in it */
	assert_int_equal(chmod(folder, 0770), 0);
	assert_int_equal(refused(), -EPERM);
	assert_int_equal(chmod(folder, 0755), 0);
	s = opened(SPOOL_MIN_SZ);
	spool__close(s);
	if (!geteuid()) {
		assert_int_equal(chown(folder, 65534, 65534), 0);
		assert_int_equal(refused(), -EPERM);
		assert_int_equal(chown(folder, 0, 0), 0);
	}
	/* a link, and a file */
	snprintf(folder, sizeof(folder), "%s/link", base);
	assert_int_equal(symlink("spool", folder), 0);
	assert_int_equal(refused(), -ENOTDIR);
	assert_int_equal(unlink(folder), 0);
	snprintf(folder, sizeof(folder), "%s/file", base);
	assert_true(close(open(folder, O_WRONLY | O_CREAT, 0600)) == 0);
	assert_int_equal(refused(), -ENOTDIR);
	/* where there is no folder to make it in */
	snprintf(folder, sizeof(folder), "%s/no/spool", base);
	assert_int_equal(refused(), -ENOENT);
	snprintf(folder, sizeof(folder), "%s/spool", base);
}

static void records_are_found(void **state)
{
	struct spool *s = opened(SPOOL_MIN_SZ);
	uint64_t number = 0, time_ns = 0;
	char buf[8] = "";
	int fd;

	(void)state;
	assert_int_equal(spool__end(s), 1);
	assert_false(spool__find(s, 0, &number, &time_ns));
	for (int i = 0; i < 12; i++)
		assert_int_equal(add(s, "x", 100 * KIB), 0);
	assert_int_equal(spool__end(s), 13);
	/* two have gone */
	assert_true(spool__find(s, 0, &number, &time_ns));
	assert_int_equal(number, 3);
	assert_int_equal(time_ns, TIME_NS);
	for (uint64_t i = 3; i <= 12; i++) {
		assert_true(spool__find(s, i, &number, &time_ns));
		assert_int_equal(number, i);
	}
	assert_false(spool__find(s, 13, &number, &time_ns));
	assert_int_equal(spool__open_record(s, 2), -ENOENT);
	assert_int_equal(spool__open_record(s, 13), -ENOENT);
	fd = spool__open_record(s, 12);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, buf, 3), 3);
	assert_string_equal(buf, "abc");
	close(fd);
	/* somebody has removed it */
	snprintf(text, sizeof(text), "%s/0000000000000005.20251126T105404Z.x", folder);
	assert_int_equal(unlink(text), 0);
	assert_int_equal(spool__open_record(s, 5), -ENOENT);
	spool__close(s);
}

/* What is known of a record makes its file's name: any that another run may have left, and no others. */
static void files_are_named_anew(void **state)
{
	char longest[NAME_MAX + 1] = "0000000000000003.20251126T105404Z.";
	static const char *const none[] = {
		"0000000000000004.20251326T105404Z.x", /* no month */
		"0000000000000005.20251126T105460Z.x", "0000000000000006.2025112 T105404Z.x",
		"0000000000000007.21060207T062816Z.x", /* behind the last second */
		"0000000000000008.19691231T235959Z.x", "0000000000000009.20251126T105404Z.",
	};
	struct spool *s = opened(SPOOL_MIN_SZ);
	uint64_t number, time_ns;
	struct spool_stats stats;
	struct content c = { .sz = 1 };

	(void)state;
	assert_int_equal(spool__add(s, 0, "x.cpu.pb.gz", put, &c), 0);
	assert_true(exists("0000000000000001.19700101T000000Z.x.cpu.pb.gz"));
	assert_int_equal(spool__add(s, UINT64_MAX, "x.cpu.pb.gz", put, &c), 0);
	assert_true(exists("0000000000000002.21060207T062815Z.x.cpu.pb.gz"));
	spool__close(s);
	memset(longest + strlen(longest), 'n', sizeof(longest) - 1 - strlen(longest));
	plant(longest, "x");
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		plant(none[i], "");
	s = opened(SPOOL_MIN_SZ);
	spool__stats(s, &stats);
	assert_int_equal(stats.records, 3);
	assert_true(spool__find(s, 2, &number, &time_ns));
	assert_int_equal(time_ns, UINT32_MAX * NSEC_PER_SEC);
	for (uint64_t i = 1; i <= 3; i++) {
		int fd = spool__open_record(s, i);

		assert_return_code(fd, -fd);
		close(fd);
	}
	/* they go, and what is none stays */
	assert_int_equal(add(s, "y", SPOOL_MIN_SZ), 0);
	spool__stats(s, &stats);
	assert_int_equal(stats.records, 1);
	assert_int_equal(stats.dropped, 3);
	assert_false(exists(longest));
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_true(exists(none[i]));
	spool__close(s);
}

static void names_are_kept_once(void **state)
{
	struct names n;
	struct name *of[1000];

	(void)state;
	names__init(&n);
	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		snprintf(text, sizeof(text), "service-%zu.cpu.pb.gz", i % 10);
		of[i] = names__take(&n, text);
		assert_string_equal(of[i]->text, text);
		assert_ptr_equal(of[i], of[i % 10]);
	}
	assert_int_equal(n.by_text.cnt, 10);
	assert_int_equal(of[0]->refs, 100);
	/* as long as a record has it */
	for (size_t i = 0; i < ARRAY_SIZE(of) - 10; i++)
		names__give_back(&n, of[i]);
	assert_int_equal(n.by_text.cnt, 10);
	for (size_t i = ARRAY_SIZE(of) - 10; i < ARRAY_SIZE(of) - 5; i++)
		names__give_back(&n, of[i]);
	assert_int_equal(n.by_text.cnt, 5);
	names__done(&n);
}

/* ---- cursors ---- */

static struct cursor opened_cursor(struct spool *s, bool damaged)
{
	struct cursor c;
	bool was;

	assert_int_equal(cursor__open(&c, s, "store", &was), 0);
	assert_int_equal(was, damaged);
	return c;
}

#define RECORDS 2000

/* At random, against a plain list, with the process ending in between. */
static void cursors_are_kept(void **state)
{
	struct spool *s = opened(1ULL << 40);
	struct cursor c = opened_cursor(s, false);
	bool settled[RECORDS + 1] = { true }, taken[RECORDS + 1] = { true };
	/* as the file has it */
	uint64_t saved_next = 1, all = 0, number;

	(void)state;
	assert_int_equal(c.next, 1);
	for (int i = 0; i < RECORDS; i++)
		assert_int_equal(add(s, "x", 0), 0);
	srandom(1);
	while (all < RECORDS) {
		if (c.open_cnt < CURSOR_MAX_OPEN && c.next <= RECORDS && random() % 2) {
			taken[c.next] = true;
			cursor__take(&c, c.next);
		} else if (c.open_cnt && random() % 16) {
			number = c.open[random() % c.open_cnt];
			assert_true(cursor__is_open(&c, number) && !settled[number]);
			assert_int_equal(cursor__settle(&c, number), 0);
			assert_false(cursor__is_open(&c, number));
			settled[number] = true;
			saved_next = c.next;
			all++;
		} else if (random() % 16 == 0) {
			cursor__close(&c);
			c = opened_cursor(s, false);
			assert_int_equal(c.next, saved_next);
		}
		for (number = 1; number < c.next; number++)
			assert_int_equal(cursor__is_open(&c, number), !settled[number]);
	}
	for (number = 1; number <= RECORDS; number++)
		assert_true(taken[number] && settled[number]);
	assert_int_equal(c.open_cnt, 0);
	cursor__close(&c);
	spool__close(s);
}

/* One that stays open for ever does not keep the others back, and is not forgotten. */
static void cursors_go_on(void **state)
{
	struct spool *s = opened(SPOOL_MIN_SZ);
	struct cursor c = opened_cursor(s, false);

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(add(s, "x", 0), 0);
	cursor__take(&c, 3);
	for (uint64_t i = 4; i <= 1000; i++) {
		cursor__take(&c, i);
		assert_int_equal(cursor__settle(&c, i), 0);
	}
	cursor__close(&c);
	c = opened_cursor(s, false);
	assert_int_equal(c.next, 1001);
	assert_int_equal(c.open_cnt, 1);
	assert_true(cursor__is_open(&c, 3) && !cursor__is_open(&c, 1) && !cursor__is_open(&c, 4));
	cursor__close(&c);
	spool__close(s);
}

/* What is no cursor begins anew, with what is still to come. */
static void cursors_may_be_damaged(void **state)
{
	static const struct {
		const char *next, *open;
		size_t sz;
		char end;
	} bad[] = {
		{ "0000000000000000", "", 1105, '\n' },
		{ "0000000000000005", "", 1105, '\n' },
		{ "000000000000000x", "", 1105, '\n' },
		{ "                ", "", 1105, '\n' },
		{ "0000000000000003", "0000000000000003", 1105, '\n' },
		{ "0000000000000003", "0000000000000000", 1105, '\n' },
		{ "0000000000000003", "000000000000001", 1105, '\n' },
		{ "0000000000000003", "0000000000000001-", 1105, '\n' },
		{ "0000000000000003", "0000000000000001 0000000000000001", 1105, '\n' },
		{ "0000000000000003", "", 1105, ' ' },
		{ "0000000000000003", "", 1104, '\n' },
		{ "0000000000000003", "", 1106, '\n' },
		{ "0000000000000003", "", 17, '\n' },
	};
	struct spool *s = opened(SPOOL_MIN_SZ);
	char line[2048];
	struct cursor c;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_int_equal(add(s, "x", 0), 0);
	snprintf(line, sizeof(line), "%s %-1087s\n", "0000000000000003",
		 "0000000000000001 0000000000000002");
	plant(".store.cursor", line);
	c = opened_cursor(s, false);
	assert_int_equal(c.next, 3);
	assert_int_equal(c.open_cnt, 2);
	cursor__close(&c);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		memset(line, ' ', sizeof(line));
		memcpy(line, bad[i].next, strlen(bad[i].next));
		memcpy(line + 17, bad[i].open, strlen(bad[i].open));
		line[bad[i].sz - 1] = bad[i].end;
		line[bad[i].sz] = '\0';
		plant(".store.cursor", line);
		c = opened_cursor(s, true);
		assert_int_equal(c.next, 4);
		assert_int_equal(c.open_cnt, 0);
		cursor__close(&c);
		c = opened_cursor(s, false);
		assert_int_equal(c.next, 4);
		cursor__close(&c);
	}
	assert_true(cursor_is_name("pyro-1.b_C"));
	assert_false(cursor_is_name(""));
	assert_false(cursor_is_name(".x"));
	assert_false(cursor_is_name("a/b"));
	assert_false(cursor_is_name("012345678901234567890123456789012345678901234567"));
	spool__close(s);
}

/* ---- labels ---- */

static void labels_are_kept(void **state)
{
	struct labels l = { 0 }, got;
	char *data, *copy, value[3000];
	size_t sz;

	(void)state;
	memset(value, 'v', sizeof(value) - 1);
	value[sizeof(value) - 1] = '\0';
	labels__add(&l, "service_name", "redis");
	labels__add(&l, "pod", NULL);
	labels__add(&l, "unit", "");
	labels__add(&l, "bad", "a\nb\x1b[2J\xff");
	labels__add(&l, "long", value);
	assert_int_equal(l.cnt, 3);
	assert_int_equal(labels__encode(&l, &data, &sz), 0);
	assert_int_equal(labels__decode(data, sz, &got), 0);
	assert_int_equal(got.cnt, 3);
	assert_string_equal(labels__get(&got, "service_name"), "redis");
	assert_string_equal(labels__get(&got, "bad"),
			    "a\xef\xbf\xbd"
			    "b\xef\xbf\xbd[2J\xef\xbf\xbd");
	assert_in_range(strlen(labels__get(&got, "long")), LABELS_MAX_VALUE - 4,
			LABELS_MAX_VALUE - 1);
	assert_null(labels__get(&got, "pod"));
	/* cut anywhere: refused, or fewer of them; in memory of just this size, for the sanitizer */
	for (size_t n = 0; n < sz; n++) {
		copy = malloc(n ? n : 1);
		memcpy(copy, data, n);
		assert_true(labels__decode(copy, n, &got) == -EBADMSG || got.cnt < 3);
		free(copy);
	}
	assert_int_equal(labels__decode("\0v", 3, &got), -EBADMSG);
	free(data);
	/* more than there is room for */
	l.cnt = 0;
	for (int i = 0; i < LABELS_MAX + 3; i++)
		labels__add(&l, "k", "v");
	assert_int_equal(l.cnt, LABELS_MAX);
	copy = malloc(4 * (LABELS_MAX + 1));
	for (int i = 0; i <= LABELS_MAX; i++)
		memcpy(copy + 4 * i, "k\0v", 4);
	assert_int_equal(labels__decode(copy, 4 * LABELS_MAX, &got), 0);
	assert_int_equal(labels__decode(copy, 4 * LABELS_MAX + 4, &got), -EBADMSG);
	free(copy);
}

static int setup(void **state)
{
	(void)state;
	snprintf(base, sizeof(base), "/tmp/test_spool.XXXXXX");
	snprintf(folder, sizeof(folder), "%s/spool", mkdtemp(base));
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_are_files),    TEST(the_oldest_go),
		TEST(numbers_go_on),	    TEST(writing_fails),
		TEST(the_disk_is_full),	    TEST(the_disk_is_full_at_the_start),
		TEST(the_quota_is_reached), TEST(the_folder_is_ours),
		TEST(records_are_found),    TEST(files_are_named_anew),
		TEST(names_are_kept_once),  TEST(cursors_are_kept),
		TEST(cursors_go_on),	    TEST(cursors_may_be_damaged),
		TEST(labels_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
