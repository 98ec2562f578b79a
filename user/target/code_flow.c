/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows code with the depth of the stack known, which tells a jump within a function from a tail
 * call: before it jumps to another function, code takes everything from the stack that it has put
 * there (psABI 3.2.2: at a function's start the return address is at (%rsp)).
 */
#include "target/code_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/disassembler.h"
#include "target/elf_file.h"

#define UNKNOWN INT32_MIN
#define MAX_DEPTH (1 << 24) /* bytes on the stack; above: not known */
#define MAX_USE 8	    /* instructions that show what is known at their beginning, if at all */
#define MAX_WAYS 1024
#define ALIGNMENT 16   /* of functions, where compilers put padding before them */
#define FOLLOW_COST 64 /* instructions: what it takes to begin */

/* The stack pointer is `depth` bytes below where it was at the function's start, rbp is `frame`. */
struct state {
	int32_t depth, frame;
};

struct way { /* to be followed */
	uint32_t pos;
	struct state st;
};

struct code_flow {
	const struct elf_file *elf;
	struct disassembler dis;
	const cs_insn *insn; /* of that */
	size_t left;	     /* instructions */
	uint64_t start;
	size_t sz;
	uint8_t code[CODE_FLOW_MAX_SZ];
	bool reached[CODE_FLOW_MAX_SZ];	 /* bytes */
	bool begins[CODE_FLOW_MAX_SZ];	 /* an instruction that was reached begins here, */
	int32_t depth[CODE_FLOW_MAX_SZ]; /* with so much on the stack */
	bool odd;			 /* one is reached with different depths */
	struct way ways[MAX_WAYS];
	size_t way_cnt;
};

struct code_flow *code_flow__new(const struct elf_file *elf)
{
	struct code_flow *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return NULL;
	f->elf = elf;
	f->left = CODE_FLOW_MAX_INSNS;
	err = disassembler__open(&f->dis);
	if (err) {
		code_flow__free(f);
		errno = -err;
		return NULL;
	}
	f->insn = f->dis.insn;
	return f;
}

void code_flow__free(struct code_flow *f)
{
	if (!f)
		return;
	disassembler__close(&f->dis);
	free(f);
}

/* ---- instructions ---- */

/* False also for one that ends behind what is looked at, or if enough have been decoded. */
static bool decode(struct code_flow *f, size_t pos)
{
	const uint8_t *code = f->code + pos;
	size_t sz = f->sz - pos;
	uint64_t addr = f->start + pos;

	if (pos >= f->sz || !f->left)
		return false;
	f->left--;
	return disassembler__decode(&f->dis, &code, &sz, &addr);
}

static bool in_group(const struct code_flow *f, unsigned int group)
{
	return disassembler__in_group(&f->dis, group);
}

static bool is_jump(const struct code_flow *f)
{
	unsigned int id = f->insn->id;

	return in_group(f, CS_GRP_JUMP) || id == X86_INS_LOOP || id == X86_INS_LOOPE ||
	       id == X86_INS_LOOPNE || id == X86_INS_JRCXZ || id == X86_INS_JECXZ ||
	       id == X86_INS_XBEGIN;
}

static bool is_last(const struct code_flow *f)
{
	unsigned int id = f->insn->id;

	return in_group(f, CS_GRP_RET) || in_group(f, CS_GRP_IRET) || id == X86_INS_UD2 ||
	       id == X86_INS_HLT || id == X86_INS_INT3 || id == X86_INS_SYSEXIT ||
	       id == X86_INS_SYSRET;
}

/* May it be that control does not come back? */
static bool may_stay(const struct code_flow *f)
{
	unsigned int id = f->insn->id;

	return in_group(f, CS_GRP_CALL) || in_group(f, CS_GRP_INT) || id == X86_INS_SYSCALL ||
	       id == X86_INS_SYSENTER;
}

static const cs_x86_op *operand(const struct code_flow *f, uint8_t i)
{
	static const cs_x86_op none;
	const cs_x86 *x = &f->insn->detail->x86;

	return i < x->op_count ? &x->operands[i] : &none;
}

static bool is_reg(const cs_x86_op *op, x86_reg reg)
{
	return op->type == X86_OP_REG && op->reg == reg;
}

/* Zeros would be add %al,(%rax). */
static bool is_padding(const struct code_flow *f)
{
	return f->insn->id == X86_INS_NOP ||
	       (f->insn->id == X86_INS_XCHG && is_reg(operand(f, 0), X86_REG_AX) &&
		is_reg(operand(f, 1), X86_REG_AX)) ||
	       !memcmp(f->insn->bytes, "\0\0", 2);
}

/* ---- the stack ---- */

static bool writes(const struct code_flow *f, x86_reg reg64, x86_reg reg32)
{
	cs_regs read, written;
	uint8_t read_cnt = 0, written_cnt = 0, i;

	if (disassembler__regs(&f->dis, read, &read_cnt, written, &written_cnt))
		return true;
	for (i = 0; i < written_cnt; i++) {
		if (written[i] == reg64 || written[i] == reg32)
			return true;
	}
	/* where capstone's tables do not know that an instruction writes its operand */
	return is_reg(operand(f, 0), reg64) && f->insn->id != X86_INS_CMP &&
	       f->insn->id != X86_INS_TEST && f->insn->id != X86_INS_PUSH;
}

static int32_t deeper(int32_t depth, int64_t by)
{
	int64_t sum = depth + by;

	return depth == UNKNOWN || sum > MAX_DEPTH || sum < -MAX_DEPTH ? UNKNOWN : (int32_t)sum;
}

/* The depth behind an instruction that writes rsp by its operands. */
static int32_t set_depth(const struct code_flow *f, const struct state *st)
{
	const cs_x86_op *to = operand(f, 0), *from = operand(f, 1);

	if (!is_reg(to, X86_REG_RSP))
		return UNKNOWN;
	switch (f->insn->id) {
	case X86_INS_SUB:
		return from->type == X86_OP_IMM ? deeper(st->depth, from->imm) : UNKNOWN;
	case X86_INS_ADD:
		return from->type == X86_OP_IMM ? deeper(st->depth, -from->imm) : UNKNOWN;
	case X86_INS_AND:
		/* aligned: at least as much */
		return from->type == X86_OP_IMM && from->imm < 0 ? st->depth : UNKNOWN;
	case X86_INS_MOV:
		return is_reg(from, X86_REG_RBP) ? st->frame : UNKNOWN;
	case X86_INS_LEA:
		if (from->type != X86_OP_MEM || from->mem.index != X86_REG_INVALID)
			return UNKNOWN;
		return from->mem.base == X86_REG_RSP ? deeper(st->depth, -from->mem.disp) :
		       from->mem.base == X86_REG_RBP ? deeper(st->frame, -from->mem.disp) :
						       UNKNOWN;
	default:
		return UNKNOWN;
	}
}

/* Takes the current instruction into account. */
static void step(const struct code_flow *f, struct state *st)
{
	const cs_x86_op *to = operand(f, 0);
	unsigned int id = f->insn->id;
	int32_t depth = st->depth;

	if (in_group(f, CS_GRP_CALL))
		return;
	if (id == X86_INS_PUSH || id == X86_INS_PUSHFQ)
		st->depth = deeper(depth, to->size == 2 ? 2 : 8);
	else if ((id == X86_INS_POP && !is_reg(to, X86_REG_RSP)) || id == X86_INS_POPFQ)
		st->depth = deeper(depth, to->size == 2 ? -2 : -8);
	else if (id == X86_INS_LEAVE)
		st->depth = deeper(st->frame, -8);
	else if (writes(f, X86_REG_RSP, X86_REG_ESP))
		st->depth = set_depth(f, st);
	if (id == X86_INS_MOV && is_reg(to, X86_REG_RBP) && is_reg(operand(f, 1), X86_REG_RSP))
		st->frame = depth;
	else if (id == X86_INS_LEAVE || writes(f, X86_REG_RBP, X86_REG_EBP))
		st->frame = UNKNOWN;
}

/* ---- what cannot be a function's beginning ---- */

/* Does the current instruction do nothing with the value of a register that it seems to read? */
static bool is_idiom(const struct code_flow *f)
{
	const cs_x86_op *a = operand(f, 0), *b = operand(f, 1);

	switch (f->insn->id) {
	case X86_INS_PUSH: /* for room */
	case X86_INS_XCHG:
		return true;
	case X86_INS_XOR:
	case X86_INS_SUB:
	case X86_INS_SBB:
		return a->type == X86_OP_REG && is_reg(b, a->reg);
	case X86_INS_OR:
		return b->type == X86_OP_IMM && (b->imm == -1 || b->imm == UINT32_MAX);
	case X86_INS_AND:
		return b->type == X86_OP_IMM && !b->imm;
	default:
		return false;
	}
}

static bool is_rax(unsigned int reg)
{
	return reg == X86_REG_RAX || reg == X86_REG_EAX || reg == X86_REG_AX;
}

/* What a function keeps for its caller (psABI, figure 3.4) and so knows nothing of at its start. */
static const struct {
	x86_reg reg64, reg32;
} callers[] = {
	{ X86_REG_RBX, X86_REG_EBX },  { X86_REG_RBP, X86_REG_EBP },  { X86_REG_R12, X86_REG_R12D },
	{ X86_REG_R13, X86_REG_R13D }, { X86_REG_R14, X86_REG_R14D }, { X86_REG_R15, X86_REG_R15D },
};

/* Of these, a bit for each: what the current instruction writes. */
static unsigned int written_callers(const struct code_flow *f)
{
	unsigned int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(callers); i++)
		ret |= (unsigned int)writes(f, callers[i].reg64, callers[i].reg32) << i;
	return ret;
}

