// SPDX-License-Identifier: BSD-2-Clause
/* Unwinds a copied stack on the host. */
#include "target/raw_unwind.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* The verifier wants few functions; a compiler with sanitizers takes a minute for one so large, and what it makes is no faster. */
#undef __always_inline
#define __always_inline inline
#define __noinline __attribute__((noinline))

static inline __u64 word(const __u8 *p)
{
	__u64 v;

	memcpy(&v, p, sizeof(v));
	return v;
}
#define UNW_WORD(p) word(p)
struct unw;
static bool code_is_gone(const struct unw *u);
#define UNW_CODE_IS_GONE(u) code_is_gone(u)

#include "unwind.h"

_Static_assert(RAW_UNWIND_MISS == UNW_MISS, "the one is the other's public name");

struct host_unw {
	struct unw u; /* first: unwind.h passes its address back */
	const struct raw_unwind *in;
	bool code_is_gone; /* of the last that was read */
};

static bool code_is_gone(const struct unw *u)
{
	return ((const struct host_unw *)u)->code_is_gone;
}

/* Lies the address, which is within the copy, on a page that could not be read? */
static bool in_hole(const struct bpfprof_raw *regs, uint64_t addr)
{
	return regs->holes >> (addr / UNW_PAGE - regs->stack_addr / UNW_PAGE) & 1;
}

static __always_inline int unw_read_user(struct unw *u, void *dst, __u32 sz, __u64 addr)
{
	struct host_unw *h = (struct host_unw *)u;
	const struct raw_unwind *in = h->in;
	uint64_t off = addr - in->regs.stack_addr;
	int err;

	if (off < in->regs.stack_sz && sz <= in->regs.stack_sz - off) {
		if (in_hole(&in->regs, addr) || in_hole(&in->regs, addr + sz - 1))
			return 1;
		memcpy(dst, in->stack + off, sz);
		return 0;
	}
	/* windows are read of stacks only, and all that may be asked of code is a few bytes */
	err = sz > 8 ? -E2BIG : in->read_code(in->ctx, addr, dst, sz);
	h->code_is_gone = err == -ESRCH;
	return err != 0;
}

static __always_inline const __u8 *unw_chunk(const struct unw *u, __u32 idx)
{
	const struct raw_unwind *in = ((const struct host_unw *)u)->in;

	return in->chunk(in->ctx, idx);
}

/* Use is noted where the table serves over and over: in the kernel. */
static __always_inline void unw_mark_used(const __u8 *chunk, __u32 pos)
{
	(void)chunk;
	(void)pos;
}

const uint8_t *raw_code_then(const struct bpfprof_raw *raw, uint64_t addr, size_t sz)
{
	for (int i = 0; i < BPFPROF_RAW_CODES; i++) {
		const struct bpfprof_raw_code *c = &raw->codes[i];
		uint64_t off = addr - c->addr;

		if (c->addr && off < sizeof(c->bytes) && sz <= sizeof(c->bytes) - off)
			return c->bytes + off;
	}
	return NULL;
}

int raw_unwind(const struct raw_unwind *in, uint64_t frames[BPFPROF_MAX_UFRAMES], size_t *ret_cnt,
	       uint64_t *ret_miss)
{
	struct host_unw h;
	struct unw *u = &h.u;
	int result;

	memset(&h, 0, sizeof(h));
	h.in = in;
	u->max = BPFPROF_MAX_UFRAMES;
	u->proc = in->proc;
	memcpy(u->owner, &in->key, sizeof(u->owner));
	memcpy(u->regs, in->regs.regs, sizeof(u->regs));
	u->uret_pc = in->regs.uret_pc;
	memcpy(u->uret, in->regs.uret, sizeof(u->uret));
	unw_start(u, 0, in->regs.ra);
	do {
		result = unw_step(u);
	} while (result == UNW_CONTINUE);
	if (result == UNW_MISS)
		*ret_miss = u->pc - !u->exact;
	if (result == BPFPROF_STACK_read_fault &&
	    in->regs.stack_sz >= BPFPROF_RAW_STACK_SZ - UNW_PAGE)
		result = BPFPROF_STACK_copy_short;
	*ret_cnt = u->nr;
	for (size_t i = 0; i < u->nr; i++)
		frames[i] = u->frames[i];
	return result;
}
