/* SPDX-License-Identifier: BSD-2-Clause */
/* Which custom profiles there are in a process, whether they are recorded or not. */
#ifndef SERVE_CUSTOM_FOUND_H
#define SERVE_CUSTOM_FOUND_H

#include <stdint.h>

#include "custom/custom_names.h"

struct recordings;

struct custom_found {
	uint32_t pid;		   /* 0: none was looked at */
	uint64_t maps;		   /* what it maps as code, as a hash */
	struct custom_names names; /* sorted */
};

/* Looks at its files, which may take long, where it is another process than the last time, or maps
 * others: r, which go on meanwhile, have what is urgent then. 0, or -errno: there are no names. */
int custom_found__look(struct custom_found *f, struct recordings *r, uint32_t pid);

#endif
