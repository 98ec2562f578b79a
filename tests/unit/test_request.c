// SPDX-License-Identifier: BSD-2-Clause
/* courier/request and courier/query: what is asked for, by whom, and the sentences of net/http/pprof. */
#include "courier/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/util.h"
#include "courier/endpoints.h"
#include "courier/index_page.h"
#include "courier/query.h"
#include "courier/serve_wire.h"

#define SERVED 77

static char text[256];

/* ---- queries ---- */

static const char *get(const char *query, const char *key)
{
	static char ret[8];

	return query_get(query, key, ret, sizeof(ret)) ? ret : NULL;
}

static void test_query(void **state)
{
	(void)state;
	assert_string_equal(get("a=1&b=2", "b"), "2");
	assert_string_equal(get("a=1&a=2", "a"), "1");
	assert_string_equal(get("a", "a"), "");
	assert_string_equal(get("a=&a=2", "a"), "");
	assert_string_equal(get("%61=%41+b%2B", "a"), "A b+");
	assert_string_equal(get("&&a=b=c", "a"), "b=c");
	assert_null(get("", "a"));
	assert_null(get("ab=1", "a"));
	/* what cannot be taken is passed over */
	assert_string_equal(get("a=%zz&a=%4&a=%&a=1;b&a=%00&a=12345678&a=2", "a"), "2");
	assert_null(get("a=%", "a"));
	assert_string_equal(get("a=1234567", "a"), "1234567");
}

static void test_numbers(void **state)
{
	static const char *const none[] = { "",
					    "+",
					    "-",
					    "1 ",
					    " 1",
					    "1x",
					    "0x1",
					    "1_0",
					    "1.5",
					    "9223372036854775808",
					    "-9223372036854775809" };
	int64_t n;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(none); i++)
		assert_false(query_parse_int(none[i], &n));
	assert_true(query_parse_int("+5", &n) && n == 5);
	assert_true(query_parse_int("-05", &n) && n == -5);
	assert_true(query_parse_int("9223372036854775807", &n) && n == INT64_MAX);
	assert_true(query_parse_int("-9223372036854775808", &n) && n == INT64_MIN);
}

/* ---- requests ---- */

static struct request asked(const char *name, const char *query)
{
	struct request r;

	if (request_parse(name, query, "", SERVED, &r, text, sizeof(text)) != 200)
		fail_msg("%s?%s: %s", name, query, text);
	return r;
}

static void test_right(void **state)
{
	(void)state;
	assert_int_equal(asked("profile", "").seconds, 30);
	assert_int_equal(asked("profile", "seconds=5&hz=500").seconds, 5);
	assert_int_equal(asked("profile", "seconds=5&hz=500").hz, 500);
	/* of this one anything else is what it is by default */
	assert_int_equal(asked("profile", "seconds=x").seconds, 30);
	assert_int_equal(asked("profile", "seconds=-1").seconds, 30);
	assert_int_equal(asked("profile", "seconds=5&debug=1").debug, 0);
	assert_int_equal(asked("heap", "").seconds, 0);
	assert_int_equal(asked("heap", "seconds=").seconds, 0);
	assert_int_equal(asked("heap", "gc=1&seconds=3600").seconds, 3600);
	assert_int_equal(asked("goroutine", "seconds=3").seconds, 3);
	assert_int_equal(asked("heap", "debug=1").debug, 1);
	assert_int_equal(asked("goroutine", "debug=2").debug, 2);
	assert_int_equal(asked("goroutine", "debug=3").debug, 2);
	assert_int_equal(asked("heap", "debug=7").debug, 2);
	assert_int_equal(asked("heap", "debug=-1").debug, 1);
	assert_int_equal(asked("heap", "debug=x").debug, 0);
	assert_int_equal(asked("heap", "").pid, SERVED);
	assert_int_equal(asked("heap", "pid=77").pid, SERVED);
	assert_string_equal(asked("allocs", "").endpoint->default_type, "alloc_space");
	assert_string_equal(asked("custom/example.org/net.buf", "seconds=5").endpoint->kind,
			    "custom");
	assert_string_equal(asked("custom/example.org/net.buf", "").name, "example.org/net.buf");
	assert_string_equal(asked("heap", "").name, "");
}

