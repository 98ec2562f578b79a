/* SPDX-License-Identifier: BSD-2-Clause */
/* What the terminal shows of a profile: `view -f text`. */
#ifndef VIEW_TEXT_H
#define VIEW_TEXT_H

#include <stddef.h>
#include <stdio.h>

struct profile;
struct view_options;

/* As the format wants it (view.h). */
int view_text_write(const struct profile *p, size_t value, const struct view_options *o, FILE *f);

#endif
