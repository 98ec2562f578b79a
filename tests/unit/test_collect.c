// SPDX-License-Identifier: BSD-2-Clause
/* seconds: 20 */
/*
 * The code of processes in table memory, and the way of a sample from the kernel into the profile,
 * on programs of the test's own whose stacks are known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <linux/sched.h>
#include <math.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/util.h"
#include "bpf_session.h"
#include "capture/count_keys.h"
#include "capture/window.h"
#include "capture/windows.h"
#include "capture/code.h"
#include "capture/collect.h"
#include "kernel/epochs.h"
#include "kernel/events.h"
#include "kernel/samples.h"
#include "kernel/session.h"
#include "kernel/tables.h"
#include "kinds.h"
#include "profile/profile.h"
#include "capture/symbolize.h"
#include "target/elf_file.h"
#include "target/objects.h"
#include "target/objects_parts.h"
#include "target/procs.h"
#include "target/raw_unwind.h"
#include "target/unwind_build.h"

#define NOIPA __attribute__((noipa))

/* ---- unwind.h over the memory of struct tables ---- */

static struct tables *tables;

#undef __always_inline
#undef __noinline
#define __always_inline inline
#define __noinline __attribute__((noinline, unused))
#include "unwind.h"
#include "truth.h"

/* Of this process, and of what it starts before that has a name of its own. */
#define OWN_NAME "collected"

static __always_inline int unw_read_user(struct unw *u, void *dst, __u32 sz, __u64 addr)
{
	(void)u, (void)dst, (void)sz, (void)addr;
	return 1;
}

static __always_inline const __u8 *unw_chunk(const struct unw *u, __u32 idx)
{
	(void)u;
	return tables__chunk(tables, idx);
}

static __always_inline void unw_mark_used(const __u8 *chunk, __u32 pos)
{
	(void)chunk, (void)pos;
}

/* ---- everything that stands behind a recording ---- */

#define HZ 997
#define NEEDED 150 /* samples */

static struct session *session;
static struct events *events;
static struct samples *samples;
static struct procs *procs;
static struct objects *objects;
static struct code *code;
static struct collect *collect;
static struct window *window;
static struct profile *profile; /* of what was recorded */
static struct symbolize_source *sources;

/* False, with the reason printed, where the test has to be skipped. */
static bool start_with(const struct session_opts *s, const struct collect_opts *c, uint32_t chunks,
		       size_t ring_pages)
{
	struct collect_opts opts = *c;

	session = bpf_session_open(s);
	if (!session)
		return false;
	tables = tables__new(session, chunks);
	samples = samples__new(session);
	events = events__new(ring_pages);
	procs = procs__new("/proc");
	objects = objects__new();
	assert_true(tables && samples && events && procs && objects);
	assert_int_equal(events__sync_cpus(events, session__cpus_gone(session)), 0);
	code = code__new(procs, objects, tables);
	assert_non_null(code);
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		opts.periods[i] = NSEC_PER_SEC / HZ;
	collect = collect__new(&opts, session, samples, events, procs, code);
	assert_non_null(collect);
	window = windows__open(collect__windows(collect));
	assert_non_null(window);
	return true;
}

static bool start(const struct session_opts *s, const struct collect_opts *c, uint32_t chunks)
{
	return start_with(s, c, chunks, 64);
}

static int teardown(void **state)
{
	(void)state;
	collect__free(collect);
	code__free(code);
	tables__free(tables);
	samples__free(samples);
	events__free(events);
	session__free(session);
	procs__free(procs);
	objects__free(objects);
	profile__free(profile);
	free(sources);
	sources = NULL;
	collect = NULL, code = NULL, tables = NULL, samples = NULL, events = NULL;
	session = NULL, procs = NULL, objects = NULL, profile = NULL;
	return 0;
}

static void arm(void)
{
	char err[256];

	if (session__arm(session, err, sizeof(err)))
		fail_msg("%s", err);
	session__set_sampling(session, true);
}

static void build_profile(void)
{
	const struct window_profile_opts o = { .period = NSEC_PER_SEC / HZ,
					       .value_cnt = kinds[BPFPROF_CPU].value_cnt };

	window__commit(window, BPFPROF_CPU, 1);
	profile__free(profile);
	free(sources);
	profile = window__profile(window, BPFPROF_CPU, &o, &sources);
	assert_non_null(profile);
}

/* Ends the recording; its account has to add up, and to be what stands in the profile. */
static struct collect_account finish(void)
{
	struct collect_account a;
	uint64_t lost = 0, stacks = 0, values = 0;

	session__disarm(session);
	assert_int_equal(collect__cut(collect), 0);
	assert_int_equal(collect__cut(collect), 0);
	build_profile();
	collect__account(window, BPFPROF_CPU, &a);
	for (int i = 0; i < BPFPROF_NR_LOST; i++)
		lost += a.lost[i];
	for (int i = 0; i < BPFPROF_NR_RESULTS; i++)
		stacks += a.stacks[i];
	for (size_t i = 0; i < profile->sample_cnt; i++) {
		const int64_t *v = profile__values(profile, &profile->samples[i]);

		assert_true(v[0] > 0);
		assert_int_equal(v[1], v[0] * profile->period);
		values += v[0];
	}
	assert_int_equal(a.seen, a.recorded + lost);
	assert_int_equal(a.recorded, stacks);
	assert_int_equal(a.recorded, values);
	return a;
}

/* ---- known programs ---- */

static uint64_t thread_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* In a section of its own, whose ends the linker knows. */
extern const char __start_leaf_text[], __stop_leaf_text[];

static NOIPA __attribute__((section("leaf_text"))) uint64_t leaf(uint64_t rounds)
{
	uint64_t x = rounds;

	for (uint64_t i = 0; i < rounds; i++)
		x = x * 6364136223846793005ULL + i;
	return x;
}

static NOIPA uint64_t chain(int depth, unsigned int ms)
{
	uint64_t end = thread_ns() + ms * 1000000ULL, x = 0;

	if (depth) {
		x = chain(depth - 1, ms);
		/* no tail call */
		__asm__ volatile("" : "+r"(x));
		return x;
	}
	while (thread_ns() < end)
		x += leaf(100000);
	return x;
}

static bool in_leaf(uint64_t addr)
{
	return addr >= (uintptr_t)__start_leaf_text && addr < (uintptr_t)__stop_leaf_text;
}

/* The path that a location's mapping names. */
static const char *mapped(const struct profile_location *l)
{
	return l->mapping == PROFILE_NONE ?
		       "" :
		       strtab__get(profile->strings, profile->mappings[l->mapping].filename);
}

/* What alone has a line before symbols are looked up: "[unwind: …]". */
static const char *marker(const struct profile_location *l)
{
	return strtab__get(profile->strings,
			   profile->functions[profile->lines[l->line].function].name);
}

static void print_stack(const struct profile_sample *s)
{
	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		const struct profile_location *l =
			&profile->locations[profile->loc_ids[s->loc + i]];

		print_error("%#llx of %s\n", (unsigned long long)l->address,
			    l->line_cnt ? marker(l) : mapped(l));
	}
}

static bool is_cut(const struct profile_sample *s)
{
	return s->loc_cnt &&
	       profile->locations[profile->loc_ids[s->loc + s->loc_cnt - 1]].line_cnt > 0;
}

/* Is it in AddressSanitizer's vfork(2), by which readers are started? That is written by hand, has no
 * unwind table, and keeps its return address where no table could say. */
static bool in_vfork(const struct profile_sample *s)
{
	const uint32_t *last = &profile->loc_ids[s->loc + s->loc_cnt - 1];

	return is_cut(s) && s->loc_cnt > 1 &&
	       strstr(marker(&profile->locations[last[0]]), "no unwind table") &&
	       strstr(mapped(&profile->locations[last[-1]]), "/libasan.so");
}

static const char *label(const struct profile_sample *s, const char *name, int64_t *ret_num)
{
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *l = &profile->labels[s->label + i];

		if (strcmp(strtab__get(profile->strings, l->key), name))
			continue;
		*ret_num = l->num;
		return strtab__get(profile->strings, l->str);
	}
	return NULL;
}

