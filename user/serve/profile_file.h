/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles as sealed files in memory, to be handed to the server. */
#ifndef SERVE_PROFILE_FILE_H
#define SERVE_PROFILE_FILE_H

#include <stdbool.h>
#include <stddef.h>

struct asked;
struct capture;
struct capture_boundary;
struct capture_window;
struct options;
struct profile;

/* What is asked for, of a window up to a boundary; goes_on: behind which it goes on. *ret is finished, and the
 * caller's. 0 or -errno. */
int profile_make(const struct options *opts, const struct asked *a, struct capture *c,
		 struct capture_window *w, bool goes_on, const struct capture_boundary *to,
		 struct profile **ret);
/* In the form that is asked for; where a->before is, the change since then, which takes it and p apart. A
 * descriptor or -errno. */
int profile_file(const struct asked *a, struct profile *p);

/* A sealed file with these bytes. A descriptor or -errno. */
int profile_file_of(const void *data, size_t sz);

#endif
