/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OpenTelemetry's profiles. What samples refer to stands in tables, once, under the numbers that
 * profile/canon.h gives; the first entry of each stands for none. A value type is a profile of its
 * own. Everything is built at its place in memory, and packed at the end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/strtab.h"
#include "base/util.h"
#include "courier/stores_parts.h"
#include "otlp.pb-c.h"
#include "profile/canon.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"

#define ID_SZ 16
#define MAX_SHOWN 200	  /* bytes of what a store says */
#define MAX_ATTRIBUTES 16 /* of a sample, or of the resource */
#define KERNEL_HALF 63	  /* the bit that addresses of the kernel have */

struct piece {
	struct piece *next;
	_Alignas(16) uint8_t data[];
};

struct attribute_key {
	uint32_t key, str;
	int64_t num;
	uint32_t unit, is_text;
};

struct attribute {
	struct attribute_key key;
	uint32_t index; /* in the table */
};

struct builder {
	const struct item *item;
	const struct profile *p;
	bool v9;
	struct canon canon;
	struct piece *pieces; /* all that has been taken */
	struct strtab *strings;
	uint32_t *mapping_of; /* by number */
	struct hash attributes;
	Otlp__KeyValueAndUnit **attribute_table;
	size_t attribute_cnt, attribute_cap;
	Otlp__Stack **stacks;
	uint32_t *stack_of; /* by number of the sample in canonical order */
	size_t stack_cnt;
	bool failed; /* no memory */
};

/* Memory that lasts as long as the builder, zeroed. NULL: none. */
static void *take(struct builder *b, size_t cnt, size_t sz)
{
	size_t bytes;
	struct piece *piece = __builtin_mul_overflow(cnt, sz, &bytes) ?
				      NULL :
				      calloc(1, sizeof(*piece) + bytes + 1);

	if (!piece) {
		b->failed = true;
		return NULL;
	}
	piece->next = b->pieces;
	b->pieces = piece;
	return piece->data;
}

static int32_t text(struct builder *b, const char *s)
{
	uint32_t id = strtab__add(b->strings, s);

	b->failed |= id == UINT32_MAX;
	return (int32_t)id;
}

static int32_t text_of(struct builder *b, uint32_t profile_string)
{
	return text(b, strtab__get(b->p->strings, profile_string));
}

/* ---- attributes ---- */

/* A new entry behind the others; its index, 0 without memory. value: its text, which stays. */
static uint32_t append_attribute(struct builder *b, const struct attribute_key *k,
				 const char *value)
{
	Otlp__KeyValueAndUnit *kv = take(b, 1, sizeof(*kv));
	Otlp__AnyValue *v = take(b, 1, sizeof(*v));

	if (!kv || !v ||
	    util_reserve(&b->attribute_table, &b->attribute_cap, b->attribute_cnt + 1,
			 sizeof(*b->attribute_table))) {
		b->failed = true;
		return 0;
	}
	otlp__key_value_and_unit__init(kv);
	otlp__any_value__init(v);
	kv->key_strindex = (int32_t)k->key;
	kv->unit_strindex = (int32_t)k->unit;
	kv->value = v;
	if (k->is_text) {
		v->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		v->string_value = (char *)value;
	} else {
		v->value_case = OTLP__ANY_VALUE__VALUE_INT_VALUE;
		v->int_value = k->num;
	}
	b->attribute_table[b->attribute_cnt] = kv;
	return (uint32_t)b->attribute_cnt++;
}

static int32_t attribute(struct builder *b, const struct attribute_key *k, const char *value)
{
	struct attribute *a;
	bool is_new;

	a = b->failed ? NULL : hash__insert(&b->attributes, k, &is_new);
	if (!a) {
		b->failed = true;
		return 0;
	}
	if (is_new)
		a->index = append_attribute(b, k, value);
	return (int32_t)a->index;
}

static int32_t text_attribute(struct builder *b, const char *key, const char *value)
{
	struct attribute_key k = { .is_text = 1 };

	k.key = (uint32_t)text(b, key);
	k.str = (uint32_t)text(b, value);
	return attribute(b, &k, value);
}

