// SPDX-License-Identifier: BSD-2-Clause
/*
 * A 32-bit program, without any library: its stacks must end in a marker, its frames must not be
 * guessed. With a second argument (`bits32 SECONDS asleep`) it sleeps, in 32-bit calls whose numbers
 * other calls of 64-bit programs have: nanosleep(2), and futex(2) until its time-out.
 */
#define NR_WRITE 4
#define NR_ALARM 27
#define NR_NANOSLEEP 162
#define NR_FUTEX 240

struct timespec32 {
	int sec, nsec;
};

void _start(void);

static long call(long nr, long a, const void *b, long c, const void *d)
{
	long ret;

	__asm__ volatile("int $0x80"
			 : "=a"(ret)
			 : "0"(nr), "b"(a), "c"(b), "d"(c), "S"(d)
			 : "memory");
	return ret;
}

static void sleep_on(void)
{
	static const struct timespec32 pause = { .nsec = 5000000 };
	static int word;

	for (;;) {
		call(NR_NANOSLEEP, (long)&pause, 0, 0, 0);
		call(NR_FUTEX, (long)&word, 0 /* FUTEX_WAIT */, 0, &pause);
	}
}

void _start(void)
{
	/* what it is called with: what would be the return address is the number of arguments */
	const long *frame = __builtin_frame_address(0);
	volatile unsigned long n = 0;

	call(NR_ALARM, 120, 0, 0, 0);
	call(NR_WRITE, 1, "ready\n", 6, 0);
	if (frame[1] > 2)
		sleep_on();
	for (;;)
		n++;
}
