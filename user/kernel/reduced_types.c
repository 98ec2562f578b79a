// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/reduced_types.h"

#include <bpf/btf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/kernel_types.h"

struct bytes {
	char *at;
	size_t sz, cap;
};

struct reduction {
	const struct kernel_types *kt;
	uint32_t *numbers; /* by number: the one in the result; 0: it is not part of that */
	uint32_t *order;   /* by number in the result less 1 */
	size_t cnt, cap;
	struct bytes types, strings;
};

static int append(struct bytes *b, const void *data, size_t sz)
{
	if (util_reserve(&b->at, &b->cap, b->sz + sz, 1))
		return -ENOMEM;
	memcpy(b->at + b->sz, data, sz);
	b->sz += sz;
	return 0;
}

/* Makes a type part of the result. */
static int take(struct reduction *r, uint32_t id)
{
	if (!id || r->numbers[id])
		return 0;
	if (util_reserve(&r->order, &r->cap, r->cnt + 1, sizeof(*r->order)))
		return -ENOMEM;
	r->order[r->cnt++] = id;
	r->numbers[id] = r->cnt;
	return 0;
}

/* The same of what another one refers to. */
static int take_ref(struct reduction *r, uint32_t *id)
{
	int err = *id < kernel_types__cnt(r->kt) ? take(r, *id) : -EINVAL;

	if (!err)
		*id = *id ? r->numbers[*id] : 0;
	return err;
}

static int take_name(struct reduction *r, uint32_t *name_off)
{
	const char *name = kernel_types__name(r->kt, *name_off);

	*name_off = *name ? r->strings.sz : 0;
	return *name ? append(&r->strings, name, strlen(name) + 1) : 0;
}

static int take_members(struct reduction *r, struct btf_type *t)
{
	struct btf_member *m = btf_members(t);
	int err = 0;

	for (int i = 0; !err && i < btf_vlen(t); i++) {
		err = take_name(r, &m[i].name_off);
		if (!err)
			err = take_ref(r, &m[i].type);
	}
	return err;
}

static int take_values(struct reduction *r, struct btf_type *t)
{
	size_t each =
		btf_kind(t) == BTF_KIND_ENUM ? sizeof(struct btf_enum) : sizeof(struct btf_enum64);
	int err = 0;

	/* of both a name comes first */
	for (int i = 0; !err && i < btf_vlen(t); i++)
		err = take_name(r, (uint32_t *)((char *)(t + 1) + i * each));
	return err;
}

/* Whatever a copy of a type refers to, but for the name. */
static int take_parts(struct reduction *r, struct btf_type *t)
{
	int err;

	switch (btf_kind(t)) {
	case BTF_KIND_INT:
	case BTF_KIND_FLOAT:
	case BTF_KIND_FWD:
		return 0;
	case BTF_KIND_PTR:
		t->type = 0;
		return 0;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		return take_ref(r, &t->type);
	case BTF_KIND_ARRAY:
		err = take_ref(r, &btf_array(t)->type);
		return err ? err : take_ref(r, &btf_array(t)->index_type);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return take_members(r, t);
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		return take_values(r, t);
	}
	/* a function's type, which only a typedef can name: nothing is fitted to it */
	t->info = BTF_KIND_FWD << 24;
	t->type = 0;
	return 0;
}

/* Of the i-th type. What that needs, and is not part of the result yet, comes later. */
static int copy_type(struct reduction *r, size_t i)
{
	const struct btf_type *from = kernel_types__type(r->kt, r->order[i]);
	size_t sz = sizeof(*from) + kernel_types__tail(from), at = r->types.sz;
	struct btf_type *t;
	int err;

	err = append(&r->types, from, sz);
	if (err)
		return err;
	t = (struct btf_type *)(r->types.at + at);
	err = take_name(r, &t->name_off);
	if (!err)
		err = take_parts(r, t);
	r->types.sz = at + sizeof(*t) + kernel_types__tail(t);
	return err;
}

static bool may_be_fitted(const struct btf_type *t)
{
	return btf_is_composite(t) || btf_is_any_enum(t) || btf_is_typedef(t);
}

/* ---- what it is made for ---- */