/* All comments as one attribute, which is not shared. */
static int32_t comments_attribute(struct builder *b)
{
	const struct profile *p = b->p;
	struct attribute_key k = { .key = (uint32_t)text(b, "pprof.profile.comment") };
	Otlp__ArrayValue *array = take(b, 1, sizeof(*array));
	Otlp__AnyValue *values = take(b, p->comment_cnt, sizeof(*values)), *v;
	Otlp__AnyValue **ptrs = take(b, p->comment_cnt, sizeof(Otlp__AnyValue *));
	uint32_t index = append_attribute(b, &k, NULL);

	if (b->failed)
		return 0;
	for (size_t i = 0; i < p->comment_cnt; i++) {
		otlp__any_value__init(&values[i]);
		values[i].value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
		values[i].string_value = (char *)strtab__get(p->strings, p->comments[i]);
		ptrs[i] = &values[i];
	}
	otlp__array_value__init(array);
	array->n_values = p->comment_cnt;
	array->values = ptrs;
	v = b->attribute_table[index]->value;
	v->value_case = OTLP__ANY_VALUE__VALUE_ARRAY_VALUE;
	v->array_value = array;
	return (int32_t)index;
}

/* What the semantic conventions have a name for; others are ours. Those that the resource has, or
 * that would make a series of each process, are left out. */
static bool sample_key(const char *label, char *ret, size_t ret_sz)
{
	static const char *const left_out[] = {
		"pid",
		"comm",
		"exe",
		"cgroup",
		"container_id",
		"container",
		"container_service",
		"pod",
		"pod_uid",
		"namespace",
		"unit",
		"service_name",
		"service_namespace",
		"service_version",
		"deployment_environment",
	};

	for (size_t i = 0; i < ARRAY_SIZE(left_out); i++)
		if (!strcmp(label, left_out[i]))
			return false;
	if (!strcmp(label, "thread"))
		snprintf(ret, ret_sz, "thread.name");
	else if (!strcmp(label, "tid"))
		snprintf(ret, ret_sz, "thread.id");
	else
		snprintf(ret, ret_sz, "bpfprof.%s", label);
	return true;
}

static size_t sample_attributes(struct builder *b, const struct profile_sample *s,
				int32_t ret[static MAX_ATTRIBUTES])
{
	const struct profile *p = b->p;
	char key[128];
	size_t n = 0;

	for (uint32_t i = 0; i < s->label_cnt && n < MAX_ATTRIBUTES; i++) {
		const struct profile_label *l = &p->labels[s->label + i];
		struct attribute_key k = { .is_text = l->str != 0, .num = l->num };

		if (!sample_key(strtab__get(p->strings, l->key), key, sizeof(key)))
			continue;
		k.key = (uint32_t)text(b, key);
		k.str = (uint32_t)text_of(b, l->str);
		k.unit = l->num_unit == l->key ? 0 : (uint32_t)text_of(b, l->num_unit);
		ret[n++] = attribute(b, &k, strtab__get(p->strings, l->str));
	}
	return n;
}

/* ---- the tables ---- */

/* cnt + 1 messages, and pointers to them: the first is the one that stands for none. */
#define TAKE_TABLE(b, type, init, cnt, ret_ptrs)                          \
	({                                                                \
		type *table_ = take(b, (size_t)(cnt) + 1, sizeof(type));  \
		*(ret_ptrs) = take(b, (size_t)(cnt) + 1, sizeof(type *)); \
		for (size_t i_ = 0; !(b)->failed && i_ <= (cnt); i_++) {  \
			init(&table_[i_]);                                \
			(*(ret_ptrs))[i_] = &table_[i_];                  \
		}                                                         \
		table_;                                                   \
	})

static int32_t *one_index(struct builder *b, int32_t index)
{
	int32_t *ret = take(b, 1, sizeof(*ret));

	if (ret)
		*ret = index;
	return ret;
}

static bool same_mapping(const struct profile_mapping *x, const struct profile_mapping *y)
{
	return x->start == y->start && x->limit == y->limit && x->offset == y->offset &&
	       x->filename == y->filename && x->build_id == y->build_id;
}

/* Two that differ only in what names they have are one here: they stand side by side, but for the
 * first one's. */
