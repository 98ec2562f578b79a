// SPDX-License-Identifier: BSD-2-Clause
/* Attaches what watches threads for their waits, and those that are created. */
#include <linux/types.h>

#include "kernel/probe_waits.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "bpfprof.skel.h"
#include "kernel/probes.h"
#include "kernel/session.h"
#include "kernel/waits_how.h"

#define MAX_LINKS 12

struct probe_waits {
	struct session *session;
	struct bpf_link *links[MAX_LINKS];
	size_t link_cnt;
};

/* Are the waits to be watched at the futexes, and not at every switch? */
static bool by_futex(const struct session_opts *o)
{
	return (o->kinds[BPFPROF_BLOCK] || o->kinds[BPFPROF_MUTEX]) && !o->kinds[BPFPROF_OFFCPU] &&
	       o->waits.futex;
}

/* Of all kinds of waits that are recorded: each one's is the same. */
static void configure(struct session *s)
{
	const struct session_opts *o = session__opts(s);
	struct bpfprof_config *cfg = session__config(s);
	struct bpfprof_bpf *skel = session__skel(s);
	bool hashed = session__keep_states(s, skel->maps.bp_waits, skel->maps.bp_wait_hash);
	bool futex = by_futex(o), block = o->kinds[BPFPROF_BLOCK];
	bool mutex = o->kinds[BPFPROF_MUTEX], offcpu = o->kinds[BPFPROF_OFFCPU];
	bool switch_in_only = !futex && o->waits.switch_in_only && !hashed;
	bool resume = !futex && !switch_in_only && (block || offcpu);

	session__need(s, SESSION_TRACE_SLOTS | (futex ? SESSION_SLOTS : 0));
	memcpy(cfg->min_wait_ns, o->min_wait_ns, sizeof(cfg->min_wait_ns));
	cfg->wait_slots = !futex && !hashed;
	cfg->switch_state = o->waits.switch_state;
	cfg->preempt_count_off = o->waits.preempt_count_off;
	cfg->interrupt_mask = o->waits.interrupt_mask;
	cfg->rdonly_cast = o->waits.rdonly_cast;
	cfg->futex_probes = futex;
	cfg->switch_in_only = switch_in_only;
	bpf_map__set_autocreate(skel->maps.bp_futexes, mutex);
	bpf_map__set_autocreate(skel->maps.bp_sched_cpus, !futex);
	bpf_map__set_autocreate(skel->maps.bp_kstacks, offcpu);
	bpf_map__set_autocreate(skel->maps.bp_wait_slots, cfg->wait_slots);
	bpf_map__set_autocreate(skel->maps.bp_wait_owners, cfg->wait_slots);
	bpf_program__set_autoload(skel->progs.wait_queue, futex);
	bpf_program__set_autoload(skel->progs.wait_unqueue, futex);
	bpf_program__set_autoload(skel->progs.wait_unqueue_pi, futex);
	bpf_program__set_autoload(skel->progs.wait_switch, !futex && !switch_in_only);
	bpf_program__set_autoload(skel->progs.wait_switched, switch_in_only && !offcpu);
	bpf_program__set_autoload(skel->progs.wait_switched_any, switch_in_only && offcpu);
	bpf_program__set_autoload(skel->progs.wait_waking, mutex);
	bpf_program__set_autoload(skel->progs.wait_resumed,
				  resume && o->waits.resume == WAITS_RESUME_EXIT);
	bpf_program__set_autoload(skel->progs.wait_resumed_kprobe,
				  resume && o->waits.resume == WAITS_RESUME_KPROBE);
	bpf_program__set_autoload(skel->progs.wait_begin, true);
	bpf_program__set_autoload(skel->progs.wait_newtask, true);
	bpf_program__set_autoload(skel->progs.wait_fork, !futex);
	bpf_program__set_autoload(skel->progs.wait_free, cfg->wait_slots);
	bpf_program__set_autoload(skel->progs.wait_exec, !futex && hashed);
	/* waits that are in progress at the end are read from outside */
	if (block || offcpu)
		bpf_program__set_autoload(skel->progs.threads_read, true);
}

/* Threads that nobody watches since their creation was missed, at most, and whosever they are: the
 * kernel does not say. Where futexes are watched, their first wait shows. */
static uint64_t missed_threads(const struct bpfprof_bpf *skel)
{
	uint64_t once, again;

	if (bpf_program__fd(skel->progs.wait_queue) >= 0)
		return 0;
	once = session__missed(skel->progs.wait_newtask);
	if (!once)
		return 0;
	again = session__missed(skel->progs.wait_fork);
	return MIN(once, again);
}

static uint64_t missed_block(struct session *s)
{
	const struct bpfprof_bpf *skel = session__skel(s);

	return missed_threads(skel) + session__missed(skel->progs.wait_queue) +
	       session__missed(skel->progs.wait_unqueue) +
	       session__missed(skel->progs.wait_unqueue_pi);
}

