// SPDX-License-Identifier: BSD-2-Clause
/* Names two profiles of the same addresses of a file, with one cache: symbols FILE < hexadecimal
 * addresses, ascending -> "addresses named with_line ns second_ns second_hits peak_kb". */
#include <linux/types.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/util.h"
#include "profile/profile.h"
#include "capture/symbolize.h"
#include "target/elf_file.h"
#include "target/names_cache.h"
#include "target/objects.h"

/* The file mapped as a whole, at 0: an address is an offset in it. NULL: it failed. */
static struct profile *profile_of(const uint64_t *offsets, size_t cnt, const char *path)
{
	const struct profile_value_type type = { "samples", "count" };
	struct profile *p = profile__new(&type, 1, type, 1);
	struct profile_mapping m = { .limit = UINT64_MAX };

	if (!p)
		return NULL;
	m.filename = profile__string(p, path);
	if (profile__add_mapping(p, &m) == PROFILE_NONE)
		return NULL;
	for (size_t i = 0; i < cnt; i++)
		if (profile__add_location(p, 0, offsets[i]) == PROFILE_NONE)
			return NULL;
	return p;
}

static size_t read_offsets(const struct objects *o, uint32_t object, uint64_t **ret)
{
	size_t segment_cnt, cnt = 0, cap = 0;
	const struct elf_segment *segments = objects__segments(o, object, &segment_cnt);
	uint64_t vaddr, offset;

	while (scanf("%" SCNx64, &vaddr) == 1) {
		if (!elf_segments__offset(segments, segment_cnt, vaddr, 1, &offset))
			continue;
		if (util_reserve(ret, &cap, cnt + 1, sizeof(**ret)))
			exit(1);
		(*ret)[cnt++] = offset;
	}
	return cnt;
}

static long resident_kb(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

int main(int argc, char **argv)
{
	struct names_cache *cache = names_cache__new();
	struct objects *o = objects__new();
	struct symbolize_source source = { .what = SYMBOLIZE_OBJECT };
	struct symbolize_stats stats[2];
	uint64_t before, added_ns, *offsets = NULL;
	size_t cnt;

	if (argc < 2 || !o || !cache)
		return 2;
	before = util_monotonic_ns();
	source.object = objects__add(o, open(argv[1], O_RDONLY | O_CLOEXEC), argv[1]);
	added_ns = util_monotonic_ns() - before;
	if (source.object == OBJECTS_NONE)
		return 1;
	cnt = read_offsets(o, source.object, &offsets);
	for (int i = 0; i < 2; i++) {
		struct profile *p = profile_of(offsets, cnt, argv[1]);

		if (!p || symbolize(p, o, cache, NULL, NULL, &source, 1, false, &stats[i]))
			return 1;
		profile__free(p);
	}
	if (stats[1].named != stats[0].named || stats[1].with_line != stats[0].with_line)
		return 1;
	printf("%zu %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %ld\n", cnt,
	       stats[0].named, stats[0].with_line, added_ns + stats[0].ns, stats[1].ns,
	       stats[1].hits, resident_kb());
	names_cache__free(cache);
	objects__free(o);
	free(offsets);
	return 0;
}
