/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interpreter of call frame instructions.
 *
 * Only what bpf/bpfprof.h can tell of a frame is followed: the CFA, rbp, rbx, r12 and the return
 * address. An instruction about another register is read and forgotten. What concerns one of these
 * and is none of the forms known there makes the state unsupported until an instruction replaces
 * it, never a guess.
 */
#include <dwarf.h>
#include <errno.h>
#include <limits.h>
#include <linux/types.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/cfi.h"
#include "target/unwind_table.h"

/* psABI, figure 3.36 */
#define REG_BX 3
#define REG_FP 6
#define REG_SP 7
#define REG_R12 12
#define REG_RA 16

#define CFA_MIPS_advance_loc8 0x1d
#define CFA_GNU_negative_offset_extended 0x2f

#define MAX_REMEMBERED 16 /* compilers nest by 2 or 3 */
#define MAX_LEB \
	16 /* bytes: 64 bits have 10, and some padding. A CIE may be read again for each FDE. */
#define NO_OFFSET INT64_MAX /* a value that does not fit: like all above 32 bits, unsupported */

/* offset of rip from the stack pointer of a signal trampoline: ucontext.uc_mcontext.rip
 * (asm/ucontext.h, sigcontext.h) */
#define SIGNAL_RIP_OFF 168

struct machine {
	struct cfi_state s;
	const struct cfi_cie *cie;
	struct cfi_reader in;
	uint64_t loc, end;
	struct unwind_packer *out; /* NULL in a CIE */
	unsigned int depth;
	struct cfi_state remembered[MAX_REMEMBERED];
};

uint64_t cfi_reader__uleb_long(struct cfi_reader *in)
{
	const uint8_t *end = in->p + MIN(in->end - in->p, MAX_LEB);
	uint64_t v = 0;
	unsigned int shift = 0;

	while (in->p < end) {
		uint8_t b = *in->p++;
		uint64_t bits = b & 0x7f;

		if (shift >= 64 ? bits != 0 : bits << shift >> shift != bits)
			break;
		if (shift < 64)
			v |= bits << shift;
		shift += shift < 64 ? 7 : 0;
		if (b < 0x80)
			return v;
	}
	in->bad = true;
	in->p = in->end;
	return 0;
}

int64_t cfi_reader__sleb(struct cfi_reader *in)
{
	const uint8_t *end = in->p + MIN(in->end - in->p, MAX_LEB);
	uint64_t v = 0;
	unsigned int shift = 0;

	while (in->p < end) {
		uint8_t b = *in->p++;

		/* 63 bits are more than any offset has; a longer number has to be its sign's
		 * padding */
		if (shift >= 63) {
			if ((b & 0x7f) != (v >> 62 & 1 ? 0x7f : 0))
				break;
		} else {
			v |= (uint64_t)(b & 0x7f) << shift;
			shift += 7;
		}
		if (b < 0x80)
			return (int64_t)(v << (64 - shift)) >> (64 - shift);
	}
	in->bad = true;
	in->p = in->end;
	return 0;
}

static int read_value(struct cfi_reader *in, uint8_t format, uint64_t *ret)
{
	switch (format) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		*ret = cfi_reader__u64(in);
		break;
	case DW_EH_PE_udata4:
		*ret = cfi_reader__u32(in);
		break;
	case DW_EH_PE_sdata4:
		*ret = (uint64_t)(int32_t)cfi_reader__u32(in);
		break;
	case DW_EH_PE_udata2:
		*ret = cfi_reader__u16(in);
		break;
	case DW_EH_PE_sdata2:
		*ret = (uint64_t)(int16_t)cfi_reader__u16(in);
		break;
	case DW_EH_PE_uleb128:
		*ret = cfi_reader__uleb(in);
		break;
	case DW_EH_PE_sleb128:
		*ret = (uint64_t)cfi_reader__sleb(in);
		break;
	default:
		return -ENOTSUP;
	}
	return in->bad ? -EBADMSG : 0;
}

