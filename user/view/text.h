/* SPDX-License-Identifier: BSD-2-Clause */
/* What the terminal shows of a profile: `view -f text`. */
#ifndef VIEW_TEXT_H
#define VIEW_TEXT_H

#include <stdio.h>

struct view;

/* As the format wants it (view.h). */
int view_text_write(const struct view *v, FILE *f);

#endif
