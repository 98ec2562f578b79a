/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes a profile of threads in the manner of Go's dump of goroutines: a block for each. */
#include "profile/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/frames.h"
#include "profile/profile.h"

struct thread {
	int64_t tid;
	const struct profile_sample *sample;
};

static const struct profile_label *find_label(const struct profile *p,
					      const struct profile_sample *s, const char *key)
{
	for (uint32_t i = 0; i < s->label_cnt; i++)
		if (!strcmp(strtab__get(p->strings, p->labels[s->label + i].key), key))
			return &p->labels[s->label + i];
	return NULL;
}

static int64_t label_num(const struct profile *p, const struct profile_sample *s, const char *key)
{
	const struct profile_label *l = find_label(p, s, key);

	return l ? l->num : 0;
}

/* "" where there is none. */
static const char *label_str(const struct profile *p, const struct profile_sample *s,
			     const char *key)
{
	const struct profile_label *l = find_label(p, s, key);

	return l ? strtab__get(p->strings, l->str) : "";
}

static int compare_threads(const void *pa, const void *pb)
{
	const struct thread *a = pa, *b = pb;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return (a->sample > b->sample) - (a->sample < b->sample);
}

/* Any text, harmless and as one word: a name may hold what ends a line, or the quotes. */
static int print_text(FILE *f, const char *text, bool quote)
{
	/* at worst each byte becomes the three of U+FFFD */
	size_t sz = strlen(text) * 3 + 1;
	char *clean = malloc(sz), *c;

	if (!clean)
		return -ENOMEM;
	util_printable(clean, sz, text);
	if (quote)
		fputc('"', f);
	for (c = clean; *c; c++) {
		if (quote && (*c == '"' || *c == '\\'))
			fputc('\\', f);
		fputc(*c, f);
	}
	if (quote)
		fputc('"', f);
	free(clean);
	return 0;
}

/* As options take it, in the largest unit in which it has two digits. */
static void print_duration(FILE *f, int64_t ns)
{
	static const struct {
		const char *unit;
		int64_t ns, until;
	} units[] = {
		{ "us", 1000, 10 * INT64_C(1000000) },
		{ "ms", 1000000, 10 * INT64_C(1000000000) },
		{ "s", 1000000000, 600 * INT64_C(1000000000) },
		{ "m", 60 * INT64_C(1000000000), 600 * 60 * INT64_C(1000000000) },
		{ "h", 3600 * INT64_C(1000000000), INT64_MAX },
	};
	size_t i = 0;

	while (i < ARRAY_SIZE(units) - 1 && ns >= units[i].until)
		i++;
	fprintf(f, "%" PRId64 "%s", ns / units[i].ns, units[i].unit);
}

static int print_head(const struct profile *p, const struct thread *t, FILE *f)
{
	const struct profile_sample *s = t->sample;
	const char *name = label_str(p, s, "thread"), *comm = label_str(p, s, "comm");
	const char *state = label_str(p, s, "state"), *in = label_str(p, s, "in");
	int64_t pid = label_num(p, s, "pid"), since = label_num(p, s, "since");
	int err = 0;

	fprintf(f, "thread %" PRId64, t->tid);
	if (*name) {
		fputc(' ', f);
		err = print_text(f, name, true);
	}
	if (pid) {
		fprintf(f, " of %" PRId64, pid);
		if (*comm && !err) {
			fputc(' ', f);
			err = print_text(f, comm, true);
		}
	}
	fputs(" [", f);
	if (!err)
		err = print_text(f, *state ? state : "unknown", false);
	if (*in && !err) {
		fputs(" in ", f);
		err = print_text(f, in, false);
	}
	if (since > 0) {
		fputs(", ", f);
		print_duration(f, since);
	}
	fputs("]:\n", f);
	return err;
}

/* Where the i-th frame of a location is: file and line, or else the object and where in its file;
 * of a marker, nothing. */
static int print_place(const struct profile *p, const struct profile_location *l, uint32_t i,
		       FILE *f)
{
	const struct profile_line *line = i < l->line_cnt ? &p->lines[l->line + i] : NULL;
	const struct profile_function *fn = line ? &p->functions[line->function] : NULL;
	const struct profile_mapping *m;
	const char *object;
	int err;

	if (fn && fn->filename) {
		fputc('\t', f);
		err = print_text(f, strtab__get(p->strings, fn->filename), false);
		if (line->line)
			fprintf(f, ":%" PRId64, line->line);
		fputc('\n', f);
		return err;
	}
	if (l->mapping == PROFILE_NONE)
		return 0;
	m = &p->mappings[l->mapping];
	object = strtab__get(p->strings, m->filename);
	fputc('\t', f);
	err = print_text(f, object, false);
	/* "[kernel.kallsyms]" is no file */
	if (*object == '/' && l->address >= m->start && l->address < m->limit)
		fprintf(f, "+0x%" PRIx64, l->address - m->start + m->offset);
	fputc('\n', f);
	return err;
}

static int print_thread(const struct profile *p, const struct frames *fr, const struct thread *t,
			FILE *f)
{
	const struct profile_sample *s = t->sample;
	int err = print_head(p, t, f);

	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		uint32_t loc = p->loc_ids[s->loc + i];

		for (uint32_t j = 0; !err && j < frames__cnt(fr, loc); j++) {
			fprintf(f, "%s\n", strtab__get(fr->names, frames__name(fr, loc, j)));
			err = print_place(p, &p->locations[loc], j, f);
		}
	}
	return err;
}

/* The remarks, on what is missing for instance, as lines that are no block. */
static int print_comments(const struct profile *p, FILE *f)
{
	const char *comment;
	size_t shown = 0;
	int err = 0;

	for (size_t i = 0; !err && i < p->comment_cnt; i++) {
		comment = strtab__get(p->strings, p->comments[i]);
		if (*comment == '#')
			continue;
		fputs("# ", f);
		err = print_text(f, comment, false);
		fputc('\n', f);
		shown++;
	}
	if (shown && p->sample_cnt)
		fputc('\n', f);
	return err;
}

int threads_text_write(const struct profile *p, FILE *f)
{
	struct thread *threads = calloc(p->sample_cnt + 1, sizeof(*threads));
	struct frames fr = { 0 };
	int err = threads ? frames__make(p, false, &fr) : -ENOMEM;

	for (size_t i = 0; !err && i < p->sample_cnt; i++)
		threads[i] = (struct thread){ .tid = label_num(p, &p->samples[i], "tid"),
					      .sample = &p->samples[i] };
	if (!err) {
		qsort(threads, p->sample_cnt, sizeof(*threads), compare_threads);
		err = print_comments(p, f);
	}
	for (size_t i = 0; !err && i < p->sample_cnt; i++) {
		if (i)
			fputc('\n', f);
		err = print_thread(p, &fr, &threads[i], f);
	}
	frames__done(&fr);
	free(threads);
	return err ? err : ferror(f) ? -EIO : 0;
}
