// SPDX-License-Identifier: BSD-2-Clause
/* From a file to costs of stacks: what its columns mean, and which functions its locations are. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "judge/names.h"
#include "judge/runs.h"
#include "judge/runs_parts.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"
#include "profile/units.h"

#define NONE RUNS_NONE

_Static_assert(RUNS_METRICS_MAX > PROFILE_MAX_VALUES, "not all types of a file are metrics");

/* A column of a file, as a metric. */
struct source {
	int metric;
	size_t value;	 /* column */
	size_t count;	 /* column; == value: see period */
	double scale;	 /* to the metric's unit */
	double period;	 /* of a sample, in the metric's unit; 0: not known */
	size_t space;	 /* sampled allocations: column of their bytes */
	double rate;	 /* the same: bytes between two samples, 0: not sampled */
	bool of_samples; /* the column counts samples of this period */
	bool counts;	 /* the column counts something itself */
	bool exact;	 /* nothing was sampled */
};

/* A location's functions: most have one, which it is; of others, where their number and they themselves stand
 * in frames. */
#define SEVERAL (1U << 31)

struct reader {
	struct runs *r;
	const struct profile *p;
	const char *name;
	enum runs_side side;
	struct source sources[PROFILE_MAX_VALUES];
	size_t source_cnt;
	uint32_t *functions; /* of each of the file: ours, NONE as long as it is not met */
	uint32_t *frames;    /* of all locations, their functions */
	uint32_t *places;    /* of each location */
	size_t frame_cnt, frame_cap;
	uint32_t *serials; /* of each function: the last sample that it was seen in */
	size_t serial_cap;
	uint32_t *stack; /* scratch */
	size_t stack_cap;
	char *err;
	size_t err_sz;
};

/* ---- functions and stacks ---- */

/* Addresses differ between builds: what has no name is its object. */
static uint32_t add_object(struct reader *rd, const char *object)
{
	const char *base = *object ? names_base(object) : "unknown";
	char folded[NAMES_SZ + 2];

	/* "[vdso]" is called so already */
	snprintf(folded, sizeof(folded), *base == '[' ? "%.*s" : "[%.*s]", NAMES_SZ - 1, base);
	return runs__function(rd->r, folded, "", object);
}

/* "object+0xoffset", sz bytes of it the object. A location of no mapping has no other one. */
static uint32_t add_nameless(struct reader *rd, const char *name, size_t sz, const char *object)
{
	char *of = *object ? NULL : strndup(name, sz);
	uint32_t ret = *object || of ? add_object(rd, of ?: object) : NONE;

	free(of);
	return ret;
}

/* Where people find it: in the newer sources, if there is a choice. */
static int note_source(struct reader *rd, const struct profile_function *from,
		       struct runs_function *to)
{
	bool is_new = rd->side == RUNS_NEW;
	uint32_t path;

	if (!from->filename || (to->path && to->path_is_new >= is_new))
		return 0;
	path = strtab__add(rd->r->strings, strtab__get(rd->p->strings, from->filename));
	if (path == NONE)
		return -ENOMEM;
	to->path = path;
	to->line = MAX(from->start_line, 0);
	to->path_is_new = is_new;
	return 0;
}

static uint32_t add_line(struct reader *rd, uint32_t function, const char *object)
{
	const struct profile *p = rd->p;
	const struct profile_function *f = &p->functions[function];
	const char *name = strtab__get(p->strings, f->name);
	const char *linked = strtab__get(p->strings, f->system_name);
	uint32_t *known = &rd->functions[function];
	/* our own lines where nothing has a name: see symbolize.h */
	size_t nameless = *linked ? 0 : names_nameless(name);
	char canonical[NAMES_SZ];

	if (nameless)
		return add_nameless(rd, name, nameless, object);
	if (*known != NONE && rd->r->functions[*known].object)
		return *known;
	if (!*name)
		name = linked;
	if (!names_canonical(name, canonical, sizeof(canonical)))
		return add_object(rd, object);
	*known = runs__function(rd->r, canonical, strtab__get(p->strings, f->filename), object);
	if (*known != NONE && note_source(rd, f, &rd->r->functions[*known]))
		return NONE;
	return *known;
}

