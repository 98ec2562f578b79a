// SPDX-License-Identifier: BSD-2-Clause
/* Attaches what watches threads for their waits, and those that are created. */
#include <linux/types.h>

#include "kernel/probe_waits.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/util.h"
#include "bpfprof.skel.h"
#include "kernel/session.h"

#define MAX_LINKS 11
#define CLOCK_READS 3

struct probe_waits {
	struct session *session;
	struct bpf_link *links[MAX_LINKS];
	size_t link_cnt;
};

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

/* The scheduler's function, by the name that this kernel's compiler has given it. */
static bool find_resume_symbol(char *ret, size_t sz)
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
 * possible? Types do not tell: it takes ftrace, too. */
static bool have_futex_probes(const struct btf *btf)
{
	static const char *const names[] = { "__futex_queue", "futex_unqueue", "futex_unqueue_pi" };
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	LIBBPF_OPTS(bpf_prog_load_opts, opts, .expected_attach_type = BPF_TRACE_FENTRY);
	int prog, link = -1;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		int id = btf__find_by_name_kind(btf, names[i], BTF_KIND_FUNC);

		if (id <= 0)
			return false;
		opts.attach_btf_id = id;
	}
	prog = bpf_prog_load(BPF_PROG_TYPE_TRACING, NULL, "GPL", insns, ARRAY_SIZE(insns), &opts);
	if (prog >= 0)
		link = bpf_raw_tracepoint_open(NULL, prog);
	if (link >= 0)
		close(link);
	if (prog >= 0)
		close(prog);
	return link >= 0;
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

void probe_waits__probe(struct probe_waits_how *ret)
{
	const char *forced = knobs.resume;
	struct btf *btf = kernel_types();

	*ret = (struct probe_waits_how){ .resume = PROBE_WAITS_NONE };
	if (!btf)
		return;
	/* (preempt, prev, next) before */
	ret->preempt_count_off = preempt_count_off(btf);
	ret->interrupt_mask = interrupt_mask(btf);
	ret->rdonly_cast = btf__find_by_name_kind(btf, "bpf_rdonly_cast", BTF_KIND_FUNC) > 0;
	ret->switch_state = tracepoint_args(btf, "sched_switch") > 3;
	if (tracepoint_args(btf, "sched_exit_tp") && !(forced && !strcmp(forced, "kprobe")))
		ret->resume = PROBE_WAITS_EXIT;
	else if (!access("/sys/bus/event_source/devices/kprobe/type", R_OK) &&
		 find_resume_symbol(NULL, 0))
		ret->resume = PROBE_WAITS_KPROBE;
	ret->switch_in_only = ret->resume == PROBE_WAITS_EXIT && ret->rdonly_cast &&
			      have_switch_in_only(btf) && !(forced && !strcmp(forced, "both"));
	/* a test that wants a place to resume wants the switches watched */
	ret->futex = !forced && have_futex_probes(btf);
	btf__free(btf);
}

bool probe_waits__by_futex(const struct session_opts *o)
{
	return (o->kinds[BPFPROF_BLOCK] || o->kinds[BPFPROF_MUTEX]) && !o->kinds[BPFPROF_OFFCPU] &&
	       o->waits.futex;
}

static bool wants_waits(const struct session_opts *o)
{
	return o->kinds[BPFPROF_BLOCK] || o->kinds[BPFPROF_MUTEX] || o->kinds[BPFPROF_OFFCPU];
}

void probe_waits__configure(struct session *s, const struct session_opts *o)
{
	struct bpfprof_bpf *skel = session__skel(s);
	struct bpfprof_config *cfg = (struct bpfprof_config *)&skel->rodata->bp_config;
	bool waits = wants_waits(o), futex = probe_waits__by_futex(o);
	bool switch_in_only = waits && !futex && o->waits.switch_in_only && !cfg->hash_states;
	bool resume = waits && !futex && !switch_in_only &&
		      (o->kinds[BPFPROF_BLOCK] || o->kinds[BPFPROF_OFFCPU]);

	bpf_program__set_autoload(skel->progs.threadcreate, o->kinds[BPFPROF_THREADCREATE]);
	session__keep_states(s, skel->maps.bp_waits, skel->maps.bp_wait_hash, waits);
	bpf_map__set_autocreate(skel->maps.bp_futexes, o->kinds[BPFPROF_MUTEX]);
	bpf_map__set_autocreate(skel->maps.bp_sched_cpus, waits && !futex);
	bpf_map__set_autocreate(skel->maps.bp_kstacks, o->kinds[BPFPROF_OFFCPU]);
	memcpy(cfg->min_wait_ns, o->min_wait_ns, sizeof(cfg->min_wait_ns));
	cfg->wait_slots = waits && !futex && !cfg->hash_states;
	bpf_map__set_autocreate(skel->maps.bp_wait_slots, cfg->wait_slots);
	bpf_map__set_autocreate(skel->maps.bp_wait_owners, cfg->wait_slots);
	if (!waits)
		return;
	cfg->switch_state = o->waits.switch_state;
	cfg->preempt_count_off = o->waits.preempt_count_off;
	cfg->interrupt_mask = o->waits.interrupt_mask;
	cfg->rdonly_cast = o->waits.rdonly_cast;
	cfg->futex_probes = futex;
	cfg->switch_in_only = switch_in_only;
	bpf_program__set_autoload(skel->progs.wait_queue, futex);
	bpf_program__set_autoload(skel->progs.wait_unqueue, futex);
	bpf_program__set_autoload(skel->progs.wait_unqueue_pi, futex);
	bpf_program__set_autoload(skel->progs.wait_switch, !futex && !switch_in_only);
	bpf_program__set_autoload(skel->progs.wait_switched,
				  switch_in_only && !o->kinds[BPFPROF_OFFCPU]);
	bpf_program__set_autoload(skel->progs.wait_switched_any,
				  switch_in_only && o->kinds[BPFPROF_OFFCPU]);
	bpf_program__set_autoload(skel->progs.wait_waking, o->kinds[BPFPROF_MUTEX]);
	bpf_program__set_autoload(skel->progs.wait_resumed,
				  resume && o->waits.resume == PROBE_WAITS_EXIT);
	bpf_program__set_autoload(skel->progs.wait_resumed_kprobe,
				  resume && o->waits.resume == PROBE_WAITS_KPROBE);
	bpf_program__set_autoload(skel->progs.wait_begin, true);
	bpf_program__set_autoload(skel->progs.wait_newtask, true);
	bpf_program__set_autoload(skel->progs.wait_fork, !futex);
	bpf_program__set_autoload(skel->progs.wait_free, cfg->wait_slots);
}

