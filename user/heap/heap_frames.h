/* SPDX-License-Identifier: BSD-2-Clause */
/* Which frames of a heap profile are the allocator's own. */
#ifndef HEAP_FRAMES_H
#define HEAP_FRAMES_H

struct profile;

/* Hides them, where they are leaves, once they have names. */
void heap_frames_hide(struct profile *p);

#endif
