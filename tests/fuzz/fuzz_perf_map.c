/* SPDX-License-Identifier: BSD-2-Clause */
/* Perf maps. The first byte says how far apart the addresses are that are asked for, the next eight
 * where they begin; the rest is the file. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "target/perf_map.h"
#include "tests/fuzz/parsers.h"

#define ADDRESSES 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	static int fd = -1;
	uint64_t addrs[ADDRESSES];
	struct perf_map_names n;
	size_t cnt = 1;

	if (sz < 9)
		return 0;
	if (fd < 0)
		fd = memfd_create("perf-map", MFD_CLOEXEC);
	NEED(!ftruncate(fd, 0) && pwrite(fd, data + 9, sz - 9, 0) == (ssize_t)(sz - 9));
	memcpy(addrs, data + 1, sizeof(*addrs));
	/* as far as there are any above */
	while (cnt < ADDRESSES &&
	       !__builtin_add_overflow(addrs[cnt - 1], 1 + data[0] % 64, &addrs[cnt]))
		cnt++;
	NEED(!perf_map_find(fd, addrs, cnt, &n));
	NEED(n.symbols.cnt == cnt && !n.symbols.first[0]);
	NEED(n.symbols.first[cnt] == n.symbols.frame_cnt && n.ignored <= sz && !n.unread);
	for (size_t i = 0; i < cnt; i++)
		NEED(n.symbols.first[i + 1] - n.symbols.first[i] <= 1);
	for (size_t i = 0; i < n.symbols.frame_cnt; i++) {
		const struct symbol_frame *f = &n.symbols.frames[i];

		NEED(f->system_name && f->system_name < n.symbols.strings_sz && !f->file);
		NEED(f->name && f->name < n.symbols.strings_sz);
		NEED(strlen(n.symbols.strings + f->system_name) < PERF_MAP_MAX_LINE);
	}
	symbols__done(&n.symbols);
	return 0;
}