static void fill_mappings(struct builder *b, Otlp__ProfilesDictionary *d)
{
	const struct canon_table *t = &b->canon.mappings;
	const struct profile_mapping *all = b->p->mappings;
	uint32_t cnt = 0;
	Otlp__Mapping *to =
		TAKE_TABLE(b, Otlp__Mapping, otlp__mapping__init, t->cnt, &d->mapping_table);

	b->mapping_of = take(b, (size_t)t->cnt + 1, sizeof(*b->mapping_of));
	for (uint32_t i = 0; !b->failed && i < t->cnt; i++) {
		const struct profile_mapping *from = &all[t->entry[i]];
		Otlp__Mapping *m;

		if (i && same_mapping(&all[t->entry[0]], from))
			b->mapping_of[i + 1] = 1;
		else if (i && same_mapping(&all[t->entry[i - 1]], from))
			b->mapping_of[i + 1] = b->mapping_of[i];
		else
			b->mapping_of[i + 1] = ++cnt;
		m = &to[b->mapping_of[i + 1]];
		m->memory_start = from->start;
		m->memory_limit = from->limit;
		m->file_offset = from->offset;
		m->filename_strindex = text_of(b, from->filename);
		if (!from->build_id)
			continue;
		m->attribute_indices =
			one_index(b, text_attribute(b, "process.executable.build_id.gnu",
						    strtab__get(b->p->strings, from->build_id)));
		m->n_attribute_indices = m->attribute_indices ? 1 : 0;
	}
	d->n_mapping_table = (size_t)cnt + 1;
}

static void fill_functions(struct builder *b, Otlp__ProfilesDictionary *d)
{
	const struct canon_table *t = &b->canon.functions;
	Otlp__Function *to =
		TAKE_TABLE(b, Otlp__Function, otlp__function__init, t->cnt, &d->function_table);

	for (uint32_t i = 0; !b->failed && i < t->cnt; i++) {
		const struct profile_function *from = &b->p->functions[t->entry[i]];

		to[i + 1].name_strindex = text_of(b, from->name);
		to[i + 1].system_name_strindex = text_of(b, from->system_name);
		to[i + 1].filename_strindex = text_of(b, from->filename);
		to[i + 1].start_line = from->start_line;
	}
	d->n_function_table = (size_t)t->cnt + 1;
}

static void fill_lines(struct builder *b, const struct profile_location *from, Otlp__Location *to)
{
	Otlp__Line *lines = take(b, from->line_cnt, sizeof(*lines));

	to->lines = take(b, from->line_cnt, sizeof(*to->lines));
	if (b->failed)
		return;
	for (uint32_t i = 0; i < from->line_cnt; i++) {
		const struct profile_line *l = &b->p->lines[from->line + i];

		otlp__line__init(&lines[i]);
		lines[i].function_index = (int32_t)b->canon.functions.number[l->function];
		lines[i].line = l->line;
		to->lines[i] = &lines[i];
	}
	to->n_lines = from->line_cnt;
}

/* ret: what was given before. */
static int32_t *frame_type(struct builder *b, bool kernel, int32_t *ret[static 2])
{
	if (!ret[kernel])
		ret[kernel] = one_index(
			b, text_attribute(b, "profile.frame.type", kernel ? "kernel" : "native"));
	return ret[kernel];
}

static void fill_locations(struct builder *b, Otlp__ProfilesDictionary *d)
{
	const struct canon_table *t = &b->canon.locations;
	Otlp__Location *to =
		TAKE_TABLE(b, Otlp__Location, otlp__location__init, t->cnt, &d->location_table);
	int32_t *types[2] = { NULL, NULL };

	for (uint32_t i = 0; !b->failed && i < t->cnt; i++) {
		const struct profile_location *from = &b->p->locations[t->entry[i]];
		Otlp__Location *l = &to[i + 1];

		l->address = from->address;
		fill_lines(b, from, l);
		/* what is no code is in no mapping */
		if (from->mapping == PROFILE_NONE)
			continue;
		l->mapping_index = (int32_t)b->mapping_of[b->canon.mappings.number[from->mapping]];
		l->attribute_indices = frame_type(b, from->address >> KERNEL_HALF, types);
		l->n_attribute_indices = 1;
	}
	d->n_location_table = (size_t)t->cnt + 1;
}

/* Samples of equal stacks stand together. */
static bool same_stack(const struct builder *b, const struct profile_sample *x,
		       const struct profile_sample *y)
{
	const uint32_t *number = b->canon.locations.number;

	if (x->loc_cnt != y->loc_cnt)
		return false;
	for (uint32_t i = 0; i < x->loc_cnt; i++)
		if (number[b->p->loc_ids[x->loc + i]] != number[b->p->loc_ids[y->loc + i]])
			return false;
	return true;
}

