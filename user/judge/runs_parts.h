/* SPDX-License-Identifier: BSD-2-Clause */
/* How a file gets into the tables of all runs, with its functions and stacks. */
#ifndef JUDGE_RUNS_PARTS_H
#define JUDGE_RUNS_PARTS_H

#include "judge/runs.h"

#define RUNS_NONE UINT32_MAX
#define RUNS_FUNCTIONS_MAX (1U << 30)

struct profile;

/* A file that was read, and is not in the tables yet. */
struct runs_file {
	enum runs_side side;
	const char *name; /* for messages */
	const void *data; /* as it is in the file */
	size_t sz;
	struct profile *profile; /* what pprof_read_stacks() makes of it */
	int read_err;		 /* what it returned */
};

/* As runs__add(). */
int runs__add_read(struct runs *r, const struct runs_file *file, char *err, size_t err_sz);

/* The function of this canonical name; file and object, which are paths or "", become its own if it has none
 * yet. RUNS_NONE if there is no memory, or there are RUNS_FUNCTIONS_MAX already. */
uint32_t runs__function(struct runs *r, const char *name, const char *file, const char *object);

/* The stack of these functions, cnt of them, above 0. The same. */
uint32_t runs__stack(struct runs *r, const uint32_t *frames, uint32_t cnt);

/* All that a run has. */
void runs__free_run(struct runs_run *run);

#endif
