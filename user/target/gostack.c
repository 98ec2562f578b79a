/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/gostack.h"

#include <errno.h>

#include "target/disassembler.h"

/* What is known of a register while a function is gone through in a straight line. */
enum content {
	UNKNOWN,
	CONSTANT,
	GOT_WORD, /* of the address `value` */
	G,	  /* loaded by the thread pointer */
	M,	  /* loaded from a g */
	CALLER_PC,
	CALLER_SP, /* what stands at rsp, and rsp + 8 */
};

struct reg {
	enum content content;
	int64_t value;
};

struct reading {
	struct reg regs[X86_REG_ENDING];
	bool has_g, has_m, has_pc, has_sp, has_bp;
	unsigned int m_compared; /* memory of the m that was compared */
	int64_t g, g_m, m_last, sched_pc, sched_sp, sched_bp;
	bool via_got;
};

static bool is_mem(const cs_x86_op *op, x86_reg base)
{
	return op->type == X86_OP_MEM && op->mem.segment == X86_REG_INVALID &&
	       op->mem.base == base && op->mem.index == X86_REG_INVALID;
}

/* mov, from memory by the thread pointer: the word that holds g. */
static void load_g(struct reading *r, const cs_x86_op *to, const x86_op_mem *mem)
{
	const struct reg *base = &r->regs[mem->base];

	if (mem->index != X86_REG_INVALID ||
	    (mem->base != X86_REG_INVALID &&
	     (mem->disp || (base->content != CONSTANT && base->content != GOT_WORD))))
		return;
	if (!r->has_g) {
		r->has_g = true;
		r->via_got = mem->base != X86_REG_INVALID && base->content == GOT_WORD;
		r->g = mem->base == X86_REG_INVALID ? mem->disp : base->value;
	}
	r->regs[to->reg] = (struct reg){ .content = G };
}

/* mov, from memory. */
static void load(struct reading *r, const cs_insn *insn, const cs_x86_op *to, const cs_x86_op *from)
{
	const x86_op_mem *mem = &from->mem;
	struct reg *ret = &r->regs[to->reg];
	enum content base = r->regs[mem->base].content;

	if (mem->segment == X86_REG_FS) {
		*ret = (struct reg){ .content = UNKNOWN };
		load_g(r, to, mem);
	} else if (is_mem(from, X86_REG_RIP)) {
		*ret = (struct reg){ GOT_WORD, (int64_t)insn->address + insn->size + mem->disp };
	} else if (is_mem(from, X86_REG_RSP) && !mem->disp) {
		*ret = (struct reg){ .content = CALLER_PC };
	} else if (base == G && mem->index == X86_REG_INVALID && !r->has_m) {
		r->has_m = true;
		r->g_m = mem->disp;
		*ret = (struct reg){ .content = M };
	} else if (base == G && mem->index == X86_REG_INVALID && mem->disp == r->g_m) {
		*ret = (struct reg){ .content = M };
	} else {
		*ret = (struct reg){ .content = UNKNOWN };
	}
}

/* mov, to memory: of what morestack saves in a g. */
static void store(struct reading *r, const x86_op_mem *mem, x86_reg from)
{
	enum content content = r->regs[from].content;

	if (r->regs[mem->base].content != G || mem->index != X86_REG_INVALID)
		return;
	if (content == CALLER_PC && !r->has_pc) {
		r->has_pc = true;
		r->sched_pc = mem->disp;
	} else if (content == CALLER_SP && !r->has_sp) {
		r->has_sp = true;
		r->sched_sp = mem->disp;
	} else if (from == X86_REG_RBP && !r->has_bp) {
		r->has_bp = true;
		r->sched_bp = mem->disp;
	}
}

