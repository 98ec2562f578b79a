/* SPDX-License-Identifier: BSD-2-Clause */
/* Decides about the frames of a profile: objects and functions are looked up once each. */
#include "profile/machinery.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/profile.h"

#define MAX_KEEPS_SZ 16384 /* bytes of keep_frames, more than all that was ever seen */
#define MAX_ROUNDS 64	   /* through all stacks; two do for most */
#define KERNEL_HALF 63	   /* the bit that addresses of the kernel have */

struct object {
	enum machinery_rank rank;
	bool libc;
	bool anonymous;
};

struct machinery {
	const struct profile *p;
	struct object *objects; /* by mapping */
	uint64_t *functions;	/* by function: the sets that its name is in */
};

/* Walks a stack from its leaf. */
struct walk {
	const struct machinery *m;
	const struct profile_sample *s;
	struct machinery_frame at;
	bool has_libc; /* a frame of the stack is in the file of a C library */
};

static struct object object_of(const char *filename)
{
	/* as user/capture/code.c tells what holds no file's code */
	static const char *const begins[] = { "//anon", "/memfd:", "/dev/zero", "/anon_hugepage",
					      "/SYSV",	"[heap]",  "[stack",	"[anon" };
	struct object ret = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		ret.anonymous |= !strncmp(filename, begins[i], strlen(begins[i]));
	if (!ret.anonymous)
		ret.rank = machinery_object(filename, &ret.libc);
	return ret;
}

struct machinery *machinery__new(const struct profile *p)
{
	struct machinery *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->p = p;
	m->objects = calloc(p->mapping_cnt + 1, sizeof(*m->objects));
	m->functions = calloc(p->function_cnt + 1, sizeof(*m->functions));
	if (!m->objects || !m->functions) {
		machinery__free(m);
		return NULL;
	}
	for (size_t i = 0; i < p->mapping_cnt; i++)
		m->objects[i] = object_of(strtab__get(p->strings, p->mappings[i].filename));
	for (size_t i = 0; i < p->function_cnt; i++)
		m->functions[i] = machinery_sets_of(&(struct machinery_function){
			.name = strtab__get(p->strings, p->functions[i].name),
			.system_name = strtab__get(p->strings, p->functions[i].system_name),
			.filename = strtab__get(p->strings, p->functions[i].filename) });
	return m;
}

void machinery__free(struct machinery *m)
{
	if (!m)
		return;
	free(m->objects);
	free(m->functions);
	free(m);
}

/* ---- One frame after the other ---- */

static struct walk walk_of(const struct machinery *m, const struct profile_sample *s)
{
	struct walk w = { .m = m, .s = s };

	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		uint32_t mapping = m->p->locations[m->p->loc_ids[s->loc + i]].mapping;

		w.has_libc |= mapping != PROFILE_NONE && m->objects[mapping].libc;
	}
	return w;
}

static const struct profile_location *location(const struct walk *w)
{
	const struct profile *p = w->m->p;

	return &p->locations[p->loc_ids[w->s->loc + w->at.loc]];
}

/* NULL: no name is known */
static const struct profile_function *function(const struct walk *w)
{
	const struct profile_location *l = location(w);
	const struct profile *p = w->m->p;

	return w->at.line < l->line_cnt ? &p->functions[p->lines[l->line + w->at.line].function] :
					  NULL;
}

/* "object+0xoffset" is no name: it has no system_name */
static bool is_named(const struct walk *w)
{
	const struct profile_function *f = function(w);

	return f && f->system_name;
}

static bool is_kernel(const struct profile_location *l)
{
	return l->mapping != PROFILE_NONE && l->address >> KERNEL_HALF;
}

static const struct object *object(const struct walk *w)
{
	static const struct object none = { .rank = MACHINERY_SYSTEM };
	const struct profile_location *l = location(w);

	/* a marker, or an address in nothing that was mapped */
	return l->mapping == PROFILE_NONE ? &none : &w->m->objects[l->mapping];
}

static enum machinery_rank rank(const struct walk *w)
{
	const struct object *o = object(w);
	const struct profile_function *f = function(w);
	struct machinery_place place = { .object = o->rank,
					 .anonymous = o->anonymous,
					 .libc_elsewhere = w->has_libc };

	if (is_kernel(location(w)))
		return MACHINERY_SYSTEM;
	if (o->anonymous && !is_named(w))
		return MACHINERY_NAMELESS;
	return machinery_rank(f ? w->m->functions[f - w->m->p->functions] : 0, &place);
}

