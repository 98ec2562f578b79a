// SPDX-License-Identifier: BSD-2-Clause
/* A program with known waits (waits.h): in the kernel's futexes as such, futex(2), each operation
 * that waits. */
#include <sys/mman.h>

#include "waits.h"

/* Linux 5.16 and 6.7; the same numbers on every architecture */
#define NR_FUTEX_WAITV 449
#define NR_FUTEX_WAKE 454
#define NR_FUTEX_WAIT 455
#define SIZE_U32 2U
#define PRIVATE 128U

struct waitv {
	uint64_t val, uaddr;
	uint32_t flags, reserved;
};

static uint32_t word, other, pi_word; /* waited for: word, while it is even */

static uint32_t current(void)
{
	return __atomic_load_n(&word, __ATOMIC_ACQUIRE);
}

static void make_even(int round)
{
	__atomic_store_n(&word, 2 * round, __ATOMIC_RELEASE);
}

static void make_odd(void)
{
	__atomic_store_n(&word, current() | 1, __ATOMIC_RELEASE);
}

#define WAITER(name, ...)                      \
	static NOIPA void name(void)           \
	{                                      \
		uint32_t v;                    \
                                               \
		while (!((v = current()) & 1)) \
			__VA_ARGS__;           \
		NO_TAIL_CALL();                \
	}
#define HOLDER(name, ...)            \
	static NOIPA void name(void) \
	{                            \
		make_odd();          \
		__VA_ARGS__;         \
		NO_TAIL_CALL();      \
	}

WAITER(waiter_wait, futex(&word, FUTEX_WAIT_PRIVATE, v, NULL, NULL, 0))
HOLDER(holder_wait, futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0))

WAITER(waiter_bitset, futex(&word, FUTEX_WAIT_BITSET_PRIVATE, v, NULL, NULL, 4))
HOLDER(holder_bitset, futex(&word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 6))

/* waits for two futexes; it is the second that is woken */
static void wait_two(uint32_t v)
{
	struct waitv two[2] = {
		{ other, (uintptr_t)&other, SIZE_U32 | PRIVATE, 0 },
		{ v, (uintptr_t)&word, SIZE_U32 | PRIVATE, 0 },
	};

	syscall(NR_FUTEX_WAITV, two, 2, 0, NULL, 0);
}
WAITER(waiter_waitv, wait_two(v))
HOLDER(holder_waitv, futex(&word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0))

WAITER(waiter_futex2, syscall(NR_FUTEX_WAIT, &word, (long)v, ~0U, SIZE_U32 | PRIVATE, NULL, 0))
HOLDER(holder_futex2, syscall(NR_FUTEX_WAKE, &word, ~0U, 1, SIZE_U32 | PRIVATE))

/* the second address of the wake is the one that is waited for: adds nothing to it, and wakes one
 * if it is not 0 */
WAITER(waiter_wakeop, futex(&word, FUTEX_WAIT_PRIVATE, v, NULL, NULL, 0))
HOLDER(holder_wakeop, futex(&other, FUTEX_WAKE_OP_PRIVATE, 0, (void *)1, &word,
			    FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_NE, 0)))

/* the same memory at two addresses */
static uint32_t *near_word, *far_word;

static void make_near(int round)
{
	make_even(round);
	__atomic_store_n(near_word, 2 * round, __ATOMIC_RELEASE);
}

static NOIPA void waiter_shared(void)
{
	uint32_t v;

	while (!((v = __atomic_load_n(near_word, __ATOMIC_ACQUIRE)) & 1))
		futex(near_word, FUTEX_WAIT, v, NULL, NULL, 0);
	NO_TAIL_CALL();
}

static NOIPA void holder_shared(void)
{
	__atomic_or_fetch(far_word, 1, __ATOMIC_RELEASE);
	futex(far_word, FUTEX_WAKE, 1, NULL, NULL, 0);
	NO_TAIL_CALL();
}

/* moved to another futex, and woken there */
WAITER(waiter_requeue, futex(&word, FUTEX_WAIT_PRIVATE, v, NULL, NULL, 0))

