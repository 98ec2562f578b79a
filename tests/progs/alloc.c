/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with a known heap. Modes:
 *   schedule   six stacks, one to six functions below schedule, by seven sizes, in an order that
 *              depends on seed=N, as often as scale=PERCENT says; each stack keeps its own share
 *   old        memory from before the start is freed and reallocated
 *   fork       a child frees what it inherited and allocates on its own; with `told` as of
 *              alloc_until_told
 *   exec       allocates, keeps a part, becomes this program anew in mode schedule, as short as can
 *              be
 *   spawn      a child that becomes such a program; without `exit` it waits, as of `first`
 *   ages       allocates, waits to be told, allocates again
 *   hammer     pairs of malloc and free without end, with work=N turns of a loop behind each,
 *              which goes through 256 KiB of memory; prints every 100 ms how many there were
 *   loop       one such pair in a ms; with `forks` in a child too
 *   paths      n=N (10000) blocks of 40 bytes, each by a stack of its own, which the ledger leaves out
 *   large      n=N (1000) blocks of 1 MiB, which it keeps and does not touch
 *   vfork      a child that has its memory frees a block of it, and allocates one that the parent frees
 */
#include <malloc.h>
#include <sys/wait.h>

#include "alloc.h"

/* ---- schedule: chains of functions, the last of which allocates ---- */

#define LINK(name, next) LEAF(name, p = next(n))

LEAF(a_leaf, p = malloc(n))
LEAF(b_leaf, p = calloc(1, n))
LEAF(c_leaf, p = realloc(NULL, n))
LEAF(d_leaf, p = memalign(64, n))
LEAF(e_leaf, if (posix_memalign(&p, 32, n)) p = NULL)
LEAF(f_leaf, p = malloc(n))
LINK(b_1, b_leaf)
LINK(c_1, c_leaf)
LINK(c_2, c_1)
LINK(d_1, d_leaf)
LINK(d_2, d_1)
LINK(d_3, d_2)
LINK(e_1, e_leaf)
LINK(e_2, e_1)
LINK(e_3, e_2)
LINK(e_4, e_3)
LINK(f_1, f_leaf)
LINK(f_2, f_1)
LINK(f_3, f_2)
LINK(f_4, f_3)
LINK(f_5, f_4)

static const struct {
	void *(*first)(size_t n);
	const char *stack;
	int keeps; /* of each four */
} chains[] = {
	{ a_leaf, "main;schedule;a_leaf", 1 },
	{ b_1, "main;schedule;b_1;b_leaf", 2 },
	{ c_2, "main;schedule;c_2;c_1;c_leaf", 3 },
	{ d_3, "main;schedule;d_3;d_2;d_1;d_leaf", 0 },
	{ e_4, "main;schedule;e_4;e_3;e_2;e_1;e_leaf", 4 },
	{ f_5, "main;schedule;f_5;f_4;f_3;f_2;f_1;f_leaf", 1 },
};
static const struct {
	size_t size;
	int cnt;
} sizes[] = {
	{ 16, 20000 },	{ 64, 20000 },	{ 100, 10000 }, { 1000, 4000 },
	{ 5000, 1000 }, { 70000, 100 }, { 1 << 20, 8 },
};
#define NR_CHAINS (sizeof(chains) / sizeof(chains[0]))
#define NR_SIZES (sizeof(sizes) / sizeof(sizes[0]))
#define MAX_ORDER (1 << 20)
#define IN_FLIGHT 256

/* Which chain and size, one after another: each its number of times, shuffled by Fisher and Yates.
 */
static size_t make_order(uint8_t *order)
{
	uint64_t random = 88172645463325252ULL + alloc_number("seed", 1);
	long scale = alloc_number("scale", 100);
	size_t cnt = 0, i, k;
	long n;

	for (k = 0; k < NR_CHAINS * NR_SIZES; k++) {
		n = sizes[k % NR_SIZES].cnt * scale / 100;
		for (n = n > 4 ? n : 4; n > 0 && cnt < MAX_ORDER; n--)
			order[cnt++] = k;
	}
	for (i = cnt; i > 1; i--) {
		size_t j = alloc_random(&random) % i;
		uint8_t other = order[j];

		order[j] = order[i - 1];
		order[i - 1] = other;
	}
	return cnt;
}

struct block {
	void *p;
	int line;
};

static void give(struct block *b)
{
	if (!b->p)
		return;
	leaf_free(b->p);
	ledger_freed(b->line);
	b->p = NULL;
}