/* LSB Core 10.5, "DWARF Exception Header Encoding" */
int cfi__read_pointer(const struct cfi_section *section, struct cfi_reader *in, uint8_t enc,
		      uint64_t *ret)
{
	uint64_t pos = (uint64_t)(in->p - section->data), base, v;
	int err;

	if (enc & DW_EH_PE_indirect)
		return -ENOTSUP;
	switch (enc & 0x70) {
	case DW_EH_PE_absptr:
		base = 0;
		break;
	case DW_EH_PE_pcrel:
		base = section->vaddr + pos;
		break;
	case DW_EH_PE_datarel:
		base = section->data_base;
		if (!base)
			return -ENOTSUP;
		break;
	default:
		return -ENOTSUP;
	}
	err = read_value(in, enc & 0x0f, &v);
	if (!err)
		*ret = base + v;
	return err;
}

static bool fits(int64_t v)
{
	return v >= INT32_MIN && v <= INT32_MAX;
}

static bool fits16(int64_t v)
{
	return v > INT16_MIN && v <= INT16_MAX;
}

static int64_t to_offset(uint64_t v)
{
	return v > INT64_MAX ? NO_OFFSET : (int64_t)v;
}

/* A factored offset in bytes. */
static int64_t factored(const struct machine *m, int64_t v)
{
	int64_t off;

	return __builtin_mul_overflow(v, (int64_t)m->cie->data_align, &off) ? NO_OFFSET : off;
}

static void set_cfa(struct cfi_state *s, uint64_t reg, int64_t off)
{
	s->reg = reg < BPFPROF_NR_REGS ? (uint8_t)reg : CFI_UNSUPPORTED;
	s->cfa_off = fits(off) ? (int32_t)off : CFI_NO_OFFSET;
	if (s->reg == CFI_UNSUPPORTED || s->cfa_off == CFI_NO_OFFSET)
		s->cfa = CFI_UNSUPPORTED;
	else
		s->cfa = reg == REG_SP ? BPFPROF_CFA_SP :
			 reg == REG_FP ? BPFPROF_CFA_FP :
					 BPFPROF_CFA_REG;
}

static bool cfa_is_expression(const struct cfi_state *s)
{
	return s->cfa == BPFPROF_CFA_SP_DEREF || s->cfa == BPFPROF_CFA_FP_DEREF ||
	       s->cfa == BPFPROF_CFA_SP_INDEX || s->cfa == BPFPROF_CFA_PLT ||
	       s->cfa == BPFPROF_CFA_UNSUPPORTED;
}

/*
 * DW_CFA_def_cfa_register and _offset presume a CFA of a register and an offset (6.4.2.2). Behind
 * an expression assembly code has the former and means the offset of before (libgcrypt); the
 * runtimes of GCC and LLVM do that, and leave the expression in force after the latter.
 */
static void set_cfa_reg(struct cfi_state *s, uint64_t reg)
{
	set_cfa(s, reg, s->cfa_off == CFI_NO_OFFSET ? NO_OFFSET : s->cfa_off);
}

static void set_cfa_off(struct cfi_state *s, int64_t off)
{
	if (cfa_is_expression(s))
		s->cfa_off = fits(off) ? (int32_t)off : CFI_NO_OFFSET;
	else
		set_cfa(s, s->reg, off);
}

static void set_fp(struct cfi_state *s, uint8_t fp, int64_t off)
{
	s->fp = fits(off) ? fp : CFI_UNSUPPORTED;
	s->fp_off = fits(off) ? (int32_t)off : 0;
}

static void set_ra(struct cfi_state *s, uint8_t ra, int64_t aux)
{
	s->ra = fits16(aux) ? ra : CFI_UNSUPPORTED;
	s->ra_aux = fits16(aux) ? (int16_t)aux : 0;
}

/* off 0: still in rbx */
static void set_bx(struct cfi_state *s, int64_t off)
{
	s->bx_off = fits16(off) ? (int16_t)off : BPFPROF_BX_UNKNOWN;
}

/* r12 is saved at cfa + off. */
static void set_r12(struct cfi_state *s, int64_t off)
{
	s->r12 = off < -8 && off >= -8 * UINT8_MAX && !(off % 8) ? (uint8_t)(-off / 8) :
								   BPFPROF_R12_UNKNOWN;
}

