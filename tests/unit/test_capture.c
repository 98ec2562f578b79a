// SPDX-License-Identifier: BSD-2-Clause
/* seconds: 12 */
/*
 * Windows of one capture that overlap, of programs at work: what a window has is what adjoining
 * windows over the same time have together, stack by stack. Processes that are added and removed: a
 * window has those that were targets in it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "capture/capture.h"
#include "capture/capture_parts.h"
#include "heap/heap.h"
#include "heap/heap_probes.h"
#include "kernel/grace.h"
#include "kernel/probe_heap.h"
#include "kernel/session.h"
#include "profile/profile.h"

#define HZ 997
#define PARTS 4		/* adjoining windows */
#define NEEDED 40	/* samples of each kind in each */
#define MAX_STACKS 4096 /* in a window */
#define PATIENCE_NS (60 * NSEC_PER_SEC)

static const enum bpfprof_kind kinds_of[] = { BPFPROF_CPU, BPFPROF_HEAP };
#define NR_KINDS ARRAY_SIZE(kinds_of)

struct stack {
	uint64_t hash;
	int64_t value[2];
};

/* What windows have of a kind, together. */
struct sums {
	struct stack stacks[MAX_STACKS];
	size_t cnt;
	uint64_t seen, recorded, lost;
	int64_t held;
};

static struct capture *capture;
static struct sums parts[NR_KINDS], parts_but_first[NR_KINDS], whole[NR_KINDS], late[NR_KINDS];

/* ---- the programs ---- */

/* With the arguments of the tests' programs; python3: with what it is to do. */
static pid_t start_prog(const char *name, const char *mode)
{
	const char *progs = getenv("PROGS");
	char path[PATH_MAX];
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(path, sizeof(path), "%s/%s", progs ? progs : "build/tests/progs", name);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)!freopen("/dev/null", "w", stdout);
	if (strcmp(name, "python3"))
		execl(path, path, "300", mode, "now", NULL);
	else
		execl("/usr/bin/python3", name, "-c", mode, NULL);
	_exit(127);
}

static void stop_prog(pid_t pid)
{
	int status;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	/* it was there until now */
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Until it is the program, and no longer this one. */
static void await_exec(pid_t pid, const char *name)
{
	char path[64], *comm;
	size_t sz;
	bool there = false;

	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	for (int i = 0; !there && i < 6000; i++) {
		assert_int_equal(util_read_file(path, 64, &comm, &sz), 0);
		there = !strncmp(comm, name, strlen(name));
		free(comm);
		if (!there)
			usleep(10000);
	}
	assert_true(there);
}

/* ---- sums ---- */

static struct stack *find(struct sums *s, uint64_t hash)
{
	for (size_t i = 0; i < s->cnt; i++)
		if (s->stacks[i].hash == hash)
			return &s->stacks[i];
	assert_true(s->cnt < MAX_STACKS);
	s->stacks[s->cnt] = (struct stack){ .hash = hash };
	return &s->stacks[s->cnt++];
}

/* Of the frames and the labels, by value. */
static uint64_t hash_of(const struct profile *p, const struct profile_sample *s)
{
	uint64_t hash = 1;

	for (uint32_t i = 0; i < s->loc_cnt; i++) {
		const struct profile_location *l = &p->locations[p->loc_ids[s->loc + i]];
		uint32_t owner = l->mapping == PROFILE_NONE ? 0 : p->mappings[l->mapping].owner;

		hash = util_hash(&l->address, sizeof(l->address), hash);
		hash = util_hash(&owner, sizeof(owner), hash);
	}
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *l = &p->labels[s->label + i];
		const char *str = l->str ? strtab__get(p->strings, l->str) : "";

		hash = util_hash(str, strlen(str), hash);
		hash = util_hash(&l->num, sizeof(l->num), hash);
	}
	return hash;
}

static void add(struct capture_window *w, const struct capture_boundary *to, enum bpfprof_kind kind,
		struct sums *ret)
{
	struct capture_profile p;

