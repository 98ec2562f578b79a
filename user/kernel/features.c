// SPDX-License-Identifier: BSD-2-Clause
/* What this kernel can do and what we may do there. */
#include "kernel/features.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/knobs.h"
#include "base/util.h"
#include "kernel/kernel_types.h"
#include "kernel/probe_fds.h"
#include "kernel/sample_rate.h"
#include "kernel/tracing.h"
#include "kernel/uprobes.h"
#include "kernel/waits_how.h"

static bool open_perf(struct perf_event_attr *attr)
{
	int fd;

	attr->size = sizeof(*attr);
	fd = (int)syscall(SYS_perf_event_open, attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/* admin_too: CAP_SYS_ADMIN stands for it (bpf_capable and the like, include/linux/capability.h) */
static bool have_cap(int cap, bool admin_too)
{
	uint64_t permitted, effective, wanted = CAPS_BIT(cap);

	if (admin_too)
		wanted |= CAPS_BIT(CAP_SYS_ADMIN);
	return !caps_get(&permitted, &effective) && effective & wanted;
}

static bool probe_cap_bpf(void)
{
	return have_cap(CAP_BPF, true);
}

static bool probe_cap_perfmon(void)
{
	return have_cap(CAP_PERFMON, true);
}

static bool probe_cap_sys_ptrace(void)
{
	return have_cap(CAP_SYS_PTRACE, false);
}

static bool probe_cap_dac_read_search(void)
{
	return have_cap(CAP_DAC_READ_SEARCH, false) || have_cap(CAP_DAC_OVERRIDE, false);
}

static bool probe_cap_checkpoint_restore(void)
{
	return have_cap(CAP_CHECKPOINT_RESTORE, true);
}

static bool probe_cap_syslog(void)
{
	return have_cap(CAP_SYSLOG, false);
}

/* Does a map that is larger than what may be locked come into being, or may that be raised? */
static bool probe_memlock(void)
{
	struct rlimit old, none;
	int fd;

	if (getrlimit(RLIMIT_MEMLOCK, &old))
		return false;
	if (old.rlim_max == RLIM_INFINITY || have_cap(CAP_SYS_RESOURCE, false))
		return true;
	none = (struct rlimit){ .rlim_max = old.rlim_max };
	if (setrlimit(RLIMIT_MEMLOCK, &none))
		return false;
	fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, 8, 1, NULL);
	(void)setrlimit(RLIMIT_MEMLOCK, &old);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool probe_lockdown(void)
{
	char *buf;
	size_t sz;
	bool locked;

	/* not there, or not mounted: the kernel knows no lockdown, as far as can be said */
	if (util_read_file("/sys/kernel/security/lockdown", 256, &buf, &sz))
		return true;
	locked = strstr(buf, "[confidentiality]") != NULL;
	free(buf);
	return !locked;
}

int features_paranoid_level(void)
{
	char *buf;
	size_t sz;
	int level;

	if (util_read_file("/proc/sys/kernel/perf_event_paranoid", 64, &buf, &sz))
		return 2;
	level = atoi(buf);
	free(buf);
	return level;
}

bool features_paranoid(int level, bool admin, const char **ret_text)
{
	if (level <= 2)
		*ret_text = "2 or less: samples take CAP_PERFMON, and no more";
	else if (admin)
		*ret_text =
			"above 2, where kernels of distributions ask for CAP_SYS_ADMIN in place of "
			"CAP_PERFMON: it is there, and is kept; sysctl "
			"kernel.perf_event_paranoid=2 makes it needless";
	else
		*ret_text =
			"kernel.perf_event_paranoid is above 2, where kernels of distributions ask "
			"for CAP_SYS_ADMIN in place of CAP_PERFMON: run with CAP_SYS_ADMIN, as "
			"root has it, or sysctl kernel.perf_event_paranoid=2";
	return level <= 2 || admin;
}

static bool paranoid_here(const char **ret_text)
{
	return features_paranoid(features_paranoid_level(), have_cap(CAP_SYS_ADMIN, false),
				 ret_text);
}

static bool probe_paranoid(void)
{
	const char *text;

	return paranoid_here(&text);
}

static const char *paranoid_text(void)
{
	const char *text;

	(void)paranoid_here(&text);
	return text;
}

static bool probe_tracefs(void)
{
	return !access("/sys/bus/event_source/devices/uprobe/type", R_OK);
}

static bool probe_pid_namespace(void)
{
	struct stat st;

	/* PROC_PID_INIT_INO, include/linux/proc_ns.h */
	return !stat("/proc/self/ns/pid", &st) && st.st_ino == 0xEFFFFFFCU;
}

static bool probe_btf(void)
{
	return !access("/sys/kernel/btf/vmlinux", R_OK);
}

static bool probe_bpf(void)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_HASH, NULL, 4, 4, 1, NULL);

	if (fd < 0)
		return false;
	close(fd);
	return libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_PERF_EVENT, NULL) == 1;
}