/* To the next frame; false if there is none. */
static bool step(struct walk *w)
{
	if (w->at.line + 1 < location(w)->line_cnt) {
		w->at.line++;
		return true;
	}
	w->at.line = 0;
	return ++w->at.loc < w->s->loc_cnt;
}

struct machinery_frame machinery__first(const struct machinery *m, const struct profile_sample *s)
{
	struct machinery_frame runtime = { 0 }, libc = { 0 };
	struct walk w = walk_of(m, s);
	bool has_runtime = false, in_libc = true;

	if (!s->loc_cnt)
		return w.at;
	do {
		enum machinery_rank r = rank(&w);

		if (r == MACHINERY_OWN)
			return w.at;
		if (r == MACHINERY_RUNTIME && is_named(&w) && !has_runtime) {
			runtime = w.at;
			has_runtime = true;
		}
		if (in_libc && object(&w)->libc)
			libc = is_named(&w) ? w.at : libc;
		else if (!is_kernel(location(&w)))
			in_libc = false;
	} while (step(&w));
	/* all of it the C library's: what was called cannot be told from what began the thread */
	if (in_libc)
		libc = (struct machinery_frame){ 0 };
	return has_runtime ? runtime : libc;
}

/* ---- What a reader is told to hide ---- */

/* What readers know functions by are their names, simplified: ids count up from 1. */
struct hiding {
	const struct machinery *m;
	struct strtab *names;
	uint32_t *name;	     /* id, by function */
	bool *drops;	     /* by id: it is one that is hidden */
	bool *keeps;	     /* it is kept all the same */
	bool *hides_for_own; /* some stack has it below the first frame of the program */
};

static void hiding__done(struct hiding *h)
{
	strtab__free(h->names);
	free(h->name);
	free(h->drops);
	free(h->keeps);
	free(h->hides_for_own);
}

static int hiding__init(struct hiding *h, const struct machinery *m, unsigned int what)
{
	const struct profile *p = m->p;
	size_t cnt = p->function_cnt + 1;

	*h = (struct hiding){ .m = m,
			      .names = strtab__new(),
			      .name = calloc(cnt, sizeof(*h->name)) };
	h->drops = calloc(cnt, sizeof(*h->drops));
	h->keeps = calloc(cnt, sizeof(*h->keeps));
	h->hides_for_own = calloc(cnt, sizeof(*h->hides_for_own));
	if (!h->names || !h->name || !h->drops || !h->keeps || !h->hides_for_own)
		return -ENOMEM;
	for (size_t i = 0; i < p->function_cnt; i++) {
		const char *s;
		size_t len =
			machinery_simplified(strtab__get(p->strings, p->functions[i].name), &s);

		h->name[i] = strtab__add_n(h->names, s, len);
		if (h->name[i] == UINT32_MAX)
			return -ENOMEM;
		h->drops[h->name[i]] = machinery_drops(what, s, len);
	}
	return 0;
}

/* The id of a frame's function; 0, which is no name's, if none is known. */
static uint32_t name_of(const struct hiding *h, const struct walk *w)
{
	const struct profile_function *f = function(w);

	return f ? h->name[f - h->m->p->functions] : 0;
}

/*
 * Where a stack has no frame of the program, the one that machinery__first finds says most of it: it
 * is kept, unless other stacks have it below one of the program.
 */
static void keep_firsts(struct hiding *h)
{
	const struct profile *p = h->m->p;

	for (size_t i = 0; i < p->sample_cnt; i++) {
		struct walk w = walk_of(h->m, &p->samples[i]);
		struct machinery_frame first = machinery__first(h->m, w.s);
		bool own;

		if (!w.s->loc_cnt)
			continue;
		w.at = first;
		own = rank(&w) == MACHINERY_OWN;
		if (!own)
			h->keeps[name_of(h, &w)] = true;
		w.at = (struct machinery_frame){ 0 };
		while (own && (w.at.loc != first.loc || w.at.line != first.line)) {
			h->hides_for_own[name_of(h, &w)] = true;
			(void)step(&w);
		}
	}
	for (uint32_t i = 0; i < strtab__cnt(h->names); i++)
		h->keeps[i] &= h->drops[i] && !h->hides_for_own[i];
}

/* The outermost function of the location that is hidden: the number of its line, or -1. */
static int hidden_line(const struct hiding *h, const struct profile_location *l)
{
	int i = (int)l->line_cnt;

	while (--i >= 0) {
		uint32_t f = h->name[h->m->p->lines[l->line + i].function];

		if (h->drops[f] && !h->keeps[f])
			break;
	}
	return i;
}

/* Is a frame of the location, up to this line, the program's own? */
static bool has_own(struct walk *w, int last_line)
{
	for (w->at.line = 0; (int)w->at.line <= last_line; w->at.line++)
		if (rank(w) <= MACHINERY_NAMELESS)
			return true;
	return false;
}