static int read_location(struct reader *rd, size_t i)
{
	const struct profile_location *l = &rd->p->locations[i];
	const char *object = "";

	if (l->mapping != PROFILE_NONE)
		object = strtab__get(rd->p->strings, rd->p->mappings[l->mapping].filename);
	if (l->line_cnt <= 1) {
		rd->places[i] = l->line_cnt ? add_line(rd, rd->p->lines[l->line].function, object) :
					      add_object(rd, object);
		return rd->places[i] == NONE ? -ENOMEM : 0;
	}
	if (rd->frame_cnt >= SEVERAL ||
	    util_reserve(&rd->frames, &rd->frame_cap, rd->frame_cnt + 1 + l->line_cnt,
			 sizeof(*rd->frames)))
		return -ENOMEM;
	rd->places[i] = SEVERAL | (uint32_t)rd->frame_cnt;
	rd->frames[rd->frame_cnt++] = l->line_cnt;
	for (uint32_t k = 0; k < l->line_cnt; k++) {
		uint32_t f = add_line(rd, rd->p->lines[l->line + k].function, object);

		if (f == NONE)
			return -ENOMEM;
		rd->frames[rd->frame_cnt++] = f;
	}
	return 0;
}

static int read_locations(struct reader *rd)
{
	const struct profile *p = rd->p;
	int err = 0;

	rd->places = calloc(p->location_cnt + 1, sizeof(*rd->places));
	rd->functions = malloc((p->function_cnt + 1) * sizeof(*rd->functions));
	if (!rd->places || !rd->functions)
		return -ENOMEM;
	memset(rd->functions, 0xff, (p->function_cnt + 1) * sizeof(*rd->functions));
	for (size_t i = 0; !err && i < p->location_cnt; i++)
		err = read_location(rd, i);
	return err   ?:
		       util_reserve(&rd->serials, &rd->serial_cap, rd->r->function_cnt + 1,
				    sizeof(*rd->serials));
}

/* Adds a function to the stack, whose room is there, unless the sample has it already. Not by a branch: that
 * could not be foretold. */
static void push(struct reader *rd, uint32_t function, uint32_t serial, uint32_t *cnt)
{
	rd->stack[*cnt] = function;
	*cnt += rd->serials[function] != serial;
	rd->serials[function] = serial;
}

/* A function that calls itself is one of the stack once: pprof's rule. */
static uint32_t read_stack(struct reader *rd, const struct profile_sample *s, uint32_t serial)
{
	const uint32_t *locations = rd->p->loc_ids + s->loc, *frames;
	uint32_t cnt = 0, none;

	if (util_reserve(&rd->stack, &rd->stack_cap, s->loc_cnt, sizeof(*rd->stack)))
		return NONE;
	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		uint32_t place = rd->places[locations[i]];

		if (!(place & SEVERAL)) {
			push(rd, place, serial, &cnt);
			continue;
		}
		frames = rd->frames + (place & ~SEVERAL);
		if (util_reserve(&rd->stack, &rd->stack_cap, (size_t)cnt + *frames + s->loc_cnt - i,
				 sizeof(*rd->stack)))
			return NONE;
		for (uint32_t k = 1; k <= *frames; k++)
			push(rd, frames[k], serial, &cnt);
	}
	if (cnt)
		return runs__stack(rd->r, rd->stack, cnt);
	none = runs__function(rd->r, "[no stack]", "", "");
	return none == NONE ? NONE : runs__stack(rd->r, &none, 1);
}

/* ---- what the columns mean ---- */

static int __attribute__((format(printf, 3, 4)))
refuse(struct reader *rd, int err, const char *fmt, ...)
{
	char text[384];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return util_fail(err, rd->err, rd->err_sz, "%s: %s", rd->name, text);
}

/* One unit for each quantity. */
static double scale_of(const char *unit, const char **ret)
{
	const struct units_scale *list, *own = units_find(unit, &list);

	*ret = !own ? unit : !strcmp(list->suffix, "ns") ? "nanoseconds" : "bytes";
	return own ? own->factor : 1;
}

static bool is_count(const struct profile_value_type *t)
{
	return !strcmp(t->unit, "count");
}

