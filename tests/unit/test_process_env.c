// SPDX-License-Identifier: BSD-2-Clause
/* What environments say of services, and how texts that others choose are cleaned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "target/process_env.h"

#define R "\xef\xbf\xbd" /* U+FFFD */
#define ATTRIBUTES "OTEL_RESOURCE_ATTRIBUTES="

/* All but the NUL that a literal has by itself. */
#define ENVIRON(text)                                \
	{                                            \
		.data = text, .sz = sizeof(text) - 1 \
	}

static const struct {
	struct {
		const char *data;
		size_t sz;
	} env;
	const char *said[SAID_FACTS]; /* NULL: not */
} cases[] = {
	{ ENVIRON(""), { 0 } },
	{ ENVIRON("PATH=/bin\0OTEL_SERVICE_NAME=shop\0"), { "shop" } },
	/* the order */
	{ ENVIRON("DD_SERVICE=c\0" ATTRIBUTES "service.name=b\0OTEL_SERVICE_NAME=a\0"), { "a" } },
	{ ENVIRON("DD_SERVICE=c\0" ATTRIBUTES "service.name=b\0"), { "b" } },
	{ ENVIRON("DD_SERVICE=c\0" ATTRIBUTES "service.name=\0OTEL_SERVICE_NAME=\0"), { "c" } },
	/* what an SDK says that was told nothing */
	{ ENVIRON("OTEL_SERVICE_NAME=unknown_service\0DD_SERVICE=c\0"), { "c" } },
	{ ENVIRON("OTEL_SERVICE_NAME=unknown_service:java\0"), { 0 } },
	{ ENVIRON("OTEL_SERVICE_NAME=unknown_services\0"), { "unknown_services" } },
	/* the first of two, as for getenv */
	{ ENVIRON("OTEL_SERVICE_NAME=a\0OTEL_SERVICE_NAME=b\0"), { "a" } },
	/* a part of a name, of a value */
	{ ENVIRON("XOTEL_SERVICE_NAME=a\0OTEL_SERVICE_NAMES=b\0X=OTEL_SERVICE_NAME=c\0"), { 0 } },
	{ ENVIRON("OTEL_SERVICE_NAME\0=\0=a\0"), { 0 } },
	/* what may have been cut */
	{ ENVIRON("A=b\0OTEL_SERVICE_NAME=sho"), { 0 } },
	/* the other facts, by the attributes alone, and not without a name */
	{ ENVIRON(ATTRIBUTES "service.version=1.2,service.name=a,deployment.environment.name=prod,"
			     "service.namespace=team,service.instance.id=7,x=y\0"),
	  { "a", "team", "1.2", "prod" } },
	{ ENVIRON("OTEL_SERVICE_NAME=b\0" ATTRIBUTES
		  "deployment.environment=old,service.version=1.2,service.name=a\0"),
	  { "b", NULL, "1.2", "old" } },
	{ ENVIRON(ATTRIBUTES "service.version=1.2\0DD_SERVICE=a\0"), { "a", NULL, "1.2" } },
	{ ENVIRON(ATTRIBUTES "service.version=1.2\0"), { 0 } },
	/* blanks, percent-encoding */
	{ ENVIRON(ATTRIBUTES " service.name =\t a%20b%2c%3D%C3%A4 , service.version= 2 ,\0"),
	  { "a b,=\xc3\xa4", NULL, "2" } },
	{ ENVIRON(ATTRIBUTES "service%2Ename=a,,service.version=b=c\0"), { "a", NULL, "b=c" } },
	{ ENVIRON("OTEL_SERVICE_NAME= a%20b \0"), { "a%20b" } },
	/* not well formed: none of it */
	{ ENVIRON(ATTRIBUTES "service.name=a,b\0DD_SERVICE=c\0"), { "c" } },
	{ ENVIRON(ATTRIBUTES "service.name=a,=b\0"), { 0 } },
	{ ENVIRON(ATTRIBUTES "service.name=a,b=%\0"), { 0 } },
	{ ENVIRON(ATTRIBUTES "service.name=a%2\0"), { 0 } },
	{ ENVIRON(ATTRIBUTES "service.name=a%2g\0"), { 0 } },
	{ ENVIRON(ATTRIBUTES "service.name=a%\x10\x10\0"), { 0 } },
	{ ENVIRON(ATTRIBUTES "service.name=a,b=%00\0"), { 0 } },
	/* what would act on a terminal, or is no UTF-8 */
	{ ENVIRON("OTEL_SERVICE_NAME=a\x1b[1mb\n\0"), { "a" R "[1mb" } },
	{ ENVIRON("OTEL_SERVICE_NAME=a\xff"
		  "b\xe2\x80\xae\xc2\x9b\0"),
	  { "a" R "b" R R } },
	{ ENVIRON(ATTRIBUTES "service.name=a%0ab,service.version=%FF\0"), { "a" R "b", NULL, R } },
	/* blank */
	{ ENVIRON("OTEL_SERVICE_NAME= \t \0DD_SERVICE=c\0"), { "c" } },
};

