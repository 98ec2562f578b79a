/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's types: found by name as libbpf finds them, and those that programs are fitted to, which
 * have to be the same with a part of them left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/kernel_types.h"
#include "kernel/reduced_types.h"

/* What reduced_types__write leaves, as libbpf reads it. */
static struct btf *reduced(const struct kernel_types *kt, const struct btf *local, int *ret_err)
{
	int fd = memfd_create("types", MFD_CLOEXEC);
	struct btf *btf;
	char path[64];

	assert_true(fd >= 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	*ret_err = reduced_types__write(kt, local, fd);
	btf = *ret_err ? NULL : btf__parse(path, NULL);
	close(fd);
	return btf;
}

/* ---- made ones ---- */

struct made {
	int number, part, other, list, outer, value, task, way;
};

/* struct outer { int number; union { struct part part; int list[4]; }; struct other *other; } */
static struct btf *make(struct made *ret)
{
	struct btf *btf = btf__new_empty();
	int hidden, pointer;

	assert_non_null(btf);
	ret->number = btf__add_int(btf, "int", 4, BTF_INT_SIGNED);
	ret->part = btf__add_struct(btf, "part", 8);
	assert_int_equal(btf__add_field(btf, "a", ret->number, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "b", ret->number, 32, 0), 0);
	ret->other = btf__add_struct(btf, "other", 4);
	assert_int_equal(btf__add_field(btf, "c", ret->number, 0, 0), 0);
	ret->list = btf__add_array(btf, ret->number, ret->number, 4);
	hidden = btf__add_union(btf, NULL, 16);
	assert_int_equal(btf__add_field(btf, "part", ret->part, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, "list", ret->list, 0, 0), 0);
	pointer = btf__add_ptr(btf, ret->other);
	ret->outer = btf__add_struct(btf, "outer", 32);
	assert_int_equal(btf__add_field(btf, "number", ret->number, 0, 0), 0);
	assert_int_equal(btf__add_field(btf, NULL, hidden, 32, 0), 0);
	assert_int_equal(btf__add_field(btf, "other", pointer, 192, 0), 0);
	ret->value = btf__add_enum(btf, "names", 4);
	assert_int_equal(btf__add_enum_value(btf, "NAME", 7), 0);
	ret->task = btf__add_typedef(btf, "btf_trace_part", pointer);
	ret->way = btf__add_func_proto(btf, ret->number);
	ret->way = btf__add_func(btf, "part", BTF_FUNC_STATIC, ret->way);
	return btf;
}

static void by_name(void **state)
{
	struct made made;
	struct btf *btf = make(&made);
	struct kernel_types *kt;
	uint32_t sz;
	const void *data = btf__raw_data(btf, &sz);

	(void)state;
	kt = kernel_types__parse(data, sz);
	assert_non_null(kt);
	assert_int_equal(kernel_types__cnt(kt), btf__type_cnt(btf));
	assert_int_equal(kernel_types__find(kt, "part", BTF_KIND_STRUCT), made.part);
	assert_int_equal(kernel_types__find(kt, "part", BTF_KIND_FUNC), made.way);
	assert_int_equal(kernel_types__find(kt, "part", BTF_KIND_ENUM), 0);
	assert_int_equal(kernel_types__find(kt, "par", BTF_KIND_STRUCT), 0);
	assert_int_equal(kernel_types__target(kt, "part", BPF_TRACE_RAW_TP), made.task);
	assert_int_equal(kernel_types__target(kt, "part", BPF_TRACE_FENTRY), made.way);
	assert_int_equal(kernel_types__target(kt, "part", BPF_TRACE_ITER), 0);
	assert_null(kernel_types__type(kt, 0));
	assert_null(kernel_types__type(kt, btf__type_cnt(btf)));
	assert_string_equal(kernel_types__name(kt, UINT32_MAX), "");
	kernel_types__free(kt);
	btf__free(btf);
}

static void part_of_them(void **state)
{
	struct made made;
	struct btf *btf = make(&made), *local = btf__new_empty(), *part;
	const struct btf_type *t;
	struct kernel_types *kt;
	uint32_t sz;
	const void *data = btf__raw_data(btf, &sz);
	int err;

	(void)state;
	kt = kernel_types__parse(data, sz);
	assert_non_null(kt);
	assert_true(btf__add_struct(local, "outer___before_5_14", 4) > 0);
	assert_true(btf__add_struct(local, "ours", 4) > 0);
	assert_true(btf__add_enum(local, "names", 4) > 0);
	part = reduced(kt, local, &err);
	assert_non_null(part);
	t = btf__type_by_id(part, btf__find_by_name_kind(part, "outer", BTF_KIND_STRUCT));
	assert_non_null(t);
	assert_int_equal(btf_vlen(t), 3);
	assert_string_equal(btf__name_by_offset(part, btf_members(t)[2].name_off), "other");
	assert_int_equal(btf_member_bit_offset(t, 2), 192);
	/* what it holds is there, what it points at is not */
	assert_true(btf__find_by_name_kind(part, "part", BTF_KIND_STRUCT) > 0);
	assert_true(btf__find_by_name_kind(part, "other", BTF_KIND_STRUCT) < 0);
	assert_int_equal(btf__type_by_id(part, btf_members(t)[2].type)->type, 0);
	assert_true(btf__find_by_name_kind(part, "btf_trace_part", BTF_KIND_TYPEDEF) < 0);
	t = btf__type_by_id(part, btf__find_by_name_kind(part, "names", BTF_KIND_ENUM));
	assert_non_null(t);
	assert_string_equal(btf__name_by_offset(part, btf_enum(t)->name_off), "NAME");
	assert_int_equal(btf_enum(t)->val, 7);
	btf__free(part);
	btf__free(local);
	kernel_types__free(kt);
	btf__free(btf);
}

/* Whatever is cut off or turned into something else, it is refused or read within its bounds. */
static void broken(void **state)
{
	struct made made;
	struct btf *btf = make(&made), *part;
	uint32_t sz;
	const char *data = btf__raw_data(btf, &sz);
	int err;

	(void)state;
	for (uint32_t cut = 0; cut < sz; cut++) {
		char *copy = malloc(cut + 1);

		memcpy(copy, data, cut);
		assert_null(kernel_types__parse(copy, cut));
		assert_int_equal(errno, EINVAL);
		free(copy);
	}
	for (uint32_t at = 0; at < sz; at++) {
		char *copy = malloc(sz);
		struct kernel_types *kt;

		memcpy(copy, data, sz);
		copy[at] ^= 0xff;
		kt = kernel_types__parse(copy, sz);
		part = kt ? reduced(kt, btf, &err) : NULL;
		btf__free(part);
		kernel_types__free(kt);
		free(copy);
	}
	btf__free(btf);
}

/* ---- this kernel's ---- */

static void same_members(const struct btf *all, const struct btf *part, const char *name)
{
	int id = btf__find_by_name_kind(all, name, BTF_KIND_STRUCT);
	int part_id = btf__find_by_name_kind(part, name, BTF_KIND_STRUCT);
	const struct btf_type *a, *b;

	assert_true(id > 0 && part_id > 0);
	a = btf__type_by_id(all, id);
	b = btf__type_by_id(part, part_id);
	assert_int_equal(a->size, b->size);
	assert_int_equal(btf_vlen(a), btf_vlen(b));
	for (int i = 0; i < btf_vlen(a); i++) {
		const struct btf_member *m = &btf_members(a)[i], *n = &btf_members(b)[i];

		assert_string_equal(btf__name_by_offset(all, m->name_off),
				    btf__name_by_offset(part, n->name_off));
		assert_int_equal(m->offset, n->offset);
		assert_int_equal(btf__resolve_size(all, m->type), btf__resolve_size(part, n->type));
	}
}

static void of_this_kernel(void **state)
{
	static const char *const structs[] = { "task_struct", "rq", "mm_struct", "pt_regs" };
	struct btf *all = btf__load_vmlinux_btf(), *local = btf__new_empty(), *part;
	const struct kernel_types *kt = kernel_types__get();
	int err;

	(void)state;
	if (!all || !kt) {
		assert_true(!all == !kt);
		btf__free(local);
		skip();
	}
	assert_int_equal(kernel_types__cnt(kt), btf__type_cnt(all));
	for (uint32_t id = 1; id < btf__type_cnt(all); id++) {
		const struct btf_type *t = btf__type_by_id(all, id);
		const struct btf_type *ours = kernel_types__type(kt, id);

		if (t->name_off != ours->name_off || t->info != ours->info)
			fail_msg("type %u is another one", id);
	}
	for (size_t i = 0; i < ARRAY_SIZE(structs); i++) {
		assert_int_equal(kernel_types__find(kt, structs[i], BTF_KIND_STRUCT),
				 btf__find_by_name_kind(all, structs[i], BTF_KIND_STRUCT));
		assert_true(btf__add_struct(local, structs[i], 4) > 0);
	}
	part = reduced(kt, local, &err);
	assert_non_null(part);
	for (size_t i = 0; i < ARRAY_SIZE(structs); i++)
		same_members(all, part, structs[i]);
	assert_true(btf__type_cnt(part) < btf__type_cnt(all) / 10);
	btf__free(part);
	btf__free(local);
	btf__free(all);
	kernel_types__drop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_name),
		cmocka_unit_test(part_of_them),
		cmocka_unit_test(broken),
		cmocka_unit_test(of_this_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