/* The metric, made if it is new. */
static int add_metric(struct reader *rd, const char *type, const char *unit, int *ret)
{
	struct runs *r = rd->r;
	struct runs_metric *m;
	char name[sizeof(m->name)], of[sizeof(m->unit)];

	util_printable(name, sizeof(name), type);
	util_printable(of, sizeof(of), unit);
	*ret = runs__find_metric(r, name);
	if (*ret >= 0 && strcmp(r->metrics[*ret].unit, of) != 0)
		return refuse(rd, -EINVAL, "'%s' is in %s, and in %s in others", name, of,
			      r->metrics[*ret].unit);
	if (*ret >= 0)
		return 0;
	if (!*name)
		return refuse(rd, -EINVAL, "a value type without a name");
	if (r->metric_cnt == RUNS_METRICS_MAX)
		return refuse(rd, -E2BIG, "the files have more than %d value types together",
			      RUNS_METRICS_MAX);
	m = &r->metrics[ *ret = (int)r->metric_cnt++];
	strcpy(m->name, name);
	strcpy(m->unit, of);
	return 0;
}

/* Column v as a metric. Counts of samples are none where there is a column of what they measure. */
static int read_source(struct reader *rd, size_t v)
{
	const struct profile *p = rd->p;
	const struct profile_value_type *t = &p->value_types[v], *of = t;
	struct source s = { .value = v, .count = v, .scale = 1 };
	const char *unit, *period_unit;
	double period = (double)MAX(p->period, (int64_t)0) *
			scale_of(p->period_type.unit ?: "", &period_unit);
	bool space = p->period_type.type && !strcmp(p->period_type.type, "space");
	bool samples = !strcmp(t->type, "samples") && is_count(t);
	int err;

	if (samples) {
		if (p->value_cnt > 1)
			return 0;
		if (period > 0 && !strcmp(period_unit, "nanoseconds")) {
			s.of_samples = true;
			s.scale = s.period = period;
			of = &p->period_type;
		}
	}
	if (!s.of_samples)
		s.scale = scale_of(t->unit, &unit);
	else
		unit = period_unit;
	s.counts = is_count(t);
	if (v && is_count(&p->value_types[v - 1]) && !is_count(t))
		s.count = v - 1;
	else if (!s.of_samples && p->period_type.type && !strcmp(p->period_type.type, t->type) &&
		 !strcmp(period_unit, unit))
		s.period = period;
	if (space && period > 1) {
		s.rate = period;
		s.space = is_count(t) && v + 1 < p->value_cnt ? v + 1 : v;
	}
	/* a sample for each event is none */
	s.exact = !(s.rate > 0) && !samples && (!(s.period > 0) || (s.counts && s.period <= 1));
	err = add_metric(rd, of->type, unit, &s.metric);
	if (err)
		return err;
	rd->r->metrics[s.metric].events |= s.exact && s.period > 0;
	rd->sources[rd->source_cnt++] = s;
	return 0;
}

/* How many samples a row stands for. */
static double samples_of(const struct source *s, const int64_t *row, double value)
{
	double count = (double)row[s->count];

	if (s->rate > 0 && count > 0)
		/* what a sampler of allocations multiplied by is taken back */
		return count * -expm1(-(double)row[s->space] / count / s->rate);
	if (s->count != s->value || s->of_samples || s->counts)
		return count;
	return s->period > 0 ? value / s->period : 1;
}

/* ---- a file ---- */

static int read_row(struct reader *rd, struct runs_run *run, size_t i)
{
	const struct profile_sample *sample = &rd->p->samples[i];
	const int64_t *row = profile__values(rd->p, sample);
	uint32_t stack = NONE;

	for (size_t k = 0; k < rd->source_cnt; k++) {
		const struct source *s = &rd->sources[k];
		struct runs_column *c = &run->columns[s->metric];
		double value = (double)row[s->value] * s->scale;

		if (value < 0)
			return refuse(rd, -EINVAL,
				      "it has values below 0: it is a difference already");
		if (!(value > 0))
			continue;
		if (stack == NONE) {
			stack = read_stack(rd, sample, (uint32_t)i + 1);
			if (stack == NONE)
				return -ENOMEM;
		}
		if (util_reserve(&c->costs, &c->cap, c->cnt + 1, sizeof(*c->costs)))
			return -ENOMEM;
		c->costs[c->cnt] = (struct runs_cost){ stack, value, samples_of(s, row, value) };
		c->value += value;
		c->count += c->costs[c->cnt++].count;
	}
	return 0;
}

