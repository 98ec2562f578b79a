/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of a profile, and the hashes by which equal entries find each other. */
#include "profile/profile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "profile/ranks.h"

#define MAX_LABELS 16 /* of a sample that loses one */
#define FEW_LABELS 32 /* are sorted by insertion */
#define LONG_TEXT \
	256 /* bytes that two strings have in common, from which on it counts what they take */
/* Addresses that no processor has: not canonical, with 48 bits of address or with 57. */
#define MARKER_BASE (1ULL << 63)
#define MARKER_MASK ((1ULL << 47) - 1)

/* The hash tables have indices as entries. */
struct profile_index {
	struct hash mappings, functions, locations, samples;
	size_t mapping_cap, function_cap, line_cap, location_cap, label_cap, loc_id_cap, sample_cap,
		value_cap, comment_cap;
	uint32_t *ranks; /* of the first rank_cnt strings; NULL: none were worth it */
	uint32_t rank_cnt;
	size_t compared; /* bytes of long strings since then */
};

/* What a sample is looked up by. */
struct sample_key {
	const uint32_t *locs;
	size_t loc_cnt;
	const struct profile_label *labels;
	size_t label_cnt;
};

typedef bool (*equal_fn)(const struct profile *p, uint32_t idx, const void *key);

static uint32_t no_memory(void)
{
	errno = ENOMEM;
	return PROFILE_NONE;
}

static void init_table(struct hash *t)
{
	hash__init(t, sizeof(uint32_t), 0, HASH_MAX);
}

/* The index of the entry that equals key, PROFILE_NONE if there is none. */
static uint32_t find(const struct hash *t, const struct profile *p, uint64_t hash, equal_fn equal,
		     const void *key)
{
	const uint32_t *idx;

	for (idx = hash__first(t, hash); idx; idx = hash__next(t, idx))
		if (equal(p, *idx, key))
			return *idx;
	return PROFILE_NONE;
}

/* Counts an entry that was written behind the others: its index, PROFILE_NONE if there is no memory.
 */
static uint32_t take(struct hash *t, uint64_t hash, size_t *cnt)
{
	uint32_t *idx = hash__add(t, hash);

	if (!idx)
		return no_memory();
	*idx = (uint32_t)(*cnt)++;
	return *idx;
}

/* Room for add more elements, whose indices stay below PROFILE_NONE. */
static int reserve(void *array, size_t *cap, size_t cnt, size_t add, size_t elem_sz)
{
	if (add >= PROFILE_NONE - cnt)
		return -ENOMEM;
	return util_reserve(array, cap, cnt + add, elem_sz);
}

/* Copies a text to the place that *at leads to. */
static const char *take_text(char **at, const char *text)
{
	char *copy = *at;

	if (!text)
		return NULL;
	strcpy(copy, text);
	*at += strlen(text) + 1;
	return copy;
}

/* Its texts as strings of the profile, which are UTF-8. */
struct type_strings {
	uint32_t type, unit; /* 0: it has none */
};

static int note_type(struct profile *p, const struct profile_value_type *t,
		     struct type_strings *ret)
{
	ret->type = profile__string(p, t->type);
	ret->unit = profile__string(p, t->unit);
	return ret->type == PROFILE_NONE || ret->unit == PROFILE_NONE ? -ENOMEM : 0;
}

static size_t text_size(const struct profile *p, const struct type_strings *s)
{
	return strlen(strtab__get(p->strings, s->type)) + 1 +
	       strlen(strtab__get(p->strings, s->unit)) + 1;
}

static void take_type(struct profile *p, struct profile_value_type *to,
		      const struct profile_value_type *from, const struct type_strings *s,
		      char **at)
{
	to->type = take_text(at, from->type ? strtab__get(p->strings, s->type) : NULL);
	to->unit = take_text(at, from->unit ? strtab__get(p->strings, s->unit) : NULL);
}