struct wanted {
	uint32_t key;
	const char *name;
};

static int by_key(const void *a, const void *b)
{
	const struct wanted *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

/* Behind three underlines stands what tells apart types that our side has of one kernel's. */
static int want(struct wanted *w, const char *name)
{
	const char *flavor = strstr(name, "___");

	w->name = flavor && flavor != name ? strndup(name, flavor - name) : strdup(name);
	if (!w->name)
		return -ENOMEM;
	w->key = kernel_types__key_of(w->name);
	return 0;
}

/* Is a type of this key and name among those that are sorted by key? */
static bool is_wanted(const struct wanted *w, size_t cnt, uint32_t key, const char *name)
{
	struct wanted seek = { .key = key };
	const struct wanted *at = bsearch(&seek, w, cnt, sizeof(*w), by_key);

	while (at && at > w && at[-1].key == key)
		at--;
	for (; at && at < w + cnt && at->key == key; at++)
		if (!strcmp(at->name, name))
			return true;
	return false;
}

/* Takes all that have such a name. Most keys are told by 16 bits of them to be of none. */
static int take_wanted(struct reduction *r, const struct wanted *w, size_t cnt)
{
	const struct kernel_types *kt = r->kt;
	uint32_t cnt_all = kernel_types__cnt(kt);
	uint64_t bits[1024] = { 0 };
	int err = 0;

	for (size_t i = 0; i < cnt; i++)
		bits[w[i].key >> 6 & 1023] |= UINT64_C(1) << (w[i].key & 63);
	for (uint32_t id = 1; !err && id < cnt_all; id++) {
		const struct btf_type *t;
		uint32_t key = kernel_types__key(kt, id);

		if (!(bits[key >> 6 & 1023] >> (key & 63) & 1))
			continue;
		t = kernel_types__type(kt, id);
		if (may_be_fitted(t) && is_wanted(w, cnt, key, kernel_types__name(kt, t->name_off)))
			err = take(r, id);
	}
	return err;
}

static int take_by_name(struct reduction *r, const struct btf *local)
{
	uint32_t local_cnt = btf__type_cnt(local);
	struct wanted *w = calloc(local_cnt, sizeof(*w));
	size_t cnt = 0;
	int err = w ? 0 : -ENOMEM;

	for (uint32_t id = 1; !err && id < local_cnt; id++) {
		const struct btf_type *t = btf__type_by_id(local, id);
		const char *name = btf__name_by_offset(local, t->name_off);

		if (may_be_fitted(t) && name && *name)
			err = want(&w[cnt++], name);
	}
	if (!err) {
		qsort(w, cnt, sizeof(*w), by_key);
		err = take_wanted(r, w, cnt);
	}
	for (size_t i = 0; i < cnt; i++)
		free((char *)w[i].name);
	free(w);
	return err;
}

static int write_reduced(const struct reduction *r, int fd)
{
	struct btf_header h = {
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(h),
		.type_len = r->types.sz,
		.str_off = r->types.sz,
		.str_len = r->strings.sz,
	};
	size_t sz = sizeof(h) + r->types.sz + r->strings.sz;
	char *to;

	if (ftruncate(fd, (off_t)sz))
		return -errno;
	to = mmap(NULL, sz, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (to == MAP_FAILED)
		return -errno;
	memcpy(to, &h, sizeof(h));
	memcpy(to + sizeof(h), r->types.at, r->types.sz);
	memcpy(to + sizeof(h) + r->types.sz, r->strings.at, r->strings.sz);
	return munmap(to, sz) ? -errno : 0;
}

int reduced_types__write(const struct kernel_types *kt, const struct btf *local, int fd)
{
	struct reduction r = { .kt = kt,
			       .numbers = calloc(kernel_types__cnt(kt), sizeof(*r.numbers)) };
	int err = r.numbers ? append(&r.strings, "", 1) : -ENOMEM;

	if (!err)
		err = take_by_name(&r, local);
	for (size_t i = 0; !err && i < r.cnt; i++)
		err = copy_type(&r, i);
	if (!err)
		err = write_reduced(&r, fd);
	free(r.numbers);
	free(r.order);
	free(r.types.at);
	free(r.strings.at);
	return err;
}
