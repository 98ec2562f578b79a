/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of debug information that came from elsewhere, by build id: descriptors, each kept once. */
#ifndef TARGET_FETCHED_H
#define TARGET_FETCHED_H

#include <stddef.h>
#include <stdint.h>

#include "target/elf_file.h"

struct fetched_files {
	struct fetched_file {
		uint8_t id[ELF_FILE_MAX_BUILD_ID];
		size_t id_sz;
		int fd; /* O_PATH */
	} * v;
	size_t cnt, cap;
};

/* Takes fd in every case; the first file of an id is kept. 0 or -ENOMEM. */
int fetched__add(struct fetched_files *f, const uint8_t *id, size_t id_sz, int fd);
/* Borrowed; -1: there is none. */
int fetched__find(const struct fetched_files *f, const uint8_t *id, size_t id_sz);
void fetched__remove(struct fetched_files *f, const uint8_t *id, size_t id_sz);
void fetched__done(struct fetched_files *f);

#endif
