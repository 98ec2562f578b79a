/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Root folders of processes, by descriptors, each kept once: all programs of a container have the
 * same one. They outlive the processes, so that what lies beside a program is found when it has
 * ended.
 */
#ifndef TARGET_ROOTS_H
#define TARGET_ROOTS_H

#include <stddef.h>
#include <stdint.h>

#define ROOTS_MAX 256
#define ROOTS_OWN 0 /* our own: there from the first use on */
#define ROOTS_NONE UINT32_MAX

struct roots {
	struct root {
		int fd; /* O_PATH */
		uint32_t refs;
		uint64_t dev, ino, mount; /* what it is */
	} v[ROOTS_MAX];
	size_t cnt; /* some of them are free: refs 0 */
};

/* The number of a root, to which the caller has a reference then; takes fd, O_PATH, in every case.
 * ROOTS_NONE: no more are kept, or it is no folder. */
uint32_t roots__add(struct roots *r, int fd);
void roots__unref(struct roots *r, uint32_t root);

/* The descriptor of a root, or -1. */
int roots__fd(struct roots *r, uint32_t root);

void roots__done(struct roots *r);

#endif
