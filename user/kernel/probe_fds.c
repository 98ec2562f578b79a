// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "kernel/probe_fds.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/knobs.h"
#include "base/util.h"
#include "bpfprof.skel.h"
#include "kernel/probes.h"
#include "kernel/session.h"
#include "kernel/tracing.h"

#define READ_MAX_BYTES (256U << 20) /* more than five million descriptors */
#define READ_TIGHT_BYTES (256U << 10)
#define READ_MAX_CPU_NS (5 * NSEC_PER_SEC)
#define READ_STEP 65536
#define BATCH 4096

/* ---- where openings are seen ---- */

static bool has_functions(void)
{
	return tracing_has_function("fd_install") && tracing_has_function("do_dup2");
}

enum fds_how probe_fds__how(void)
{
	if (!knobs.fds_syscalls && has_functions())
		return FDS_FUNCTIONS;
	return tracing_has_tracepoint("sys_exit") ? FDS_SYSCALLS : FDS_NONE;
}

static void configure(struct session *s)
{
	struct bpfprof_bpf *skel = session__skel(s);
	bool functions = session__opts(s)->fds == FDS_FUNCTIONS;

	session__need(s, SESSION_FDS_SLOTS | SESSION_DENSE | (functions ? SESSION_SLOTS : 0));
	skel->rodata->bp_config.fds_since_ns = util_boottime_ns();
	bpf_map__set_autocreate(skel->maps.bp_fds, true);
	bpf_map__set_max_entries(skel->maps.bp_fds, PROBE_FDS_MAX);
	bpf_program__set_autoload(skel->progs.fds_install, functions);
	bpf_program__set_autoload(skel->progs.fds_dup, functions);
	bpf_program__set_autoload(skel->progs.fds_exit, !functions);
	bpf_program__set_autoload(skel->progs.fds_read, true);
}

/* Of system calls that return hardly any opens: one that does, and is missed, is of unknown origin. */
static uint64_t missed(struct session *s)
{
	struct bpfprof_bpf *skel = session__skel(s);

	return session__missed(skel->progs.fds_install) + session__missed(skel->progs.fds_dup);
}

const struct probe probe_fds = { .configure = configure, .missed = missed };

/* ---- at work ---- */

static void set_on(struct session *s, enum bpfprof_fds_on on)
{
	__atomic_store_n(&session__skel(s)->bss->bp_control.fds_on, on, __ATOMIC_SEQ_CST);
}

