/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agent answers to those who watch it, by libmicrohttpd: /metrics, /-/healthy and /-/ready.
 * It says what the collector has said last.
 */
#ifndef COURIER_HTTP_H
#define COURIER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http;

/* Takes over a socket that listens. NULL: it cannot. */
struct http *http__new(int listening);
void http__free(struct http *h);

/* Readable when there is something to do. */
int http__fd(const struct http *h);
/* When there is something to do at the latest; UINT64_MAX: never. */
uint64_t http__timeout_ms(const struct http *h);
void http__run(struct http *h);

/* The metrics, in the text format of Prometheus. 0 or -ENOMEM. */
int http__set_status(struct http *h, const char *text, size_t sz, uint64_t now_ns);

#endif