/* 0 or -ENOMEM. */
static int take_types(struct profile *p, const struct profile_value_type *types, size_t cnt,
		      const struct profile_value_type *period)
{
	struct type_strings strings[PROFILE_MAX_VALUES], period_strings;
	int err = note_type(p, period, &period_strings);
	size_t sz = 0, i;
	char *at;

	for (i = 0; !err && i < cnt; i++)
		err = note_type(p, &types[i], &strings[i]);
	if (err)
		return err;
	for (i = 0; i < cnt; i++)
		sz += text_size(p, &strings[i]);
	at = malloc(sz + text_size(p, &period_strings));
	if (!at)
		return -ENOMEM;
	p->type_texts = at;
	for (i = 0; i < cnt; i++)
		take_type(p, &p->value_types[i], &types[i], &strings[i], &at);
	p->value_cnt = cnt;
	take_type(p, &p->period_type, period, &period_strings, &at);
	return 0;
}

int profile__set_types(struct profile *p, const struct profile_value_type *value_types,
		       size_t value_cnt, struct profile_value_type period_type)
{
	char *before = p->type_texts;
	int err = take_types(p, value_types, value_cnt, &period_type);

	if (!err)
		free(before);
	return err;
}

size_t profile__default_value(const struct profile *p)
{
	const char *type = strtab__get(p->strings, p->default_type);

	for (size_t i = 0; p->default_type && i < p->value_cnt; i++)
		if (p->value_types[i].type && !strcmp(p->value_types[i].type, type))
			return i;
	return p->value_cnt - 1;
}

struct profile *profile__new(const struct profile_value_type *value_types, size_t value_cnt,
			     struct profile_value_type period_type, int64_t period)
{
	struct profile *p;