/* bench numbers the runs of each set from 1 on: those of two sets differ in what their order was drawn by. */
static struct runs_run *find_run(struct runs *r, enum runs_side side, const struct run_facts *f)
{
	for (size_t i = 0; *f->run && i < r->run_cnt; i++) {
		const struct run_facts *of = &r->runs[i].facts;

		if (r->runs[i].side == side && !strcmp(of->run, f->run) && of->seed == f->seed &&
		    of->block == f->block)
			return &r->runs[i];
	}
	return NULL;
}

/* The run that the file is of: its own, unless it says another one. */
static int open_run(struct reader *rd, const struct run_facts *f, struct runs_run **ret)
{
	struct runs *r = rd->r;
	struct runs_run *run = find_run(r, rd->side, f);

	if (!run) {
		if (util_reserve(&r->runs, &r->run_cap, r->run_cnt + 1, sizeof(*r->runs)))
			return -ENOMEM;
		run = &r->runs[r->run_cnt];
		*run = (struct runs_run){
			.side = rd->side, .time_ns = rd->p->time_ns, .parts = 1, .facts = *f
		};
		run->path = strdup(rd->name);
		if (!run->path)
			return -ENOMEM;
		r->run_cnt++;
	}
	for (size_t k = 0; k < rd->source_cnt; k++) {
		struct runs_column *c = &run->columns[rd->sources[k].metric];

		if (c->there)
			return refuse(rd, -EINVAL,
				      "run '%s' has '%s' twice: give each file once, and of "
				      "block, mutex and offcpu those of one kind",
				      f->run, r->metrics[rd->sources[k].metric].name);
		c->there = true;
		c->exact = rd->sources[k].exact;
		c->by_chance = rd->sources[k].rate > 0;
	}
	*ret = run;
	return 0;
}

static int read_profile(struct reader *rd)
{
	const struct profile *p = rd->p;
	struct runs_run *run = NULL;
	struct run_facts facts;
	const char *key;
	int err = 0;

	if (facts_read(p, &facts, &key))
		return refuse(rd, -EBADMSG, "its comment %s= is twice there, or no value", key);
	for (size_t v = 0; !err && v < p->value_cnt; v++)
		err = read_source(rd, v);
	err = err ?: read_locations(rd);
	if (!err)
		err = open_run(rd, &facts, &run);
	if (!err)
		memset(rd->serials, 0, rd->serial_cap * sizeof(*rd->serials));
	for (size_t i = 0; !err && i < p->sample_cnt; i++)
		err = read_row(rd, run, i);
	return err;
}

int runs__add_read(struct runs *r, const struct runs_file *file, char *err, size_t err_sz)
{
	struct reader rd = { .r = r,
			     .p = file->profile,
			     .side = file->side,
			     .name = file->name,
			     .err = err,
			     .err_sz = err_sz };
	int ret = file->read_err;

	*err = '\0';
	if (ret == -E2BIG)
		return refuse(&rd, ret, "it is too large, or has more than %d value types",
			      PROFILE_MAX_VALUES);
	if (ret)
		return refuse(&rd, ret, "%s",
			      ret == -ENOMEM ? "out of memory" :
			      file->sz	     ? "it is no profile that pprof reads, or damaged" :
					       "it is empty");
	ret = read_profile(&rd);
	if (ret && !*err)
		refuse(&rd, ret, "out of memory");
	/* the same files give the same draws */
	r->digest = util_hash(file->data, file->sz, r->digest + (uint64_t)file->side + 1);
	free(rd.functions);
	free(rd.frames);
	free(rd.places);
	free(rd.serials);
	free(rd.stack);
	return ret;
}

int runs__add(struct runs *r, enum runs_side side, const char *name, const void *data, size_t sz,
	      char *err, size_t err_sz)
{
	struct runs_file file = { .side = side, .name = name, .data = data, .sz = sz };
	int ret;

	file.read_err = pprof_read_stacks(data, sz, &file.profile);
	ret = runs__add_read(r, &file, err, err_sz);
	profile__free(file.profile);
	return ret;
}