	assert_int_equal(capture__profile(capture, w, to, kind, &p), 0);
	ret->held = 0;
	for (size_t i = 0; i < p.profile->sample_cnt; i++) {
		const struct profile_sample *s = &p.profile->samples[i];
		struct stack *stack = find(ret, hash_of(p.profile, s));

		stack->value[0] += profile__values(p.profile, s)[0];
		stack->value[1] += profile__values(p.profile, s)[1];
		ret->held += kind == BPFPROF_HEAP ? profile__values(p.profile, s)[2] : 0;
	}
	ret->seen += p.account.seen;
	ret->recorded += p.account.recorded;
	for (int i = 0; i < BPFPROF_NR_LOST; i++)
		ret->lost += p.account.lost[i];
	free(p.sources);
	profile__free(p.profile);
}

static int by_hash(const void *a, const void *b)
{
	const struct stack *x = a, *y = b;

	return x->hash < y->hash ? -1 : x->hash > y->hash;
}

/* Stacks that have nothing are of what is in use alone, which is no sum. */
static void sort(struct sums *s)
{
	size_t cnt = 0;

	for (size_t i = 0; i < s->cnt; i++)
		if (s->stacks[i].value[0])
			s->stacks[cnt++] = s->stacks[i];
	s->cnt = cnt;
	qsort(s->stacks, cnt, sizeof(*s->stacks), by_hash);
}

static void same(struct sums *a, struct sums *b)
{
	sort(a);
	sort(b);
	assert_int_equal(a->cnt, b->cnt);
	assert_memory_equal(a->stacks, b->stacks, a->cnt * sizeof(*a->stacks));
	assert_int_equal(a->seen, b->seen);
	assert_int_equal(a->recorded, b->recorded);
	assert_int_equal(a->lost, b->lost);
	assert_int_equal(a->seen, a->recorded + a->lost);
	assert_int_equal(a->held, b->held);
}

/* ---- at work ---- */

static bool recorded_enough(const uint64_t before[NR_KINDS])
{
	for (size_t i = 0; i < NR_KINDS; i++)
		if (capture__recorded(capture, kinds_of[i]) - before[i] < NEEDED)
			return false;
	return true;
}

static void work(void)
{
	struct pollfd p = { .fd = capture__fd(capture), .events = POLLIN };
	uint64_t before[NR_KINDS], end = util_monotonic_ns() + PATIENCE_NS;

	for (size_t i = 0; i < NR_KINDS; i++)
		before[i] = capture__recorded(capture, kinds_of[i]);
	while (!recorded_enough(before)) {
		assert_true(util_monotonic_ns() < end);
		(void)poll(&p, 1, 20);
		assert_int_equal(capture__poll(capture), 0);
	}
}

static bool open_with_budget(const pid_t pids[2], uint64_t heap_rate, double heap_budget)
{
	const uint32_t ids[2] = { pids[0], pids[1] };
	struct capture_opts o = { .pids = ids,
				  .pid_cnt = pids[1] ? 2 : 1,
				  .thread_labels = true,
				  .kinds_given = true,
				  .frequency = HZ,
				  .heap_rate = heap_rate,
				  .heap_budget = heap_budget,
				  .wait_budget = 1 };

	if (geteuid() || access("/sys/kernel/btf/vmlinux", R_OK))
		return false;
	for (size_t i = 0; i < NR_KINDS; i++)
		o.kinds[kinds_of[i]] = true;
	assert_int_equal(capture__open(&o, &capture), 0);
	assert_true(capture__has_process(capture, ids[0]));
	assert_int_equal(capture__has_process(capture, ids[1]), pids[1] != 0);
	return true;
}

static bool open_capture(const pid_t pids[2], uint64_t heap_rate)
{
	return open_with_budget(pids, heap_rate, 1);
}

/* What a window that ends here has of all kinds. */
static void add_all(struct capture_window *w, const struct capture_boundary *to, struct sums *ret)
{
	for (size_t i = 0; i < NR_KINDS; i++)
		add(w, to, kinds_of[i], &ret[i]);
}

/* The end of a part: a boundary, or, the last one, of the capture. */
static struct capture_boundary end_part(bool last)
{
	struct capture_boundary b;

	if (last) {
		assert_int_equal(capture__stop(capture, &b), 0);
		return b;
	}
	assert_int_equal(capture__cut(capture), 0);
	assert_int_equal(capture__complete(capture), 0);
	assert_true(capture__has_boundary(capture));
	assert_int_equal(capture__settle(capture, &b), 0);
	assert_false(capture__has_boundary(capture));
	return b;
}

