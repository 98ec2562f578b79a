// SPDX-License-Identifier: BSD-2-Clause
#include "target/readers.h"

#include <errno.h>
#include <stddef.h>

#include "base/util.h"

/* With the system's own files: a disk may be slow, and nobody gains by it. */
#define SYSTEM_TIMEOUT_FACTOR 3

int readers__init(struct readers *r)
{
	*r = (struct readers){ 0 };
	return readers__get(r, READERS_SYSTEM) ? 0 : -ENOMEM;
}

void readers__done(struct readers *r)
{
	for (size_t i = 0; i < READERS_NR; i++)
		reader__free(r->all[i]);
}

struct reader *readers__get(struct readers *r, enum readers_whose whose)
{
	struct reader **found = &r->all[whose];

	if (*found)
		return *found;
	*found = reader__new(whose == READERS_SYSTEM ? SYSTEM_TIMEOUT_FACTOR : 1);
	if (*found)
		reader__meanwhile(*found, r->meanwhile, r->meanwhile_ctx);
	return *found;
}

void readers__meanwhile(struct readers *r, void (*call)(void *ctx), void *ctx)
{
	r->meanwhile = call;
	r->meanwhile_ctx = ctx;
	for (size_t i = 0; i < READERS_NR; i++)
		if (r->all[i])
			reader__meanwhile(r->all[i], call, ctx);
}

void readers__stats(const struct readers *r, struct reader_stats *ret)
{
	struct reader_stats one;

	*ret = (struct reader_stats){ 0 };
	for (size_t i = 0; i < READERS_NR; i++) {
		if (!r->all[i])
			continue;
		reader__stats(r->all[i], &one);
		ret->died += one.died;
		ret->timed_out += one.timed_out;
		ret->lied += one.lied;
		ret->cpu_ns += one.cpu_ns;
	}
}

uint64_t readers__peak_rss(const struct readers *r)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < READERS_NR; i++)
		sum += r->all[i] ? reader__peak_rss(r->all[i]) : 0;
	return sum;
}
