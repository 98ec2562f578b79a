/* SPDX-License-Identifier: BSD-2-Clause */
/* A request to a reader, of whatever kind: reader.c asks it, reader_asks.c has the kinds. */
#ifndef TARGET_READER_ASK_H
#define TARGET_READER_ASK_H

#include <stddef.h>

#include "target/reader_wire.h"

struct reader;
struct stream;

struct query {
	struct reader_request request;
	int fds[READER_MAX_FILES];
	const void *input; /* what follows the request */
	size_t input_sz;
	/* Takes what follows the answer's beginning. On failure nothing is left in *ret. */
	int (*take)(struct stream *from, const struct query *q, void *ret);
	void (*release)(void *ret); /* what was taken; NULL: it holds nothing */
	void *ret;
};

/* As the functions of reader.h: 0 or -errno. */
int reader_ask(struct reader *r, const struct query *q);

#endif