	if (!value_cnt || value_cnt > PROFILE_MAX_VALUES) {
		errno = EINVAL;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->strings = strtab__new();
	p->index = calloc(1, sizeof(*p->index));
	/* room for one: what has none of them points into them all the same */
	if (!p->strings || !p->index || take_types(p, value_types, value_cnt, &period_type) ||
	    reserve(&p->labels, &p->index->label_cap, 0, 1, sizeof(*p->labels)) ||
	    reserve(&p->loc_ids, &p->index->loc_id_cap, 0, 1, sizeof(*p->loc_ids))) {
		profile__free(p);
		errno = ENOMEM;
		return NULL;
	}
	init_table(&p->index->mappings);
	init_table(&p->index->functions);
	init_table(&p->index->locations);
	init_table(&p->index->samples);
	p->period = period;
	return p;
}

void profile__free(struct profile *p)
{
	if (!p)
		return;
	if (p->index) {
		hash__done(&p->index->mappings);
		hash__done(&p->index->functions);
		hash__done(&p->index->locations);
		hash__done(&p->index->samples);
		free(p->index->ranks);
	}
	free(p->index);
	strtab__free(p->strings);
	free(p->mappings);
	free(p->functions);
	free(p->lines);
	free(p->locations);
	free(p->labels);
	free(p->loc_ids);
	free(p->samples);
	free(p->values);
	free(p->comments);
	free(p->type_texts);
	free(p);
}

/* profile.proto's strings are UTF-8; some readers refuse a file with anything else. */
uint32_t profile__string(struct profile *p, const char *s)
{
	const char *in = s;
	size_t len, bad = 0;
	uint32_t cp, id;
	char *clean, *to;

	if (!s)
		return 0;
	for (; *in; in += len ? len : 1) {
		/* nearly all names are of ASCII alone */
		len = *in & 0x80 ? util_utf8(in, &cp) : 1;
		bad += !len;
	}
	if (!bad)
		return strtab__add_n(p->strings, s, (size_t)(in - s));
	clean = malloc((size_t)(in - s) + 2 * bad + 1);
	if (!clean)
		return no_memory();
	for (in = s, to = clean; *in; in += len ? len : 1) {
		len = util_utf8(in, &cp);
		memcpy(to, len ? in : "\xef\xbf\xbd", len ? len : 3);
		to += len ? len : 3;
	}
	id = strtab__add_n(p->strings, clean, (size_t)(to - clean));
	free(clean);
	return id;
}

static bool mapping_equal(const struct profile *p, uint32_t idx, const void *key)
{
	const struct profile_mapping *a = &p->mappings[idx], *b = key;

	return a->start == b->start && a->limit == b->limit && a->offset == b->offset &&
	       a->filename == b->filename && a->build_id == b->build_id && a->owner == b->owner;
}

static uint64_t hash_mapping(const struct profile *p, const struct profile_mapping *m)
{
	uint64_t words[] = { m->start, m->limit, m->offset,
			     (uint64_t)m->filename << 32 | m->build_id, m->owner };

	return util_hash(words, sizeof(words), p->index->mappings.seed);
}

uint32_t profile__add_mapping(struct profile *p, const struct profile_mapping *m)
{
	struct profile_index *x = p->index;
	uint64_t hash = hash_mapping(p, m);
	uint32_t found = find(&x->mappings, p, hash, mapping_equal, m);
	struct profile_mapping *new;

	if (found != PROFILE_NONE)
		return found;
	if (reserve(&p->mappings, &x->mapping_cap, p->mapping_cnt, 1, sizeof(*p->mappings)))
		return no_memory();
	new = &p->mappings[p->mapping_cnt];
	*new = *m;
	new->has_functions = new->has_filenames = new->has_lines = new->has_inlines = false;
	return take(&x->mappings, hash, &p->mapping_cnt);
}

/* Where the table has the index of a mapping. */
static uint32_t *index_of_mapping(struct profile *p, uint32_t mapping)
{
	struct hash *t = &p->index->mappings;
	uint32_t *idx = hash__first(t, hash_mapping(p, &p->mappings[mapping]));

	while (*idx != mapping)
		idx = hash__next(t, idx);
	return idx;
}

void profile__put_first(struct profile *p, uint32_t mapping)
{
	struct profile_mapping m = p->mappings[mapping];
	uint32_t *first = index_of_mapping(p, 0), *idx = index_of_mapping(p, mapping);

	*first = mapping;
	*idx = 0;
	p->mappings[mapping] = p->mappings[0];
	p->mappings[0] = m;
	for (size_t i = 0; i < p->location_cnt; i++) {
		struct profile_location *l = &p->locations[i];

		if (l->mapping == 0)
			l->mapping = mapping;
		else if (l->mapping == mapping)
			l->mapping = 0;
	}
}

static bool function_equal(const struct profile *p, uint32_t idx, const void *key)
{
	const struct profile_function *a = &p->functions[idx], *b = key;

	return a->name == b->name && a->system_name == b->system_name &&
	       a->filename == b->filename && a->start_line == b->start_line &&
	       a->wrapper == b->wrapper;
}

uint32_t profile__add_function(struct profile *p, const struct profile_function *f)
{
	uint64_t words[] = { (uint64_t)f->name << 32 | f->system_name, f->filename,
			     (uint64_t)f->start_line };
	struct profile_index *x = p->index;
	uint64_t hash = util_hash(words, sizeof(words), x->functions.seed);
	uint32_t found = find(&x->functions, p, hash, function_equal, f);

	if (found != PROFILE_NONE)
		return found;
	if (reserve(&p->functions, &x->function_cap, p->function_cnt, 1, sizeof(*p->functions)))
		return no_memory();
	p->functions[p->function_cnt] = *f;
	return take(&x->functions, hash, &p->function_cnt);
}

static bool location_equal(const struct profile *p, uint32_t idx, const void *key)
{
	const struct profile_location *a = &p->locations[idx], *b = key;

	return a->mapping == b->mapping && a->address == b->address;
}

static uint64_t hash_location(const struct profile *p, uint32_t mapping, uint64_t address)
{
	uint64_t words[] = { mapping, address };

	return util_hash(words, sizeof(words), p->index->locations.seed);
}

static int put_location(struct profile *p, uint32_t mapping, uint64_t address)
{
	if (reserve(&p->locations, &p->index->location_cap, p->location_cnt, 1,
		    sizeof(*p->locations)))
		return -ENOMEM;
	p->locations[p->location_cnt] =
		(struct profile_location){ .mapping = mapping, .address = address };
	return 0;
}

uint32_t profile__append_location(struct profile *p, uint32_t mapping, uint64_t address)
{
	return put_location(p, mapping, address) ? no_memory() : (uint32_t)p->location_cnt++;
}

uint32_t profile__add_location(struct profile *p, uint32_t mapping, uint64_t address)
{
	struct profile_location key = { .mapping = mapping, .address = address };
	uint64_t hash = hash_location(p, mapping, address);
	uint32_t found = find(&p->index->locations, p, hash, location_equal, &key);

	if (found != PROFILE_NONE)
		return found;
	if (put_location(p, mapping, address))
		return no_memory();
	return take(&p->index->locations, hash, &p->location_cnt);
}

uint32_t profile__add_marker(struct profile *p, const char *name)
{
	uint64_t address = MARKER_BASE | (util_hash(name, strlen(name), 0) & MARKER_MASK);
	struct profile_function function = { 0 };
	const struct profile_location *l;
	struct profile_line line = { 0 };
	uint32_t loc;

	function.name = function.system_name = profile__string(p, name);
	if (function.name == PROFILE_NONE)
		return PROFILE_NONE;
	line.function = profile__add_function(p, &function);
	if (line.function == PROFILE_NONE)
		return PROFILE_NONE;
	/* two names with one hash: the later one moves on */
	for (;; address++) {
		loc = profile__add_location(p, PROFILE_NONE, address);
		if (loc == PROFILE_NONE)
			return PROFILE_NONE;
		l = &p->locations[loc];
		if (!l->line_cnt)
			return profile__set_lines(p, loc, &line, 1) ? no_memory() : loc;
		if (p->lines[l->line].function == line.function)
			return loc;
	}
}

int profile__set_lines(struct profile *p, uint32_t location, const struct profile_line *lines,
		       size_t cnt)
{
	struct profile_location *l = &p->locations[location];

	if (cnt > l->line_cnt) {
		if (reserve(&p->lines, &p->index->line_cap, p->line_cnt, cnt, sizeof(*p->lines)))
			return -ENOMEM;
		l->line = (uint32_t)p->line_cnt;
		p->line_cnt += cnt;
	}
	if (cnt)
		memcpy(&p->lines[l->line], lines, cnt * sizeof(*lines));
	l->line_cnt = (uint32_t)cnt;
	return 0;
}

/* Two different texts that begin alike: they differ somewhere behind that. */
static int compare_long(const struct profile *p, const char *a, const char *b)
{
	struct profile_index *x = p->index;
	size_t same = LONG_TEXT;
	uint32_t *ranks;

	while (a[same] == b[same])
		same++;
	x->compared += same;
	if (x->compared > strtab__bytes(p->strings)) {
		/* it took as much as to look at all of them; without memory it goes on like that */
		ranks = ranks_make(p->strings);
		if (ranks) {
			free(x->ranks);
			x->ranks = ranks;
			x->rank_cnt = strtab__cnt(p->strings);
		}
		x->compared = 0;
	}
	return (unsigned char)a[same] < (unsigned char)b[same] ? -1 : 1;
}

/* A file may have few long strings, and millions of labels with them: equal ids are equal texts, and others are
 * compared a few times only. */
static int compare_strings(const struct profile *p, uint32_t a, uint32_t b)
{
	const struct profile_index *x = p->index;
	const char *text_a, *text_b;
	int order;

	if (a == b)
		return 0;
	if (a < x->rank_cnt && b < x->rank_cnt)
		return x->ranks[a] < x->ranks[b] ? -1 : 1;
	text_a = strtab__get(p->strings, a);
	text_b = strtab__get(p->strings, b);
	order = strncmp(text_a, text_b, LONG_TEXT);
	return order ? order : compare_long(p, text_a, text_b);
}

static int compare_labels(const void *pa, const void *pb, void *profile)
{
	const struct profile_label *a = pa, *b = pb;
	const struct profile *p = profile;
	int c = compare_strings(p, a->key, b->key);

	if (!c)
		c = compare_strings(p, a->str, b->str);
	if (!c)
		c = (a->num > b->num) - (a->num < b->num);
	return c ? c : compare_strings(p, a->num_unit, b->num_unit);
}

/* Equal ones are the same in all that they have, so that there is one order. */
static void sort_labels(struct profile *p, struct profile_label *labels, size_t cnt)
{
	struct profile_label l;
	size_t i, at;

	/* of the few that there are as a rule; a file may have millions */
	if (cnt > FEW_LABELS) {
		qsort_r(labels, cnt, sizeof(*labels), compare_labels, p);
		return;
	}
	for (i = 1; i < cnt; i++) {
		l = labels[i];
		for (at = i; at && compare_labels(&labels[at - 1], &l, p) > 0; at--)
			labels[at] = labels[at - 1];
		labels[at] = l;
	}
}

/* The unit of a number that says none, as pprof has it (Profile.NumLabelUnits). */
static uint32_t default_unit(struct profile *p, uint32_t key)
{
	const char *name = strtab__get(p->strings, key);
	uint32_t bytes = PROFILE_NONE;

	if (!strcmp(name, "request") || !strcmp(name, "alignment"))
		bytes = profile__string(p, "bytes");
	/* where there is no memory, too, as for any other number */
	return bytes == PROFILE_NONE ? key : bytes;
}

/* Puts the labels, in their order, behind those in use, for which there is room. Returns how many
 * there are. */
static size_t place_labels(struct profile *p, const struct profile_label *labels, size_t cnt)
{
	struct profile_label *to = p->labels + p->label_cnt, l;
	size_t i, placed = 0;

	for (i = 0; i < cnt; i++) {
		l = labels[i];
		if (l.str) {
			l.num = 0;
			l.num_unit = 0;
		} else if (!l.num && !l.num_unit) {
			continue;
		} else if (!l.num_unit) {
			l.num_unit = default_unit(p, l.key);
		}
		to[placed++] = l;
	}
	sort_labels(p, to, placed);
	return placed;
}

static uint64_t hash_sample(const struct sample_key *key, uint64_t seed)
{
	uint64_t hash = util_hash(key->locs, key->loc_cnt * sizeof(*key->locs), seed);
	const struct profile_label *l;
	size_t i;

	for (i = 0; i < key->label_cnt; i++) {
		l = &key->labels[i];
		uint64_t words[] = { (uint64_t)l->key << 32 | l->str, (uint64_t)l->num,
				     l->num_unit };

		hash = util_hash(words, sizeof(words), hash);
	}
	return hash;
}

static bool sample_equal(const struct profile *p, uint32_t idx, const void *key)
{
	const struct profile_sample *a = &p->samples[idx];
	const struct sample_key *b = key;
	const struct profile_label *la, *lb;
	size_t i;

	if (a->loc_cnt != b->loc_cnt || a->label_cnt != b->label_cnt)
		return false;
	if (a->loc_cnt && memcmp(p->loc_ids + a->loc, b->locs, a->loc_cnt * sizeof(*b->locs)))
		return false;
	for (i = 0; i < a->label_cnt; i++) {
		la = &p->labels[a->label + i];
		lb = &b->labels[i];
		if (la->key != lb->key || la->str != lb->str || la->num != lb->num ||
		    la->num_unit != lb->num_unit)
			return false;
	}
	return true;
}

static void add_values(const struct profile *p, const struct profile_sample *s,
		       const int64_t *values)
{
	int64_t *sums = profile__values(p, s);
	size_t i;

	for (i = 0; i < p->value_cnt; i++)
		sums[i] = util_add_saturated(sums[i], values[i]);
}

/* Room for one more, with a stack of so many locations. 0 or -ENOMEM. */
static int reserve_sample(struct profile *p, size_t loc_cnt)
{
	struct profile_index *x = p->index;

	if (reserve(&p->samples, &x->sample_cap, p->sample_cnt, 1, sizeof(*p->samples)) ||
	    util_reserve(&p->values, &x->value_cap, (p->sample_cnt + 1) * p->value_cnt,
			 sizeof(*p->values)))
		return -ENOMEM;
	return reserve(&p->loc_ids, &x->loc_id_cap, p->loc_id_cnt, loc_cnt, sizeof(*p->loc_ids));
}

/* Writes its stack and its values behind those of the others. */
static void place_sample(struct profile *p, const uint32_t *locs, size_t loc_cnt, size_t label_cnt,
			 const int64_t *values)
{
	struct profile_sample *new = &p->samples[p->sample_cnt];

	*new = (struct profile_sample){
		.loc = (uint32_t)p->loc_id_cnt,
		.loc_cnt = (uint32_t)loc_cnt,
		.label = (uint32_t)p->label_cnt,
		.label_cnt = (uint32_t)label_cnt,
	};
	memcpy(profile__values(p, new), values, p->value_cnt * sizeof(*values));
	if (loc_cnt)
		memcpy(p->loc_ids + p->loc_id_cnt, locs, loc_cnt * sizeof(*locs));
}

uint32_t profile__add_sample(struct profile *p, const uint32_t *locs, size_t loc_cnt,
			     const struct profile_label *labels, size_t label_cnt,
			     const int64_t *values)
{
	struct sample_key key = { .locs = locs, .loc_cnt = loc_cnt };
	struct profile_index *x = p->index;
	uint64_t hash;
	uint32_t idx;

	if (reserve_sample(p, loc_cnt) ||
	    reserve(&p->labels, &x->label_cap, p->label_cnt, label_cnt, sizeof(*p->labels)))
		return no_memory();
	key.label_cnt = place_labels(p, labels, label_cnt);
	key.labels = key.label_cnt ? p->labels + p->label_cnt : NULL;
	hash = hash_sample(&key, x->samples.seed);
	idx = find(&x->samples, p, hash, sample_equal, &key);
	if (idx != PROFILE_NONE) {
		add_values(p, &p->samples[idx], values);
		return idx;
	}
	place_sample(p, locs, loc_cnt, key.label_cnt, values);
	idx = take(&x->samples, hash, &p->sample_cnt);
	if (idx == PROFILE_NONE)
		return PROFILE_NONE;
	p->loc_id_cnt += loc_cnt;
	p->label_cnt += key.label_cnt;
	return idx;
}

int profile__append_sample(struct profile *p, const uint32_t *locs, size_t loc_cnt,
			   const int64_t *values)
{
	if (reserve_sample(p, loc_cnt))
		return -ENOMEM;
	place_sample(p, locs, loc_cnt, 0, values);
	p->sample_cnt++;
	p->loc_id_cnt += loc_cnt;
	return 0;
}

int profile__add_comment(struct profile *p, const char *text)
{
	uint32_t id = profile__string(p, text);

	return id == PROFILE_NONE ? -ENOMEM : profile__add_comment_id(p, id);
}

int profile__add_comment_id(struct profile *p, uint32_t string)
{
	if (reserve(&p->comments, &p->index->comment_cap, p->comment_cnt, 1, sizeof(*p->comments)))
		return -ENOMEM;
	p->comments[p->comment_cnt++] = string;
	return 0;
}

size_t profile__last_value(const struct profile *p)
{
	for (size_t v = p->value_cnt; v-- > 0;)
		for (size_t i = 0; i < p->sample_cnt; i++)
			if (profile__values(p, &p->samples[i])[v])
				return v;
	return p->value_cnt - 1;
}

int64_t profile__total(const struct profile *p, size_t value)
{
	int64_t total = 0;

	for (size_t i = 0; i < p->sample_cnt; i++)
		total = util_add_saturated(total, profile__values(p, &p->samples[i])[value]);
	return total;
}

uint64_t profile__frames(const struct profile *p)
{
	uint64_t cnt = 0;

	for (size_t i = 0; i < p->sample_cnt; i++)
		for (uint32_t k = 0; k < p->samples[i].loc_cnt; k++)
			cnt += MAX(p->locations[p->loc_ids[p->samples[i].loc + k]].line_cnt, 1);
	return cnt;
}

size_t profile__bytes(const struct profile *p)
{
	return strtab__bytes(p->strings) + p->mapping_cnt * sizeof(*p->mappings) +
	       p->function_cnt * sizeof(*p->functions) + p->line_cnt * sizeof(*p->lines) +
	       p->location_cnt * sizeof(*p->locations) + p->label_cnt * sizeof(*p->labels) +
	       p->loc_id_cnt * sizeof(*p->loc_ids) +
	       p->sample_cnt * (sizeof(*p->samples) + p->value_cnt * sizeof(*p->values));
}
