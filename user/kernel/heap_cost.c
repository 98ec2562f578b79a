// SPDX-License-Identifier: BSD-2-Clause
/* What hits of the heap's probes cost. */
#include "kernel/heap_cost.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/probe_heap.h"
#include "kernel/session.h"

/* Twice as many spread as much: a machine that is shared changes its speed from one run to the next. */
#define ROUNDS 11
#define LINE 64 /* bytes of a cache line */
/* of the second level cache: where it is not told, at least, at most, and rounded down to */
#define CACHE_SZ (1 << 20)
#define MIN_CACHE_SZ (1 << 16)
#define MAX_CACHE_SZ (2 << 20)
#define CACHE_UNIT (LINE << HEAP_COST_POINTS)
#define OTHERS 4 /* links for another process */
/* Measuring takes half a second. Links take as long as the slowest fork on the machine and a grace
 * period of RCU, which processes of low priority can draw out. */
#define WAIT_MS 10000

/* ---- the functions that are probed ---- */

typedef uint64_t call(uint64_t ptr, uint64_t size);

/* A push, which the kernel emulates, as at the entry of most functions; pop, return 0. */
static const uint8_t function[] = { 0x55, 0x5d, 0x31, 0xc0, 0xc3 };
#define FUNCTION_SZ 16 /* with what is left free behind it */

/* Allocations fail, or nothing is asked for in place of a pointer, which frees: that is never
 * recorded. */
static const struct row {
	uint64_t cookie, size;
	enum probe_heap_group group;
	enum bpfprof_hit hit;
} rows[] = {
	{ BPFPROF_ALLOC_FREE, 0, PROBE_HEAP_FREE, BPFPROF_HIT_FREE },
	{ BPFPROF_ALLOC_REALLOC | BPFPROF_COOKIE_BEGIN, 0, PROBE_HEAP_BEGIN, BPFPROF_HIT_BEGIN },
	{ BPFPROF_ALLOC_CALLOC, 1, PROBE_HEAP_ALLOC, BPFPROF_HIT_ENTRY },
	{ BPFPROF_ALLOC_CALLOC | BPFPROF_COOKIE_WRAPPER, 1, PROBE_HEAP_ALLOC, BPFPROF_HIT_RETURN },
};
#define NR_ROWS ARRAY_SIZE(rows)

/* In a file of their own, where nobody else has links: one for each row, and one that is not
 * probed. Returns a descriptor, or -errno. */
static int make_functions(call *ret[NR_ROWS + 1])
{
	uint8_t image[(NR_ROWS + 1) * FUNCTION_SZ] = { 0 };
	int fd = memfd_create("bpfprof-heap-cost", MFD_CLOEXEC);
	char *at;

	if (fd < 0)
		return -errno;
	for (size_t i = 0; i <= NR_ROWS; i++)
		memcpy(image + i * FUNCTION_SZ, function, sizeof(function));
	if (write(fd, image, sizeof(image)) != sizeof(image))
		return -EIO;
	at = mmap(NULL, sizeof(image), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i <= NR_ROWS; i++)
		ret[i] = (call *)(uintptr_t)(at + i * FUNCTION_SZ);
	return fd;
}

static void set_points(struct uprobe_point points[NR_ROWS], struct probe_heap_points *ret)
{
	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; i < NR_ROWS; i++) {
		points[i] = (struct uprobe_point){ .offset = i * FUNCTION_SZ,
						   .cookie = rows[i].cookie };
		if (!ret->cnt[rows[i].group]++)
			ret->points[rows[i].group] = &points[i];
	}
}

/* ---- what comes between two calls ---- */

struct filler {
	uint8_t *data, *code;
	size_t sz; /* of each */
};

/* The code is a jump from each cache line to the next one, and a return. Where nobody may make
 * code, there is data only. */
