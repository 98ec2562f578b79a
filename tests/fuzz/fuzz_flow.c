/* SPDX-License-Identifier: BSD-2-Clause */
/* Code without call frame information, which begins with a function. */
#include <stdlib.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/flow.h"
#include "target/unwind_build.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/parsers.h"
#include "tests/unit/truth.h"

#define MAX_FRAME (1 << 24)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

static void check_rule(const struct bpfprof_rule *r)
{
	NEED(r->cfa == BPFPROF_CFA_NONE || r->cfa == BPFPROF_CFA_SP || r->cfa == BPFPROF_CFA_FP ||
	     r->cfa == BPFPROF_CFA_SIGNAL);
	NEED(r->cfa_off >= -MAX_FRAME && r->cfa_off <= MAX_FRAME);
	NEED(r->fp <= BPFPROF_FP_UNDEF && r->fp_off >= -MAX_FRAME && r->fp_off <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	struct image img =
		image__make((struct bytes){ data, MIN(sz, (size_t)IMAGE_TEXT_SZ) }, NULL, 0, 0);
	struct elf_file *elf = elf_file__open_memory(img.data, img.sz);
	struct unwind_source source;
	struct bpfprof_rule rule;
	struct unwind_table t;
	struct flow *f = NULL;

	NEED(elf);
	NEED(!flow_build(elf, NULL, 0, true, &f));
	if (f) {
		source = flow__source(f);
		NEED(!unwind_build_merged(&source, 1, &t));
		for (uint64_t at = 0; at < MIN(sz, (size_t)IMAGE_TEXT_SZ); at++) {
			truth_lookup(&t, at, &rule);
			check_rule(&rule);
		}
		unwind_table__done(&t);
		flow__free(f);
	}
	elf_file__free(elf);
	free(img.data);
	return 0;
}
