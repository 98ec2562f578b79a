/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/util, base/sorted and base/log; UTF-8 is checked against iconv. */
#include <errno.h>
#include <fcntl.h>
#include <iconv.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/large_pages.h"
#include "base/log.h"
#include "base/sorted.h"
#include "base/util.h"

#define FFFD "\xef\xbf\xbd"

static void reserve_grows(void **state)
{
	uint32_t *a = NULL;
	size_t cap = 0, i, before, moves = 0;

	(void)state;
	for (i = 0; i < 100000; i++) {
		before = cap;
		assert_int_equal(util_reserve(&a, &cap, i + 1, sizeof(*a)), 0);
		assert_true(cap > i);
		moves += cap != before;
		a[i] = (uint32_t)i;
	}
	assert_true(moves < 40);
	for (i = 0; i < 100000; i++)
		assert_int_equal(a[i], i);
	free(a);
}

static void reserve_zeroes(void **state)
{
	uint32_t *a = NULL;
	size_t cap = 0, last = 0;

	(void)state;
	for (size_t idx = 0; idx < 1000; idx += 37) {
		assert_int_equal(util_reserve_zeroed(&a, &cap, idx, sizeof(*a)), 0);
		assert_true(cap > idx);
		for (size_t i = last; i < cap; i++)
			assert_int_equal(a[i], 0);
		/* what is there stays */
		memset(a, 0xff, cap * sizeof(*a));
		last = cap;
	}
	assert_int_equal(util_reserve_zeroed(&a, &cap, SIZE_MAX, 1), -ENOMEM);
	free(a);
}

/* Is it in a mapping that is to have large pages? */
static bool has_large_pages(const void *at)
{
	uint64_t begin, end;
	char line[512];
	bool in = false, found = false;
	FILE *f = fopen("/proc/self/smaps", "re");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &begin, &end) == 2)
			in = (uintptr_t)at >= begin && (uintptr_t)at < end;
		else if (in && !strncmp(line, "VmFlags:", 8))
			found = strstr(line, " hg") != NULL;
	}
	fclose(f);
	return found;
}

static void large_arrays_have_large_pages(void **state)
{
	size_t cap[2] = { 0 }, sz = 8U << 20;
	char *a[2] = { NULL };

	(void)state;
	if (access("/sys/kernel/mm/transparent_hugepage", F_OK))
		skip();
	assert_int_equal(util_reserve(&a[0], &cap[0], sz, 1), 0);
	assert_false(has_large_pages(a[0] + sz / 2));
	large_pages__prefer();
	assert_int_equal(util_reserve(&a[1], &cap[1], sz, 1), 0);
	memset(a[1], 'x', sz);
	assert_int_equal(util_reserve(&a[1], &cap[1], 4 * sz, 1), 0);
	assert_true(has_large_pages(a[1] + sz / 2) && has_large_pages(a[1] + 3 * sz));
	for (size_t i = 0; i < sz; i++)
		assert_int_equal(a[1][i], 'x');
	free(a[0]);
	free(a[1]);
}

static void reserve_refuses(void **state)
{
	size_t cap = 0;
	char *a = NULL;

	(void)state;
	assert_int_equal(util_reserve(&a, &cap, SIZE_MAX / 2, 16), -ENOMEM);
	assert_int_equal(util_reserve(&a, &cap, SIZE_MAX / 2 + 2, 2), -ENOMEM);
	assert_null(a);
	assert_int_equal(cap, 0);
	assert_int_equal(util_reserve(&a, &cap, 0, 16), 0);
	assert_null(a);
}