static void need_said(const struct said *s, const char *const said[SAID_FACTS])
{
	assert_true(said__is_clean(s));
	for (size_t i = 0; i < SAID_FACTS; i++)
		assert_string_equal(s->text[i], said[i] ? said[i] : "");
}

static void environments(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		/* behind its end there is nothing that may be read */
		char *copy = malloc(cases[i].env.sz + !cases[i].env.sz);
		struct said s;

		memcpy(copy, cases[i].env.data, cases[i].env.sz);
		process_env_parse(copy, cases[i].env.sz, &s);
		need_said(&s, cases[i].said);
		free(copy);
	}
}

/* Cut at a character. */
static void long_texts(void **state)
{
	const size_t max = SAID_TEXT_SZ - 1;

	(void)state;
	for (size_t before = 0; before < 5; before++) {
		char text[2000] = "";
		struct said s = { 0 };
		size_t len;

		memset(text, 'a', before);
		for (size_t i = 0; i < 400; i++)
			strcat(text, "\xf0\x9f\x98\x80");
		said__put(&s, SAID_VERSION, text, strlen(text));
		len = strlen(s.text[SAID_VERSION]);
		assert_true(said__is_clean(&s));
		assert_int_equal(len, before + (max - before) / 4 * 4);
		assert_memory_equal(s.text[SAID_VERSION], text, len);
	}
	/* three bytes for each that is no character */
	for (size_t cnt = 80; cnt < 300; cnt++) {
		char text[300];
		struct said s = { 0 };

		memset(text, 0xff, cnt);
		said__put(&s, SAID_SERVICE, text, cnt);
		assert_true(said__is_clean(&s));
		assert_int_equal(strlen(s.text[SAID_SERVICE]), 3 * MIN(cnt, max / 3));
	}
}

static void clean(void **state)
{
	struct said s = { 0 };

	(void)state;
	assert_true(said__is_clean(&s));
	strcpy(s.text[SAID_SERVICE], "shop");
	assert_true(said__is_clean(&s));
	s.text[SAID_VERSION][1] = 'x';
	assert_false(said__is_clean(&s));
	strcpy(s.text[SAID_VERSION], "\t");
	assert_false(said__is_clean(&s));
	strcpy(s.text[SAID_VERSION], "\xff");
	assert_false(said__is_clean(&s));
	memset(s.text[SAID_VERSION], 'x', SAID_TEXT_SZ);
	assert_false(said__is_clean(&s));
	s.text[SAID_VERSION][SAID_TEXT_SZ - 1] = '\0';
	assert_true(said__is_clean(&s));
}

/* A file in the place of /proc/PID/environ: `before` bytes of another variable, then one that counts. */
static int read_file(size_t before, struct said *ret)
{
	static const char name[] = "OTEL_SERVICE_NAME=shop";
	char *data = calloc(1, before + sizeof(name));
	int fd = memfd_create("environ", MFD_CLOEXEC), err;

	memset(data, 'x', before ? before - 1 : 0);
	memcpy(data + before, name, sizeof(name));
	assert_int_equal(write(fd, data, before + sizeof(name)), before + sizeof(name));
	err = process_env_read(fd, ret);
	close(fd);
	free(data);
	return err;
}

static void files(void **state)
{
	static const char *const none[SAID_FACTS] = { 0 }, *const shop[SAID_FACTS] = { "shop" };
	const size_t own = sizeof("OTEL_SERVICE_NAME=shop");
	int fd = memfd_create("environ", MFD_CLOEXEC);
	struct said s;

	(void)state;
	assert_int_equal(process_env_read(fd, &s), -ENODATA);
	need_said(&s, none);
	close(fd);
	assert_int_equal(process_env_read(-1, &s), -EBADF);
	need_said(&s, none);
	assert_int_equal(read_file(0, &s), 0);
	need_said(&s, shop);
	/* up to what is read at most, and a byte behind it */
	assert_int_equal(read_file(PROCESS_ENV_MAX - own, &s), 0);
	need_said(&s, shop);
	assert_int_equal(read_file(PROCESS_ENV_MAX - own + 1, &s), 0);
	need_said(&s, none);
	assert_int_equal(read_file(16 * PROCESS_ENV_MAX, &s), 0);
	need_said(&s, none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(environments),
		cmocka_unit_test(long_texts),
		cmocka_unit_test(clean),
		cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
