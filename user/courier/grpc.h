/* SPDX-License-Identifier: BSD-2-Clause */
/* How a call of gRPC ended, by lines of headers: "grpc-status: 3", "grpc-message: no%20such%20label"
 * (grpc/doc/PROTOCOL-HTTP2.md). */
#ifndef COURIER_GRPC_H
#define COURIER_GRPC_H

#include <stddef.h>

#define GRPC_MESSAGE_SZ 256

struct grpc_end {
	int status;		       /* -1: not said */
	char message[GRPC_MESSAGE_SZ]; /* decoded, and cut; any bytes, with a NUL. "": none */
};

/* sz bytes: a line, with or without its end, or any other. */
void grpc_end__take(struct grpc_end *e, const char *line, size_t sz);

/* The same of all lines of a block of headers. */
void grpc_end__take_all(struct grpc_end *e, const char *text, size_t sz);

#endif
