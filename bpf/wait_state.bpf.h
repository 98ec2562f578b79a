/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Where a thread's state of waits is: at its place, in task storage or in a hash (maps in
 * common.bpf.h). */
#ifndef WAIT_STATE_BPF_H
#define WAIT_STATE_BPF_H

#include "common.bpf.h"

/* How often it has left a CPU. */
static __always_inline __u64 leaves_of(struct task_struct *task)
{
	return task->nvcsw + task->nivcsw;
}

/* The rest of w is of its task's leaves-th leave, and is there by now. */
static __always_inline void tell(struct wait_task *w, __u64 leaves)
{
	barrier();
	*(volatile __u64 *)&w->switches = leaves;
}

static __always_inline bool is_told(const struct wait_task *w, __u64 leaves)
{
	bool told = *(const volatile __u64 *)&w->switches == leaves;

	barrier();
	return told;
}

/* The task's own: its address, less that of something of ours. A pointer that may be followed
 * cannot be made a number, but the distance between two can. */
static __always_inline __u64 task_number(struct task_struct *task)
{
	return (const char *)task - (const char *)&bp_control;
}

/* Fibonacci hashing; tasks are aligned to 64 bytes. */
static __always_inline __u32 place_at(__u64 number)
{
	return (__u32)(number >> 6) * 0x9e3779b1U / (__u32)(0x100000000ULL / WAIT_PLACES);
}

static __always_inline struct wait_place *place_of(__u64 number)
{
	__u32 at = place_at(number);

	return bpf_map_lookup_elem(&bp_wait_places, &at);
}

/* The state of a watched thread, or NULL: it is not watched. Makes none, since there is no telling
 * whether memory may be asked for inside the scheduler. */
static __always_inline struct wait_task *wait_state_of(struct task_struct *task)
{
	struct wait_place *place;
	__u64 number;

	if (bp_config.wait_places) {
		number = task_number(task);
		place = place_of(number);
		if (place && place->task == number)
			return &place->w;
		if (!bp_control.displaced)
			return NULL;
	}
	return state_of(&bp_waits, &bp_wait_hash, task);
}

/* NULL: the place of that number is another task's. */
static __always_inline struct wait_task *take_place(__u64 number)
{
	struct wait_place *place = place_of(number);
	__u32 at = place_at(number);
	__u64 *owner;

	if (!place)
		return NULL;
	if (bpf_map_update_elem(&bp_wait_owners, &at, &number, BPF_NOEXIST)) {
		owner = bpf_map_lookup_elem(&bp_wait_owners, &at);
		/* one before may have left without its key: a map may be busy */
		if (!owner || *owner != number)
			return NULL;
	}
	place->task = number;
	return &place->w;
}

static __always_inline struct wait_task *make_state(struct task_struct *task)
{
	struct wait_task *w;

	if (bp_config.wait_places) {
		w = wait_state_of(task) ?: take_place(task_number(task));
		if (w)
			return w;
		bp_control.displaced = 1;
	}
	w = state_make(&bp_waits, &bp_wait_hash, task);
	if (!w)
		bp_control.stateless = 1;
	return w;
}

/* Nobody has its number any more. */
static __always_inline void leave_place(struct task_struct *task)
{
	__u64 number = task_number(task);
	struct wait_place *place = place_of(number);
	__u32 at = place_at(number);

	if (!place || place->task != number)
		return;
	place->task = 0;
	__builtin_memset(&place->w, 0, sizeof(place->w));
	bpf_map_delete_elem(&bp_wait_owners, &at);
}

#endif