static void fill_stacks(struct builder *b, Otlp__ProfilesDictionary *d)
{
	const struct canon *c = &b->canon;
	const struct profile_sample *last = NULL;
	Otlp__Stack *to =
		TAKE_TABLE(b, Otlp__Stack, otlp__stack__init, c->sample_cnt, &d->stack_table);

	b->stack_of = take(b, c->sample_cnt, sizeof(*b->stack_of));
	for (uint32_t i = 0; !b->failed && i < c->sample_cnt; i++) {
		const struct profile_sample *s = &b->p->samples[c->samples[i]];

		/* one without frames is the first entry */
		if (s->loc_cnt && (!last || !same_stack(b, last, s))) {
			Otlp__Stack *stack = &to[++b->stack_cnt];

			stack->location_indices = take(b, s->loc_cnt, sizeof(int32_t));
			for (uint32_t k = 0; !b->failed && k < s->loc_cnt; k++)
				stack->location_indices[k] =
					(int32_t)c->locations.number[b->p->loc_ids[s->loc + k]];
			stack->n_location_indices = s->loc_cnt;
		}
		last = s;
		b->stack_of[i] = s->loc_cnt ? (uint32_t)b->stack_cnt : 0;
	}
	d->n_stack_table = b->stack_cnt + 1;
}

/* ---- profiles ---- */

static ProtobufCBinaryData packed(struct builder *b, const ProtobufCMessage *m)
{
	ProtobufCBinaryData ret = { .len = protobuf_c_message_get_packed_size(m) };

	ret.data = take(b, ret.len, 1);
	if (ret.data)
		protobuf_c_message_pack(m, ret.data);
	return ret;
}

static ProtobufCBinaryData pack_sample(struct builder *b, uint32_t stack, int32_t *attributes,
				       size_t attribute_cnt, int64_t value)
{
	Otlp__SampleV10 v10 = OTLP__SAMPLE_V10__INIT;
	Otlp__SampleV9 v9 = OTLP__SAMPLE_V9__INIT;

	v9.stack_index = v10.stack_index = (int32_t)stack;
	v9.attribute_indices = v10.attribute_indices = attributes;
	v9.n_attribute_indices = v10.n_attribute_indices = attribute_cnt;
	v9.values = v10.values = &value;
	v9.n_values = v10.n_values = 1;
	return packed(b, b->v9 ? &v9.base : &v10.base);
}

/* Equal samples are one, and those without this value are none. */
static void fill_samples(struct builder *b, size_t value, Otlp__Profile *to)
{
	const struct canon *c = &b->canon;
	uint32_t next;

	to->samples = take(b, c->sample_cnt, sizeof(*to->samples));
	for (uint32_t i = 0; !b->failed && i < c->sample_cnt; i = next) {
		const struct profile_sample *s = &b->p->samples[c->samples[i]];
		int32_t attributes[MAX_ATTRIBUTES];
		int64_t sum = 0;
		size_t cnt;

		for (next = i;
		     next < c->sample_cnt && canon__same_sample(c, c->samples[i], c->samples[next]);
		     next++)
			sum = util_add_saturated(
				sum,
				profile__values(b->p, &b->p->samples[c->samples[next]])[value]);
		if (!sum)
			continue;
		cnt = sample_attributes(b, s, attributes);
		to->samples[to->n_samples++] = pack_sample(b, b->stack_of[i], attributes, cnt, sum);
	}
}

static Otlp__ValueType *value_type(struct builder *b, const char *type, const char *unit)
{
	Otlp__ValueType *ret = take(b, 1, sizeof(*ret));

	if (!ret)
		return NULL;
	otlp__value_type__init(ret);
	ret->type_strindex = text(b, type);
	ret->unit_strindex = text(b, unit);
	return ret;
}

/* The same whenever it is sent. */
static ProtobufCBinaryData profile_id(struct builder *b, size_t value)
{
	const struct item *item = b->item;
	uint64_t words[] = { item->number, (uint64_t)b->p->time_ns, value,
			     util_hash(item->node, strlen(item->node), 0) };
	ProtobufCBinaryData ret = { ID_SZ, take(b, ID_SZ, 1) };

	for (uint64_t i = 0; ret.data && i < 2; i++) {
		uint64_t half = util_hash(words, sizeof(words), i);

		memcpy(ret.data + 8 * i, &half, sizeof(half));
	}
	return ret;
}

