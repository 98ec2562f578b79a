// SPDX-License-Identifier: BSD-2-Clause
#include "target/services.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/util.h"
#include "target/objects.h"
#include "target/process_context.h"
#include "target/procs.h"
#include "target/reader.h"

#define ASK_NS ((int64_t)(NSEC_PER_SEC / SERVICES_ASKS_PER_SECOND))
#define HARM_NS ((int64_t)(10 * NSEC_PER_SEC))

#define YOUNG_NS NSEC_PER_SEC

/* When a process is asked, since its first sample. */
static const uint64_t asks_ns[] = { 0, NSEC_PER_SEC, 10 * NSEC_PER_SEC, 60 * NSEC_PER_SEC };

/* What is known of the process that has, or had, a number. */
struct asked {
	uint32_t tgid, exec_id; /* which one it is */
	uint64_t start_ns;
	uint64_t first_ns; /* of its samples */
	uint64_t said_ns;  /* when it gave the answer that is kept */
	uint32_t asks;	   /* so far; ARRAY_SIZE(asks_ns): it is not asked again */
	bool environ_read;
	struct service *service; /* with a reference; NULL: none */
};

struct services {
	struct procs *procs;
	struct objects *objects;
	struct asked *asked; /* by number of a process */
	size_t cap;
	struct hash by_said; /* struct service * */
	int64_t credit_ns;   /* an ask takes ASK_NS of it */
	uint64_t credited_ns;
	uint8_t context[PROCESS_CONTEXT_MAX]; /* scratch */
};

struct services *services__new(struct procs *procs, struct objects *objects)
{
	struct services *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->procs = procs;
	s->objects = objects;
	hash__init(&s->by_said, sizeof(struct service *), 0, SERVICES_MAX);
	s->credit_ns = SERVICES_BURST * ASK_NS;
	s->credited_ns = util_monotonic_ns();
	return s;
}

void services__free(struct services *s)
{
	struct hash_iter it;
	struct service **e;

	if (!s)
		return;
	it = hash__iter(&s->by_said);
	while ((e = hash_iter__next(&it)))
		free(*e);
	hash__done(&s->by_said);
	free(s->asked);
	free(s);
}

/* ---- services ---- */

static uint64_t hash_of(const struct services *s, const struct said *said)
{
	return util_hash(said, sizeof(*said), s->by_said.seed);
}

static struct service **find(const struct services *s, const struct said *said, uint64_t hash)
{
	struct service **e = hash__first(&s->by_said, hash);

	while (e && memcmp(&(*e)->said, said, sizeof(*said)))
		e = hash__next(&s->by_said, e);
	return e;
}

/* With a reference; NULL: there is no memory, or no room. */
static struct service *intern(struct services *s, const struct said *said)
{
	uint64_t hash = hash_of(s, said);
	struct service **e = find(s, said, hash), *made;

	if (e) {
		service__ref(*e);
		return *e;
	}
	made = malloc(sizeof(*made));
	e = made ? hash__add(&s->by_said, hash) : NULL;
	if (!e) {
		free(made);
		return NULL;
	}
	*made = (struct service){ .said = *said, .refs = 1 };
	return *e = made;
}

void service__ref(struct service *service)
{
	service->refs++;
}

void services__unref(struct services *s, struct service *service)
{
	if (--service->refs)
		return;
	hash__remove(&s->by_said, find(s, &service->said, hash_of(s, &service->said)));
	free(service);
}

/* ---- asking ---- */

struct memory {
	struct objects *objects;
	int fd;
};

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t sz)
{
	const struct memory *m = ctx;

	return objects__read_memory(m->objects, m->fd, addr, buf, sz);
}

/* 0, and *ret may say nothing; -errno. */
static int ask_context(struct services *s, uint32_t proc, struct said *ret)
{
	uint64_t places[PROCESS_CONTEXT_PLACES];
	struct memory m = { .objects = s->objects };
	size_t sz;
	int cnt = procs__find_contexts(s->procs, proc, places, &sz), err = -ENOENT;

	s->credit_ns -= ASK_NS * (int64_t)(sz / SERVICES_MAPS_SZ);
	if (cnt <= 0)
		return cnt;
	m.fd = procs__open_memory(s->procs, proc);
	if (m.fd < 0)
		return m.fd;
	for (int i = 0; err && !reader_harmed(err) && i < cnt; i++) {
		err = process_context_read(read_memory, &m, places[i], s->context, &sz);
		if (!err)
			err = objects__parse_context(s->objects, s->context, sz, ret);
	}
	close(m.fd);
	return err;
}

