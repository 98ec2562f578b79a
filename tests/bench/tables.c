// SPDX-License-Identifier: BSD-2-Clause
/* Builds the unwind tables of files: tables FILE... -> "cfi_bytes rows table_bytes ns", best of
 * some rounds each, summed. */
#include <linux/types.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/unwind_build.h"

#define ROUNDS 5

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

int main(int argc, char **argv)
{
	uint64_t cfi = 0, rows = 0, bytes = 0, ns = 0;

	for (int i = 1; i < argc; i++) {
		uint64_t best = UINT64_MAX;
		struct unwind_table t;
		struct elf_file *e;
		int fd = open(argv[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0)
			continue;
		for (int j = 0; j < ROUNDS; j++) {
			uint64_t before = cpu_ns();

			e = elf_file__open(fd);
			if (!e)
				break;
			if (unwind_build(e, &t)) {
				elf_file__free(e);
				break;
			}
			best = MIN(best, cpu_ns() - before);
			if (j == ROUNDS - 1) {
				cfi += t.cfi_sz;
				rows += t.row_cnt;
				bytes += t.blob_sz;
				ns += best;
			}
			unwind_table__done(&t);
			elf_file__free(e);
		}
		close(fd);
	}
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", cfi, rows, bytes, ns);
	return 0;
}
