/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a profile as a page of HTML that needs nothing else: flame graph, search, table. It opens
 * from a disk, asks no network, and runs no script but its own, which a Content-Security-Policy sees
 * to. Equal profiles give equal bytes.
 *
 * The profile stands in a script element of type application/json (html.spec.whatwg.org, data
 * blocks). model.js reads it:
 *
 *     title        text
 *     time_ms      since the epoch, 0: not known
 *     duration_ns
 *     comments     texts
 *     types        {type, unit, scale} for each value; values are multiples of scale
 *     show         index of the type that is shown first
 *     names        of frames
 *     places       paths of objects and source files, [0] is ""
 *     frames       VLQ: object, file (both in places) for each frame
 *     keys         of labels
 *     values       of each key, texts
 *     sets         VLQ: number of labels, then key and value of each
 *     stacks       VLQ: for each stack that differs from the one before it how many frames of that are
 *                  left, from the leaf; how many come in their place; these, from the root; how
 *                  many samples follow; and for each of them the set of its labels and its values.
 *                  A frame is written as the number, from 1, that it has among the callees of its
 *                  caller, or of the root, in the order in which they are met; a new one as 0 and
 *                  its index.
 *
 * VLQ: numbers as source maps (ECMA-426) write them, in digits of base 64 of which the lower five
 * bits, the lowest first, are of the number, and the sixth says that more follow. Only values have a
 * sign, the lowest bit of the first digit.
 */
#ifndef VIEW_PAGE_H
#define VIEW_PAGE_H

#include <stddef.h>
#include <stdio.h>

struct profile;

/* value: index of the value type that is shown first. title: whatever it says is harmless. 0, -ENOMEM, or
 * -EIO: f has refused something. */
int page_write(const struct profile *p, size_t value, const char *title, FILE *f);

#endif
