/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the programs with a known heap share: the ledger of what they allocated and still hold, and
 * when they begin and end.
 *
 * `PROGRAM SECONDS MODE [now|first] [exit] [NAME=NUMBER...]` prints "ready", waits for SIGUSR1
 * (with `now` it does not, with `first` it allocates until then), does what the mode says, and
 * prints the truth as one line of JSON:
 *     {"stacks":[{"stack":"main;schedule;a_leaf","size":16,"thread":"alloc","process":0,"deeper":0,
 *       "allocs":3,"bytes":48,"kept":1,"kept_bytes":16}, ...], "pids":[12, ...]}
 * Then it keeps what it holds until SIGTERM or the end of SECONDS (with `exit` it ends at once).
 * "deeper" says that libc's own frames follow. Nothing here allocates: the ledger is memory that
 * the children share, and the output is put together in it. With tag=N the names of all threads
 * begin with "N:", by which programs in one profile are told apart.
 */
#ifndef ALLOC_H
#define ALLOC_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "prog.h"

#define LEDGER_MAX_LINES 4096
#define LEDGER_TEXT_SZ (1 << 20)
#define LEDGER_MAX_PROCESSES 4

struct ledger_line {
	const char *stack; /* from main on, or from the first function of a thread */
	size_t size;	   /* asked for */
	char thread[16];
	int process; /* 0: the first one; 1: its child */
	int deeper;
	long allocs, kept;
};

struct ledger {
	int lock;
	int line_cnt;
	struct ledger_line line[LEDGER_MAX_LINES];
	int pids[LEDGER_MAX_PROCESSES];
	size_t text_len;
	char text[LEDGER_TEXT_SZ];
};

static struct ledger *ledger;
static int ledger_process;
static int alloc_argc;
static char **alloc_argv;

/* One more in this line; frees do not take the lock. */
static inline void ledger_took_again(int line)
{
	__atomic_add_fetch(&ledger->line[line].allocs, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&ledger->line[line].kept, 1, __ATOMIC_RELAXED);
}

/* One more of this stack and size, of the thread and process that asks. Returns the line, for
 * ledger_freed. */
static inline int ledger_took_deeper(const char *stack, size_t size, int deeper)
{
	char thread[16] = "";
	struct ledger_line *l;
	int i;

	prctl(PR_GET_NAME, thread);
	while (__atomic_exchange_n(&ledger->lock, 1, __ATOMIC_ACQUIRE))
		;
	for (i = 0; i < ledger->line_cnt; i++) {
		l = &ledger->line[i];
		if (l->size == size && l->process == ledger_process && !strcmp(l->thread, thread) &&
		    !strcmp(l->stack, stack))
			break;
	}
	if (i == LEDGER_MAX_LINES)
		_exit(3);
	l = &ledger->line[i];
	if (i == ledger->line_cnt) {
		l->stack = stack;
		l->size = size;
		l->process = ledger_process;
		l->deeper = deeper;
		memcpy(l->thread, thread, sizeof(thread));
		ledger->line_cnt++;
	}
	ledger_took_again(i);
	__atomic_store_n(&ledger->lock, 0, __ATOMIC_RELEASE);
	return i;
}

static inline int ledger_took(const char *stack, size_t size)
{
	return ledger_took_deeper(stack, size, 0);
}

static inline void ledger_freed(int line)
{
	__atomic_sub_fetch(&ledger->line[line].kept, 1, __ATOMIC_RELAXED);
}

static inline __attribute__((format(printf, 1, 2))) void ledger_say(const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(ledger->text + ledger->text_len, LEDGER_TEXT_SZ - ledger->text_len, format,
		      args);
	va_end(args);
	if (n < 0 || (size_t)n >= LEDGER_TEXT_SZ - ledger->text_len)
		_exit(3);
	ledger->text_len += n;
}

static inline void ledger_print(void)
{
	const char *at = ledger->text;
	int i;

	ledger->text_len = 0;
	ledger_say("{\"stacks\":[");
	for (i = 0; i < ledger->line_cnt; i++) {
		const struct ledger_line *l = &ledger->line[i];

		ledger_say(
			"%s{\"stack\":\"%s\",\"size\":%zu,\"thread\":\"%s\",\"process\":%d,"
			"\"deeper\":%d,\"allocs\":%ld,\"bytes\":%zu,\"kept\":%ld,"
			"\"kept_bytes\":%zu}",
			i ? "," : "", l->stack, l->size, l->thread, l->process, l->deeper,
			l->allocs, l->allocs * l->size, l->kept, l->kept * l->size);
	}
	ledger_say("],\"pids\":[%d,%d]}\n", ledger->pids[0], ledger->pids[1]);
	while (ledger->text_len) {
		ssize_t n = write(STDOUT_FILENO, at, ledger->text_len);

		if (n <= 0)
			_exit(1);
		at += n;
		ledger->text_len -= n;
	}
}

