/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <ini.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "kinds.h"
#include "options_table.h"

/* Where libinih has it, as Debian's: how long a line may be, with its end and the NUL. Where it does not, it
 * was built for 200 bytes as a rule. */
extern int ini_max_line __attribute__((weak));

/* Of the command line alone. */
static const int not_here[] = { OPT_CONFIG,   OPT_CHECK_CONFIG, OPT_DUMP,
				OPT_READY_FD, OPT_VERSION,	'h' };

struct reading {
	struct config *c;
	const struct option_table *options;
	FILE *f;
	unsigned int line;
	size_t arg_cap;
	unsigned int push_lines[WIRE_MAX_DESTINATIONS];
	/* the section that is being read; NULL: none */
	struct destination *push;
	struct process_rule *target, *service;
	int err;
	char *text;
	size_t text_sz;
};

/* The first thing that is wrong is what is said. */
static int __attribute__((format(printf, 4, 5)))
fail(struct reading *r, int err, unsigned int line, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (r->err)
		return r->err;
	r->err = err;
	n = snprintf(r->text, r->text_sz, "%s:%u: ", r->c->path, line);
	va_start(ap, fmt);
	if (n > 0 && (size_t)n < r->text_sz)
		vsnprintf(r->text + n, r->text_sz - n, fmt, ap);
	va_end(ap);
	return err;
}

static int no_memory(struct reading *r)
{
	return fail(r, -ENOMEM, r->line, "out of memory");
}

/* ---- options ---- */

static const struct option_row *find_option(const struct reading *r, const char *key)
{
	for (size_t i = 0; i < r->options->cnt; i++) {
		const struct option_row *row = &r->options->rows[i];
		bool here = row->name && !strcmp(row->name, key);

		for (size_t k = 0; k < ARRAY_SIZE(not_here); k++)
			here &= row->val != not_here[k];
		if (here)
			return row;
	}
	return NULL;
}

