// SPDX-License-Identifier: BSD-2-Clause
#include "courier/reply.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct MHD_Response *reply_file(int fd)
{
	struct MHD_Response *r = NULL;
	struct stat st;

	if (!fstat(fd, &st))
		r = MHD_create_response_from_fd((size_t)st.st_size, fd);
	if (!r)
		close(fd);
	return r;
}

struct MHD_Response *reply_text(const char *text, size_t sz)
{
	return MHD_create_response_from_buffer(sz, (void *)text, MHD_RESPMEM_MUST_COPY);
}

enum MHD_Result reply(struct MHD_Connection *c, unsigned int status, const char *type,
		      struct MHD_Response *r, const char *name, const char *value)
{
	enum MHD_Result res = MHD_NO;

	if (!r)
		return MHD_NO;
	if (MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
	    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff") == MHD_YES &&
	    (!name || MHD_add_response_header(r, name, value) == MHD_YES))
		res = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return res;
}

enum MHD_Result reply_error(struct MHD_Connection *c, unsigned int status, const char *text)
{
	char line[512];

	snprintf(line, sizeof(line), "%s\n", text);
	return reply(c, status, REPLY_TEXT, reply_text(line, strlen(line)), "X-Go-Pprof", "1");
}
