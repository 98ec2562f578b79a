// SPDX-License-Identifier: BSD-2-Clause
#include "capture/short_lived.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "kernel/events.h"

#define NONE UINT32_MAX

struct proc {
	struct short_lived_proc p;
	uint32_t threads;
	bool kept;
};

struct short_lived {
	struct proc *procs;
	size_t cnt, cap;
	uint32_t *of; /* by event: a process, or NONE */
	size_t event_cnt, of_cap;
	uint32_t *by_pid; /* open addressing, at most half full: a process, or NONE */
	size_t slots, slot_cap;
	uint32_t shift; /* of 32 bits, to a slot */
};

struct short_lived *short_lived__new(void)
{
	return calloc(1, sizeof(struct short_lived));
}

void short_lived__free(struct short_lived *s)
{
	if (!s)
		return;
	free(s->procs);
	free(s->of);
	free(s->by_pid);
	free(s);
}

/* Where a process is, or would be. */
static uint32_t *slot_of(struct short_lived *s, uint32_t pid)
{
	size_t i = pid * 2654435761U >> s->shift;

	while (s->by_pid[i] != NONE && s->procs[s->by_pid[i]].p.pid != pid)
		i = (i + 1) & (s->slots - 1);
	return &s->by_pid[i];
}

static struct proc *find(struct short_lived *s, uint32_t pid)
{
	uint32_t i = s->slots ? *slot_of(s, pid) : NONE;

	return i == NONE ? NULL : &s->procs[i];
}

/* Room for all of so many events, which have as many forks at most. 0 or -ENOMEM. */
static int reserve(struct short_lived *s, size_t cnt)
{
	uint32_t bits = 6;
	size_t slots;

	while (1ULL << bits < 2 * cnt)
		bits++;
	slots = 1ULL << bits;
	if (util_reserve(&s->of, &s->of_cap, cnt, sizeof(*s->of)) ||
	    util_reserve(&s->procs, &s->cap, cnt, sizeof(*s->procs)) ||
	    util_reserve(&s->by_pid, &s->slot_cap, slots, sizeof(*s->by_pid)))
		return -ENOMEM;
	s->slots = slots;
	s->shift = 32 - bits;
	memset(s->by_pid, 0xff, slots * sizeof(*s->by_pid));
	return 0;
}

static struct proc *take_fork(struct short_lived *s, const struct event *ev)
{
	struct proc *parent = find(s, ev->ppid), *child = find(s, ev->pid);

	/* the child has what it has */
	if (parent)
		parent->kept = true;
	/* its number was given to another one */
	if (child) {
		child->kept = true;
		return child;
	}
	*slot_of(s, ev->pid) = (uint32_t)s->cnt;
	child = &s->procs[s->cnt++];
	*child = (struct proc){ .p = { .pid = ev->pid, .parent = ev->ppid }, .threads = 1 };
	return child;
}

/* The process of an event, if it was forked before; NULL. */
static struct proc *take(struct short_lived *s, const struct event *ev)
{
	struct proc *p;

	if (ev->type == EVENT_FORK && ev->pid != ev->ppid)
		return take_fork(s, ev);
	p = find(s, ev->pid);
	if (!p)
		return NULL;
	/* it goes on: an exec that changes the credentials tells of an exit as well (begin_new_exec in
	 * fs/exec.c) */
	p->kept |= p->p.ended_ns != 0;
	if (ev->type == EVENT_FORK)
		p->threads++;
	else if (ev->type == EVENT_EXEC)
		p->threads = 1;
	else if (ev->type == EVENT_EXIT && !--p->threads)
		p->p.ended_ns = ev->time_ns;
	return p;
}

void short_lived__clear(struct short_lived *s)
{
	s->cnt = s->event_cnt = s->slots = 0;
}

void short_lived__find(struct short_lived *s, const struct event *events, size_t cnt)
{
	short_lived__clear(s);
	if (reserve(s, cnt))
		return;
	for (size_t i = 0; i < cnt; i++) {
		const struct proc *p;

		if (events[i].type == EVENT_LOST) {
			short_lived__clear(s);
			return;
		}
		p = take(s, &events[i]);
		s->of[i] = p ? (uint32_t)(p - s->procs) : NONE;
	}
	s->event_cnt = cnt;
	for (size_t i = 0; i < s->cnt; i++)
		s->procs[i].kept |= !s->procs[i].p.ended_ns;
}

void short_lived__sampled(struct short_lived *s, uint32_t pid)
{
	struct proc *p = find(s, pid);

	if (p)
		p->kept = true;
}

bool short_lived__keep(struct short_lived *s,
		       bool (*keep)(void *ctx, const struct short_lived_proc *p), void *ctx)
{
	bool any = false;

	for (size_t i = 0; i < s->cnt; i++) {
		struct proc *p = &s->procs[i];

		p->kept = p->kept || keep(ctx, &p->p);
		any |= !p->kept;
	}
	return any;
}

bool short_lived__has(const struct short_lived *s, size_t event)
{
	return event < s->event_cnt && s->of[event] != NONE && !s->procs[s->of[event]].kept;
}
