/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the preload library needs beside the distance to the next sample (sample.h): the weight of
 * one, and the set of the sampled pointers that are not freed yet.
 *
 * It runs within malloc and free of any program: it needs no library, takes no lock (which a fork,
 * a signal handler or a thread that is killed could leave held) and gets memory from mmap only.
 */
#ifndef PRELOAD_HEAP_H
#define PRELOAD_HEAP_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* ---- The weight of a sample ---- */

/*
 * 1 - exp(-x) of x >= 0, to a relative 1e-14. Taylor's series of x halved until it is small, then
 * 1-exp(-2y) = (1-exp(-y)) * (2 - (1-exp(-y))), which cancels nothing.
 */
static inline double heap_one_minus_exp(double x)
{
	int halvings = 0;
	double sum = 0;

	if (x > 40) /* exp(-40) is below half a unit in the last place of 1 */
		return 1;
	for (; x > 0.25; x /= 2)
		halvings++;
	for (int k = 10; k > 0; k--) /* x - x^2/2! + x^3/3! ... */
		sum = (1 - sum) * x / k;
	while (halvings--)
		sum *= 2 - sum;
	return sum;
}

/* The bytes that a sampled allocation stands for. Equal sizes have equal weights. */
static inline uint64_t heap_weight(uint64_t size, uint64_t rate)
{
	double p;

	if (rate <= 1)
		return size;
	p = heap_one_minus_exp((double)(size + !size) / (double)rate);
	return p < 1 ? (uint64_t)((double)size / p + 0.5) : size;
}

/* ---- The set of sampled pointers ---- */

/*
 * Tables of growing size; an element is in one of the eight neighbouring slots (a cache line) that
 * its hash gives in each of them: in the first table where it found one free. So adding and
 * removing are one compare-and-swap, nothing is ever moved, and there are no tombstones. The tables
 * beyond the first are mapped when first needed and stay.
 *
 * The filter in front counts the elements by a hash that neighbours in memory have neighbours in: a
 * free of what is not in the set, as nearly all are, costs one load that is most likely cached. A
 * counter that has reached 255 stays there.
 */
#define HEAP_SET_FILTER (1 << 14)
#define HEAP_SET_FIRST \
	(1 << 12)	  /* slots of the first table; each further one has eight times more */
#define HEAP_SET_TABLES 6 /* the last one has 128 M slots */
#define HEAP_SET_BUCKET 8

struct heap_set {
	uint8_t filter[HEAP_SET_FILTER];
	uintptr_t first[HEAP_SET_FIRST] __attribute__((aligned(64)));
	uintptr_t *more[HEAP_SET_TABLES - 1];
};

static inline uint8_t *heap_set__counter(struct heap_set *s, const void *ptr)
{
	uintptr_t p = (uintptr_t)ptr;

	return &s->filter[(p >> 4 ^ p >> 17) % HEAP_SET_FILTER];
}

/* False: it is not in the set. Whoever got the pointer from the thread that added it sees the
 * counter as well: no barrier is needed here. */
static inline bool heap_set__may_have(struct heap_set *s, const void *ptr)
{
	return __atomic_load_n(heap_set__counter(s, ptr), __ATOMIC_RELAXED);
}

static inline void heap_set__count(struct heap_set *s, const void *ptr, int by)
{
	uint8_t *c = heap_set__counter(s, ptr);
	uint8_t old = __atomic_load_n(c, __ATOMIC_RELAXED);

	while (old != UINT8_MAX && !__atomic_compare_exchange_n(c, &old, (uint8_t)(old + by), false,
								__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

static inline size_t heap_set__slots(unsigned int table)
{
	return (size_t)HEAP_SET_FIRST << 3 * table;
}

/* The table, or NULL: there is none yet. */
static inline uintptr_t *heap_set__table(struct heap_set *s, unsigned int table)
{
	return table ? __atomic_load_n(&s->more[table - 1], __ATOMIC_ACQUIRE) : s->first;
}

static inline uintptr_t *heap_set__new_table(struct heap_set *s, unsigned int table)
{
	size_t sz = heap_set__slots(table) * sizeof(uintptr_t);
	uintptr_t *old = NULL;
	void *new = mmap(NULL, sz, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (new == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&s->more[table - 1], &old, new, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return new;
	munmap(new, sz); /* another thread was first */
	return old;
}

static inline uintptr_t *heap_set__bucket(uintptr_t *slots, unsigned int table, const void *ptr)
{
	uint64_t hash = ((uintptr_t)ptr >> 4) * 0x9e3779b97f4a7c15ULL >> 24;

	return slots + hash % (heap_set__slots(table) / HEAP_SET_BUCKET) * HEAP_SET_BUCKET;
}

/* Adds a pointer that is not NULL and not in the set. 0, or -ENOMEM. */
static inline int heap_set__add(struct heap_set *s, const void *ptr)
{
	heap_set__count(s, ptr, 1);
	for (unsigned int t = 0; t < HEAP_SET_TABLES; t++) {
		uintptr_t *slots = heap_set__table(s, t), *b;

		if (!slots)
			slots = heap_set__new_table(s, t);
		if (!slots)
			break;
		b = heap_set__bucket(slots, t, ptr);
		for (int i = 0; i < HEAP_SET_BUCKET; i++) {
			uintptr_t old = __atomic_load_n(&b[i], __ATOMIC_RELAXED);

			if (!old && __atomic_compare_exchange_n(&b[i], &old, (uintptr_t)ptr, false,
								__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				return 0;
		}
	}
	heap_set__count(s, ptr, -1);
	return -ENOMEM;
}

/* Was it there? Of several that remove it at the same time, one is told so. */
static inline bool heap_set__remove(struct heap_set *s, const void *ptr)
{
	for (unsigned int t = 0; ptr && t < HEAP_SET_TABLES; t++) {
		uintptr_t *slots = heap_set__table(s, t), *b;

		if (!slots)
			break;
		b = heap_set__bucket(slots, t, ptr);
		for (int i = 0; i < HEAP_SET_BUCKET; i++) {
			uintptr_t old = __atomic_load_n(&b[i], __ATOMIC_RELAXED);

			if (old == (uintptr_t)ptr &&
			    __atomic_compare_exchange_n(&b[i], &old, 0, false, __ATOMIC_ACQ_REL,
							__ATOMIC_RELAXED)) {
				heap_set__count(s, ptr, -1);
				return true;
			}
		}
	}
	return false;
}

#endif