static inline int alloc_has(const char *word)
{
	int i;

	for (i = 3; i < alloc_argc; i++)
		if (!strcmp(alloc_argv[i], word))
			return 1;
	return 0;
}

/* The NUMBER of "NAME=NUMBER". */
static inline long alloc_number(const char *name, long otherwise)
{
	size_t len = strlen(name);
	int i;

	for (i = 3; i < alloc_argc; i++)
		if (!strncmp(alloc_argv[i], name, len) && alloc_argv[i][len] == '=')
			return atol(alloc_argv[i] + len + 1);
	return otherwise;
}

/* A thread's name: each is given one, or has that of its creator. */
static inline void alloc_name(const char *what)
{
	long tag = alloc_number("tag", 0);
	char name[32];

	if (tag)
		snprintf(name, sizeof(name), "%ld:%s", tag, what);
	else
		snprintf(name, sizeof(name), "%s", what);
	prctl(PR_SET_NAME, name);
}

static inline void alloc_sleep_ms(long ms)
{
	struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* Until the next SIGUSR1, which is blocked, so that one that comes early is not lost. */
static inline void alloc_wait(void)
{
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &sig);
}

/* A point where the profiler is waited for: says so and waits to be told. */
static inline void alloc_pause(const char *why)
{
	if (alloc_has("now") || alloc_has("first"))
		return;
	if (write(STDOUT_FILENO, why, strlen(why)) < 0)
		_exit(1);
	alloc_wait();
}

/* Returns the mode. */
static inline const char *alloc_begin(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);
	sigset_t set;

	alloc_argc = argc;
	alloc_argv = argv;
	ledger = (struct ledger *)mmap(NULL, sizeof(*ledger), PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ledger == MAP_FAILED)
		_exit(3);
	ledger->pids[0] = getpid();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	if (alloc_number("tag", 0)) {
		char comm[16] = "";

		prctl(PR_GET_NAME, comm);
		alloc_name(comm);
	}
	return mode;
}

static inline void alloc_end(void)
{
	ledger_print();
	while (!alloc_has("exit"))
		pause();
}

/* A function `name` that gets n bytes into p by the statement given. */
#define LEAF(name, ...)                         \
	static NOIPA void *name(size_t n)       \
	{                                       \
		void *p = NULL;                 \
                                                \
		__VA_ARGS__;                    \
		__asm__ volatile("" : "+r"(p)); \
		return p;                       \
	}

static NOIPA __attribute__((unused)) void leaf_free(void *p)
{
	free(p);
	NO_TAIL_CALL();
}

#define FIRST_SZ (1 << 26) /* sampled at any rate */
LEAF(leaf_first, p = malloc(n))

/*
 * Says "waits PID", and allocates until it is told to go on: the profiler learns of a program, and
 * of the unwind tables of its code, by samples. Until it has them, each sample is a copy of the
 * stack, and many of them fill the ring. In line, so that its caller is in the stack.
 */
static inline __attribute__((always_inline)) void alloc_until_told(const char *stack)
{
	const struct timespec t = { 0, 20000000 };
	char text[32];
	sigset_t set;
	int len = snprintf(text, sizeof(text), "waits %d\n", (int)getpid());

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	if (write(STDOUT_FILENO, text, len) != len)
		_exit(1);
	do {
		leaf_free(leaf_first(FIRST_SZ));
		ledger_freed(ledger_took(stack, FIRST_SZ));
	} while (sigtimedwait(&set, NULL, &t) != SIGUSR1);
}

/* Runs the mode that is asked for. In line, so that it is main that calls it. */
struct alloc_mode {
	const char *name;
	void (*run)(void);
};
static inline __attribute__((always_inline)) void
alloc_run(const char *mode, const struct alloc_mode *modes, size_t cnt)
{
	size_t i;

	prog_ready();
	if (alloc_has("first"))
		alloc_until_told("main;leaf_first");
	else if (!alloc_has("now"))
		alloc_wait();
	for (i = 0; i < cnt; i++)
		if (!strcmp(mode, modes[i].name))
			modes[i].run();
	alloc_end();
}

/* xorshift64*, Vigna 2016: the order of things, the same for the same seed. */
static inline uint64_t alloc_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 2685821657736338717ULL;
}

#endif