/* A window over all parts, one from the second on, and one of each. */
static void record_parts(void)
{
	struct capture_window *all = capture__open_window(capture, NULL), *later = NULL;
	struct capture_window *part = capture__open_window(capture, NULL);
	uint64_t start_ns;

	assert_true(all && part);
	assert_int_equal(capture__start(capture), 0);
	start_ns = capture__start_ns(capture);
	for (int i = 0; i < PARTS; i++) {
		struct capture_boundary b;

		assert_int_equal(capture__window_start_ns(capture, part), start_ns);
		work();
		b = end_part(i == PARTS - 1);
		assert_true(b.ns > start_ns);
		start_ns = b.ns;
		add_all(part, &b, parts);
		if (i)
			add_all(part, &b, parts_but_first);
		if (i == PARTS - 1) {
			add_all(all, &b, whole);
			add_all(later, &b, late);
		}
		capture__close_window(capture, part);
		part = capture__open_window(capture, &b);
		if (!i)
			later = capture__open_window(capture, &b);
		assert_true(part && later);
		capture_boundary__done(&b);
	}
	capture__close_window(capture, part);
	capture__close_window(capture, later);
	capture__close_window(capture, all);
}

static void test_overlapping(void **state)
{
	const pid_t pids[2] = { start_prog("busy", "plain"), start_prog("alloc", "loop") };

	(void)state;
	assert_true(pids[0] > 0 && pids[1] > 0);
	await_exec(pids[0], "busy");
	await_exec(pids[1], "alloc");
	if (!open_capture(pids, 1)) {
		print_message("needs root, and the kernel's types\n");
		stop_prog(pids[0]);
		stop_prog(pids[1]);
		skip();
	}
	record_parts();
	for (size_t i = 0; i < NR_KINDS; i++) {
		assert_true(whole[i].recorded >= PARTS * NEEDED);
		assert_true(late[i].recorded >= (PARTS - 1) * NEEDED);
		same(&whole[i], &parts[i]);
		same(&late[i], &parts_but_first[i]);
	}
	capture__close(capture);
	stop_prog(pids[0]);
	stop_prog(pids[1]);
}

/* ---- processes that come and go ---- */

static const char *const names[] = { "python3", "busy" };

/* It allocates all the time, and keeps each block for seconds: what is found in use when a window ends has been so for longer than a
 * busy machine takes to look. */
#define ALLOCATES                               \
	"import collections\n"                  \
	"k = collections.deque(maxlen=20000)\n" \
	"while 1:\n"                            \
	"    k.append(bytes(5000))\n"           \
	"    for i in range(5000): pass\n"

/* Samples of a kind in a window, by thread name, and bytes in use. */
struct counts {
	int64_t samples[ARRAY_SIZE(names)], held;
};

static const char *thread_of(const struct profile *p, const struct profile_sample *s)
{
	for (uint32_t i = 0; i < s->label_cnt; i++) {
		const struct profile_label *l = &p->labels[s->label + i];

		if (!strcmp(strtab__get(p->strings, l->key), "thread"))
			return strtab__get(p->strings, l->str);
	}
	fail_msg("a sample has no thread");
	return NULL;
}

static struct counts count(struct capture_window *w, const struct capture_boundary *to,
			   enum bpfprof_kind kind)
{
	struct counts ret = { 0 };
	struct capture_profile p;

	assert_int_equal(capture__profile(capture, w, to, kind, &p), 0);
	for (size_t i = 0; i < p.profile->sample_cnt; i++) {
		const struct profile_sample *s = &p.profile->samples[i];
		const char *thread = thread_of(p.profile, s);
		size_t name = 0;

		while (strcmp(names[name], thread)) {
			name++;
			assert_true(name < ARRAY_SIZE(names));
		}
		ret.samples[name] += profile__values(p.profile, s)[0];
		/* what is in use is not known of a heap that was given up */
		ret.held += p.profile->value_cnt == 4 ? profile__values(p.profile, s)[3] : 0;
	}
	assert_int_equal(p.account.seen, p.account.recorded);
	free(p.sources);
	profile__free(p.profile);
	return ret;
}