/* The leafmost location that has a frame of the program. */
static uint32_t first_own(const struct machinery *m, const struct profile_sample *s)
{
	struct walk w = walk_of(m, s);

	if (s->loc_cnt)
		while (rank(&w) > MACHINERY_NAMELESS && step(&w))
			;
	return w.at.loc;
}

/*
 * Hides what pprof hides (profile/prune.go): beginning at the root, behind the first location that
 * is not hidden, a hidden function and all that it has called; and what is inlined into a hidden
 * function that is inlined itself. Keeps functions that so would hide a frame of the program.
 * Returns whether there is any.
 */
static bool keep_callers(struct hiding *h, const struct profile_sample *s)
{
	struct walk w = walk_of(h->m, s);
	uint32_t own = first_own(h->m, s);
	bool visible = false, ret = false;

	for (w.at.loc = s->loc_cnt; w.at.loc-- > 0;) {
		const struct profile_location *l = location(&w);
		int line;

		while ((line = hidden_line(h, l)) >= 0 &&
		       (visible || line + 1 < (int)l->line_cnt) &&
		       (has_own(&w, line) || (visible && own < w.at.loc))) {
			h->keeps[h->name[h->m->p->lines[l->line + line].function]] = true;
			ret = true;
		}
		if (line >= 0 && visible)
			break;
		visible |= line < 0;
	}
	return ret;
}

/* What is kept is visible, so that what it has called may be hidden where it was not before: until
 * nothing changes. Returns false if there is no end to it. */
static bool keep_all_callers(struct hiding *h)
{
	for (int round = 0; round < MAX_ROUNDS; round++) {
		bool changed = false;

		for (size_t i = 0; i < h->m->p->sample_cnt; i++)
			changed |= keep_callers(h, &h->m->p->samples[i]);
		if (!changed)
			return true;
	}
	return false;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Writes what is kept as alternatives behind what f has, sorted. 0 or -ENOMEM. */
static int write_kept(const struct hiding *h, FILE *f)
{
	uint32_t all = strtab__cnt(h->names);
	const char **names = calloc(all, sizeof(*names));
	size_t cnt = 0;

	if (!names)
		return -ENOMEM;
	for (uint32_t i = 0; i < all; i++)
		if (h->keeps[i])
			names[cnt++] = strtab__get(h->names, i);
	qsort(names, cnt, sizeof(*names), compare_names);
	for (size_t i = 0; i < cnt; i++) {
		if (ftell(f))
			fputc('|', f);
		machinery_quote(names[i], strlen(names[i]), f);
	}
	free(names);
	return 0;
}

/* The text that the function writes, for the caller to free; NULL if there is no memory. */
static char *written(int (*write)(const struct hiding *h, unsigned int what, FILE *f),
		     const struct hiding *h, unsigned int what)
{
	char *text = NULL;
	size_t sz;
	FILE *f = open_memstream(&text, &sz);
	int err = f ? write(h, what, f) : -ENOMEM;

	if (f && fclose(f))
		err = -ENOMEM;
	if (err) {
		free(text);
		return NULL;
	}
	return text;
}

static int write_drops(const struct hiding *h, unsigned int what, FILE *f)
{
	(void)h;
	machinery_write_drops(what, f);
	return 0;
}

static int write_keeps(const struct hiding *h, unsigned int what, FILE *f)
{
	machinery_write_keeps(what, f);
	return write_kept(h, f);
}

static int set_regexes(struct profile *p, const struct hiding *h, unsigned int what)
{
	char *drops = written(write_drops, h, what), *keeps = written(write_keeps, h, what);
	int err = drops && keeps ? 0 : -ENOMEM;

	if (!err && strlen(keeps) <= MAX_KEEPS_SZ) {
		p->drop_frames = profile__string(p, drops);
		p->keep_frames = profile__string(p, keeps);
		if (p->drop_frames == PROFILE_NONE || p->keep_frames == PROFILE_NONE) {
			p->drop_frames = p->keep_frames = 0;
			err = -ENOMEM;
		}
	}
	free(drops);
	free(keeps);
	return err;
}

int machinery_hide(struct profile *p, unsigned int what)
{
	struct machinery *m = machinery__new(p);
	struct hiding h;
	int err;

	if (!m)
		return -ENOMEM;
	err = hiding__init(&h, m, what);
	if (!err) {
		keep_firsts(&h);
		if (keep_all_callers(&h))
			err = set_regexes(p, &h, what);
	}
	hiding__done(&h);
	machinery__free(m);
	return err;
}
