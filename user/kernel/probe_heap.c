// SPDX-License-Identifier: BSD-2-Clause
/* The heap profile's probes: attaching them, their cost, what is in use. */
#include "kernel/probe_heap.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "bpfprof.skel.h"
#include "kernel/session.h"

#define MEASURE_CALLS 32
/* some 7 ms: a machine that is shared with others may be slow for one or two */
#define MEASURE_ROUNDS 256
#define BATCH 4096

/* uprobes__attach, with a program that may take a copy for each cookie. */
static struct uprobes *attach(struct session *s, enum uprobe_method m, enum uprobe_side side,
			      const struct bpf_program *prog, int file_fd, pid_t pid,
			      const struct uprobe_point *points, size_t cnt)
{
	int *prog_fds = calloc(cnt, sizeof(*prog_fds));
	struct uprobes *ret = NULL;
	int err = prog_fds ? 0 : ENOMEM;

	for (size_t i = 0; i < cnt && !err; i++) {
		prog_fds[i] = session__program(s, prog, points[i].cookie);
		if (prog_fds[i] < 0)
			err = -prog_fds[i];
	}
	if (!err) {
		ret = uprobes__attach(m, side, prog_fds, file_fd, pid, points, cnt);
		err = errno;
	}
	free(prog_fds);
	errno = err;
	return ret;
}

static int attach_group(struct session *s, enum uprobe_method m, int file_fd, pid_t pid,
			const struct probe_heap_points *p, enum probe_heap_group g,
			struct probe_heap *h)
{
	struct bpfprof_bpf *skel = session__skel(s);
	struct bpf_program *const progs[] = {
		[PROBE_HEAP_ALLOC] =
			m == UPROBES_SESSION ? skel->progs.heap_session : skel->progs.heap_entry,
		[PROBE_HEAP_FREE] = skel->progs.heap_free,
		[PROBE_HEAP_USDT_ALLOC] = skel->progs.heap_usdt_alloc,
		[PROBE_HEAP_USDT_FREE] = skel->progs.heap_usdt_free,
	};
	bool session = g == PROBE_HEAP_ALLOC && m == UPROBES_SESSION;

	if (!p->cnt[g])
		return 0;
	/* a kernel with sessions has multi links, which cost a little less where no return is
	 * wanted */
	if (m == UPROBES_SESSION && !session)
		m = UPROBES_MULTI;
	if (g == PROBE_HEAP_ALLOC && !session) {
		h->sets[PROBE_HEAP_NR_GROUPS] =
			attach(s, m, UPROBES_RETURN, skel->progs.heap_return, file_fd, pid,
			       p->points[g], p->cnt[g]);
		if (!h->sets[PROBE_HEAP_NR_GROUPS])
			return -errno;
	}
	h->sets[g] = attach(s, m, session ? UPROBES_BOTH : UPROBES_ENTRY, progs[g], file_fd, pid,
			    p->points[g], p->cnt[g]);
	return h->sets[g] ? 0 : -errno;
}

int probe_heap__attach(struct session *s, enum uprobe_method m, int file_fd, pid_t pid,
		       const struct probe_heap_points *points, struct probe_heap *ret)
{
	static const enum probe_heap_group order[] = { PROBE_HEAP_FREE, PROBE_HEAP_USDT_FREE,
						       PROBE_HEAP_ALLOC, PROBE_HEAP_USDT_ALLOC };
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

int probe_heap__clean_children(const struct probe_heap *h)
{
	int err = 0;

	/* the returns' are at the same points as the entries' */
	for (size_t i = 0; !err && i < PROBE_HEAP_NR_GROUPS; i++)
		if (h->sets[i])
			err = uprobes__clean_children(h->sets[i]);
	return err;
}

void probe_heap__enable(struct session *s, bool on)
{
	__atomic_store_n(&session__skel(s)->bss->bp_control.heap_off, !on, __ATOMIC_SEQ_CST);
}

void probe_heap__round_sizes(struct session *s)
{
	__atomic_store_n(&session__skel(s)->bss->bp_control.coarse, 1, __ATOMIC_SEQ_CST);
}

void probe_heap__stop_tracking(struct session *s)
{
	__atomic_store_n(&session__skel(s)->bss->bp_control.no_live, 1, __ATOMIC_SEQ_CST);
}

/* ---- what a hit costs ---- */

uint64_t probe_heap_free(uint64_t ptr, uint64_t size);
uint64_t probe_heap_alloc(uint64_t ptr, uint64_t size);
uint64_t probe_heap_wrapper(uint64_t ptr, uint64_t size);

/* A push, which the kernel emulates, as at the entry of most functions. Returns 0. */
#define MEASURED(name)                             \
	__asm__(".pushsection .text\n"             \
		".type " name ", @function\n" name \
		":\n"                              \
		"	push %rbp\n"                     \
		"	pop %rbp\n"                      \
		"	xor %eax, %eax\n"                \
		"	ret\n"                           \
		".size " name ", . - " name        \
		"\n"                               \
		".popsection\n")
MEASURED("probe_heap_free");
MEASURED("probe_heap_alloc");
MEASURED("probe_heap_wrapper");

struct place {
	uint64_t addr, offset;
};

static int find_place(struct dl_phdr_info *info, size_t sz, void *ctx)
{
	struct place *p = ctx;

	(void)sz;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type == PT_LOAD && p->addr - start < ph->p_filesz) {
			p->offset = p->addr - start + ph->p_offset;
			return 1;
		}
	}
	return 0;
}

