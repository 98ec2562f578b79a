// SPDX-License-Identifier: BSD-2-Clause
/* Process events from perf's side band: perf_event_open(2), "MMAP layout" and PERF_RECORD_*. */
#include "kernel/events.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/cpus.h"

#define PAGE 4096
#define MAX_PENDING (64U << 20) /* bytes of records taken in one reading */

struct cpu_ring {
	int fd;
	uint32_t gone;			   /* how often its CPU had gone when it was opened */
	struct perf_event_mmap_page *page; /* head, then the data */
};

struct raw_event {
	uint64_t time_ns;
	size_t pos; /* in buf */
};

struct events {
	struct cpu_ring *rings;
	bool *online;
	int cpu_cnt;
	int epoll_fd;
	size_t ring_sz;
	uint8_t *buf;
	size_t buf_sz, buf_cap;
	struct raw_event *raws;
	size_t raw_cnt, raw_cap;
	struct raw_event *sorted; /* scratch, exchanged with raws */
	size_t sorted_cap;
	size_t taken; /* of raws, by the last call; the others are kept for the next one */
	struct event *events;
	size_t event_cnt, event_cap;
	bool said; /* that CPUs are left out */
};

struct events *events__new(size_t ring_pages)
{
	struct events *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->ring_sz = ring_pages * PAGE;
	e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	e->cpu_cnt = cpus_possible();
	if (e->epoll_fd < 0 || e->cpu_cnt <= 0) {
		e->cpu_cnt = 0;
		events__free(e);
		errno = EINVAL;
		return NULL;
	}
	e->rings = calloc(e->cpu_cnt, sizeof(*e->rings));
	e->online = calloc(e->cpu_cnt, sizeof(*e->online));
	for (int i = 0; e->rings && i < e->cpu_cnt; i++)
		e->rings[i].fd = -1;
	if (!e->rings || !e->online) {
		events__free(e);
		errno = ENOMEM;
		return NULL;
	}
	return e;
}

static void close_ring(struct events *e, struct cpu_ring *r)
{
	if (r->fd < 0)
		return;
	munmap(r->page, PAGE + e->ring_sz);
	close(r->fd);
	r->fd = -1;
}

void events__free(struct events *e)
{
	if (!e)
		return;
	for (int i = 0; e->rings && i < e->cpu_cnt; i++)
		close_ring(e, &e->rings[i]);
	if (e->epoll_fd >= 0)
		close(e->epoll_fd);
	free(e->rings);
	free(e->online);
	free(e->buf);
	free(e->raws);
	free(e->sorted);
	free(e->events);
	free(e);
}

static int open_ring(struct events *e, int cpu)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.build_id = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = e->ring_sz / 2,
	};
	struct epoll_event ev = { .events = EPOLLIN };
	struct cpu_ring *r = &e->rings[cpu];
	int fd, err;

	fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0 && errno == EINVAL) {
		/* build ids in MMAP2: 5.12 (88a16a130933) */
		attr.build_id = 0;
		fd = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	}
	if (fd < 0)
		return -errno;
	r->page = mmap(NULL, PAGE + e->ring_sz, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (r->page == MAP_FAILED) {
		/* the right to open it was there: it is the memory that all rings of a user may lock */
		err = errno == EPERM ? -ENOBUFS : -errno;
		close(fd);
		return err;
	}
	r->fd = fd;
	(void)epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
	return 0;
}

int events__fd(const struct events *e)
{
	return e->epoll_fd;
}

/* Moves what one CPU's ring holds behind e->buf. */
static int drain_ring(struct events *e, struct cpu_ring *r)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = r->page->data_tail;
	const uint8_t *data = (const uint8_t *)r->page + PAGE;
	size_t sz = head - tail, at = tail & (e->ring_sz - 1), first;
	int err;

	/* what does not fit now is taken the next time, if the kernel has not counted it as lost by
	 * then */
	if (!sz || sz > e->ring_sz || e->buf_sz + sz > MAX_PENDING)
		return 0;
	err = util_reserve(&e->buf, &e->buf_cap, e->buf_sz + sz, 1);
	if (err)
		return err;
	first = MIN(sz, e->ring_sz - at);
	memcpy(e->buf + e->buf_sz, data + at, first);
	memcpy(e->buf + e->buf_sz + first, data, sz - first);
	e->buf_sz += sz;
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
	return 0;
}

