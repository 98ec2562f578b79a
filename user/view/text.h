/* SPDX-License-Identifier: BSD-2-Clause */
/* What the terminal shows of a profile: `view -f text`. */
#ifndef VIEW_TEXT_H
#define VIEW_TEXT_H

#include <stdbool.h>
#include <stdio.h>

struct frames;
struct view;

/* By sample: has it no function that matches? For the caller to free. NULL: no memory. */
bool *view_leave_out(const struct frames *fr, const char *focus);

/* As the format wants it (view.h). */
int view_text_write(const struct view *v, FILE *f);

#endif