static NOIPA void holder_requeue(void)
{
	make_odd();
	futex(&word, FUTEX_CMP_REQUEUE_PRIVATE, 0, (void *)1, &other, current());
	futex(&other, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	NO_TAIL_CALL();
}

/* Priority inheritance: the second futex is a lock, which the waiter has when it comes out
 * (Documentation/locking/futex-requeue-pi.rst). */
static void drop_pi(void)
{
	uint32_t mine = gettid();

	if (!__atomic_compare_exchange_n(&pi_word, &mine, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		futex(&pi_word, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0);
}

static void take_pi(int round)
{
	make_even(round);
	__atomic_store_n(&pi_word, (uint32_t)gettid(), __ATOMIC_RELEASE);
}

static NOIPA void waiter_requeue_pi(void)
{
	if (futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, current(), NULL, &pi_word, 0))
		_exit(4);
	NO_TAIL_CALL();
}

static NOIPA void holder_requeue_pi(void)
{
	if (futex(&word, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, NULL, &pi_word, current()) != 1)
		_exit(5);
	drop_pi();
	NO_TAIL_CALL();
}

/* the lock is free: it is the waiter's at once */
static NOIPA void waiter_requeue_free(void)
{
	if (futex(&word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, current(), NULL, &pi_word, 0))
		_exit(4);
	NO_TAIL_CALL();
}

static NOIPA void holder_requeue_free(void)
{
	if (futex(&word, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, NULL, &pi_word, current()) != 1)
		_exit(5);
	NO_TAIL_CALL();
}

static NOIPA void waiter_timeout(void)
{
	struct timespec t = { waits_hold_us / 1000000, waits_hold_us % 1000000 * 1000 };

	futex(&word, FUTEX_WAIT_PRIVATE, current(), &t, NULL, 0);
	NO_TAIL_CALL();
}

#define MODE(n, ...)                                                                            \
	{                                                                                       \
		.name = #n, .waiter_fn = "waiter_" #n, .holder_fn = "holder_" #n, .waiters = 1, \
		.wait = waiter_##n, __VA_ARGS__                                                 \
	}

static const struct waits_mode modes[] = {
	MODE(wait, .prepare = make_even, .release = holder_wait),
	MODE(bitset, .prepare = make_even, .release = holder_bitset),
	MODE(wakeop, .prepare = make_even, .release = holder_wakeop),
	/* the addresses differ, as they do for who was moved to another futex */
	MODE(shared, .prepare = make_near, .release = holder_shared, .woken = "requeue?"),
	MODE(requeue, .prepare = make_even, .release = holder_requeue, .woken = "requeue"),
	MODE(requeue_pi, .prepare = take_pi, .release = holder_requeue_pi, .after = drop_pi,
	     .woken = "requeue"),
	MODE(requeue_free, .prepare = make_even, .release = holder_requeue_free, .after = drop_pi,
	     .woken = "requeue?"),
	MODE(timeout, .prepare = make_even, .alone = 1, .no_mutex = 1, .woken = "time-out"),
	MODE(waitv, .prepare = make_even, .release = holder_waitv),
	MODE(futex2, .prepare = make_even, .release = holder_futex2),
};

/* How many of the modes this kernel has. */
static size_t mode_count(void)
{
	size_t n = sizeof(modes) / sizeof(modes[0]);

	syscall(NR_FUTEX_WAIT, &word, 1L, ~0U, SIZE_U32 | PRIVATE, NULL, 0);
	if (errno == ENOSYS) {
		n--;
		syscall(NR_FUTEX_WAITV, NULL, 0, 0, NULL, 0);
		if (errno == ENOSYS)
			n--;
	}
	return n;
}

int main(int argc, char **argv)
{
	const char *mode = waits_begin(argc, argv);
	int fd = memfd_create("word", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, 4096))
		return 3;
	near_word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	far_word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (near_word == MAP_FAILED || far_word == MAP_FAILED)
		return 3;
	waits_run(mode, modes, mode_count());
	return 0;
}
