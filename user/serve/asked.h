/* SPDX-License-Identifier: BSD-2-Clause */
/* What the server has asked for. */
#ifndef SERVE_ASKED_H
#define SERVE_ASKED_H

#include <linux/types.h>
#include <stdint.h>

#include "bpfprof.h"
#include "target/custom_sites.h"

struct endpoint;
struct profile;

struct asked {
	uint64_t number;
	const struct endpoint *endpoint;
	enum bpfprof_kind kind;
	uint32_t pid, hz, seconds, debug; /* see struct serve_wire */
	char name[CUSTOM_NAME_SZ];	  /* of a custom profile */
	struct profile *before;		  /* what is to be the change since then; NULL: it is not */
};

#endif
