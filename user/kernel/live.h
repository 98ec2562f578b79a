/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel side keeps of what was added and not removed: see bpf/live.bpf.h. */
#ifndef KERNEL_LIVE_H
#define KERNEL_LIVE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "bpfprof.h"

struct bpf_map;

struct live_entry {
	struct bpfprof_live_key key;
	struct bpfprof_live live;
};

/* All that is in the map; the caller frees *ret. 0 or -errno. */
int live_read(const struct bpf_map *map, struct live_entry **ret, size_t *ret_cnt);
/* Forgets one. Was it there? */
bool live_forget(const struct bpf_map *map, const struct bpfprof_live_key *key);

#endif
