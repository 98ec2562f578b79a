/* SPDX-License-Identifier: BSD-2-Clause */
/* How waits can be watched on this kernel: found by looking at its types and symbols, before there
 * is a session. */
#ifndef KERNEL_WAITS_HOW_H
#define KERNEL_WAITS_HOW_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a thread that is back on its CPU can be met. */
enum waits_resume {
	WAITS_RESUME_EXIT,   /* tracepoint sched_exit_tp */
	WAITS_RESUME_KPROBE, /* kprobe on finish_task_switch */
	WAITS_RESUME_NONE,
};

struct waits_how {
	enum waits_resume resume;
	bool futex;		   /* waits for futexes can be watched without all the others */
	bool switch_state;	   /* sched_switch tells prev's state */
	int64_t preempt_count_off; /* of the preempt count, from a CPU's run queue; 0: unknown */
	uint32_t interrupt_mask;   /* its bits that tell an interrupt */
	bool rdonly_cast;	   /* there is bpf_rdonly_cast */
	bool switch_in_only;	   /* both ends of a wait can be seen at switch-in alone */
};

/* The best that this kernel has. */
void waits_how__probe(struct waits_how *ret);

/* The name that this kernel's compiler has given to the scheduler's finish_task_switch, in ret (sz
 * bytes) unless it is NULL. False: no such symbol. */
bool waits_how__resume_symbol(char *ret, size_t sz);

#endif