static void file_make(char path[static 32], const void *data, size_t sz)
{
	int fd;

	strcpy(path, "/tmp/bpfprof-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, sz), sz);
	close(fd);
}

static void file_is_read(void **state)
{
	char path[32], data[10000], *buf = NULL;
	size_t sz = 0, i;

	(void)state;
	for (i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7);
	file_make(path, data, sizeof(data));
	assert_int_equal(util_read_file(path, sizeof(data), &buf, &sz), 0);
	assert_int_equal(sz, sizeof(data));
	assert_memory_equal(buf, data, sz);
	assert_int_equal(buf[sz], 0);
	free(buf);
	assert_int_equal(util_read_file(path, sizeof(data) - 1, &buf, &sz), -EFBIG);
	assert_int_equal(util_read_file(path, 0, &buf, &sz), -EFBIG);
	unlink(path);
	assert_int_equal(util_read_file(path, 100, &buf, &sz), -ENOENT);
	assert_int_equal(util_read_file("/tmp", 100, &buf, &sz), -EISDIR);
	assert_int_equal(util_read_file("/dev/null", 0, &buf, &sz), 0);
	assert_int_equal(sz, 0);
	assert_string_equal(buf, "");
	free(buf);
	/* a file whose size stat does not know */
	assert_int_equal(util_read_file("/proc/self/status", 1 << 20, &buf, &sz), 0);
	assert_memory_equal(buf, "Name:\t", 6);
	assert_int_equal(strlen(buf), sz);
	free(buf);
}

static void pread_is_full(void **state)
{
	char path[32], buf[4];
	int fd;

	(void)state;
	file_make(path, "abcdefgh", 8);
	fd = open(path, O_RDONLY);
	unlink(path);
	assert_int_equal(util_pread_full(fd, buf, 4, 4), 0);
	assert_memory_equal(buf, "efgh", 4);
	assert_int_equal(util_pread_full(fd, buf, 4, 5), -ENODATA);
	assert_int_equal(util_pread_full(fd, buf, 0, 100), 0);
	assert_int_equal(util_pread_full(fd, buf, 4, UINT64_MAX - 1), -EINVAL);
	assert_int_equal(util_pread_full(fd, buf, 4, INT64_MAX), -EINVAL);
	close(fd);
	assert_int_equal(util_pread_full(-1, buf, 4, 0), -EBADF);
}

static void programs_are_found(void **state)
{
	char folder[] = "/tmp/bpfprof-test-XXXXXX", *before = strdup(getenv("PATH") ?: "");
	char path[64], name[64], dirs[64];

	(void)state;
	assert_non_null(before);
	assert_non_null(mkdtemp(folder));
	snprintf(dirs, sizeof(dirs), "/nonexistent:%s:/bin", folder);
	setenv("PATH", dirs, 1);
	assert_true(util_find_program("sh", path, sizeof(path)));
	assert_string_equal(path, "/bin/sh");
	assert_false(util_find_program("sh", path, strlen("/bin/sh")));
	/* a file that is no program, and a folder, are passed over */
	snprintf(name, sizeof(name), "%s/sh", folder);
	assert_int_equal(close(creat(name, 0600)), 0);
	assert_true(util_find_program("sh", path, sizeof(path)));
	assert_string_equal(path, "/bin/sh");
	unlink(name);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_true(util_find_program("sh", path, sizeof(path)));
	assert_string_equal(path, "/bin/sh");
	rmdir(name);
	rmdir(folder);
	assert_false(util_find_program("nonexistent-program", path, sizeof(path)));
	/* PATH is not asked for what has a slash, nor is it looked whether it is there */
	assert_true(util_find_program("./sh", path, sizeof(path)));
	assert_string_equal(path, "./sh");
	assert_false(util_find_program("./sh", path, strlen("./sh")));
	unsetenv("PATH");
	assert_true(util_find_program("sh", path, sizeof(path)));
	assert_string_equal(path, "/bin/sh");
	setenv("PATH", before, 1);
	free(before);
}

static void numbers_are_parsed(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint64_t v;
	} cases[] = {
		{ "0", 0, 0 },
		{ "007", 0, 7 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE, 0 },
		{ "99999999999999999999999999", -ERANGE, 0 },
		{ "", -EINVAL, 0 },
		{ " 1", -EINVAL, 0 },
		{ "1 ", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1;ls", -EINVAL, 0 },
		{ "abc", -EINVAL, 0 },
		{ "1e9", -EINVAL, 0 },
		{ "99999999999999999999999999x", -EINVAL, 0 },
	};
	uint64_t v;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		v = 12345;
		assert_int_equal(util_parse_u64(cases[i].text, 0, UINT64_MAX, &v), cases[i].err);
		assert_int_equal(v, cases[i].err ? 12345 : cases[i].v);
	}
	assert_int_equal(util_parse_u64("4", 5, 9, &v), -ERANGE);
	assert_int_equal(util_parse_u64("5", 5, 9, &v), 0);
	assert_int_equal(util_parse_u64("9", 5, 9, &v), 0);
	assert_int_equal(util_parse_u64("10", 5, 9, &v), -ERANGE);
}