static const struct session_opts of_named = {
	.kinds = { true }, .frequency = HZ, .filter_tgid = true, .thread_names = true
};

/* How many there have been so far. */
static uint64_t seen(void)
{
	struct bpfprof_stats stats;

	assert_int_equal(epochs__stats(session, BPFPROF_CPU, &stats), 0);
	return stats.seen;
}

static void test_ourselves(void **state)
{
	const struct collect_opts opts = { .label_thread = true, .only_added = true };
	uint32_t self = getpid();
	char exe[512] = "";
	struct collect_account a;
	int64_t in = 0, total = 0, starting = 0, num;
	uint64_t begin, worked = 0;
	double share;

	(void)state;
	/* before the session has a thread of its own, which waits for grace periods and may be
	 * sampled as well */
	prctl(PR_SET_NAME, OWN_NAME);
	if (!start(&of_named, &opts, 8))
		skip();
	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	arm();
	begin = thread_ns();
	for (int i = 0; i < 6 || seen() < NEEDED; i++) {
		uint64_t t = thread_ns();

		chain(20, 50);
		worked += thread_ns() - t;
		assert_int_equal(collect__poll(collect), 0);
		if (i % 2)
			assert_int_equal(collect__cut(collect), 0);
	}
	/* the rest is in what reads the samples, which sanitizers make slow */
	share = (double)worked / (thread_ns() - begin);
	a = finish();
	/* unwound here once or a few times, in the kernel from then on */
	assert_true(a.raw > 0);
	assert_true(a.unwinds > a.recorded / 2);
	assert_true(a.frames > a.unwinds * 20);
	for (size_t i = 0; i < profile->sample_cnt; i++) {
		const struct profile_sample *s = &profile->samples[i];
		const uint32_t *ids = &profile->loc_ids[s->loc];
		size_t at = 0;

		total += profile__values(profile, s)[0];
		starting += in_vfork(s) ? profile__values(profile, s)[0] : 0;
		assert_string_equal(label(s, "thread", &num), OWN_NAME);
		/* of one process: not said with every sample */
		assert_null(label(s, "pid", &num));
		while (at < s->loc_cnt && !in_leaf(profile->locations[ids[at]].address))
			at++;
		if (at == s->loc_cnt)
			continue;
		in += profile__values(profile, s)[0];
		assert_string_equal(mapped(&profile->locations[ids[at]]), exe);
		/* below leaf stand 21 frames of chain, and what called it, to the end */
		assert_true(s->loc_cnt - at > 22);
	}
	/* a twentieth of the work is to look at the clock; by chance it is so few with p < 1e-9 */
	if (in < 0.95 * share * total - 6.1 * sqrt(0.25 * total))
		fail_msg("only %lld of %lld samples are where %.0f %% of the work is",
			 (long long)in, (long long)total, 100 * share);
	assert_int_equal(a.stacks[BPFPROF_STACK_complete] + starting, a.recorded);
}

/* With all tables loaded beforehand nothing has to be copied at first sight. */
static void test_prepared(void **state)
{
	const struct collect_opts opts = { .only_added = true };
	uint32_t self = getpid();
	struct collect_account a;
	struct code_stats stats;

	(void)state;
	if (!start(&of_named, &opts, 8))
		skip();
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	assert_int_equal(collect__prepare(collect), 0);
	code__stats(code, &stats);
	assert_true(stats.objects >= 3);
	assert_true(stats.rows > 1000 && stats.bytes > stats.rows && stats.cfi_bytes > 1000);
	assert_int_equal(stats.evicted, 0);
	arm();
	while (seen() < NEEDED)
		chain(3, 50);
	a = finish();
	assert_int_equal(a.raw, 0);
	assert_int_equal(a.stacks[BPFPROF_STACK_complete], a.recorded);
}

/* ---- records that are made here ---- */

static struct {
	struct bpfprof_rec rec;
	struct bpfprof_raw raw;
	uint8_t stack[BPFPROF_RAW_STACK_SZ];
} made;

/* Our own stack below depth frames, as one that was read from outside. */
static NOIPA void make_raw(int depth)
{
	static const int greg[BPFPROF_NR_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI,
						   REG_RDI, REG_RBP, REG_RSP, REG_R8,  REG_R9,
						   REG_R10, REG_R11, REG_R12, REG_R13, REG_R14,
						   REG_R15, REG_RIP };
	struct iovec local = { made.stack, sizeof(made.stack) }, remote;
	ucontext_t uc;
	ssize_t sz;

	if (depth) {
		make_raw(depth - 1);
		__asm__ volatile("");
		return;
	}
	assert_int_equal(getcontext(&uc), 0);
	for (int i = 0; i < BPFPROF_NR_REGS; i++)
		made.raw.regs[i] = uc.uc_mcontext.gregs[greg[i]];
	made.raw.ra = 1;
	made.raw.stack_addr = made.raw.regs[7] - BPFPROF_RED_ZONE;
	remote = (struct iovec){ (void *)made.raw.stack_addr, sizeof(made.stack) };
	sz = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
	assert_true(sz > 0);
	made.raw.stack_sz = sz;
}

/* As of a process that is collected, now. */
static struct bpfprof_rec record_of(uint32_t tgid, enum bpfprof_rec_type type)
{
	uint32_t proc = procs__find_live(procs, tgid);

	assert_int_not_equal(proc, PROCS_NONE);
	return (struct bpfprof_rec){ .type = type,
				     .kind = BPFPROF_CPU,
				     .tid = tgid,
				     .time_ns = util_monotonic_ns(),
				     .proc = { .tgid = tgid,
					       .exec_id = procs__get(procs, proc)->exec_id,
					       .start_ns = procs__get(procs, proc)->start_ns } };
}

struct walked {
	struct bpfprof_rec rec;
	uint64_t pc;
};

/* Of a process that was in leaf(). */
static struct walked walked_in(uint32_t tgid)
{
	struct walked w = { .rec = record_of(tgid, BPFPROF_REC_SAMPLE),
			    .pc = (uintptr_t)__start_leaf_text };

	w.rec.user_cnt = 1;
	return w;
}

static void inject_raw(void)
{
	assert_int_equal(collect__inject(collect, &made.rec,
					 sizeof(made.rec) + sizeof(made.raw) + made.raw.stack_sz),
			 0);
}

/* More events than the rings have room for, on whichever CPU. */
static void lose_events(void)
{
	char name[16];

	for (int i = 0; i < 2000; i++) {
		snprintf(name, sizeof(name), "lost%d", i);
		prctl(PR_SET_NAME, name);
	}
	/* another test tells what it starts by it */
	prctl(PR_SET_NAME, OWN_NAME);
}

