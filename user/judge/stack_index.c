// SPDX-License-Identifier: BSD-2-Clause
#include "judge/stack_index.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/large_pages.h"
#include "judge/runs.h"

/* Frames of a stack that count. */
static uint32_t depth(const struct runs_stack *s, bool leaf)
{
	return leaf ? 1 : s->cnt;
}

/* Two passes: how many stacks each function has, then which. */
static int fill(const struct runs *r, bool leaf, size_t **ret_starts, uint32_t **ret_stacks)
{
	size_t *starts = calloc(r->function_cnt + 2, sizeof(*starts));
	size_t cnt = (leaf ? r->stack_cnt : r->frame_cnt) + 1;
	uint32_t *stacks = calloc(cnt, sizeof(*stacks));

	*ret_starts = starts;
	*ret_stacks = stacks;
	if (!starts || !stacks)
		return -ENOMEM;
	large_pages__use(stacks, cnt * sizeof(*stacks));
	for (size_t s = 0; s < r->stack_cnt; s++)
		for (uint32_t k = 0; k < depth(&r->stacks[s], leaf); k++)
			starts[r->frames[r->stacks[s].at + k] + 2]++;
	for (size_t f = 2; f < r->function_cnt + 2; f++)
		starts[f] += starts[f - 1];
	/* starts[f + 1] goes from where the stacks of f begin to where those of f + 1 do */
	for (size_t s = 0; s < r->stack_cnt; s++)
		for (uint32_t k = 0; k < depth(&r->stacks[s], leaf); k++)
			stacks[starts[r->frames[r->stacks[s].at + k] + 1]++] = (uint32_t)s;
	return 0;
}

static void *fill_both(void *arg)
{
	struct stack_index *x = arg;

	x->err = fill(x->runs, false, &x->starts, &x->stacks) ?:
			 fill(x->runs, true, &x->leaf_starts, &x->leaves);
	return NULL;
}

void stack_index__begin(struct stack_index *x, const struct runs *r)
{
	*x = (struct stack_index){ .runs = r };
	x->in_thread = !pthread_create(&x->thread, NULL, fill_both, x);
	if (!x->in_thread)
		fill_both(x);
}

int stack_index__wait(struct stack_index *x)
{
	if (x->in_thread)
		pthread_join(x->thread, NULL);
	x->in_thread = false;
	return x->err;
}

void stack_index__done(struct stack_index *x)
{
	stack_index__wait(x);
	free(x->starts);
	free(x->stacks);
	free(x->leaf_starts);
	free(x->leaves);
}

struct stack_set stack_index__with(const struct stack_index *x, uint32_t function)
{
	const size_t *at = &x->starts[function];

	return (struct stack_set){ x->stacks + at[0], at[1] - at[0] };
}

struct stack_set stack_index__leaves(const struct stack_index *x, uint32_t function)
{
	const size_t *at = &x->leaf_starts[function];

	return (struct stack_set){ x->leaves + at[0], at[1] - at[0] };
}
