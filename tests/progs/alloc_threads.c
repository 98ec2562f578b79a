/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with a known heap: who allocates and who frees. Modes:
 *   threads    eight threads that free and reallocate each other's memory, rounds=N times each
 *   ends       threads that end and leave memory behind
 */
#include <pthread.h>

#include "alloc.h"

#define NR_THREADS 8
#define BOX_SZ 64

struct block {
	void *p;
	int line;
};
struct box {
	pthread_mutex_t lock;
	int cnt;
	struct block item[BOX_SZ];
};
static struct box boxes[NR_THREADS];
static pthread_barrier_t all_sent;

LEAF(leaf_send, p = malloc(n))
LEAF(leaf_send_zero, p = calloc(1, n))

static NOIPA void *leaf_resend(void *p, size_t n)
{
	p = realloc(p, n);
	NO_TAIL_CALL();
	return p;
}

/* Puts it in; if there is no room, for another, which it becomes. */
static void swap(struct box *box, struct block *b)
{
	pthread_mutex_lock(&box->lock);
	if (box->cnt < BOX_SZ) {
		box->item[box->cnt++] = *b;
		b->p = NULL;
	} else {
		struct block *other = &box->item[(uintptr_t)b->p / 64 % BOX_SZ];
		struct block mine = *b;

		*b = *other;
		*other = mine;
	}
	pthread_mutex_unlock(&box->lock);
}

static struct block take(struct box *box)
{
	struct block b = { NULL, 0 };

	pthread_mutex_lock(&box->lock);
	if (box->cnt)
		b = box->item[--box->cnt];
	pthread_mutex_unlock(&box->lock);
	return b;
}

static void drop(struct block b)
{
	leaf_free(b.p);
	ledger_freed(b.line);
}

static NOIPA void *worker(void *arg)
{
	static const size_t size[] = { 32, 200, 1000, 9000 };
	long self = (long)arg, rounds = alloc_number("rounds", 2000);
	uint64_t random = self * 77 + 1;
	struct block b;
	char name[16];
	int i;

	snprintf(name, sizeof(name), "worker %d", (int)self % NR_THREADS);
	alloc_name(name);
	for (i = 0; i < rounds; i++) {
		uint64_t r = alloc_random(&random);
		size_t n = size[r >> 8 & 3];

		b.p = r & 1 ? leaf_send(n) : leaf_send_zero(n);
		b.line = ledger_took(r & 1 ? "worker;leaf_send" : "worker;leaf_send_zero", n);
		swap(&boxes[r >> 16 & (NR_THREADS - 1)], &b);
		if (b.p)
			drop(b);
		b = take(&boxes[self]);
		if (b.p && r >> 32 & 1) {
			b.p = leaf_resend(b.p, n + 8);
			ledger_freed(b.line);
			b.line = ledger_took("worker;leaf_resend", n + 8);
			swap(&boxes[r >> 20 & (NR_THREADS - 1)], &b);
		}
		/* some are kept */
		if (b.p && i % 16)
			drop(b);
	}
	pthread_barrier_wait(&all_sent);
	while (self % 2 && (b = take(&boxes[self])).p)
		drop(b);
	return NULL;
}

static void threads(void)
{
	pthread_t thread[NR_THREADS];
	long i;

	pthread_barrier_init(&all_sent, NULL, NR_THREADS);
	for (i = 0; i < NR_THREADS; i++)
		pthread_mutex_init(&boxes[i].lock, NULL);
	for (i = 0; i < NR_THREADS; i++)
		if (pthread_create(&thread[i], NULL, worker, (void *)i))
			_exit(3);
	for (i = 0; i < NR_THREADS; i++)
		pthread_join(thread[i], NULL);
}

static NOIPA void *brief(void *arg)
{
	struct block b[3];
	int i;

	for (i = 0; i < 3; i++) {
		b[i].p = leaf_send(100 + i);
		b[i].line = ledger_took("brief;leaf_send", 100 + i);
	}
	/* the first is freed by the one that allocated it, the second by the one that joins */
	drop(b[0]);
	ledger_freed(b[1].line);
	if ((long)arg % 2)
		pthread_exit(b[1].p);
	return b[1].p;
}

static void ends(void)
{
	long i;

	for (i = 0; i < 100; i++) {
		pthread_t thread;
		void *p;

		if (pthread_create(&thread, NULL, brief, (void *)i))
			_exit(3);
		pthread_join(thread, &p);
		leaf_free(p);
	}
}

static const struct alloc_mode modes[] = {
	{ "threads", threads },
	{ "ends", ends },
};

int main(int argc, char **argv)
{
	const char *mode = alloc_begin(argc, argv);

	alloc_run(mode, modes, sizeof(modes) / sizeof(modes[0]));
	return 0;
}