/* The status, and text. */
static unsigned int refused(const char *name, const char *query, uint32_t served)
{
	struct request r;

	return request_parse(name, query, "", served, &r, text, sizeof(text));
}

static void test_wrong(void **state)
{
	static const struct {
		const char *name, *query;
		unsigned int status;
		const char *text;
	} rows[] = {
		{ "nothing", "", 404, "Unknown profile" },
		{ "heap/", "", 404, "Unknown profile" },
		{ "../../etc/passwd", "", 404, "Unknown profile" },
		{ "custom", "", 404, "Unknown profile" },
		{ "custom/", "", 404, "Unknown profile" },
		{ "custom/aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffff1234", "",
		  404, "Unknown profile" },
		{ "heap", "seconds=x", 400,
		  "invalid value for \"seconds\" - must be a positive integer" },
		{ "heap", "seconds=0&debug=1", 400,
		  "invalid value for \"seconds\" - must be a positive integer" },
		{ "goroutine", "seconds=1&debug=1", 400,
		  "seconds and debug params are incompatible" },
		{ "heap", "seconds=3601&debug=1", 400,
		  "profile duration exceeds server's WriteTimeout" },
		{ "profile", "seconds=3601", 400,
		  "profile duration exceeds server's WriteTimeout" },
		{ "heap", "seconds=1&debug=1", 400, "seconds and debug params are incompatible" },
		{ "profile", "hz=0", 400,
		  "invalid value for \"hz\" - must be an integer from 1 to 10000" },
		{ "profile", "hz=10001", 400,
		  "invalid value for \"hz\" - must be an integer from 1 to 10000" },
		{ "heap", "pid=0", 400, "invalid value for \"pid\" - must be a positive integer" },
		{ "heap", "pid=4294967373", 400,
		  "invalid value for \"pid\" - must be a positive integer" },
		{ "heap", "pid=78", 404, "process 78 is not served, but 77 alone" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(refused(rows[i].name, rows[i].query, SERVED), rows[i].status);
		assert_string_equal(text, rows[i].text);
	}
	/* where no process was named */
	assert_int_equal(refused("cmdline", "", 0), 400);
	assert_int_equal(refused("", "", 0), 200);
	assert_int_equal(refused("heap", "pid=78", 0), 200);
}

static void test_form(void **state)
{
	struct request r;

	(void)state;
	assert_int_equal(request_parse("profile", "seconds=1&hz=5", "seconds=2", SERVED, &r, text,
				       sizeof(text)),
			 200);
	assert_int_equal(r.seconds, 2);
	assert_int_equal(r.hz, 5);
}

static void test_addresses(void **state)
{
	uint64_t got[4];

	(void)state;
	assert_int_equal(request_addresses("0x10+0xffffffffffffffff&17+x+-1+0+0x1g+ 5+", got, 4),
			 3);
	assert_int_equal(got[0], 0x10);
	assert_int_equal(got[1], UINT64_MAX);
	assert_int_equal(got[2], 17);
	assert_int_equal(request_addresses("1+2+3+4+5", got, 4), 4);
	assert_int_equal(request_addresses("", got, 4), 0);
	assert_int_equal(request_addresses("++&&", got, 4), 0);
}

/* ---- who may ask ---- */

static void test_host(void **state)
{
	static const char *const local[] = { "localhost",   "LocalHost:6060", "127.0.0.1",
					     "10.1.2.3:80", "[::1]",	      "[::1]:6060" };
	static const char *const others[] = { "",
					      ":80",
					      "evil.example",
					      "[::1]x",
					      "[::1",
					      "[localhost]",
					      "::1",
					      "localhost.evil",
					      "127.0.0.1.evil",
					      "127.0.0.1 " };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(local); i++)
		if (!request_host_is_local(local[i]))
			fail_msg("%s", local[i]);
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (request_host_is_local(others[i]))
			fail_msg("%s", others[i]);
}

