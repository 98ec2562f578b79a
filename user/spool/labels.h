/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a record says of itself beside its profile: service_name, kind, and what else all of its
 * samples have in common. It stands in the header of the file (pprof_write_extra): KEY, NUL, VALUE,
 * NUL, and so on.
 */
#ifndef SPOOL_LABELS_H
#define SPOOL_LABELS_H

#include <stddef.h>

#define LABELS_MAX 16
#define LABELS_MAX_VALUE 1024 /* bytes with the NUL */

struct labels {
	size_t cnt;
	struct label {
		const char *key, *value; /* borrowed */
	} v[LABELS_MAX];
};

/* Adds one, if there is room; one without a value is left out. */
void labels__add(struct labels *l, const char *key, const char *value);

/* NULL: there is no such label. */
const char *labels__get(const struct labels *l, const char *key);

/* Control characters of values become U+FFFD, and they are cut to LABELS_MAX_VALUE. *ret is the
 * caller's to free. 0 or -ENOMEM. */
int labels__encode(const struct labels *l, char **ret, size_t *ret_sz);

/* *ret points into data. 0; -EBADMSG: that is no such thing, or has more than LABELS_MAX. */
int labels__decode(const void *data, size_t sz, struct labels *ret);

#endif
