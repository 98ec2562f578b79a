// SPDX-License-Identifier: BSD-2-Clause
/* Runs the iterator over threads, and the sampler for those on a CPU. */
#include <linux/types.h>

#include "kernel/threads.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "bpfprof.skel.h"
#include "kernel/perf_events.h"
#include "kernel/probes.h"
#include "kernel/sample_rate.h"
#include "kernel/session.h"

#define READ_MAX_BYTES (256U << 20) /* some 200,000 threads with deep kernel stacks */
#define SAMPLE_HZ 4000

/* ---- the iterator ---- */

int threads__read(struct session *s, uint32_t tid, struct threads *ret)
{
	union bpf_iter_link_info one = { .task.tid = tid };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);
	struct bpf_program *prog = session__skel(s)->progs.threads_read;
	struct bpf_link *link;
	int fd, err;

	*ret = (struct threads){ 0 };
	opts.link_info = &one;
	opts.link_info_len = sizeof(one);
	/* 6.1 (f0d74c4da1f0); an older kernel refuses what it does not know */
	link = tid ? bpf_program__attach_iter(prog, &opts) : NULL;
	if (tid && !link && errno == ESRCH)
		return 0;
	if (!link)
		link = bpf_program__attach_iter(prog, NULL);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	err = fd < 0 ? -errno : util_read_fd(fd, READ_MAX_BYTES, (char **)&ret->buf, &ret->sz);
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}

void threads__done(struct threads *t)
{
	free(t->buf);
	*t = (struct threads){ 0 };
}

const struct bpfprof_thread *threads__next(const struct threads *t, size_t *pos,
					   const uint64_t **ret_kernel)
{
	const struct bpfprof_thread *thread = (const void *)(t->buf + *pos);
	size_t left = t->sz - *pos;

	if (left < sizeof(*thread) || (left - sizeof(*thread)) / 8 < thread->kernel_cnt)
		return NULL;
	*ret_kernel = (const uint64_t *)(thread + 1);
	*pos += sizeof(*thread) + thread->kernel_cnt * 8UL;
	return thread;
}

/* ---- the sampler ---- */

struct threads_sampler {
	struct bpfprof_bpf *skel;
	struct perf_events *events;
};

struct threads_sampler *threads_sampler__new(struct session *s)
{
	uint32_t allowed = sample_rate__allowed();
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = MIN(SAMPLE_HZ, allowed),
		.exclude_idle = 1,
	};
	struct threads_sampler *ts = calloc(1, sizeof(*ts));
	int err;

	if (!ts)
		return NULL;
	ts->skel = session__skel(s);
	ts->events = perf_events__new(ts->skel->progs.threads_sample, &attr,
				      "sampled for threads that run");
	err = ts->events ? perf_events__sync(ts->events, session__cpus_gone(s)) : -errno;
	if (!err)
		return ts;
	threads_sampler__free(ts);
	errno = -err;
	return NULL;
}

void threads_sampler__free(struct threads_sampler *ts)
{
	if (!ts)
		return;
	perf_events__free(ts->events);
	free(ts);
}

static int due_fd(const struct threads_sampler *ts)
{
	return bpf_map__fd(ts->skel->maps.bp_threads_due);
}

int threads_sampler__add(struct threads_sampler *ts, uint32_t tid)
{
	uint8_t due = 1;

	return bpf_map_update_elem(due_fd(ts), &tid, &due, BPF_ANY) ? -errno : 0;
}

bool threads_sampler__remove(struct threads_sampler *ts, uint32_t tid)
{
	return !bpf_map_delete_elem(due_fd(ts), &tid);
}

bool threads_sampler__has(struct threads_sampler *ts, uint32_t tid)
{
	uint8_t due;

	return bpf_map_lookup_elem(due_fd(ts), &tid, &due) != 0;
}

/* ---- the probe ---- */

static void configure(struct session *s)
{
	struct bpfprof_bpf *skel = session__skel(s);

	bpf_program__set_autoload(skel->progs.threads_read, true);
	bpf_program__set_autoload(skel->progs.threads_sample, true);
	bpf_map__set_autocreate(skel->maps.bp_threads_due, true);
}

const struct probe probe_threads = { .configure = configure };