/* Visits all threads. */
static int run_begin(struct probe_waits *w)
{
	struct bpf_link *link;
	char buf[64];
	int fd, err = 0;

	link = bpf_program__attach_iter(session__skel(w->session)->progs.wait_begin, NULL);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0 || read(fd, buf, sizeof(buf)) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}

static int keep(struct probe_waits *w, struct bpf_link *link)
{
	if (!link)
		return -errno;
	w->links[w->link_cnt++] = link;
	return 0;
}

static int attach(struct probe_waits *w)
{
	struct bpfprof_bpf *skel = session__skel(w->session);
	struct bpf_program *progs[] = {
		skel->progs.wait_free,	     skel->progs.wait_newtask,
		skel->progs.wait_fork,	     skel->progs.wait_switch,
		skel->progs.wait_switched,   skel->progs.wait_switched_any,
		skel->progs.wait_resumed,    skel->progs.wait_waking,
		skel->progs.wait_queue,	     skel->progs.wait_unqueue,
		skel->progs.wait_unqueue_pi, skel->progs.threadcreate,
	};
	char symbol[256];
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(progs); i++)
		if (bpf_program__autoload(progs[i]))
			err = keep(w, bpf_program__attach(progs[i]));
	if (!err && bpf_program__autoload(skel->progs.wait_resumed_kprobe)) {
		if (!find_resume_symbol(symbol, sizeof(symbol)))
			return -ENOTSUP;
		err = keep(w, bpf_program__attach_kprobe(skel->progs.wait_resumed_kprobe, false,
							 symbol));
	}
	return err;
}

struct probe_waits *probe_waits__new(struct session *s)
{
	struct probe_waits *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return NULL;
	w->session = s;
	/* threads that are created from here on make their own states */
	err = attach(w);
	if (!err && bpf_program__autoload(session__skel(s)->progs.wait_begin))
		err = run_begin(w);
	if (!err)
		return w;
	probe_waits__free(w);
	errno = -err;
	return NULL;
}

int probe_waits__switch_programs(const struct probe_waits *w)
{
	struct bpfprof_bpf *skel = session__skel(w->session);
	const struct bpf_program *progs[] = {
		skel->progs.wait_switch,	 skel->progs.wait_resumed,
		skel->progs.wait_resumed_kprobe, skel->progs.wait_switched,
		skel->progs.wait_switched_any,	 skel->progs.wait_waking,
	};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(progs); i++)
		ret += bpf_program__autoload(progs[i]);
	return ret;
}

void probe_waits__sync_clock(struct probe_waits *w)
{
	uint64_t best = UINT64_MAX;
	int64_t off = 0;

	/* one that was not interrupted between the two clocks */
	for (int i = 0; i < CLOCK_READS; i++) {
		uint64_t before = util_monotonic_ns(), wall = util_realtime_ns();
		uint64_t took = util_monotonic_ns() - before;

		if (took >= best)
			continue;
		best = took;
		off = (int64_t)(wall - before - took / 2);
	}
	__atomic_store_n(&session__skel(w->session)->bss->bp_control.realtime_off, off,
			 __ATOMIC_RELAXED);
}

void probe_waits__set_rate(struct probe_waits *w, uint64_t ns)
{
	__atomic_store_n(&session__skel(w->session)->bss->bp_control.wait_rate_ns, ns,
			 __ATOMIC_RELAXED);
}

static void set_on(struct probe_waits *w, uint32_t on)
{
	__atomic_store_n(&session__skel(w->session)->bss->bp_control.waits_on, on,
			 __ATOMIC_SEQ_CST);
}

int probe_waits__start(struct probe_waits *w, uint64_t start_ns)
{
	struct bpfprof_bpf *skel = session__skel(w->session);
	int err = 0;

	skel->bss->bp_control.start_ns = start_ns;
	probe_waits__sync_clock(w);
	set_on(w, BPFPROF_WAITS_NEW);
	if (bpf_program__autoload(skel->progs.wait_begin))
		err = run_begin(w);
	if (!err)
		set_on(w, BPFPROF_WAITS_ALL);
	return err;
}

void probe_waits__stop(struct probe_waits *w, uint64_t stop_ns)
{
	__atomic_store_n(&session__skel(w->session)->bss->bp_control.stop_ns, stop_ns,
			 __ATOMIC_SEQ_CST);
}

void probe_waits__off(struct probe_waits *w)
{
	set_on(w, 0);
}

void probe_waits__free(struct probe_waits *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->link_cnt; i++)
		bpf_link__destroy(w->links[i]);
	free(w);
}