static NOIPA void schedule(void)
{
	static uint8_t order[MAX_ORDER];
	static struct block flying[IN_FLIGHT];
	static int line[NR_CHAINS * NR_SIZES], done[NR_CHAINS * NR_SIZES];
	size_t cnt = make_order(order), i, at = 0;

	for (i = 0; i < cnt; i++) {
		int k = order[i], c = k / NR_SIZES;
		size_t size = sizes[k % NR_SIZES].size;
		void *p = chains[c].first(size);

		if (!p)
			_exit(3);
		if (done[k])
			ledger_took_again(line[k]);
		else
			line[k] = ledger_took(chains[c].stack, size);
		if (done[k]++ % 4 < chains[c].keeps)
			continue;
		give(&flying[at]);
		flying[at].p = p;
		flying[at].line = line[k];
		at = (at + 1) % IN_FLIGHT;
	}
	for (i = 0; i < IN_FLIGHT; i++)
		give(&flying[i]);
}

/* ---- old ---- */

#define NR_OLD 60
static void *old_blocks[NR_OLD];

LEAF(leaf_malloc, p = malloc(n))

static NOIPA void *leaf_realloc(void *p, size_t n)
{
	p = realloc(p, n);
	NO_TAIL_CALL();
	return p;
}

static void make_old(void)
{
	int i;

	for (i = 0; i < NR_OLD; i++)
		old_blocks[i] = leaf_malloc(50 + i);
}

static NOIPA void old(void)
{
	int i, line;

	for (i = 0; i < NR_OLD; i++) {
		if (i % 3 == 0) {
			leaf_free(old_blocks[i]);
		} else if (i % 3 == 1) {
			old_blocks[i] = leaf_realloc(old_blocks[i], 3000);
			line = ledger_took("main;old;leaf_realloc", 3000);
			if (i % 2) {
				leaf_free(old_blocks[i]);
				ledger_freed(line);
			}
		}
	}
}

/* ---- processes ---- */

#define NR_PARENTS 40
LEAF(leaf_parent, p = malloc(n))
LEAF(leaf_child, p = malloc(n))

static NOIPA void run_child(void **inherited)
{
	int i, line;

	ledger_process = 1;
	ledger->pids[1] = getpid();
	if (alloc_has("told"))
		alloc_until_told("main;family;run_child;leaf_first");
	for (i = 0; i < NR_PARENTS; i++) {
		void *p;

		if (i % 2)
			leaf_free(inherited[i]);
		p = leaf_child(1234);
		line = ledger_took("main;family;run_child;leaf_child", 1234);
		if (i % 4) {
			leaf_free(p);
			ledger_freed(line);
		}
	}
}

static NOIPA void family(void)
{
	static void *p[NR_PARENTS];
	int line = 0, i, done[2];
	char byte;

	for (i = 0; i < NR_PARENTS; i++) {
		p[i] = leaf_parent(2000);
		line = ledger_took("main;family;leaf_parent", 2000);
	}
	if (pipe(done))
		_exit(3);
	if (!fork()) {
		/* ends with the parent */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run_child(p);
		if (write(done[1], "", 1) != 1)
			_exit(3);
		while (!alloc_has("exit"))
			pause();
		_exit(0);
	}
	if (read(done[0], &byte, 1) != 1)
		_exit(3);
	for (i = 0; i < 10; i++) {
		leaf_free(p[i]);
		ledger_freed(line);
	}
}

static void execute(const char *when)
{
	char path[4096], tag[40];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	snprintf(tag, sizeof(tag), "tag=%ld", alloc_number("tag", 0));
	if (n > 0) {
		path[n] = 0;
		execl(path, path, "60", "schedule", when, "scale=0", tag,
		      alloc_has("exit") ? "exit" : "stay", (char *)NULL);
	}
	_exit(3);
}

static NOIPA void before_exec(const char *stack)
{
	int i, line;

	for (i = 0; i < NR_PARENTS; i++) {
		void *p = leaf_parent(600);

		line = ledger_took(stack, 600);
		if (i % 4) {
			leaf_free(p);
			ledger_freed(line);
		}
	}
	NO_TAIL_CALL();
}

static NOIPA void exec_self(void)
{
	before_exec("main;exec_self;before_exec;leaf_parent");
	ledger_print();
	execute("now");
}

static NOIPA void spawn(void)
{
	pid_t pid;

	before_exec("main;spawn;before_exec;leaf_parent");
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execute(alloc_has("exit") ? "now" : "first");
	}
	ledger->pids[1] = pid;
	if (alloc_has("exit"))
		waitpid(pid, NULL, 0);
}

/* ---- ages ---- */