/* Events that were lost while everything was prepared harm nobody; later ones are said. */
static void test_events_lost(void **state)
{
	const struct collect_opts opts = { .only_added = true };
	uint32_t self = getpid();
	cpu_set_t all, one;

	(void)state;
	if (!start_with(&of_named, &opts, 8, 1))
		skip();
	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	lose_events();
	assert_int_equal(collect__begin(collect), 0);
	assert_int_equal(collect__events_lost(collect), 0);
	lose_events();
	assert_int_equal(collect__poll(collect), 0);
	/* the kernel says it with the next event of that CPU for which there is room */
	prctl(PR_SET_NAME, OWN_NAME);
	assert_int_equal(collect__poll(collect), 0);
	assert_true(collect__events_lost(collect) > 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void test_injected(void **state)
{
	const struct collect_opts opts = { .only_added = true };
	struct walked walked;
	uint32_t self = getpid();
	struct collect_account a;
	size_t deepest = 0;

	(void)state;
	if (!start(&of_named, &opts, 8))
		skip();
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	memset(&made, 0, sizeof(made));
	made.rec = record_of(self, BPFPROF_REC_RAW);
	walked = walked_in(self);
	make_raw(30);
	inject_raw();
	assert_int_equal(collect__inject(collect, &walked.rec, sizeof(walked)), 0);
	collect__lose(collect, BPFPROF_CPU, BPFPROF_LOST_ran_on);
	collect__lose(collect, BPFPROF_CPU, BPFPROF_LOST_ran_on);
	collect__lose(collect, BPFPROF_HEAP, BPFPROF_LOST_no_memory);
	/* before the cut, nothing is in the window */
	collect__account(window, BPFPROF_CPU, &a);
	assert_int_equal(a.seen + a.recorded, 0);
	assert_int_equal(collect__cut(collect), 0);
	collect__account(window, BPFPROF_CPU, &a);
	assert_int_equal(a.seen, 4);
	assert_int_equal(a.recorded, 2);
	assert_int_equal(a.lost[BPFPROF_LOST_orphan], 0);
	assert_int_equal(a.lost[BPFPROF_LOST_ran_on], 2);
	assert_int_equal(a.raw, 1);
	collect__account(window, BPFPROF_HEAP, &a);
	assert_int_equal(a.seen, 1);
	assert_int_equal(a.lost[BPFPROF_LOST_no_memory], 1);
	build_profile();
	assert_int_equal(profile->sample_cnt, 2);
	for (size_t i = 0; i < 2; i++)
		deepest = MAX(deepest, profile->samples[i].loc_cnt);
	/* make_raw 31 times, this function, cmocka's, main, and what called it */
	assert_in_range(deepest, 31 + 4, 31 + 20);
}

static uint64_t ahead_ns;     /* of the clock */
static uint64_t walk_ns;      /* what each walk of a copied stack takes */
static int walks, last_walks; /* of them, those that may ask for nothing any more */

int __real_raw_unwind(const struct raw_unwind *in, uint64_t frames[BPFPROF_MAX_UFRAMES],
		      size_t *ret_cnt, uint64_t *ret_miss);
int __wrap_raw_unwind(const struct raw_unwind *in, uint64_t frames[BPFPROF_MAX_UFRAMES],
		      size_t *ret_cnt, uint64_t *ret_miss);

int __wrap_raw_unwind(const struct raw_unwind *in, uint64_t frames[BPFPROF_MAX_UFRAMES],
		      size_t *ret_cnt, uint64_t *ret_miss)
{
	walks++;
	last_walks += (in->proc.flags & BPFPROF_PROC_NO_LOAD) != 0;
	ahead_ns += walk_ns;
	return __real_raw_unwind(in, frames, ret_cnt, ret_miss);
}

/* One that would have to be walked once more for each file on it, and takes too long for that, goes on
 * with what is loaded by then; the next one has that from the start. */
static void test_long_walks(void **state)
{
	const struct collect_opts opts = { .only_added = true };
	struct collect_account a;
	uint32_t self = getpid();

	(void)state;
	if (!start(&of_named, &opts, 8))
		skip();
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	memset(&made, 0, sizeof(made));
	made.rec = record_of(self, BPFPROF_REC_RAW);
	make_raw(30);
	walk_ns = NSEC_PER_SEC;
	walks = last_walks = 0;
	inject_raw();
	assert_int_equal(collect__cut(collect), 0);
	/* this program's table was asked for, and no other one's */
	assert_int_equal(walks, 2);
	assert_int_equal(last_walks, 1);
	collect__account(window, BPFPROF_CPU, &a);
	assert_int_equal(a.recorded, 1);
	assert_int_equal(a.stacks[BPFPROF_STACK_complete], 0);
	/* a walk in time: the others are loaded, too */
	walk_ns = 0;
	made.rec.time_ns = util_monotonic_ns();
	inject_raw();
	assert_int_equal(collect__cut(collect), 0);
	assert_true(walks >= 4);
	assert_int_equal(last_walks, 1);
	collect__account(window, BPFPROF_CPU, &a);
	assert_int_equal(a.recorded, 2);
	assert_int_equal(a.stacks[BPFPROF_STACK_complete], 1);
	ahead_ns = 0;
}

/* ---- code of which nothing is known ---- */

static bool raw_is_wanted(void)
{
	uint32_t proc = procs__find_live(procs, getpid());
	struct bpfprof_proc value;

	assert_true(code__published(code, proc, &value));
	return !(value.flags & BPFPROF_PROC_NO_RAW);
}

/* Stacks that lead nowhere, sampled then, and taken. */
static void lead_nowhere(int cnt, uint64_t time_ns)
{
	for (int i = 0; i < cnt; i++) {
		made.rec.time_ns = time_ns;
		inject_raw();
	}
	/* what is younger than the events that were read waits */
	usleep(1000);
	assert_int_equal(collect__poll(collect), 0);
}

/*
 * They are not copied for ever; but a program that runs unknown code for a moment, as one does that puts
 * its own somewhere else, has whole stacks again as soon as its mappings have changed.
 */
static void test_nowhere(void **state)
{
	const struct collect_opts opts = { .only_added = true };
	const size_t sz = 16 * 4096;
	uint8_t *unknown;
	uint32_t self = getpid();
	uint64_t before;

	(void)state;
	if (!start(&of_named, &opts, 8))
		skip();
	unknown = mmap(NULL, sz, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(unknown != MAP_FAILED);
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	memset(&made, 0, sizeof(made));
	made.rec = record_of(self, BPFPROF_REC_RAW);
	made.raw.regs[BPFPROF_NR_REGS - 1] = (uintptr_t)unknown + 64;
	made.raw.stack_addr = made.raw.regs[7] = (uintptr_t)&before & ~15UL;
	made.raw.stack_sz = 256;
	/* many, for a moment */
	before = util_monotonic_ns();
	lead_nowhere(50, before);
	assert_true(raw_is_wanted());
	/* and some time later */
	usleep(150000);
	lead_nowhere(1, util_monotonic_ns());
	assert_false(raw_is_wanted());
	assert_int_equal(code__publish(code, procs__find_live(procs, self)), 0);
	assert_false(raw_is_wanted());
	/* an event that leaves the list as it is */
	assert_int_equal(mprotect(unknown, sz, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(mprotect(unknown, sz, PROT_READ | PROT_EXEC), 0);
	usleep(1000);
	assert_int_equal(collect__poll(collect), 0);
	assert_true(raw_is_wanted());
	/* what was sampled before it is no reason */
	lead_nowhere(50, before);
	lead_nowhere(50, before + 150000000);
	assert_true(raw_is_wanted());
	assert_int_equal(munmap(unknown, sz), 0);
}

static uint64_t total(void)
{
	return window__account(window, BPFPROF_CPU)->total;
}

/* No other one may end before programs that were running have. */
static void end_epoch(bool boundary)
{
	assert_int_equal(collect__end_epoch(collect, boundary), 0);
	assert_false(collect__can_end(collect));
	while (collect__is_ending(collect))
		assert_int_equal(collect__tend_epoch(collect, false), 0);
}

/* Epochs that end while nobody adds them up wait, and a boundary is not passed by a cut. */
static void test_epochs_wait(void **state)
{
	const struct collect_opts opts = { .only_added = true };
	struct walked walked;
	uint64_t before = util_monotonic_ns(), end_ns = 0;
	uint32_t self = getpid();
	int ended = 0;

	(void)state;
	if (!start(&of_named, &opts, 8))
		skip();
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	walked = walked_in(self);
	for (uint64_t i = 1; i <= 3; i++) {
		for (uint64_t n = 0; n < i; n++)
			assert_int_equal(collect__inject(collect, &walked.rec, sizeof(walked)), 0);
		end_epoch(i == 3);
	}
	assert_int_equal(collect__inject(collect, &walked.rec, sizeof(walked)), 0);
	assert_int_equal(total(), 0);
	/* up to the boundary, and not beyond */
	assert_int_equal(collect__cut(collect), 0);
	assert_int_equal(total(), 1 + 2);
	while (collect__can_end(collect)) {
		end_epoch(false);
		ended++;
	}
	assert_int_equal(collect__end_epoch(collect, false), -EAGAIN);
	assert_in_range(ended, 1, CAPTURE_EPOCHS);
	assert_int_equal(collect__cut(collect), 0);
	assert_int_equal(total(), 1 + 2);
	assert_int_equal(collect__settle_boundary(collect, &end_ns), 0);
	assert_in_range(end_ns, before, util_monotonic_ns());
	assert_int_equal(total(), 1 + 2 + 3);
	assert_int_equal(collect__cut(collect), 0);
	assert_int_equal(total(), 1 + 2 + 3 + 1);
}

/* No epoch ends while as many records wait as may. */
static void test_spill_bound(void **state)
{
	const struct collect_opts opts = { .only_added = true, .spill_max = 1 << 16 };
	struct walked walked;
	uint32_t self = getpid();
	uint64_t end_ns;
	int64_t cnt = 0;

	(void)state;
	if (!start(&of_named, &opts, 8))
		skip();
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	walked = walked_in(self);
	for (; collect__can_end(collect); cnt++)
		assert_int_equal(collect__inject(collect, &walked.rec, sizeof(walked)), 0);
	assert_in_range(cnt, (1 << 16) / (sizeof(walked) + 16), (1 << 16) / sizeof(walked) + 1);
	assert_int_equal(collect__poll(collect), 0);
	assert_true(collect__can_end(collect));
	assert_int_equal(collect__cut(collect), 0);
	assert_int_equal(total(), cnt);
	/* but for a boundary, once they have been put in for it */
	for (; collect__can_end(collect); cnt++)
		assert_int_equal(collect__inject(collect, &walked.rec, sizeof(walked)), 0);
	assert_true(collect__may_end(collect));
	end_epoch(true);
	assert_int_equal(collect__settle_boundary(collect, &end_ns), 0);
	assert_int_equal(total(), cnt);
}

/* More than there is time for in a poll: what is left is done by later ones, and who has ended by
 * then is known as long as it takes. */
static void test_behind(void **state)
{
	const struct collect_opts opts = { .only_added = true,
					   .label_process = true,
					   .poll_ns = 1 };
	struct walked walked;
	const struct window_account *a;
	uint32_t pids[2] = { getpid() };
	int64_t num, found = 0;
	pid_t child = fork();

	(void)state;
	if (!child) {
		alarm(60); /* whatever becomes of us */
		pause();
		_exit(0);
	}
	pids[1] = child;
	if (!start(&of_named, &opts, 8)) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		skip();
	}
	assert_int_equal(collect__scan(collect, pids, 2), 0);
	memset(&made, 0, sizeof(made));
	made.rec = record_of(pids[0], BPFPROF_REC_RAW);
	make_raw(30);
	for (int i = 0; i < 9; i++)
		inject_raw();
	walked = walked_in(child);
	assert_int_equal(collect__inject(collect, &walked.rec, sizeof(walked)), 0);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	a = windows__account(collect__windows(collect), 0, BPFPROF_CPU);
	for (uint64_t i = 1; i <= 10; i++) {
		assert_int_equal(collect__poll(collect), 0);
		assert_int_equal(a->total, i);
		assert_int_equal(a->stats.seen, 10);
		assert_int_equal(collect__is_behind(collect), i < 10);
	}
	assert_int_equal(procs__find_live(procs, child), PROCS_NONE);
	finish();
	for (size_t i = 0; i < profile->sample_cnt; i++) {
		const struct profile_sample *s = &profile->samples[i];

		if (!label(s, "pid", &num) || num != child)
			continue;
		found += profile__values(profile, s)[0];
		assert_int_equal(s->loc_cnt, 1);
		assert_string_not_equal(mapped(&profile->locations[profile->loc_ids[s->loc]]), "");
	}
	assert_int_equal(found, 1);
}

/* CPU time of a process. */
static uint64_t process_ns(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	assert_int_equal(clock_gettime(clock, &ts), 0);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

/* Children that run another program: their samples are theirs, with their names. */
static void test_children(void **state)
{
	const struct collect_opts opts = {
		.label_process = true, .label_thread = true, .follow = true, .only_added = true
	};
	struct session_opts s_opts = of_named;
	uint32_t self = getpid();
	int64_t of_shell = 0, in_shell = 0, cut = 0, before;
	struct stat sh, other;
	pid_t pid;

	(void)state;
	s_opts.follow = true;
	if (!start(&s_opts, &opts, 8))
		skip();
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	arm();
	pid = fork();
	if (!pid) {
		alarm(60); /* whatever becomes of us */
		execl("/bin/sh", "sh", "-c", "i=0; while :; do i=$((i+1)); done", (char *)NULL);
		_exit(127);
	}
	while (process_ns(pid) < 200000000) {
		assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
		assert_int_equal(collect__poll(collect), 0);
		usleep(20000);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)finish();
	assert_int_equal(stat("/bin/sh", &sh), 0);
	for (size_t i = 0; i < profile->sample_cnt; i++) {
		const struct profile_sample *s = &profile->samples[i];
		const char *comm, *root;
		int64_t num;

		comm = label(s, "comm", &num);
		/* the reader's processes are our children, too; "exe" until they have their names */
		if (comm && (!strncmp(comm, "bpfprof-", 8) || !strcmp(comm, "exe")))
			continue;
		assert_non_null(label(s, "pid", &num));
		/* nor have they a program of their own at once */
		if (num != pid && num != self && comm && !strcmp(comm, OWN_NAME))
			continue;
		if (num != pid && num != self)
			fail_msg("a sample of process %" PRId64 ", '%s'", num, comm ? comm : "");
		if (in_vfork(s))
			continue;
		if (is_cut(s)) {
			cut += profile__values(profile, s)[0];
			print_stack(s);
			continue;
		}
		if (!comm || strcmp(comm, "sh"))
			continue;
		root = s->loc_cnt ? mapped(&profile->locations[profile->loc_ids[s->loc +
										s->loc_cnt - 1]]) :
				    "";
		/* before its first instruction, and in the loader before its own code is there */
		if (!strcmp(root, "[kernel.kallsyms]") || strstr(root, "/ld-"))
			continue;
		of_shell += profile__values(profile, s)[0];
		before = in_shell;
		for (uint32_t j = 0; j < s->loc_cnt; j++) {
			const char *path =
				mapped(&profile->locations[profile->loc_ids[s->loc + j]]);

			if (!stat(path, &other) && other.st_ino == sh.st_ino) {
				in_shell += profile__values(profile, s)[0];
				break;
			}
		}
		if (in_shell == before)
			print_stack(s);
	}
	assert_true(of_shell > 20);
	assert_int_equal(in_shell, of_shell);
	assert_int_equal(cut, 0);
}

static bool is_one_of(int64_t pid, const pid_t *pids, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (pids[i] == pid)
			return true;
	return false;
}

static size_t live_cnt(void)
{
	size_t live = 0;

	for (size_t i = 0; i < procs__cnt(procs); i++)
		live += procs__get(procs, i)->tgid != 0;
	return live;
}

/* Starts children that compute for 10 ms each, and polls now and then. */
static void start_short(pid_t *pids, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			chain(2, 10);
			_exit(0);
		}
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
		if (i % 5 == 0)
			assert_int_equal(collect__poll(collect), 0);
	}
}

/* Where a sample was taken, and where its stack ends. */
static const struct profile_location *innermost(const struct profile_sample *s)
{
	return &profile->locations[profile->loc_ids[s->loc]];
}

static const struct profile_location *outermost(const struct profile_sample *s)
{
	return &profile->locations[profile->loc_ids[s->loc + s->loc_cnt - 1]];
}

static bool is_kernel(const struct profile_location *l)
{
	return !strcmp(mapped(l), "[kernel.kallsyms]");
}

/* Was a sample taken where the program's frames cannot be told? */
static bool is_untellable(const struct profile_sample *s)
{
	if (!s->loc_cnt)
		return false;
	/* at its very end a process has given its memory back, and with it its stack */
	if (is_kernel(outermost(s)))
		return true;
	if (!is_cut(s))
		return false;
	/* for want of room in the ring, where the whole machine is sampled */
	if (strstr(marker(outermost(s)), "no room"))
		return true;
	/* a page of the stack that is written to for the first time since the fork is not there while the
	 * kernel puts the copy in its place (wp_page_copy of mm/memory.c) */
	return is_kernel(innermost(s)) && strstr(marker(outermost(s)), "not readable");
}

/* Every sample of these processes stands in code of this program. */
static void need_named(const pid_t *pids, size_t cnt)
{
	int64_t named = 0, total = 0, before;
	char exe[512] = "";

	assert_true(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	for (size_t i = 0; i < profile->sample_cnt; i++) {
		const struct profile_sample *s = &profile->samples[i];
		int64_t num;

		(void)label(s, "pid", &num);
		/* not ours, nor those of the reader's processes, which are our children, too */
		if (!is_one_of(num, pids, cnt) || is_untellable(s))
			continue;
		total += profile__values(profile, s)[0];
		before = named;
		for (uint32_t j = 0; j < s->loc_cnt && named == before; j++)
			if (!strcmp(mapped(&profile->locations[profile->loc_ids[s->loc + j]]), exe))
				named += profile__values(profile, s)[0];
		if (named == before)
			print_stack(s);
	}
	assert_true(total > 20);
	assert_int_equal(named, total);
}

/* Processes that came and went between two polls are named all the same, and not kept for ever. */
static void test_short_lived(void **state)
{
	const struct collect_opts opts = { .label_process = true,
					   .follow = true,
					   .only_added = true };
	struct session_opts s_opts = of_named;
	uint32_t self = getpid();
	pid_t pids[20];

	(void)state;
	s_opts.follow = true;
	if (!start(&s_opts, &opts, 8))
		skip();
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	arm();
	start_short(pids, ARRAY_SIZE(pids));
	(void)finish();
	/* ourselves, and the two that read for us, or four if a path had to be walked */
	for (int i = 0; i < 6000 && live_cnt() != 3 && live_cnt() != 5; i++) {
		usleep(10000);
		assert_int_equal(collect__poll(collect), 0);
		collect__let_go(collect);
	}
	assert_true(live_cnt() == 3 || live_cnt() == 5);
	need_named(pids, ARRAY_SIZE(pids));
}

/* Of all that runs nothing is read before it is sampled; and yet children are named that have ended
 * by then, of a parent that was not. */
static void test_unread_until_sampled(void **state)
{
	const struct collect_opts opts = { .label_process = true };
	const struct session_opts s_opts = { .kinds = { true }, .frequency = HZ };
	uint32_t self = getpid(), proc;
	pid_t pids[20];

	(void)state;
	/* room for the tables of all that runs: else they are loaded again and again */
	if (!start(&s_opts, &opts, 64))
		skip();
	assert_int_equal(collect__scan(collect, NULL, 0), 0);
	proc = procs__find_live(procs, self);
	assert_int_not_equal(proc, PROCS_NONE);
	for (size_t i = 0; i < procs__cnt(procs); i++) {
		assert_int_equal(procs__peek(procs, i)->map_cnt, 0);
		assert_int_equal(procs__peek(procs, i)->known, procs__get(procs, i)->kthread);
	}
	arm();
	start_short(pids, ARRAY_SIZE(pids));
	assert_true(procs__peek(procs, proc)->known);
	(void)finish();
	need_named(pids, ARRAY_SIZE(pids));
	/* whoever asks for all mappings has them, as heap profiles do */
	for (size_t i = 0; i < procs__cnt(procs); i++)
		assert_int_equal(procs__space(procs, i)->unread.sz, 0);
}

static bool is_kept(pid_t pid)
{
	for (size_t i = 0; i < procs__cnt(procs); i++)
		if (procs__get(procs, i)->tgid == (uint32_t)pid)
			return true;
	return false;
}

/* A child that has ended. Whoever asks may still wait for it. */
static pid_t start_ended(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, pid, NULL, WEXITED | WNOWAIT), 0);
	return pid;
}

/* What has come and gone between two polls, and was not sampled, is as if it had not been. */
static void test_unseen(void **state)
{
	const struct collect_opts opts = { .label_process = true };
	const struct session_opts s_opts = { .kinds = { true }, .frequency = HZ };
	struct walked of_gone = {
		.rec = { .type = BPFPROF_REC_SAMPLE, .kind = BPFPROF_CPU, .user_cnt = 1 },
		.pc = (uintptr_t)__start_leaf_text
	};
	pid_t gone, sampled, zombie;

	(void)state;
	/* nothing is armed: nothing is sampled but what is said here */
	if (!start(&s_opts, &opts, 8))
		skip();
	assert_int_equal(collect__scan(collect, NULL, 0), 0);
	gone = start_ended();
	sampled = start_ended();
	zombie = start_ended();
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	assert_int_equal(waitpid(sampled, NULL, 0), sampled);
	of_gone.rec.proc.tgid = of_gone.rec.tid = (uint32_t)sampled;
	of_gone.rec.time_ns = util_monotonic_ns();
	assert_int_equal(collect__inject(collect, &of_gone.rec, sizeof(of_gone)), 0);
	/* later than records of the first one could still have come */
	usleep(50000);
	assert_int_equal(collect__poll(collect), 0);
	assert_false(is_kept(gone));
	assert_true(is_kept(sampled));
	assert_true(is_kept(zombie));
	assert_int_equal(waitpid(zombie, NULL, 0), zombie);
}

/* A child that ended and that nobody has waited for yet is let go of as well. */
static void test_zombie(void **state)
{
	const struct collect_opts opts = { .follow = true, .only_added = true };
	struct session_opts s_opts = of_named;
	uint32_t self = getpid();
	size_t others;
	pid_t pid;

	(void)state;
	s_opts.follow = true;
	if (!start(&s_opts, &opts, 8))
		skip();
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	others = live_cnt();
	pid = fork();
	if (!pid)
		for (;;)
			pause();
	assert_int_equal(collect__poll(collect), 0);
	assert_int_not_equal(procs__find_live(procs, pid), PROCS_NONE);
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, pid, NULL, WEXITED | WNOWAIT), 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(collect__poll(collect), 0);
	assert_int_equal(procs__find_live(procs, pid), PROCS_NONE);
	/* whoever looks at it has not done so yet */
	usleep(150000);
	for (int i = 0; i < 5; i++)
		assert_int_equal(collect__poll(collect), 0);
	assert_true(live_cnt() > others);
	/* it goes when nothing of it is to come any more */
	for (int i = 0; i < 6000 && live_cnt() > others; i++) {
		usleep(10000);
		assert_int_equal(collect__poll(collect), 0);
		collect__let_go(collect);
	}
	assert_int_equal(live_cnt(), others);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A child with a number of our choice, which is free. -1 with errno. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args = { .exit_signal = SIGCHLD,
				   .set_tid = (uintptr_t)&pid,
				   .set_tid_size = 1 };
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/*
 * A child has got the number of another that has ended, and no event has told of it yet when that one is let go of: it is
 * followed all the same. known: when the one that has ended had begun.
 */
static void number_again(bool known)
{
	const struct collect_opts opts = { .follow = true, .only_added = true };
	struct session_opts s_opts = of_named;
	uint32_t self = getpid(), proc;
	uint64_t start_ns;
	pid_t pid;

	s_opts.follow = true;
	if (!start(&s_opts, &opts, 8))
		skip();
	assert_int_equal(collect__scan(collect, &self, 1), 0);
	pid = fork();
	if (!pid)
		for (;;)
			pause();
	assert_int_equal(collect__poll(collect), 0);
	if (known)
		assert_int_equal(collect__scan(collect, NULL, 0), 0);
	proc = procs__find_live(procs, pid);
	assert_int_not_equal(proc, PROCS_NONE);
	start_ns = session__tgid_start(session, pid);
	assert_int_not_equal(start_ns, 0);
	assert_int_equal(procs__get(procs, proc)->start_ns, known ? start_ns : 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int i = 0; i < 5; i++)
		assert_int_equal(collect__poll(collect), 0);
	assert_int_equal(procs__find_live(procs, pid), PROCS_NONE);
	/* it has gone, and is let go of a while after this */
	collect__let_go(collect);
	if (fork_as(pid) != pid) {
		print_message("no child gets a number of our choice: %s\n", strerror(errno));
		skip();
	}
	for (int i = 0; i < 6000 && is_kept(pid); i++) {
		usleep(10000);
		collect__let_go(collect);
	}
	assert_false(is_kept(pid));
	assert_true(session__tgid_start(session, pid) > start_ns);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* and goes itself, though nothing was known of it */
	for (int i = 0; i < 6000 && session__tgid_start(session, pid); i++) {
		usleep(10000);
		assert_int_equal(collect__poll(collect), 0);
		collect__let_go(collect);
	}
	assert_int_equal(session__tgid_start(session, pid), 0);
}

static void test_number_again(void **state)
{
	(void)state;
	number_again(true);
}

static void test_number_again_unknown(void **state)
{
	(void)state;
	number_again(false);
}

/* ---- table memory that is too small for all that is mapped ---- */

#define FAKE_TGID 4000001 /* above pid_max: no such process, so that files are opened by path */
#define FAKE_BASE 0x100000000ULL
#define MAX_FILES 400
#define CHUNKS 2

static struct {
	char path[256];
	uint64_t start, vaddr, size;
	struct unwind_table truth;
} files[MAX_FILES];
static size_t file_cnt;
static uint64_t blob_sz;

/* Maps the code of an ELF file into the process that is not, if it has tables worth it. */
static void map_file(const char *path)
{
	const struct elf_segment *seg;
	struct proc_file f = { .kind = PROC_FILE_REGULAR, .path = (char *)path };
	uint64_t start = FAKE_BASE + file_cnt * 0x40000000ULL;
	struct elf_file *elf;
	struct stat st;
	size_t cnt;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	elf = fd < 0 ? NULL : elf_file__open(fd);
	if (elf && !fstat(fd, &st) && !unwind_build(elf, &files[file_cnt].truth)) {
		seg = elf_file__segments(elf, &cnt);
		while (cnt && !seg->exec)
			seg++, cnt--;
		if (cnt && files[file_cnt].truth.part_cnt) {
			snprintf(files[file_cnt].path, sizeof(files[0].path), "%s", path);
			files[file_cnt].start = start;
			files[file_cnt].vaddr = seg->vaddr & ~4095ULL;
			files[file_cnt].size = ((seg->vaddr & 4095) + seg->memsz + 4095) & ~4095ULL;
			f.maj = major(st.st_dev);
			f.min = minor(st.st_dev);
			f.ino = st.st_ino;
			assert_int_equal(procs__on_mmap(procs, FAKE_TGID, 1, start,
							files[file_cnt].size,
							seg->offset & ~4095ULL, &f),
					 0);
			blob_sz += files[file_cnt++].truth.blob_sz;
		} else {
			unwind_table__done(&files[file_cnt].truth);
		}
	}
	elf_file__free(elf);
	if (fd >= 0)
		close(fd);
}

/* Files of the pattern, until their tables would fill so many bytes. */
static void map_files(const char *pattern, uint64_t enough)
{
	glob_t g = { 0 };
	struct stat st;

	if (!glob(pattern, 0, NULL, &g))
		for (size_t i = 0; i < g.gl_pathc && file_cnt < MAX_FILES && blob_sz < enough; i++)
			if (!lstat(g.gl_pathv[i], &st) && S_ISREG(st.st_mode) &&
			    st.st_size < (8 << 20))
				map_file(g.gl_pathv[i]);
	globfree(&g);
}

/* Every rule that the kernel side would find by the published list is the file's own. */
static size_t check_published(uint32_t proc)
{
	const struct proc *p = procs__get(procs, proc);
	static struct unw u;
	size_t with_table = 0;

	memset(&u, 0, sizeof(u));
	assert_true(code__published(code, proc, &u.proc));
	u.owner[0] = p->tgid | (uint64_t)p->exec_id << 32;
	u.owner[1] = p->start_ns;
	for (size_t i = 0; i < file_cnt; i++) {
		bool has = false;

		for (int k = 0; k < 40; k++) {
			uint64_t rel = (uint64_t)rand() % files[i].size;
			struct bpfprof_rule want, got;

			u.exact = 1;
			u.pc = files[i].start + rel;
			assert_int_equal(unw_find_map(&u, files[i].start + rel), 0);
			if (u.map.chunk == BPFPROF_CHUNK_NOT_LOADED)
				break;
			truth_lookup(&files[i].truth, files[i].vaddr + rel, &want);
			got.cfa = BPFPROF_CFA_NONE;
			if (u.map.chunk < BPFPROF_MAX_CHUNKS) {
				unw_find_rule(&u, files[i].start + rel, &got);
				has = true;
			}
			if (want.cfa != got.cfa ||
			    (want.cfa != BPFPROF_CFA_NONE && memcmp(&want, &got, sizeof(want))))
				fail_msg("%s+%#llx has another file's rule", files[i].path,
					 (unsigned long long)(files[i].vaddr + rel));
		}
		with_table += has;
	}
	return with_table;
}

static void test_eviction(void **state)
{
	const struct collect_opts opts = { .label_process = false };
	struct code_stats stats;
	struct bpfprof_proc p;
	uint32_t proc;

	(void)state;
	if (!start(&of_named, &opts, CHUNKS))
		skip();
	srand(3);
	proc = procs__add(procs, FAKE_TGID, 1, 12345, "fake", false, 0);
	map_files("/usr/lib/*-linux-gnu*/*.so*", 2 * CHUNKS * BPFPROF_CHUNK_SZ);
	map_files("/usr/bin/*", 3 * CHUNKS * BPFPROF_CHUNK_SZ);
	if (blob_sz < 2 * CHUNKS * BPFPROF_CHUNK_SZ) {
		print_message("too few programs are installed to fill the table memory\n");
		skip();
	}
	/* as stacks ask for them: in no order, some again and again */
	for (size_t round = 0; round < 200 || round < 8 * file_cnt; round++) {
		size_t i = (size_t)rand() % (round % 2 ? file_cnt : MIN(file_cnt, 4));
		const struct proc_map *m = procs__map_at(procs, proc, files[i].start);

		assert_int_equal(code__load(code, proc, m), 0);
		assert_int_equal(code__publish(code, proc), 0);
		code__stats(code, &stats);
		assert_true(stats.bytes <= CHUNKS * BPFPROF_CHUNK_SZ);
		if (round % 10 == 0)
			assert_true(check_published(proc) >= 1);
	}
	assert_true(stats.evicted > 0);
	assert_true(check_published(proc) > 1);
	code__forget(code, proc);
	assert_false(code__published(code, proc, &p));
	for (size_t i = 0; i < file_cnt; i++)
		unwind_table__done(&files[i].truth);
	file_cnt = 0;
}

/* The number of a process that maps the C library and nothing else, of which nothing is known yet. */
static uint32_t start_with_libc(void **state)
{
	const struct collect_opts opts = { .label_process = false };
	uint32_t proc;

	teardown(state);
	if (!start(&of_named, &opts, CHUNKS))
		skip();
	proc = procs__add(procs, FAKE_TGID, 1, 12345, "fake", false, 0);
	blob_sz = 0;
	map_files("/usr/lib/*-linux-gnu*/libc.so.6", 1);
	assert_int_equal(file_cnt, 1);
	return proc;
}

/* It is over. */
static void forget_libc(uint32_t proc)
{
	code__forget(code, proc);
	unwind_table__done(&files[0].truth);
	file_cnt = 0;
}

static int table_err; /* of the next request for a table, once */

int __real_objects__unwind_table(struct objects *o, uint32_t id, struct unwind_table *ret);
int __wrap_objects__unwind_table(struct objects *o, uint32_t id, struct unwind_table *ret);

int __wrap_objects__unwind_table(struct objects *o, uint32_t id, struct unwind_table *ret)
{
	int err = table_err;

	table_err = 0;
	return err ? objects_judge(o, &o->objects[id], err) :
		     __real_objects__unwind_table(o, id, ret);
}

static int open_err;		 /* of each request for a file, or 0 */
static const char *open_path[2]; /* what each of two processes has at every path, or NULL */

int __real_procs__open(struct procs *ps, struct objects *o, uint32_t idx,
		       const struct proc_map *map);
int __wrap_procs__open(struct procs *ps, struct objects *o, uint32_t idx,
		       const struct proc_map *map);

int __wrap_procs__open(struct procs *ps, struct objects *o, uint32_t idx,
		       const struct proc_map *map)
{
	if (open_path[procs__get(ps, idx)->tgid % 2])
		return open(open_path[procs__get(ps, idx)->tgid % 2], O_RDONLY | O_CLOEXEC);
	return open_err ? open_err : __real_procs__open(ps, o, idx, map);
}

uint64_t __real_util_monotonic_ns(void);
uint64_t __wrap_util_monotonic_ns(void);

uint64_t __wrap_util_monotonic_ns(void)
{
	return __real_util_monotonic_ns() + ahead_ns;
}

static uint32_t find_object(uint32_t tgid)
{
	uint32_t proc = procs__find_live(procs, tgid);

	return code__object(code, proc, procs__map_at(procs, proc, files[0].start));
}

/* A file is not given up where it could not be asked for, through however many processes; but where each of them said no. */
static void test_file_later(void **state)
{
	static const int errs[] = { -EAGAIN, -EIO };

	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		uint32_t proc;

		proc = start_with_libc(state);
		open_err = errs[i];
		for (uint32_t k = 1; k <= 20; k++) {
			assert_int_equal(procs__on_fork(procs, FAKE_TGID + k, FAKE_TGID, 2), 0);
			assert_int_equal(find_object(FAKE_TGID + k), OBJECTS_NONE);
		}
		open_err = 0;
		assert_int_equal(find_object(FAKE_TGID) == OBJECTS_NONE, errs[i] == -EIO);
		forget_libc(proc);
	}
}

/* One that could not be had in time is tried again after a minute, after two, and so on. */
static void test_file_rests(void **state)
{
	uint32_t proc = start_with_libc(state);

	for (uint64_t minutes = 1; minutes <= 4; minutes *= 2) {
		open_err = -ETIMEDOUT;
		assert_int_equal(find_object(FAKE_TGID), OBJECTS_NONE);
		open_err = 0;
		ahead_ns += minutes * 60 * NSEC_PER_SEC - NSEC_PER_SEC;
		assert_int_equal(find_object(FAKE_TGID), OBJECTS_NONE);
		ahead_ns += NSEC_PER_SEC;
	}
	assert_int_not_equal(find_object(FAKE_TGID), OBJECTS_NONE);
	ahead_ns = 0;
	forget_libc(proc);
}

static uint8_t nibble(char c)
{
	return c >= 'a' ? c - 'a' + 10 : c - '0';
}

/* A file of the system, as an event tells of it: by its path and build id. */
static struct proc_file told_by_event(const char *path)
{
	uint32_t object = objects__add(objects, open(path, O_RDONLY | O_CLOEXEC), path);
	const char *hex = objects__info(objects, object)->build_id;
	struct proc_file f = { .kind = PROC_FILE_REGULAR, .path = (char *)path };

	for (; hex[0] && hex[1] && f.build_id_sz < sizeof(f.build_id); hex += 2)
		f.build_id[f.build_id_sz++] = nibble(hex[0]) << 4 | nibble(hex[1]);
	assert_true(f.build_id_sz > 0);
	return f;
}

/* Somebody with mounts of his own has another file at the path, with the same build id: it is his alone. One of the
 * system is everybody's, and is opened once. */
static void test_forged(void **state)
{
	const struct collect_opts opts = { .label_process = false };
	static const char path[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";
	char forged[] = "/tmp/test_collect.XXXXXX", command[128];
	uint32_t proc[2], object[2];
	struct proc_file f;

	(void)state;
	if (!start(&of_named, &opts, CHUNKS))
		skip();
	close(mkstemp(forged));
	snprintf(command, sizeof(command), "cp %s %s && chmod 666 %s", path, forged, forged);
	assert_int_equal(system(command), 0);
	f = told_by_event(path);
	for (uint32_t i = 0; i < 2; i++) {
		proc[i] = procs__add(procs, FAKE_TGID + i, 1, 12345, "fake", false, 0);
		assert_int_equal(procs__on_mmap(procs, FAKE_TGID + i, 1, 1 << 20, 1 << 20, 0, &f),
				 0);
	}
	open_path[FAKE_TGID % 2] = forged;
	open_path[(FAKE_TGID + 1) % 2] = path;
	/* however many processes have it */
	for (uint32_t k = 2; k < 30; k += 2) {
		assert_int_equal(procs__on_fork(procs, FAKE_TGID + k, FAKE_TGID, 2), 0);
		object[0] = code__object(code, procs__find_live(procs, FAKE_TGID + k),
					 procs__map_at(procs, proc[0], 1 << 20));
		assert_int_not_equal(object[0], OBJECTS_NONE);
	}
	for (int again = 0; again < 2; again++) {
		for (int i = 0; i < 2; i++) {
			object[i] =
				code__object(code, proc[i], procs__map_at(procs, proc[i], 1 << 20));
			assert_int_not_equal(object[i], OBJECTS_NONE);
		}
		assert_int_not_equal(object[0], object[1]);
		assert_false(objects__info(objects, object[0])->trusted);
		assert_true(objects__info(objects, object[1])->trusted);
		/* nobody is asked any more */
		open_path[0] = open_path[1] = "/nowhere";
	}
	/* so are the names */
	for (uint32_t i = 0; i < 2; i++) {
		struct walked w = walked_in(FAKE_TGID + i);

		w.pc = (1 << 20) + 64;
		assert_int_equal(collect__inject(collect, &w.rec, sizeof(w)), 0);
	}
	assert_int_equal(collect__cut(collect), 0);
	build_profile();
	assert_int_equal(profile->mapping_cnt, 2);
	assert_int_equal(sources[0].object + sources[1].object, object[0] + object[1]);
	assert_int_not_equal(sources[0].object, sources[1].object);
	code__forget(code, proc[0]);
	open_path[0] = open_path[1] = NULL;
	unlink(forged);
}

/* A program is written over in its place, and run again: what has run before has no names, and not those of the new one,
 * which is opened later. */
static void test_written_over(void **state)
{
	const struct collect_opts opts = { .label_process = false };
	char path[] = "/tmp/test_collect.XXXXXX", command[128];
	struct proc_file f = { .kind = PROC_FILE_REGULAR, .path = path };
	struct walked w;
	struct stat st;

	(void)state;
	if (!start(&of_named, &opts, CHUNKS))
		skip();
	close(mkstemp(path));
	assert_int_equal(stat(path, &st), 0);
	f.maj = major(st.st_dev);
	f.min = minor(st.st_dev);
	f.ino = st.st_ino;
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_not_equal(procs__add(procs, FAKE_TGID + i, 1, 12345, "fake", false, 0),
				     PROCS_NONE);
		assert_int_equal(procs__on_mmap(procs, FAKE_TGID + i, 1, 1 << 20, 1 << 20, 0, &f),
				 0);
		w = walked_in(FAKE_TGID + i);
		w.pc = (1 << 20) + 64;
		if (!i) {
			usleep(1000);
			procs__on_exit(procs, FAKE_TGID, FAKE_TGID, util_monotonic_ns());
			usleep(20000);
			snprintf(command, sizeof(command), "cat /bin/true >%s", path);
			assert_int_equal(system(command), 0);
		}
		assert_int_equal(collect__inject(collect, &w.rec, sizeof(w)), 0);
		assert_int_equal(collect__cut(collect), 0);
	}
	build_profile();
	assert_int_equal(profile->sample_cnt, 2);
	assert_int_equal(profile->mapping_cnt, 2);
	assert_int_equal(
		(sources[0].what == SYMBOLIZE_OBJECT) + (sources[1].what == SYMBOLIZE_OBJECT), 1);
	code__forget(code, procs__find_live(procs, FAKE_TGID + 1));
	unlink(path);
}

/* That no reader could be started, or that memory was short, is no property of a file: it is asked for its table
 * again. */
static void test_table_later(void **state)
{
	static const int errs[] = { -EAGAIN, -ENOMEM };

	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		const struct proc_map *m;
		uint32_t proc;
		bool loaded = false;
		uint64_t end;

		proc = start_with_libc(state);
		m = procs__map_at(procs, proc, files[0].start);
		table_err = errs[i];
		assert_int_equal(code__load(code, proc, m), errs[i] == -ENOMEM ? -ENOMEM : 0);
		assert_int_equal(table_err, 0);
		assert_int_equal(code__publish(code, proc), 0);
		assert_int_equal(check_published(proc), 0);
		end = util_monotonic_ns() + 20 * NSEC_PER_SEC;
		while (!loaded && util_monotonic_ns() < end) {
			usleep(50000);
			assert_int_equal(code__load(code, proc, m), 0);
			assert_int_equal(code__publish(code, proc), 0);
			loaded = check_published(proc) == 1;
		}
		assert_true(loaded);
		forget_libc(proc);
	}
}

