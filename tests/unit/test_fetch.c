/* SPDX-License-Identifier: BSD-2-Clause */
/* debuginfod/: which servers a variable names, and the folder of what they gave. What is asked of them is tested with
 * servers, in tests/e2e/test_debuginfod. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "courier/fetch_wire.h"
#include "debuginfod/cache.h"
#include "debuginfod/servers.h"
#include "toolrun.h"

static void test_servers(void **state)
{
	static const struct {
		const char *value, *urls; /* NULL: it is refused */
	} all[] = {
		{ "http://a", "http://a" },
		{ " https://a/b/  HTTP://c:1 \n", "https://a/b/ HTTP://c:1" },
		{ "ima:enforcing https://a ima:ignore", "https://a" },
		{ NULL, NULL },
		{ "", NULL },
		{ "ima:permissive", NULL },
		{ "http://", NULL },
		{ "http://a file:///b", NULL },
		{ "ftp://a", NULL },
		{ "a.example", NULL },
		{ "-o/etc/passwd", NULL },
	};
	char urls[FETCH_MAX_TEXT], many[FETCH_MAX_TEXT * 2] = "", text[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		assert_int_equal(
			servers_parse(all[i].value, urls, sizeof(urls), text, sizeof(text)),
			all[i].urls ? 0 : -EINVAL);
		if (all[i].urls)
			assert_string_equal(urls, all[i].urls);
		else
			assert_non_null(strstr(text, SERVERS_VARIABLE));
	}
	for (size_t i = 0; i < FETCH_MAX_SERVERS; i++)
		sprintf(many + strlen(many), "http://%0*zu ", FETCH_MAX_URL - 7, i);
	assert_int_equal(servers_parse(many, urls, sizeof(urls), text, sizeof(text)), 0);
	strcat(many, "http://a");
	assert_int_equal(servers_parse(many, urls, sizeof(urls), text, sizeof(text)), -EINVAL);
	sprintf(many, "http://%0*d", FETCH_MAX_URL - 6, 0);
	assert_int_equal(servers_parse(many, urls, sizeof(urls), text, sizeof(text)), -EINVAL);
}

#define FILE_SZ 100000

static struct cache *open_cache(uint64_t max_sz)
{
	struct cache *c;
	char text[512] = "";

	if (cache__open(toolrun_path("cache"), max_sz, &c, text, sizeof(text)))
		fail_msg("%s", text);
	return c;
}

static void add(struct cache *c, const char *id)
{
	static char data[FILE_SZ];
	struct cache_part part;
	uint64_t sz;

	assert_int_equal(cache__begin(c, &part), 0);
	assert_int_equal(write(part.fd, data, sizeof(data)), sizeof(data));
	assert_int_equal(cache__end(c, &part, id, &sz), 0);
	assert_int_equal(sz, FILE_SZ);
	assert_int_equal(part.fd, -1);
}

static bool has(struct cache *c, const char *id)
{
	int fd = cache__find(c, id);

	if (fd >= 0)
		close(fd);
	else
		assert_int_equal(fd, -ENOENT);
	return fd >= 0;
}

/* Some time ago. */
static void age(const char *id, int seconds)
{
	assert_true(toolrun("touch -d '%d seconds ago' cache/%s.debug", seconds, id));
}

static void test_cache(void **state)
{
	struct cache *c = open_cache(3 * FILE_SZ + FILE_SZ / 2), *other;
	struct cache_part part;
	uint64_t sz;

	(void)state;
	assert_false(has(c, "aa"));
	add(c, "aa");
	add(c, "bb");
	age("aa", 50);
	age("bb", 40);
	/* what is used again is not the oldest any more */
	assert_true(has(c, "aa"));
	add(c, "cc");
	age("cc", 30);
	add(c, "dd");
	assert_true(has(c, "aa") && !has(c, "bb") && has(c, "cc") && has(c, "dd"));
	/* what is being fetched counts, and is nobody else's to remove; what was left behind is */
	assert_true(toolrun("touch cache/.part-0123456789abcdef cache/foreign"));
	other = open_cache(FILE_SZ / 2);
	assert_int_equal(cache__begin(c, &part), 0);
	add(other, "ee");
	assert_true(has(c, "ee") && !has(c, "aa") && !has(c, "cc") && !has(c, "dd"));
	assert_true(toolrun("test ! -e cache/.part-0123456789abcdef -a -e cache/foreign"));
	assert_int_equal(faccessat(AT_FDCWD, toolrun_path("cache/.part-nothing"), F_OK, 0), -1);
	assert_true(toolrun("test $(ls -A cache | grep -c part-) = 1"));
	assert_int_equal(cache__end(c, &part, NULL, &sz), 0);
	assert_true(toolrun("test $(ls -A cache | grep -c part-) = 0"));
	cache__remove(c, "ee");
	assert_false(has(c, "ee"));
	cache__close(c);
	cache__close(other);
}

/* What is begun stays, whoever looks for what was left behind at that moment. */
static void test_at_once(void **state)
{
	struct cache *c = open_cache(FILE_SZ);
	struct cache_part part;
	uint64_t sz;
	int status, fd;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	while (!pid)
		if (cache__begin(c, &part) || cache__end(c, &part, "gg", &sz))
			_exit(1);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(cache__begin(c, &part), 0);
		fd = cache__look(c, &part);
		assert_true(fd >= 0);
		close(fd);
		assert_int_equal(cache__end(c, &part, NULL, &sz), 0);
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	cache__close(c);
	assert_true(toolrun("rm -rf cache"));
}

/* A link among its files leads nowhere. */
static void test_links(void **state)
{
	struct cache *c = open_cache(FILE_SZ);
	struct stat st;
	int fd;

	(void)state;
	assert_true(toolrun("ln -sf ../secret cache/ff.debug; echo x >secret"));
	fd = cache__find(c, "ff");
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	close(fd);
	add(c, "ff");
	assert_true(toolrun("test -f cache/ff.debug -a ! -L cache/ff.debug -a $(cat secret) = x"));
	cache__close(c);
}

static void test_folder(void **state)
{
	static const struct {
		const char *make;
		int err;
	} all[] = {
		{ "rm -rf cache", 0 },
		{ "chmod 0710 cache", -EPERM },
		{ "chmod 0702 cache", -EPERM },
		{ "chmod 0700 cache", 0 },
		{ "rm -rf cache; mkdir -m 0700 real; ln -s real cache", -ENOTDIR },
		{ "rm cache; touch cache", -ENOTDIR },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		struct cache *c = NULL;
		char text[512] = "";

		assert_true(toolrun("%s", all[i].make));
		assert_int_equal(
			cache__open(toolrun_path("cache"), FILE_SZ, &c, text, sizeof(text)),
			all[i].err);
		assert_true(!c == !!all[i].err && !*text == !all[i].err);
		cache__close(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_servers), cmocka_unit_test(test_cache),
		cmocka_unit_test(test_at_once), cmocka_unit_test(test_links),
		cmocka_unit_test(test_folder),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
