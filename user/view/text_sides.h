/* SPDX-License-Identifier: BSD-2-Clause */
/* What the terminal shows of two sides: `view -f text --base`. */
#ifndef VIEW_TEXT_SIDES_H
#define VIEW_TEXT_SIDES_H

#include <stdio.h>

struct view;

/*
 * A line for each function, by name, that costs something on either side:
 *
 *     base flat   new flat  difference   change     base cum ...  name
 *
 * the largest difference of flat first, then of cum, then by name. The view has sides. 0 or -errno.
 */
int view_sides_write(const struct view *v, FILE *f);

#endif
