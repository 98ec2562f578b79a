/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that has a known part of everything, with debug information and without inlining: twelve
 * functions, part_1 to part_12, called by all, each with so much of it that theirs are twelve
 * different amounts. Modes:
 *   all      part_N allocates 10 * N times 100 * N bytes, of which it frees each second one; waits N
 *            times for a futex, until a time-out of 20 ms; touches 8 * N pages; and the program ends
 *   threads  part_N creates N threads, which nobody waits for; the same
 *   park     N threads of each of park_1 to park_4 wait for ever
 */
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "prog.h"

#define EACH 10
#define PAGES 8
#define PAGE 4096

static uint32_t word;
static int threads; /* it is that mode */

static void *end_at_once(void *arg)
{
	return arg;
}

/* Each has a body of its own: gcc would make one function of equal ones. */
#define PART(n)                                                                               \
	static NOIPA void part_##n(void)                                                      \
	{                                                                                     \
		struct timespec t = { .tv_nsec = 20000000 };                                  \
		pthread_t thread;                                                             \
		char *pages;                                                                  \
                                                                                              \
		for (int i = 0; threads && i < n; i++)                                        \
			if (!pthread_create(&thread, NULL, end_at_once, NULL))                \
				pthread_detach(thread);                                       \
		if (threads)                                                                  \
			return;                                                               \
		for (int i = 0; i < EACH * n; i++) {                                          \
			void *volatile p = malloc(100 * n);                                   \
                                                                                              \
			if (i % 2)                                                            \
				free(p);                                                      \
		}                                                                             \
		for (int i = 0; i < n; i++)                                                   \
			syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &t, NULL, 0);        \
		pages = mmap(NULL, PAGES * n * PAGE, PROT_READ | PROT_WRITE,                  \
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);                             \
		if (pages == MAP_FAILED || madvise(pages, PAGES * n * PAGE, MADV_NOHUGEPAGE)) \
			_exit(1);                                                             \
		for (int i = 0; i < PAGES * n; i++)                                           \
			((volatile char *)pages)[i * PAGE] = n;                               \
	}
PART(1)
PART(2)
PART(3)
PART(4)
PART(5)
PART(6)
PART(7)
PART(8)
PART(9)
PART(10)
PART(11)
PART(12)

#define PARK(n)                                           \
	static NOIPA void *park_##n(void *arg)            \
	{                                                 \
		for (int i = 0; i < n || !prog_stop; i++) \
			pause();                          \
		return arg;                               \
	}
PARK(1)
PARK(2)
PARK(3)
PARK(4)

static NOIPA void all(void)
{
	static void (*const parts[])(void) = {
		part_1, part_2, part_3, part_4,	 part_5,  part_6,
		part_7, part_8, part_9, part_10, part_11, part_12,
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		parts[i]();
}

static NOIPA void park(void)
{
	static void *(*const parks[])(void *arg) = { park_1, park_2, park_3, park_4 };
	pthread_t thread;

	for (size_t i = 0; i < sizeof(parks) / sizeof(parks[0]); i++)
		for (size_t n = 0; n <= i; n++)
			if (pthread_create(&thread, NULL, parks[i], NULL))
				_exit(1);
	prog_ready();
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);

	threads = !strcmp(mode, "threads");
	if (!strcmp(mode, "park"))
		park();
	all();
	return 0;
}
