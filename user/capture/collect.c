// SPDX-License-Identifier: BSD-2-Clause
/* From the kernel to the profile: process events, stacks, counts. */
#include <linux/types.h>

#include "capture/collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "capture/window.h"
#include "capture/windows.h"
#include "capture/code.h"
#include "kernel/events.h"
#include "kernel/samples.h"
#include "kernel/epochs.h"
#include "kernel/session.h"
#include "capture/records.h"
#include "target/procs.h"
#include "target/raw_unwind.h"
#include "capture/targets.h"

#define RAW_ROUNDS 512 /* tables loaded for one raw stack at most */
/* How long one is walked for them: a walk may read code at each frame, and the next one begins at the top. */
#define RAW_NS 200000000ULL
/* Raw stacks that led to unknown code, and how long they did, before they are no longer asked for: what
 * a program is at may soon be done, such as copying its code. */
#define FRUITLESS_MAX 8
#define FRUITLESS_NS 100000000ULL
#define MAX_ENDED (CAPTURE_EPOCHS - 1) /* epochs that wait: one more goes on */
#define MEANWHILE_NS 5000000ULL /* how long all else may be left alone while stacks are unwound */

/* An epoch that has ended, and is not added up yet. */
struct ended {
	uint32_t slot, side;
	bool boundary;
	uint64_t end_ns;
	struct bpfprof_stats stats[BPFPROF_NR_KINDS];
	struct samples_count *counts;
	size_t cnt;
};

struct collect {
	struct collect_opts opts;
	struct session *session;
	struct samples *samples;
	struct events *events;
	struct procs *procs;
	struct code *code;
	struct windows *windows;
	uint32_t epoch;		       /* that goes on */
	struct ended ended[MAX_ENDED]; /* the oldest one first */
	size_t ended_cnt;
	bool ending;  /* programs may still add to the last one */
	uint64_t raw; /* stacks unwound here */
	bool calm;    /* none in the last poll */
	struct targets *targets;
	struct records pending; /* read from the ring, waiting for the events that explain them */
	struct records spilled; /* the same, read while the pending ones were worked on */
	bool behind;		/* pending ones could not all be worked on */
};

struct collect *collect__new(const struct collect_opts *opts, struct session *session,
			     struct samples *samples, struct events *events, struct procs *procs,
			     struct code *code)
{
	struct windows_opts windows = {
		.stacks = { .label_process = opts->label_process,
			    .label_thread = opts->label_thread,
			    .label_service = opts->label_service },
	};
	struct targets_opts targets = { .follow = opts->follow,
					.only_added = opts->only_added,
					.all_maps = opts->all_maps };
	struct collect *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->opts = *opts;
	if (!c->opts.spill_max)
		c->opts.spill_max = COLLECT_SPILL_MAX;
	c->session = session;
	c->samples = samples;
	c->events = events;
	c->procs = procs;
	c->code = code;
	memcpy(windows.periods, opts->periods, sizeof(windows.periods));
	c->windows = windows__new(&windows, procs, code);
	c->targets = targets__new(&targets, session, events, procs, code);
	if (c->targets && c->windows)
		return c;
	collect__free(c);
	errno = ENOMEM;
	return NULL;
}

void collect__free(struct collect *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->ended_cnt; i++)
		free(c->ended[i].counts);
	windows__free(c->windows);
	targets__free(c->targets);
	records__free(&c->pending);
	records__free(&c->spilled);
	free(c);
}

/* ---- raw stacks ---- */

struct raw_ctx {
	struct collect *c;
	uint32_t proc;
	const struct bpfprof_raw *raw;
};

static const uint8_t *raw_chunk(void *ctx, uint32_t idx)
{
	return code__chunk(((struct raw_ctx *)ctx)->c->code, idx);
}

static int raw_code(void *ctx, uint64_t addr, void *buf, size_t sz)
{
	struct raw_ctx *r = ctx;

	return code__read(r->c->code, r->proc, addr, raw_code_then(r->raw, addr, sz), buf, sz);
}

/* A raw stack of the process led to nothing that can be known. One from before its mappings changed tells
 * nothing of those that there are. */
