/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What is added and not removed, by the stack that added it: a map of struct bpfprof_live_key to
 * struct bpfprof_live. It is written where it happens, by the thread that does it: an addition is
 * known before its caller goes on, a removal before another thread can be given the same value. So
 * no event overtakes another.
 */
#ifndef LIVE_BPF_H
#define LIVE_BPF_H

#include "common.bpf.h"

/* A child of vfork frees what is the parent's, and leaves it what it adds. In a function of its own:
 * its frame is not there when a stack is walked, which takes nearly all that BPF allows. */
static __noinline void live_owner(struct bpfprof_live_key *key)
{
	struct bpfprof_proc_key owner;

	if (task_borrowed_memory(&owner)) {
		key->tgid = owner.tgid;
		key->exec_id = owner.exec_id;
	}
}

static __always_inline void live_key(struct bpfprof_live_key *key, __u32 set, __u64 value)
{
	key->value = value;
	key->tgid = bpf_get_current_pid_tgid() >> 32;
	key->exec_id = (__u32)COMPAT_TASK(compat_current(), self_exec_id);
	if (COMPAT_TASK(compat_current(), vfork_done))
		live_owner(key);
	key->set = set;
	key->pad = 0;
}

static __always_inline void live_forget(void *map, const struct bpfprof_live_key *key)
{
	/* most are not there: to look costs less than to delete */
	if (bpf_map_lookup_elem(map, key))
		bpf_map_delete_elem(map, key);
}

#endif