static bool probe_ringbuf(void)
{
	return libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) == 1;
}

static bool probe_mmapable(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, 4, 8, 1, &opts);

	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool probe_iterator(void)
{
	const struct kernel_types *kt = kernel_types__get();

	return kt && kernel_types__target(kt, "task", BPF_TRACE_ITER);
}

static bool probe_loop(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) == 1;
}

static bool probe_perf_event(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.freq = 1,
					.sample_freq = 1 };

	return open_perf(&attr);
}

static const char *clock_text(void)
{
	static char text[128];
	double us = (double)sample_rate__cost_ns() / 1000;

	if (us <= 0)
		return "the sampling clock";
	snprintf(text, sizeof(text),
		 "the sampling clock: a sample takes some %.0f us of a CPU here, 99 a second %.1f "
		 "%%",
		 us, 99 * us / 10000);
	return text;
}

static bool probe_cycles(void)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_HARDWARE,
					.config = PERF_COUNT_HW_CPU_CYCLES };

	return open_perf(&attr);
}

static bool side_band(bool build_id)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_DUMMY,
					.mmap = 1,
					.mmap2 = 1,
					.task = 1,
					.comm = 1,
					.comm_exec = 1,
					.build_id = build_id,
					.use_clockid = 1,
					.clockid = CLOCK_MONOTONIC };

	return open_perf(&attr);
}

static bool probe_side_band(void)
{
	return side_band(false);
}

static bool probe_build_id(void)
{
	return side_band(true);
}

static bool addresses_shown(void)
{
	unsigned long long addr = 0;
	FILE *f = fopen("/proc/kallsyms", "re");
	bool seen = false;

	/* the first symbols may be per-CPU offsets, which are small and may be 0 */
	for (int i = 0; f && !seen && i < 4096 && fscanf(f, "%llx %*[^\n]", &addr) == 1; i++)
		seen = addr >> 32 != 0;
	if (f)
		fclose(f);
	return seen;
}

bool features_ksyms(void)
{
	return libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_SYSCALL, NULL) == 1;
}

static bool probe_kallsyms(void)
{
	return addresses_shown() || features_ksyms();
}

static const char *kallsyms_text(void)
{
	return addresses_shown() ? "names of kernel functions" :
				   "names of kernel functions, by a BPF program: kallsyms has no "
				   "addresses for us";
}

static bool probe_map_files(void)
{
	unsigned long start, end;
	char path[64];
	FILE *f = fopen("/proc/self/maps", "re");
	int fd = -1;

	if (f && fscanf(f, "%lx-%lx", &start, &end) == 2) {
		snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", start, end);
		fd = open(path, O_PATH | O_CLOEXEC);
	}
	if (f)
		fclose(f);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

static bool probe_uprobes(void)
{
	return uprobes_probe(UPROBES_SESSION) != UPROBES_NONE;
}

/* What the best link there is means for a heap profile. */
static const char *uprobes_text(void)
{
	static const char *const text[] = {
		[UPROBES_SESSION] =
			"heap profile of running programs, by session links: returns "
			"of sampled calls only are waited for",
		[UPROBES_MULTI] =
			"heap profile of running programs, by multi links: every call of "
			"an allocator costs two hits, and operators that throw are left "
			"out, until Linux 6.13",
		[UPROBES_PERF] =
			"heap profile of running programs, by perf events: attached one "
			"by one, 100 ms each to detach, until Linux 6.6, and two hits for "
			"every call of an allocator until 6.13",
		[UPROBES_EVENT] =
			"heap profile of running programs, by perf events: attached one "
			"by one, with a program for each of an allocator's functions, 100 ms each "
			"to detach, until Linux 6.6, and two hits for every call of an allocator "
			"until 6.13",
		[UPROBES_NONE] =
			"heap profile of running programs, custom profiles, bench --ops-probe",
	};

	return text[uprobes_probe(UPROBES_SESSION)];
}

static const char *no_uprobes_text(void)
{
	static char text[256];

	snprintf(text, sizeof(text),
		 "no heap profile, no custom profiles, no bench --ops-probe: %s",
		 uprobes_refused());
	return text;
}

bool features_cgroup_id(void)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_get_current_cgroup_id,
				       NULL) == 1;
}