static void percents_are_parsed(void **state)
{
	static const struct {
		const char *text;
		int err;
		double percent;
	} cases[] = {
		{ "0", 0, 0 },	       { "12", 0, 12 },	       { "0.5%", 0, 0.5 },
		{ "50", 0, 50 },       { "50.1", -EINVAL, 0 }, { "-1", -EINVAL, 0 },
		{ "nan", -EINVAL, 0 }, { "inf", -EINVAL, 0 },  { "", -EINVAL, 0 },
		{ "%", -EINVAL, 0 },   { "1%%", -EINVAL, 0 },  { "1 %", -EINVAL, 0 },
		{ "x", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		double percent = 0;

		if (util_parse_percent(cases[i].text, 50, &percent) != cases[i].err ||
		    percent != cases[i].percent)
			fail_msg("%s: %f", cases[i].text, percent);
	}
}

static void durations_are_parsed(void **state)
{
	static const struct {
		const char *text;
		int err;
		uint64_t ns;
	} cases[] = {
		{ "30", 0, 30000000000 },
		{ "30s", 0, 30000000000 },
		{ "500ms", 0, 500000000 },
		{ "1.5s", 0, 1500000000 },
		{ "10us", 0, 10000 },
		{ "2.5us", 0, 2500 },
		{ "0.0001us", -ERANGE, 0 },
		{ "7ns", 0, 7 },
		{ "1.5", 0, 1500000000 },
		{ "0.000000001", 0, 1 },
		{ "5m", 0, 300000000000 },
		{ "1h", 0, 3600000000000 },
		{ "0.5h", 0, 1800000000000 },
		{ "4611686018427387904", -ERANGE, 0 },
		{ "4611686018.427387904", 0, 1ULL << 62 },
		{ "4611686018.427387905", -ERANGE, 0 },
		{ "18446744073709551616s", -ERANGE, 0 },
		{ "0", -ERANGE, 0 },
		{ "0.0000000001", -ERANGE, 0 },
		{ "0.0000000000000000001", -EINVAL, 0 },
		{ "", -EINVAL, 0 },
		{ "s", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "1.", -EINVAL, 0 },
		{ ".5", -EINVAL, 0 },
		{ "1.5.5", -EINVAL, 0 },
		{ "5 m", -EINVAL, 0 },
		{ "5min", -EINVAL, 0 },
		{ "5mss", -EINVAL, 0 },
		{ "1e3", -EINVAL, 0 },
	};
	uint64_t ns;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ns = 77;
		if (util_parse_duration(cases[i].text, &ns) != cases[i].err)
			fail_msg("\"%s\"", cases[i].text);
		assert_int_equal(ns, cases[i].err ? 77 : cases[i].ns);
	}
}

static void sums_saturate(void **state)
{
	(void)state;
	assert_int_equal(util_add_saturated(2, -5), -3);
	assert_true(util_add_saturated(INT64_MAX, 1) == INT64_MAX);
	assert_true(util_add_saturated(INT64_MIN, -1) == INT64_MIN);
	assert_true(util_add_saturated(INT64_MAX, INT64_MIN) == -1);
}

