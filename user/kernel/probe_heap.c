// SPDX-License-Identifier: BSD-2-Clause
/* The heap profile's probes: what is loaded, attaching them, what is in use. */
#include "kernel/probe_heap.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "bpfprof.skel.h"
#include "kernel/live.h"
#include "kernel/probes.h"
#include "kernel/session.h"

/* Bytes between samples, below which they are dense. Each MiB of tables that a program is the first
 * to need takes the kernel 10 to 40 ms (tables.c): a compiler was seen to fill 4 MiB by then. */
#define DENSE_RATE 262144
/* Sampled allocations that are followed until they are freed: those of a heap of 16 GiB, some 110
 * bytes each */
#define LIVE_HEAP (16ULL << 30)
#define LIVE_MIN (1U << 16)
#define LIVE_MAX (1U << 20)

static int attach_group(struct session *s, enum uprobe_method m, int file_fd, pid_t pid,
			const struct probe_heap_points *p, enum probe_heap_group g,
			struct probe_heap *h)
{
	struct bpfprof_bpf *skel = session__skel(s);
	struct bpf_program *const progs[] = {
		[PROBE_HEAP_ALLOC] = skel->progs.heap_entry,
		[PROBE_HEAP_BEGIN] = skel->progs.heap_begin,
		[PROBE_HEAP_FREE] = skel->progs.heap_free,
		[PROBE_HEAP_USDT_ALLOC] = skel->progs.heap_usdt_alloc,
		[PROBE_HEAP_USDT_FREE] = skel->progs.heap_usdt_free,
	};
	bool frees = g == PROBE_HEAP_FREE || g == PROBE_HEAP_USDT_FREE;

	if (!p->cnt[g])
		return 0;
	if (m == UPROBES_SESSION && !frees) {
		h->sets[g] = session__attach_points(s, m, UPROBES_BOTH, skel->progs.heap_session,
						    file_fd, pid, p->points[g], p->cnt[g]);
		return h->sets[g] ? 0 : -errno;
	}
	/* a kernel with sessions has multi links, which cost a little less where no return is
	 * wanted */
	if (m == UPROBES_SESSION)
		m = UPROBES_MULTI;
	if (g == PROBE_HEAP_ALLOC) {
		h->sets[PROBE_HEAP_NR_GROUPS] =
			session__attach_points(s, m, UPROBES_RETURN, skel->progs.heap_return,
					       file_fd, pid, p->points[g], p->cnt[g]);
		if (!h->sets[PROBE_HEAP_NR_GROUPS])
			return -errno;
	}
	h->sets[g] = session__attach_points(s, m, UPROBES_ENTRY, progs[g], file_fd, pid,
					    p->points[g], p->cnt[g]);
	return h->sets[g] ? 0 : -errno;
}

bool probe_heap__can_begin(uint64_t cookie)
{
	return !(cookie & BPFPROF_COOKIE_WRAPPER) &&
	       BPFPROF_COOKIE_OP(cookie) != BPFPROF_ALLOC_XALLOCX;
}

int probe_heap__attach(struct session *s, enum uprobe_method m, int file_fd, pid_t pid,
		       const struct probe_heap_points *points, struct probe_heap *ret)
{
	static const enum probe_heap_group order[] = { PROBE_HEAP_FREE, PROBE_HEAP_USDT_FREE,
						       PROBE_HEAP_ALLOC, PROBE_HEAP_BEGIN,
						       PROBE_HEAP_USDT_ALLOC };
	int err = 0;

	memset(ret, 0, sizeof(*ret));
	for (size_t i = 0; !err && i < ARRAY_SIZE(order); i++)
		err = attach_group(s, m, file_fd, pid, points, order[i], ret);
	if (err)
		probe_heap__detach(ret, 1);
	return err;
}

void probe_heap__detach(struct probe_heap *heaps, size_t cnt)
{
	uprobes__detach((struct uprobes **)heaps, cnt * ARRAY_SIZE(heaps->sets));
	memset(heaps, 0, cnt * sizeof(*heaps));
}
_Static_assert(sizeof(struct probe_heap) == (PROBE_HEAP_NR_GROUPS + 1) * sizeof(struct uprobes *),
	       "an array of them is an array of sets");

void probe_heap__enable(struct session *s, bool on)
{
	__atomic_store_n(&session__skel(s)->bss->bp_control.heap_off, !on, __ATOMIC_SEQ_CST);
}

