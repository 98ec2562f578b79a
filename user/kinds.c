/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of profile kinds and its two readers. */
#include "kinds.h"

#include <math.h>
#include <string.h>

#include "base/util.h"
#include "heap/heap_frames.h"
#include "profile/text.h"
#include "capture/waits.h"

/* What programs say themselves may be anything: 2^53 is as much as a double counts exactly. */
static int64_t whole(double v)
{
	return llround(fmin(v, 0x1p53));
}

/* ---- cpu ---- */

static int64_t cpu_period(uint32_t frequency, uint64_t heap_rate)
{
	(void)heap_rate;
	return (NSEC_PER_SEC + frequency / 2) / frequency;
}

/* weight: samples of which it is one, taken by chance. */
static double cpu_unit(uint64_t size, uint64_t weight, int64_t period)
{
	(void)size;
	(void)period;
	return weight ? weight : 1;
}

static void cpu_values(const struct kind_sums *sums, int64_t period, int64_t *ret)
{
	ret[0] = llround(sums->total);
	ret[1] = ret[0] * period;
}

/* ---- heap ---- */

static int64_t heap_period(uint32_t frequency, uint64_t heap_rate)
{
	(void)frequency;
	return heap_rate;
}

/*
 * Objects that one sampled object stands for: an allocation of size bytes is sampled with
 * probability 1 - exp(-size / rate), an empty one as if it had one byte (see bpf/heap.bpf.c). Go's
 * runtime/pprof does the same (protomem.go, scaleHeapSample). weight: bytes that the sample stands
 * for, where the program that sampled says so.
 */
static double heap_unit(uint64_t size, uint64_t weight, int64_t rate)
{
	double bytes = size ? size : 1;

	if (weight)
		return weight / bytes;
	return rate <= 1 ? 1 : -1 / expm1(-bytes / rate);
}

static void heap_values(const struct kind_sums *sums, int64_t rate, int64_t *ret)
{
	(void)rate;
	ret[0] = whole(sums->total);
	ret[1] = whole(sums->total * sums->size);
	ret[2] = whole(sums->held);
	ret[3] = whole(sums->held * sums->size);
}

static size_t heap_labels(const struct bpfprof_rec *rec, struct kind_label *ret)
{
	ret[0] = (struct kind_label){ .key = "bytes", .num = rec->size, .unit = "bytes" };
	return 1;
}

/* ---- waits ---- */

static void wait_values(const struct kind_sums *sums, int64_t period, int64_t *ret)
{
	(void)period;
	ret[0] = whole(sums->total);
	ret[1] = whole(sums->amount);
}

static size_t futex_labels(const struct bpfprof_rec *rec, struct kind_label *ret)
{
	const char *woken = waits_woken(rec->wait);

	ret[0] = (struct kind_label){ .key = "woken", .str = woken };
	return woken != NULL;
}

static size_t offcpu_labels(const struct bpfprof_rec *rec, struct kind_label *ret)
{
	const char *syscall = waits_syscall(rec->wait);

	ret[0] = (struct kind_label){ .key = "reason", .str = waits_reason(rec->wait) };
	ret[1] = (struct kind_label){ .key = "syscall", .str = syscall };
	return 1 + (syscall != NULL);
}

/* ---- threads ---- */

static void count_values(const struct kind_sums *sums, int64_t period, int64_t *ret)
{
	(void)period;
	ret[0] = whole(sums->total);
}

static size_t thread_labels(const struct bpfprof_rec *rec, struct kind_label *ret)
{
	ret[0] = (struct kind_label){ .key = "tid", .num = rec->tid, .unit = "tid" };
	ret[1] = (struct kind_label){ .key = "state", .str = waits_state(rec->wait) };
	ret[2] = (struct kind_label){ .key = "in", .str = waits_in(rec->wait) };
	ret[3] = (struct kind_label){ .key = "since",
				      .num = MIN(rec->amount, INT64_MAX),
				      .unit = "nanoseconds" };
	return 4;
}

/* ---- custom, fds ---- */

static void held_values(const struct kind_sums *sums, int64_t period, int64_t *ret)
{
	(void)period;
	ret[0] = whole(sums->held);
}

/* ---- faults ---- */

static size_t fault_labels(const struct bpfprof_rec *rec, struct kind_label *ret)
{
	bool major = rec->wait == BPFPROF_FAULT_MAJOR;

	ret[0] = (struct kind_label){ .key = "fault", .str = major ? "major" : "minor" };
	return 1;
}

/* ---- the table ---- */

