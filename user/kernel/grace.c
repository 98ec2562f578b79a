// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/grace.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/thread.h"
#include "base/util.h"

/* What the thread is asked for: if fd is not -1, an entry is to become `inner` first, or to go (-1). */
struct ask {
	int fd, inner;
	uint32_t key;
};

struct answer {
	uint32_t passed; /* of what was asked for */
	int err;	 /* else -errno: nothing is known of what has passed */
};

struct grace {
	pthread_t thread;
	bool started;
	int ours, its;		/* a pair of sockets, each message an ask, or an answer */
	int outer_fd, inner_fd; /* a map of maps whose update waits, and what it is updated with */
	int err;
	uint64_t asked, passed;
};

/*
 * The kernel lets a change of a map of maps return only when the programs that may still use the
 * former inner map have ended: an RCU grace period (1ae80cf31938, Linux 4.20). membarrier(2) would
 * wait for one as well, but not where CPUs run without a tick (nohz_full).
 */
static int open_maps(struct grace *g)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts);

	g->inner_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "bp_grace", 4, 4, 1, NULL);
	if (g->inner_fd < 0)
		return -errno;
	opts.inner_map_fd = (uint32_t)g->inner_fd;
	g->outer_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "bp_graces", 4, 4, 1, &opts);
	return g->outer_fd < 0 ? -errno : 0;
}

static int put(int outer, uint32_t key, int inner)
{
	return bpf_map_update_elem(outer, &key, &inner, BPF_ANY) ? -errno : 0;
}

/* To remove what is not there does not wait. */
static int change(const struct ask *ask, bool *waited)
{
	int err = 0;

	if (ask->inner >= 0)
		err = put(ask->fd, ask->key, ask->inner);
	*waited |= ask->inner >= 0 || !bpf_map_delete_elem(ask->fd, &ask->key);
	return err;
}

/* Of the rights of the process, those by which maps are changed. */
static void reduce_rights(void)
{
	uint64_t permitted, effective, kept = CAPS_BIT(CAP_BPF);

	if (caps_get(&permitted, &effective))
		return;
	if (!(effective & kept))
		kept = CAPS_BIT(CAP_SYS_ADMIN);
	(void)caps_set(permitted & kept, effective & kept);
}

/* What has been asked for by now: one wait is enough for all of it. */
static struct answer wait_for(const struct grace *g, struct ask ask)
{
	struct answer answer = { 0 };
	bool waited = false;

	do {
		answer.passed++;
		if (ask.fd >= 0)
			answer.err = answer.err ?: change(&ask, &waited);
	} while (recv(g->its, &ask, sizeof(ask), MSG_DONTWAIT) == sizeof(ask));
	if (!waited)
		answer.err = put(g->outer_fd, 0, g->inner_fd);
	return answer;
}

static void *run(void *arg)
{
	const struct grace *g = arg;
	struct answer answer;
	struct ask ask;

	reduce_rights();
	while (recv(g->its, &ask, sizeof(ask), 0) == sizeof(ask)) {
		answer = wait_for(g, ask);
		if (send(g->its, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
			break;
	}
	return NULL;
}

struct grace *grace__new(void)
{
	struct grace *g = calloc(1, sizeof(*g));
	int pair[2] = { -1, -1 }, err;

	if (!g)
		return NULL;
	g->outer_fd = g->inner_fd = -1;
	err = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ? -errno : 0;
	g->ours = pair[0];
	g->its = pair[1];
	if (!err)
		err = open_maps(g);
	if (!err)
		err = thread_start(&g->thread, 0, run, g);
	g->started = !err;
	if (!err)
		return g;
	grace__free(g);
	errno = -err;
	return NULL;
}

void grace__free(struct grace *g)
{
	if (!g)
		return;
	if (g->started) {
		(void)shutdown(g->ours, SHUT_RDWR);
		(void)pthread_join(g->thread, NULL);
	}
	for (int *fd = (int[]){ g->ours, g->its, g->outer_fd, g->inner_fd, -2 }; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
	free(g);
}

static uint64_t ask(struct grace *g, int fd, uint32_t key, int inner)
{
	struct ask ask = { .fd = fd, .inner = inner, .key = key };

	if (!g->err && send(g->ours, &ask, sizeof(ask), MSG_NOSIGNAL) != sizeof(ask))
		g->err = -errno;
	return ++g->asked;
}

uint64_t grace__ask(struct grace *g)
{
	return ask(g, -1, 0, -1);
}

uint64_t grace__remove(struct grace *g, int fd, uint32_t key)
{
	return ask(g, fd, key, -1);
}

uint64_t grace__put(struct grace *g, int fd, uint32_t key, int inner)
{
	return ask(g, fd, key, inner);
}

int grace__passed(struct grace *g, uint64_t number, bool wait)
{
	struct answer answer;
	ssize_t sz;

	while (!g->err) {
		sz = recv(g->ours, &answer, sizeof(answer),
			  wait && g->passed < number ? 0 : MSG_DONTWAIT);
		if (sz == sizeof(answer)) {
			g->passed += answer.passed;
			g->err = answer.err;
		} else if (!sz) {
			g->err = -EPIPE;
		} else if (errno == EAGAIN) {
			return g->passed >= number;
		} else if (errno != EINTR) {
			g->err = -errno;
		}
	}
	return g->err;
}

int grace__fd(const struct grace *g)
{
	return g->ours;
}