/* What the kernel side knows of the C library's code. */
static uint32_t published_chunk(uint32_t proc)
{
	const struct proc *p = procs__get(procs, proc);
	static struct unw u;

	memset(&u, 0, sizeof(u));
	assert_true(code__published(code, proc, &u.proc));
	u.owner[0] = p->tgid | (uint64_t)p->exec_id << 32;
	u.owner[1] = p->start_ns;
	assert_int_equal(unw_find_map(&u, files[0].start), 0);
	return u.map.chunk;
}

/* That a file did not answer in time is none, either: no stacks are copied for a while, but then for its table. One that
 * has given it is followed by it, whatever it does later. */
static void test_table_rests(void **state)
{
	uint32_t proc = start_with_libc(state), object;
	const struct proc_map *m = procs__map_at(procs, proc, files[0].start);

	for (uint64_t minutes = 1; minutes <= 2; minutes *= 2) {
		table_err = -ETIMEDOUT;
		assert_int_equal(code__load(code, proc, m), 0);
		assert_int_equal(code__publish(code, proc), 0);
		assert_int_equal(published_chunk(proc), BPFPROF_CHUNK_NO_TABLE);
		ahead_ns += minutes * 60 * NSEC_PER_SEC - NSEC_PER_SEC;
		code__ask_again(code);
		assert_int_equal(code__load(code, proc, m), 0);
		assert_int_equal(published_chunk(proc), BPFPROF_CHUNK_NO_TABLE);
		ahead_ns += NSEC_PER_SEC;
		code__ask_again(code);
		assert_int_equal(published_chunk(proc), BPFPROF_CHUNK_NOT_LOADED);
	}
	assert_int_equal(code__load(code, proc, m), 0);
	assert_int_equal(code__publish(code, proc), 0);
	assert_int_equal(check_published(proc), 1);
	object = code__object(code, proc, m);
	objects_judge(objects, &objects->objects[object], -ETIMEDOUT);
	assert_false(objects__info(objects, object)->readable);
	assert_int_equal(procs__on_fork(procs, FAKE_TGID + 1, FAKE_TGID, 2), 0);
	assert_int_equal(code__publish(code, procs__find_live(procs, FAKE_TGID + 1)), 0);
	assert_int_equal(check_published(procs__find_live(procs, FAKE_TGID + 1)), 1);
	code__forget(code, procs__find_live(procs, FAKE_TGID + 1));
	ahead_ns = 0;
	forget_libc(proc);
}