/* The register is saved at cfa + off. */
static void set_saved(struct cfi_state *s, uint64_t reg, int64_t off)
{
	if (reg == REG_FP)
		set_fp(s, BPFPROF_FP_CFA, off);
	else if (reg == REG_RA && off == -8)
		set_ra(s, BPFPROF_RA_CFA, 0);
	else if (reg == REG_RA)
		set_ra(s, BPFPROF_RA_OFF, off);
	else if (reg == REG_BX)
		set_bx(s, off ? off : BPFPROF_BX_UNKNOWN);
	else if (reg == REG_R12)
		set_r12(s, off);
}

static void set_unsupported(struct cfi_state *s, uint64_t reg)
{
	if (reg == REG_FP)
		set_fp(s, CFI_UNSUPPORTED, 0);
	else if (reg == REG_RA)
		set_ra(s, CFI_UNSUPPORTED, 0);
	else if (reg == REG_BX)
		set_bx(s, BPFPROF_BX_UNKNOWN);
	else if (reg == REG_R12)
		s->r12 = BPFPROF_R12_UNKNOWN;
}

static void set_initial(struct machine *m, uint64_t reg)
{
	const struct cfi_state *from = &m->cie->initial;

	if (reg == REG_FP)
		set_fp(&m->s, from->fp, from->fp_off);
	else if (reg == REG_RA)
		set_ra(&m->s, from->ra, from->ra_aux);
	else if (reg == REG_BX)
		m->s.bx_off = from->bx_off;
	else if (reg == REG_R12)
		m->s.r12 = from->r12;
}

static void set_register(struct cfi_state *s, uint64_t reg, uint64_t other)
{
	if (reg == REG_FP)
		set_fp(s, other == REG_FP ? BPFPROF_FP_SAME : BPFPROF_FP_UNDEF, 0);
	else if (reg == REG_RA && other < REG_RA)
		set_ra(s, BPFPROF_RA_REG, (int64_t)other);
	else if (reg == REG_BX && other == REG_BX)
		set_bx(s, 0);
	else if (reg == REG_R12 && other == REG_R12)
		s->r12 = BPFPROF_R12_SAME;
	else
		set_unsupported(s, reg);
}

/* DW_OP_bregN off */
static bool read_breg(struct cfi_reader *in, unsigned int *ret_reg, int64_t *ret_off)
{
	uint8_t op = cfi_reader__u8(in);

	if (in->bad || op < DW_OP_breg0 || op >= DW_OP_breg0 + BPFPROF_NR_REGS)
		return false;
	*ret_reg = op - DW_OP_breg0;
	*ret_off = cfi_reader__sleb(in);
	return !in->bad;
}

static bool read_lit(struct cfi_reader *in, unsigned int *ret)
{
	uint8_t op = cfi_reader__u8(in);

	*ret = op - DW_OP_lit0;
	return !in->bad && op >= DW_OP_lit0 && op <= DW_OP_lit31;
}

