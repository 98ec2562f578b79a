/* SPDX-License-Identifier: BSD-2-Clause */
#include "spool/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "spool/spool.h"

#define DIGITS 16
#define NUMBER_SZ (DIGITS + 1) /* with what is behind it */
#define LINE_SZ ((1 + CURSOR_MAX_OPEN) * NUMBER_SZ)

_Static_assert(LINE_SZ <= 4096,
	       "one write of a page is whole or not there, also when it is killed");

bool cursor_is_name(const char *name)
{
	size_t len = strlen(name);

	return len && len < CURSOR_NAME_SZ && name[0] != '.' &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
		       len;
}

/* ---- the file ---- */

static void put_number(char *to, uint64_t number)
{
	char text[NUMBER_SZ + 8];

	snprintf(text, sizeof(text), "%0*" PRIu64, DIGITS, number);
	memcpy(to, text, DIGITS);
}

static int save(const struct cursor *c)
{
	char line[LINE_SZ];
	ssize_t written;

	memset(line, ' ', sizeof(line));
	put_number(line, c->next);
	for (size_t i = 0; i < c->open_cnt; i++)
		put_number(line + (1 + i) * NUMBER_SZ, c->open[i]);
	line[LINE_SZ - 1] = '\n';
	written = pwrite(c->fd, line, LINE_SZ, 0);
	return written == LINE_SZ ? 0 : written < 0 ? -errno : -EIO;
}

/* 0: there is none. -EINVAL: it is no number. */
static int get_number(const char *from, uint64_t *ret)
{
	char text[NUMBER_SZ];

	*ret = 0;
	snprintf(text, sizeof(text), "%.*s", DIGITS, from);
	if (strspn(text, " ") == DIGITS)
		return 0;
	return util_parse_u64(text, 1, UINT64_MAX, ret);
}

/* False: that is no such line. */
static bool parse(const char line[static LINE_SZ], struct cursor *c)
{
	uint64_t number;

	if (get_number(line, &c->next) || !c->next)
		return false;
	for (size_t i = 1; i <= CURSOR_MAX_OPEN; i++) {
		const char *at = line + i * NUMBER_SZ;

		if (at[-1] != ' ' || get_number(at, &number) || number >= c->next ||
		    (number && cursor__is_open(c, number)))
			return false;
		if (number)
			c->open[c->open_cnt++] = number;
	}
	return line[LINE_SZ - 1] == '\n';
}

int cursor__open(struct cursor *c, struct spool *s, const char *name, bool *ret_damaged)
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
	while (spool__make_room(s, err))
		err = save(c);
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

/* ---- records ---- */

void cursor__take(struct cursor *c, uint64_t number)
{
	c->open[c->open_cnt++] = number;
	c->next = number + 1;
}

bool cursor__is_open(const struct cursor *c, uint64_t number)
{
	for (size_t i = 0; i < c->open_cnt; i++)
		if (c->open[i] == number)
			return true;
	return false;
}

int cursor__settle(struct cursor *c, uint64_t number)
{
	for (size_t i = 0; i < c->open_cnt; i++)
		if (c->open[i] == number) {
			c->open[i] = c->open[--c->open_cnt];
			break;
		}
	return save(c);
}
