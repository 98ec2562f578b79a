// SPDX-License-Identifier: BSD-2-Clause
#include "base/rest.h"

#include <string.h>

static bool is_of(const struct rests *r, size_t i, struct rest_key key)
{
	return !memcmp(&r->of[i].key, &key, sizeof(key));
}

void rests__begin(struct rests *r, struct rest_key key)
{
	size_t at = 0;

	for (size_t i = 0; i < RESTS_MAX && !is_of(r, at, key); i++)
		if (is_of(r, i, key) || r->of[i].rest.until_ns < r->of[at].rest.until_ns)
			at = i;
	if (!is_of(r, at, key)) {
		r->of[at].key = key;
		r->of[at].rest = (struct rest){ 0 };
	}
	rest__begin(&r->of[at].rest);
}

bool rests__has(struct rests *r, struct rest_key key)
{
	for (size_t i = 0; i < RESTS_MAX; i++)
		if (is_of(r, i, key))
			return r->of[i].rest.until_ns && !rest__ends(&r->of[i].rest);
	return false;
}

unsigned int rests__cnt(const struct rests *r)
{
	uint64_t now = util_monotonic_ns();
	unsigned int cnt = 0;

	for (size_t i = 0; i < RESTS_MAX; i++)
		cnt += r->of[i].rest.until_ns > now;
	return cnt;
}
