/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of procs (procs.h) have in common. */
#ifndef TARGET_PROCS_PARTS_H
#define TARGET_PROCS_PARTS_H

#include "base/rest.h"
#include "target/procs.h"

#define PROCS_BUCKETS 4096 /* a power of two */

struct entry {
	struct proc p;
	struct proc_space *space;
	uint64_t read_ns;  /* when its maps were last read from /proc; 0: never */
	uint32_t next;	   /* in the bucket of its tgid, youngest first */
	uint32_t ended_at; /* in procs.ended, where it has ended */
};

struct procs {
	char *proc_dir;
	bool own_numbers; /* its processes have the numbers that system calls take */
	struct entry *entries;
	size_t entry_cnt, entry_cap;
	uint32_t *unused;
	size_t unused_cnt, unused_cap;
	uint32_t *ended;
	size_t ended_cnt, ended_cap;
	uint32_t by_tgid[PROCS_BUCKETS];
	struct proc_spaces spaces;
	uint64_t read_ns;
	struct rests large;  /* processes whose maps are more than is read */
	struct rests silent; /* that did not let us look for what they have mapped in time */
};

/* A new, living entry, with a space of which nothing is known or, if not NULL, that of another
 * one. PROCS_NONE with errno. */
uint32_t procs__make(struct procs *ps, uint32_t tgid, uint64_t from_ns, struct proc_space *shared);
void procs__end_at(struct procs *ps, uint32_t idx, uint64_t time_ns);
/* One that has ended lives. */
void procs__revive(struct procs *ps, uint32_t idx);
/* The last entry of a process, alive or not; PROCS_NONE: there is none. */
uint32_t procs__newest(const struct procs *ps, uint32_t tgid);

#endif
