/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program whose profile is known: busy_60, busy_30 and busy_10 take 60, 30 and 10 % of its time.
 *
 * usage: busy [SECONDS [counts | rests]]
 *
 * Prints "ready", works for 10 s unless told otherwise (SIGTERM ends it after the current round),
 * and prints what it measured; with `counts` a line for each function: its name, its CPU time in
 * ns, and the number of uninterrupted stretches of which that consists. A clock that ticks once in
 * a period ticks in a stretch as often as there are periods in it, or once less or more. With `rests`
 * it sleeps after each round, four times as long: for tests in which others have work to do.
 *
 * It does not count iterations, which machines run at different speeds, but asks for its own CPU
 * time after each slice of about a millisecond and goes on where the plan says. The plan's rounds
 * are 20 ms long on average: short against a profile, so that the rounds cut off at its ends are a
 * small error, and long against a sampling period, so that the samples fall evenly into them. No
 * two are of the same length: rounds that last, with what else takes the CPU, just as long as some
 * sampling periods would show each sample the same part of them.
 */
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define ROUND_NS 20000000ULL /* on average */

static volatile sig_atomic_t stopped;
static volatile uint64_t sink;

static __attribute__((noipa)) uint64_t busy_60(uint64_t n)
{
	uint64_t hash = 14695981039346656037ULL;

	while (n--)
		hash = (hash ^ (n & 0xff)) * 1099511628211ULL;
	return hash;
}

static __attribute__((noipa)) uint64_t busy_30(uint64_t n)
{
	double root = 2;

	while (n--)
		root = (root + (double)(n | 1) / root) / 2;
	return (uint64_t)root;
}

static __attribute__((noipa)) uint64_t busy_10(uint64_t n)
{
	uint64_t x = 88172645463325252ULL;

	while (n--) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
	}
	return x;
}

static struct part {
	const char *name;
	uint64_t (*work)(uint64_t n);
	uint64_t share; /* percent */
	uint64_t n;	/* iterations of a slice */
	uint64_t due_ns, used_ns, stretches;
} parts[] = {
	{ "busy_60", busy_60, 60, 1000, 0, 0, 0 },
	{ "busy_30", busy_30, 30, 1000, 0, 0, 0 },
	{ "busy_10", busy_10, 10, 1000, 0, 0, 0 },
};

#define PART_CNT (sizeof(parts) / sizeof(parts[0]))

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

/* From half of ROUND_NS to three halves; the same ones each time. */
static uint64_t round_length(void)
{
	static uint64_t x = 1;

	/* Knuth's MMIX */
	x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	return ROUND_NS / 2 + (x >> 33) % ROUND_NS;
}

/* How often this thread has lost its CPU. */
static uint64_t switches(void)
{
	struct rusage r;

	getrusage(RUSAGE_THREAD, &r);
	return (uint64_t)(r.ru_nvcsw + r.ru_nivcsw);
}

/* Works until the part has had its share of the rounds up to and including this one. */
static __attribute__((noipa)) void work_share(struct part *p, uint64_t round_ns, uint64_t *cpu_ns)
{
	uint64_t lost = switches();

	p->due_ns += round_ns / 100 * p->share;
	while (p->used_ns < p->due_ns) {
		uint64_t before = *cpu_ns;

		sink += p->work(p->n);
		*cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
		p->used_ns += *cpu_ns - before;
		if (*cpu_ns - before < 500000)
			p->n *= 2;
		else if (*cpu_ns - before > 2000000 && p->n > 1000)
			p->n /= 2;
	}
	p->stretches += 1 + switches() - lost;
}

int main(int argc, char **argv)
{
	bool counts = argc > 2 && !strcmp(argv[2], "counts"),
	     rests = argc > 2 && !strcmp(argv[2], "rests");
	double seconds = argc > 1 ? atof(argv[1]) : 10;
	uint64_t start = now_ns(CLOCK_MONOTONIC), cpu_ns, total = 0;

	if (!(seconds > 0 && seconds <= 86400)) {
		fprintf(stderr, "usage: busy [SECONDS [counts | rests]]\n");
		return 2;
	}
	signal(SIGTERM, stop);
	puts("ready");
	fflush(stdout);
	cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	while (!stopped) {
		uint64_t round_ns = round_length();

		for (size_t i = 0; i < PART_CNT; i++)
			work_share(&parts[i], round_ns, &cpu_ns);
		if (rests)
			nanosleep(&(struct timespec){ .tv_nsec = (long)(4 * round_ns) }, NULL);
		if (now_ns(CLOCK_MONOTONIC) - start > (uint64_t)(seconds * 1e9))
			break;
	}
	for (size_t i = 0; i < PART_CNT; i++)
		total += parts[i].used_ns;
	for (size_t i = 0; i < PART_CNT && total; i++) {
		const struct part *p = &parts[i];

		if (counts)
			printf("%s %llu %llu\n", p->name, (unsigned long long)p->used_ns,
			       (unsigned long long)p->stretches);
		else
			printf("%s %.1f%% of %.2fs CPU\n", p->name,
			       100 * (double)p->used_ns / (double)total, (double)total / 1e9);
	}
	return 0;
}
