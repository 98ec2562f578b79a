/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * What is sampled: the arithmetic that turns a random number into the decision, of an allocation by
 * its bytes and of a wait by its length. Pure C without maps or helpers: heap.bpf.c and
 * wait_record.bpf.h include it in the kernel, user/preload/heap.c in the programs that it is loaded
 * into, tests/unit/test_sample.c on the host, where its error is computed.
 *
 * Random numbers are the kernel's; in tests, the n-th of a thread is sample_random(seed, n). What
 * is sampled then follows from the seed and from what the thread does, whatever others do.
 *
 * The includer has __u32, __u64, bool and __always_inline in scope.
 */
#ifndef BPFPROF_SAMPLE_H
#define BPFPROF_SAMPLE_H

#define SAMPLE_LN2_Q32 2977044472ULL /* ln 2 * 2^32 */
#define SAMPLE_LOG2_BITS 24	     /* of the fraction of a logarithm */

/* Keeps the compiler from turning arithmetic into branches: the verifier follows one path. */
#define SAMPLE_OPAQUE(x) __asm__ volatile("" : "+r"(x))

/* ---- random numbers ---- */

/* The n-th number, from 0 on, of splitmix64 (Steele, Lea, Flood 2014) that begins with a seed. */
static __always_inline __u64 sample_random64(__u64 seed, __u64 n)
{
	__u64 z = seed + (n + 1) * 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static __always_inline __u32 sample_random(__u64 seed, __u64 n)
{
	return sample_random64(seed, n) >> 32;
}

/* ---- allocations ---- */

/* The number of v's highest bit; 0 for 0. */
static __always_inline __u64 sample_top_bit(__u64 v)
{
	__u64 top = 0;

	for (int s = 32; s; s >>= 1) {
		__u64 has = v >> s, negative = -has;

		SAMPLE_OPAQUE(negative);
		has = (has | negative) >> 63;
		SAMPLE_OPAQUE(has);
		has *= s;
		top += has;
		v >>= has;
	}
	return top;
}

/* log2(v) * 2^24 for v in 1..2^32, rounded down. */
static __always_inline __u64 sample_log2(__u64 v)
{
	__u64 top = sample_top_bit(v), log, y;

	log = top;
	/* v = y * 2^top, y in 1..2 with 31 bits of fraction: squaring y doubles its logarithm */
	y = v << (63 - top) >> 32;
	for (int i = 0; i < SAMPLE_LOG2_BITS; i++) {
		__u64 bit;

		y = (y * y) >> 31;
		bit = y >> 32;
		SAMPLE_OPAQUE(bit);
		y >>= bit;
		log = log << 1 | bit;
	}
	return log;
}

/*
 * Bytes from here to the one whose allocation is sampled next: -ln(u) * rate, rounded up, u evenly
 * distributed; at least 1. rate: below 2^32. The distribution is exponential, which has no memory:
 * S bytes contain that byte with probability 1 - exp(-S / rate) wherever one begins to count and
 * however the bytes are shared out among threads.
 */
static __always_inline __u64 sample_distance(__u32 random, __u64 rate)
{
	__u64 e = (32ULL << SAMPLE_LOG2_BITS) - sample_log2((__u64)random + 1);
	__u64 t = e * rate; /* up to 2^29 * 2^32 */

	t = (t >> 32) * SAMPLE_LN2_Q32 + ((t & 0xffffffff) * SAMPLE_LN2_Q32 >> 32);
	return (t + (1 << SAMPLE_LOG2_BITS) - 1) >> SAMPLE_LOG2_BITS ?: 1;
}

/* ---- waits ---- */

/* Is a wait of ns, shorter than rate, recorded? With probability ns / rate; rate: below 2^32. */
static __always_inline bool sample_wait(__u32 random, __u64 ns, __u64 rate)
{
	return random * rate >> 32 < ns;
}

/* How much such a wait stands for if it is recorded, where one wait is `unit`. */
static __always_inline __u64 sample_wait_units(__u64 ns, __u64 rate, __u64 unit)
{
	return rate * unit / ns;
}

#endif
