/* SPDX-License-Identifier: BSD-2-Clause */
#include "spool/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "spool/spool.h"

#define WORDS (CURSOR_SPAN / 64)
#define DIGITS 16
#define LINE_SZ (DIGITS + 1 + CURSOR_SPAN / 4 + 1)

bool cursor_is_name(const char *name)
{
	size_t len = strlen(name);

	return len && len < CURSOR_NAME_SZ && name[0] != '.' &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
		       len;
}

static bool is_settled(const struct cursor *c, uint64_t ahead)
{
	return c->settled[ahead / 64] >> ahead % 64 & 1;
}

/* ---- the file ---- */

static int save(const struct cursor *c)
{
	char line[LINE_SZ + 1];
	int n = snprintf(line, sizeof(line), "%0*" PRIu64 " ", DIGITS, c->next);
	ssize_t written;

	for (size_t i = WORDS; i-- > 0;)
		n += snprintf(line + n, sizeof(line) - n, "%016" PRIx64, c->settled[i]);
	line[n++] = '\n';
	written = pwrite(c->fd, line, LINE_SZ, 0);
	return written == LINE_SZ ? 0 : written < 0 ? -errno : -EIO;
}

/* False: that is no such line. */
static bool parse(const char line[static LINE_SZ], struct cursor *c)
{
	char text[DIGITS + 1];

	if (line[DIGITS] != ' ' || line[LINE_SZ - 1] != '\n')
		return false;
	snprintf(text, sizeof(text), "%.*s", DIGITS, line);
	if (util_parse_u64(text, 1, UINT64_MAX, &c->next))
		return false;
	for (size_t i = 0; i < WORDS; i++) {
		snprintf(text, sizeof(text), "%.*s", DIGITS, line + DIGITS + 1 + i * DIGITS);
		if (strspn(text, "0123456789abcdef") != DIGITS)
			return false;
		c->settled[WORDS - 1 - i] = strtoull(text, NULL, 16);
	}
	/* the first that is not settled is `next` */
	return !is_settled(c, 0);
}

int cursor__open(struct cursor *c, const struct spool *s, const char *name, bool *ret_damaged)
{
	char file[CURSOR_NAME_SZ + 16], line[LINE_SZ + 1];
	ssize_t n;
	int err;

	*ret_damaged = false;
	snprintf(file, sizeof(file), ".%s.cursor", name);
	*c = (struct cursor){ .fd = spool__open_file(s, file) };
	if (c->fd < 0)
		return c->fd;
	n = pread(c->fd, line, sizeof(line), 0);
	if (n == LINE_SZ && parse(line, c) && c->next <= spool__end(s))
		return 0;
	*ret_damaged = n != 0;
	*c = (struct cursor){ .fd = c->fd, .next = spool__end(s) };
	err = n < 0 || ftruncate(c->fd, 0) ? -errno : save(c);
	if (err)
		cursor__close(c);
	return err;
}

void cursor__close(struct cursor *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

/* ---- */

bool cursor__may_take(const struct cursor *c, uint64_t number)
{
	return number >= c->next && number - c->next < CURSOR_SPAN &&
	       !is_settled(c, number - c->next);
}

/* One on; returns whether that one was settled. */
static bool advance(struct cursor *c)
{
	bool was = is_settled(c, 0);

	for (size_t i = 0; i < WORDS; i++)
		c->settled[i] = c->settled[i] >> 1 | (i + 1 < WORDS ? c->settled[i + 1] << 63 : 0);
	c->next++;
	return was;
}

static void advance_over_settled(struct cursor *c)
{
	while (is_settled(c, 0))
		(void)advance(c);
}

int cursor__settle(struct cursor *c, uint64_t number)
{
	uint64_t ahead = number - c->next;

	c->settled[ahead / 64] |= 1ULL << ahead % 64;
	advance_over_settled(c);
	return save(c);
}

uint64_t cursor__skip(struct cursor *c, uint64_t number)
{
	uint64_t missed = 0;

	if (number <= c->next)
		return 0;
	for (uint64_t i = 0; i < CURSOR_SPAN && c->next < number; i++)
		missed += !advance(c);
	missed += number - c->next;
	c->next = number;
	advance_over_settled(c);
	/* what is written with the next that is settled says the same */
	(void)save(c);
	return missed;
}
