/* SPDX-License-Identifier: BSD-2-Clause */
/* Descriptors of a recording: what is open when a window ends, by the stack that opened it. */
#ifndef CAPTURE_FDS_H
#define CAPTURE_FDS_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>

struct bpfprof_fd_open;
struct session;
struct window;
struct windows;

/* What is open at a boundary. */
struct fds_part {
	struct bpfprof_fd_open *open;
	size_t open_cnt;
	/* of these, without a stack: they were there when the recording began, or were inherited, or
	 * opened in a way that is not seen */
	uint64_t before, unknown;
	int err; /* -errno: it could not be read */
};

void fds_part__read(struct fds_part *part, struct session *s);
/* The window, which ends at to_ns, has what is open, of what was opened since since_ns, once its epochs are added up.
 * 0 or -errno. */
int fds_part__hold(const struct fds_part *part, struct windows *windows, struct window *w,
		   uint64_t since_ns, uint64_t to_ns);
/* A change begins at from_ns: what was open then is taken off the window. */
void fds_part__begin_change(const struct fds_part *part, struct windows *windows, struct window *w,
			    uint64_t from_ns);
void fds_part__done(struct fds_part *part);

#endif
