// SPDX-License-Identifier: BSD-2-Clause
/* What this kernel can do and what we may do there. */
#include "kernel/features.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "kernel/probe_waits.h"
#include "kernel/uprobes.h"

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
	return libbpf_find_vmlinux_btf_id("bpf_iter_task", 0) > 0 ||
	       libbpf_find_vmlinux_btf_id("task", BPF_TRACE_ITER) > 0;
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

static bool probe_kallsyms(void)
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
		[UPROBES_NONE] = "heap profile of running programs",
	};

	return text[uprobes_probe(UPROBES_SESSION)];
}

static bool probe_task_storage(void)
{
	return libbpf_probe_bpf_map_type(BPF_MAP_TYPE_TASK_STORAGE, NULL) == 1 &&
	       libbpf_probe_bpf_helper(BPF_PROG_TYPE_KPROBE, BPF_FUNC_task_storage_get, NULL) == 1;
}

/* Tracepoints whose arguments BTF types. */
static bool probe_tracepoints(void)
{
	static const char *const names[] = { "sched_switch", "sched_waking", "task_newtask" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (libbpf_find_vmlinux_btf_id(names[i], BPF_TRACE_RAW_TP) <= 0)
			return false;
	return libbpf_probe_bpf_prog_type(BPF_PROG_TYPE_TRACING, NULL) == 1;
}

static enum probe_waits_resume resume(void)
{
	struct probe_waits_how how;

	probe_waits__probe(&how);
	return how.resume;
}

static bool probe_resume(void)
{
	return resume() != PROBE_WAITS_NONE;
}

/* What the best place there is means for the waits. */
static const char *resume_text(void)
{
	return resume() == PROBE_WAITS_EXIT ?
		       "block and offcpu, by the tracepoint sched_exit_tp" :
		       "block and offcpu, by a kprobe on finish_task_switch: every context switch "
		       "costs more, until Linux 6.15";
}

static const struct {
	const char *name, *purpose, *remedy;
	bool needed;
	bool (*probe)(void);
	const char *(*text)(void); /* in place of the purpose, where there are several ways */
} table[NR_FEATURES] = {
	[FEATURE_PID_NAMESPACE] = { "host's pid namespace", "process ids as the kernel counts them",
				    "runs in a pid namespace of its own, where process ids are not "
				    "those that the kernel samples: use the host's (docker run "
				    "--pid=host)",
				    true, probe_pid_namespace },
	[FEATURE_BTF] = { "BTF", "kernel type information",
			  "the kernel needs CONFIG_DEBUG_INFO_BTF (/sys/kernel/btf/vmlinux)", true,
			  probe_btf },
	[FEATURE_BPF] = { "bpf", "BPF programs on perf events",
			  "run as root, or give CAP_BPF and CAP_PERFMON (CAP_SYS_ADMIN before 5.8)",
			  true, probe_bpf },
	/* 5.8, 457f44363a88 */
	[FEATURE_RINGBUF] = { "BPF ring buffer", "stacks on their way to user space",
			      "needs Linux 5.8", true, probe_ringbuf },
	/* 5.5, fc9702273e2e */
	[FEATURE_MMAPABLE] = { "mmapable BPF arrays", "unwind tables without system calls",
			       "needs Linux 5.5", true, probe_mmapable },
	/* 5.8, eaaacd23910f */
	[FEATURE_ITERATOR] = { "BPF task iterator", "the list of processes", "needs Linux 5.8",
			       true, probe_iterator },
	/* 5.17, e6f2dd0f8067 */
	[FEATURE_LOOP] = { "bpf_loop", "stacks of up to 512 frames",
			   "without it (before Linux 5.17) stacks end after 64 frames", false,
			   probe_loop },
	[FEATURE_PERF_EVENT] = { "perf cpu-clock", "the sampling clock",
				 "run as root, give CAP_PERFMON, or lower "
				 "kernel.perf_event_paranoid",
				 true, probe_perf_event },
	[FEATURE_CYCLES] = { "perf cycles", "--event cycles",
			     "this machine has no cycle counter for us: --event cpu-clock (the "
			     "default) works all the same",
			     false, probe_cycles },
	[FEATURE_SIDE_BAND] = { "perf side band", "processes and their mappings as they come",
				"run as root, or give CAP_PERFMON", true, probe_side_band },
	/* 5.12, 88a16a130933 */
	[FEATURE_BUILD_ID] = { "mmap build ids", "files told apart when they are mapped",
			       "needs Linux 5.12; device and inode serve below", false,
			       probe_build_id },
	[FEATURE_KALLSYMS] = { "kallsyms", "names of kernel functions",
			       "run as root, give CAP_SYSLOG, or set kernel.kptr_restrict=0; "
			       "kernel "
			       "frames stay addresses",
			       false, probe_kallsyms },
	[FEATURE_MAP_FILES] = { "map_files", "names from deleted or replaced files",
				"run as root, or give CAP_CHECKPOINT_RESTORE (Linux 5.9)", false,
				probe_map_files },
	/* 6.13, d920179b3d48; 6.6, 89ae89f53d20 */
	[FEATURE_UPROBES] = { "uprobes", "heap profile of running programs",
			      "no heap profile: run as root, or give CAP_BPF and CAP_PERFMON; the "
			      "kernel needs CONFIG_UPROBE_EVENTS",
			      false, probe_uprobes, uprobes_text },
	/* 5.11, 4cf1bc1f1045; in tracing programs 5.12, a10787e6d58c */
	[FEATURE_TASK_STORAGE] = { "BPF task storage",
				   "heap samples drawn for each thread; what each one waits for",
				   "no heap profile, and waits of 65536 threads at most: run as "
				   "root, or give CAP_BPF and CAP_PERFMON; needs Linux 5.12",
				   false, probe_task_storage, NULL },
	/* 5.5, f1b9509c2fb0 */
	[FEATURE_TRACEPOINTS] = { "typed tracepoints", "block, mutex, offcpu, threadcreate",
				  "no block, mutex, offcpu, threadcreate: run as root, or give "
				  "CAP_BPF and CAP_PERFMON; needs Linux 5.5 with "
				  "CONFIG_DEBUG_INFO_BTF",
				  false, probe_tracepoints, NULL },
	[FEATURE_RESUME] = { "end of waits", "block and offcpu",
			     "no block, no offcpu: needs Linux 6.15, or CONFIG_KPROBE_EVENTS",
			     false, probe_resume, resume_text },
};

struct feature_result features_probe(enum feature f)
{
	struct feature_result r = { .name = table[f].name, .needed = table[f].needed };

	libbpf_set_print(NULL);
	r.ok = table[f].probe();
	if (!r.ok)
		r.text = table[f].remedy;
	else
		r.text = table[f].text ? table[f].text() : table[f].purpose;
	return r;
}
