/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* What a probe's cookie says, and the values that it names: bpfprof.h has its form. */
#ifndef USDT_BPF_H
#define USDT_BPF_H

#include "common.bpf.h"

/* The probe's cookie. Before 5.15 (7adfc6c9b315) probes have none: there, a program is loaded for
 * each. */
static __always_inline __u64 cookie_of(struct pt_regs *ctx)
{
	return bp_config.one_cookie ? bp_config.cookie : bpf_get_attach_cookie(ctx);
}

/* A register of the context: in assembly, since the compiler would choose an address and then read,
 * which the verifier refuses. */
#define USDT_REG(number, name)                                                      \
	case number:                                                                \
		__asm__ volatile("%0 = *(u64 *)(%1 + %2)"                           \
				 : "=r"(v)                                          \
				 : "r"(regs), "i"(offsetof(struct pt_regs, name))); \
		break

static __always_inline __u64 usdt_reg(struct pt_regs *regs, __u32 reg)
{
	__u64 v = 0;

	switch (reg) {
		USDT_REG(0, ax);
		USDT_REG(1, dx);
		USDT_REG(2, cx);
		USDT_REG(3, bx);
		USDT_REG(4, si);
		USDT_REG(5, di);
		USDT_REG(6, bp);
		USDT_REG(7, sp);
		USDT_REG(8, r8);
		USDT_REG(9, r9);
		USDT_REG(10, r10);
		USDT_REG(11, r11);
		USDT_REG(12, r12);
		USDT_REG(13, r13);
		USDT_REG(14, r14);
		USDT_REG(15, r15);
	}
	return v;
}

static __noinline __u64 usdt_arg(struct pt_regs *ctx, __u64 cookie, int i)
{
	__u32 spec = cookie >> (i * BPFPROF_USDT_ARG_BITS) & ((1 << BPFPROF_USDT_ARG_BITS) - 1);
	__u64 v;

	if (BPFPROF_USDT_REG(spec) == BPFPROF_USDT_CONST)
		return (__s64)BPFPROF_USDT_OFF(spec);
	v = usdt_reg(ctx, BPFPROF_USDT_REG(spec));
	if (BPFPROF_USDT_DEREF(spec) &&
	    bpf_probe_read_user(&v, sizeof(v), (void *)(v + (__s64)BPFPROF_USDT_OFF(spec))))
		return 0;
	return BPFPROF_USDT_NARROW(spec) ? (__u32)v : v;
}

#endif
