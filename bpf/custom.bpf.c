// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Custom profiles: sets of values, each kept with the stack that has added it until it is removed.
 * What adds and removes is a USDT probe of the program (include/bpfprof/profile.h), or a function
 * that somebody has named; the cookie says where the value is, and of which set it is.
 */
#include "common.bpf.h"
#include "live.bpf.h"
#include "usdt.bpf.h"
#include "user_task.bpf.h"

#define EEXIST 17

/* The value at the probe; false: there is none. */
static __always_inline bool value_of(struct pt_regs *ctx, __u64 cookie, __u64 *ret)
{
	*ret = usdt_arg(ctx, cookie, 0);
	/* of an int the upper half is not told */
	return !(cookie & BPFPROF_CUSTOM_MAY_FAIL) || (*ret && *ret != ~0ULL && *ret != ~0U);
}

/* The current stack as that of the value; one that is lost leaves ret as it is. */
static __always_inline void take_stack(struct pt_regs *ctx, const struct task_facts *task,
				       __u32 set, int returned, struct bpfprof_count_key *ret)
{
	struct record_what what = {
		.kind = BPFPROF_CUSTOM,
		.returned = returned != 0,
		.size = set,
	};
	int slot = stack_take_slot();
	__u32 id = slot;

	if (slot < 0) {
		lose(BPFPROF_CUSTOM, BPFPROF_LOST_no_slot);
		return;
	}
	if (!record_sample(ctx, id, task, &what, RECORD_USER_MODE | RECORD_JOINED | RECORD_CACHED))
		*ret = what.ret_key;
	stack_give_slot(id);
}

/*
 * Returns 0. A value whose stack was lost, which was counted, is in the set all the same: so its
 * removal is none of something unknown.
 */
__noinline int custom_record(struct pt_regs *ctx, __u64 value, __u32 set, int returned)
{
	struct bpfprof_live live = {};
	struct bpfprof_stats *stats;
	struct bpfprof_live_key key;
	struct task_facts task;
	long err;

	user_task_facts(&task);
	if (!record_wanted(&task))
		return 0;
	live.time_ns = bpf_ktime_get_ns();
	live_key(&key, set, value);
	if (bpf_map_lookup_elem(&bp_added, &key)) {
		err = -EEXIST;
	} else {
		take_stack(ctx, &task, set, returned, &live.stack);
		err = bpf_map_update_elem(&bp_added, &key, &live, BPF_NOEXIST);
	}
	stats = stats_of(BPFPROF_CUSTOM);
	if (!stats)
		return 0;
	if (err == -EEXIST)
		STATS_ADD(stats->duplicates, 1);
	else if (err)
		STATS_ADD(stats->untracked, 1);
	return 0;
}

SEC("?uprobe")
int custom_add(struct pt_regs *ctx)
{
	__u64 cookie = cookie_of(ctx), value;

	if (bp_control.custom_on && value_of(ctx, cookie, &value))
		custom_record(ctx, value, BPFPROF_CUSTOM_SET(cookie),
			      (cookie & BPFPROF_CUSTOM_RETURNED) != 0);
	return 0;
}

SEC("?uprobe")
int custom_remove(struct pt_regs *ctx)
{
	__u64 cookie = cookie_of(ctx), value;
	struct bpfprof_live_key key;
	struct bpfprof_stats *stats;
	struct task_facts task;

	if (!bp_control.custom_on || !value_of(ctx, cookie, &value))
		return 0;
	/* by whichever thread: it is gone */
	live_key(&key, BPFPROF_CUSTOM_SET(cookie), value);
	if (!bpf_map_delete_elem(&bp_added, &key)) {
		stats = stats_of(BPFPROF_CUSTOM);
		if (stats)
			STATS_ADD(stats->removed, 1);
		return 0;
	}
	user_task_facts(&task);
	stats = record_wanted(&task) ? stats_of(BPFPROF_CUSTOM) : NULL;
	if (stats)
		STATS_ADD(stats->unknown, 1);
	return 0;
}