/* struct sample_id at the end of each record: u32 pid, tid; u64 time (perf_event_open(2),
 * sample_id_all) */
#define SAMPLE_ID_SZ 16

/* Finds the records in buf[from..] and their times. */
static int index_records(struct events *e, size_t from)
{
	while (from + sizeof(struct perf_event_header) <= e->buf_sz) {
		const struct perf_event_header *h = (const void *)(e->buf + from);
		struct raw_event *raw;
		int err;

		if (h->size < sizeof(*h) || from + h->size > e->buf_sz)
			return 0;
		if (h->size >= sizeof(*h) + SAMPLE_ID_SZ) {
			err = util_reserve(&e->raws, &e->raw_cap, e->raw_cnt + 1, sizeof(*e->raws));
			if (err)
				return err;
			raw = &e->raws[e->raw_cnt++];
			raw->pos = from;
			memcpy(&raw->time_ns, e->buf + from + h->size - 8, 8);
		}
		from += h->size;
	}
	return 0;
}

static size_t record_sz(const struct events *e, const struct raw_event *raw)
{
	return ((const struct perf_event_header *)(e->buf + raw->pos))->size;
}

/* The end of those that are in the order of time already. */
static size_t run_end(const struct events *e, size_t from)
{
	size_t i = from + 1;

	while (i < e->raw_cnt && e->raws[i - 1].time_ns <= e->raws[i].time_ns)
		i++;
	return MIN(i, e->raw_cnt);
}

/* [from, mid) and [mid, end) are in order. Of equal times the former comes first. */
static void merge(struct events *e, size_t from, size_t mid, size_t end)
{
	for (size_t a = from, b = mid, to = from; to < end; to++)
		if (b == end || (a < mid && e->raws[a].time_ns <= e->raws[b].time_ns))
			e->sorted[to] = e->raws[a++];
		else
			e->sorted[to] = e->raws[b++];
}

/* By time, stable. A ring is in order nearly always: there is not much more to do than to merge so many
 * as there are CPUs. */
static int sort(struct events *e)
{
	struct raw_event *raws;
	size_t cap, mid, end;
	int err = util_reserve(&e->sorted, &e->sorted_cap, e->raw_cnt, sizeof(*e->sorted));

	while (!err && run_end(e, 0) < e->raw_cnt) {
		for (size_t from = 0; from < e->raw_cnt; from = end) {
			mid = run_end(e, from);
			end = mid < e->raw_cnt ? run_end(e, mid) : mid;
			merge(e, from, mid, end);
		}
		raws = e->raws;
		cap = e->raw_cap;
		e->raws = e->sorted;
		e->raw_cap = e->sorted_cap;
		e->sorted = raws;
		e->sorted_cap = cap;
	}
	return err;
}

struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	union {
		struct {
			uint32_t maj, min;
			uint64_t ino, ino_generation;
		};
		struct {
			uint8_t build_id_sz, reserved[3];
			uint8_t build_id[20];
		};
	};
	uint32_t prot, flags;
	char filename[];
};

struct task_record {
	struct perf_event_header header;
	uint32_t pid, ppid, tid, ptid;
	uint64_t time;
};

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[];
};

static bool decode_mmap(uint8_t *rec, size_t sz, struct event *ev)
{
	struct mmap2_record *m = (struct mmap2_record *)rec;

	if (sz < sizeof(*m) + 1 + SAMPLE_ID_SZ)
		return false;
	/* the path ends before the sample id, whatever it holds */
	rec[sz - SAMPLE_ID_SZ - 1] = '\0';
	ev->type = EVENT_MMAP;
	ev->pid = m->pid;
	ev->tid = m->tid;
	ev->addr = m->addr;
	ev->len = m->len;
	ev->pgoff = m->pgoff;
	ev->path = m->filename;
	if (m->header.misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		ev->build_id_sz = MIN(m->build_id_sz, sizeof(ev->build_id));
		memcpy(ev->build_id, m->build_id, sizeof(ev->build_id));
	} else {
		ev->maj = m->maj;
		ev->min = m->min;
		ev->ino = m->ino;
	}
	return true;
}

