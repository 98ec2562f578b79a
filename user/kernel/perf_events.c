// SPDX-License-Identifier: BSD-2-Clause
/* A BPF program that a perf event calls, on every CPU that is online. */
#include <linux/types.h>

#include "kernel/perf_events.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "kernel/cpus.h"

struct perf_events {
	const struct bpf_program *prog;
	struct perf_event_attr attr;
	const char *what;
	struct bpf_link **cpus; /* NULL: that one has none; a link owns its event */
	uint32_t *gone;		/* how often each had gone when it was attached */
	bool *online;
	int cpu_cnt;
	bool said; /* that CPUs are left out */
};

struct perf_events *perf_events__new(const struct bpf_program *prog,
				     const struct perf_event_attr *attr, const char *what)
{
	struct perf_events *e = calloc(1, sizeof(*e));
	int cnt = cpus_possible(), err = cnt < 0 ? cnt : -ENODEV;

	if (!e || cnt <= 0)
		goto cleanup;
	err = -ENOMEM;
	e->prog = prog;
	e->attr = *attr;
	e->what = what;
	e->attr.size = sizeof(e->attr);
	e->attr.disabled = 1;
	e->cpus = calloc(cnt, sizeof(*e->cpus));
	e->gone = calloc(cnt, sizeof(*e->gone));
	e->online = calloc(cnt, sizeof(*e->online));
	if (!e->cpus || !e->gone || !e->online)
		goto cleanup;
	e->cpu_cnt = cnt;
	return e;

cleanup:
	err = e ? err : -ENOMEM;
	perf_events__free(e);
	errno = -err;
	return NULL;
}

static int attach(struct perf_events *e, int cpu)
{
	int fd, err;

	fd = (int)syscall(SYS_perf_event_open, &e->attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* enables the event too */
	e->cpus[cpu] = bpf_program__attach_perf_event(e->prog, fd);
	if (e->cpus[cpu])
		return 0;
	err = -errno;
	close(fd);
	return err;
}

static void detach(struct perf_events *e, int cpu)
{
	bpf_link__destroy(e->cpus[cpu]);
	e->cpus[cpu] = NULL;
}

int perf_events__sync(struct perf_events *e, const uint32_t *gone)
{
	struct cpus_round round = { .err = -ENODEV };
	int err = cpus_online(e->online, e->cpu_cnt);

	if (err)
		return err;
	for (int i = 0; i < e->cpu_cnt; i++) {
		/* an event of a CPU that went away never counts again, even if the CPU returns */
		if (!e->online[i] || e->gone[i] != gone[i])
			detach(e, i);
		e->gone[i] = gone[i];
		if (e->online[i])
			cpus_round_add(&round, e->cpus[i] ? 0 : attach(e, i));
	}
	return cpus_round_end(&round, e->what, &e->said);
}

void perf_events__free(struct perf_events *e)
{
	if (!e)
		return;
	for (int i = 0; i < e->cpu_cnt; i++)
		detach(e, i);
	free(e->cpus);
	free(e->gone);
	free(e->online);
	free(e);
}
