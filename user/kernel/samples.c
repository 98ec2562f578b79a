// SPDX-License-Identifier: BSD-2-Clause
/* Reads what the programs recorded: records from the ring, counts of the stacks that were sent
 * before. */
#include "kernel/samples.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/util.h"
#include "bpfprof.skel.h"
#include "kernel/dontfork.h"
#include "kernel/session.h"

#define BATCH 4096

struct samples {
	struct session *session;
	struct ring_buffer *ring;
	void (*take)(void *ctx, const struct bpfprof_rec *rec, size_t sz);
	void *ctx;
	/* How far the ring was read, and written: at the beginnings of its first two pages, which
	 * the kernel keeps there for whoever maps it (kernel/bpf/ringbuf.c). In bytes since it was
	 * made. */
	const char *positions;
	size_t page_sz;
	int64_t left; /* bytes that are still to be read in this round */
};

/* Before a record, which begins at a multiple of it (include/uapi/linux/bpf.h). */
#define HEADER_SZ BPF_RINGBUF_HDR_SZ

/* Do the record's own figures describe the bytes that came, all of them? */
static bool well_formed(const struct bpfprof_rec *rec, size_t sz)
{
	const struct bpfprof_raw *raw = (const void *)(rec + 1);
	size_t want = sizeof(*rec) + (size_t)rec->kernel_cnt * 8;

	if (rec->kind >= BPFPROF_NR_KINDS || rec->result >= BPFPROF_NR_RESULTS ||
	    rec->side >= BPFPROF_SIDES || rec->kernel_cnt > BPFPROF_MAX_KFRAMES ||
	    rec->user_cnt > BPFPROF_MAX_UFRAMES)
		return false;
	if (rec->type == BPFPROF_REC_SAMPLE)
		return sz == want + (size_t)rec->user_cnt * 8;
	if (rec->type != BPFPROF_REC_RAW || rec->user_cnt || sz < want + sizeof(*raw))
		return false;
	return raw->stack_sz <= BPFPROF_RAW_STACK_SZ && sz == want + sizeof(*raw) + raw->stack_sz;
}

/* libbpf's callback; a negative value ends the reading */
static int on_record(void *ctx, void *data, size_t sz)
{
	struct samples *s = ctx;

	if (sz >= sizeof(struct bpfprof_rec) && well_formed(data, sz))
		s->take(s->ctx, data, sz);
	s->left -= HEADER_SZ + (sz + HEADER_SZ - 1) / HEADER_SZ * HEADER_SZ;
	return s->left <= 0 ? -ECANCELED : 0;
}

struct samples *samples__new(struct session *session)
{
	int fd = bpf_map__fd(session__skel(session)->maps.bp_ring), err;
	struct samples *s = calloc(1, sizeof(*s));
	void *mem;

	if (!s)
		return NULL;
	s->session = session;
	s->page_sz = sysconf(_SC_PAGESIZE);
	mem = mmap(NULL, 2 * s->page_sz, PROT_READ, MAP_SHARED, fd, 0);
	if (mem != MAP_FAILED) {
		s->positions = mem;
		s->ring = ring_buffer__new(fd, on_record, s, NULL);
	}
	err = s->ring ? -dontfork() : errno;
	if (!err)
		return s;
	samples__free(s);
	errno = err;
	return NULL;
}

void samples__free(struct samples *s)
{
	if (!s)
		return;
	ring_buffer__free(s->ring);
	if (s->positions)
		munmap((void *)s->positions, 2 * s->page_sz);
	free(s);
}

int samples__fd(const struct samples *s)
{
	return ring_buffer__epoll_fd(s->ring);
}

/* Bytes that wait in the ring. */
static int64_t waiting(const struct samples *s)
{
	const unsigned long *read = (const void *)s->positions;
	const unsigned long *written = (const void *)(s->positions + s->page_sz);

	return __atomic_load_n(written, __ATOMIC_ACQUIRE) - __atomic_load_n(read, __ATOMIC_ACQUIRE);
}

bool samples__is_half_full(const struct samples *s)
{
	return waiting(s) > bpf_map__max_entries(session__skel(s->session)->maps.bp_ring) / 2;
}

int samples__read(struct samples *s,
		  void (*take)(void *ctx, const struct bpfprof_rec *rec, size_t sz), void *ctx)
{
	int cnt;

	s->take = take;
	s->ctx = ctx;
	/*
	 * No more than there is now: programs may fill the ring as fast as it is read, until the
	 * tables are loaded for which what was read has to be looked at first.
	 */
	s->left = waiting(s);
	if (s->left <= 0)
		return 0;
	cnt = ring_buffer__consume(s->ring);
	return cnt == -ECANCELED ? 1 : cnt;
}

bool samples__took_all(const struct samples *s)
{
	return s->left <= 0;
}

/* Kernels before 5.6 and odd map types have no batch operation; one key at a time does the same. */
static int drain_singly(int fd, struct samples_count **ret, size_t *ret_cnt, size_t *cap)
{
	struct bpfprof_count_key key;
	int err;

	while (!bpf_map_get_next_key(fd, NULL, &key)) {
		err = util_reserve(ret, cap, *ret_cnt + 1, sizeof(**ret));
		if (err)
			return err;
		(*ret)[*ret_cnt].key = key;
		if (!bpf_map_lookup_elem(fd, &key, &(*ret)[*ret_cnt].count))
			(*ret_cnt)++;
		if (bpf_map_delete_elem(fd, &key))
			return -errno;
	}
	return 0;
}

static int drain(int fd, struct samples_count **ret, size_t *ret_cnt)
{
	struct bpfprof_count_key *keys = calloc(BATCH, sizeof(*keys));
	struct bpfprof_count *counts = calloc(BATCH, sizeof(*counts));
	uint32_t cnt, pos = 0;
	bool first = true, last = false;
	size_t cap = 0;
	int err = keys && counts ? 0 : -ENOMEM;

	while (!err && !last) {
		cnt = BATCH;
		if (bpf_map_lookup_and_delete_batch(fd, first ? NULL : &pos, &pos, keys, counts,
						    &cnt, NULL)) {
			/* ENOENT: this was the last batch */
			last = true;
			if (errno != ENOENT) {
				err = drain_singly(fd, ret, ret_cnt, &cap);
				break;
			}
		}
		first = false;
		err = util_reserve(ret, &cap, *ret_cnt + cnt, sizeof(**ret));
		for (uint32_t i = 0; !err && i < cnt; i++)
			(*ret)[(*ret_cnt)++] =
				(struct samples_count){ .key = keys[i], .count = counts[i] };
	}
	free(keys);
	free(counts);
	return err;
}

int samples__drain_counts(struct samples *s, uint32_t side, struct samples_count **ret,
			  size_t *ret_cnt)
{
	struct bpfprof_bpf *skel = session__skel(s->session);
	int err;

	*ret = NULL;
	*ret_cnt = 0;
	err = drain(bpf_map__fd(side ? skel->maps.bp_counts1 : skel->maps.bp_counts0), ret,
		    ret_cnt);
	if (err) {
		free(*ret);
		*ret = NULL;
		*ret_cnt = 0;
	}
	return err;
}