static int ask_environ(struct services *s, uint32_t proc, struct said *ret)
{
	int fd = procs__open_environ(s->procs, proc), err;

	if (fd < 0)
		return fd;
	err = objects__read_environ(s->objects, fd, ret);
	close(fd);
	return err;
}

static bool lives(const struct services *s, uint32_t proc)
{
	return procs__lives(s->procs, proc) && !procs__is_gone(s->procs, proc);
}

static void take(struct services *s, struct asked *a, const struct said *said)
{
	if (a->service)
		services__unref(s, a->service);
	a->service = intern(s, said);
}

/* A program that has just begun has not come so far as to publish anything. */
static bool is_young(const struct services *s, uint32_t proc, uint64_t time_ns)
{
	uint64_t from_ns = procs__get(s->procs, proc)->from_ns;

	return from_ns && time_ns < from_ns + YOUNG_NS;
}

/* Changes s->asked[proc] alone. */
static void ask(struct services *s, uint32_t proc, uint64_t time_ns)
{
	struct asked *a = &s->asked[proc];
	struct said said = { 0 };
	bool context;
	uint64_t now;
	int err = is_young(s, proc, time_ns) ? 0 : ask_context(s, proc, &said);

	context = !err && *said.text[SAID_SERVICE];
	if (!context && !reader_harmed(err) && !a->environ_read) {
		err = ask_environ(s, proc, &said);
		a->environ_read = !err;
	}
	a->asks++;
	now = util_monotonic_ns();
	if (reader_harmed(err))
		s->credit_ns -= HARM_NS;
	/* most say nothing, and to see that they live takes as long as to ask them */
	if (!err && !*said.text[SAID_SERVICE])
		return;
	/* what was read is the process's if it is still there */
	if (reader_harmed(err) || !lives(s, proc)) {
		a->asks = ARRAY_SIZE(asks_ns);
		return;
	}
	if (context)
		a->asks = ARRAY_SIZE(asks_ns);
	if (!*said.text[SAID_SERVICE])
		return;
	take(s, a, &said);
	a->said_ns = now;
	log_debug("process %u: service '%s', by its %s", a->tgid, said.text[SAID_SERVICE],
		  context ? "process context" : "environment");
}

static bool may_ask(struct services *s)
{
	uint64_t now = util_monotonic_ns();

	s->credit_ns += (int64_t)(now - s->credited_ns);
	s->credit_ns = MIN(s->credit_ns, SERVICES_BURST * ASK_NS);
	s->credited_ns = now;
	if (s->credit_ns < ASK_NS)
		return false;
	s->credit_ns -= ASK_NS;
	return true;
}

static bool is_due(const struct asked *a, uint64_t time_ns)
{
	return a->asks < ARRAY_SIZE(asks_ns) && time_ns >= a->first_ns + asks_ns[a->asks];
}

/* The process with this number; its samples from time_ns on are the first ones if it was another. */
static struct asked *asked_of(struct services *s, uint32_t proc, uint64_t time_ns)
{
	const struct proc *p = procs__get(s->procs, proc);
	struct asked *a;

	if (util_reserve_zeroed(&s->asked, &s->cap, proc, sizeof(*s->asked)))
		return NULL;
	a = &s->asked[proc];
	if (a->tgid == p->tgid && a->exec_id == p->exec_id && a->start_ns == p->start_ns)
		return a;
	if (a->service)
		services__unref(s, a->service);
	*a = (struct asked){
		.tgid = p->tgid, .exec_id = p->exec_id, .start_ns = p->start_ns, .first_ns = time_ns
	};
	return a;
}

struct service *services__of(struct services *s, uint32_t proc, uint64_t time_ns)
{
	struct asked *a = asked_of(s, proc, time_ns);

	if (!a)
		return NULL;
	if (is_due(a, time_ns) && procs__lives(s->procs, proc) && may_ask(s))
		ask(s, proc, time_ns);
	/* by then it was another program's, of whose exec nobody had heard yet */
	if (!a->service || procs__get(s->procs, proc)->to_ns < a->said_ns)
		return NULL;
	service__ref(a->service);
	return a->service;
}
