// SPDX-License-Identifier: BSD-2-Clause
#include "judge/runs.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/util.h"
#include "judge/names.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"
#include "profile/units.h"

#define NONE UINT32_MAX

struct name_entry {
	uint32_t name;
	uint32_t function;
};

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
};

struct reader {
	struct runs *r;
	const struct profile *p;
	const char *name;
	struct source sources[PROFILE_MAX_VALUES];
	size_t source_cnt;
	uint32_t **frames; /* of each location, its functions */
	uint32_t *frame_cnts;
	uint32_t *serials; /* of each function: the last sample that it was seen in */
	size_t serial_cap;
	uint32_t *stack; /* scratch */
	size_t stack_cap;
	char *err;
	size_t err_sz;
};

struct runs *runs__new(void)
{
	struct runs *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->strings = strtab__new();
	hash__init(&r->by_name, sizeof(struct name_entry), sizeof(uint32_t), HASH_MAX);
	hash__init(&r->by_stack, sizeof(uint32_t), 0, HASH_MAX);
	if (r->strings)
		return r;
	runs__free(r);
	return NULL;
}

void runs__free(struct runs *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->run_cnt; i++) {
		for (size_t m = 0; m < RUNS_METRICS_MAX; m++)
			free(r->runs[i].columns[m].costs);
		free(r->runs[i].path);
	}
	strtab__free(r->strings);
	hash__done(&r->by_name);
	hash__done(&r->by_stack);
	free(r->functions);
	free(r->stacks);
	free(r->frames);
	free(r->runs);
	free(r);
}

/* ---- functions and stacks ---- */

static uint32_t add_function(struct runs *r, const char *name, const char *file, const char *object)
{
	struct runs_function *f;
	struct name_entry *e;
	uint32_t id = strtab__add(r->strings, name), file_id, object_id;
	bool is_new;

	file_id = strtab__add(r->strings, names_base(file));
	object_id = strtab__add(r->strings, names_base(object));
	if (id == NONE || file_id == NONE || object_id == NONE)
		return NONE;
	e = hash__insert(&r->by_name, &id, &is_new);
	if (!e)
		return NONE;
	if (is_new) {
		if (util_reserve(&r->functions, &r->function_cap, r->function_cnt + 1,
				 sizeof(*r->functions))) {
			hash__remove(&r->by_name, e);
			return NONE;
		}
		e->function = (uint32_t)r->function_cnt++;
		r->functions[e->function] = (struct runs_function){ .name = id };
	}
	f = &r->functions[e->function];
	f->file = f->file ?: file_id;
	f->object = f->object ?: object_id;
	return e->function;
}

static uint32_t add_line(struct reader *rd, const struct profile_line *l, const char *object)
{
	const struct profile *p = rd->p;
	const struct profile_function *f = &p->functions[l->function];
	const char *name = strtab__get(p->strings, f->name);
	char canonical[NAMES_SZ], folded[NAMES_SZ + 2];

	if (!*name)
		name = strtab__get(p->strings, f->system_name);
	if (names_canonical(name, canonical, sizeof(canonical)))
		return add_function(rd->r, canonical, strtab__get(p->strings, f->filename), object);
	snprintf(folded, sizeof(folded), "[%.*s]", NAMES_SZ - 1,
		 *object ? names_base(object) : "unknown");
	return add_function(rd->r, folded, "", object);
}

/* The functions of a location. Addresses differ between builds: what has no name is its object. */
static int read_location(struct reader *rd, size_t i)
{
	const struct profile_location *l = &rd->p->locations[i];
	const char *object = "";
	char folded[NAMES_SZ + 2];

	if (l->mapping != PROFILE_NONE)
		object = strtab__get(rd->p->strings, rd->p->mappings[l->mapping].filename);
	rd->frames[i] = calloc(MAX(l->line_cnt, 1U), sizeof(uint32_t));
	if (!rd->frames[i])
		return -ENOMEM;
	rd->frame_cnts[i] = MAX(l->line_cnt, 1U);
	for (uint32_t k = 0; k < l->line_cnt; k++) {
		rd->frames[i][k] = add_line(rd, &rd->p->lines[l->line + k], object);
		if (rd->frames[i][k] == NONE)
			return -ENOMEM;
	}
	if (l->line_cnt)
		return 0;
	snprintf(folded, sizeof(folded), "[%.*s]", NAMES_SZ - 1,
		 *object ? names_base(object) : "unknown");
	rd->frames[i][0] = add_function(rd->r, folded, "", object);
	return rd->frames[i][0] == NONE ? -ENOMEM : 0;
}