static void test_token(void **state)
{
	static const char token[] = "secret:1";

	(void)state;
	assert_true(request_is_token("secret:1", token));
	assert_false(request_is_token("", token));
	assert_false(request_is_token("secret:", token));
	assert_false(request_is_token("secret:12", token));
	assert_false(request_is_token("secret:1secret:1", token));
	assert_false(request_is_token("secret:2", token));
	assert_false(request_is_token("secret:1", ""));
}

/* What a stranger sends, in memory that ends where it ends. */
static void test_anything(void **state)
{
	static const char bytes[] = "%%%&&==++;:[].0x19aAfF gzseconds-\xff\x01";
	uint64_t random = 1, got[4];
	char value[8];

	(void)state;
	for (int i = 0; i < 20000; i++) {
		size_t sz = random >> 60;
		char *s = malloc(sz + 1);
		struct request r;

		assert_non_null(s);
		for (size_t k = 0; k < sz; k++) {
			random = random * 6364136223846793005 + 1442695040888963407;
			s[k] = bytes[(random >> 33) % (sizeof(bytes) - 1)];
		}
		s[sz] = '\0';
		random = random * 6364136223846793005 + 1442695040888963407;
		(void)query_get(s, "a", value, sizeof(value));
		(void)request_parse("heap", s, s, SERVED, &r, text, sizeof(text));
		assert_true(request_addresses(s, got, ARRAY_SIZE(got)) <= ARRAY_SIZE(got));
		(void)request_host_is_local(s);
		(void)request_is_token(s, "token");
		free(s);
	}
}

/* ---- the page ---- */

static void test_page(void **state)
{
	uint64_t counts[ENDPOINTS_MAX] = { 0 };
	size_t sz, row;
	struct index_page page_of = { .pid = 7, .counts = counts };
	static const struct serve_custom custom[] = { { 12, "example.org/net.conn" },
						      { 0, "a:b" } };
	char *page;

	(void)state;
	row = (size_t)(endpoint_find("heap") - endpoints);
	counts[row] = 12345;
	page = index_page(&page_of, &sz);
	assert_int_equal(strlen(page), sz);
	assert_non_null(strstr(page, "<td>12345</td><td><a href='heap?debug=1'>heap</a>"));
	assert_non_null(strstr(page, "href='profile'"));
	assert_non_null(strstr(page, "href='goroutine?debug=2'"));
	for (size_t i = 1; i < endpoint_cnt; i++) {
		char link[64];

		if (endpoints[i].named)
			continue;
		snprintf(link, sizeof(link), ">%s</a>", endpoints[i].name);
		assert_non_null(strstr(page, link));
	}
	free(page);
	page_of = (struct index_page){ .pid = 7, .named = true, .counts = counts };
	page_of.custom = custom;
	page_of.custom_cnt = ARRAY_SIZE(custom);
	page = index_page(&page_of, &sz);
	assert_non_null(strstr(page,
			       "<td>12</td><td><a href='custom/example.org/net.conn?debug=1&amp;"
			       "pid=7'>custom/example.org/net.conn</a>"));
	assert_non_null(strstr(page, "<td>0</td><td><a href='custom/a:b?"));
	assert_non_null(strstr(page, "href='heap?debug=1&amp;pid=7'"));
	assert_non_null(strstr(page, "href='profile?pid=7'"));
	assert_non_null(strstr(page, "href='goroutine?debug=2&amp;pid=7'"));
	free(page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_query),	  cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_right),	  cmocka_unit_test(test_wrong),
		cmocka_unit_test(test_addresses), cmocka_unit_test(test_form),
		cmocka_unit_test(test_host),	  cmocka_unit_test(test_token),
		cmocka_unit_test(test_anything),  cmocka_unit_test(test_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
