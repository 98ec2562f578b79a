// SPDX-License-Identifier: BSD-2-Clause
#include "view/view.h"

#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdint.h>
#include <string.h>

#include "base/log.h"
#include "base/output.h"
#include "base/util.h"
#include "profile/profile.h"
#include "view/page.h"
#include "view/sum_files.h"
#include "view/text.h"
#include "view/write_file.h"

static int write_page(const struct view *v, FILE *f)
{
	return page_write(v->profile, v->value, v->title, f);
}

/* The first one is the default. */
static const struct view_format formats[] = {
	{ .name = "text", .write = view_text_write },
	{ .name = "html", .ext = "html", .whole = true, .write = write_page },
};

const struct view_format *view_format_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		if (!strcmp(name, formats[i].name))
			return &formats[i];
	return NULL;
}

void view_format_names(char *buf, size_t buf_sz)
{
	*buf = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++) {
		size_t len = strlen(buf);

		snprintf(buf + len, buf_sz - len, "%s%s", i ? ", " : "", formats[i].name);
	}
}

int view_check_focus(const char *focus, char *err, size_t err_sz)
{
	char why[128];
	regex_t re;
	int r = regcomp(&re, focus, REG_EXTENDED | REG_NOSUB);

	if (r) {
		regerror(r, &re, why, sizeof(why));
		return util_fail(-EINVAL, err, err_sz,
				 "--focus: '%s' is no extended regular expression: %s", focus, why);
	}
	regfree(&re);
	return 0;
}

/* The value that is asked for. 0, or -EINVAL, after it was said which there are. */
static int find_value(const struct profile *p, const char *name, size_t *ret)
{
	char names[512];
	size_t len = 0;

	*ret = profile__default_value(p);
	if (!name)
		return 0;
	for (*ret = 0; *ret < p->value_cnt; (*ret)++)
		if (!strcmp(name, p->value_types[*ret].type))
			return 0;
	for (size_t i = 0; i < p->value_cnt && len < sizeof(names); i++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "",
					p->value_types[i].type);
	log_error("--value: there is no value '%s': choose from %s", name, names);
	return -EINVAL;
}

static const struct view_format *format_of(const struct view_options *o)
{
	return o->format ? o->format : &formats[0];
}

static int write_view(void *ctx, FILE *f)
{
	const struct view *v = ctx;

	return format_of(v->opts)->write(v, f);
}

/* The name of a profile's file, without its folder and what says that it is one. */
static void make_name(const char *path, char *name, size_t name_sz)
{
	static const char *const ends[] = { ".gz", ".pb", ".pprof", ".prof" };
	const char *slash = strrchr(path, '/');
	size_t len;

	snprintf(name, name_sz, "%s", slash ? slash + 1 : path);
	len = strlen(name);
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t end = strlen(ends[i]);

		if (len > end && !strcmp(name + len - end, ends[i])) {
			len -= end;
			name[len] = '\0';
		}
	}
}

int view_files(const struct view_options *o, char *const *files, const char *output)
{
	char name[NAME_MAX + 1], title[sizeof(name) + 32], path[sizeof(name) + 8];
	struct view v = { .title = title, .opts = o };
	const char *ext = format_of(o)->ext;
	struct profile *p;
	size_t more = 0;
	int err;

	while (files[more + 1])
		more++;
	make_name(files[0], name, sizeof(name));
	snprintf(title, sizeof(title), more ? "%s and %zu more" : "%s", name, more);
	snprintf(path, sizeof(path), "%s.%s", name, ext ? ext : "");
	if (!output)
		output = ext ? path : "-";
	err = write_file_check(output, false);
	if (!err)
		err = sum_files(files, &p);
	if (err)
		return err;
	v.profile = p;
	err = find_value(p, o->value, &v.value);
	if (!err)
		err = write_file(output, write_view, &v);
	if (!err && ext && strcmp(output, "-") != 0)
		log_info("%s: open it in a browser", output);
	profile__free(p);
	return err;
}