static uint64_t missed_mutex(struct session *s)
{
	const struct bpfprof_bpf *skel = session__skel(s);

	return missed_threads(skel) + session__missed(skel->progs.wait_queue) +
	       session__missed(skel->progs.wait_waking);
}

static uint64_t missed_offcpu(struct session *s)
{
	return missed_threads(session__skel(s));
}

const struct probe probe_block = { .configure = configure, .missed = missed_block };
const struct probe probe_mutex = { .configure = configure, .missed = missed_mutex };
const struct probe probe_offcpu = { .configure = configure, .missed = missed_offcpu };

/* Visits all threads. */
static int run_begin(struct probe_waits *w)
{
	struct bpf_link *link;
	char buf[64];
	int fd, err = 0;

	link = bpf_program__attach_iter(session__skel(w->session)->progs.wait_begin, NULL);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	if (fd < 0 || read(fd, buf, sizeof(buf)) < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}

static int keep(struct probe_waits *w, struct bpf_link *link)
{
	if (!link)
		return -errno;
	w->links[w->link_cnt++] = link;
	return 0;
}

static int attach(struct probe_waits *w)
{
	struct bpfprof_bpf *skel = session__skel(w->session);
	struct bpf_program *progs[] = {
		skel->progs.wait_free,	     skel->progs.wait_newtask,
		skel->progs.wait_fork,	     skel->progs.wait_switch,
		skel->progs.wait_switched,   skel->progs.wait_switched_any,
		skel->progs.wait_resumed,    skel->progs.wait_waking,
		skel->progs.wait_queue,	     skel->progs.wait_unqueue,
		skel->progs.wait_unqueue_pi, skel->progs.wait_exec,
		skel->progs.threadcreate,
	};
	char symbol[256];
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(progs); i++)
		if (bpf_program__autoload(progs[i]))
			err = keep(w, bpf_program__attach_trace(progs[i]));
	if (!err && bpf_program__autoload(skel->progs.wait_resumed_kprobe)) {
		if (!waits_how__resume_symbol(symbol, sizeof(symbol)))
			return -ENOTSUP;
		err = keep(w, bpf_program__attach_kprobe(skel->progs.wait_resumed_kprobe, false,
							 symbol));
	}
	return err;
}

struct probe_waits *probe_waits__new(struct session *s)
{
	struct probe_waits *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return NULL;
	w->session = s;
	/* threads that are created from here on make their own states */
	err = attach(w);
	if (!err && bpf_program__autoload(session__skel(s)->progs.wait_begin))
		err = run_begin(w);
	if (!err)
		return w;
	probe_waits__free(w);
	errno = -err;
	return NULL;
}

int probe_waits__switch_programs(const struct probe_waits *w)
{
	struct bpfprof_bpf *skel = session__skel(w->session);
	const struct bpf_program *progs[] = {
		skel->progs.wait_switch,	 skel->progs.wait_resumed,
		skel->progs.wait_resumed_kprobe, skel->progs.wait_switched,
		skel->progs.wait_switched_any,	 skel->progs.wait_waking,
	};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(progs); i++)
		ret += bpf_program__autoload(progs[i]);
	return ret;
}

void probe_waits__sync_clock(struct probe_waits *w)
{
	__atomic_store_n(&session__skel(w->session)->bss->bp_control.realtime_off,
			 util_realtime_shift_ns(), __ATOMIC_RELAXED);
}

void probe_waits__set_rate(struct probe_waits *w, uint64_t ns)
{
	__atomic_store_n(&session__skel(w->session)->bss->bp_control.wait_rate_ns, ns,
			 __ATOMIC_RELAXED);
}

static void set_on(struct probe_waits *w, bool on)
{
	__atomic_store_n(&session__skel(w->session)->bss->bp_control.waits_on, on,
			 __ATOMIC_SEQ_CST);
}

int probe_waits__start(struct probe_waits *w, uint64_t start_ns)
{
	struct bpfprof_bpf *skel = session__skel(w->session);
	int err = 0;

	skel->bss->bp_control.start_ns = start_ns;
	probe_waits__sync_clock(w);
	set_on(w, true);
	if (bpf_program__autoload(skel->progs.wait_begin))
		err = run_begin(w);
	if (!err)
		__atomic_store_n(&skel->bss->bp_control.waits_all_ns, util_monotonic_ns(),
				 __ATOMIC_SEQ_CST);
	return err;
}

void probe_waits__stop(struct probe_waits *w, uint64_t stop_ns)
{
	__atomic_store_n(&session__skel(w->session)->bss->bp_control.stop_ns, stop_ns,
			 __ATOMIC_SEQ_CST);
}

void probe_waits__off(struct probe_waits *w)
{
	set_on(w, false);
}

void probe_waits__free(struct probe_waits *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->link_cnt; i++)
		bpf_link__destroy(w->links[i]);
	free(w);
}