/* Every key that there is, one more and one less, in arrays of all small sizes, with equals. */
static void bounds_are_found(void **state)
{
	static const uint64_t keys[] = { 0, 0, 1, 3, 3, 3, 7, 1ULL << 40, UINT64_MAX, UINT64_MAX };
	struct {
		uint32_t other;
		uint64_t key;
	} v[ARRAY_SIZE(keys)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		v[i].key = keys[i];
	for (size_t cnt = 0; cnt <= ARRAY_SIZE(keys); cnt++) {
		for (size_t i = 0; i < 3 * ARRAY_SIZE(keys); i++) {
			uint64_t key = keys[i / 3] + i % 3 - 1;
			size_t below = 0, equal = 0;

			for (size_t j = 0; j < cnt; j++) {
				below += keys[j] < key;
				equal += keys[j] == key;
			}
			assert_int_equal(SORTED_LOWER_BOUND(v, cnt, key, key), below);
			assert_int_equal(SORTED_UPPER_BOUND(v, cnt, key, key), below + equal);
			assert_int_equal(sorted_lower_bound(keys, cnt, key), below);
		}
	}
}

static void clocks_run(void **state)
{
	uint64_t a = util_monotonic_ns(), b = util_monotonic_ns();

	(void)state;
	assert_true(b >= a && a);
	/* later than the day this was written, before 2200 */
	assert_true(util_realtime_ns() > 1700000000 * NSEC_PER_SEC &&
		    util_realtime_ns() < 7258118400 * NSEC_PER_SEC);
}

static void hash_spreads(void **state)
{
	static unsigned char buckets[1 << 16];
	uint64_t hash, first, same = 0;
	char text[64], zeros[64] = { 0 };
	size_t i, used = 0;

	(void)state;
	for (i = 0; i < 1 << 16; i++) {
		snprintf(text, sizeof(text), "symbol_number_%zu", i);
		hash = util_hash(text, strlen(text), 1);
		used += !buckets[hash & 0xffff]++;
	}
	/* 65536 balls in as many boxes leave 1/e of these empty */
	assert_in_range(used, 41000, 41900);
	/* length and seed count, alignment and what follows do not */
	for (i = 1; i < sizeof(zeros); i++)
		assert_true(util_hash(zeros, i, 0) != util_hash(zeros, i - 1, 0));
	assert_true(util_hash("abc", 3, 0) != util_hash("abc", 3, 1));
	strcpy(text, "xabcdefghijklmnopqrstuvwxyz");
	first = util_hash(text + 1, 20, 9);
	memmove(text, text + 1, 20);
	text[20] = '#';
	assert_true(util_hash(text, 20, 9) == first);
	/* one bit of input changes about half of the output */
	for (i = 0; i < 160; i++) {
		text[i / 8] ^= (char)(1 << i % 8);
		same += (uint64_t)__builtin_popcountll(util_hash(text, 20, 9) ^ first);
		text[i / 8] ^= (char)(1 << i % 8);
	}
	assert_in_range(same / 160, 28, 36);
	(void)util_hash(NULL, 0, 0);
}

/* What iconv makes of the bytes: length of the first character, 0 if it is not valid. */
static size_t reference_utf8(iconv_t cd, const char *s, size_t sz, uint32_t *ret)
{
	size_t len, in_left, out_left, i;
	char *in, *out;

	for (len = 1; len <= sz && len <= 4; len++) {
		uint32_t cp[2] = { 0 };

		in = (char *)s;
		in_left = len;
		out = (char *)cp;
		out_left = sizeof(cp);
		iconv(cd, NULL, NULL, NULL, NULL);
		i = iconv(cd, &in, &in_left, &out, &out_left);
		if (i != (size_t)-1 && !in_left) {
			*ret = cp[0];
			return len;
		}
	}
	return 0;
}

static void utf8_agrees_with_iconv(void **state)
{
	static const unsigned char tails[] = { 0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90,
					       0x9f, 0xa0, 0xbf, 0xc0, 0xff };
	iconv_t cd = iconv_open("UTF-32LE", "UTF-8");
	size_t a, b, c, d, want, got, valid = 0;
	uint32_t want_cp, got_cp;

	(void)state;
	assert_true(cd != (iconv_t)-1);
	for (a = 1; a < 256; a++)
		for (b = 0; b < 256; b++)
			for (c = 0; c < ARRAY_SIZE(tails); c++)
				for (d = 0; d < ARRAY_SIZE(tails); d++) {
					const char s[] = { (char)a, (char)b, (char)tails[c],
							   (char)tails[d], 0 };

					want = reference_utf8(cd, s, strlen(s), &want_cp);
					got = util_utf8(s, &got_cp);
					if (want != got || (want && want_cp != got_cp))
						fail_msg("%02zx %02zx %02x %02x: %zu, not %zu", a,
							 b, tails[c], tails[d], got, want);
					valid += want > 1;
				}
	assert_true(valid > 1000);
	iconv_close(cd);
}

static void text_is_made_harmless(void **state)
{
	static const char *const cases[][2] = {
		{ "plain", "plain" },
		{ "", "" },
		{ "a\nb\tc", "a" FFFD "b" FFFD "c" },
		{ "\x1b[31mred\x7f", FFFD "[31mred" FFFD },
		{ "\xc2\x9b"
		  "1m",
		  FFFD "1m" }, /* CSI as one C1 character */
		{ "\x9b"
		  "1m",
		  FFFD "1m" }, /* and as a byte */
		{ "\xc2\xa0ok", "\xc2\xa0ok" },
		{ "Größe \xe2\x82\xac \xf0\x9f\x98\x80", "Größe \xe2\x82\xac \xf0\x9f\x98\x80" },
		{ "\xc0\xaf", FFFD FFFD },
		{ "\xe2\x82", FFFD FFFD },
		{ "\xed\xa0\x80", FFFD FFFD FFFD },
		{ "a\xe2\x80\xae"
		  "b\xe2\x80\xa8",
		  "a" FFFD "b" FFFD },
	};
	char out[128];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(util_printable(out, sizeof(out), cases[i][0]), cases[i][1]);
	/* cut between characters only, and never written beyond */
	for (i = 1; i < 8; i++) {
		memset(out, '#', sizeof(out));
		util_printable(out, i, "\xe2\x82\xac\xe2\x82\xac");
		assert_int_equal(strlen(out), (i - 1) / 3 * 3);
		assert_int_equal(out[i], '#');
	}
}

/* What a function prints to standard error, a pipe then; with the pipe in the environment as that of
 * the journal, if `journal` says so. */
static void said_by(void (*say)(void), bool journal, char *ret, size_t sz)
{
	int saved = dup(STDERR_FILENO), fds[2];
	struct stat st;
	char stream[64];
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(fstat(fds[1], &st), 0);
	snprintf(stream, sizeof(stream), "%ju:%ju", (uintmax_t)st.st_dev,
		 (uintmax_t)st.st_ino + !journal);
	assert_int_equal(setenv("JOURNAL_STREAM", stream, 1), 0);
	fflush(stderr);
	dup2(fds[1], STDERR_FILENO);
	say();
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(fds[1]);
	n = read(fds[0], ret, sz - 1);
	close(fds[0]);
	assert_true(n > 0);
	ret[n] = '\0';
}

static void say_some(void)
{
	log_set_level(LOG_INFO);
	errno = EXDEV;
	log_error("cannot open %s: %m", "a\nb\x1b[1m");
	log_info("%d", 7);
	log_debug("not shown");
	log_set_level(LOG_ERROR);
	log_info("not shown");
	log_set_level(LOG_DEBUG);
	log_debug("shown");
	assert_int_equal(errno, EXDEV);
	assert_int_equal(log_get_level(), LOG_DEBUG);
}

static void messages_are_lines(void **state)
{
	char text[1024];

	(void)state;
	said_by(say_some, false, text, sizeof(text));
	assert_string_equal(text, "bpfprof: cannot open a" FFFD "b" FFFD
				  "[1m: Invalid cross-device link\n"
				  "bpfprof: 7\nbpfprof: shown\n");
}

static void say_logfmt(void)
{
	log_use_logfmt();
	log_set_level(LOG_DEBUG);
	errno = EXDEV;
	log_error("%s: %m", "a \" level=info msg=\"\\\n");
	log_info("%s", "");
	log_debug("plain");
	assert_int_equal(errno, EXDEV);
}

/* A message as long as can be, of nothing but what takes two bytes. */
static void say_much(void)
{
	char text[10000];

	memset(text, '"', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_use_logfmt();
	log_error("%s", text);
}

/* The times of logfmt's lines, replaced by T; each is one from `from` to now. */
static void take_times(char *text, uint64_t from)
{
	static const char form[] = "%Y-%m-%dT%H:%M:%S";
	char *at = text, *out = text, *end;

	while (*at) {
		struct tm tm = { 0 };
		uint64_t ms;

		assert_memory_equal(at, "time=", 5);
		end = strptime(at + 5, form, &tm);
		assert_non_null(end);
		assert_int_equal(end[0], '.');
		assert_int_equal(strspn(end + 1, "0123456789"), 3);
		ms = (uint64_t)timegm(&tm) * 1000 + strtoul(end + 1, NULL, 10);
		assert_in_range(ms, from / 1000000, util_realtime_ns() / 1000000);
		assert_int_equal(end[4], 'Z');
		*out++ = 'T';
		for (at = end + 5; *at != '\n';)
			*out++ = *at++;
		*out++ = *at++;
	}
	*out = '\0';
}

static void messages_are_logfmt(void **state)
{
	static const char want[] =
		"a \\\" level=info msg=\\\"\\\\" FFFD ": Invalid cross-device link";
	char text[16384], expected[1024];
	uint64_t from = util_realtime_ns();

	(void)state;
	said_by(say_logfmt, false, text, sizeof(text));
	take_times(text, from);
	snprintf(expected, sizeof(expected),
		 "T level=error msg=\"%s\"\nT level=info msg=\"\"\nT level=debug msg=\"plain\"\n",
		 want);
	assert_string_equal(text, expected);

	said_by(say_logfmt, true, text, sizeof(text));
	snprintf(
		expected, sizeof(expected),
		"<3>level=error msg=\"%s\"\n<6>level=info msg=\"\"\n<7>level=debug msg=\"plain\"\n",
		want);
	assert_string_equal(text, expected);

	/* what is cut ends as well */
	said_by(say_much, true, text, sizeof(text));
	assert_true(strlen(text) > 12000);
	assert_string_equal(text + strlen(text) - 4, "\\\"\"\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reserve_grows),
		cmocka_unit_test(reserve_refuses),
		cmocka_unit_test(large_arrays_have_large_pages),
		cmocka_unit_test(reserve_zeroes),
		cmocka_unit_test(file_is_read),
		cmocka_unit_test(pread_is_full),
		cmocka_unit_test(programs_are_found),
		cmocka_unit_test(numbers_are_parsed),
		cmocka_unit_test(percents_are_parsed),
		cmocka_unit_test(durations_are_parsed),
		cmocka_unit_test(sums_saturate),
		cmocka_unit_test(bounds_are_found),
		cmocka_unit_test(clocks_run),
		cmocka_unit_test(hash_spreads),
		cmocka_unit_test(utf8_agrees_with_iconv),
		cmocka_unit_test(text_is_made_harmless),
		cmocka_unit_test(messages_are_lines),
		/* for good, so behind those */
		cmocka_unit_test(messages_are_logfmt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
