/* SPDX-License-Identifier: BSD-2-Clause */
/* The custom profiles that files define, by name. */
#ifndef CUSTOM_NAMES_H
#define CUSTOM_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/custom_sites.h"

#define CUSTOM_NAMES_MAX 256 /* that are told apart */

struct objects;

/* A custom profile: in how many places its values are added, and removed. */
struct custom_name {
	char name[CUSTOM_NAME_SZ];
	size_t adds, removes;
};

struct custom_names {
	struct custom_name all[CUSTOM_NAMES_MAX];
	size_t cnt;
	uint64_t refused; /* probes that cannot be used, and those of more profiles */
};

/* Those of an object, too. */
void custom_names__add(struct custom_names *n, struct objects *objects, uint32_t object);
void custom_names__sort(struct custom_names *n);
bool custom_names__has(const struct custom_names *n, const char *name);

#endif
