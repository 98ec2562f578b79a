/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with a known heap: how memory is asked for. Modes:
 *   entries    every entry point of the C library's allocator, also where it fails, and those that
 *              jemalloc, tcmalloc and mimalloc add, unless told `standard`
 *   own        loads liballoc_own.so, whose allocator is its own (see alloc_own.c), or the
 *              allocator whose path is in BESIDE, next to libc's. Prints "same number" if a thread
 *              was given the number of one that had ended, which takes root
 */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#ifndef NO_DLOPEN
#include <dlfcn.h>
#endif

#include "alloc.h"

#define EACH 20
#define KEEPS 6

/* Sizes that the compiler must not judge. */
static volatile size_t far_too_much = SIZE_MAX / 2 + 1;
static volatile size_t overflowing = SIZE_MAX / 16 + 2;

/* ---- entries ---- */

LEAF(leaf_malloc, p = malloc(n))
LEAF(leaf_calloc, p = calloc(n / 4, 4))
LEAF(leaf_realloc_null, p = realloc(NULL, n))
LEAF(leaf_posix_memalign, if (posix_memalign(&p, 256, n)) p = NULL)
LEAF(leaf_bad_alignment, if (posix_memalign(&p, 3, n)) p = NULL)
LEAF(leaf_aligned_alloc, p = aligned_alloc(128, n))
LEAF(leaf_small_alignment, p = memalign(8, n))
LEAF(leaf_memalign, p = memalign(512, n))
LEAF(leaf_calloc_overflow, p = calloc(overflowing, 16 * n))
LEAF(leaf_reallocarray_null, p = reallocarray(NULL, n / 8, 8))
LEAF(leaf_strdup, char text[64]; memset(text, 'x', n); text[n - 1] = 0; p = strdup(text))
#ifdef __GLIBC__
LEAF(leaf_valloc, p = valloc(n))
LEAF(leaf_pvalloc, p = pvalloc(n))
#endif

static NOIPA void *leaf_realloc(void *p, size_t n)
{
	p = realloc(p, n);
	NO_TAIL_CALL();
	return p;
}

static NOIPA void *leaf_realloc_fails(void *p, size_t n)
{
	p = realloc(p, n);
	NO_TAIL_CALL();
	return p;
}

static NOIPA void *leaf_reallocarray(void *p, size_t cnt, size_t size)
{
	p = reallocarray(p, cnt, size);
	NO_TAIL_CALL();
	return p;
}

#define BELOW "main;run_entries;entries;"
static const struct {
	void *(*leaf)(size_t n);
	const char *stack; /* NULL: gives nothing */
	size_t size;
	int deeper;
} entry[] = {
	{ leaf_malloc, BELOW "leaf_malloc", 24, 0 },
	{ leaf_malloc, BELOW "leaf_malloc", 0, 0 },
	{ leaf_malloc, BELOW "leaf_malloc", 300000, 0 },
	{ leaf_calloc, BELOW "leaf_calloc", 400, 0 },
	{ leaf_realloc_null, BELOW "leaf_realloc_null", 77, 0 },
	{ leaf_posix_memalign, BELOW "leaf_posix_memalign", 1000, 0 },
	{ leaf_bad_alignment, NULL, 1000, 0 },
	{ leaf_aligned_alloc, BELOW "leaf_aligned_alloc", 1280, 0 },
	{ leaf_small_alignment, BELOW "leaf_small_alignment", 90, 0 },
	{ leaf_memalign, BELOW "leaf_memalign", 600, 0 },
	{ leaf_calloc_overflow, NULL, 1, 0 },
	{ leaf_reallocarray_null, BELOW "leaf_reallocarray_null", 80, 0 },
#ifdef __GLIBC__ /* nothing leads through musl's strdup, which has no unwind table */
	{ leaf_strdup, BELOW "leaf_strdup", 33, 1 },
	{ leaf_valloc, BELOW "leaf_valloc", 700, 0 },
	{ leaf_pvalloc, BELOW "leaf_pvalloc", 8192, 0 }, /* whole pages: nothing is rounded up */
#endif
};

