/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares the rules that following the code gives with what call frame information says of the same
 * code.
 *
 *     flow FILE...
 *
 * The code is followed as if the object had no such information. Each instruction of a function that
 * it describes is looked up in both. Prints a line of counts for each file that has both:
 *   agree      the same CFA, and the same place of rbp, as far as it is not still in rbp as well
 *   otherwise  the CFA is found by rbp in the one and by rsp in the other, or by what only one of
 *              them follows
 *   none       the code was not followed to there, or nothing is known there
 *   differ     anything else
 * With -v a line for the first instruction that differs in each run of them, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/types.h>

#include "bpfprof.h"
#include "target/ehframe.h"
#include "target/elf_file.h"
#include "target/flow.h"
#include "target/insn.h"
#include "target/unwind_build.h"
#include "tests/unit/truth.h"

#define MAX_CODE (64U << 20)

static bool verbose;

struct counts {
	uint64_t agree, otherwise, none, differ;
	bool last_differs;
};

static bool by_registers(const struct bpfprof_rule *r)
{
	return r->cfa == BPFPROF_CFA_SP || r->cfa == BPFPROF_CFA_FP;
}

static bool same_rbp(const struct bpfprof_rule *a, const struct bpfprof_rule *b)
{
	return a->fp == BPFPROF_FP_SAME || b->fp == BPFPROF_FP_SAME || a->fp == BPFPROF_FP_UNDEF ||
	       b->fp == BPFPROF_FP_UNDEF || (a->fp == b->fp && a->fp_off == b->fp_off);
}

static void compare(struct counts *c, uint64_t addr, const struct bpfprof_rule *cfi,
		    const struct bpfprof_rule *flow)
{
	bool differs = false;

	if (flow->cfa == BPFPROF_CFA_NONE) {
		c->none++;
	} else if (cfi->cfa == BPFPROF_CFA_SIGNAL || flow->cfa == BPFPROF_CFA_SIGNAL) {
		differs = cfi->cfa != flow->cfa;
		c->agree += !differs;
	} else if (cfi->ra == BPFPROF_RA_END && flow->ra == BPFPROF_RA_END) {
		c->agree++;
	} else if (!by_registers(cfi) || cfi->cfa != flow->cfa) {
		c->otherwise++;
	} else {
		differs = cfi->cfa_off != flow->cfa_off || !same_rbp(cfi, flow);
		c->agree += !differs;
	}
	c->differ += differs;
	if (differs && verbose && !c->last_differs)
		printf("    %" PRIx64 ": cfa %d%+d rbp %d%+d ra %d, followed %d%+d %d%+d %d\n",
		       addr, cfi->cfa, cfi->cfa_off, cfi->fp, cfi->fp_off, cfi->ra, flow->cfa,
		       flow->cfa_off, flow->fp, flow->fp_off, flow->ra);
	c->last_differs = differs;
}

/* The instructions of the range, as they follow each other from its start. */
static void compare_range(struct counts *c, const struct elf_file *elf, uint64_t start,
			  uint64_t end, const struct unwind_table *cfi,
			  const struct unwind_table *flow)
{
	size_t sz = end - start, at;
	uint8_t *code = sz < MAX_CODE ? malloc(sz) : NULL;
	struct bpfprof_rule a, b;
	struct insn in;

	if (code && !elf_file__read_vaddr(elf, start, code, sz)) {
		for (at = 0; at < sz && insn_decode(code + at, sz - at, &in); at += in.len) {
			truth_lookup(cfi, start + at, &a);
			truth_lookup(flow, start + at, &b);
			if (a.cfa != BPFPROF_CFA_NONE)
				compare(c, start + at, &a, &b);
		}
	}
	free(code);
}

/* False if the object has no call frame information, or no code that can be followed. */
static bool compare_object(const struct elf_file *elf, struct counts *c)
{
	struct ehframe *eh = ehframe__open(elf, false);
	struct unwind_table cfi = { 0 }, followed = { 0 };
	struct unwind_source functions, sources[1];
	struct flow *flow = NULL;
	bool done = false;
	uint64_t start, end;
	size_t i;

	if (eh && !flow_build(elf, NULL, 0, false, &flow) && flow) {
		functions = ehframe__source(eh);
		sources[0] = flow__source(flow);
		done = !unwind_build_merged(&functions, 1, &cfi) &&
		       !unwind_build_merged(sources, 1, &followed);
		for (i = 0; done && i < functions.cnt; i++) {
			functions.range(functions.ctx, i, &start, &end);
			compare_range(c, elf, start, end, &cfi, &followed);
		}
		unwind_table__done(&cfi);
		unwind_table__done(&followed);
	}
	flow__free(flow);
	ehframe__free(eh);
	return done;
}

static void compare_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct elf_file *elf = fd < 0 ? NULL : elf_file__open(fd);
	struct counts c = { 0 };

	if (elf && compare_object(elf, &c) && c.agree + c.differ)
		printf("%" PRIu64 " agree %" PRIu64 " differ %" PRIu64 " otherwise %" PRIu64
		       " none %s\n",
		       c.agree, c.differ, c.otherwise, c.none, path);
	elf_file__free(elf);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	int i = 1;

	verbose = argc > 1 && !strcmp(argv[1], "-v");
	for (i += verbose; i < argc; i++)
		compare_file(argv[i]);
	return 0;
}
