// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "custom/custom_wanted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/custom_sites.h"

#define KIND "custom"
#define REMOVE ",remove:"
#define MAX_ARG 6 /* that are passed in registers (psABI 3.2.3) */
#define SHOWN 64  /* bytes of what is wrong */

size_t custom_wanted_length(const char *list)
{
	size_t len = strcspn(list, ","), equals = strcspn(list, "=");

	if (equals < len && !strncmp(list + len, REMOVE, strlen(REMOVE)))
		len += 1 + strcspn(list + len + 1, ",");
	return len;
}

bool custom_wanted_is(const char *text, size_t len)
{
	size_t kind = strlen(KIND);

	return memchr(text, '=', len) ||
	       (len >= kind && !memcmp(text, KIND, kind) && (len == kind || text[kind] == ':'));
}

/* Splits the text at the colon, where none or another one follows: "::" is of a function's name. */
static char *split(char *text)
{
	for (char *c = strchr(text, ':'); c; c = strchr(c, ':')) {
		if (c[1] != ':') {
			*c = '\0';
			return c + 1;
		}
		c += 2;
	}
	return NULL;
}

static bool parse_where(const char *text, unsigned int *ret)
{
	uint64_t arg = 0;

	if (strcmp(text, "ret") &&
	    (strncmp(text, "arg", 3) || util_parse_u64(text + 3, 1, MAX_ARG, &arg)))
		return false;
	*ret = (unsigned int)arg;
	return true;
}

/* FILE:FUNCTION:WHERE */
static bool parse_function(char *text, struct custom_function *ret)
{
	char *where = strrchr(text, ':'), *function;

	if (!where)
		return false;
	*where++ = '\0';
	function = split(text);
	if (!function || !*text || !*function)
		return false;
	ret->file = text;
	ret->function = function;
	return parse_where(where, &ret->arg);
}

/* NAME=add:FILE:FUNCTION:WHERE,remove:FILE:FUNCTION:WHERE */
static bool parse_pair(char *text, struct custom_pair *ret)
{
	char *add = strchr(text, '='), *remove = strstr(text, REMOVE);

	if (!add || !remove || remove < add)
		return false;
	*add++ = '\0';
	*remove = '\0';
	ret->name = text;
	return !strncmp(add, "add:", 4) && parse_function(add + 4, &ret->add) &&
	       parse_function(remove + strlen(REMOVE), &ret->remove);
}

static int add_name(struct custom_wanted *w, const char *name, char *err, size_t err_sz)
{
	char shown[SHOWN];

	if (!custom_name_ok(name))
		return util_fail(-EINVAL, err, err_sz,
				 "'%s' is no name of a custom profile: 1 to %d letters, digits, "
				 "and . _ - / :",
				 util_printable(shown, sizeof(shown), name), CUSTOM_NAME_SZ - 1);
	w->names[w->name_cnt++] = name;
	return 0;
}

static int add_pair(struct custom_wanted *w, char *text, char *err, size_t err_sz)
{
	struct custom_pair *pair = &w->pairs[w->pair_cnt];
	char shown[SHOWN];

	util_printable(shown, sizeof(shown), text);
	if (!parse_pair(text, pair))
		return util_fail(-EINVAL, err, err_sz,
				 "'%s' is no pair of functions: write "
				 "NAME=add:FILE:FUNCTION:ret,remove:FILE:FUNCTION:arg1",
				 shown);
	for (size_t i = 0; i < w->pair_cnt; i++)
		if (!strcmp(w->pairs[i].name, pair->name))
			return util_fail(-EINVAL, err, err_sz, "'%s' is there twice", shown);
	if (add_name(w, pair->name, err, err_sz))
		return -EINVAL;
	w->pair_cnt++;
	return 0;
}

int custom_wanted__add(struct custom_wanted *w, const char *text, size_t len, char *err,
		       size_t err_sz)
{
	char *copy;
	int res;

	if (len == strlen(KIND) && !memchr(text, '=', len)) {
		w->all = true;
		return 0;
	}
	if (w->name_cnt == CUSTOM_WANTED_MAX)
		return util_fail(-EINVAL, err, err_sz, "more than %d custom profiles are named",
				 CUSTOM_WANTED_MAX);
	copy = strndup(text, len);
	if (!copy)
		return util_fail(-ENOMEM, err, err_sz, "out of memory");
	res = memchr(text, '=', len) ? add_pair(w, copy, err, err_sz) :
				       add_name(w, copy + strlen(KIND) + 1, err, err_sz);
	if (res)
		free(copy);
	else
		w->texts[w->name_cnt - 1] = copy;
	return res;
}

void custom_wanted__done(struct custom_wanted *w)
{
	for (size_t i = 0; i < w->name_cnt; i++)
		free(w->texts[i]);
	*w = (struct custom_wanted){ 0 };
}

bool custom_wanted__has(const struct custom_wanted *w, const char *name)
{
	for (size_t i = 0; i < w->name_cnt; i++)
		if (!strcmp(w->names[i], name))
			return true;
	return w->all;
}

size_t custom_wanted__cnt(const struct custom_wanted *w)
{
	return w->name_cnt;
}

const char *custom_wanted__name(const struct custom_wanted *w, size_t i)
{
	return i < w->name_cnt ? w->names[i] : NULL;
}