static void fruitless(struct collect *c, uint32_t proc, const struct bpfprof_rec *rec)
{
	struct target_note *note = targets__note(c->targets, proc);

	if (!note || rec->time_ns < note->changed_ns)
		return;
	if (!note->fruitless)
		note->fruitless_ns = rec->time_ns;
	if (note->fruitless < FRUITLESS_MAX)
		note->fruitless++;
	if (note->fruitless == FRUITLESS_MAX && rec->time_ns >= note->fruitless_ns + FRUITLESS_NS)
		code__want_raw(c->code, proc, false);
}

/*
 * Unwinds a copied stack, loading what it asks for on the way, so that the kernel side can walk the
 * next one like it. Returns how the stack ended.
 */
static int unwind_raw(struct collect *c, uint32_t proc, const struct bpfprof_rec *rec,
		      const struct bpfprof_raw *raw, const uint8_t *stack,
		      uint64_t frames[BPFPROF_MAX_UFRAMES], size_t *ret_cnt)
{
	struct target_note *note = targets__note(c->targets, proc);
	struct raw_ctx ctx = { .c = c, .proc = proc, .raw = raw };
	struct raw_unwind in = { .key = rec->proc,
				 .regs = *raw,
				 .stack = stack,
				 .ctx = &ctx,
				 .chunk = raw_chunk,
				 .read_code = raw_code };
	bool reread = false;
	uint64_t miss, last_miss = 0, begin_ns, walked_ns = 0;
	int result = RAW_UNWIND_MISS;

	/* it has ended, and nobody had asked what it maps */
	if (!procs__space(c->procs, proc)->known && !procs__space(c->procs, proc)->map_cnt)
		return BPFPROF_STACK_gone;
	code__begin_looks(c->code);
	for (int i = 0; i < RAW_ROUNDS && result == RAW_UNWIND_MISS; i++) {
		const struct proc_map *map;

		if (code__publish(c->code, proc) || !code__published(c->code, proc, &in.proc))
			return BPFPROF_STACK_gone;
		if (walked_ns >= RAW_NS)
			i = RAW_ROUNDS - 1;
		if (i == RAW_ROUNDS - 1)
			in.proc.flags |= BPFPROF_PROC_NO_RAW | BPFPROF_PROC_NO_LOAD;
		begin_ns = util_monotonic_ns();
		result = raw_unwind(&in, frames, ret_cnt, &miss);
		walked_ns += util_monotonic_ns() - begin_ns;
		/* nothing had to be loaded, and it leads no further all the same */
		if (result == BPFPROF_STACK_no_table && !i)
			fruitless(c, proc, rec);
		if (result != RAW_UNWIND_MISS)
			break;
		map = procs__map_at(c->procs, proc, miss);
		if (map && miss != last_miss) {
			last_miss = miss;
			if (code__load(c->code, proc, map))
				return BPFPROF_STACK_gone;
		} else if (!map && !reread) {
			/* mapped in a way that no event told of, or no code at all */
			reread = true;
			(void)procs__read_maps(c->procs, proc,
					       rec->tid == rec->proc.tgid ? 0 : rec->tid);
		} else {
			i = RAW_ROUNDS - 2;
			fruitless(c, proc, rec);
		}
	}
	if (result == BPFPROF_STACK_complete && note && !note->known) {
		note->known = true;
		log_debug("process %u: its stacks need not be copied any more", rec->proc.tgid);
	}
	return result == RAW_UNWIND_MISS ? BPFPROF_STACK_no_mapping : result;
}

/* ---- records ---- */

static void take_record(struct collect *c, const struct bpfprof_rec *rec, uint32_t slot)
{
	const uint64_t *user = (const uint64_t *)(rec + 1), *kernel = user + rec->user_cnt;
	uint32_t proc = targets__find(c->targets, rec);
	uint64_t frames[BPFPROF_MAX_UFRAMES];
	const struct bpfprof_raw *raw;
	int result = rec->result;
	size_t user_cnt = rec->user_cnt;

	if (rec->type == BPFPROF_REC_RAW) {
		raw = (const void *)(rec + 1);
		kernel = (const uint64_t *)(raw + 1);
		user = frames;
		user_cnt = 0;
		result = proc == PROCS_NONE ?
				 BPFPROF_STACK_gone :
				 unwind_raw(c, proc, rec, raw,
					    (const uint8_t *)(kernel + rec->kernel_cnt), frames,
					    &user_cnt);
		c->raw++;
		windows__account(c->windows, slot, rec->kind)->raw++;
	}
	windows__add(c->windows, slot, proc, rec, kernel, user, user_cnt, result);
}

