/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Merges what several sources know of an object's functions, in order of address, so that rows go
 * to the packer as they come and need no buffer.
 */
#include "target/unwind_build.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/ehframe.h"
#include "target/flow.h"
#include "target/gorows.h"
#include "target/unwind_table.h"

#define MAX_FUNCTIONS (4U << 20) /* of an object; the largest browsers stay below a quarter */
#define MAX_SOURCES 8

/* A function as a source has it. */
struct function {
	uint64_t start;
	uint32_t size;
	uint32_t index : 29, source : 3;
};
_Static_assert(MAX_FUNCTIONS < 1U << 29 && MAX_SOURCES <= 1U << 3, "struct function");

struct functions {
	struct function *v;
	size_t cnt;
};

static struct function function(const struct unwind_source *s, uint32_t source, size_t i)
{
	uint64_t start, end;

	s->range(s->ctx, i, &start, &end);
	return (struct function){ .start = start,
				  .size = (uint32_t)MIN(end - start, (uint64_t)UINT32_MAX),
				  .index = (uint32_t)i,
				  .source = source };
}

/* Adds the functions of a source to those of the earlier ones. 0 or -errno. */
static int add(struct functions *f, const struct unwind_source *s, uint32_t source)
{
	size_t i = 0, j, n = 0;
	struct function *out, next;

	if (f->cnt + s->cnt > MAX_FUNCTIONS)
		return -E2BIG;
	out = malloc((f->cnt + s->cnt + 1) * sizeof(*out));
	if (!out)
		return -ENOMEM;
	for (j = 0; j < s->cnt; j++) {
		next = function(s, source, j);
		while (i < f->cnt && f->v[i].start <= next.start)
			out[n++] = f->v[i++];
		if (!i || next.start - f->v[i - 1].start >= f->v[i - 1].size)
			out[n++] = next;
	}
	while (i < f->cnt)
		out[n++] = f->v[i++];
	free(f->v);
	f->v = out;
	f->cnt = n;
	return 0;
}

static int pack(const struct functions *f, const struct unwind_source *sources,
		struct unwind_table *t)
{
	static const struct bpfprof_rule none;
	struct unwind_packer *packer = unwind_packer__new(t);
	int err;

	if (!packer)
		return -errno;
	for (size_t i = 0; i < f->cnt && !unwind_packer__error(packer); i++) {
		const struct function *fn = &f->v[i];
		const struct unwind_source *s = &sources[fn->source];
		uint64_t end = fn->start + fn->size;
		bool last = i + 1 == f->cnt;

		if (!last)
			end = MIN(end, fn[1].start);
		s->rows(s->ctx, fn->index, end, packer);
		/* no rule for what lies between functions, padding too: a return address there is
		 * forged */
		if (last || fn[1].start > end)
			unwind_packer__row(packer, end, none);
	}
	err = unwind_packer__finish(packer);
	unwind_packer__free(packer);
	return err;
}

int unwind_build_merged(const struct unwind_source *sources, size_t cnt, struct unwind_table *ret)
{
	struct functions f = {};
	int err = cnt > MAX_SOURCES ? -E2BIG : 0;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < cnt && !err; i++)
		err = add(&f, &sources[i], (uint32_t)i);
	if (!err)
		err = pack(&f, sources, ret);
	if (err)
		unwind_table__done(ret);
	free(f.v);
	return err;
}

/* Code that none of the sources knows is followed, and makes another source. *ret is NULL if there is
 * none. 0 or -errno. */
static int follow_rest(const struct elf_file *elf, const struct unwind_source *sources, size_t cnt,
		       bool follow_r12, struct flow **ret)
{
	struct flow_range *covered;
	struct functions f = {};
	int err = 0;

	*ret = NULL;
	for (size_t i = 0; i < cnt && !err; i++)
		err = add(&f, &sources[i], (uint32_t)i);
	covered = err ? NULL : malloc((f.cnt + 1) * sizeof(*covered));
	for (size_t i = 0; covered && i < f.cnt; i++)
		covered[i] = (struct flow_range){ f.v[i].start, f.v[i].start + f.v[i].size };
	if (covered)
		err = flow_build(elf, covered, f.cnt, follow_r12, ret);
	else if (!err)
		err = -ENOMEM;
	free(covered);
	free(f.v);
	return err;
}

int unwind_build(const struct elf_file *elf, struct unwind_table *ret)
{
	struct unwind_source sources[MAX_SOURCES];
	struct gorows *go = gorows__open(elf);
	struct ehframe *cfi[2] = {};
	struct flow *flow = NULL;
	bool follow_r12 = go && gorows__leaves_sp_in_r12(go);
	size_t cnt = 0, i, cfi_sz = 0;
	int err = go || errno == ENOENT ? -ENOENT : -errno;

	memset(ret, 0, sizeof(*ret));
	if (go)
		sources[cnt++] = gorows__source(go);
	for (i = 0; i < ARRAY_SIZE(cfi) && err != -ENOMEM; i++) {
		cfi[i] = ehframe__open(elf, i == 1);
		if (cfi[i]) {
			cfi_sz += ehframe__size(cfi[i]);
			if (follow_r12)
				ehframe__follow_r12(cfi[i]);
			sources[cnt++] = ehframe__source(cfi[i]);
		} else if (errno != ENOENT) {
			err = -errno;
		}
	}
	if (err != -ENOMEM && follow_rest(elf, sources, cnt, follow_r12, &flow) == -ENOMEM)
		err = -ENOMEM;
	if (flow)
		sources[cnt++] = flow__source(flow);
	if (cnt && err != -ENOMEM)
		err = unwind_build_merged(sources, cnt, ret);
	ret->cfi_sz = err ? 0 : cfi_sz;
	for (i = 0; i < ARRAY_SIZE(cfi); i++)
		ehframe__free(cfi[i]);
	gorows__free(go);
	flow__free(flow);
	return err;
}
