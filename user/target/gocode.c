/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/gocode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/insn.h"
#include "target/unwind_table.h"

#define WINDOW (256U << 10) /* bytes of code read at a time */
#define PROLOGUE 24	    /* bytes looked at to find out where rbp is saved */
#define REG_R12 12	    /* DWARF number */

static const struct bpfprof_rule unsupported = { .cfa = BPFPROF_CFA_UNSUPPORTED };

int gocode__init(struct gocode *c, const struct elf_file *elf)
{
	*c = (struct gocode){ .elf = elf, .window = malloc(WINDOW) };
	return c->window ? 0 : -ENOMEM;
}

void gocode__done(struct gocode *c)
{
	free(c->window);
}

const uint8_t *gocode__at(struct gocode *c, uint64_t vaddr, size_t sz)
{
	const struct elf_segment *s;
	size_t cnt;

	if (c->window_sz >= sz && vaddr >= c->window_vaddr &&
	    vaddr - c->window_vaddr <= c->window_sz - sz)
		return c->window + (vaddr - c->window_vaddr);
	c->window_sz = 0;
	for (s = elf_file__segments(c->elf, &cnt); cnt; s++, cnt--) {
		uint64_t left;

		if (!s->exec || vaddr < s->vaddr || vaddr - s->vaddr >= s->filesz)
			continue;
		left = MIN(s->filesz - (vaddr - s->vaddr), (uint64_t)WINDOW);
		if (left < sz || elf_file__read_vaddr(c->elf, vaddr, c->window, left))
			return NULL;
		c->window_vaddr = vaddr;
		c->window_sz = left;
		return c->window;
	}
	return NULL;
}

/* A store of rbp, or a lea of rbp (opcode 89 or 8d), with rsp + disp: its length, 0: it is none. */
static size_t rbp_and_sp(const uint8_t *p, uint8_t opcode, int32_t disp)
{
	int32_t d32;

	if (p[0] != 0x48 || p[1] != opcode || p[3] != 0x24)
		return 0;
	if (p[2] == 0x2c)
		return disp ? 0 : 4;
	if (p[2] == 0x6c)
		return (int8_t)p[4] == disp ? 5 : 0;
	memcpy(&d32, p + 4, sizeof(d32));
	return p[2] == 0xac && d32 == disp ? 8 : 0;
}

/*
 * The assembler and the compiler save rbp where they open the frame: from 1.21 on
 * push %rbp; mov %rsp, %rbp, before that sub $N, %rsp; mov %rbp, N-8(%rsp); lea N-8(%rsp), %rbp
 * (cmd/internal/obj/x86/obj6.go).
 */
struct gocode_prologue gocode__prologue(struct gocode *c, const struct gopclntab *table,
					const struct gopclntab_func *f)
{
	struct gocode_prologue ret = { .saved = UINT64_MAX, .set = UINT64_MAX };
	uint64_t start, end;
	struct gopclntab_values v;
	const uint8_t *p;
	int32_t first, val;
	size_t n;

	gopclntab_values__init(&v, table, f, f->pcsp);
	if (!gopclntab_values__next(&v, &start, &end, &first) || first ||
	    !gopclntab_values__next(&v, &start, &end, &val) || val < 8)
		return ret;
	p = gocode__at(c, start - 1, PROLOGUE);
	if (!p)
		return ret;
	ret.frame = val;
	if (val == 8 && p[0] == 0x55) {
		ret.saved = start;
		if (p[1] == 0x48 && p[2] == 0x89 && p[3] == 0xe5)
			ret.set = start + 3;
		return ret;
	}
	n = rbp_and_sp(p + 1, 0x89, val - 8);
	if (!n)
		return ret;
	ret.saved = start + n;
	n = rbp_and_sp(p + 1 + n, 0x8d, val - 8);
	if (n)
		ret.set = ret.saved + n;
	return ret;
}

struct bpfprof_rule gocode_rule(uint8_t cfa, int32_t cfa_off, bool saved)
{
	return (struct bpfprof_rule){ .cfa = cfa,
				      .cfa_off = cfa_off,
				      .fp = saved ? BPFPROF_FP_CFA : BPFPROF_FP_SAME,
				      .fp_off = saved ? -16 : 0,
				      .bx_off = BPFPROF_BX_UNKNOWN };
}

static bool decode(struct gocode *c, uint64_t vaddr, uint64_t end, struct insn *ret)
{
	size_t sz = MIN(end - vaddr, (uint64_t)INSN_MAX);
	const uint8_t *p = vaddr < end ? gocode__at(c, vaddr, sz) : NULL;

	return p && insn_decode(p, sz, ret);
}

/* mov %from, %to */
static bool moves(const struct insn *in, unsigned int from, unsigned int to)
{
	if (in->map != INSN_ONE || !in->wide || !in->has_modrm || insn__mod(in) != 3)
		return false;
	return (in->op == 0x89 && insn__reg(in) == from && insn__rm(in) == to) ||
	       (in->op == 0x8b && insn__rm(in) == from && insn__reg(in) == to);
}

/* pop %rbp */
static bool pops_rbp(const struct insn *in)
{
	return in->map == INSN_ONE && (in->op & 0xf8) == 0x58 && insn__opreg(in) == INSN_BP;
}

/* mov frame-8(%rsp), %rbp */
static bool loads_rbp(const struct insn *in, int32_t frame)
{
	return in->map == INSN_ONE && in->op == 0x8b && in->wide && insn__mod(in) != 3 &&
	       insn__reg(in) == INSN_BP && insn__base(in) == INSN_SP && in->disp == frame - 8;
}