static uint32_t find_stack(struct runs *r, const uint32_t *frames, uint32_t cnt)
{
	uint64_t hash = util_hash(frames, cnt * sizeof(*frames), r->by_stack.seed);
	uint32_t *e;

	for (e = hash__first(&r->by_stack, hash); e; e = hash__next(&r->by_stack, e))
		if (r->stacks[*e].cnt == cnt &&
		    !memcmp(r->frames + r->stacks[*e].at, frames, cnt * sizeof(*frames)))
			return *e;
	if (util_reserve(&r->stacks, &r->stack_cap, r->stack_cnt + 1, sizeof(*r->stacks)) ||
	    util_reserve(&r->frames, &r->frame_cap, r->frame_cnt + cnt, sizeof(*r->frames)))
		return NONE;
	e = hash__add(&r->by_stack, hash);
	if (!e)
		return NONE;
	memcpy(r->frames + r->frame_cnt, frames, cnt * sizeof(*frames));
	r->stacks[r->stack_cnt] = (struct runs_stack){ r->frame_cnt, cnt };
	r->frame_cnt += cnt;
	*e = (uint32_t)r->stack_cnt++;
	return *e;
}

/* A function that calls itself is one of the stack once: pprof's rule. */
static uint32_t read_stack(struct reader *rd, const struct profile_sample *s, uint32_t serial)
{
	uint32_t cnt = 0, none;

	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		uint32_t loc = rd->p->loc_ids[s->loc + i];

		if (util_reserve(&rd->stack, &rd->stack_cap, cnt + rd->frame_cnts[loc],
				 sizeof(*rd->stack)))
			return NONE;
		for (uint32_t k = 0; k < rd->frame_cnts[loc]; k++) {
			uint32_t f = rd->frames[loc][k];

			if (rd->serials[f] == serial)
				continue;
			rd->serials[f] = serial;
			rd->stack[cnt++] = f;
		}
	}
	if (cnt)
		return find_stack(rd->r, rd->stack, cnt);
	none = add_function(rd->r, "[no stack]", "", "");
	return none == NONE ? NONE : find_stack(rd->r, &none, 1);
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

