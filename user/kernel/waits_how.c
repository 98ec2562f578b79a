// SPDX-License-Identifier: BSD-2-Clause
/* How waits can be watched on this kernel, by its types and symbols. */
#include <linux/types.h>

#include "kernel/waits_how.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/util.h"
#include "kernel/tracing.h"

/* How many arguments a tracepoint gives to BPF programs; 0: there is none of this name. */
static int tracepoint_args(const struct btf *btf, const char *name)
{
	const struct btf_type *t;
	char type[128];
	int id;

	snprintf(type, sizeof(type), "btf_trace_%s", name);
	id = btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF);
	t = id > 0 ? btf__type_by_id(btf, id) : NULL;
	t = t ? btf__type_by_id(btf, t->type) : NULL;
	if (t && btf_is_ptr(t))
		t = btf__type_by_id(btf, t->type);
	/* the first one is for the tracepoint itself */
	return t && btf_is_func_proto(t) ? btf_vlen(t) - 1 : 0;
}

/* A variable among those that each CPU has its own of; NULL: it is none. */
static const struct btf_var_secinfo *per_cpu(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, id) : NULL;
	const struct btf_var_secinfo *var = t ? btf_var_secinfos(t) : NULL;

	for (int i = 0; t && i < btf_vlen(t); i++) {
		const struct btf_type *v = btf__type_by_id(btf, var[i].type);

		if (v && !strcmp(btf__name_by_offset(btf, v->name_off), name))
			return &var[i];
	}
	return NULL;
}

/* Where it stands among them; -1: it is none. */
static int64_t per_cpu_offset(const struct btf *btf, const char *name)
{
	const struct btf_var_secinfo *var = per_cpu(btf, name);

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
static int64_t member_bits(const struct btf *btf, const struct btf_type *t, const char *name,
			   int depth)
{
	const struct btf_member *m = t && btf_is_composite(t) ? btf_members(t) : NULL;

	for (int i = 0; m && i < btf_vlen(t); i++) {
		const char *member = btf__name_by_offset(btf, m[i].name_off);
		int64_t bits = -1;

		if (!strcmp(member, name))
			return btf_member_bit_offset(t, i);
		if (!*member && depth > 0)
			bits = member_bits(btf, btf__type_by_id(btf, m[i].type), name, depth - 1);
		if (bits >= 0)
			return btf_member_bit_offset(t, i) + bits;
	}
	return -1;
}

/* The same in bytes, of a struct by name. */
static int64_t member_offset(const struct btf *btf, const char *type, const char *name)
{
	int id = btf__find_by_name_kind(btf, type, BTF_KIND_STRUCT);
	int64_t bits = id > 0 ? member_bits(btf, btf__type_by_id(btf, id), name, 4) : -1;

	return bits < 0 ? -1 : bits / 8;
}

/* A variable of its own, but from 6.2 to 6.14 a field of pcpu_hot (64701838bf05, 46e8fff6d45f). */
static int64_t preempt_count_off(const struct btf *btf)
{
	int64_t rq = per_cpu_offset(btf, "runqueues"), hot = per_cpu_offset(btf, "pcpu_hot"),
		count = per_cpu_offset(btf, "__preempt_count"), in_hot;

	if (hot >= 0) {
		in_hot = member_offset(btf, "pcpu_hot", "preempt_count");
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
static uint32_t interrupt_mask(const struct btf *btf)
{
	const struct btf_var_secinfo *count = per_cpu(btf, "__preempt_count");

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
static bool have_futex_probes(const struct btf *btf)
{
	static const char *const names[] = { "__futex_queue", "futex_unqueue", "futex_unqueue_pi" };
	int id = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		id = btf__find_by_name_kind(btf, names[i], BTF_KIND_FUNC);
		if (id <= 0)
			return false;
	}
	return tracing_has_function(id);
}

/* What wait_switched needs, beside its tracepoint and bpf_rdonly_cast: CONFIG_SCHED_INFO and
 * CONFIG_FAIR_GROUP_SCHED. */
static bool have_switch_in_only(const struct btf *btf)
{
	return btf__find_by_name_kind(btf, "bpf_task_from_pid", BTF_KIND_FUNC) > 0 &&
	       btf__find_by_name_kind(btf, "bpf_task_release", BTF_KIND_FUNC) > 0 &&
	       btf__find_by_name_kind(btf, "bpf_local_irq_save", BTF_KIND_FUNC) > 0 &&
	       member_offset(btf, "task_struct", "sched_contributes_to_load") >= 0 &&
	       member_offset(btf, "sched_info", "run_delay") >= 0 &&
	       member_offset(btf, "sched_entity", "cfs_rq") >= 0 &&
	       member_offset(btf, "rq", "nr_switches") >= 0 &&
	       member_offset(btf, "rq", "idle_stamp") >= 0;
}

/* From 6.16 on they can be mapped: some MB less to be read and copied than by libbpf (1.1). NULL if
 * there are none. */
static struct btf *kernel_types(void)
{
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	void *at = MAP_FAILED;
	struct btf *ret;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		at = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd >= 0)
		close(fd);
	if (at == MAP_FAILED)
		return btf__load_vmlinux_btf();
	ret = btf__new(at, st.st_size);
	munmap(at, st.st_size);
	return ret;
}

void waits_how__probe(struct waits_how *ret)
{
	const char *forced = knobs.resume;
	struct btf *btf = kernel_types();

	*ret = (struct waits_how){ .resume = WAITS_RESUME_NONE };
	if (!btf)
		return;
	/* (preempt, prev, next) before */
	ret->preempt_count_off = preempt_count_off(btf);
	ret->interrupt_mask = interrupt_mask(btf);
	ret->rdonly_cast = btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
	ret->switch_state = tracepoint_args(btf, "sched_switch") > 3;
	if (tracepoint_args(btf, "sched_exit_tp") && !(forced && !strcmp(forced, "kprobe")))
		ret->resume = WAITS_RESUME_EXIT;
	else if (!access("/sys/bus/event_source/devices/kprobe/type", R_OK) &&
		 waits_how__resume_symbol(NULL, 0))
		ret->resume = WAITS_RESUME_KPROBE;
	ret->switch_in_only = ret->resume == WAITS_RESUME_EXIT && ret->rdonly_cast &&
			      have_switch_in_only(btf) && !(forced && !strcmp(forced, "both"));
	/* a test that wants a place to resume wants the switches watched */
	ret->futex = !forced && have_futex_probes(btf);
	btf__free(btf);
}