/* add $frame, %rsp; the assembler adds 128 by sub $-128 */
static bool drops(const struct insn *in, int32_t frame)
{
	if (in->map != INSN_ONE || (in->op != 0x81 && in->op != 0x83) || !in->wide ||
	    insn__mod(in) != 3 || insn__rm(in) != INSN_SP)
		return false;
	return insn__ext(in) == 0 ? in->imm == frame : insn__ext(in) == 5 && in->imm == -frame;
}

static bool leaves(const struct insn *in)
{
	if (in->map != INSN_ONE)
		return false;
	return in->op == 0xc3 || in->op == 0xe9 || in->op == 0xeb ||
	       (in->op == 0xff && insn__ext(in) == 4);
}

/* push %rbp */
static bool pushes_rbp(const struct insn *in)
{
	return in->map == INSN_ONE && (in->op & 0xf8) == 0x50 && insn__opreg(in) == INSN_BP;
}

/* leave */
static bool drops_all(const struct insn *in)
{
	return in->map == INSN_ONE && in->op == 0xc9;
}

/* mov disp(base), %rbp: as far as Go's assembly does it, it is the frame again, out of where the
 * goroutine's was kept. A constant is none. */
static bool loads_frame(const struct insn *in)
{
	return in->map == INSN_ONE && in->op == 0x8b && in->wide && insn__mod(in) != 3 &&
	       insn__reg(in) == INSN_BP && !insn__rip_relative(in);
}

/* What rbp is in a function that sets rsp. */
enum rbp {
	SET,	/* its frame */
	PUSHED, /* the same, and it was pushed once more */
	NESTED, /* the address of that */
	LOADED, /* the caller's; the frame is still there */
	DROPPED,
	LOST, /* something else, from here to the end */
};

/* The same behind the instruction. `after_push`: right behind that push. */
static enum rbp rbp_behind(enum rbp rbp, bool after_push, const struct insn *in, int32_t frame)
{
	switch (rbp) {
	case SET:
		if (pushes_rbp(in))
			return PUSHED;
		if (loads_rbp(in, frame))
			return LOADED;
		if (pops_rbp(in) || drops_all(in))
			return DROPPED;
		return insn__writes(in, INSN_BP) && !loads_frame(in) ? LOST : SET;
	case PUSHED:
	case NESTED:
		if (rbp == PUSHED && after_push && moves(in, INSN_SP, INSN_BP))
			return NESTED;
		if (pops_rbp(in) || (rbp == NESTED && drops_all(in)))
			return SET;
		/* what is jumped to from here is not followed */
		return pushes_rbp(in) || drops_all(in) || leaves(in) || insn__writes(in, INSN_BP) ?
			       LOST :
			       rbp;
	case LOADED:
	case DROPPED:
		if (pops_rbp(in) || (rbp == LOADED && drops(in, frame)))
			return DROPPED;
		return leaves(in) ? SET : rbp;
	default:
		return LOST;
	}
}

void gocode__rows_by_rbp(struct gocode *c, const struct gocode_prologue *p, uint64_t end,
			 uint8_t ra, struct unwind_packer *out)
{
	struct bpfprof_rule rules[] = {
		[SET] = gocode_rule(BPFPROF_CFA_FP, 16, true),
		[PUSHED] = gocode_rule(BPFPROF_CFA_FP, 16, true),
		[NESTED] = gocode_rule(BPFPROF_CFA_FP_DEREF, 0, true),
		[LOADED] = gocode_rule(BPFPROF_CFA_SP, p->frame + 8, false),
		[DROPPED] = gocode_rule(BPFPROF_CFA_SP, 8, false),
		[LOST] = unsupported,
	};
	enum rbp rbp = SET, before = SET, next;
	bool pushed = false;
	struct insn in;
	uint64_t at;

	for (size_t i = 0; i < LOST; i++)
		rules[i].ra = ra;
	rules[NESTED].aux = 16;
	for (at = p->set; at < end; at += in.len) {
		unwind_packer__row(out, at, rules[rbp]);
		if (rbp == LOST || !decode(c, at, end, &in))
			break;
		next = rbp_behind(rbp, before != PUSHED, &in, p->frame);
		pushed |= next == PUSHED;
		/* who jumps to what is behind may have pushed it or not */
		if (pushed && leaves(&in))
			next = LOST;
		before = rbp;
		rbp = next;
	}
	if (at < end)
		unwind_packer__row(out, at, unsupported);
}

bool gocode__find_r12(struct gocode *c, uint64_t start, uint64_t end, struct gocode_r12 *ret)
{
	struct insn in;

	*ret = (struct gocode_r12){};
	for (uint64_t at = start; decode(c, at, end, &in); at += in.len) {
		if (ret->from && moves(&in, INSN_R12, INSN_SP)) {
			ret->to = at + in.len;
			return true;
		}
		if (!ret->from && moves(&in, INSN_SP, INSN_R12))
			ret->from = at + in.len;
		else if (insn__writes(&in, ret->from ? INSN_R12 : INSN_SP))
			return false;
	}
	return false;
}

void gocode_rows_by_r12(uint64_t start, const struct gocode_r12 *left, struct unwind_packer *out)
{
	struct bpfprof_rule in_r12 = gocode_rule(BPFPROF_CFA_REG, 8, false);

	in_r12.reg = REG_R12;
	in_r12.ra = BPFPROF_RA_CALL;
	unwind_packer__row(out, start, gocode_rule(BPFPROF_CFA_SP, 8, false));
	unwind_packer__row(out, left->from, in_r12);
	unwind_packer__row(out, left->to, gocode_rule(BPFPROF_CFA_SP, 8, false));
}
