/* SPDX-License-Identifier: BSD-2-Clause */
/* This thread's own capabilities, see capabilities(7), as sets of CAPS_BIT(CAP_…). */
#ifndef BASE_CAPS_H
#define BASE_CAPS_H

#include <stdint.h>

#define CAPS_BIT(cap) (1ULL << (cap))

/* In *ret_permitted those that may be had, in *ret_effective those that are in force. 0 or -errno.
 */
int caps_get(uint64_t *ret_permitted, uint64_t *ret_effective);

/* Puts these in their place, and hands nothing on to programs that are started. What is not
 * permitted now cannot be had any more. 0 or -errno. */
int caps_set(uint64_t permitted, uint64_t effective);

/*
 * What is in force of `mask` goes on to the program that this thread executes next: it is permitted
 * there, too, and caps_handed_on tells it from what the program's file, or its being root's, adds.
 * May be called between vfork and exec. 0 or -errno.
 */
int caps_hand_on(uint64_t mask);
int caps_handed_on(uint64_t *ret);

#endif
