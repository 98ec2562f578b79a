// SPDX-License-Identifier: BSD-2-Clause
/* The BPF programs as libbpf has them, and copies of single ones. */
#include <linux/types.h>

#include "kernel/skeleton.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bpfprof.h"
#include "bpfprof.skel.h"
#include "noloop.skel.h"

/* See walk in stack.bpf.c. */
struct bpfprof_bpf *skeleton__open(void)
{
	struct bpfprof_bpf *skel = calloc(1, sizeof(*skel));
	int err;

	if (!skel)
		return NULL;
	err = bpfprof_bpf__create_skeleton(skel);
	if (!err && libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_loop, NULL) != 1)
		skel->skeleton->data = (void *)noloop_bpf__elf_bytes(&skel->skeleton->data_sz);
	if (!err)
		err = bpf_object__open_skeleton(skel->skeleton, NULL);
	if (!err)
		return skel;
	bpfprof_bpf__destroy(skel);
	errno = -err;
	return NULL;
}

/* Takes the maps of another one, but for the configuration. */
static int share_maps(struct bpfprof_bpf *copy, const struct bpfprof_bpf *skel)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, copy->obj)
	{
		int fd = bpf_object__find_map_fd_by_name(skel->obj, bpf_map__name(map));

		if (map == copy->maps.rodata)
			continue;
		/* what the other one had no use for, its programs have none for either */
		err = fd < 0 ? bpf_map__set_autocreate(map, false) : bpf_map__reuse_fd(map, fd);
		if (err)
			break;
	}
	return err;
}

static int load_copy(struct bpfprof_bpf *copy, const struct bpfprof_bpf *skel,
		     const struct bpf_program *prog, uint64_t cookie)
{
	struct bpfprof_config *cfg = (struct bpfprof_config *)&copy->rodata->bp_config;
	struct bpf_program *p, *mine = NULL;
	uint32_t zero = 0;
	int err;

	/* by its descriptor: a forked child has no part in the map's memory (kernel/dontfork.h) */
	if (bpf_map_lookup_elem(bpf_map__fd(skel->maps.rodata), &zero, copy->rodata))
		return -errno;
	cfg->one_cookie = 1;
	cfg->cookie = cookie;
	bpf_object__for_each_program(p, copy->obj)
	{
		bool same = !strcmp(bpf_program__name(p), bpf_program__name(prog));

		bpf_program__set_autoload(p, same);
		if (same)
			mine = p;
	}
	bpf_program__set_expected_attach_type(mine, bpf_program__expected_attach_type(prog));
	err = share_maps(copy, skel);
	if (!err)
		err = bpfprof_bpf__load(copy);
	if (err)
		return err;
	err = fcntl(bpf_program__fd(mine), F_DUPFD_CLOEXEC, 0);
	return err < 0 ? -errno : err;
}

int skeleton__load_copy(const struct bpfprof_bpf *skel, const struct bpf_program *prog,
			uint64_t cookie)
{
	struct bpfprof_bpf *copy = skeleton__open();
	int ret;

	if (!copy)
		return -errno;
	ret = load_copy(copy, skel, prog, cookie);
	bpfprof_bpf__destroy(copy);
	return ret;
}