static uint32_t slot_of(uint32_t epoch)
{
	return epoch % CAPTURE_EPOCHS;
}

/* The slot of the epoch of a record that is read now: it goes on, or it is the last one that has
 * ended. */
static uint32_t slot_of_record(const struct collect *c, const struct bpfprof_rec *rec)
{
	return slot_of(rec->side == BPFPROF_SIDE(c->epoch) ? c->epoch : c->epoch - 1);
}

/* Puts a record behind those that wait. 0 or -errno, then it is counted as lost. */
static int put(struct collect *c, struct records *to, const struct bpfprof_rec *rec, size_t sz,
	       uint32_t slot)
{
	int err = records__put(to, rec, sz, slot);

	if (err)
		windows__account(c->windows, slot, rec->kind)->no_memory++;
	return err;
}

static void spill_record(void *ctx, const struct bpfprof_rec *rec, size_t sz)
{
	struct collect *c = ctx;

	(void)put(c, &c->spilled, rec, sz, slot_of_record(c, rec));
}

void collect__spill(struct collect *c)
{
	/* Memory that was not used before may be slower than stacks are copied: as long as there is
	 * room in the ring they stay there. What is left there beyond what may be kept is counted
	 * when it is full. */
	if (samples__is_half_full(c->samples) && c->pending.sz + c->spilled.sz < c->opts.spill_max)
		(void)samples__read(c->samples, spill_record, c);
	(void)events__hold(c->events);
}

/* Keeps a record until the events that had happened before it have been read too. */
static void keep_record(void *ctx, const struct bpfprof_rec *rec, size_t sz)
{
	struct collect *c = ctx;

	(void)put(c, &c->pending, rec, sz, slot_of_record(c, rec));
}

int collect__inject(struct collect *c, const struct bpfprof_rec *rec, size_t sz)
{
	uint32_t slot = slot_of(c->epoch);
	struct window_account *a = windows__account(c->windows, slot, rec->kind);

	/* counted as one that the kernel side recorded: what is lost of it from here on is, too */
	a->stats.seen++;
	a->stats.recorded++;
	return put(c, &c->pending, rec, sz, slot);
}

void collect__lose(struct collect *c, enum bpfprof_kind kind, enum bpfprof_lost why)
{
	struct window_account *a = windows__account(c->windows, slot_of(c->epoch), kind);

	a->stats.seen++;
	a->stats.lost[why]++;
}

void collect__leave_out(struct collect *c, enum bpfprof_kind kind, uint32_t cnt, uint64_t ns)
{
	struct window_account *a = windows__account(c->windows, slot_of(c->epoch), kind);

	a->stats.below += cnt;
	a->stats.below_ns += ns;
}

int collect__scan(struct collect *c, const uint32_t *tgids, size_t tgid_cnt)
{
	return targets__scan(c->targets, tgids, tgid_cnt);
}

int collect__remove(struct collect *c, uint32_t tgid)
{
	return targets__remove(c->targets, tgid);
}

bool collect__is_leaving(const struct collect *c, uint32_t tgid)
{
	return targets__is_leaving(c->targets, tgid);
}

int collect__choose(struct collect *c, const struct bpfprof_task *task, uint64_t scanned_ns,
		    uint32_t chosen)
{
	return targets__choose(c->targets, task, scanned_ns, chosen);
}

uint32_t collect__chosen(const struct collect *c, uint32_t proc)
{
	return targets__chosen(c->targets, proc);
}

int collect__prepare(struct collect *c)
{
	int err = 0;

	for (size_t i = 0; !err && i < procs__cnt(c->procs); i++) {
		const struct proc *p = procs__get(c->procs, i);

		if (p->tgid && !p->kthread)
			err = code__load_all(c->code, i);
	}
	return err;
}

static void meanwhile(struct collect *c)
{
	if (c->opts.meanwhile)
		c->opts.meanwhile(c->opts.ctx);
	else
		collect__spill(c);
}