/* Records until there is enough of the kinds that have some, and checks who is in it. */
static void check_part(struct capture_window **w, bool alloc, bool busy)
{
	struct pollfd p = { .fd = capture__fd(capture), .events = POLLIN };
	uint64_t end = util_monotonic_ns() + PATIENCE_NS;
	uint64_t cpu = capture__recorded(capture, BPFPROF_CPU) + 4 * NEEDED;
	uint64_t heap = capture__recorded(capture, BPFPROF_HEAP) + (alloc ? NEEDED : 0);
	struct counts cpu_counts, heap_counts;
	struct capture_boundary b;

	while (capture__recorded(capture, BPFPROF_CPU) < cpu ||
	       capture__recorded(capture, BPFPROF_HEAP) < heap) {
		assert_true(util_monotonic_ns() < end);
		(void)poll(&p, 1, 20);
		assert_int_equal(capture__poll(capture), 0);
	}
	b = end_part(false);
	cpu_counts = count(*w, &b, BPFPROF_CPU);
	heap_counts = count(*w, &b, BPFPROF_HEAP);
	assert_int_equal(cpu_counts.samples[0] > 0, alloc);
	assert_int_equal(cpu_counts.samples[1] > 0, busy);
	assert_int_equal(heap_counts.samples[0] > 0, alloc);
	assert_int_equal(heap_counts.samples[1], 0);
	assert_int_equal(heap_counts.held > 0, alloc);
	capture__close_window(capture, *w);
	*w = capture__open_window(capture, &b);
	assert_non_null(*w);
	capture_boundary__done(&b);
}

static void add_target(pid_t pid)
{
	int err;

	while ((err = capture__add(capture, pid)) == -EAGAIN) {
		usleep(10000);
		assert_int_equal(capture__poll(capture), 0);
	}
	assert_int_equal(err, 0);
	assert_true(capture__has_process(capture, pid));
}

/* Its samples that are on the way belong to the window in which it was removed. */
static void remove_target(pid_t pid, struct capture_window **w)
{
	struct capture_boundary b;

	assert_int_equal(capture__remove(capture, pid), 0);
	assert_int_equal(capture__remove(capture, pid), -ESRCH);
	assert_int_equal(capture__add(capture, pid), -EAGAIN);
	assert_false(capture__has_process(capture, pid));
	b = end_part(false);
	capture__close_window(capture, *w);
	*w = capture__open_window(capture, &b);
	capture_boundary__done(&b);
}

static void test_come_and_go(void **state)
{
	const pid_t busy = start_prog("busy", "plain"), alloc = start_prog("python3", ALLOCATES);
	const pid_t first[2] = { busy, 0 };
	struct capture_window *w;
	struct capture_boundary b;

	(void)state;
	await_exec(busy, "busy");
	await_exec(alloc, "python3");
	if (!open_capture(first, 4096)) {
		stop_prog(busy);
		stop_prog(alloc);
		skip();
	}
	w = capture__open_window(capture, NULL);
	assert_int_equal(capture__start(capture), 0);
	check_part(&w, false, true);
	for (int i = 0; i < 2; i++) {
		add_target(alloc);
		check_part(&w, true, true);
		remove_target(busy, &w);
		check_part(&w, true, false);
		add_target(busy);
		check_part(&w, true, true);
		remove_target(alloc, &w);
		check_part(&w, false, true);
	}
	assert_int_equal(capture__add(capture, 0x7ffffff0), -ESRCH);
	assert_int_equal(capture__stop(capture, &b), 0);
	capture_boundary__done(&b);
	capture__close_window(capture, w);
	capture__close(capture);
	stop_prog(busy);
	stop_prog(alloc);
}

/* ---- the heap is given up ---- */

/* Until there are so many samples more of a kind. Returns how many there are of the heap. */
static uint64_t record_more(enum bpfprof_kind kind, uint64_t cnt)
{
	struct pollfd p = { .fd = capture__fd(capture), .events = POLLIN };
	uint64_t end = util_monotonic_ns() + PATIENCE_NS;
	uint64_t enough = capture__recorded(capture, kind) + cnt;

	while (capture__recorded(capture, kind) < enough) {
		assert_true(util_monotonic_ns() < end);
		(void)poll(&p, 1, 20);
		assert_int_equal(capture__poll(capture), 0);
	}
	return capture__recorded(capture, BPFPROF_HEAP);
}

/* What the window has of the heap, which ends here. Another one begins. */
static struct counts end_heap_window(struct capture_window **w)
{
	struct capture_boundary b = end_part(false);
	struct counts ret = count(*w, &b, BPFPROF_HEAP);