const struct kind kinds[BPFPROF_NR_KINDS] = {
	[BPFPROF_CPU] = {
		.name = "cpu",
		.value_types = { { "samples", "count" }, { "cpu", "nanoseconds" } },
		.value_cnt = 2,
		.period_type = { "cpu", "nanoseconds" },
		.period = cpu_period,
		.quantities = { NULL, "of CPU" },
		.nothing = "nothing ran on a CPU while it was watched",
		.unit = cpu_unit,
		.values = cpu_values,
		.legacy = LEGACY_CPU,
		.by_default = true,
		.default_with_all = true,
		.in_kernel = true,
		.by_default_in_agent = true,
		.description = "where CPU time is spent, in the program and in the kernel on its behalf",
		.cost = "an interrupt and a stack walk for each sample, --frequency times a second on each busy CPU",
	},
	[BPFPROF_HEAP] = {
		.name = "heap",
		.value_types = { { "alloc_objects", "count" }, { "alloc_space", "bytes" },
				 { "inuse_objects", "count" }, { "inuse_space", "bytes" } },
		.value_cnt = 4,
		.period_type = { "space", "bytes" },
		.period = heap_period,
		.folded_value = 3,
		.quantities = { NULL, "allocated", NULL, "in use" },
		.nothing = "nothing was allocated, or too little to be sampled (--heap-rate)",
		.at_own = "Memory",
		.drops = MACHINERY_DROP_ALLOCS,
		.unit = heap_unit,
		.values = heap_values,
		.legacy = LEGACY_HEAP,
		.labels = heap_labels,
		.hide = heap_frames_hide,
		.holds = true,
		.levels = 1 << 2 | 1 << 3,
		.by_default = true,
		.of_chosen = true,
		.description = "what the program allocates, and has not freed when the run ends",
		.cost = "0.5 to 3 us for each allocation and each free of a running program, up to "
			"--heap-budget; a few ns in a program started with -- COMMAND",
	},
	[BPFPROF_BLOCK] = {
		.name = "block",
		.value_types = { { "contentions", "count" }, { "delay", "nanoseconds" } },
		.value_cnt = 2,
		.period_type = { "contentions", "count" },
		.folded_value = 1,
		.quantities = { "contentions", "of delay" },
		.nothing = "nothing waited for a lock, or not for as long as --min-wait",
		.at_own = "Waits",
		.drops = MACHINERY_DROP_WAITS,
		.values = wait_values,
		.legacy = LEGACY_CONTENTION,
		.labels = futex_labels,
		.by_default = true,
		.default_with_all = true,
		.waits = true,
		.min_wait_ns = 1000,
		.min_wait_all_ns = 1000,
		.of_chosen = true,
		.description = "time blocked on synchronization (mutexes, condition variables, "
			       "semaphores...), by the stack that waited",
		.cost = "0.13 us for each context switch, 1 to 3 us more for one that ends a wait, up to "
			"--wait-budget; nothing for a lock that is free",
	},
	[BPFPROF_MUTEX] = {
		.name = "mutex",
		.value_types = { { "contentions", "count" }, { "delay", "nanoseconds" } },
		.value_cnt = 2,
		.period_type = { "contentions", "count" },
		.folded_value = 1,
		.quantities = { "contentions", "of delay" },
		.nothing = "nothing that waited for a lock was woken by who held it",
		.at_own = "Waits",
		.drops = MACHINERY_DROP_WAITS,
		.values = wait_values,
		.legacy = LEGACY_MUTEX,
		.labels = futex_labels,
		.waits = true,
		.min_wait_ns = 1000,
		.min_wait_all_ns = 1000,
		.of_chosen = true,
		.description = "the same delays, by the stack that ended them: who held the lock",
		.cost = "as block, the stack being taken in the thread that wakes",
	},
	[BPFPROF_OFFCPU] = {
		.name = "offcpu",
		.value_types = { { "events", "count" }, { "delay", "nanoseconds" } },
		.value_cnt = 2,
		.period_type = { "events", "count" },
		.folded_value = 1,
		.quantities = { "waits", "off the CPU" },
		.nothing = "nothing left its CPU, or not for as long as --min-wait (threads of the "
			   "kernel count where --pid or --comm names them)",
		.at_own = "Waits",
		.drops = MACHINERY_DROP_WAITS | MACHINERY_DROP_KERNEL,
		.values = wait_values,
		.legacy = LEGACY_CONTENTION,
		.labels = offcpu_labels,
		.hide = waits_hide,
		.in_kernel = true,
		.waits = true,
		.min_wait_all_ns = 1000000,
		.by_default_in_agent = true,
		.description = "every time off the CPU, and why: sleep, poll, disk, page fault, run "
			       "queue...",
		.cost = "0.2 us for each context switch, 1 to 3 us more for one that is recorded, up to "
			"--wait-budget",
	},
	[BPFPROF_THREADCREATE] = {
		.name = "threadcreate",
		.value_types = { { "threadcreate", "count" } },
		.value_cnt = 1,
		.period_type = { "threadcreate", "count" },
		.quantities = { "threads created" },
		.nothing = "no thread was created while it was watched",
		.at_own = "New threads",
		.drops = MACHINERY_DROP_WAITS,
		.values = count_values,
		.by_default = true,
		.default_with_all = true,
		.by_default_in_agent = true,
		.description = "where threads are created",
		.cost = "one stack walk for each thread that is created",
	},
	[BPFPROF_THREADS] = {
		.name = "threads",
		.value_types = { { "threads", "count" } },
		.value_cnt = 1,
		.period_type = { "threads", "count" },
		.quantities = { "threads" },
		.nothing = "no thread was there",
		.at_own = "Threads",
		.drops = MACHINERY_DROP_WAITS | MACHINERY_DROP_KERNEL,
		.values = count_values,
		.labels = thread_labels,
		.write_text = threads_text_write,
		.levels = 1 << 0,
		.in_kernel = true,
		.description = "the stack of every thread at one moment: at once if it is the only "
			       "kind, without --duration or a command; else at the end",
		.cost = "nothing: no thread is stopped, their stacks are read from outside",
	},
	[BPFPROF_FAULTS] = {
		.name = "faults",
		.value_types = { { "faults", "count" } },
		.value_cnt = 1,
		.period_type = { "faults", "count" },
		.quantities = { "page faults" },
		.nothing = "no page fault came while it was watched",
		.at_own = "Page faults",
		.values = count_values,
		.labels = fault_labels,
		.in_kernel = true,
		.description = "every page fault, minor or major (which waits for a disk): what "
			       "memory is touched for the first time",
		.cost = "1 to 1.3 us for each fault of the program, and 0.1 us for each of any other",
	},
	/* a profile for each name, which stands in place of NAME: see custom/custom.h */
	[BPFPROF_CUSTOM] = {
		.name = "custom",
		.value_types = { { "NAME", "count" } },
		.value_cnt = 1,
		.period_type = { "NAME", "count" },
		.quantities = { "held" },
		.nothing = "nothing was added while it was watched",
		.at_own = "Values",
		.values = held_values,
		.holds = true,
		.only_held = true,
		.levels = 1 << 0,
		.of_processes = true,
		.description = "what the program has added to a profile of its own (bpfprof/profile.h) "
			       "and not removed, or what two functions add and remove",
		.cost = "1 to 2 us for each value that is added, and 1 us for each that is removed",
	},
	[BPFPROF_FDS] = {
		.name = "fds",
		.value_types = { { "fds", "count" } },
		.value_cnt = 1,
		.period_type = { "fds", "count" },
		.quantities = { "open" },
		.nothing = "nothing that was opened while it was watched is still open",
		.at_own = "Descriptors",
		.drops = MACHINERY_DROP_WAITS,
		.values = held_values,
		.holds = true,
		.only_held = true,
		.levels = 1 << 0,
		.of_processes = true,
		.description = "files, sockets and all else that has a descriptor: what was opened and "
			       "has not been closed, by the stack that opened it",
		.cost = "1 to 2 us for each that is opened; where `check` says so, 0.1 us for each "
			"system call, and 0.5 us for each close",
	},
};

int kinds_find(const char *name, size_t name_sz)
{
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (strlen(kinds[i].name) == name_sz && !memcmp(kinds[i].name, name, name_sz))
			return i;
	return -1;
}

void kinds_names(char *buf, size_t buf_sz)
{
	*buf = '\0';
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		size_t len = strlen(buf);

		snprintf(buf + len, buf_sz - len, "%s%s", i ? ", " : "", kinds[i].name);
	}
}

void kinds_print(FILE *f, enum bpfprof_kind kind)
{
	const struct kind *k = &kinds[kind];

	fprintf(f, "%s%s\n  measures  %s\n  values    ", k->name,
		!k->by_default	    ? "" :
		k->default_with_all ? " (default)" :
				      " (default, but with --all)",
		k->description);
	for (size_t v = 0; v < k->value_cnt; v++)
		fprintf(f, "%s%s/%s", v ? ", " : "", k->value_types[v].type,
			k->value_types[v].unit);
	fprintf(f, "\n  period    %s/%s\n  costs     %s\n", k->period_type.type,
		k->period_type.unit, k->cost);
}
