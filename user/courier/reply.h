/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers of the server of /debug/pprof/, with the headers of Go's net/http/pprof. */
#ifndef COURIER_REPLY_H
#define COURIER_REPLY_H

#include <microhttpd.h>
#include <stddef.h>

#define REPLY_TEXT "text/plain; charset=utf-8"
#define REPLY_HTML "text/html; charset=utf-8"
#define REPLY_BINARY "application/octet-stream"

/* A body: a file, whose descriptor it takes over; a copy of text. NULL: it cannot. */
struct MHD_Response *reply_file(int fd);
struct MHD_Response *reply_text(const char *text, size_t sz);

/* Takes over r, NULL: the connection ends. name, value: one more header, or NULL. */
enum MHD_Result reply(struct MHD_Connection *c, unsigned int status, const char *type,
		      struct MHD_Response *r, const char *name, const char *value);

/* A sentence, as Go's pprof has it, with the header without which its client does not show it. */
enum MHD_Result reply_error(struct MHD_Connection *c, unsigned int status, const char *text);

#endif