bool features_task_storage(void)
{
	return !knobs.hash_states &&
	       libbpf_probe_bpf_map_type(BPF_MAP_TYPE_TASK_STORAGE, NULL) == 1 &&
	       libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_task_storage_get, NULL) == 1;
}

static bool probe_tracepoints(void)
{
	return tracing_has_tracepoint("sched_switch") && tracing_has_tracepoint("sched_waking") &&
	       tracing_has_tracepoint("task_newtask");
}

static struct waits_how how_of_waits(void)
{
	struct waits_how how;

	waits_how__probe(&how);
	return how;
}

static bool probe_resume(void)
{
	return how_of_waits().resume != WAITS_RESUME_NONE;
}

/* What the best place there is means for the waits. */
static const char *resume_text(void)
{
	return how_of_waits().resume == WAITS_RESUME_EXIT ?
		       "block and offcpu, by the tracepoint sched_exit_tp" :
		       "block and offcpu, by a kprobe on finish_task_switch: every context switch "
		       "costs more, until Linux 6.15";
}

static bool probe_futex(void)
{
	return how_of_waits().futex;
}

static bool probe_openings(void)
{
	return probe_fds__how() != FDS_NONE;
}

static const char *openings_text(void)
{
	return probe_fds__how() == FDS_FUNCTIONS ?
		       "fds: nothing but what opens a descriptor costs more" :
		       "fds, as system calls return: while it is recorded, each one costs 0.1 us "
		       "more, without ftrace";
}

/* What has to be there for another feature to be told, and what is said where it is not. */
struct ground {
	enum feature feature;
	const char *text;
};

static const struct ground
	btf = { FEATURE_BTF, "cannot be told without the kernel's types: see BTF" },
	bpf = { FEATURE_BPF, "cannot be told without the right to use BPF: see there" },
	cpu_clock = { FEATURE_PERF_EVENT,
		      "cannot be told without the right to sample: see perf cpu-clock" },
	band = { FEATURE_SIDE_BAND, "cannot be told without the side band of perf: see there" };

