// SPDX-License-Identifier: BSD-2-Clause
#include "target/process_env.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

/* A piece of text, without a NUL behind it. */
struct piece {
	const char *at;
	size_t sz;
};

/* What stands before the first c, which is passed over; all of it if there is none. */
static struct piece take_until(struct piece *from, char c)
{
	const char *end = from->sz ? memchr(from->at, c, from->sz) : NULL;
	struct piece ret = { from->at, end ? (size_t)(end - from->at) : from->sz };
	size_t taken = ret.sz + (end != NULL);

	from->at += taken;
	from->sz -= taken;
	return ret;
}

/* The value of a variable, of no bytes if it is not there. What has no NUL behind it may be cut. */
static struct piece find(const char *data, size_t sz, const char *name)
{
	struct piece rest = { data, sz };
	size_t len = strlen(name);

	while (rest.sz && memchr(rest.at, '\0', rest.sz)) {
		struct piece p = take_until(&rest, '\0');

		if (p.sz > len && p.at[len] == '=' && !memcmp(p.at, name, len))
			return (struct piece){ p.at + len + 1, p.sz - len - 1 };
	}
	return (struct piece){ 0 };
}

/* ---- OTEL_RESOURCE_ATTRIBUTES ---- */

/* Percent-decoding, RFC 3986 2.1; ret has room for p.sz bytes. False: it is not well formed, or
 * would have a NUL. */
static bool decode(struct piece p, char *ret, size_t *ret_sz)
{
	size_t n = 0;

	for (size_t i = 0; i < p.sz; i++) {
		int high, low;

		if (p.at[i] != '%') {
			ret[n++] = p.at[i];
			continue;
		}
		high = p.sz - i > 2 ? util_hex_digit(p.at[i + 1]) : -1;
		low = high >= 0 ? util_hex_digit(p.at[i + 2]) : -1;
		if (low < 0 || !(high | low))
			return false;
		ret[n++] = (char)(high << 4 | low);
		i += 2;
	}
	*ret_sz = n;
	return true;
}

static struct piece strip(struct piece p)
{
	while (p.sz && (*p.at == ' ' || *p.at == '\t')) {
		p.at++;
		p.sz--;
	}
	while (p.sz && (p.at[p.sz - 1] == ' ' || p.at[p.sz - 1] == '\t'))
		p.sz--;
	return p;
}

/* KEY=VALUE; scratch has room for all of it. False: it is not well formed. */
static bool take_attribute(struct piece p, char *scratch, struct said *ret)
{
	struct piece key;
	enum said_fact fact;
	size_t sz;

	if (!memchr(p.at, '=', p.sz))
		return false;
	key = strip(take_until(&p, '='));
	if (!key.sz || !decode(key, scratch, &sz))
		return false;
	fact = said_fact_of(scratch, sz);
	if (!decode(strip(p), scratch, &sz))
		return false;
	if (fact != SAID_FACTS)
		said__put(ret, fact, scratch, sz);
	return true;
}

/* KEY=VALUE,… Nothing is in *ret if it is not well formed, or if there is no memory. */
static void take_attributes(struct piece list, struct said *ret)
{
	char *scratch = malloc(list.sz + 1);
	bool good = scratch;

	*ret = (struct said){ 0 };
	while (good && list.sz) {
		struct piece p = strip(take_until(&list, ','));

		good = !p.sz || take_attribute(p, scratch, ret);
	}
	free(scratch);
	if (!good)
		*ret = (struct said){ 0 };
}

/* ---- all of it ---- */

static void put(struct said *s, const char *data, size_t sz, const char *variable)
{
	struct piece value = find(data, sz, variable);

	if (value.sz)
		said__put(s, SAID_SERVICE, value.at, value.sz);
}

void process_env_parse(const char *data, size_t sz, struct said *ret)
{
	struct said attributes;

	*ret = (struct said){ 0 };
	take_attributes(find(data, sz, "OTEL_RESOURCE_ATTRIBUTES"), &attributes);
	put(ret, data, sz, "OTEL_SERVICE_NAME");
	for (enum said_fact i = 0; i < SAID_FACTS; i++)
		said__put(ret, i, attributes.text[i], strlen(attributes.text[i]));
	put(ret, data, sz, "DD_SERVICE");
	if (!*ret->text[SAID_SERVICE])
		*ret = (struct said){ 0 };
}

int process_env_read(int fd, struct said *ret)
{
	/* one process after the other: to get fresh memory for each would take longer than to read it */
	static char buf[PROCESS_ENV_MAX];
	size_t sz = 0;
	ssize_t n = 1;
	int err = 0;

	*ret = (struct said){ 0 };
	while (!err && n && sz < PROCESS_ENV_MAX) {
		n = pread(fd, buf + sz, PROCESS_ENV_MAX - sz, (off_t)sz);
		if (n < 0)
			err = errno == EINTR ? 0 : -errno;
		else
			sz += (size_t)n;
	}
	if (!err && !sz)
		err = -ENODATA;
	if (!err)
		process_env_parse(buf, sz, ret);
	/* there may be secrets in it */
	explicit_bzero(buf, sz);
	return err;
}