/* What binutils write for .plt, behind its first operation: rsp + off + ((rip & 15) >= n) * 8 */
static bool parse_plt(struct cfi_reader in, unsigned int *ret_n)
{
	static const uint8_t head[] = { DW_OP_breg0 + REG_RA, 0, DW_OP_lit15, DW_OP_and };
	static const uint8_t tail[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	const uint8_t *p;

	if ((size_t)(in.end - in.p) != sizeof(head) + 1 + sizeof(tail))
		return false;
	p = cfi_reader__take(&in, sizeof(head));
	return !memcmp(p, head, sizeof(head)) && read_lit(&in, ret_n) &&
	       !memcmp(in.p, tail, sizeof(tail));
}

/* Behind "register + off, DW_OP_deref": nothing, or the addition of a constant. */
static bool parse_addend(struct cfi_reader in, int64_t *ret)
{
	unsigned int lit;

	*ret = 0;
	if (in.p == in.end)
		return true;
	if (*in.p == DW_OP_plus_uconst) {
		in.p++;
		*ret = to_offset(cfi_reader__uleb(&in));
	} else {
		if (!read_lit(&in, &lit) || cfi_reader__u8(&in) != DW_OP_plus)
			return false;
		*ret = lit;
	}
	return !in.bad && in.p == in.end;
}

/* What OpenSSL writes for Montgomery multiplication, behind "rsp + off", where rsp was saved above a
 * number of words that a register has: + 8 * register, DW_OP_deref, and perhaps the addition. */
static bool parse_index(struct cfi_reader in, unsigned int *ret_reg, int64_t *ret_aux)
{
	static const uint8_t tail[] = { DW_OP_lit8, DW_OP_mul, DW_OP_plus, DW_OP_deref };
	int64_t off;
	const uint8_t *p;

	if (!read_breg(&in, ret_reg, &off) || off || *ret_reg == REG_RA)
		return false;
	p = cfi_reader__take(&in, sizeof(tail));
	return p && !memcmp(p, tail, sizeof(tail)) && parse_addend(in, ret_aux);
}

static void set_cfa_expression(struct cfi_state *s, struct cfi_reader in)
{
	unsigned int reg, n, index;
	int64_t off, aux;

	s->cfa = BPFPROF_CFA_UNSUPPORTED;
	if (!read_breg(&in, &reg, &off) || !fits(off))
		return;
	if (in.p == in.end) {
		set_cfa(s, reg, off);
		return;
	}
	if (reg == REG_SP && parse_plt(in, &n)) {
		s->cfa = BPFPROF_CFA_PLT;
		aux = n;
	} else if (reg == REG_SP && parse_index(in, &index, &aux) && fits16(aux)) {
		s->cfa = BPFPROF_CFA_SP_INDEX;
		s->exp_reg = (uint8_t)index;
	} else if ((reg == REG_SP || reg == REG_FP) && cfi_reader__u8(&in) == DW_OP_deref &&
		   parse_addend(in, &aux) && fits16(aux)) {
		s->cfa = reg == REG_SP ? BPFPROF_CFA_SP_DEREF : BPFPROF_CFA_FP_DEREF;
	} else {
		return;
	}
	s->exp_off = (int32_t)off;
	s->exp_aux = (int16_t)aux;
}

/* The register is saved at the address that an expression gives. */
static void set_expression(struct cfi_state *s, uint64_t reg, struct cfi_reader in)
{
	unsigned int base;
	int64_t off;
	bool plain = read_breg(&in, &base, &off) && in.p == in.end;

	if (reg == REG_FP && plain && (base == REG_FP || base == REG_SP))
		set_fp(s, base == REG_FP ? BPFPROF_FP_FP : BPFPROF_FP_SP, off);
	else if (reg == REG_RA && plain && base == REG_SP && off == SIGNAL_RIP_OFF)
		set_ra(s, CFI_RA_SIGNAL, 0);
	else
		set_unsupported(s, reg);
}

static struct cfi_reader read_block(struct cfi_reader *in)
{
	struct cfi_reader block = { NULL, NULL, false };
	uint64_t sz = cfi_reader__uleb(in);

	block.p = cfi_reader__take(in, sz);
	block.end = block.p ? block.p + sz : NULL;
	return block;
}

/*
 * The rule of the current state. Put together in registers: as it is compared and hashed by words
 * at once, writing it by bytes would cost a failed store forwarding each (a quarter of the time to
 * build a table).
 */
static struct bpfprof_rule make_rule(const struct machine *m)
{
	const struct cfi_state *s = &m->s;
	bool expression = cfa_is_expression(s);
	int32_t cfa_off = expression ? s->exp_off : s->cfa_off;
	int16_t aux = expression ? s->exp_aux : s->ra_aux;
	uint32_t reg = s->cfa == BPFPROF_CFA_REG      ? s->reg :
		       s->cfa == BPFPROF_CFA_SP_INDEX ? s->exp_reg :
		       m->cie->section->follow_r12    ? s->r12 :
							BPFPROF_R12_UNKNOWN;
	uint64_t w[2] = { BPFPROF_CFA_UNSUPPORTED, 0 };
	struct bpfprof_rule rule;

	if (m->cie->signal) {
		/* all registers come out of the signal frame, so one address proves that it is the
		 * kernel's */
		if (s->ra == CFI_RA_SIGNAL)
			w[0] = BPFPROF_CFA_SIGNAL;
	} else if (s->ra == BPFPROF_RA_END) {
		/* there is no caller, so it does not matter where its frame would be */
		w[0] = BPFPROF_CFA_SP | BPFPROF_RA_END << 16;
	} else if (s->cfa < BPFPROF_CFA_UNSUPPORTED && s->fp != CFI_UNSUPPORTED &&
		   s->ra < CFI_RA_SIGNAL && (!expression || s->ra == BPFPROF_RA_CFA)) {
		w[0] = s->cfa | (uint32_t)s->fp << 8 | (uint32_t)s->ra << 16 | reg << 24 |
		       (uint64_t)(uint32_t)cfa_off << 32;
		w[1] = (uint32_t)s->fp_off | (uint64_t)(uint16_t)aux << 32 |
		       (uint64_t)(uint16_t)s->bx_off << 48;
	}
	memcpy(&rule, w, sizeof(rule));
	return rule;
}

static void emit(struct machine *m)
{
	unwind_packer__row(m->out, m->loc, make_rule(m));
}

/* The state is complete up to m->loc + delta. */
static void advance(struct machine *m, uint64_t delta)
{
	if (!m->out) {
		m->in.bad = true;
		return;
	}
	if (__builtin_mul_overflow(delta, (uint64_t)m->cie->code_align, &delta))
		delta = UINT64_MAX;
	if (!delta)
		return;
	emit(m);
	if (delta < m->end - m->loc) {
		m->loc += delta;
	} else {
		m->loc = m->end;
		m->in.p = m->in.end;
	}
}

static void set_loc(struct machine *m)
{
	uint64_t loc;

	if (cfi__read_pointer(m->cie->section, &m->in, m->cie->fde_enc, &loc) || loc < m->loc ||
	    !m->out) {
		m->in.bad = true;
	} else if (loc > m->loc) {
		emit(m);
		m->loc = loc < m->end ? loc : m->end;
		if (loc >= m->end)
			m->in.p = m->in.end;
	}
}

/* Instructions about the location and the state as a whole. False if it is none of them. */
static bool run_control(struct machine *m, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* has no operand and no meaning here */
		break;
	case DW_CFA_GNU_args_size:
		cfi_reader__uleb(&m->in);
		break;
	case DW_CFA_set_loc:
		set_loc(m);
		break;
	case DW_CFA_advance_loc1:
		advance(m, cfi_reader__u8(&m->in));
		break;
	case DW_CFA_advance_loc2:
		advance(m, cfi_reader__u16(&m->in));
		break;
	case DW_CFA_advance_loc4:
		advance(m, cfi_reader__u32(&m->in));
		break;
	case CFA_MIPS_advance_loc8:
		advance(m, cfi_reader__u64(&m->in));
		break;
	case DW_CFA_remember_state:
		if (m->depth < MAX_REMEMBERED)
			m->remembered[m->depth++] = m->s;
		else
			m->in.bad = true;
		break;
	case DW_CFA_restore_state:
		if (m->depth)
			m->s = m->remembered[--m->depth];
		else
			m->in.bad = true;
		break;
	default:
		return false;
	}
	return true;
}

