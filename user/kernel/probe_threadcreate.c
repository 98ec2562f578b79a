// SPDX-License-Identifier: BSD-2-Clause
/* The probe of the profile of new threads; probe_waits.c attaches it and starts it with its own. */
#include <linux/types.h>

#include <bpf/libbpf.h>

#include "bpfprof.h"
#include "bpfprof.skel.h"
#include "kernel/probes.h"
#include "kernel/session.h"

static void configure(struct session *s)
{
	bpf_program__set_autoload(session__skel(s)->progs.threadcreate, true);
	session__need(s, SESSION_TRACE_SLOTS);
}

static uint64_t missed(struct session *s)
{
	return session__missed(session__skel(s)->progs.threadcreate);
}

const struct probe probe_threadcreate = { .configure = configure, .missed = missed };
