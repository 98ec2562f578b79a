/* SPDX-License-Identifier: BSD-2-Clause */
/* What a command has cost, from its start to its end. */
#ifndef COMMAND_COST_H
#define COMMAND_COST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct command_cost {
	int clock;	  /* see task_clock.h; -1: it is not known what it costs */
	bool ended;	  /* by itself: what follows is known */
	uint64_t cpu_ns;  /* of it and all its children; 0: not known */
	uint64_t wall_ns; /* above 0 */
	uint64_t
		other_ns; /* CPU time of others meanwhile, of all CPUs, and what was stolen from them */
	/* private */
	uint64_t begin_ns, begin_work_ns, begin_own_ns;
};

/* pid: forked, has not executed the command's program. */
void command_cost__open(struct command_cost *c, pid_t pid);
/* own_ns: CPU time of bpfprof so far, and of the processes that it has started besides the command. */
void command_cost__begin(struct command_cost *c, uint64_t own_ns);
/* Once is enough. */
void command_cost__end(struct command_cost *c, uint64_t own_ns);
void command_cost__close(struct command_cost *c);

#endif