/* Of some rounds the quickest: others may have been interrupted. */
static double call_ns(uint64_t (*f)(uint64_t ptr, uint64_t size))
{
	uint64_t best = UINT64_MAX;

	for (int round = 0; round < MEASURE_ROUNDS; round++) {
		uint64_t before = util_monotonic_ns();

		for (int i = 0; i < MEASURE_CALLS; i++)
			(void)f(1, 1);
		best = MIN(best, util_monotonic_ns() - before);
	}
	return (double)best / MEASURE_CALLS;
}

/*
 * In a process made for it, which leaves the links to its exit. Allocations are in-place resizings
 * that fail, since these are never recorded.
 */
static int measure(struct session *s, enum uprobe_method m, double ret_ns[BPFPROF_NR_HITS])
{
	static const struct {
		uint64_t (*f)(uint64_t ptr, uint64_t size);
		uint64_t cookie;
		enum probe_heap_group group;
		enum bpfprof_hit hit;
	} rows[] = {
		{ probe_heap_free, BPFPROF_ALLOC_FREE, PROBE_HEAP_FREE, BPFPROF_HIT_FREE },
		{ probe_heap_alloc, BPFPROF_ALLOC_XALLOCX, PROBE_HEAP_ALLOC, BPFPROF_HIT_ENTRY },
		{ probe_heap_wrapper, BPFPROF_ALLOC_XALLOCX | BPFPROF_COOKIE_WRAPPER,
		  PROBE_HEAP_ALLOC, BPFPROF_HIT_RETURN },
	};
	struct uprobe_point points[ARRAY_SIZE(rows)] = { 0 };
	struct probe_heap_points by_group = {
		.points = { [PROBE_HEAP_FREE] = points, [PROBE_HEAP_ALLOC] = points + 1 },
		.cnt = { [PROBE_HEAP_FREE] = 1, [PROBE_HEAP_ALLOC] = 2 },
	};
	double bare[ARRAY_SIZE(rows)];
	struct probe_heap h;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct place place = { .addr = (uintptr_t)rows[i].f };

		if (fd < 0 || !dl_iterate_phdr(find_place, &place))
			return -1;
		points[i] =
			(struct uprobe_point){ .offset = place.offset, .cookie = rows[i].cookie };
		bare[i] = call_ns(rows[i].f);
	}
	if (probe_heap__attach(s, m, fd, getpid(), &by_group, &h))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		double ns = call_ns(rows[i].f) - bare[i];

		ret_ns[rows[i].hit] = ns > 0 ? ns : 0;
	}
	/* where returns are always waited for, the entry's cost has theirs in it */
	ret_ns[BPFPROF_HIT_RETURN] -= ret_ns[BPFPROF_HIT_ENTRY];
	if (ret_ns[BPFPROF_HIT_RETURN] < 0)
		ret_ns[BPFPROF_HIT_RETURN] = 0;
	ret_ns[BPFPROF_HIT_USDT] = ret_ns[BPFPROF_HIT_FREE];
	return 0;
}

int probe_heap__measure(struct session *s, enum uprobe_method m, double ret_ns[BPFPROF_NR_HITS])
{
	const size_t sz = BPFPROF_NR_HITS * sizeof(*ret_ns);
	int fds[2], status, err = -EOPNOTSUPP;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	probe_heap__enable(s, true);
	pid = fork();
	if (!pid) {
		/* nobody waits for the one that measures: its exit, which detaches, takes a while
		 */
		if (fork())
			_exit(0);
		_exit(measure(s, m, ret_ns) || write(fds[1], ret_ns, sz) != (ssize_t)sz);
	}
	close(fds[1]);
	if (pid > 0) {
		(void)waitpid(pid, &status, 0);
		if (read(fds[0], ret_ns, sz) == (ssize_t)sz)
			err = 0;
	}
	close(fds[0]);
	probe_heap__enable(s, false);
	return err;
}

/* ---- what is in use ---- */

int probe_heap__live(struct session *s, struct probe_heap_live **ret, size_t *ret_cnt)
{
	int fd = bpf_map__fd(session__skel(s)->maps.bp_live);
	struct bpfprof_live_key *keys = calloc(BATCH, sizeof(*keys));
	struct bpfprof_live *values = calloc(BATCH, sizeof(*values));
	uint32_t cnt, pos = 0;
	bool first = true, last = false;
	size_t cap = 0;
	int err = keys && values ? 0 : -ENOMEM;

	*ret = NULL;
	*ret_cnt = 0;
	while (!err && !last) {
		cnt = BATCH;
		if (bpf_map_lookup_batch(fd, first ? NULL : &pos, &pos, keys, values, &cnt, NULL)) {
			/* ENOENT: this was the last batch */
			last = errno == ENOENT;
			if (!last) {
				err = -errno;
				break;
			}
		}
		first = false;
		err = util_reserve(ret, &cap, *ret_cnt + cnt, sizeof(**ret));
		for (uint32_t i = 0; !err && i < cnt; i++)
			(*ret)[(*ret_cnt)++] =
				(struct probe_heap_live){ .key = keys[i], .live = values[i] };
	}
	free(keys);
	free(values);
	if (err) {
		free(*ret);
		*ret = NULL;
		*ret_cnt = 0;
	}
	return err;
}

void probe_heap__forget(struct session *s, const struct bpfprof_live_key *key)
{
	(void)bpf_map_delete_elem(bpf_map__fd(session__skel(s)->maps.bp_live), key);
}

uint32_t probe_heap__live_max(struct session *s)
{
	return bpf_map__max_entries(session__skel(s)->maps.bp_live);
}
