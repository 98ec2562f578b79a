// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "capture/windows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "capture/count_keys.h"
#include "capture/window.h"
#include "capture/code.h"
#include "kinds.h"
#include "target/procs.h"

/* Stacks from which on those of processes that have ended are told apart no more: some 400 bytes
 * each. */
#define COMPACT_STACKS ((size_t)16384)

struct windows {
	struct windows_opts opts;
	struct procs *procs;
	struct code *code;
	struct stack_store *store;
	struct count_keys *keys;
	struct window *epochs[CAPTURE_EPOCHS]; /* what is sampled in the epoch of each slot */
	struct window **open;
	size_t cnt, cap;
	size_t compact_at; /* stacks */
};

struct windows *windows__new(const struct windows_opts *opts, struct procs *procs,
			     struct code *code)
{
	struct windows *w = calloc(1, sizeof(*w));
	bool ok;

	if (!w)
		return NULL;
	w->opts = *opts;
	w->procs = procs;
	w->code = code;
	w->compact_at = COMPACT_STACKS;
	w->store = stack_store__new(&opts->stacks, procs, code);
	w->keys = w->store ? count_keys__new(w->store) : NULL;
	ok = w->keys;
	for (int i = 0; ok && i < CAPTURE_EPOCHS; i++) {
		w->epochs[i] = window__new(w->store);
		ok = w->epochs[i];
	}
	if (ok)
		return w;
	windows__free(w);
	errno = ENOMEM;
	return NULL;
}

void windows__free(struct windows *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->cnt; i++)
		window__free(w->open[i]);
	for (int i = 0; i < CAPTURE_EPOCHS; i++)
		window__free(w->epochs[i]);
	count_keys__free(w->keys);
	stack_store__free(w->store);
	free(w->open);
	free(w);
}

struct window *windows__open(struct windows *w)
{
	struct window *ret;

	if (util_reserve(&w->open, &w->cap, w->cnt + 1, sizeof(*w->open))) {
		errno = ENOMEM;
		return NULL;
	}
	ret = window__new(w->store);
	if (ret)
		w->open[w->cnt++] = ret;
	return ret;
}

struct window *windows__copy(struct windows *w, const struct window *window)
{
	struct window *ret = windows__open(w);

	if (ret && window__merge(ret, window)) {
		windows__close(w, ret);
		errno = ENOMEM;
		return NULL;
	}
	return ret;
}

struct window *windows__of_addresses(struct windows *w, uint32_t proc, const uint64_t *addresses,
				     size_t cnt)
{
	const struct bpfprof_rec rec = { .type = BPFPROF_REC_SAMPLE,
					 .kind = BPFPROF_THREADS,
					 .time_ns = util_monotonic_ns() };
	const struct bpfprof_count one = { .count = 1 };
	struct window *ret = windows__open(w);
	int err = 0;

	for (size_t i = 0; ret && !err && i < cnt; i++) {
		struct count_key_stack stack = { .unit = 1 };

		stack.stack = stack_store__add(w->store, proc, &rec, NULL, &addresses[i], 1,
					       BPFPROF_STACK_complete);
		err = stack.stack == STACK_NONE ? -ENOMEM : window__add(ret, &stack, &one);
		if (stack.stack != STACK_NONE)
			stack_store__unref(w->store, stack.stack);
	}
	if (err) {
		windows__close(w, ret);
		errno = ENOMEM;
		return NULL;
	}
	if (ret)
		window__commit(ret, BPFPROF_THREADS, 1);
	return ret;
}

const struct stack_store *windows__store(const struct windows *w)
{
	return w->store;
}

void windows__close(struct windows *w, struct window *window)
{
	size_t i = 0;

	while (w->open[i] != window)
		i++;
	w->open[i] = w->open[--w->cnt];
	window__free(window);
}

struct window_account *windows__account(struct windows *w, uint32_t slot, enum bpfprof_kind kind)
{
	return window__account(w->epochs[slot], kind);
}

/* ---- samples ---- */

void windows__add(struct windows *w, uint32_t slot, uint32_t proc, const struct bpfprof_rec *rec,
		  const uint64_t *kernel, const uint64_t *user, size_t user_cnt,
		  enum bpfprof_stack_result result)
{
	struct bpfprof_count one = { .count = 1, .units = rec->units, .amount = rec->amount };
	struct bpfprof_count_key key = { .hash = rec->hash, .tgid = rec->proc.tgid };
	struct window *epoch = w->epochs[slot];
	struct count_key_stack stack = { .unit = 1 };
	size_t known;

	/* what was taken for the caller of such code was found by another's table */
	known = proc == PROCS_NONE ? user_cnt :
				     code__vouch(w->code, proc, user, user_cnt, rec->time_ns);
	if (known < user_cnt) {
		user_cnt = known + 1;
		result = BPFPROF_STACK_unproved;
	}
	stack.stack = stack_store__add(w->store, proc, rec, kernel, user, user_cnt, result);
	if (stack.stack == STACK_NONE) {
		window__account(epoch, rec->kind)->no_memory++;
		return;
	}
	if (kinds[rec->kind].unit)
		stack.unit =
			kinds[rec->kind].unit(rec->size, rec->weight, w->opts.periods[rec->kind]);
	if (rec->type == BPFPROF_REC_SAMPLE) {
		key.kernel_cnt = rec->kernel_cnt;
		key.user_cnt = rec->user_cnt;
	}
	/* a raw record has a key if something will be joined to it */
	if (!window__add(epoch, &stack, &one) && rec->hash &&
	    count_keys__set(w->keys, slot, kinds[rec->kind].holds, &key, &stack))
		log_debug("out of memory: the further samples of a stack are lost");
	stack_store__unref(w->store, stack.stack);
}

