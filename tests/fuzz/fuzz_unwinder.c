/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf/unwind.h on the host over any registers, tables and stack. Input: struct head; then a piece
 * that begins the first chunk of table memory; the rest is the stack. Tables that lie in a chunk
 * are read with every position masked into it, so that nothing outside may be touched, and a walk
 * ends.
 */
#include <linux/types.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/raw_unwind.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

#define CHUNKS 2

struct head {
	struct bpfprof_proc_key key;
	struct bpfprof_proc proc;
	struct bpfprof_raw regs;
};

static uint8_t *chunks[CHUNKS];

static const uint8_t *chunk(void *ctx, uint32_t idx)
{
	(void)ctx;
	return idx < CHUNKS ? chunks[idx] : NULL;
}

static int read_code(void *ctx, uint64_t addr, void *buf, size_t sz)
{
	(void)ctx;
	memset(buf, (int)addr, sz);
	return addr & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	struct raw_unwind in = { .chunk = chunk, .read_code = read_code };
	struct bytes rest = { data + sizeof(struct head), sz - sizeof(struct head) }, table;
	uint64_t frames[BPFPROF_MAX_UFRAMES], miss;
	struct head head;
	uint8_t *stack;
	size_t cnt, i;

	if (sz < sizeof(head))
		return 0;
	memcpy(&head, data, sizeof(head));
	table = bytes__next(&rest);
	for (i = 0; i < CHUNKS; i++) {
		if (!chunks[i])
			chunks[i] = calloc(1, BPFPROF_CHUNK_SZ);
		NEED(chunks[i]);
	}
	if (table.sz)
		memcpy(chunks[0], table.p, table.sz);
	/* the kernel side copies no more */
	rest.sz = MIN(rest.sz, BPFPROF_RAW_STACK_SZ);
	stack = malloc(rest.sz + 1);
	NEED(stack);
	if (rest.sz)
		memcpy(stack, rest.p, rest.sz);
	in.key = head.key;
	in.proc = head.proc;
	in.proc.chunk %= CHUNKS + 1;
	in.regs = head.regs;
	in.regs.stack_sz = rest.sz;
	in.stack = stack;
	raw_unwind(&in, frames, &cnt, &miss);
	NEED(cnt <= BPFPROF_MAX_UFRAMES);
	free(stack);
	memset(chunks[0], 0, table.sz);
	return 0;
}