static NOIPA void early(size_t n, int cnt, int keeps)
{
	int line;

	while (cnt-- > 0) {
		void *p = leaf_malloc(n);

		line = ledger_took("main;ages;early;leaf_malloc", n);
		if (cnt >= keeps) {
			leaf_free(p);
			ledger_freed(line);
		}
	}
}

static NOIPA void late(void)
{
	int i;

	for (i = 0; i < 5; i++) {
		leaf_malloc(900);
		ledger_took("main;ages;late;leaf_malloc", 900);
	}
}

static NOIPA void ages(void)
{
	early(300, 10, 4);
	early(310, 10, 0);
	alloc_pause("waits\n");
	early(300, 3, 3);
	late();
	NO_TAIL_CALL();
}

/* ---- hammer, loop ---- */

static double now_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static NOIPA void hammer(void)
{
	static volatile char memory[1 << 18];
	long work = alloc_number("work", 0), w, at = 0;
	char text[64];

	for (;;) {
		double from = now_s(CLOCK_MONOTONIC), cpu = now_s(CLOCK_THREAD_CPUTIME_ID);
		long pairs = 0;
		int i, n;

		do {
			for (i = 0; i < 1000; i++) {
				leaf_free(leaf_malloc(64));
				for (w = 0; w < work; w++) {
					memory[at]++;
					at = (at + 64) & (sizeof(memory) - 1);
				}
			}
			pairs += 1000;
		} while (now_s(CLOCK_MONOTONIC) - from < 0.1);
		n = snprintf(text, sizeof(text), "%.6f %.6f %ld\n", now_s(CLOCK_MONOTONIC) - from,
			     now_s(CLOCK_THREAD_CPUTIME_ID) - cpu, pairs);
		if (write(STDOUT_FILENO, text, n) != n)
			_exit(1);
	}
}

static NOIPA void loop(void)
{
	int forks = alloc_has("forks");
	pid_t pid;

	for (;;) {
		leaf_free(leaf_malloc(64));
		if (forks) {
			forks = 0;
			pid = fork();
			if (pid) {
				ledger->pids[1] = pid;
				ledger_print();
			} else {
				prctl(PR_SET_PDEATHSIG, SIGKILL);
			}
		}
		alloc_sleep_ms(1);
	}
}

/* ---- paths: which of two functions is called is a bit of the path, one after the other ---- */

#define PATH_BITS 14
#define PATH_BLOCK 40

static NOIPA void *path_right(long path, int bits);
static NOIPA void *path_left(long path, int bits);

static void *path_next(long path, int bits)
{
	if (!bits)
		return malloc(PATH_BLOCK);
	return path & 1 ? path_right(path >> 1, bits - 1) : path_left(path >> 1, bits - 1);
}

static NOIPA void *path_right(long path, int bits)
{
	void *p = path_next(path, bits);

	NO_TAIL_CALL();
	return p;
}

static NOIPA void *path_left(long path, int bits)
{
	void *p = path_next(path, bits);

	NO_TAIL_CALL();
	return p;
}

static NOIPA void paths(void)
{
	long n = alloc_number("n", 10000), i;

	for (i = 0; i < n; i++)
		if (!path_next(i, PATH_BITS))
			_exit(3);
}

/* ---- large, vfork ---- */

LEAF(leaf_large, p = malloc(n))

static NOIPA void large(void)
{
	for (long i = alloc_number("n", 1000); i > 0; i--) {
		if (!leaf_large(1 << 20))
			_exit(3);
		ledger_took("main;large;leaf_large", 1 << 20);
	}
}

LEAF(leaf_before, p = malloc(n))
LEAF(leaf_meanwhile, p = malloc(n))

static NOIPA void share(void)
{
	/* what the child sets is there when the parent goes on */
	static void *before, *meanwhile;
	int line = ledger_took("main;share;leaf_before", 3 << 20);

	before = leaf_before(3 << 20);
	if (!vfork()) {
		leaf_free(before);
		meanwhile = leaf_meanwhile(5 << 20);
		_exit(0);
	}
	ledger_freed(line);
	line = ledger_took("main;share;leaf_meanwhile", 5 << 20);
	leaf_free(meanwhile);
	ledger_freed(line);
}

static const struct alloc_mode modes[] = {
	{ "schedule", schedule }, { "old", old },     { "fork", family },   { "exec", exec_self },
	{ "spawn", spawn },	  { "ages", ages },   { "hammer", hammer }, { "loop", loop },
	{ "paths", paths },	  { "large", large }, { "vfork", share },
};

int main(int argc, char **argv)
{
	const char *mode = alloc_begin(argc, argv);

	make_old();
	alloc_run(mode, modes, sizeof(modes) / sizeof(modes[0]));
	return 0;
}