/* What options without an argument are given. 1, 0; -1: neither. */
static int truth(const char *value)
{
	static const char *const words[][2] = {
		{ "no", "yes" }, { "false", "true" }, { "off", "on" }, { "0", "1" }
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		for (int k = 0; k < 2; k++)
			if (!strcasecmp(words[i][k], value))
				return k;
	return -1;
}

static int add_arg(struct reading *r, const char *key, const char *value)
{
	struct config *c = r->c;
	size_t line_cap = r->arg_cap;
	char *arg = NULL;

	if (util_reserve(&c->args, &r->arg_cap, c->arg_cnt + 1, sizeof(*c->args)) ||
	    util_reserve(&c->lines, &line_cap, c->arg_cnt + 1, sizeof(*c->lines)) ||
	    asprintf(&arg, value ? "--%s=%s" : "--%s", key, value) < 0)
		return no_memory(r);
	c->lines[c->arg_cnt] = r->line;
	c->args[c->arg_cnt++] = arg;
	return 0;
}

static int take_option(struct reading *r, const char *key, const char *value)
{
	const struct option_row *row = find_option(r, key);
	int on;

	if (!row)
		return fail(r, -EINVAL, r->line, "there is no option '%s'", key);
	if (row->arg)
		return add_arg(r, key, value);
	on = truth(value);
	if (on < 0)
		return fail(r, -EINVAL, r->line, "%s: give yes or no", key);
	return on ? add_arg(r, key, NULL) : 0;
}

/* ---- destinations ---- */

static void begin_push(struct reading *r, char *name)
{
	struct config *c = r->c;

	r->push = &c->push[c->push_cnt];
	r->push->name = name;
	r->push_lines[c->push_cnt++] = r->line;
}

static int take_push(struct reading *r, const char *key, const char *value)
{
	struct destination *d = r->push;
	const struct {
		const char *key;
		char **to;
	} texts[] = {
		{ "url", &d->url },
		{ "kind", &d->kind },
		{ "user", &d->user },
		{ "tenant", &d->tenant },
		{ destination_file_key(DESTINATION_TOKEN), &d->files[DESTINATION_TOKEN] },
		{ destination_file_key(DESTINATION_PASSWORD), &d->files[DESTINATION_PASSWORD] },
		{ destination_file_key(DESTINATION_CA), &d->files[DESTINATION_CA] },
		{ destination_file_key(DESTINATION_CERT), &d->files[DESTINATION_CERT] },
		{ destination_file_key(DESTINATION_KEY), &d->files[DESTINATION_KEY] },
	};

	if (!strcmp(key, "max-age")) {
		if (d->max_age_ns)
			return fail(r, -EINVAL, r->line, "%s stands twice in this section", key);
		if (util_parse_duration(value, &d->max_age_ns))
			return fail(r, -EINVAL, r->line, "max-age: '%s' is no time, such as 1h",
				    value);
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (strcmp(texts[i].key, key) != 0)
			continue;
		if (*texts[i].to)
			return fail(r, -EINVAL, r->line, "%s stands twice in this section", key);
		*texts[i].to = strdup(value);
		return *texts[i].to ? 0 : no_memory(r);
	}
	return fail(r, -EINVAL, r->line, "[push] has no key '%s'", key);
}

/* ---- targets ---- */

static void begin_target(struct reading *r, char *name)
{
	struct config *c = r->c;

	r->target = &c->targets[c->target_cnt];
	r->target->name = name;
	c->target_lines[c->target_cnt++] = r->line;
}

static int take_kinds(struct reading *r, const char *value)
{
	char names[KINDS_NAMES_SZ];

	if (r->target->kinds)
		return fail(r, -EINVAL, r->line, "profile stands twice in this section");
	while (true) {
		size_t sz = strcspn(value, ",");
		int kind = kinds_find(value, sz);

		if (kind < 0) {
			kinds_names(names, sizeof(names));
			return fail(r, -EINVAL, r->line,
				    "profile: there is no kind '%.*s': choose from %s",
				    (int)MIN(sz, (size_t)64), value, names);
		}
		if (kinds[kind].of_processes)
			return fail(r, -EINVAL, r->line,
				    "profile: the agent records no %s profiles: bpfprof --pid does",
				    kinds[kind].name);
		if (!kinds[kind].of_chosen)
			return fail(r, -EINVAL, r->line,
				    "profile: %s is recorded of the whole machine, if at all",
				    kinds[kind].name);
		r->target->kinds |= 1U << kind;
		if (!value[sz])
			return 0;
		value += sz + 1;
	}
}

/* keys: bit i, enum process_key i is one of this section. */
static int take_pattern(struct reading *r, const char *word, uint32_t keys, struct process_rule *to,
			const char *key, const char *value)
{
	for (int i = 0; i < PROCESS_NR_KEYS; i++) {
		char **pattern = &to->patterns[i];

		if (!(keys & 1U << i) || strcmp(process_rule_key(i), key) != 0)
			continue;
		if (*pattern)
			return fail(r, -EINVAL, r->line, "%s stands twice in this section", key);
		*pattern = strdup(value);
		return *pattern ? 0 : no_memory(r);
	}
	return fail(r, -EINVAL, r->line, "[%s] has no key '%s'", word, key);
}

static int take_target(struct reading *r, const char *key, const char *value)
{
	if (!strcmp(key, "profile"))
		return take_kinds(r, value);
	return take_pattern(r, "target", UINT32_MAX, r->target, key, value);
}

/* ---- services ---- */

static void begin_service(struct reading *r, char *name)
{
	struct config *c = r->c;

	r->service = &c->services[c->service_cnt];
	r->service->name = name;
	c->service_lines[c->service_cnt++] = r->line;
}

/* What a sample says where it is from. */
#define SERVICE_KEYS                                                        \
	(1U << PROCESS_COMM | 1U << PROCESS_CONTAINER | 1U << PROCESS_POD | \
	 1U << PROCESS_NAMESPACE | 1U << PROCESS_UNIT)

static int take_service(struct reading *r, const char *key, const char *value)
{
	return take_pattern(r, "service", SERVICE_KEYS, r->service, key, value);
}

/* ---- the file ---- */

static const char *push_name(const struct reading *r, size_t i, unsigned int *ret_line)
{
	*ret_line = r->push_lines[i];
	return r->c->push[i].name;
}

static const char *target_name(const struct reading *r, size_t i, unsigned int *ret_line)
{
	*ret_line = r->c->target_lines[i];
	return r->c->targets[i].name;
}

static const char *name_of_service(const struct reading *r, size_t i, unsigned int *ret_line)
{
	*ret_line = r->c->service_lines[i];
	return r->c->services[i].name;
}

/* Sections of which there may be several, with a name each: [word "NAME"]. */
struct section {
	const char *word, *what;
	size_t max;
	const char *(*name)(const struct reading *r, size_t i, unsigned int *ret_line);
	/* takes the name */
	void (*begin)(struct reading *r, char *name);
};

static int begin_named(struct reading *r, const struct section *s, size_t cnt, const char *name,
		       size_t len)
{
	char *copy;

	for (size_t i = 0; i < cnt; i++) {
		unsigned int line;
		const char *other = s->name(r, i, &line);

		if (strlen(other) == len && !memcmp(other, name, len))
			return fail(r, -EINVAL, r->line,
				    "there is a section [%s \"%s\"] in line %u already", s->word,
				    other, line);
	}
	if (cnt == s->max)
		return fail(r, -EINVAL, r->line, "there are more than %zu %ss", s->max, s->what);
	copy = strndup(name, len);
	if (!copy)
		return no_memory(r);
	s->begin(r, copy);
	return 0;
}

static int begin_section(struct reading *r, const char *section)
{
	static const struct section sections[] = {
		{ "push", "destination", WIRE_MAX_DESTINATIONS, push_name, begin_push },
		{ "target", "target", PROCESS_RULES_MAX, target_name, begin_target },
		{ "service", "service", PROCESS_RULES_MAX, name_of_service, begin_service },
	};
	const size_t cnts[] = { r->c->push_cnt, r->c->target_cnt, r->c->service_cnt };

	for (size_t i = 0; i < ARRAY_SIZE(sections); i++) {
		const struct section *s = &sections[i];
		const char *name = section + strlen(s->word);
		size_t len;

		if (strncmp(section, s->word, strlen(s->word)) ||
		    (*name && *name != ' ' && *name != '\t'))
			continue;
		name += strspn(name, " \t");
		len = strlen(name);
		if (len < 2 || name[0] != '"' || name[len - 1] != '"')
			return fail(r, -EINVAL, r->line, "a %s has a name: [%s \"NAME\"]", s->what,
				    s->word);
		return begin_named(r, s, cnts[i], name + 1, len - 2);
	}
	return fail(r, -EINVAL, r->line, "there is no section [%s]", section);
}

/* ini.h: 0 is an error. */
static int take_pair(void *ctx, const char *section, const char *key, const char *value)
{
	struct reading *r = ctx;

	if (r->err)
		return 0;
	if (r->push)
		return !take_push(r, key, value);
	if (r->target)
		return !take_target(r, key, value);
	if (r->service)
		return !take_service(r, key, value);
	return !*section && !take_option(r, key, value);
}

/* A line, as fgets. A section is met here, also one that is empty, or another one's twin. */
static char *read_line(char *buf, int sz, void *ctx)
{
	struct reading *r = ctx;
	char *text, *end;
	size_t len;

	if (r->err || !fgets(buf, sz, r->f))
		return NULL;
	r->line++;
	len = strlen(buf);
	if (len + 1 == (size_t)sz && buf[len - 1] != '\n') {
		fail(r, -EINVAL, r->line, "the line is longer than %d bytes", sz - 2);
		return NULL;
	}
	/* a line that is set in would go on with the one before */
	text = buf + strspn(buf, " \t");
	memmove(buf, text, strlen(text) + 1);
	if (*buf != '[')
		return buf;
	r->push = NULL;
	r->target = NULL;
	r->service = NULL;
	end = strchr(buf, ']');
	if (!end) {
		fail(r, -EINVAL, r->line, "the section's name does not end with ']'");
		return NULL;
	}
	*end = '\0';
	if (begin_section(r, buf + 1))
		return NULL;
	*end = ']';
	return buf;
}

static int complete_rule(struct reading *r, const char *word, const struct process_rule *rule,
			 bool records, unsigned int line)
{
	char text[512] = "it does not say what to record: give profile, such as heap,block";
	int err = process_rule__check(rule, text, sizeof(text));

	if (!err && records && !rule->kinds)
		err = -EINVAL;
	return err ? fail(r, err, line, "[%s \"%s\"]: %s", word, rule->name, text) : 0;
}

static int complete(struct reading *r)
{
	struct config *c = r->c;
	char text[512];
	int err = 0;

	for (size_t i = 0; !err && i < c->push_cnt; i++) {
		err = destination__complete(&c->push[i], text, sizeof(text));
		if (err)
			fail(r, err, r->push_lines[i], "[push \"%s\"]: %s", c->push[i].name,
			     err == -ENOMEM ? "out of memory" : text);
	}
	for (size_t i = 0; !err && i < c->target_cnt; i++)
		err = complete_rule(r, "target", &c->targets[i], true, c->target_lines[i]);
	for (size_t i = 0; !err && i < c->service_cnt; i++)
		err = complete_rule(r, "service", &c->services[i], false, c->service_lines[i]);
	return err;
}

static FILE *open_file(const char *path, int *ret_err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	FILE *f = NULL;

	*ret_err = fd < 0 || fstat(fd, &st) ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
	if (!*ret_err) {
		f = fdopen(fd, "r");
		*ret_err = f ? 0 : -errno;
	}
	if (!f && fd >= 0)
		close(fd);
	return f;
}

int config_read(const char *path, const struct option_table *options, struct config *ret, char *err,
		size_t err_sz)
{
	struct reading r = { .c = ret, .options = options, .text = err, .text_sz = err_sz };
	int bad;

	*ret = (struct config){ .path = strdup(path) };
	if (!ret->path) {
		snprintf(err, err_sz, "out of memory");
		return -ENOMEM;
	}
	r.f = open_file(path, &r.err);
	if (!r.f) {
		snprintf(err, err_sz, "cannot read the configuration '%s': %s", path,
			 r.err == -EINVAL ? "it is no file" : strerror(-r.err));
		config__done(ret);
		return r.err;
	}
	if (&ini_max_line)
		ini_max_line = CONFIG_MAX_LINE + 2;
	bad = ini_parse_stream(read_line, &r, take_pair, &r);
	fclose(r.f);
	if (bad && !r.err)
		fail(&r, bad > 0 ? -EINVAL : -ENOMEM, bad > 0 ? (unsigned int)bad : r.line,
		     "it is no KEY = VALUE, and no section");
	if (!r.err)
		(void)complete(&r);
	if (r.err)
		config__done(ret);
	return r.err;
}

void config__done(struct config *c)
{
	for (size_t i = 0; i < c->arg_cnt; i++)
		free(c->args[i]);
	free(c->args);
	free(c->lines);
	for (size_t i = 0; i < c->push_cnt; i++)
		destination__done(&c->push[i]);
	for (size_t i = 0; i < c->target_cnt; i++)
		process_rule__done(&c->targets[i]);
	for (size_t i = 0; i < c->service_cnt; i++)
		process_rule__done(&c->services[i]);
	free(c->path);
	*c = (struct config){ 0 };
}

unsigned int config__line(const struct config *c, const char *value)
{
	for (size_t i = 0; i < c->arg_cnt; i++)
		if (value >= c->args[i] && value <= c->args[i] + strlen(c->args[i]))
			return c->lines[i];
	return 0;
}