/* What allocators offer beyond the C library. Looked up before the start: a name that is not there
 * costs an allocation. */
static void *(*je_mallocx)(size_t n, int flags);
static void *(*je_rallocx)(void *p, size_t n, int flags);
static size_t (*je_xallocx)(void *p, size_t n, size_t extra, int flags);
static void (*je_dallocx)(void *p, int flags);
static void (*je_sdallocx)(void *p, size_t n, int flags);
static void *(*own_malloc)(size_t n);
static void *(*own_calloc)(size_t cnt, size_t n);
static void *(*own_realloc)(void *p, size_t n);
static void (*own_free)(void *p);

#ifndef NO_DLOPEN
static void *find(void *lib, const char *prefix, const char *suffix)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%s", prefix, suffix);
	return dlsym(lib, name);
}

static int find_own(void *lib, const char *prefix)
{
	*(void **)&own_malloc = find(lib, prefix, "malloc");
	*(void **)&own_calloc = find(lib, prefix, "calloc");
	*(void **)&own_realloc = find(lib, prefix, "realloc");
	*(void **)&own_free = find(lib, prefix, "free");
	return own_malloc && own_calloc && own_realloc && own_free;
}
#endif

static void find_more(void)
{
#ifndef NO_DLOPEN
	*(void **)&je_mallocx = dlsym(RTLD_DEFAULT, "mallocx");
	*(void **)&je_rallocx = dlsym(RTLD_DEFAULT, "rallocx");
	*(void **)&je_xallocx = dlsym(RTLD_DEFAULT, "xallocx");
	*(void **)&je_dallocx = dlsym(RTLD_DEFAULT, "dallocx");
	*(void **)&je_sdallocx = dlsym(RTLD_DEFAULT, "sdallocx");
	if (!find_own(RTLD_DEFAULT, "mi_"))
		find_own(RTLD_DEFAULT, "tc_");
#endif
}

LEAF(leaf_mallocx, p = je_mallocx(n, 0))
LEAF(leaf_own_malloc, p = own_malloc(n))
LEAF(leaf_own_calloc, p = own_calloc(n / 8, 8))

static NOIPA void *leaf_rallocx(void *p, size_t n)
{
	p = je_rallocx(p, n, 0);
	NO_TAIL_CALL();
	return p;
}

static NOIPA void *leaf_own_realloc(void *p, size_t n)
{
	p = own_realloc(p, n);
	NO_TAIL_CALL();
	return p;
}

static NOIPA void entries(int keeps)
{
	size_t i;

	for (i = 0; i < sizeof(entry) / sizeof(entry[0]); i++) {
		void *p;
		int line;

#ifdef __GLIBC__
		/* which jemalloc has not: it would be given libc's to free */
		if (entry[i].leaf == leaf_pvalloc && je_mallocx)
			continue;
#endif
		p = entry[i].leaf(entry[i].size);
		if (!p != !entry[i].stack)
			_exit(3);
		if (!p)
			continue;
		line = ledger_took_deeper(entry[i].stack, entry[i].size, entry[i].deeper);
		if (!keeps) {
			leaf_free(p);
			ledger_freed(line);
		}
	}
	if (leaf_malloc(far_too_much))
		_exit(3);
	leaf_free(NULL);
}