/* The same: what it makes the stack pointer of. */
static unsigned int stack_callers(const struct code_flow *f)
{
	const cs_x86_op *from = operand(f, 1);
	x86_reg reg = X86_REG_INVALID;
	unsigned int ret = 0;

	if (f->insn->id == X86_INS_LEAVE)
		reg = X86_REG_RBP;
	else if (is_reg(operand(f, 0), X86_REG_RSP) && f->insn->id == X86_INS_MOV &&
		 from->type == X86_OP_REG)
		reg = from->reg;
	else if (is_reg(operand(f, 0), X86_REG_RSP) && f->insn->id == X86_INS_LEA)
		reg = from->mem.base;
	for (size_t i = 0; i < ARRAY_SIZE(callers); i++)
		ret |= (unsigned int)(callers[i].reg64 == reg) << i;
	return ret;
}

/*
 * Can no function begin at pos? Not if the code there uses what it has not been given by itself, and a
 * function does not know at its start: rax, where results are, but for al, if it takes a variable number
 * of arguments (psABI, figure 3.4); or, for its stack, what it keeps for its caller.
 */
static bool cannot_begin(struct code_flow *f, size_t pos)
{
	unsigned int own = 0; /* of callers */
	cs_regs read, written;
	uint8_t read_cnt, written_cnt, i;
	bool knows_rax = false;
	size_t n;

	for (n = 0; n < MAX_USE && decode(f, pos); n++, pos += f->insn->size) {
		read_cnt = written_cnt = 0;
		/* what is behind it may be anything */
		if (is_padding(f))
			return false;
		if (disassembler__regs(&f->dis, read, &read_cnt, written, &written_cnt))
			return false;
		for (i = 0; i < read_cnt && !knows_rax && !is_idiom(f) && !may_stay(f); i++) {
			if (is_rax(read[i]))
				return true;
		}
		if (stack_callers(f) & ~own)
			return true;
		own |= written_callers(f);
		for (i = 0; i < written_cnt; i++)
			knows_rax |= is_rax(written[i]) || written[i] == X86_REG_AL ||
				     written[i] == X86_REG_AH;
		if (is_jump(f) || is_last(f) || may_stay(f))
			return false;
	}
	return false;
}