/* Files come and go, enough of them to have what nobody needs released. */
static void churn_files(void)
{
	char path[32];
	struct proc_file f = { .kind = PROC_FILE_REGULAR, .path = path };
	uint32_t proc = procs__add(procs, FAKE_TGID + 2, 1, 12345, "churn", false, 0);

	for (uint64_t i = 1; i <= MAX_FILES + 3 * CODE_SPARE_FILES; i++) {
		snprintf(path, sizeof(path), "/memfd:%u", (unsigned int)i);
		assert_int_equal(procs__on_mmap(procs, FAKE_TGID + 2, i, i << 12, 1 << 12, 0, &f),
				 0);
	}
	assert_true(procs__space(procs, proc)->map_cnt > CODE_SPARE_FILES);
	code__forget(code, proc);
	procs__remove(procs, proc);
	code__release_unused(code);
	tables__settle(tables);
}

static void load_all(uint32_t proc)
{
	for (size_t i = 0; i < file_cnt; i++)
		assert_int_equal(code__load(code, proc, procs__map_at(procs, proc, files[i].start)),
				 0);
	assert_int_equal(code__publish(code, proc), 0);
	assert_true(check_published(proc) > 1);
}

/* Tables of files go with the last process that maps them, and those that come next, with the
 * numbers and in the places of the former ones, are their own. */