static const struct {
	const char *name, *purpose, *remedy;
	bool needed;
	bool (*probe)(void);
	const char *(*text)(void); /* in place of the purpose, where there are several ways */
	const struct ground *on;
	bool by_perf; /* perf_event_paranoid may be what refuses it */
} table[NR_FEATURES] = {
	[FEATURE_PID_NAMESPACE] = { "host's pid namespace", "process ids as the kernel counts them",
				    "runs in a pid namespace of its own, where process ids are not "
				    "those that the kernel samples: use the host's (docker run "
				    "--pid=host)",
				    true, probe_pid_namespace },
	[FEATURE_BTF] = { "BTF", "kernel type information",
			  "the kernel needs CONFIG_DEBUG_INFO_BTF (/sys/kernel/btf/vmlinux)", true,
			  probe_btf },
	[FEATURE_CAP_BPF] = { "CAP_BPF", "BPF programs and maps",
			      "needs root or CAP_BPF+CAP_PERFMON (try sudo)", true, probe_cap_bpf },
	[FEATURE_CAP_PERFMON] = { "CAP_PERFMON", "samples, and programs that read memory",
				  "needs root or CAP_BPF+CAP_PERFMON (try sudo): CAP_PERFMON is "
				  "missing",
				  true, probe_cap_perfmon },
	[FEATURE_CAP_SYS_PTRACE] = { "CAP_SYS_PTRACE", "what processes of other users map",
				     "processes of other users stay without names: run as root, or "
				     "give CAP_SYS_PTRACE (from Linux 6.14 on CAP_PERFMON does for "
				     "what they map)",
				     false, probe_cap_sys_ptrace },
	[FEATURE_CAP_DAC_READ_SEARCH] = { "CAP_DAC_READ_SEARCH",
					  "programs that not everybody may read",
					  "programs that not everybody may read stay without "
					  "names: run as root, or give CAP_DAC_READ_SEARCH",
					  false, probe_cap_dac_read_search },
	[FEATURE_CAP_CHECKPOINT_RESTORE] = { "CAP_CHECKPOINT_RESTORE",
					     "files behind mappings, whatever became of them",
					     "deleted and replaced programs stay without names: "
					     "run as root, or give CAP_CHECKPOINT_RESTORE",
					     false, probe_cap_checkpoint_restore },
	[FEATURE_CAP_SYSLOG] = { "CAP_SYSLOG", "addresses of kernel functions",
				 "kernel functions may stay without names: run as root, or give "
				 "CAP_SYSLOG",
				 false, probe_cap_syslog },
	/* 5.11, 97306be45fbe and what follows: maps are counted as memory of the control group */
	[FEATURE_MEMLOCK] = { "memory for maps", "not limited by RLIMIT_MEMLOCK",
			      "run as root, give CAP_SYS_RESOURCE, or set ulimit -l unlimited",
			      false, probe_memlock, .on = &bpf },
	/* 5.4, 9d1f8be5cf42 */
	[FEATURE_LOCKDOWN] = { "lockdown", "the kernel does not keep its memory from root",
			       "lockdown=confidentiality refuses programs that read the kernel's "
			       "memory, even to root: boot with lockdown=integrity or none",
			       true, probe_lockdown },
	/* Debian has 3, Ubuntu 4 */
	[FEATURE_PARANOID] = { "perf_event_paranoid", NULL, NULL, false, probe_paranoid,
			       paranoid_text },
	[FEATURE_BPF] = { "bpf", "BPF programs on perf events",
			  "run as root, or give CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN before 5.8)",
			  true, probe_bpf },
	/* 5.8, 457f44363a88 */
	[FEATURE_RINGBUF] = { "BPF ring buffer", "stacks on their way to user space",
			      "needs Linux 5.8", true, probe_ringbuf, .on = &bpf },
	/* 5.5, fc9702273e2e */
	[FEATURE_MMAPABLE] = { "mmapable BPF arrays", "unwind tables without system calls",
			       "needs Linux 5.5", true, probe_mmapable, .on = &bpf },
	/* 5.8, eaaacd23910f */
	[FEATURE_ITERATOR] = { "BPF task iterator", "the list of processes", "needs Linux 5.8",
			       true, probe_iterator, .on = &btf },
	/* 5.17, e6f2dd0f8067 */
	[FEATURE_LOOP] = { "unwinding (bpf_loop)", "stacks of up to 512 frames",
			   "without it (before Linux 5.17) stacks end after 64 frames", false,
			   probe_loop, .on = &bpf },
	[FEATURE_PERF_EVENT] = { "perf cpu-clock", "the sampling clock",
				 "run as root, give CAP_PERFMON, or lower "
				 "kernel.perf_event_paranoid",
				 true, probe_perf_event, clock_text, .by_perf = true },
	[FEATURE_CYCLES] = { "perf cycles", "--event cycles",
			     "this machine has no cycle counter: --event cpu-clock (the "
			     "default) works all the same",
			     false, probe_cycles, .on = &cpu_clock },
	[FEATURE_SIDE_BAND] = { "perf side band", "processes and their mappings as they come",
				"run as root, or give CAP_PERFMON", true, probe_side_band,
				.by_perf = true },
	/* 5.12, 88a16a130933 */
	[FEATURE_BUILD_ID] = { "mmap build ids", "files told apart when they are mapped",
			       "needs Linux 5.12; device and inode serve below", false,
			       probe_build_id, .on = &band },
	[FEATURE_KALLSYMS] = { "kallsyms", NULL,
			       "run as root, give CAP_SYSLOG, or set kernel.kptr_restrict=0; "
			       "kernel "
			       "frames stay addresses",
			       false, probe_kallsyms, kallsyms_text },
	[FEATURE_MAP_FILES] = { "map_files", "names from deleted or replaced files",
				"run as root, or give CAP_CHECKPOINT_RESTORE (Linux 5.9)", false,
				probe_map_files },
	/* 6.13, d920179b3d48; 6.6, 89ae89f53d20 */
	[FEATURE_UPROBES] = { "uprobes",
			      "heap profile of running programs, custom profiles, bench "
			      "--ops-probe",
			      NULL, false, probe_uprobes, uprobes_text },
	/* 4.17, 65074d43fc77 and 33ea4b24277b */
	[FEATURE_TRACEFS] = { "tracefs", "not needed: probes hang on perf's descriptors",
			      "no heap profile before Linux 6.6: the kernel needs "
			      "CONFIG_UPROBE_EVENTS (4.17)",
			      false, probe_tracefs },
	/* 5.15, b89fbfbb854c */
	[FEATURE_LINKS] = { "BPF links", "everything is detached with its descriptor",
			    "perf events carry their programs themselves until Linux 5.15, and "
			    "are detached with their descriptors all the same",
			    false, uprobes_have_links, .on = &bpf },
	/* 5.11, 4cf1bc1f1045; in tracing programs 5.12, a10787e6d58c */
	[FEATURE_TASK_STORAGE] = { "BPF task storage",
				   "heap samples drawn for each thread; what each one waits for",
				   "heap and waits of 65536 threads at most, those of more are "
				   "counted as lost: run as root, or give CAP_BPF and CAP_PERFMON; "
				   "needs Linux 5.12",
				   false, features_task_storage, .on = &bpf },
	/* 5.5, f1b9509c2fb0 */
	[FEATURE_TRACEPOINTS] = { "typed tracepoints", "block, mutex, offcpu, threadcreate",
				  "no block, mutex, offcpu, threadcreate: run as root, or give "
				  "CAP_BPF and CAP_PERFMON; needs Linux 5.5 with "
				  "CONFIG_DEBUG_INFO_BTF",
				  false, probe_tracepoints, .on = &bpf },
	[FEATURE_RESUME] = { "end of waits", "block and offcpu",
			     "no block, no offcpu: needs Linux 6.15, or CONFIG_KPROBE_EVENTS",
			     false, probe_resume, resume_text, .on = &btf },
	/* 5.5, fec56f5890d9: fentry; and without it, f1b9509c2fb0 */
	[FEATURE_FDS] = { "descriptors", "fds",
			  "no fds profile: run as root, or give CAP_BPF and CAP_PERFMON; needs "
			  "Linux 5.5 with CONFIG_DEBUG_INFO_BTF, and ftrace or "
			  "CONFIG_FTRACE_SYSCALLS",
			  false, probe_openings, openings_text, .on = &bpf },
	[FEATURE_FUTEX] = { "futexes (fentry)",
			    "block and mutex without offcpu look at no context switch",
			    "block and mutex look at every context switch: needs Linux 5.16 with "
			    "ftrace",
			    false, probe_futex, .on = &bpf },
};

static const char *remedy(enum feature f)
{
	if (f == FEATURE_UPROBES)
		return no_uprobes_text();
	if (f == FEATURE_PARANOID || (table[f].by_perf && !probe_paranoid()))
		return paranoid_text();
	return table[f].remedy;
}

/* *ret_told: is there what has to be, for it to be told? */
static bool is_there(enum feature f, bool *ret_told)
{
	const struct ground *on = table[f].on;

	libbpf_set_print(NULL);
	*ret_told = !on || table[on->feature].probe();
	return *ret_told && table[f].probe();
}

struct feature_result features_probe(enum feature f)
{
	struct feature_result r = { .name = table[f].name, .needed = table[f].needed };
	bool told;

	r.ok = is_there(f, &told);
	if (!told)
		r.text = table[f].on->text;
	else if (!r.ok)
		r.text = remedy(f);
	else
		r.text = table[f].text ? table[f].text() : table[f].purpose;
	return r;
}

const char *features_missing(void)
{
	bool told;

	/* some of the others take ms, and so do some texts */
	for (int i = 0; i < NR_FEATURES; i++)
		if (table[i].needed && !is_there(i, &told))
			return told ? remedy(i) : table[i].on->text;
	return NULL;
}