/*
 * Stores call what they show by the type of the period (Pyroscope), or of the samples: CPU as counts
 * whose period is time, which tells both; time off the CPU without a period; of all else every
 * value, the period bearing the kind's name.
 */
static bool is_sent(const char *kind, size_t value)
{
	if (!strcmp(kind, "cpu"))
		return value == 0;
	return strcmp(kind, "offcpu") != 0 || value == 1;
}

static void fill_types(struct builder *b, const char *kind, size_t value, Otlp__Profile *to)
{
	const struct profile *p = b->p;
	const struct profile_value_type *t = &p->value_types[value];
	const char *name = store_profile_name(kind);

	if (!strcmp(kind, "offcpu")) {
		to->sample_type = value_type(b, name, t->unit);
		to->period_type = value_type(b, "", "");
		return;
	}
	to->sample_type = value_type(b, t->type, t->unit);
	to->period_type =
		value_type(b, !strcmp(kind, "cpu") ? "cpu" : name, p->period_type.unit ?: "count");
	to->period = MAX(p->period, 1);
}

static Otlp__Profile *make_profile(struct builder *b, const char *kind, size_t value,
				   int32_t *comments)
{
	Otlp__Profile *to = take(b, 1, sizeof(*to));

	if (!to)
		return NULL;
	otlp__profile__init(to);
	fill_types(b, kind, value, to);
	fill_samples(b, value, to);
	to->time_unix_nano = (uint64_t)b->p->time_ns;
	to->duration_nano = (uint64_t)b->p->duration_ns;
	to->profile_id = profile_id(b, value);
	if (comments) {
		to->attribute_indices = comments;
		to->n_attribute_indices = 1;
	}
	return to;
}

static void fill_scope(struct builder *b, Otlp__ScopeProfiles *to)
{
	const char *kind = labels__get(&b->item->labels, "kind") ?: "";
	int32_t *comments = b->p->comment_cnt ? one_index(b, comments_attribute(b)) : NULL;

	to->profiles = take(b, b->p->value_cnt, sizeof(*to->profiles));
	for (size_t i = 0; !b->failed && i < b->p->value_cnt; i++)
		if (is_sent(kind, i))
			to->profiles[to->n_profiles++] = make_profile(b, kind, i, comments);
}

/* ---- the resource ---- */

static void add_to_resource(struct builder *b, Otlp__Resource *to, const char *key,
			    const char *value)
{
	Otlp__KeyValue *kv = take(b, 1, sizeof(*kv));
	Otlp__AnyValue *v = take(b, 1, sizeof(*v));

	if (b->failed || !value || to->n_attributes == MAX_ATTRIBUTES)
		return;
	otlp__key_value__init(kv);
	otlp__any_value__init(v);
	v->value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE;
	v->string_value = (char *)value;
	kv->key = (char *)key;
	kv->value = v;
	to->attributes[to->n_attributes++] = kv;
}

static void fill_resource(struct builder *b, Otlp__Resource *to)
{
	const struct labels *l = &b->item->labels;
	bool pod = labels__get(l, "pod") != NULL;
	const char *const pairs[][2] = {
		{ "service.name", labels__get(l, "service_name") },
		{ "service.namespace", labels__get(l, "service_namespace") },
		{ "service.version", labels__get(l, "service_version") },
		{ "deployment.environment.name", labels__get(l, "deployment_environment") },
		{ "host.name", b->item->node },
		{ "container.id", labels__get(l, "container_id") },
		{ pod ? "k8s.container.name" : "container.name", labels__get(l, "container") },
		{ "k8s.pod.name", labels__get(l, "pod") },
		{ "k8s.pod.uid", labels__get(l, "pod_uid") },
		{ "k8s.namespace.name", labels__get(l, "namespace") },
		{ "systemd.unit", labels__get(l, "unit") },
	};

	to->attributes = take(b, MAX_ATTRIBUTES, sizeof(*to->attributes));
	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		add_to_resource(b, to, pairs[i][0], pairs[i][1]);
}

/* ---- all of it ---- */

static void fill_dictionary(struct builder *b, Otlp__ProfilesDictionary *d)
{
	const struct attribute_key none = { 0 };

	/* the first of each table; it has no value, not even "" */
	(void)append_attribute(b, &none, NULL);
	if (!b->failed)
		b->attribute_table[0]->value = NULL;
	(void)TAKE_TABLE(b, Otlp__Link, otlp__link__init, 0, &d->link_table);
	d->n_link_table = 1;
	fill_mappings(b, d);
	fill_functions(b, d);
	fill_locations(b, d);
	fill_stacks(b, d);
}