static bool decode(uint8_t *rec, struct event *ev)
{
	const struct perf_event_header *h = (const void *)rec;
	const struct task_record *t = (const void *)rec;
	const struct comm_record *c = (const void *)rec;

	switch (h->type) {
	case PERF_RECORD_MMAP2:
		return decode_mmap(rec, h->size, ev);
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		if (h->size < sizeof(*t) + SAMPLE_ID_SZ)
			return false;
		ev->type = h->type == PERF_RECORD_FORK ? EVENT_FORK : EVENT_EXIT;
		ev->pid = t->pid;
		ev->tid = t->tid;
		ev->ppid = t->ppid;
		return true;
	case PERF_RECORD_COMM:
		if (h->size < sizeof(*c) + 8 + SAMPLE_ID_SZ)
			return false;
		ev->type = h->misc & PERF_RECORD_MISC_COMM_EXEC ? EVENT_EXEC : EVENT_COMM;
		ev->pid = c->pid;
		ev->tid = c->tid;
		memcpy(ev->comm, c->comm,
		       MIN(sizeof(ev->comm), h->size - sizeof(*c) - SAMPLE_ID_SZ));
		ev->comm[sizeof(ev->comm) - 1] = '\0';
		return true;
	case PERF_RECORD_LOST:
		ev->type = EVENT_LOST;
		return true;
	default:
		return false;
	}
}

/* Moves the records that the last call left to the front of the buffer. */
static int carry_over(struct events *e)
{
	size_t sz = 0, at = 0;
	uint8_t *kept;

	for (size_t i = e->taken; i < e->raw_cnt; i++)
		sz += record_sz(e, &e->raws[i]);
	if (!sz) {
		e->buf_sz = e->raw_cnt = e->taken = 0;
		return 0;
	}
	kept = malloc(sz);
	if (!kept)
		return -ENOMEM;
	for (size_t i = e->taken; i < e->raw_cnt; i++) {
		memcpy(kept + at, e->buf + e->raws[i].pos, record_sz(e, &e->raws[i]));
		at += record_sz(e, &e->raws[i]);
	}
	memcpy(e->buf, kept, sz);
	free(kept);
	e->buf_sz = sz;
	e->raw_cnt = e->taken = 0;
	return index_records(e, 0);
}

static int take_ring(struct events *e, struct cpu_ring *r)
{
	size_t from = e->buf_sz;
	int err = drain_ring(e, r);

	return err ? err : index_records(e, from);
}

/* What a CPU that went away has left is read before its ring goes. */
static void end_ring(struct events *e, struct cpu_ring *r)
{
	if (r->fd >= 0)
		(void)take_ring(e, r);
	close_ring(e, r);
}

int events__sync_cpus(struct events *e, const uint32_t *gone)
{
	struct cpus_round round = { .err = -ENODEV };
	int err;

	err = cpus_online(e->online, e->cpu_cnt);
	if (err)
		return err;
	for (int i = 0; i < e->cpu_cnt; i++) {
		struct cpu_ring *r = &e->rings[i];

		if (!e->online[i] || r->gone != gone[i])
			end_ring(e, r);
		r->gone = gone[i];
		if (e->online[i])
			cpus_round_add(&round, r->fd >= 0 ? 0 : open_ring(e, i));
	}
	return cpus_round_end(&round, "watched for what processes do", &e->said);
}

int events__hold(struct events *e)
{
	int err = 0;

	for (int i = 0; !err && i < e->cpu_cnt; i++)
		if (e->rings[i].fd >= 0)
			err = take_ring(e, &e->rings[i]);
	return err;
}

int events__read(struct events *e, uint64_t until_ns, const struct event **ret, size_t *ret_cnt)
{
	int err = carry_over(e);

	e->event_cnt = 0;
	if (!err)
		err = events__hold(e);
	if (err)
		return err;
	err = sort(e);
	if (!err)
		err = util_reserve(&e->events, &e->event_cap, e->raw_cnt, sizeof(*e->events));
	if (err)
		return err;
	for (; e->taken < e->raw_cnt && e->raws[e->taken].time_ns <= until_ns; e->taken++) {
		struct event *ev = &e->events[e->event_cnt];

		memset(ev, 0, sizeof(*ev));
		ev->time_ns = e->raws[e->taken].time_ns;
		if (decode(e->buf + e->raws[e->taken].pos, ev))
			e->event_cnt++;
	}
	*ret = e->events;
	*ret_cnt = e->event_cnt;
	return 0;
}