/* Instructions about the CFA. False if it is none of them. */
static bool run_cfa(struct machine *m, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cfi_reader__uleb(&m->in);
		set_cfa(&m->s, reg, to_offset(cfi_reader__uleb(&m->in)));
		break;
	case DW_CFA_def_cfa_sf:
		reg = cfi_reader__uleb(&m->in);
		set_cfa(&m->s, reg, factored(m, cfi_reader__sleb(&m->in)));
		break;
	case DW_CFA_def_cfa_register:
		set_cfa_reg(&m->s, cfi_reader__uleb(&m->in));
		break;
	case DW_CFA_def_cfa_offset:
		set_cfa_off(&m->s, to_offset(cfi_reader__uleb(&m->in)));
		break;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa_off(&m->s, factored(m, cfi_reader__sleb(&m->in)));
		break;
	case DW_CFA_def_cfa_expression:
		set_cfa_expression(&m->s, read_block(&m->in));
		break;
	default:
		return false;
	}
	return true;
}

/* Instructions about a register, which is their first operand. False if it is none of them. */
static bool run_register(struct machine *m, uint8_t op, uint64_t reg)
{
	switch (op) {
	case DW_CFA_offset_extended:
		set_saved(&m->s, reg, factored(m, to_offset(cfi_reader__uleb(&m->in))));
		break;
	case DW_CFA_offset_extended_sf:
		set_saved(&m->s, reg, factored(m, cfi_reader__sleb(&m->in)));
		break;
	case CFA_GNU_negative_offset_extended:
		set_saved(&m->s, reg, factored(m, -to_offset(cfi_reader__uleb(&m->in))));
		break;
	case DW_CFA_restore_extended:
		set_initial(m, reg);
		break;
	case DW_CFA_undefined:
		if (reg == REG_FP)
			set_fp(&m->s, BPFPROF_FP_UNDEF, 0);
		else if (reg == REG_BX)
			set_bx(&m->s, BPFPROF_BX_UNKNOWN);
		else if (reg == REG_R12)
			m->s.r12 = BPFPROF_R12_UNKNOWN;
		else if (reg == REG_RA)
			set_ra(&m->s, BPFPROF_RA_END, 0);
		break;
	case DW_CFA_same_value:
		set_register(&m->s, reg, reg);
		break;
	case DW_CFA_register:
		set_register(&m->s, reg, cfi_reader__uleb(&m->in));
		break;
	case DW_CFA_expression:
		set_expression(&m->s, reg, read_block(&m->in));
		break;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		cfi_reader__sleb(&m->in);
		set_unsupported(&m->s, reg);
		break;
	case DW_CFA_val_expression:
		read_block(&m->in);
		set_unsupported(&m->s, reg);
		break;
	default:
		return false;
	}
	return true;
}

