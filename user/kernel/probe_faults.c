// SPDX-License-Identifier: BSD-2-Clause
/* The probe of the profile of page faults: the kernel's own events, on every CPU. */
#include <linux/types.h>

#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpfprof.h"
#include "bpfprof.skel.h"
#include "kernel/perf_events.h"
#include "kernel/probes.h"
#include "kernel/session.h"

struct faults {
	struct perf_events *minor, *major;
};

static void configure(struct session *s)
{
	bpf_program__set_autoload(session__skel(s)->progs.faults_minor, true);
	bpf_program__set_autoload(session__skel(s)->progs.faults_major, true);
}

static void disarm(void *armed)
{
	struct faults *f = armed;

	perf_events__free(f->minor);
	perf_events__free(f->major);
	free(f);
}

/* A sample of each event, not of one in so many. */
static struct perf_events *each(const struct bpf_program *prog, uint64_t event, const char *what)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = event,
		.sample_period = 1,
	};

	return perf_events__new(prog, &attr, what);
}

static struct faults *new_faults(struct session *s)
{
	const struct bpfprof_bpf *skel = session__skel(s);
	struct faults *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->minor = each(skel->progs.faults_minor, PERF_COUNT_SW_PAGE_FAULTS_MIN,
			"watched for minor page faults");
	f->major = each(skel->progs.faults_major, PERF_COUNT_SW_PAGE_FAULTS_MAJ,
			"watched for major page faults");
	if (f->minor && f->major)
		return f;
	disarm(f);
	errno = ENOMEM;
	return NULL;
}

static int sync(struct session *s, struct faults **f)
{
	const uint32_t *gone = session__cpus_gone(s);
	int err;

	if (!*f)
		*f = new_faults(s);
	if (!*f)
		return -errno;
	err = perf_events__sync((*f)->minor, gone);
	return err ? err : perf_events__sync((*f)->major, gone);
}

static int arm(struct session *s, void **armed, char *err, size_t err_sz)
{
	int ret = sync(s, (struct faults **)armed);

	if (ret == -EACCES || ret == -EPERM)
		snprintf(err, err_sz, "needs root or CAP_BPF+CAP_PERFMON (try sudo)");
	else if (ret)
		snprintf(err, err_sz, "cannot see page faults on any CPU: %s", strerror(-ret));
	return ret;
}

const struct probe probe_faults = { .configure = configure, .arm = arm, .disarm = disarm };
