/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What a waker of a futex is charged for. Pure C: futex.bpf.h includes it, and tests/bpf, with accesses
 * of its own. The includer has __u64, __s64 and __always_inline in scope. */
#ifndef FUTEX_CHARGE_H
#define FUTEX_CHARGE_H

/*
 * A wake ends one wait, and the waker alone has not made it so long: a thread that waits for a lock
 * waits while others hold it in turn. The waker is charged for the time since the last wake there,
 * of all waiters: it held the lock in that time. Each ns of each wait is charged once, so that all
 * charges together are all waits. (Go's mutex profile does the same, runtime/sema.go, "contention
 * that this unlock caused".)
 *
 * With n waiters, since s1, s2, …, and t the time now, what is not charged yet is
 * n * t - (s1 + s2 + …) + (the time of those that are no longer waiters): n * t + x, where x
 * changes only when a waiter comes, goes or is charged. One word holds both, so that one atomic
 * operation changes them together: x above 16 bits of n, which is signed.
 *
 * x itself grows with n and the time since the start, and overflows in a day or two where a pool of threads
 * waits. That does no harm: nothing is above its 48 bits, and n * t + x is right modulo 2^48, which in
 * units of 64 ns has room for 104 days of waiting that nobody is charged for yet.
 */
#define FUTEX_BITS 16 /* of n */

#ifndef FUTEX_ADD
#define FUTEX_ADD(sum, by) ((void)__sync_fetch_and_add(sum, by))
#define FUTEX_READ(sum) (*(volatile __u64 *)(sum))
#endif

/* As it stands in the word. */
static __always_inline __u64 futex_time(__s64 time)
{
	return (__u64)time << FUTEX_BITS;
}

/* A waiter comes, and has waited since. */
static __always_inline void futex_come(__u64 *sum, __s64 since)
{
	FUTEX_ADD(sum, 1 - futex_time(since));
}

/* One that came goes, and has waited until then, of which nobody is charged for more. */
static __always_inline void futex_go(__u64 *sum, __s64 until)
{
	FUTEX_ADD(sum, futex_time(until) - 1);
}

/* What is not charged yet. */
static __always_inline __s64 futex_open(__u64 *sum, __s64 now)
{
	__u64 word = FUTEX_READ(sum);
	__s64 n = (__s64)(word << (64 - FUTEX_BITS)) >> (64 - FUTEX_BITS);

	return (__s64)(word - n + n * futex_time(now)) >> FUTEX_BITS;
}

/* 0 if it is below. By the sign, which tells the verifier nothing: see is_below in wait_record.bpf.h. */
static __always_inline __s64 futex_positive(__s64 x)
{
	__s64 sign = x >> 63;

	__asm__ volatile("" : "+r"(sign));
	return x & ~sign;
}

/*
 * The waiter goes that came at since, woken now. Returns what the waker is charged for.
 *
 * Another waker may be at it on another CPU, and find the same due. Kernels before 5.12 (5ffa25502b5a)
 * have no instruction that would take it only if nobody else has. So it is taken, and what turns out to
 * be taken twice is given back: if both do, the next waker is charged for it. If others have been
 * charged up to a later time than now, that stays so: it is not open any more.
 */
static __always_inline __s64 futex_charge(__u64 *sum, __s64 since, __s64 now)
{
	__s64 due, charged;

	futex_go(sum, since + futex_positive(now - since));
	due = futex_positive(futex_open(sum, now));
	FUTEX_ADD(sum, -futex_time(due));
	charged = futex_positive(due - futex_positive(-futex_open(sum, now)));
	if (charged != due)
		FUTEX_ADD(sum, futex_time(due - charged));
	return charged;
}

#endif