/*
 * Handles what was pending up to until_ns; the rest stays. A record's own time decides, not the
 * order of arrival, since events before it may come from another CPU. Many raw stacks take their
 * time: until end_ns, what is left then waits.
 */
static void take_pending(struct collect *c, uint64_t until_ns, uint64_t end_ns)
{
	uint64_t last_ns = util_monotonic_ns(), now;
	const struct bpfprof_rec *rec;
	struct records later = {};
	uint32_t slot;
	size_t sz;

	c->behind = false;
	while (!c->behind && (rec = records__first(&c->pending, &sz, &slot))) {
		if (rec->time_ns <= until_ns)
			take_record(c, rec, slot);
		else
			(void)put(c, &later, rec, sz, slot);
		records__drop(&c->pending);
		now = util_monotonic_ns();
		if (now - last_ns >= MEANWHILE_NS) {
			meanwhile(c);
			last_ns = now;
		}
		c->behind = now >= end_ns && c->pending.sz;
	}
	records__join(&later, &c->pending);
	records__join(&c->pending, &later);
}

/* What arrives meanwhile waits for the events that explain it. */
static bool each_waiting(void *ctx, void (*f)(void *f_ctx, const struct bpfprof_rec *rec),
			 void *f_ctx)
{
	struct collect *c = ctx;

	if (samples__read(c->samples, spill_record, c) < 0 || !samples__took_all(c->samples))
		return false;
	records__each(&c->pending, f, f_ctx);
	records__each(&c->spilled, f, f_ctx);
	return true;
}

/* The ring is read before the events, and what it held is looked at after them: by then they
 * explain it. Until end_ns; UINT64_MAX: all of it. */
static int poll_until(struct collect *c, uint64_t until_ns, uint64_t end_ns)
{
	const struct targets_records records = { .each = each_waiting, .ctx = c };
	uint64_t raw = c->raw;
	bool reads;
	int err = 0;

	/* what was held comes before what is in the ring now */
	records__join(&c->pending, &c->spilled);
	reads = c->pending.sz < c->opts.spill_max || end_ns == UINT64_MAX;
	if (reads)
		err = samples__read(c->samples, keep_record, c);
	if (err >= 0)
		err = targets__read_events(c->targets, until_ns, reads ? &records : NULL);
	if (err)
		return err;
	take_pending(c, until_ns, end_ns);
	c->calm = c->raw == raw;
	targets__tend(c->targets, c->behind);
	code__ask_again(c->code);
	code__release_unused(c->code);
	return 0;
}

int collect__poll(struct collect *c)
{
	uint64_t now = util_monotonic_ns();

	return poll_until(c, now, c->opts.poll_ns ? now + c->opts.poll_ns : UINT64_MAX);
}

void collect__let_go(struct collect *c)
{
	if (!c->behind)
		targets__let_go(c->targets);
}

bool collect__is_behind(const struct collect *c)
{
	return c->behind;
}

bool collect__is_calm(const struct collect *c)
{
	return c->calm && !c->pending.sz && !c->spilled.sz;
}

bool collect__wants_cut(const struct collect *c)
{
	return windows__keys(c->windows, slot_of(c->epoch)) > session__counts_max(c->session) / 2;
}

/* ---- epochs ---- */

bool collect__may_end(const struct collect *c)
{
	/* all records of an epoch that has ended have to be out of the ring before the next one
	 * ends: they tell the two sides apart, no more */
	return !c->ending && c->ended_cnt < MAX_ENDED;
}

bool collect__can_end(const struct collect *c)
{
	return collect__may_end(c) && c->pending.sz + c->spilled.sz < c->opts.spill_max;
}

int collect__end_epoch(struct collect *c, bool boundary)
{
	if (!collect__may_end(c))
		return -EAGAIN;
	c->ended[c->ended_cnt++] = (struct ended){ .slot = slot_of(c->epoch),
						   .boundary = boundary,
						   .end_ns = util_monotonic_ns(),
						   .side = epochs__end(c->session) };
	c->epoch++;
	c->ending = true;
	return 0;
}

bool collect__is_ending(const struct collect *c)
{
	return c->ending;
}

