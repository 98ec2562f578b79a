/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles that anybody has written: what can be read is written, and then read again as the same. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/pprof.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"
#include "tests/fuzz/parsers.h"

struct bytes {
	char *data;
	size_t sz;
};

static struct bytes written(struct profile *p)
{
	struct bytes b = {};
	FILE *f = open_memstream(&b.data, &b.sz);

	NEED(f && !profile__finish(p) && !pprof_write(p, f) && !fclose(f));
	return b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	struct bytes once, twice;
	struct profile *p, *q;
	const void *extra;
	size_t extra_sz;
	int err = pprof_read(data, sz, &p);

	if (!pprof_extra(data, sz, &extra, &extra_sz))
		NEED((const uint8_t *)extra + extra_sz <= data + sz);
	if (err) {
		NEED(!p && (err == -EBADMSG || err == -E2BIG));
		return 0;
	}
	once = written(p);
	NEED(!pprof_read(once.data, once.sz, &q));
	twice = written(q);
	NEED(once.sz == twice.sz && !memcmp(once.data, twice.data, once.sz));
	free(once.data);
	free(twice.data);
	profile__free(p);
	profile__free(q);
	return 0;
}