static void run(struct machine *m)
{
	while (m->in.p < m->in.end) {
		uint8_t op = *m->in.p++, operand = op & 0x3f;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			advance(m, operand);
			break;
		case DW_CFA_offset:
			set_saved(&m->s, operand, factored(m, to_offset(cfi_reader__uleb(&m->in))));
			break;
		case DW_CFA_restore:
			set_initial(m, operand);
			break;
		default:
			if (!run_control(m, op) && !run_cfa(m, op) &&
			    !run_register(m, op, cfi_reader__uleb(&m->in)))
				m->in.bad = true;
		}
		if (m->in.bad)
			return;
	}
}

static void machine__init(struct machine *m, const struct cfi_cie *cie, struct cfi_reader in)
{
	m->cie = cie;
	m->in = in;
	m->s = cie->initial;
	m->out = NULL;
	m->depth = 0;
}

int cfi__run_cie(struct cfi_cie *cie, struct cfi_reader in)
{
	struct machine m;

	memset(&cie->initial, 0, sizeof(cie->initial));
	cie->initial.cfa = CFI_UNSUPPORTED; /* not defined */
	cie->initial.reg = CFI_UNSUPPORTED;
	cie->initial.cfa_off = CFI_NO_OFFSET;
	cie->initial.fp = BPFPROF_FP_SAME; /* callee-saved: psABI, 3.2.1 */
	cie->initial.r12 = BPFPROF_R12_SAME;
	cie->initial.ra = CFI_UNSUPPORTED;
	machine__init(&m, cie, in);
	run(&m);
	if (m.in.bad)
		return -EBADMSG;
	cie->initial = m.s;
	return 0;
}

void cfi__run_fde(const struct cfi_cie *cie, struct cfi_reader in, uint64_t start, uint64_t end,
		  struct unwind_packer *out)
{
	static const struct bpfprof_rule unsupported = { .cfa = BPFPROF_CFA_UNSUPPORTED };
	struct machine m;

	machine__init(&m, cie, in);
	m.out = out;
	m.loc = start;
	m.end = end;
	run(&m);
	if (m.in.bad)
		unwind_packer__row(out, m.loc, unsupported);
	else if (m.loc < end)
		emit(&m);
}