	capture__close_window(capture, *w);
	*w = capture__open_window(capture, &b);
	assert_non_null(*w);
	capture_boundary__done(&b);
	return ret;
}

static void test_heap_is_given_up(void **state)
{
	const struct capture_limits all = { .cpu_every = 1 },
				    less = { .cpu_every = 1, .kinds_off = 1U << BPFPROF_HEAP };
	const pid_t alloc = start_prog("python3", ALLOCATES), pids[2] = { alloc, 0 };
	struct capture_window *w;
	struct capture_boundary b;
	struct counts heap;
	uint64_t recorded;

	(void)state;
	await_exec(alloc, "python3");
	if (!open_capture(pids, 4096)) {
		stop_prog(alloc);
		skip();
	}
	w = capture__open_window(capture, NULL);
	assert_int_equal(capture__start(capture), 0);
	for (int i = 0; i < 2; i++) {
		record_more(BPFPROF_HEAP, NEEDED);
		heap = end_heap_window(&w);
		assert_true(heap.samples[0] >= NEEDED);
		/* what was freed meanwhile is not known */
		assert_int_equal(heap.held > 0, !i);
		capture__limit(capture, &less);
		recorded = capture__recorded(capture, BPFPROF_HEAP);
		(void)end_heap_window(&w);
		assert_int_equal(record_more(BPFPROF_CPU, 2 * NEEDED), recorded);
		heap = end_heap_window(&w);
		assert_int_equal(heap.samples[0], 0);
		capture__limit(capture, &all);
	}
	capture__limit(capture, &less);
	assert_int_equal(capture__stop(capture, &b), 0);
	capture_boundary__done(&b);
	capture__close_window(capture, w);
	capture__close(capture);
	stop_prog(alloc);
}

/* ---- the heap's slices ---- */

static struct {
	bool watched, on;
	bool looked_at; /* whether it is over */
	size_t cnt;
	size_t looks_between; /* after children, and those that have ended, while nothing is attached */
} slices;

void __real_heap_probes__attach(struct heap_probes *hp, enum heap_probes_mode mode);
void __wrap_heap_probes__attach(struct heap_probes *hp, enum heap_probes_mode mode);
void __wrap_heap_probes__attach(struct heap_probes *hp, enum heap_probes_mode mode)
{
	slices.on = slices.watched;
	slices.cnt++;
	__real_heap_probes__attach(hp, mode);
}

int __real_heap_probes__detach(struct heap_probes *hp);
int __wrap_heap_probes__detach(struct heap_probes *hp);
int __wrap_heap_probes__detach(struct heap_probes *hp)
{
	slices.on = false;
	return __real_heap_probes__detach(hp);
}

void __real_heap_probes__clean_children(struct heap_probes *hp, const struct target_forks *forks);
void __wrap_heap_probes__clean_children(struct heap_probes *hp, const struct target_forks *forks);
void __wrap_heap_probes__clean_children(struct heap_probes *hp, const struct target_forks *forks)
{
	assert_false(slices.on);
	slices.looks_between += slices.cnt > 0;
	__real_heap_probes__clean_children(hp, forks);
}

static size_t drops, live_reads;

size_t __real_heap_probes__drop(struct heap_probes *hp, bool (*probed)(void *ctx, pid_t pid),
				void *ctx);
size_t __wrap_heap_probes__drop(struct heap_probes *hp, bool (*probed)(void *ctx, pid_t pid),
				void *ctx);
size_t __wrap_heap_probes__drop(struct heap_probes *hp, bool (*probed)(void *ctx, pid_t pid),
				void *ctx)
{
	assert_false(slices.on);
	drops++;
	return __real_heap_probes__drop(hp, probed, ctx);
}

int __real_probe_heap__live(struct session *s, struct live_entry **ret, size_t *ret_cnt);
int __wrap_probe_heap__live(struct session *s, struct live_entry **ret, size_t *ret_cnt);
int __wrap_probe_heap__live(struct session *s, struct live_entry **ret, size_t *ret_cnt)
{
	live_reads++;
	return __real_probe_heap__live(s, ret, ret_cnt);
}

int __real_heap__end_slice(struct heap *h);
int __wrap_heap__end_slice(struct heap *h);
int __wrap_heap__end_slice(struct heap *h)
{
	slices.looked_at = true;
	return __real_heap__end_slice(h);
}

