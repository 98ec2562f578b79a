// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "kernel/live.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/util.h"

#define BATCH 4096

int live_read(const struct bpf_map *map, struct live_entry **ret, size_t *ret_cnt)
{
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
		if (bpf_map_lookup_batch(bpf_map__fd(map), first ? NULL : &pos, &pos, keys, values,
					 &cnt, NULL)) {
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
				(struct live_entry){ .key = keys[i], .live = values[i] };
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

bool live_forget(const struct bpf_map *map, const struct bpfprof_live_key *key)
{
	return !bpf_map_delete_elem(bpf_map__fd(map), key);
}
