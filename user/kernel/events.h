/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What processes do, as it happens: exec, fork, exit, mapping of code. Read from perf's side band,
 * which carries the path and the build id of what is mapped at the moment when it is mapped: a
 * process that lived for milliseconds is known as well as any other, and nothing has to be asked of
 * /proc while it may still answer. Tracepoints have neither.
 */
#ifndef KERNEL_EVENTS_H
#define KERNEL_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct events;

enum event_type {
	EVENT_MMAP, /* executable memory was mapped, or made executable */
	EVENT_FORK, /* pid was forked by ppid; a new thread where they are equal */
	EVENT_EXEC, /* pid runs another program, named comm */
	EVENT_COMM, /* thread tid of pid is called comm now */
	EVENT_EXIT, /* thread tid of pid ended */
	EVENT_LOST, /* events were lost: everything has to be looked at anew */
};

struct event {
	enum event_type type;
	uint64_t time_ns;  /* CLOCK_MONOTONIC */
	uint32_t pid, tid; /* in the initial pid namespace */
	uint32_t ppid;	   /* EVENT_FORK */
	char comm[16];	   /* EVENT_EXEC, EVENT_COMM */
	/* EVENT_MMAP */
	uint64_t addr, len, pgoff; /* bytes */
	uint32_t maj, min;	   /* of the file; 0 where the build id is given */
	uint64_t ino;
	uint8_t build_id[20];
	uint8_t build_id_sz; /* 0: none */
	const char *path; /* valid until the next events__read; as in /proc/PID/maps, "//anon" for
			     none */
};

/* ring_pages: of 4 KiB for each CPU, a power of two. NULL with errno. */
struct events *events__new(size_t ring_pages);
void events__free(struct events *e);

/* Follows CPUs that come and go, and says once if some cannot be watched, as perf_events__sync does.
 * 0, or -errno if no CPU could be watched; -ENOBUFS: for want of memory that may be locked. */
int events__sync_cpus(struct events *e, const uint32_t *gone);

/* Readable when a CPU's ring is half full; reading it now and then is still necessary. -1 if there
 * is none. */
int events__fd(const struct events *e);

/* Takes what has arrived out of the rings, for the next events__read, as much as it may keep.
 * What the last one has returned is no longer valid. 0 or -errno. */
int events__hold(struct events *e);

/*
 * The events up to until_ns that have arrived, in the order of time; later ones are kept for the
 * next call, since earlier ones than they may still be on their way on another CPU. *ret is
 * borrowed until the next call. 0 or -errno.
 */
int events__read(struct events *e, uint64_t until_ns, const struct event **ret, size_t *ret_cnt);

#endif