int collect__tend_epoch(struct collect *c, bool wait)
{
	struct ended *e;
	int err;

	if (!c->ending)
		return 0;
	err = epochs__has_ended(c->session, wait);
	if (err <= 0)
		return err;
	c->ending = false;
	e = &c->ended[c->ended_cnt - 1];
	err = epochs__take(c->session, e->side, e->stats);
	if (!err)
		err = samples__drain_counts(c->samples, e->side, &e->counts, &e->cnt);
	if (err)
		return err;
	err = samples__read(c->samples, spill_record, c);
	return err < 0 ? err : 0;
}

/* Adds up the first one that has ended: all of its records have been read. */
static int settle(struct collect *c)
{
	struct ended e = c->ended[0];
	/* the stacks that were counted arrived before their counts */
	int err = poll_until(c, UINT64_MAX, UINT64_MAX);

	for (size_t i = 0; !err && i < e.cnt; i++)
		windows__count(c->windows, e.slot, &e.counts[i].key, &e.counts[i].count);
	free(e.counts);
	/* others may have ended meanwhile */
	memmove(c->ended, c->ended + 1, --c->ended_cnt * sizeof(*c->ended));
	return err ? err : windows__end_epoch(c->windows, e.slot, e.stats);
}

/* Adds up those that have ended before the first boundary, or up to it. */
static int settle_all(struct collect *c, bool up_to_boundary)
{
	bool boundary = false;
	int err = 0;

	while (!err && !boundary && c->ended_cnt > c->ending) {
		boundary = c->ended[0].boundary;
		if (boundary && !up_to_boundary)
			break;
		err = settle(c);
	}
	return err;
}

int collect__settle(struct collect *c)
{
	return settle_all(c, false);
}

bool collect__has_settled(const struct collect *c)
{
	return !c->ended_cnt;
}

int collect__cut(struct collect *c)
{
	int err;

	/* what waits is to be taken in first, if it is too much */
	while (!collect__can_end(c)) {
		err = collect__tend_epoch(c, true);
		if (!err)
			err = poll_until(c, UINT64_MAX, UINT64_MAX);
		if (!err)
			err = settle_all(c, false);
		/* or a boundary has to be taken in: what has arrived is known all the same */
		if (err || c->ended_cnt == MAX_ENDED)
			return err;
	}
	err = collect__end_epoch(c, false);
	if (!err)
		err = collect__tend_epoch(c, true);
	return err ? err : settle_all(c, false);
}

int collect__settle_boundary(struct collect *c, uint64_t *ret_ns)
{
	size_t i = 0;

	while (!c->ended[i].boundary)
		i++;
	*ret_ns = c->ended[i].end_ns;
	return settle_all(c, true);
}

void collect__account(struct window *w, enum bpfprof_kind kind, struct collect_account *ret)
{
	const struct window_account *a = window__account(w, kind);
	uint64_t here = a->total + a->no_memory;

	memset(ret, 0, sizeof(*ret));
	ret->seen = a->stats.seen;
	ret->recorded = a->total;
	memcpy(ret->lost, a->stats.lost, sizeof(ret->lost));
	/* recorded there, and yet not here: for want of memory, or else for a reason that there
	 * should not be */
	ret->lost[BPFPROF_LOST_no_memory] += a->no_memory;
	if (a->stats.recorded > here)
		ret->lost[BPFPROF_LOST_orphan] += a->stats.recorded - here;
	memcpy(ret->stacks, a->results, sizeof(ret->stacks));
	ret->unwinds = a->stats.unwinds;
	ret->frames = a->stats.frames;
	ret->raw = a->raw;
	ret->below = a->stats.below;
	ret->below_ns = a->stats.below_ns;
	ret->kernel_stacks = a->stats.kernel_stacks;
	ret->user_stacks = a->stats.user_stacks;
	ret->rules = a->stats.rules;
	ret->removed = a->stats.removed;
	ret->duplicates = a->stats.duplicates;
	ret->unknown = a->stats.unknown;
	ret->untracked = a->stats.untracked;
}

int collect__begin(struct collect *c)
{
	return targets__begin(c->targets);
}

uint64_t collect__events_lost(const struct collect *c)
{
	return targets__events_lost(c->targets);
}

const struct target_forks *collect__forks(const struct collect *c)
{
	return targets__forks(c->targets);
}

struct windows *collect__windows(struct collect *c)
{
	return c->windows;
}