/* What was added to until now. */
static void fill_strings(struct builder *b, Otlp__ProfilesDictionary *d)
{
	uint32_t cnt = strtab__cnt(b->strings);

	d->n_attribute_table = b->attribute_cnt;
	d->attribute_table = b->attribute_table;
	d->string_table = take(b, cnt, sizeof(*d->string_table));
	for (uint32_t i = 0; d->string_table && i < cnt; i++)
		d->string_table[i] = (char *)strtab__get(b->strings, i);
	d->n_string_table = cnt;
}

static int build(struct builder *b, struct body *ret)
{
	Otlp__ExportProfilesServiceRequest request = OTLP__EXPORT_PROFILES_SERVICE_REQUEST__INIT;
	Otlp__ProfilesDictionary dictionary = OTLP__PROFILES_DICTIONARY__INIT;
	Otlp__ResourceProfiles of_resource = OTLP__RESOURCE_PROFILES__INIT;
	Otlp__Resource resource = OTLP__RESOURCE__INIT;
	Otlp__ScopeProfiles of_scope = OTLP__SCOPE_PROFILES__INIT;
	Otlp__InstrumentationScope scope = OTLP__INSTRUMENTATION_SCOPE__INIT;

	fill_dictionary(b, &dictionary);
	fill_resource(b, &resource);
	fill_scope(b, &of_scope);
	fill_strings(b, &dictionary);
	if (b->failed)
		return -ENOMEM;
	scope.name = "bpfprof";
	scope.version = BPFPROF_VERSION;
	of_scope.scope = &scope;
	of_resource.resource = &resource;
	of_resource.n_scope_profiles = 1;
	of_resource.scope_profiles = (Otlp__ScopeProfiles *[]){ &of_scope };
	request.n_resource_profiles = 1;
	request.resource_profiles = (Otlp__ResourceProfiles *[]){ &of_resource };
	request.dictionary = &dictionary;
	ret->sz = protobuf_c_message_get_packed_size(&request.base);
	ret->data = malloc(ret->sz + 1);
	if (!ret->data)
		return -ENOMEM;
	protobuf_c_message_pack(&request.base, ret->data);
	return 0;
}

static int encode(const struct item *item, bool v9, struct body *ret)
{
	struct profile *p;
	struct builder b = { .item = item, .v9 = v9, .strings = strtab__new() };
	struct piece *next;
	int err = pprof_read(item->file, item->sz, &p);

	if (err)
		goto out;
	b.p = p;
	hash__init(&b.attributes, sizeof(struct attribute), sizeof(struct attribute_key), HASH_MAX);
	err = b.strings ? profile__finish(p) : -ENOMEM;
	if (!err)
		err = canon__make(p, &b.canon);
	if (!err) {
		err = build(&b, ret);
		canon__done(&b.canon);
	}
	hash__done(&b.attributes);
	for (; b.pieces; b.pieces = next) {
		next = b.pieces->next;
		free(b.pieces);
	}
	free(b.attribute_table);
	profile__free(p);
out:
	strtab__free(b.strings);
	return err == -E2BIG ? -EBADMSG : err;
}

bool otlp_rejected(const struct answer *a, char ret[static STORE_SAID_SZ])
{
	Otlp__ExportProfilesServiceResponse *m = otlp__export_profiles_service_response__unpack(
		NULL, a->body_sz, (const uint8_t *)a->body);
	Otlp__ExportProfilesPartialSuccess *p = m ? m->partial_success : NULL;
	/* with none rejected it is a warning */
	bool rejected = p && p->rejected_profiles;
	char shown[MAX_SHOWN];

	if (rejected)
		snprintf(ret, STORE_SAID_SZ, "%" PRId64 " of it rejected: %s", p->rejected_profiles,
			 util_printable(shown, sizeof(shown), p->error_message));
	if (m)
		otlp__export_profiles_service_response__free_unpacked(m, NULL);
	return rejected;
}

int otlp_body(const struct item *item, struct body *ret)
{
	return encode(item, false, ret);
}

int otlp_body_v9(const struct item *item, struct body *ret)
{
	return encode(item, true, ret);
}
