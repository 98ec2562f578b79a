/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Grace periods of RCU: when one has passed that was asked for, every BPF program that was running at
 * that moment has ended, and those that run see what was changed before. One takes 10 to 60 ms, in
 * which a thread of its own waits in the kernel, and does nothing else.
 */
#ifndef KERNEL_GRACE_H
#define KERNEL_GRACE_H

#include <stdbool.h>
#include <stdint.h>

struct grace;

/* NULL with errno. */
struct grace *grace__new(void);
void grace__free(struct grace *g);

/* Asks for one. Returns its number, for grace__passed. */
uint64_t grace__ask(struct grace *g);
/* The same, but first removes an entry of a map of maps: fd is left open until then. */
uint64_t grace__remove(struct grace *g, int fd, uint32_t key);
/* The same, but first makes an entry of a map of maps this inner map. Both are left open until then. */
uint64_t grace__put(struct grace *g, int fd, uint32_t key, int inner);

/* Has it passed? 1, 0, or -errno if that cannot be known. wait: not before it can be answered. */
int grace__passed(struct grace *g, uint64_t number, bool wait);

/* Readable when one has passed, until grace__passed is called. */
int grace__fd(const struct grace *g);

#endif