/* ---- the way ---- */

/* A way leads to where one was before. */
static void meet(struct code_flow *f, size_t pos, const struct state *st)
{
	f->odd |= st->depth != UNKNOWN && f->depth[pos] != UNKNOWN && f->depth[pos] != st->depth;
}

static void follow_jump(struct code_flow *f, uint64_t target, const struct state *st)
{
	uint64_t pos = target - f->start;

	if (pos >= f->sz || f->way_cnt == MAX_WAYS)
		return;
	if (f->begins[pos])
		meet(f, pos, st);
	else if (st->depth > 0 || cannot_begin(f, pos))
		f->ways[f->way_cnt++] = (struct way){ (uint32_t)pos, *st };
}

/* A jump, if the current instruction is one. Returns whether control goes on behind it as well. */
static bool take_jump(struct code_flow *f, const struct state *st)
{
	bool goes_on = f->insn->id != X86_INS_JMP;

	if (!is_jump(f))
		return true;
	if (operand(f, 0)->type != X86_OP_IMM)
		return false;
	/* what it asks of other code decodes that */
	follow_jump(f, (uint64_t)operand(f, 0)->imm, st);
	return goes_on;
}

/* Follows the code up to where it ends or was before. */
static void walk(struct code_flow *f, size_t pos, struct state st)
{
	bool goes_on = true, pads = false;
	size_t next;

	for (; goes_on; pos = next) {
		if (pos < f->sz && f->begins[pos]) {
			meet(f, pos, &st);
			return;
		}
		/* assembly code falls through padding into the next function, too */
		if (pads && (f->start + pos) % ALIGNMENT == 0 && st.depth <= 0 &&
		    !cannot_begin(f, pos))
			return;
		if (!decode(f, pos))
			return;
		next = pos + f->insn->size;
		f->begins[pos] = true;
		f->depth[pos] = st.depth;
		memset(f->reached + pos, true, f->insn->size);
		if (is_last(f))
			return;
		step(f, &st);
		pads = is_padding(f);
		goes_on = may_stay(f) ? cannot_begin(f, next) : take_jump(f, &st);
	}
}

void code_flow__follow(struct code_flow *f, uint64_t start, uint64_t end)
{
	size_t i;

	f->start = start;
	f->sz = 0;
	f->way_cnt = 0;
	f->odd = false;
	if (f->left < FOLLOW_COST)
		return;
	f->left -= FOLLOW_COST;
	i = MIN(end - start, CODE_FLOW_MAX_SZ);
	if (!elf_file__read_vaddr(f->elf, start, f->code, i))
		f->sz = i;
	memset(f->reached, false, f->sz);
	memset(f->begins, false, f->sz);
	walk(f, 0, (struct state){ 0, UNKNOWN });
	while (f->way_cnt) {
		struct way w = f->ways[--f->way_cnt];

		walk(f, w.pos, w.st);
	}
	/* whoever wrote that does not do as others do */
	for (i = 0; f->odd && i < f->sz; i++)
		f->reached[i] = false;
}

bool code_flow__reaches(const struct code_flow *f, uint64_t vaddr)
{
	return vaddr - f->start < f->sz && f->reached[vaddr - f->start];
}