int __real_heap__update(struct heap *h);
int __wrap_heap__update(struct heap *h);
int __wrap_heap__update(struct heap *h)
{
	assert_true(slices.looked_at || !slices.watched);
	slices.looked_at = false;
	return __real_heap__update(h);
}

/* What takes as long as to detach is not done in a slice, nor at its end before the slice is over: it would
 * be several times as long. */
static void test_slices(void **state)
{
	const pid_t alloc = start_prog("alloc", "hammer"), pids[2] = { alloc, 0 };
	struct pollfd p = { .events = POLLIN };
	uint64_t end = util_monotonic_ns() + PATIENCE_NS;

	(void)state;
	await_exec(alloc, "alloc");
	if (!open_with_budget(pids, 4096, 0.2)) {
		stop_prog(alloc);
		skip();
	}
	p.fd = capture__fd(capture);
	assert_int_equal(capture__start(capture), 0);
	slices.cnt = slices.looks_between = 0;
	slices.watched = true;
	while (slices.cnt < 5 || !slices.looks_between) {
		assert_true(util_monotonic_ns() < end);
		(void)poll(&p, 1, 5);
		assert_int_equal(capture__poll(capture), 0);
	}
	slices.watched = slices.on = false;
	capture__close(capture);
	stop_prog(alloc);
}

/* Of several that are removed in a row, the probes are taken off at once, and what they hold is looked for once, later; nothing
 * of it is in use from the next boundary on, whether it was looked for by then or not. */
static void removed_together(bool polled)
{
	const pid_t pids[2] = { start_prog("python3", ALLOCATES),
				start_prog("python3", ALLOCATES) };
	struct capture_window *w;
	struct counts heap;

	for (int i = 0; i < 2; i++)
		await_exec(pids[i], "python3");
	if (!open_capture(pids, 4096)) {
		stop_prog(pids[0]);
		stop_prog(pids[1]);
		skip();
	}
	w = capture__open_window(capture, NULL);
	assert_int_equal(capture__start(capture), 0);
	record_more(BPFPROF_HEAP, NEEDED);
	assert_true(end_heap_window(&w).held > 0);
	assert_int_equal(capture__poll(capture), 0);
	drops = live_reads = 0;
	for (int i = 0; i < 2; i++)
		assert_int_equal(capture__remove(capture, pids[i]), 0);
	assert_int_equal(drops, 0);
	assert_int_equal(live_reads, 0);
	if (polled) {
		assert_int_equal(capture__poll(capture), 0);
		assert_int_equal(drops, 1);
		assert_int_equal(live_reads, 1);
	}
	heap = end_heap_window(&w);
	assert_int_equal(heap.held, 0);
	capture__close_window(capture, w);
	capture__close(capture);
	stop_prog(pids[0]);
	stop_prog(pids[1]);
}

static void test_removed_together(void **state)
{
	(void)state;
	removed_together(true);
	removed_together(false);
}

/* ---- descriptors that cannot be read ---- */

static int fds_err; /* of the next start; 0: none is made up */

int __real_probe_fds__start(struct session *s);
int __wrap_probe_fds__start(struct session *s);
int __wrap_probe_fds__start(struct session *s)
{
	return fds_err ? fds_err : __real_probe_fds__start(s);
}

static int start_with_fds(bool cpu)
{
	const uint32_t self = getpid();
	struct capture_opts o = { .pids = &self,
				  .pid_cnt = 1,
				  .kinds_given = true,
				  .kinds = { [BPFPROF_CPU] = cpu, [BPFPROF_FDS] = true },
				  .frequency = HZ };

	assert_int_equal(capture__open(&o, &capture), 0);
	fds_err = -ETIMEDOUT;
	return capture__start(capture);
}

/* How many there are others decide: where it takes too long to read them, the other kinds are recorded, and who
 * asks for this one is not told that nothing is open. */