/* One block becomes larger, smaller, hardly larger, far too large, and at last nothing. */
static NOIPA void resize(int keeps)
{
	static const size_t to[] = { 100, 5000, 4990, 400000, 800000, 200, 190 };
	int line = ledger_took("main;run_entries;resize;leaf_malloc", 40);
	void *p = leaf_malloc(40), *q;
	size_t i;

	for (i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		p = leaf_realloc(p, to[i]);
		ledger_freed(line);
		line = ledger_took("main;run_entries;resize;leaf_realloc", to[i]);
		if (leaf_realloc_fails(p, far_too_much) || leaf_reallocarray(p, overflowing, 16))
			_exit(3);
	}
	p = leaf_reallocarray(p, 30, 40);
	ledger_freed(line);
	line = ledger_took("main;run_entries;resize;leaf_reallocarray", 1200);
	if (keeps)
		return;
	/* what this gives is the allocator's choice: nothing, or a block of no bytes */
	q = leaf_realloc(p, 0);
	ledger_freed(line);
	if (q)
		ledger_took("main;run_entries;resize;leaf_realloc", 0);
}

static NOIPA void beyond(int keeps)
{
	int line;
	void *p;

	if (je_mallocx && je_rallocx && je_xallocx && je_dallocx && je_sdallocx) {
		p = leaf_mallocx(320);
		line = ledger_took("main;run_entries;beyond;leaf_mallocx", 320);
		p = leaf_rallocx(p, 640);
		ledger_freed(line);
		line = ledger_took("main;run_entries;beyond;leaf_rallocx", 640);
		/* cannot be: small blocks lie side by side */
		if (je_xallocx(p, 1 << 20, 0, 0) >= 1 << 20)
			_exit(3);
		if (!keeps) {
			je_sdallocx(p, 640, 0);
			ledger_freed(line);
		}
		p = leaf_mallocx(48);
		line = ledger_took("main;run_entries;beyond;leaf_mallocx", 48);
		je_dallocx(p, 0);
		ledger_freed(line);
	}
	if (own_malloc && own_calloc && own_realloc && own_free) {
		p = leaf_own_malloc(144);
		line = ledger_took("main;run_entries;beyond;leaf_own_malloc", 144);
		p = leaf_own_realloc(p, 1440);
		ledger_freed(line);
		ledger_took("main;run_entries;beyond;leaf_own_realloc", 1440);
		p = leaf_own_calloc(72);
		line = ledger_took("main;run_entries;beyond;leaf_own_calloc", 72);
		own_free(p);
		ledger_freed(line);
	}
}

static NOIPA void run_entries(void)
{
	int n;

	for (n = 0; n < EACH; n++) {
		entries(n < KEEPS);
		resize(n < KEEPS);
		if (!alloc_has("standard"))
			beyond(n < KEEPS);
	}
	NO_TAIL_CALL();
}

/* ---- own ---- */
#ifndef NO_DLOPEN

static jmp_buf back;
static void (**own_hook)(void);

LEAF(leaf_deepest, p = malloc(n))
LEAF(leaf_deeper, p = leaf_deepest(n))
LEAF(leaf_deep, p = leaf_deeper(n))

static NOIPA void jump(void)
{
	longjmp(back, 1);
}

static void end_thread(void)
{
	pthread_exit(NULL);
}

static NOIPA void inner(void)
{
	leaf_free(leaf_malloc(555));
	NO_TAIL_CALL();
}

static NOIPA void own_entries(void)
{
	int i, line;

	for (i = 0; i < EACH; i++) {
		void *p = leaf_own_malloc(128);

		line = ledger_took("main;own;own_entries;leaf_own_malloc", 128);
		p = leaf_own_realloc(p, 256);
		ledger_freed(line);
		ledger_took("main;own;own_entries;leaf_own_realloc", 256);
		p = leaf_own_calloc(64);
		line = ledger_took("main;own;own_entries;leaf_own_calloc", 64);
		if (i % 2) {
			own_free(p);
			ledger_freed(line);
		}
		leaf_free(leaf_malloc(512));
		ledger_freed(ledger_took("main;own;own_entries;leaf_malloc", 512));
	}
}

/* The outermost call is the one that counts. */
static NOIPA void nested(void)
{
	int i;

	*own_hook = inner;
	for (i = 0; i < EACH; i++) {
		leaf_own_malloc(112);
		ledger_took("main;own;nested;leaf_own_malloc", 112);
	}
	*own_hook = NULL;
}