static void read_insn(struct reading *r, const cs_insn *insn)
{
	const cs_x86_op *op = insn->detail->x86.operands;

	if (insn->detail->x86.op_count != 2)
		return;
	if (insn->id == X86_INS_CMP) {
		for (int i = 0; i < 2; i++) {
			if (op[i].type == X86_OP_MEM && r->regs[op[i].mem.base].content == M) {
				r->m_compared++;
				r->m_last = op[i].mem.disp;
			}
		}
	} else if (insn->id == X86_INS_MOV && op[0].type == X86_OP_MEM &&
		   op[1].type == X86_OP_REG) {
		store(r, &op[0].mem, op[1].reg);
	} else if (op[0].type != X86_OP_REG) {
		return;
	} else if (insn->id == X86_INS_MOV && op[1].type == X86_OP_MEM) {
		load(r, insn, &op[0], &op[1]);
	} else if (insn->id == X86_INS_MOV && op[1].type == X86_OP_IMM) {
		r->regs[op[0].reg] = (struct reg){ CONSTANT, op[1].imm };
	} else if (insn->id == X86_INS_LEA && is_mem(&op[1], X86_REG_RSP) && op[1].mem.disp == 8) {
		r->regs[op[0].reg] = (struct reg){ .content = CALLER_SP };
	} else {
		r->regs[op[0].reg] = (struct reg){ .content = UNKNOWN };
	}
}

static int read_code(const struct gostack_code *code, struct reading *r)
{
	const uint8_t *p = code->bytes;
	uint64_t vaddr = code->vaddr;
	size_t sz = code->sz;
	struct disassembler dis;
	int err = disassembler__open(&dis);

	*r = (struct reading){};
	if (err)
		return err;
	while (disassembler__decode(&dis, &p, &sz, &vaddr))
		read_insn(r, dis.insn);
	disassembler__close(&dis);
	return 0;
}

static bool is_field(int64_t offset)
{
	return offset >= 0 && offset < 4096 && !(offset & 7);
}

int gostack_read(const struct gostack_code *morestack, const struct gostack_code *systemstack,
		 struct gostack *ret)
{
	struct reading more, system;
	int err = read_code(morestack, &more);

	if (!err)
		err = read_code(systemstack, &system);
	if (err)
		return err;
	if (!more.has_g || !more.has_m || !more.has_pc || !more.has_sp || !more.has_bp ||
	    !is_field(more.g_m) || !is_field(more.sched_sp) || !is_field(more.sched_bp) ||
	    more.sched_pc != more.sched_sp + 8)
		return -ENOTSUP;
	/* systemstack compares g with m.gsignal, then with m.curg; m.g0 it has loaded */
	if (system.m_compared != 2 || !is_field(system.m_last) || system.g_m != more.g_m)
		return -ENOTSUP;
	if (more.g < INT32_MIN || more.g > INT32_MAX || (more.via_got && more.g < 0))
		return -ENOTSUP;
	*ret = (struct gostack){
		.g = (int32_t)more.g,
		.via_got = more.via_got,
		.g_m = (uint16_t)more.g_m,
		.m_curg = (uint16_t)system.m_last,
		.sched_sp = (uint16_t)more.sched_sp,
		.sched_bp = (uint16_t)more.sched_bp,
	};
	return 0;
}

/* mov %rdi, d8(%rsp) */
static bool is_save(const uint8_t *p)
{
	return p[0] == 0x48 && p[1] == 0x89 && p[2] == 0x7c && p[3] == 0x24 && p[4] < 0x80 &&
	       !(p[4] & 7);
}

int gostack_read_asmcgocall(const struct gostack_code *code, int16_t *ret_g, int16_t *ret_depth)
{
	int16_t saved[2];
	int cnt = 0;

	/* g first, then the depth, which has been computed in the same register */
	for (size_t i = 0; i + 5 <= code->sz && cnt < 2; i++) {
		if (is_save(code->bytes + i))
			saved[cnt++] = code->bytes[i + 4];
	}
	if (cnt < 2)
		return -ENOTSUP;
	*ret_g = saved[0];
	*ret_depth = saved[1];
	return 0;
}