void windows__count(struct windows *w, uint32_t slot, const struct bpfprof_count_key *key,
		    const struct bpfprof_count *count)
{
	const struct count_key_stack *stack = count_keys__find(w->keys, slot, key);

	if (stack)
		(void)window__add(w->epochs[slot], stack, count);
}

size_t windows__keys(const struct windows *w, uint32_t slot)
{
	return count_keys__cnt(w->keys, slot);
}

size_t windows__stacks(const struct windows *w, enum bpfprof_kind kind)
{
	return stack_store__cnt(w->store, kind);
}

/* ---- stacks of processes that have ended ---- */

/* Bit by process id: it is one that there is. */
struct live_ids {
	uint8_t *bits;
	size_t cap;
};

static int find_live(const struct windows *w, struct live_ids *ret)
{
	for (size_t i = 0; i < procs__cnt(w->procs); i++) {
		uint32_t tgid = procs__get(w->procs, i)->tgid;

		if (!tgid)
			continue;
		if (util_reserve_zeroed(&ret->bits, &ret->cap, tgid / 8, 1))
			return -ENOMEM;
		ret->bits[tgid / 8] |= 1 << tgid % 8;
	}
	return 0;
}

static bool has_ended(const struct live_ids *live, uint32_t tgid)
{
	return tgid / 8 >= live->cap || !(live->bits[tgid / 8] >> tgid % 8 & 1);
}

/* Stacks that may be compacted: those are kept that may still be held. */
static size_t compactable(const struct windows *w)
{
	size_t sum = 0;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		sum += kinds[i].holds ? 0 : stack_store__cnt(w->store, i);
	return sum;
}

/* By number, what each stack of a process that has ended is without its process. NULL: there is no
 * memory. The caller gives the references back. */
static uint32_t *without_ended(struct windows *w, const struct live_ids *live, size_t cnt)
{
	uint32_t *moved = malloc(cnt * sizeof(*moved));

	if (moved)
		memset(moved, 0xff, cnt * sizeof(*moved));
	for (size_t i = 0; moved && i < cnt; i++) {
		struct stack s;

		if (!stack_store__has(w->store, (uint32_t)i))
			continue;
		s = stack_store__get(w->store, (uint32_t)i);
		if (!kinds[s.kind].holds && s.labels.has_pid && has_ended(live, s.labels.pid))
			moved[i] = stack_store__without_pid(w->store, (uint32_t)i);
	}
	return moved;
}

/* Keeps memory within bounds where processes come and go: once there are many stacks, those of
 * processes that have ended lose their label pid, and equal ones become one. */
static void compact(struct windows *w)
{
	size_t cnt = stack_store__end(w->store);
	struct live_ids live = {};
	uint32_t *moved = NULL;

	if (!w->opts.stacks.label_process || compactable(w) < w->compact_at)
		return;
	/* without memory for it everything stays as it is */
	if (!find_live(w, &live))
		moved = without_ended(w, &live, cnt);
	for (size_t i = 0; moved && i < w->cnt; i++)
		window__move(w->open[i], moved, cnt);
	for (size_t i = 0; moved && i < CAPTURE_EPOCHS; i++)
		window__move(w->epochs[i], moved, cnt);
	if (moved)
		count_keys__move(w->keys, moved, cnt);
	for (size_t i = 0; moved && i < cnt; i++)
		if (moved[i] != STACK_NONE)
			stack_store__unref(w->store, moved[i]);
	free(moved);
	free(live.bits);
	w->compact_at = MAX(COMPACT_STACKS, 2 * compactable(w));
}

/* ---- epochs ---- */

int windows__end_epoch(struct windows *w, uint32_t slot,
		       const struct bpfprof_stats stats[static BPFPROF_NR_KINDS])
{
	struct window *ended = w->epochs[slot];
	int err = 0;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		window__add_stats(ended, i, &stats[i]);
	for (size_t i = 0; !err && i < w->cnt; i++)
		err = window__merge(w->open[i], ended);
	count_keys__end(w->keys, slot);
	window__clear(ended);
	compact(w);
	return err;
}

void windows__commit(struct windows *w, enum bpfprof_kind kind, double scale)
{
	for (size_t i = 0; i < w->cnt; i++)
		window__commit(w->open[i], kind, scale);
}

void windows__note_live(struct windows *w, const struct bpfprof_count_key *key)
{
	(void)count_keys__find_live(w->keys, key);
}

void windows__drop_freed(struct windows *w, enum bpfprof_kind kind)
{
	count_keys__drop_unused(w->keys, kind);
}

bool windows__hold(struct windows *w, struct window *window, const struct bpfprof_count_key *key)
{
	const struct count_key_stack *stack = count_keys__find_live(w->keys, key);

	if (stack)
		(void)window__hold(window, stack, 1);
	return stack;
}

bool windows__hold_ended(struct windows *w, const struct bpfprof_count_key *key, uint64_t time_ns)
{
	const struct count_key_stack *stack = count_keys__find_live(w->keys, key);

	for (size_t i = 0; stack && i < w->cnt; i++)
		if (time_ns >= window__since_ns(w->open[i]))
			(void)window__hold(w->open[i], stack, 1);
	return stack;
}

void windows__unhold(struct windows *w, struct window *window, const struct bpfprof_count_key *key)
{
	const struct count_key_stack *stack = count_keys__find_live(w->keys, key);

	if (stack)
		(void)window__hold(window, stack, -1);
}
