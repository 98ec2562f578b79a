/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that a process maps as code, for whoever looks at it once and records nothing. */
#ifndef TARGET_PROCESS_FILES_H
#define TARGET_PROCESS_FILES_H

#include <stddef.h>
#include <stdint.h>

struct objects;
struct procs;

struct process_files {
	struct objects *objects;
	struct procs *procs;
	uint32_t *ids; /* of these objects, each once */
	size_t cnt;
};

/* What cannot be opened is left out. meanwhile: as of objects__meanwhile, until it is closed; NULL: none. 0; -ESRCH,
 * -ENOENT: there is no such process; -errno. *ret is the caller's to close, either way. */
int process_files__open(uint32_t pid, void (*meanwhile)(void *ctx), void *ctx,
			struct process_files *ret);
void process_files__close(struct process_files *f);

#endif