static void test_tables_go(void **state)
{
	const struct collect_opts opts = { .label_process = false };
	struct code_stats stats;
	uint32_t proc, child;

	(void)state;
	if (!start(&of_named, &opts, CHUNKS))
		skip();
	for (int round = 0; round < 2; round++) {
		proc = procs__add(procs, FAKE_TGID, 1, 12345, "fake", false, 0);
		blob_sz = 0;
		map_files(round ? "/usr/bin/*" : "/usr/lib/*-linux-gnu*/*.so*",
			  BPFPROF_CHUNK_SZ / 2);
		assert_true(file_cnt > 1);
		load_all(proc);
		assert_int_equal(procs__on_fork(procs, FAKE_TGID + 1, FAKE_TGID, 2), 0);
		child = procs__find_live(procs, FAKE_TGID + 1);
		code__forget(code, proc);
		procs__remove(procs, proc);
		churn_files();
		code__stats(code, &stats);
		assert_true(stats.bytes > 0);
		load_all(child);
		code__forget(code, child);
		procs__remove(procs, child);
		/* a moment ago they were needed */
		churn_files();
		code__stats(code, &stats);
		assert_true(stats.bytes > 0);
		churn_files();
		code__stats(code, &stats);
		assert_int_equal(stats.bytes, 0);
		assert_int_equal(stats.rows, 0);
		assert_int_equal(objects__cnt(objects), 0);
		assert_int_equal(procs__file_cnt(procs), 0);
		for (size_t i = 0; i < file_cnt; i++)
			unwind_table__done(&files[i].truth);
		file_cnt = 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_ourselves, teardown),
		cmocka_unit_test_teardown(test_prepared, teardown),
		cmocka_unit_test_teardown(test_events_lost, teardown),
		cmocka_unit_test_teardown(test_injected, teardown),
		cmocka_unit_test_teardown(test_long_walks, teardown),
		cmocka_unit_test_teardown(test_nowhere, teardown),
		cmocka_unit_test_teardown(test_epochs_wait, teardown),
		cmocka_unit_test_teardown(test_spill_bound, teardown),
		cmocka_unit_test_teardown(test_behind, teardown),
		cmocka_unit_test_teardown(test_children, teardown),
		cmocka_unit_test_teardown(test_short_lived, teardown),
		cmocka_unit_test_teardown(test_unread_until_sampled, teardown),
		cmocka_unit_test_teardown(test_unseen, teardown),
		cmocka_unit_test_teardown(test_zombie, teardown),
		cmocka_unit_test_teardown(test_number_again, teardown),
		cmocka_unit_test_teardown(test_number_again_unknown, teardown),
		cmocka_unit_test_teardown(test_eviction, teardown),
		cmocka_unit_test_teardown(test_table_later, teardown),
		cmocka_unit_test_teardown(test_file_later, teardown),
		cmocka_unit_test_teardown(test_file_rests, teardown),
		cmocka_unit_test_teardown(test_table_rests, teardown),
		cmocka_unit_test_teardown(test_forged, teardown),
		cmocka_unit_test_teardown(test_written_over, teardown),
		cmocka_unit_test_teardown(test_tables_go, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