static void test_fds_unread(void **state)
{
	struct capture_profile p;
	struct capture_window *w;
	struct capture_boundary b;

	(void)state;
	if (geteuid() || access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	assert_int_equal(start_with_fds(false), -ETIMEDOUT);
	capture__close(capture);
	assert_int_equal(start_with_fds(true), 0);
	assert_true(capture__kinds(capture)[BPFPROF_CPU]);
	assert_false(capture__kinds(capture)[BPFPROF_FDS]);
	w = capture__open_window(capture, NULL);
	assert_int_equal(capture__stop(capture, &b), 0);
	assert_int_equal(capture__profile(capture, w, &b, BPFPROF_FDS, &p), -ETIMEDOUT);
	assert_int_equal(capture__profile(capture, w, &b, BPFPROF_CPU, &p), 0);
	profile__free(p.profile);
	free(p.sources);
	capture_boundary__done(&b);
	capture__close_window(capture, w);
	capture__close(capture);
	fds_err = 0;
}

/* ---- windows by the clock ---- */

/* Boundaries are planned for multiples of the length since the epoch, and an offset. */

static const uint64_t clock_len = 300000000, clock_offset = 123456789;
static int64_t clock_set_ns; /* by so much, if anybody asks */

int64_t __real_util_realtime_shift_ns(void);
int64_t __wrap_util_realtime_shift_ns(void);
int64_t __wrap_util_realtime_shift_ns(void)
{
	return __real_util_realtime_shift_ns() + clock_set_ns;
}

/* The next boundary, and when it was planned for. */
static uint64_t pass_boundary(struct capture_boundary *ret)
{
	uint64_t planned = 0, next;

	while (!capture__has_boundary(capture)) {
		struct pollfd fd = { .fd = capture__fd(capture), .events = POLLIN };

		/* not known any more once it is passed, which the poll before may have seen */
		next = capture__next_ns(capture);
		if (next && next != UINT64_MAX)
			planned = next;
		(void)poll(&fd, 1, 5);
		assert_int_equal(capture__poll(capture), 0);
	}
	assert_int_equal(capture__settle(capture, ret), 0);
	assert_true(ret->ns >= planned);
	if (!planned)
		planned = ret->ns -
			  (uint64_t)((int64_t)ret->ns + ret->realtime_shift_ns - clock_offset) %
				  clock_len;
	return planned;
}

/* When a window began that ends at *to, by the clock. Closes it. */
static int64_t time_of(struct capture_window *w, const struct capture_boundary *to)
{
	struct capture_profile p;
	int64_t ret;

	assert_int_equal(capture__profile(capture, w, to, BPFPROF_CPU, &p), 0);
	ret = p.profile->time_ns;
	profile__free(p.profile);
	free(p.sources);
	capture__close_window(capture, w);
	return ret;
}

/* With windows of clock_len. Returns the first one. */
static struct capture_window *start_by_the_clock(void)
{
	const uint32_t self = getpid();
	struct capture_opts o = { .pids = &self,
				  .pid_cnt = 1,
				  .kinds_given = true,
				  .kinds[BPFPROF_CPU] = true,
				  .frequency = HZ,
				  .window_ns = clock_len,
				  .windows_by_clock = true,
				  .window_offset_ns = clock_offset };
	struct capture_window *w;

	assert_int_equal(capture__open(&o, &capture), 0);
	w = capture__open_window(capture, NULL);
	assert_non_null(w);
	assert_int_equal(capture__start(capture), 0);
	return w;
}

static void test_by_the_clock(void **state)
{
	struct capture_window *w;
	uint64_t planned[3];

	(void)state;
	if (geteuid() || access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	w = start_by_the_clock();
	for (size_t i = 0; i < ARRAY_SIZE(planned); i++) {
		struct capture_boundary b;
		int64_t time_ns;

		planned[i] = pass_boundary(&b);
		time_ns = time_of(w, &b);
		if (!i) {
			/* the first one is shorter; the profile has the time by the clock */
			assert_true(planned[0] > capture__start_ns(capture));
			assert_true(planned[0] - capture__start_ns(capture) <= clock_len);
			assert_int_equal((time_ns + planned[0] - capture__start_ns(capture)) %
						 clock_len,
					 clock_offset);
		} else {
			assert_int_equal((planned[i] - planned[0]) % clock_len, 0);
			assert_true(planned[i] > planned[i - 1]);
		}
		w = capture__open_window(capture, &b);
		assert_non_null(w);
		capture_boundary__done(&b);
	}
	capture__close_window(capture, w);
	capture__close(capture);
}

/* From the boundary on that follows, times and boundaries are by the new clock. */
static void test_clock_is_set(void **state)
{
	const int64_t by[] = { 3600000100000000, -7200000050000000 };
	struct capture_window *w;
	struct capture_boundary b;
	int64_t before;

	(void)state;
	if (geteuid() || access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	w = start_by_the_clock();
	(void)pass_boundary(&b);
	before = time_of(w, &b) - (int64_t)capture__start_ns(capture);
	for (size_t i = 0; i < ARRAY_SIZE(by); i++) {
		uint64_t begin = b.ns, planned;
		int64_t after;

		w = capture__open_window(capture, &b);
		assert_non_null(w);
		capture_boundary__done(&b);
		clock_set_ns += by[i];
		(void)pass_boundary(&b);
		assert_int_equal(time_of(w, &b) - (int64_t)begin, before);
		begin = b.ns;
		w = capture__open_window(capture, &b);
		assert_non_null(w);
		capture_boundary__done(&b);
		planned = pass_boundary(&b);
		after = time_of(w, &b) - (int64_t)begin;
		assert_true(llabs(after - before - by[i]) < 10000000);
		assert_int_equal((planned + after) % clock_len, clock_offset);
		before = after;
	}
	capture_boundary__done(&b);
	capture__close(capture);
	clock_set_ns = 0;
}

static bool is_readable(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, timeout_ms) == 1;
}

/* A grace period wakes the capture if it ends an epoch. One that somebody else asked for does not, though
 * its answer lies there unread: the loop would turn until it is read. */
static void test_grace_periods(void **state)
{
	struct capture_window *w;
	struct capture_boundary b;
	struct grace *grace;
	int turns = 0;

	(void)state;
	if (geteuid() || access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	w = start_by_the_clock();
	grace = session__grace(capture->session);
	(void)pass_boundary(&b);
	capture_boundary__done(&b);
	assert_int_equal(capture__poll(capture), 0);
	(void)grace__ask(grace);
	assert_true(is_readable(grace__fd(grace), PATIENCE_NS / 1000000));
	/* ticks and samples may wake it, but not each time */
	while (is_readable(capture__fd(capture), 0)) {
		assert_true(++turns < 1000);
		assert_int_equal(capture__poll(capture), 0);
	}
	if (!capture->boundary_ending) {
		assert_int_equal(capture__cut(capture), 0);
		assert_true(is_readable(grace__fd(grace), PATIENCE_NS / 1000000));
		assert_true(is_readable(capture__fd(capture), 0));
	}
	capture__close_window(capture, w);
	capture__close(capture);
}

/* Nor is one forgotten that ends an epoch whose boundary was passed while something else was done. */
static void test_boundary_meanwhile(void **state)
{
	struct capture_window *w;
	struct grace *grace;
	uint64_t end;

	(void)state;
	if (geteuid() || access("/sys/kernel/btf/vmlinux", R_OK))
		skip();
	w = start_by_the_clock();
	grace = session__grace(capture->session);
	end = util_monotonic_ns() + PATIENCE_NS;
	for (; !capture->boundary_ending; capture__meanwhile(capture))
		assert_true(util_monotonic_ns() < end);
	assert_true(is_readable(grace__fd(grace), PATIENCE_NS / 1000000));
	assert_true(is_readable(capture__fd(capture), 0));
	/* and if another one's answer is waited for, and its own is read with it */
	assert_int_equal(grace__passed(grace, grace__ask(grace), true), 1);
	assert_int_equal(capture__next_ns(capture), 0);
	capture__close_window(capture, w);
	capture__close(capture);
}

/* Where all of it has a bound, a quarter of that, but no more than without one, nor too little to work with. */
static void test_share(void **state)
{
	(void)state;
	assert_int_equal(capture_share(0, 64U << 20), 64U << 20);
	assert_int_equal(capture_share(100U << 20, 64U << 20), 25U << 20);
	assert_int_equal(capture_share(1ULL << 40, 64U << 20), 64U << 20);
	assert_int_equal(capture_share(1U << 20, 64U << 20), 4U << 20);
	assert_int_equal(capture_share(1U << 20, 2U << 20), 2U << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_overlapping),
		cmocka_unit_test(test_come_and_go),
		cmocka_unit_test(test_heap_is_given_up),
		cmocka_unit_test(test_by_the_clock),
		cmocka_unit_test(test_clock_is_set),
		cmocka_unit_test(test_grace_periods),
		cmocka_unit_test(test_boundary_meanwhile),
		cmocka_unit_test(test_share),
		cmocka_unit_test(test_slices),
		cmocka_unit_test(test_removed_together),
		cmocka_unit_test(test_fds_unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
