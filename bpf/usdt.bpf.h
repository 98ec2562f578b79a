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

static __always_inline __u64 usdt_reg(const struct pt_regs *regs, __u32 reg)
{
	switch (reg) {
	case 0:
		return regs->ax;
	case 1:
		return regs->dx;
	case 2:
		return regs->cx;
	case 3:
		return regs->bx;
	case 4:
		return regs->si;
	case 5:
		return regs->di;
	case 6:
		return regs->bp;
	case 7:
		return regs->sp;
	case 8:
		return regs->r8;
	case 9:
		return regs->r9;
	case 10:
		return regs->r10;
	case 11:
		return regs->r11;
	case 12:
		return regs->r12;
	case 13:
		return regs->r13;
	case 14:
		return regs->r14;
	case 15:
		return regs->r15;
	default:
		return 0;
	}
}

static __noinline __u64 usdt_arg(struct pt_regs *ctx, __u64 cookie, int i)
{
	__u32 spec = cookie >> (i * BPFPROF_USDT_ARG_BITS) & ((1 << BPFPROF_USDT_ARG_BITS) - 1);
	struct pt_regs regs;
	__u64 v;

	if (BPFPROF_USDT_REG(spec) == BPFPROF_USDT_CONST)
		return (__s64)BPFPROF_USDT_OFF(spec);
	/* a copy: the verifier allows no arithmetic on the context, which the compiler makes of
	 * this choice */
	if (bpf_probe_read_kernel(&regs, sizeof(regs), ctx))
		return 0;
	v = usdt_reg(&regs, BPFPROF_USDT_REG(spec));
	if (BPFPROF_USDT_DEREF(spec) &&
	    bpf_probe_read_user(&v, sizeof(v), (void *)(v + (__s64)BPFPROF_USDT_OFF(spec))))
		return 0;
	return BPFPROF_USDT_NARROW(spec) ? (__u32)v : v;
}

#endif