void probe_heap__share(struct session *s, uint32_t file, bool shared)
{
	struct bpfprof_control *c = (struct bpfprof_control *)&session__skel(s)->bss->bp_control;
	uint64_t bit = UINT64_C(1) << file;
	static uint64_t changes;

	/* before it: who sees the bit sees this */
	__atomic_store_n(&c->heap_change, BPFPROF_CHANGE(++changes, file, shared),
			 __ATOMIC_SEQ_CST);
	if (shared)
		__atomic_fetch_or(&c->heap_shared, bit, __ATOMIC_SEQ_CST);
	else
		__atomic_fetch_and(&c->heap_shared, ~bit, __ATOMIC_SEQ_CST);
}

void probe_heap__share_done(struct session *s)
{
	__atomic_store_n(&session__skel(s)->bss->bp_control.heap_change, 0, __ATOMIC_SEQ_CST);
}

void probe_heap__round_sizes(struct session *s)
{
	__atomic_store_n(&session__skel(s)->bss->bp_control.coarse, 1, __ATOMIC_SEQ_CST);
}

void probe_heap__stop_tracking(struct session *s)
{
	__atomic_store_n(&session__skel(s)->bss->bp_control.no_live, 1, __ATOMIC_SEQ_CST);
}

/* ---- what is in use ---- */

int probe_heap__live(struct session *s, struct live_entry **ret, size_t *ret_cnt)
{
	return live_read(session__skel(s)->maps.bp_live, ret, ret_cnt);
}

bool probe_heap__forget(struct session *s, const struct bpfprof_live_key *key)
{
	return live_forget(session__skel(s)->maps.bp_live, key);
}

uint32_t probe_heap__live_max(struct session *s)
{
	return bpf_map__max_entries(session__skel(s)->maps.bp_live);
}

/* ---- the probe ---- */

/* Which allocations do not fail for want of memory (vm.overcommit_memory, proc(5)): with the
 * heuristic, what is more than all memory is refused; without overcommitting, anything may be. */
static void set_sure_sizes(struct bpfprof_config *cfg)
{
	char *buf;
	size_t sz;

	cfg->heap_cannot_fail_below = (uint64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / 2;
	cfg->heap_strict = 1;
	if (util_read_file("/proc/sys/vm/overcommit_memory", 64, &buf, &sz))
		return;
	cfg->heap_strict = buf[0] == '2';
	free(buf);
}

static void configure(struct session *s)
{
	const struct session_opts *o = session__opts(s);
	struct bpfprof_config *cfg = session__config(s);
	struct bpfprof_bpf *skel = session__skel(s);
	bool session = o->uprobes == UPROBES_SESSION, hashed;
	/* else there will be copies */
	bool cookies = o->uprobes != UPROBES_EVENT;
	struct {
		struct bpf_program *prog;
		bool load;
	} progs[] = {
		{ skel->progs.heap_session, session },
		{ skel->progs.heap_entry, !session && cookies },
		{ skel->progs.heap_return, !session },
		{ skel->progs.heap_free, true },
		{ skel->progs.heap_begin, !session && o->heap_slices && cookies },
		{ skel->progs.heap_usdt_alloc, !session && o->usdt && cookies },
		{ skel->progs.heap_usdt_free, o->usdt && cookies },
	};

	session__need(s, SESSION_SLOTS | (o->heap_rate < DENSE_RATE ? SESSION_DENSE : 0));
	hashed = session__keep_states(s, skel->maps.bp_heap_tasks, skel->maps.bp_heap_hash);
	bpf_program__set_autoload(skel->progs.heap_exit, hashed);
	bpf_program__set_autoload(skel->progs.heap_exec, hashed);
	skel->bss->bp_control.heap_off = 1;
	cfg->heap_rate = o->heap_rate;
	cfg->heap_shares = session;
	set_sure_sizes(cfg);
	bpf_map__set_autocreate(skel->maps.bp_live, true);
	bpf_map__set_max_entries(skel->maps.bp_live,
				 MIN(MAX(LIVE_HEAP / o->heap_rate, LIVE_MIN), LIVE_MAX));
	for (size_t i = 0; i < ARRAY_SIZE(progs); i++) {
		bpf_program__set_autoload(progs[i].prog, progs[i].load);
		/* the session program alone may say that it does not want a return */
		bpf_program__set_expected_attach_type(
			progs[i].prog, uprobes_attach_type(i || o->uprobes != UPROBES_SESSION ?
								   MAX(o->uprobes, UPROBES_MULTI) :
								   UPROBES_SESSION));
	}
}

static int attach_ends(struct session *s, char *err, size_t err_sz)
{
	struct bpfprof_bpf *skel = session__skel(s);
	int ret = session__attach(skel->progs.heap_exit, &skel->links.heap_exit);

	if (!ret)
		ret = session__attach(skel->progs.heap_exec, &skel->links.heap_exec);
	if (ret)
		snprintf(err, err_sz, "cannot see threads end");
	return ret;
}

const struct probe probe_heap = { .configure = configure, .attach = attach_ends };
