/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of base/json. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>

#include "base/json.h"
#include "base/util.h"

static char *text;
static size_t text_sz;
static struct json j;

static void begin(void)
{
	j = (struct json){ .f = open_memstream(&text, &text_sz) };
	assert_non_null(j.f);
}

/* What was written is `want`, and nothing else. */
static void is(const char *want)
{
	assert_int_equal(fclose(j.f), 0);
	assert_string_equal(text, want);
	assert_int_equal(text_sz, strlen(want));
	free(text);
}

static void values_alone(void **state)
{
	(void)state;
	begin();
	json__u64(&j, NULL, UINT64_MAX);
	is("18446744073709551615");
	begin();
	json__bool(&j, NULL, false);
	is("false");
	begin();
	json__begin_object(&j, NULL);
	json__end_object(&j);
	is("{}");
	begin();
	json__begin_array(&j, NULL);
	json__end_array(&j);
	is("[]");
}

static void commas_stand_between(void **state)
{
	(void)state;
	begin();
	json__begin_object(&j, NULL);
	json__u64(&j, "a", 0);
	json__begin_object(&j, "none");
	json__end_object(&j);
	json__begin_array(&j, "list");
	json__u64(&j, NULL, 1);
	json__begin_array(&j, NULL);
	json__end_array(&j);
	json__begin_object(&j, NULL);
	json__bool(&j, "yes", true);
	json__string(&j, "name", "x");
	json__end_object(&j);
	json__string(&j, NULL, "");
	json__end_array(&j);
	json__double(&j, "last", 0.5);
	json__end_object(&j);
	is("{\"a\":0,\"none\":{},\"list\":[1,[],{\"yes\":true,\"name\":\"x\"},\"\"],\"last\":0.5}");
}

static void strings_are_escaped(void **state)
{
	static const struct {
		const char *s, *want;
	} rows[] = {
		{ "", "\"\"" },
		{ "a/b c", "\"a/b c\"" },
		{ "\"\\", "\"\\\"\\\\\"" },
		{ "\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"" },
		{ "\x01\x1b[m\x1f", "\"\\u0001\\u001b[m\\u001f\"" },
		{ "\x7f", "\"\x7f\"" },
		{ "\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\x9d", /* 2, 3 and 4 bytes */
		  "\"\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\x9d\"" },
		{ "\xc3", "\"\xef\xbf\xbd\"" },			/* cut */
		{ "\xff\"", "\"\xef\xbf\xbd\\\"\"" },		/* in no character */
		{ "\xc3\"", "\"\xef\xbf\xbd\\\"\"" },		/* cut before a quote */
		{ "\xc0\xa2", "\"\xef\xbf\xbd\xef\xbf\xbd\"" }, /* a quote, overlong */
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" }, /* a surrogate */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin();
		json__string(&j, NULL, rows[i].s);
		is(rows[i].want);
	}
	begin();
	json__begin_object(&j, NULL);
	json__bool(&j, "\"\n", true);
	json__end_object(&j);
	is("{\"\\\"\\n\":true}");
}

static void html_is_escaped_too(void **state)
{
	(void)state;
	begin();
	j.in_html = true;
	json__begin_object(&j, NULL);
	json__string(&j, "<b>",
		     "</script><!--&amp;\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaa\"\\\n\x01\xff");
	json__end_object(&j);
	is("{\"\\u003cb\\u003e\":\"\\u003c/script\\u003e\\u003c!--\\u0026amp;\\u2028\\u2029"
	   "\xe2\x80\xaa\\\"\\\\\\n\\u0001\xef\xbf\xbd\"}");
	begin();
	json__string(&j, NULL, "<&>");
	is("\"<&>\"");
}

/* Longer than any buffer that one would make for it. */
static void long_strings_are_whole(void **state)
{
	const size_t sz = 100000;
	char *s = malloc(sz + 1), *want = malloc(2 * sz + 3);

	(void)state;
	assert_non_null(s);
	assert_non_null(want);
	memset(s, '"', sz);
	s[sz] = '\0';
	want[0] = '"';
	for (size_t i = 0; i < sz; i++)
		memcpy(want + 1 + 2 * i, "\\\"", 2);
	strcpy(want + 1 + 2 * sz, "\"");
	begin();
	json__string(&j, NULL, s);
	is(want);
	free(s);
	free(want);
}

static void doubles_are_read_back(void **state)
{
	static const struct {
		double v;
		const char *want;
	} rows[] = {
		{ 0, "0" },	 { -0.25, "-0.25" },   { 0.1, "0.1" },	      { 1e300, "1e+300" },
		{ NAN, "null" }, { INFINITY, "null" }, { -INFINITY, "null" },
	};
	static const double hard[] = { 1.0 / 3, 0.1 + 0.2, DBL_MAX, DBL_MIN, 4.9e-324, -123456.7 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin();
		json__double(&j, NULL, rows[i].v);
		is(rows[i].want);
	}
	for (size_t i = 0; i < ARRAY_SIZE(hard); i++) {
		begin();
		json__double(&j, NULL, hard[i]);
		fclose(j.f);
		assert_true(strtod(text, NULL) == hard[i]);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_alone),	       cmocka_unit_test(commas_stand_between),
		cmocka_unit_test(strings_are_escaped), cmocka_unit_test(long_strings_are_whole),
		cmocka_unit_test(html_is_escaped_too), cmocka_unit_test(doubles_are_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