/* Allocations that are left by longjmp give nothing. What follows counts again, at any depth. */
static NOIPA void jump_out(void)
{
	static volatile int i;

	for (i = 0; i < 200; i++) {
		*own_hook = jump;
		if (!setjmp(back))
			leaf_own_malloc(160);
		*own_hook = NULL;
		leaf_free(leaf_deep(70));
		ledger_freed(
			ledger_took("main;own;jump_out;leaf_deep;leaf_deeper;leaf_deepest", 70));
		leaf_malloc(71);
		ledger_took("main;own;jump_out;leaf_malloc", 71);
	}
}

static NOIPA void *leaves(void *arg)
{
	if (arg)
		*own_hook = end_thread;
	leaf_own_malloc(176);
	ledger_took("leaves;leaf_own_malloc", 176);
	return NULL;
}

/* Threads that end within the allocator, between threads that do not. */
static void leave_thread(void)
{
	long i;

	for (i = 0; i < 2 * EACH; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, leaves, (void *)(i % 2)))
			_exit(3);
		pthread_join(thread, NULL);
		*own_hook = NULL;
	}
}

static volatile pid_t ended;

static NOIPA void *ends_inside(void *arg)
{
	char above[1024];

	__asm__ volatile("" ::"r"(above) : "memory");
	ended = gettid();
	*own_hook = end_thread;
	leaf_own_malloc(192);
	return arg;
}

/* Deeper in the same stack, which it leaves as it is in between. */
static NOIPA void *same_number(void *arg)
{
	char above[4096];

	__asm__ volatile("" ::"r"(above) : "memory");
	if (gettid() != ended)
		return NULL;
	leaf_own_malloc(208);
	ledger_took("same_number;leaf_own_malloc", 208);
	return arg;
}

/* The next thread of this machine is given this number if nobody else is: proc(5). */
static void set_next_number(pid_t tid)
{
	char text[16];
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, snprintf(text, sizeof(text), "%d", tid - 1)) < 0)
		return;
	close(fd);
}

/* A thread that ends within the allocator, and one that takes its number and its stack: what the
 * latter allocates is in no call of the former. */
static NOIPA void reuse_number(void)
{
	void *again = NULL;
	int i;

	for (i = 0; i < 100 && !again; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, ends_inside, NULL))
			_exit(3);
		pthread_join(thread, NULL);
		*own_hook = NULL;
		set_next_number(ended);
		if (pthread_create(&thread, NULL, same_number, own_hook))
			_exit(3);
		pthread_join(thread, &again);
	}
	if (again && write(STDOUT_FILENO, "same number\n", 12) != 12)
		_exit(1);
}

static NOIPA void own(void)
{
	const char *beside = getenv("BESIDE");
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 32);
	void *lib;

	while (n > 0 && path[n - 1] != '/')
		n--;
	strcpy(path + (n > 0 ? n : 0), "liballoc_own.so");
	lib = dlopen(beside ? beside : path, RTLD_NOW | RTLD_LOCAL);
	if (!lib || !find_own(lib, beside ? "" : "je_")) {
		if (write(STDOUT_FILENO, "not loaded\n", 11) < 0)
			_exit(1);
		_exit(4);
	}
	own_hook = beside ? NULL : (void (**)(void))dlsym(lib, "own_hook");
	alloc_pause("loaded\n");
	own_entries();
	if (own_hook) {
		nested();
		jump_out();
		leave_thread();
		reuse_number();
	}
}
#endif

static const struct alloc_mode modes[] = {
	{ "entries", run_entries },
#ifndef NO_DLOPEN
	{ "own", own },
#endif
};

int main(int argc, char **argv)
{
	const char *mode = alloc_begin(argc, argv);

	find_more();
	alloc_run(mode, modes, sizeof(modes) / sizeof(modes[0]));
	return 0;
}