static int fill(struct filler *f)
{
	long sz = sysconf(_SC_LEVEL2_CACHE_SIZE);

	if (sz <= 0)
		sz = CACHE_SZ;
	f->sz = MIN(MAX(sz, MIN_CACHE_SZ), MAX_CACHE_SZ) / CACHE_UNIT * CACHE_UNIT;
	f->data = mmap(NULL, 2 * f->sz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (f->data == MAP_FAILED)
		return -errno;
	f->code = f->data + f->sz;
	for (size_t at = 0; at < f->sz; at += LINE) {
		f->code[at] = 0xeb; /* jmp rel8 */
		f->code[at + 1] = LINE - 2;
	}
	f->code[f->sz - LINE] = 0xc3; /* ret */
	if (mprotect(f->code, f->sz, PROT_READ | PROT_EXEC))
		f->code = NULL;
	return 0;
}

/* The last sz bytes of each. */
static void pass(const struct filler *f, size_t sz)
{
	size_t from = f->sz - sz;

	for (size_t at = from; at < f->sz; at += LINE)
		((volatile uint8_t *)f->data)[at]++;
	if (f->code && sz)
		((void (*)(void))(uintptr_t)(f->code + from))();
}

/* ---- measuring ---- */

/* One of a call by itself, and those of the rows. */
struct times {
	uint64_t pass, bare, rows[NR_ROWS];
};

/*
 * A call by a caller's caller, which is kept from being made a jump: behind a return that is
 * probed, the processor takes theirs for wrong places, too.
 */
static __attribute__((noinline)) uint64_t call_it(call *f, uint64_t size)
{
	return f(1, size) | 1;
}

static __attribute__((noinline)) uint64_t have_called(call *f, uint64_t size)
{
	return call_it(f, size) + 1;
}

static uint64_t call_ns(const struct filler *filler, size_t sz, call *f, uint64_t size,
			uint64_t *ret_pass)
{
	uint64_t began, before;

	(void)have_called(f, size);
	began = util_monotonic_ns();
	pass(filler, sz);
	before = util_monotonic_ns();
	(void)have_called(f, size);
	*ret_pass = before - began;
	return util_monotonic_ns() - before;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Of a field of all rounds: the lower quartile, since what else the machine does only adds. */
static double usual(const struct times *rounds, size_t field)
{
	uint64_t sorted[ROUNDS];

	for (int i = 0; i < ROUNDS; i++)
		memcpy(&sorted[i], (const char *)&rounds[i] + field, sizeof(sorted[i]));
	qsort(sorted, ROUNDS, sizeof(*sorted), compare);
	return sorted[ROUNDS / 4];
}

/* Is there still somebody to read what is written to a pipe? */
static bool is_awaited(int fd)
{
	struct pollfd p = { .fd = fd };

	return !poll(&p, 1, 0);
}

/* What each row's call takes more than a bare one, by what came before it. In rounds of everything,
 * for a machine that is shared with others may be slow for some ms. -EPIPE as soon as nobody waits
 * for the figures: from then on hits count as the target's. */
static int measure_points(const struct filler *filler, call *const calls[NR_ROWS + 1], int pipe_fd,
			  struct heap_cost_point ret[])
{
	static struct times times[HEAP_COST_POINTS][ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		if (!is_awaited(pipe_fd))
			return -EPIPE;
		for (int i = 0; i < HEAP_COST_POINTS; i++) {
			struct times *t = &times[i][round];
			/* nothing, and from an eighth on all of it */
			size_t sz = i ? filler->sz >> (HEAP_COST_POINTS - 1 - i) : 0;

			t->bare = call_ns(filler, sz, calls[NR_ROWS], 0, &t->pass);
			for (size_t row = 0; row < NR_ROWS; row++)
				t->rows[row] =
					call_ns(filler, sz, calls[row], rows[row].size, &t->pass);
		}
	}
	for (int i = 0; i < HEAP_COST_POINTS; i++) {
		double *hit = ret[i].hit, bare = usual(times[i], offsetof(struct times, bare));

		ret[i].after_ns = usual(times[i], offsetof(struct times, pass));
		for (size_t row = 0; row < NR_ROWS; row++)
			hit[rows[row].hit] =
				MAX(usual(times[i], offsetof(struct times, rows[row])) - bare, 0.0);
		/* where returns are always waited for, the entry's cost has theirs in it */
		hit[BPFPROF_HIT_RETURN] =
			MAX(hit[BPFPROF_HIT_RETURN] - hit[BPFPROF_HIT_ENTRY], 0.0);
		hit[BPFPROF_HIT_USDT] = hit[BPFPROF_HIT_OTHER] = hit[BPFPROF_HIT_FREE];
	}
	return 0;
}

/* A process that does nothing, and ends with this one. */
static pid_t start_other(void)
{
	pid_t parent = getpid(), pid = fork();

	if (!pid) {
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
			_exit(1);
		for (;;)
			pause();
	}
	return pid;
}

/* What each further process's link takes, by what is measured with OTHERS of them. */
static void set_links(enum uprobe_method m, const struct heap_cost_point shared[],
		      struct heap_cost *ret)
{
	for (int i = 0; i < HEAP_COST_POINTS; i++) {
		struct heap_cost_point *p = &ret->points[i];

		for (int hit = 0; hit < BPFPROF_NR_HITS; hit++) {
			double more = shared[i].hit[hit] - p->hit[hit];

			/* then every return is waited for */
			if (m == UPROBES_SESSION && hit == BPFPROF_HIT_ENTRY)
				more -= p->hit[BPFPROF_HIT_RETURN];
			p->link[hit] = MAX(more / OTHERS, 0.0);
		}
	}
}

/* In a process made for it, which leaves the links to its exit. */
static int measure(struct session *s, enum uprobe_method m, bool one, int pipe_fd,
		   struct heap_cost *ret)
{
	struct heap_cost_point shared[HEAP_COST_POINTS];
	struct probe_heap mine, others[OTHERS];
	struct uprobe_point points[NR_ROWS];
	struct probe_heap_points by_group;
	call *calls[NR_ROWS + 1];
	struct filler filler;
	int err, fd = make_functions(calls);
	pid_t other;

	memset(ret, 0, sizeof(*ret));
	set_points(points, &by_group);
	err = fd < 0 ? fd : fill(&filler);
	if (!err)
		err = probe_heap__attach(s, m, fd, getpid(), &by_group, &mine);
	if (!err)
		err = measure_points(&filler, calls, pipe_fd, ret->points);
	if (err)
		return err;
	/* perf events are of their process only */
	if (one || uprobes_by_events(m))
		return 0;
	other = start_other();
	for (int i = 0; i < OTHERS && !err; i++)
		err = other < 0 ? -errno :
				  probe_heap__attach(s, m, fd, other, &by_group, &others[i]);
	if (!err)
		err = measure_points(&filler, calls, pipe_fd, shared);
	if (!err)
		set_links(m, shared, ret);
	if (other > 0)
		kill(other, SIGKILL);
	return err;
}

int heap_cost__begin(struct session *s, enum uprobe_method m, bool one)
{
	struct heap_cost got;
	int fds[2], status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	probe_heap__enable(s, true);
	pid = fork();
	if (!pid) {
		/* nobody waits for the one that measures: its exit, which detaches, takes a while
		 */
		if (fork())
			_exit(0);
		close(fds[0]);
		_exit(measure(s, m, one, fds[1], &got) ||
		      write(fds[1], &got, sizeof(got)) != sizeof(got));
	}
	close(fds[1]);
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	return fds[0];
}

int heap_cost__end(struct session *s, int fd, struct heap_cost *ret)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int err = -EOPNOTSUPP;

	if (poll(&p, 1, WAIT_MS) < 1)
		err = -ETIMEDOUT;
	else if (read(fd, ret, sizeof(*ret)) == sizeof(*ret))
		err = 0;
	close(fd);
	probe_heap__enable(s, false);
	return err;
}

static double between(double a, double b, double share)
{
	return a + (b - a) * share;
}

void heap_cost__after(const struct heap_cost *c, double gap_ns, struct heap_cost_point *ret)
{
	const struct heap_cost_point *a, *b = c->points, *last = b + HEAP_COST_POINTS - 1;
	double share = 1;

	gap_ns = MAX(gap_ns, b->after_ns);
	while (b < last && b->after_ns < gap_ns)
		b++;
	a = b > c->points ? b - 1 : b;
	if (gap_ns < b->after_ns && b->after_ns > a->after_ns)
		share = (gap_ns - a->after_ns) / (b->after_ns - a->after_ns);
	ret->after_ns = gap_ns;
	for (int i = 0; i < BPFPROF_NR_HITS; i++) {
		ret->hit[i] = between(a->hit[i], b->hit[i], share);
		ret->link[i] = between(a->link[i], b->link[i], share);
	}
}

/* At a point. */
static double cost_at(const struct heap_cost_point *p, enum uprobe_method m,
		      const uint64_t hits[BPFPROF_NR_HITS], size_t further)
{
	double ns = 0;

	for (int i = 0; i < BPFPROF_NR_HITS; i++)
		ns += hits[i] * (p->hit[i] + further * p->link[i]);
	if (further && m == UPROBES_SESSION && hits[BPFPROF_HIT_ENTRY] > hits[BPFPROF_HIT_RETURN])
		ns += (hits[BPFPROF_HIT_ENTRY] - hits[BPFPROF_HIT_RETURN]) *
		      p->hit[BPFPROF_HIT_RETURN];
	return ns;
}

uint64_t heap_cost__calls(const uint64_t hits[BPFPROF_NR_HITS])
{
	uint64_t allocs = hits[BPFPROF_HIT_ENTRY] + hits[BPFPROF_HIT_BEGIN];

	return MAX(allocs, hits[BPFPROF_HIT_FREE]) + hits[BPFPROF_HIT_USDT];
}

double heap_cost__ns(const struct heap_cost *c, enum uprobe_method m,
		     const uint64_t hits[BPFPROF_NR_HITS], size_t processes, double gap_ns)
{
	size_t further = processes > 1 ? processes - 1 : 0;
	uint64_t calls = MAX(heap_cost__calls(hits), 1ULL);
	struct heap_cost_point p;

	heap_cost__after(c, gap_ns - cost_at(c->points, m, hits, further) / calls, &p);
	return cost_at(&p, m, hits, further);
}
