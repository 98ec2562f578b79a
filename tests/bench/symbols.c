// SPDX-License-Identifier: BSD-2-Clause
/* Names addresses of a file: symbols FILE < hexadecimal addresses, ascending -> "addresses named
 * with_line ns peak_kb". */
#include <linux/types.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/util.h"
#include "target/objects.h"

int main(int argc, char **argv)
{
	struct objects *o = objects__new();
	uint64_t named = 0, with_line = 0, before, ns, *addrs = NULL;
	size_t cnt = 0, cap = 0;
	struct rusage usage;
	struct symbols s;
	uint32_t id;
	uint64_t v;

	if (argc < 2 || !o)
		return 2;
	while (scanf("%" SCNx64, &v) == 1) {
		if (util_reserve(&addrs, &cap, cnt + 1, sizeof(*addrs)))
			return 1;
		addrs[cnt++] = v;
	}
	before = util_monotonic_ns();
	id = objects__add(o, open(argv[1], O_RDONLY | O_CLOEXEC), argv[1]);
	if (id == OBJECTS_NONE || objects__symbolize(o, id, addrs, cnt, &s))
		return 1;
	ns = util_monotonic_ns() - before;
	for (size_t i = 0; i < cnt; i++) {
		named += s.first[i] < s.first[i + 1];
		with_line += s.first[i] < s.first[i + 1] && s.frames[s.first[i]].line;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("%zu %" PRIu64 " %" PRIu64 " %" PRIu64 " %ld\n", cnt, named, with_line, ns,
	       usage.ru_maxrss);
	symbols__done(&s);
	objects__free(o);
	free(addrs);
	return 0;
}
