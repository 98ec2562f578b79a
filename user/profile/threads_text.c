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

/* How it is written. */
enum manner {
	OWN,
	LIKE_GO /* debug=2 */
};

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

/* Go tells waits from a minute on. */
static void print_since(FILE *f, int64_t since, enum manner manner)
{
	int64_t minutes = since / (60 * (int64_t)NSEC_PER_SEC);

	if (manner == LIKE_GO && minutes > 0)
		fprintf(f, ", %" PRId64 " minutes", minutes);
	if (manner == OWN && since > 0) {
		fputs(", ", f);
		print_duration(f, since);
	}
}

static int print_head(const struct profile *p, const struct thread *t, enum manner manner, FILE *f)
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
	if (pid && manner == OWN) {
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
	print_since(f, since, manner);
	fputs("]:\n", f);
	return err;
}

/* How far in its function. */
static void end_place(const struct profile_location *l, enum manner manner, FILE *f)
{
	if (manner == LIKE_GO && l->from_entry)
		fprintf(f, " +0x%" PRIx32, l->from_entry - 1);
	fputc('\n', f);
}

/* Where the i-th frame of a location is: file and line, or else the object and where in its file;
 * of a marker, nothing. */
static int print_place(const struct profile *p, const struct profile_location *l, uint32_t i,
		       enum manner manner, FILE *f)
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
		end_place(l, manner, f);
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
	end_place(l, manner, f);
	return err;
}

/* Go prints the words of the arguments behind a name, "(...)" where it does not know them: nobody does
 * here. A marker is no function. */
static const char *arguments(const struct profile_location *l, const char *name, enum manner manner)
{
	size_t len = strlen(name);

	if (manner == OWN || l->mapping == PROFILE_NONE || (len && name[len - 1] == ')'))
		return "";
	return "(...)";
}

static int print_thread(const struct profile *p, const struct frames *fr, const struct thread *t,
			enum manner manner, FILE *f)
{
	const struct profile_sample *s = t->sample;
	int err = print_head(p, t, manner, f);

	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		uint32_t loc = p->loc_ids[s->loc + i];

		for (uint32_t j = 0; !err && j < frames__cnt(fr, loc); j++) {
			const char *name = strtab__get(fr->names, frames__name(fr, loc, j));

			fprintf(f, "%s%s\n", name, arguments(&p->locations[loc], name, manner));
			err = print_place(p, &p->locations[loc], j, manner, f);
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

static int write_threads(const struct profile *p, enum manner manner, FILE *f)
{
	struct thread *threads = calloc(p->sample_cnt + 1, sizeof(*threads));
	struct frames fr = { 0 };
	int err = threads ? frames__make(p, false, &fr) : -ENOMEM;

	for (size_t i = 0; !err && i < p->sample_cnt; i++)
		threads[i] = (struct thread){ .tid = label_num(p, &p->samples[i], "tid"),
					      .sample = &p->samples[i] };
	if (!err) {
		qsort(threads, p->sample_cnt, sizeof(*threads), compare_threads);
		if (manner == OWN)
			err = print_comments(p, f);
	}
	for (size_t i = 0; !err && i < p->sample_cnt; i++) {
		if (i)
			fputc('\n', f);
		err = print_thread(p, &fr, &threads[i], manner, f);
	}
	frames__done(&fr);
	free(threads);
	return err ? err : ferror(f) ? -EIO : 0;
}

int threads_text_write(const struct profile *p, FILE *f)
{
	return write_threads(p, OWN, f);
}

int debug2_write(const struct profile *p, FILE *f)
{
	return write_threads(p, LIKE_GO, f);
}