static uint64_t own_cpu_ns(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

/*
 * Reads an iterator to its end. After a million descriptors of which its program has written nothing
 * (MAX_ITER_OBJECTS) the kernel has to be asked again. Programs have as many as they like, and for
 * each of their threads, so it is bounded. The caller frees *ret. 0; -EFBIG; -ETIMEDOUT; -errno.
 */
static int read_iterator(int fd, char **ret, size_t *ret_sz)
{
	size_t max_sz = knobs.tight_maps ? READ_TIGHT_BYTES : READ_MAX_BYTES;
	uint64_t until_ns = own_cpu_ns() + READ_MAX_CPU_NS;
	size_t cap = 0, sz = 0;
	char *buf = NULL;
	ssize_t n = 1;
	int err = 0;

	while (!err && n) {
		err = util_reserve(&buf, &cap, sz + READ_STEP, 1);
		if (err)
			break;
		n = read(fd, buf + sz, cap - sz);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			err = -errno;
		else if (n > 0)
			sz += (size_t)n;
		if (sz > max_sz)
			err = -EFBIG;
		else if (n && own_cpu_ns() > until_ns)
			err = -ETIMEDOUT;
	}
	if (err) {
		free(buf);
		return err;
	}
	*ret = buf;
	*ret_sz = sz;
	return 0;
}

/* Runs the iterator. 0 or -errno. */
static int iterate(struct session *s, char **ret, size_t *ret_sz)
{
	struct bpfprof_bpf *skel = session__skel(s);
	union bpf_iter_link_info one = { .task.pid = skel->bss->bp_control.only_tgid };
	LIBBPF_OPTS(bpf_iter_attach_opts, opts);
	struct bpf_program *prog = skel->progs.fds_read;
	struct bpf_link *link;
	int fd, err;

	opts.link_info = &one;
	opts.link_info_len = sizeof(one);
	/* 6.1 (f0d74c4da1f0); an older kernel refuses what it does not know */
	link = one.task.pid ? bpf_program__attach_iter(prog, &opts) : NULL;
	if (!link)
		link = bpf_program__attach_iter(prog, NULL);
	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	err = fd < 0 ? -errno : read_iterator(fd, ret, ret_sz);
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return err;
}

const char *probe_fds__failure(int err)
{
	if (err == -EFBIG || err == -ETIMEDOUT)
		return "there are too many of them";
	return strerror(-err);
}

int probe_fds__start(struct session *s)
{
	struct bpfprof_bpf *skel = session__skel(s);
	char *none;
	size_t sz;
	int err;

	set_on(s, BPFPROF_FDS_BEGIN);
	err = session__attach(skel->progs.fds_install, &skel->links.fds_install);
	if (!err)
		err = session__attach(skel->progs.fds_dup, &skel->links.fds_dup);
	if (!err)
		err = session__attach(skel->progs.fds_exit, &skel->links.fds_exit);
	/* what was opened since is known by now */
	if (!err)
		err = iterate(s, &none, &sz);
	if (!err)
		free(none);
	set_on(s, BPFPROF_FDS_READ);
	return err;
}

void probe_fds__stop(struct session *s)
{
	struct bpfprof_bpf *skel = session__skel(s);
	struct bpf_link **links[] = { &skel->links.fds_install, &skel->links.fds_dup,
				      &skel->links.fds_exit };

	set_on(s, BPFPROF_FDS_OFF);
	for (size_t i = 0; i < ARRAY_SIZE(links); i++) {
		bpf_link__destroy(*links[i]);
		*links[i] = NULL;
	}
}

/* ---- what is open ---- */

/* Of the same one, what is known of it comes first. */
static int compare(const void *a, const void *b)
{
	const struct bpfprof_fd_open *x = a, *y = b;

	if (x->key.files != y->key.files)
		return x->key.files < y->key.files ? -1 : 1;
	if (x->key.fd != y->key.fd)
		return x->key.fd < y->key.fd ? -1 : 1;
	return x->origin < y->origin ? -1 : x->origin > y->origin;
}

static bool is_same(const struct bpfprof_fd_key *a, const struct bpfprof_fd_key *b)
{
	return a->files == b->files && a->fd == b->fd;
}

int probe_fds__read(struct session *s, struct bpfprof_fd_open **ret, size_t *ret_cnt)
{
	struct bpfprof_fd_open *open;
	size_t sz, cnt, kept = 0;
	char *buf;
	int err = iterate(s, &buf, &sz);

	*ret = NULL;
	*ret_cnt = 0;
	if (err)
		return err;
	open = (struct bpfprof_fd_open *)buf;
	cnt = sz / sizeof(*open);
	qsort(open, cnt, sizeof(*open), compare);
	for (size_t i = 0; i < cnt; i++)
		if (!kept || !is_same(&open[kept - 1].key, &open[i].key))
			open[kept++] = open[i];
	*ret = open;
	*ret_cnt = kept;
	return 0;
}

/* ---- processes that have ended ---- */

/* Without those of the batch; returns whether there may be more. */
static bool prune_batch(int map, struct bpfprof_fd_key *keys, struct bpfprof_fd *values,
			uint32_t *pos, bool first)
{
	uint32_t cnt = BATCH, tgid = 0;
	bool ended = false, last;

	last = bpf_map_lookup_batch(map, first ? NULL : pos, pos, keys, values, &cnt, NULL);
	if (last && errno != ENOENT)
		return false;
	for (uint32_t i = 0; i < cnt; i++) {
		if (values[i].tgid != tgid)
			ended = kill((pid_t)values[i].tgid, 0) && errno == ESRCH;
		tgid = values[i].tgid;
		if (ended)
			(void)bpf_map_delete_elem(map, &keys[i]);
	}
	return !last;
}

void probe_fds__prune(struct session *s)
{
	struct bpfprof_fd_key *keys = calloc(BATCH, sizeof(*keys));
	struct bpfprof_fd *values = calloc(BATCH, sizeof(*values));
	bool first = true;
	uint32_t pos = 0;

	while (keys && values &&
	       prune_batch(bpf_map__fd(session__skel(s)->maps.bp_fds), keys, values, &pos, first))
		first = false;
	free(keys);
	free(values);
}
