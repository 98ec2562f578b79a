// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "serve/recordings.h"

#include <errno.h>

#include "base/util.h"

void recordings__done(struct recordings *r)
{
	for (size_t i = 0; i < RECORDINGS_MAX; i++)
		recording__free(r->all[i]);
}

struct recording *recordings__find(const struct recordings *r, uint32_t pid, enum bpfprof_kind kind,
				   uint32_t hz)
{
	for (size_t i = 0; i < RECORDINGS_MAX; i++)
		if (r->all[i] && recording__has(r->all[i], pid, kind, hz))
			return r->all[i];
	return NULL;
}

struct recording *recordings__of(const struct recordings *r, uint32_t pid)
{
	for (size_t i = 0; i < RECORDINGS_MAX; i++)
		if (r->all[i] && recording__is_of(r->all[i], pid))
			return r->all[i];
	return NULL;
}

int recordings__open(struct recordings *r, const struct recording_opts *what,
		     struct recording **ret)
{
	struct recording_opts opts = *what;
	size_t i = 0;
	int err;

	while (i < RECORDINGS_MAX && r->all[i])
		i++;
	if (i == RECORDINGS_MAX)
		return -EBUSY;
	opts.opts = r->opts;
	opts.answer = r->answer;
	opts.first = r->first;
	opts.ctx = r->ctx;
	r->took_long = true;
	err = recording__new(&opts, ret);
	if (!err)
		r->all[i] = *ret;
	return err;
}

void recordings__poll(struct recordings *r)
{
	for (size_t i = 0; i < RECORDINGS_MAX; i++) {
		if (!r->all[i] || recording__poll(r->all[i]))
			continue;
		recording__free(r->all[i]);
		r->all[i] = NULL;
	}
}

void recordings__meanwhile(struct recordings *r)
{
	for (size_t i = 0; i < RECORDINGS_MAX; i++)
		if (r->all[i])
			recording__meanwhile(r->all[i]);
}

void recordings__drop(struct recordings *r, uint64_t number)
{
	for (size_t i = 0; i < RECORDINGS_MAX; i++)
		if (r->all[i] && recording__drop(r->all[i], number))
			return;
}

void recordings__drop_all(struct recordings *r)
{
	for (size_t i = 0; i < RECORDINGS_MAX; i++)
		if (r->all[i])
			recording__drop_all(r->all[i]);
}

uint64_t recordings__next_ns(const struct recordings *r)
{
	uint64_t ns = UINT64_MAX;

	for (size_t i = 0; i < RECORDINGS_MAX; i++)
		if (r->all[i])
			ns = MIN(ns, recording__next_ns(r->all[i]));
	return ns;
}

size_t recordings__fds(const struct recordings *r, struct pollfd *ret)
{
	size_t n = 0;
	int pair[2];

	for (size_t i = 0; i < RECORDINGS_MAX; i++) {
		if (!r->all[i])
			continue;
		recording__fds(r->all[i], pair);
		ret[n++] = (struct pollfd){ .fd = pair[0], .events = POLLIN };
		ret[n++] = (struct pollfd){ .fd = pair[1], .events = POLLIN };
	}
	return n;
}