int runs__find_metric(const struct runs *r, const char *name)
{
	for (size_t i = 0; i < r->metric_cnt; i++)
		if (!strcmp(r->metrics[i].name, name))
			return (int)i;
	return -1;
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
	int err;

	if (!strcmp(t->type, "samples") && is_count(t)) {
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
	err = add_metric(rd, of->type, unit, &s.metric);
	if (!err)
		rd->sources[rd->source_cnt++] = s;
	return err;
}

/* How many samples a row stands for. */
static double samples_of(const struct source *s, const struct profile_sample *row, double value)
{
	double count = (double)row->value[s->count];

	if (s->rate > 0 && count > 0)
		/* what a sampler of allocations multiplied by is taken back */
		return count * -expm1(-(double)row->value[s->space] / count / s->rate);
	if (s->count != s->value || s->of_samples || s->counts)
		return count;
	return s->period > 0 ? value / s->period : 1;
}

/* ---- a file ---- */

static int read_row(struct reader *rd, struct runs_run *run, size_t i)
{
	const struct profile_sample *row = &rd->p->samples[i];
	uint32_t stack = NONE;

	for (size_t k = 0; k < rd->source_cnt; k++) {
		const struct source *s = &rd->sources[k];
		struct runs_column *c = &run->columns[s->metric];
		double value = (double)row->value[s->value] * s->scale;

		if (value < 0)
			return refuse(rd, -EINVAL,
				      "it has values below 0: it is a difference already");
		if (!(value > 0))
			continue;
		if (stack == NONE) {
			stack = read_stack(rd, row, (uint32_t)i + 1);
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

static struct runs_run *find_run(struct runs *r, enum runs_side side, const char *run)
{
	for (size_t i = 0; *run && i < r->run_cnt; i++)
		if (r->runs[i].side == side && !strcmp(r->runs[i].facts.run, run))
			return &r->runs[i];
	return NULL;
}

/* The run that the file is of: its own, unless it says another one. */
static int open_run(struct reader *rd, enum runs_side side, const struct run_facts *f,
		    struct runs_run **ret)
{
	struct runs *r = rd->r;
	struct runs_run *run = find_run(r, side, f->run);

	if (!run) {
		if (util_reserve(&r->runs, &r->run_cap, r->run_cnt + 1, sizeof(*r->runs)))
			return -ENOMEM;
		run = &r->runs[r->run_cnt];
		*run = (struct runs_run){ .side = side, .time_ns = rd->p->time_ns, .facts = *f };
		run->path = strdup(rd->name);
		if (!run->path)
			return -ENOMEM;
		r->run_cnt++;
	}
	for (size_t k = 0; k < rd->source_cnt; k++) {
		struct runs_column *c = &run->columns[rd->sources[k].metric];

		if (c->there)
			return refuse(rd, -EINVAL, "run '%s' has '%s' twice", f->run,
				      r->metrics[rd->sources[k].metric].name);
		c->there = true;
		c->exact = !(rd->sources[k].rate > 0) && !rd->sources[k].of_samples &&
			   !(rd->sources[k].period > 0);
	}
	*ret = run;
	return 0;
}

static int read_profile(struct reader *rd, enum runs_side side)
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
	rd->frames = calloc(p->location_cnt + 1, sizeof(*rd->frames));
	rd->frame_cnts = calloc(p->location_cnt + 1, sizeof(*rd->frame_cnts));
	if (!rd->frames || !rd->frame_cnts)
		return -ENOMEM;
	for (size_t i = 0; !err && i < p->location_cnt; i++)
		err = read_location(rd, i);
	if (!err)
		err = util_reserve(&rd->serials, &rd->serial_cap, rd->r->function_cnt + 1,
				   sizeof(*rd->serials));
	if (!err)
		err = open_run(rd, side, &facts, &run);
	if (!err)
		memset(rd->serials, 0, rd->serial_cap * sizeof(*rd->serials));
	for (size_t i = 0; !err && i < p->sample_cnt; i++)
		err = read_row(rd, run, i);
	return err;
}

int runs__add(struct runs *r, enum runs_side side, const char *name, const void *data, size_t sz,
	      char *err, size_t err_sz)
{
	struct reader rd = { .r = r, .name = name, .err = err, .err_sz = err_sz };
	struct profile *p;
	int ret;

	*err = '\0';
	ret = pprof_read(data, sz, &p);
	if (ret)
		return refuse(&rd, ret, "%s",
			      ret == -ENOMEM ? "out of memory" :
			      ret == -E2BIG  ? "it is too large, or has too many value types" :
			      sz	     ? "it is no profile that pprof reads, or damaged" :
					       "it is empty");
	rd.p = p;
	ret = read_profile(&rd, side);
	if (ret && !*err)
		refuse(&rd, ret, "out of memory");
	/* the same files give the same draws */
	r->digest = util_hash(data, sz, r->digest + (uint64_t)side + 1);
	for (size_t i = 0; rd.frames && i < p->location_cnt; i++)
		free(rd.frames[i]);
	free(rd.frames);
	free(rd.frame_cnts);
	free(rd.serials);
	free(rd.stack);
	profile__free(p);
	return ret;
}

/* ---- paths ---- */

static int add_file(struct runs *r, enum runs_side side, const char *path, char *err, size_t err_sz)
{
	char *data;
	size_t sz;
	int ret = util_read_file(path, PPROF_READ_MAX, &data, &sz);

	if (ret)
		return util_fail(ret, err, err_sz, "cannot read '%s': %s", path, strerror(-ret));
	ret = runs__add(r, side, path, data, sz, err, err_sz);
	free(data);
	return ret;
}

static int is_profile(const struct dirent *e)
{
	static const char *const ends[] = { ".pb.gz", ".pb", ".pprof", ".prof" };
	size_t sz = strlen(e->d_name);

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t n = strlen(ends[i]);

		if (e->d_name[0] != '.' && sz > n && !strcmp(e->d_name + sz - n, ends[i]))
			return 1;
	}
	return 0;
}

/* not alphasort(3), which goes by the locale */
static int by_bytes(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_folder(struct runs *r, enum runs_side side, const char *path, char *err,
		      size_t err_sz)
{
	struct dirent **entries;
	int cnt = scandir(path, &entries, is_profile, by_bytes), ret = 0;

	if (cnt < 0)
		return util_fail(-errno, err, err_sz, "cannot read '%s': %s", path,
				 strerror(errno));
	if (!cnt)
		ret = util_fail(-ENOENT, err, err_sz,
				"'%s' has no profiles: files whose names end in .pb.gz, .pb, "
				".pprof or .prof",
				path);
	for (int i = 0; i < cnt; i++) {
		char *file;

		if (!ret && asprintf(&file, "%s/%s", path, entries[i]->d_name) < 0)
			ret = util_fail(-ENOMEM, err, err_sz, "out of memory");
		else if (!ret) {
			ret = add_file(r, side, file, err, err_sz);
			free(file);
		}
		free(entries[i]);
	}
	free(entries);
	return ret;
}

int runs__add_path(struct runs *r, enum runs_side side, const char *path, char *err, size_t err_sz)
{
	struct stat st;

	if (stat(path, &st))
		return util_fail(-errno, err, err_sz, "cannot read '%s': %s", path,
				 strerror(errno));
	return (S_ISDIR(st.st_mode) ? add_folder : add_file)(r, side, path, err, err_sz);
}

/* ---- the whole ---- */

static int compare_u64(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_block(const void *a, const void *b)
{
	const struct runs_run *x = a, *y = b;

	return compare_u64(x->facts.block, y->facts.block)		     ?:
		       compare_u64(x->facts.slot, y->facts.slot)	     ?:
		       (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns) ?:
		       (x->side > y->side) - (x->side < y->side)	     ?:
		       strcmp(x->path, y->path);
}

static int check_run(const struct runs *r, const struct runs_run *run, char *err, size_t err_sz)
{
	const struct runs_run *first = &r->runs[0];
	bool common = false;

	if ((run->facts.ops == FACTS_NONE) != (first->facts.ops == FACTS_NONE))
		return util_fail(-EINVAL, err, err_sz,
				 "one of '%s' and '%s' says how many operations it did and the "
				 "other does not",
				 first->path, run->path);
	if (*run->facts.machine && *first->facts.machine &&
	    strcmp(run->facts.machine, first->facts.machine) != 0)
		return util_fail(-EINVAL, err, err_sz,
				 "'%s' and '%s' are of different machines, which says more than "
				 "any change: record both sides on one machine",
				 first->path, run->path);
	for (size_t m = 0; m < r->metric_cnt; m++)
		for (size_t j = 0; j < r->run_cnt; j++)
			common |= run->columns[m].there && r->runs[j].columns[m].there &&
				  r->runs[j].side != run->side;
	if (!common)
		return util_fail(-EINVAL, err, err_sz,
				 "'%s' has no value type that a file of the other side has, too",
				 run->path);
	return 0;
}

int runs__finish(struct runs *r, char *err, size_t err_sz)
{
	size_t cnt[2] = { 0 };
	int ret = 0;

	for (size_t i = 0; i < r->run_cnt; i++)
		cnt[r->runs[i].side]++;
	if (!cnt[RUNS_BASE] || !cnt[RUNS_NEW])
		return util_fail(-EINVAL, err, err_sz, "there is no run of the %s side",
				 cnt[RUNS_BASE] ? "new" : "base");
	qsort(r->runs, r->run_cnt, sizeof(*r->runs), by_block);
	for (size_t i = 0; !ret && i < r->run_cnt; i++)
		ret = check_run(r, &r->runs[i], err, err_sz);
	return ret;
}
