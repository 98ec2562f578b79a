// SPDX-License-Identifier: BSD-2-Clause
/* How waits can be watched on this kernel, by its types and symbols. */
#include <linux/types.h>

#include "kernel/waits_how.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/util.h"
#include "kernel/kernel_types.h"
#include "kernel/tracing.h"

/* How many arguments a tracepoint gives to BPF programs; 0: there is none of this name. */
static int tracepoint_args(const struct kernel_types *kt, const char *name)
{
	const struct btf_type *t;

	t = kernel_types__type(kt, kernel_types__target(kt, name, BPF_TRACE_RAW_TP));
	t = t ? kernel_types__type(kt, t->type) : NULL;
	if (t && btf_is_ptr(t))
		t = kernel_types__type(kt, t->type);
	/* the first one is for the tracepoint itself */
	return t && btf_is_func_proto(t) ? btf_vlen(t) - 1 : 0;
}

/* A variable among those that each CPU has its own of; NULL: it is none. */
static const struct btf_var_secinfo *per_cpu(const struct kernel_types *kt, const char *name)
{
	uint32_t id = kernel_types__find(kt, ".data..percpu", BTF_KIND_DATASEC);
	const struct btf_type *t = kernel_types__type(kt, id);
	const struct btf_var_secinfo *var = t ? btf_var_secinfos(t) : NULL;

	for (int i = 0; t && i < btf_vlen(t); i++) {
		const struct btf_type *v = kernel_types__type(kt, var[i].type);

		if (v && !strcmp(kernel_types__name(kt, v->name_off), name))
			return &var[i];
	}
	return NULL;
}

/* Where it stands among them; -1: it is none. */
static int64_t per_cpu_offset(const struct kernel_types *kt, const char *name)
{
	const struct btf_var_secinfo *var = per_cpu(kt, name);

	return var ? (int64_t)var->offset : -1;
}

/* The same by the list of symbols: the types of some kernels before 5.11 tell of no variables. */
static int64_t symbol_offset(const char *name)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[512], symbol[256];
	unsigned long long addr;
	int64_t ret = -1;

	while (f && ret < 0 && fgets(line, sizeof(line), f))
		if (strstr(line, name) && sscanf(line, "%llx %*c %255s", &addr, symbol) == 2 &&
		    !strcmp(symbol, name) && addr)
			ret = (int64_t)addr;
	if (f)
		fclose(f);
	return ret;
}

/* Bits before a member of a struct; -1: there is none. What is in an unnamed struct or union, at
 * most so deep, is a member too: in struct pcpu_hot all are, two deep. */
static int64_t member_bits(const struct kernel_types *kt, const struct btf_type *t,
			   const char *name, int depth)
{
	const struct btf_member *m = t && btf_is_composite(t) ? btf_members(t) : NULL;

	for (int i = 0; m && i < btf_vlen(t); i++) {
		const char *member = kernel_types__name(kt, m[i].name_off);
		int64_t bits = -1;

		if (!strcmp(member, name))
			return btf_member_bit_offset(t, i);
		if (!*member && depth > 0)
			bits = member_bits(kt, kernel_types__type(kt, m[i].type), name, depth - 1);
		if (bits >= 0)
			return btf_member_bit_offset(t, i) + bits;
	}
	return -1;
}

/* The same in bytes, of a struct by name. */
static int64_t member_offset(const struct kernel_types *kt, const char *type, const char *name)
{
	uint32_t id = kernel_types__find(kt, type, BTF_KIND_STRUCT);
	int64_t bits = member_bits(kt, kernel_types__type(kt, id), name, 4);

	return bits < 0 ? -1 : bits / 8;
}

/* A variable of its own, but from 6.2 to 6.14 a field of pcpu_hot (64701838bf05, 46e8fff6d45f). */
static int64_t preempt_count_off(const struct kernel_types *kt)
{
	int64_t rq = per_cpu_offset(kt, "runqueues"), hot = per_cpu_offset(kt, "pcpu_hot"),
		count = per_cpu_offset(kt, "__preempt_count"), in_hot;

	if (hot >= 0) {
		in_hot = member_offset(kt, "pcpu_hot", "preempt_count");
		count = in_hot < 0 ? -1 : hot + in_hot;
	}
	if (rq < 0) {
		rq = symbol_offset("runqueues");
		count = symbol_offset("__preempt_count");
	}
	return rq < 0 || count < 0 ? 0 : count - rq;
}

