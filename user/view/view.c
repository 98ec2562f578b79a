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
#include "profile/difference.h"
#include "profile/profile.h"
#include "profile/units.h"
#include "view/page.h"
#include "view/stacks.h"
#include "view/sum_files.h"
#include "view/text.h"
#include "view/text_sides.h"
#include "view/write_file.h"

#define NAME_SZ (NAME_MAX + 32) /* of a side */

static int write_text(const struct view *v, FILE *f)
{
	return v->sides ? view_sides_write(v, f) : view_text_write(v, f);
}

static int write_page(const struct view *v, FILE *f)
{
	struct page_facts facts = { .title = v->title, .value = v->value };
	char base[NAME_SZ + 64], now[sizeof(base)];

	if (v->sides) {
		view_side_text(&v->sides[0], "base", base, sizeof(base));
		view_side_text(&v->sides[1], "new", now, sizeof(now));
		facts.sides[0] = base;
		facts.sides[1] = now;
		facts.warning = view_sides_differ(v->sides) ? VIEW_UNEVEN : NULL;
	}
	return page_write(v->profile, &facts, f);
}

/* The first one is the default. */
static const struct view_format formats[] = {
	{ .name = "text", .write = write_text },
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

/* ---- Sides ---- */

struct side {
	struct view_side view;
	char file[NAME_MAX + 1]; /* of the first one */
	char name[NAME_SZ];
	struct profile *profile;
};

static void name_side(struct side *s, char *const *files)
{
	while (files[s->view.files])
		s->view.files++;
	make_name(files[0], s->file, sizeof(s->file));
	snprintf(s->name, sizeof(s->name), s->view.files > 1 ? "%s and %zu more" : "%s", s->file,
		 s->view.files - 1);
	s->view.name = s->name;
}

static int read_side(struct side *s, char *const *files)
{
	int err = sum_files(files, &s->profile);

	if (!err)
		s->view.duration_ns = s->profile->duration_ns;
	return err;
}

void view_side_text(const struct view_side *s, const char *which, char *text, size_t text_sz)
{
	const struct units_scale *scale = units_pick("nanoseconds", (double)s->duration_ns);
	char name[3 * NAME_SZ], duration[UNITS_SZ];

	snprintf(text, text_sz, "%s: %s, %zu file%s%s%s", which,
		 util_printable(name, sizeof(name), s->name), s->files, s->files == 1 ? "" : "s",
		 s->duration_ns ? " over " : "",
		 s->duration_ns ? units_text(duration, s->duration_ns, "nanoseconds", scale) : "");
}

bool view_sides_differ(const struct view_side *sides)
{
	const int64_t a = sides[0].duration_ns, b = sides[1].duration_ns;

	/* no two runs are equally long to the nanosecond */
	return sides[0].files != sides[1].files || MAX(a, b) - MIN(a, b) > MAX(a, b) / 50;
}

static void free_side(struct side *s)
{
	profile__free(s->profile);
	s->profile = NULL;
}

/* The profile that is shown of both, which are gone then. */
static int join_sides(struct side *base, struct side *now, struct profile **ret)
{
	char text[768];
	int err = difference_make(base->profile, now->profile, ret, text, sizeof(text));

	if (err)
		log_error("cannot compare '%s' with '%s': %s", now->name, base->name,
			  err == -EINVAL ? text : strerror(-err));
	else if (*text)
		log_info("left out, since one side does not have it: %s", text);
	free_side(base);
	free_side(now);
	return err;
}

static int read_sides(const struct view_options *o, char *const *files, struct side *sides,
		      struct profile **ret)
{
	int err = o->bases ? read_side(&sides[0], (char *const *)o->bases) : 0;

	if (!err)
		err = read_side(&sides[1], files);
	if (!err && o->bases)
		return join_sides(&sides[0], &sides[1], ret);
	*ret = sides[1].profile;
	sides[1].profile = NULL;
	return err;
}

int view_files(const struct view_options *o, char *const *files, const char *output)
{
	struct side sides[2] = { 0 };
	char title[2 * NAME_SZ + 8], path[NAME_MAX + 9];
	struct view_side of_view[2];
	struct view v = { .title = title, .opts = o };
	const char *ext = format_of(o)->ext;
	struct profile *p = NULL;
	int err;

	name_side(&sides[1], files);
	if (o->bases)
		name_side(&sides[0], (char *const *)o->bases);
	snprintf(title, sizeof(title), "%s%s%s", sides[1].name, o->bases ? " v " : "",
		 sides[0].name);
	snprintf(path, sizeof(path), "%s.%s", sides[1].file, ext ? ext : "");
	if (!output)
		output = ext ? path : "-";
	err = write_file_check(output, false);
	if (!err)
		err = read_sides(o, files, sides, &p);
	if (!err && profile__frames(p) > STACKS_MAX_FRAMES) {
		log_error("cannot show '%s': its stacks have more than %u frames", title,
			  STACKS_MAX_FRAMES);
		err = -E2BIG;
	}
	if (!err)
		err = find_value(p, o->value, &v.value);
	if (!err) {
		v.profile = p;
		if (o->bases) {
			of_view[0] = sides[0].view;
			of_view[1] = sides[1].view;
			v.sides = of_view;
		}
		err = write_file(output, write_view, &v);
	}
	if (!err && ext && strcmp(output, "-") != 0)
		log_info("%s: open it in a browser", output);
	free_side(&sides[0]);
	free_side(&sides[1]);
	profile__free(p);
	return err;
}