/*
 * Its bits in an NMI, in a hard interrupt, and where a soft one is served
 * (include/linux/preempt.h). By 7.3 it has become a number of 64 bits, eight of which, for
 * interrupts that are disabled, were put below those of hard ones.
 */
static uint32_t interrupt_mask(const struct kernel_types *kt)
{
	const struct btf_var_secinfo *count = per_cpu(kt, "__preempt_count");

	return count && count->size == 8 ? 0x1f000100 : 0x00ff0100;
}

bool waits_how__resume_symbol(char *ret, size_t sz)
{
	static const char name[] = "finish_task_switch";
	char line[512], symbol[256];
	bool found = false;
	FILE *f = fopen("/proc/kallsyms", "re");

	while (f && !found && fgets(line, sizeof(line), f)) {
		if (!strstr(line, name) || sscanf(line, "%*s %*c %255s", symbol) != 1)
			continue;
		found = !strncmp(symbol, name, sizeof(name) - 1) &&
			(!symbol[sizeof(name) - 1] ||
			 !strncmp(symbol + sizeof(name) - 1, ".isra.", 6) ||
			 !strncmp(symbol + sizeof(name) - 1, ".constprop.", 11));
	}
	if (f)
		fclose(f);
	if (found && ret)
		snprintf(ret, sz, "%s", symbol);
	return found;
}

/* The kernel's functions that wait_queue, wait_unqueue and wait_unqueue_pi are attached to: is it
 * possible? */
static bool have_futex_probes(const struct kernel_types *kt)
{
	static const char *const names[] = { "__futex_queue", "futex_unqueue", "futex_unqueue_pi" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!kernel_types__find(kt, names[i], BTF_KIND_FUNC))
			return false;
	return tracing_has_function(names[0]);
}

/* What wait_switched needs, beside its tracepoint and bpf_rdonly_cast: CONFIG_SCHED_INFO and
 * CONFIG_FAIR_GROUP_SCHED. */
static bool have_switch_in_only(const struct kernel_types *kt)
{
	return kernel_types__find(kt, "bpf_task_from_pid", BTF_KIND_FUNC) &&
	       kernel_types__find(kt, "bpf_task_release", BTF_KIND_FUNC) &&
	       kernel_types__find(kt, "bpf_local_irq_save", BTF_KIND_FUNC) &&
	       member_offset(kt, "task_struct", "sched_contributes_to_load") >= 0 &&
	       member_offset(kt, "sched_info", "run_delay") >= 0 &&
	       member_offset(kt, "sched_entity", "cfs_rq") >= 0 &&
	       member_offset(kt, "rq", "nr_switches") >= 0 &&
	       member_offset(kt, "rq", "idle_stamp") >= 0;
}

void waits_how__probe(struct waits_how *ret)
{
	const char *forced = knobs.resume;
	const struct kernel_types *kt = kernel_types__get();

	*ret = (struct waits_how){ .resume = WAITS_RESUME_NONE };
	if (!kt)
		return;
	/* (preempt, prev, next) before */
	ret->preempt_count_off = preempt_count_off(kt);
	ret->interrupt_mask = interrupt_mask(kt);
	ret->rdonly_cast = kernel_types__find(kt, "bpf_rdonly_cast", BTF_KIND_FUNC);
	ret->switch_state = tracepoint_args(kt, "sched_switch") > 3;
	if (tracepoint_args(kt, "sched_exit_tp") && !(forced && !strcmp(forced, "kprobe")))
		ret->resume = WAITS_RESUME_EXIT;
	else if (!access("/sys/bus/event_source/devices/kprobe/type", R_OK) &&
		 waits_how__resume_symbol(NULL, 0))
		ret->resume = WAITS_RESUME_KPROBE;
	ret->switch_in_only = ret->resume == WAITS_RESUME_EXIT && ret->rdonly_cast &&
			      have_switch_in_only(kt) && !(forced && !strcmp(forced, "both"));
	/* a test that wants a place to resume wants the switches watched */
	ret->futex = !forced && have_futex_probes(kt);
}
