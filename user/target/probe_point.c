/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Follows x86-64 code from a function's start. What is known is what direct branches show: an
 * indirect jump may lead anywhere, so it counts as a return.
 */
#include "target/probe_point.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/disassembler.h"
#include "target/elf_file.h"

#define PAGE 4096U
#define PAGES 16	    /* of code kept; a power of two */
#define MAX_INSN 15	    /* bytes; Intel SDM 2.3.11 */
#define VISITED 16384	    /* slots; a power of two, above twice PROBE_MAX_INSNS */
#define MAX_ENTRY_INSNS 32  /* looked at for a probe point */
#define MAX_GROWTH_INSNS 64 /* of what makes a stack grow: it saves and restores arguments */

struct page { /* of code, and the end of an instruction that begins in it */
	uint64_t vaddr;
	size_t sz;
	uint8_t bytes[PAGE + MAX_INSN];
};

/* A slot of a hash table that is not base/hash, since a new number of the scan empties it: there are
 * thousands of scans of few instructions. */
struct visited {
	uint64_t addr;
	uint64_t scan; /* number of the scan that has been there */
};

struct stack { /* of addresses to follow; no instruction adds more than one to each */
	uint64_t addrs[PROBE_MAX_INSNS + 2];
	size_t cnt;
};

struct probe_decoder {
	const struct elf_file *elf;
	struct disassembler dis;
	const cs_insn *insn; /* of that */
	struct page pages[PAGES];
	struct visited visited[VISITED];
	uint64_t scan;
	struct stack ways; /* reached from the start */
	struct stack rest; /* other code of the function */
};

struct scan {
	struct probe_decoder *d;
	uint64_t start, end; /* as the symbol says */
	const struct probe_targets *targets;
	size_t left;
	bool resting; /* reading the rest: only jumps matter */
	bool at_start;
	struct probe_body *body;
};

struct probe_decoder *probe_decoder__new(const struct elf_file *elf)
{
	struct probe_decoder *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return NULL;
	d->elf = elf;
	err = disassembler__open(&d->dis);
	if (err) {
		probe_decoder__free(d);
		errno = -err;
		return NULL;
	}
	d->insn = d->dis.insn;
	return d;
}

void probe_decoder__free(struct probe_decoder *d)
{
	if (!d)
		return;
	disassembler__close(&d->dis);
	free(d);
}

/* ---- code ---- */

/* Code from vaddr on, an instruction at least if there is as much, and how much it is; NULL if it
 * lies in no executable segment. */
static const uint8_t *code_at(struct probe_decoder *d, uint64_t vaddr, size_t *ret_sz)
{
	struct page *p = &d->pages[vaddr / PAGE & (PAGES - 1)];
	uint64_t start = vaddr & ~(uint64_t)(PAGE - 1), rel;
	const struct elf_segment *seg;
	size_t cnt, i;

	if (p->sz && vaddr >= p->vaddr && vaddr - p->vaddr < p->sz) {
		*ret_sz = p->sz - (vaddr - p->vaddr);
		return p->bytes + (vaddr - p->vaddr);
	}
	seg = elf_file__segments(d->elf, &cnt);
	for (i = 0; i < cnt; i++, seg++) {
		if (!seg->exec || vaddr < seg->vaddr || vaddr - seg->vaddr >= seg->filesz)
			continue;
		p->vaddr = MAX(start, seg->vaddr);
		rel = p->vaddr - seg->vaddr;
		p->sz = MIN(seg->filesz - rel, start + sizeof(p->bytes) - p->vaddr);
		if (elf_file__read_vaddr(d->elf, p->vaddr, p->bytes, p->sz)) {
			p->sz = 0;
			return NULL;
		}
		*ret_sz = p->sz - (vaddr - p->vaddr);
		return p->bytes + (vaddr - p->vaddr);
	}
	return NULL;
}

static bool is_endbr(const cs_insn *insn)
{
	return insn->size == 4 && !memcmp(insn->bytes, "\xf3\x0f\x1e\xfa", 4);
}

static bool decode(struct probe_decoder *d, uint64_t vaddr)
{
	const uint8_t *code;
	uint64_t addr = vaddr;
	size_t sz;

	code = code_at(d, vaddr, &sz);
	return code && disassembler__decode(&d->dis, &code, &sz, &addr);
}

/* ---- kinds of instructions ---- */

static bool in_group(const struct probe_decoder *d, unsigned int group)
{
	return disassembler__in_group(&d->dis, group);
}

static bool is_jump(const struct probe_decoder *d)
{
	unsigned int id = d->insn->id;

	return in_group(d, CS_GRP_JUMP) || id == X86_INS_LOOP || id == X86_INS_LOOPE ||
	       id == X86_INS_LOOPNE || id == X86_INS_JRCXZ || id == X86_INS_JECXZ ||
	       id == X86_INS_XBEGIN;
}

/* Does control not go on behind it? */
static bool is_last(const struct probe_decoder *d)
{
	unsigned int id = d->insn->id;

	return in_group(d, CS_GRP_RET) || in_group(d, CS_GRP_IRET) || id == X86_INS_UD2 ||
	       id == X86_INS_HLT || id == X86_INS_INT3;
}

static bool direct_target(const struct probe_decoder *d, uint64_t *ret)
{
	const cs_x86 *x = &d->insn->detail->x86;

	if (x->op_count != 1 || x->operands[0].type != X86_OP_IMM)
		return false;
	*ret = (uint64_t)x->operands[0].imm;
	return true;
}

/* The GOT entry that a call or jump goes through: *disp(%rip). */
static bool got_target(const struct probe_decoder *d, uint64_t *ret)
{
	const cs_x86 *x = &d->insn->detail->x86;
	const x86_op_mem *mem = &x->operands[0].mem;

	if (x->op_count != 1 || x->operands[0].type != X86_OP_MEM || mem->base != X86_REG_RIP ||
	    mem->index != X86_REG_INVALID)
		return false;
	*ret = d->insn->address + d->insn->size + (uint64_t)mem->disp;
	return true;
}

static bool is_rip_relative(const struct probe_decoder *d)
{
	const cs_x86 *x = &d->insn->detail->x86;
	uint8_t i;

	for (i = 0; i < x->op_count; i++) {
		if (x->operands[i].type == X86_OP_MEM && x->operands[i].mem.base == X86_REG_RIP)
			return true;
	}
	return false;
}

static bool is_test_rdi(const struct probe_decoder *d)
{
	const cs_x86 *x = &d->insn->detail->x86;

	return d->insn->id == X86_INS_TEST && x->op_count == 2 &&
	       x->operands[0].type == X86_OP_REG && x->operands[0].reg == X86_REG_RDI &&
	       x->operands[1].type == X86_OP_REG && x->operands[1].reg == X86_REG_RDI;
}

/* ---- the way through a function ---- */

static void push(struct stack *s, uint64_t addr)
{
	if (s->cnt < ARRAY_SIZE(s->addrs))
		s->addrs[s->cnt++] = addr;
}

/* False if the address has been visited. */
static bool visit(struct probe_decoder *d, uint64_t addr)
{
	size_t i = util_hash(&addr, sizeof(addr), 0) & (VISITED - 1);

	for (; d->visited[i].scan == d->scan; i = (i + 1) & (VISITED - 1)) {
		if (d->visited[i].addr == addr)
			return false;
	}
	d->visited[i] = (struct visited){ addr, d->scan };
	return true;
}

/* Code that nothing led to yet: it is read for its jumps when all else is. */
static void leave(struct scan *s, uint64_t addr)
{
	if (addr > s->start && addr < s->end)
		push(&s->d->rest, addr);
}

static enum probe_target classify(struct scan *s, uint64_t addr, bool got)
{
	enum probe_target t = s->targets->classify(s->targets->ctx, addr, got);

	if (t == PROBE_ENTRY) {
		s->body->enters = true;
		if (!got)
			s->body->entry = addr;
	}
	return t;
}

/* The same for code that may be a stub of the PLT: [endbr64] [bnd] jmp *disp(%rip). */
static enum probe_target classify_code(struct scan *s, uint64_t addr)
{
	enum probe_target t = classify(s, addr, false);
	const uint8_t *code;
	size_t sz, pos = 0;
	int32_t disp;

	if (t != PROBE_ELSEWHERE)
		return t;
	code = code_at(s->d, addr, &sz);
	if (!code || sz < MAX_INSN)
		return t;
	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		pos = 4;
	if (code[pos] == 0xf2)
		pos++;
	if (code[pos] != 0xff || code[pos + 1] != 0x25)
		return t;
	memcpy(&disp, code + pos + 2, sizeof(disp));
	return classify(s, addr + pos + 6 + (uint64_t)(int64_t)disp, true);
}

static void note_target(struct scan *s, uint64_t target)
{
	if (target >= s->start && target < s->body->first_target)
		s->body->first_target = target;
}

/* A jump from the current instruction, conditional or not, somewhere known. */
static void follow_jump(struct scan *s, uint64_t target)
{
	note_target(s, target);
	if (target == s->start)
		return;
	if (s->resting)
		leave(s, target);
	else if (classify_code(s, target) == PROBE_ELSEWHERE)
		push(&s->d->ways, target);
}

static void add_callee(struct probe_body *b, uint64_t addr)
{
	size_t i;

	for (i = 0; i < b->callee_cnt; i++) {
		if (b->callees[i] == addr)
			return;
	}
	if (b->callee_cnt < PROBE_MAX_CALLEES)
		b->callees[b->callee_cnt++] = addr;
}

/* A call; false if the way need not be followed any further. */
static bool follow_call(struct scan *s, uint64_t next)
{
	enum probe_target t = PROBE_ELSEWHERE;
	uint64_t target;

	if (direct_target(s->d, &target)) {
		if (target != s->start)
			note_target(s, target);
		if (s->resting)
			return true;
		t = classify_code(s, target);
		if (t == PROBE_ELSEWHERE)
			add_callee(s->body, target);
	} else if (!s->resting && got_target(s->d, &target)) {
		t = classify(s, target, true);
	}
	if (t == PROBE_ELSEWHERE)
		return true;
	leave(s, next);
	return false;
}

/* A jump; false if control does not go on behind it. */
static bool follow_jumps(struct scan *s, uint64_t next, bool after_null_test)
{
	unsigned int id = s->d->insn->id;
	uint64_t target;

	if (!direct_target(s->d, &target)) {
		if (!s->resting &&
		    (!got_target(s->d, &target) || classify(s, target, true) == PROBE_ELSEWHERE))
			s->body->returns = true;
		leave(s, next);
		return false;
	}
	if (after_null_test && id == X86_INS_JE) {
		note_target(s, target);
		leave(s, target);
		return true;
	}
	follow_jump(s, target);
	if (id == X86_INS_JMP || (after_null_test && id == X86_INS_JNE)) {
		leave(s, next);
		return false;
	}
	return true;
}

/* Follows the code from addr on up to where it ends or was visited before. */
static void walk(struct scan *s, uint64_t addr)
{
	bool null_test = false, go_on = true;
	struct probe_decoder *d = s->d;

	for (; go_on && visit(d, addr); s->left--) {
		if (!s->left || !decode(d, addr)) {
			/* where the code goes from here is not known */
			s->body->returns |= !s->resting;
			return;
		}
		addr += d->insn->size;
		if (is_last(d)) {
			s->body->returns |= !s->resting && in_group(d, CS_GRP_RET);
			leave(s, addr);
			go_on = false;
		} else if (in_group(d, CS_GRP_CALL)) {
			go_on = follow_call(s, addr);
		} else if (is_jump(d)) {
			go_on = follow_jumps(s, addr, null_test);
			s->at_start = false;
		}
		null_test = s->at_start && s->targets->ignore_null && is_test_rdi(d);
	}
}

void probe_decoder__scan(struct probe_decoder *d, uint64_t vaddr, uint64_t size,
			 const struct probe_targets *targets, size_t *left, struct probe_body *ret)
{
	size_t most = MIN(*left, PROBE_MAX_INSNS);
	struct scan s = { .d = d,
			  .start = vaddr,
			  .end = size <= UINT64_MAX - vaddr ? vaddr + size : vaddr,
			  .targets = targets,
			  .left = most,
			  .at_start = true,
			  .body = ret };

	*ret = (struct probe_body){ .first_target = UINT64_MAX };
	d->scan++;
	d->ways.cnt = d->rest.cnt = 0;
	push(&d->ways, vaddr);
	while (d->ways.cnt)
		walk(&s, d->ways.addrs[--d->ways.cnt]);
	s.resting = true;
	while (d->rest.cnt)
		walk(&s, d->rest.addrs[--d->rest.cnt]);
	*left -= most - s.left;
}

/* ---- the instruction ---- */

static unsigned int reg_bit(unsigned int reg)
{
	switch (reg) {
	case X86_REG_RDI:
	case X86_REG_EDI:
	case X86_REG_DI:
	case X86_REG_DIL:
		return PROBE_RDI;
	case X86_REG_RSI:
	case X86_REG_ESI:
	case X86_REG_SI:
	case X86_REG_SIL:
		return PROBE_RSI;
	case X86_REG_RDX:
	case X86_REG_EDX:
	case X86_REG_DX:
	case X86_REG_DH:
	case X86_REG_DL:
		return PROBE_RDX;
	case X86_REG_RCX:
	case X86_REG_ECX:
	case X86_REG_CX:
	case X86_REG_CH:
	case X86_REG_CL:
		return PROBE_RCX;
	case X86_REG_R8:
	case X86_REG_R8D:
	case X86_REG_R8W:
	case X86_REG_R8B:
		return PROBE_R8;
	case X86_REG_R9:
	case X86_REG_R9D:
	case X86_REG_R9W:
	case X86_REG_R9B:
		return PROBE_R9;
	case X86_REG_RSP:
	case X86_REG_ESP:
	case X86_REG_SP:
	case X86_REG_SPL:
		return PROBE_RSP;
	default:
		return 0;
	}
}

/*
 * The registers that the current instruction writes, or may write: capstone's tables know the
 * implicit ones; where they have not been told that an instruction writes its operands, all but
 * those that surely only read them are taken to.
 */
static unsigned int written(const struct probe_decoder *d)
{
	const cs_x86 *x = &d->insn->detail->x86;
	cs_regs reads, writes;
	uint8_t read_cnt = 0, write_cnt = 0, i;
	unsigned int id = d->insn->id, bits = 0;

	if (disassembler__regs(&d->dis, reads, &read_cnt, writes, &write_cnt))
		return ~0U;
	for (i = 0; i < write_cnt; i++)
		bits |= reg_bit(writes[i]);
	if (id == X86_INS_CMP || id == X86_INS_TEST || id == X86_INS_NOP || id == X86_INS_PUSH)
		return bits;
	if (x->op_count && x->operands[0].type == X86_OP_REG)
		bits |= reg_bit(x->operands[0].reg);
	if (id == X86_INS_XCHG || id == X86_INS_XADD || id == X86_INS_CMPXCHG) {
		for (i = 0; i < x->op_count; i++)
			bits |= x->operands[i].type == X86_OP_REG ? reg_bit(x->operands[i].reg) : 0;
	}
	return bits;
}

/*
 * What uprobes emulate on all kernels that matter: push_setup_xol_ops and branch_setup_xol_ops in
 * arch/x86/kernel/uprobes.c. With a prefix 66 they do not; none is accepted here.
 */
static bool is_emulated(const cs_insn *insn)
{
	const uint8_t *b = insn->bytes;

	switch (insn->size) {
	case 1: /* nop; push of a register, but for rsp */
		return b[0] == 0x90 || (b[0] >= 0x50 && b[0] <= 0x57 && b[0] != 0x54);
	case 2: /* jcc, jmp rel8; push of r8 to r15 */
		return (b[0] >= 0x70 && b[0] <= 0x7f) || b[0] == 0xeb ||
		       (b[0] == 0x41 && b[1] >= 0x50 && b[1] <= 0x57);
	case 5: /* call, jmp rel32 */
		return b[0] == 0xe8 || b[0] == 0xe9;
	case 6: /* jcc rel32 */
		return b[0] == 0x0f && b[1] >= 0x80 && b[1] <= 0x8f;
	default:
		return false;
	}
}

/* is_prefix_bad there: es, cs, ss, ds, lock. The kernel refuses to probe these. */
static bool is_refused(const cs_insn *insn)
{
	size_t i;

	for (i = 0; i < insn->size; i++) {
		switch (insn->bytes[i]) {
		case 0x26:
		case 0x2e:
		case 0x36:
		case 0x3e:
		case 0xf0:
			return true;
		case 0x64:
		case 0x65:
		case 0x66:
		case 0x67:
		case 0xf2:
		case 0xf3:
			break;
		default:
			return false;
		}
	}
	return false;
}

/*
 * A longer nop that does no harm. Linux 6.18 replaces one of 5 bytes by a call, whose return
 * address overwrites the red zone.
 */
static bool is_long_nop(const cs_insn *insn)
{
	return insn->id == X86_INS_NOP && insn->size > 1 && !is_refused(insn) &&
	       memcmp(insn->bytes, "\x0f\x1f\x44\x00\x00", 5);
}

static void fill_point(const struct probe_decoder *d, uint64_t start, struct probe_point *ret)
{
	*ret = (struct probe_point){ .skew = d->insn->address - start,
				     .emulated = is_emulated(d->insn) };
	/* what does not fit is cut: it is for people */
	if (snprintf(ret->insn, sizeof(ret->insn), "%s%s%.*s", d->insn->mnemonic,
		     d->insn->op_str[0] ? " " : "", (int)sizeof(ret->insn), d->insn->op_str) < 0)
		ret->insn[0] = '\0';
}

/* How much the current instruction is wanted: 0 not at all. */
#define PREFER_EMULATED 3
static int preference(const struct probe_decoder *d)
{
	const cs_insn *insn = d->insn;

	if (is_emulated(insn))
		return PREFER_EMULATED;
	if (is_endbr(insn) || is_refused(insn) || is_last(d) || is_rip_relative(d))
		return 0;
	if (insn->id == X86_INS_NOP)
		return is_long_nop(insn) ? 2 : 0;
	return 1;
}

/* Where the arguments are, as seen from the function's start. */
struct entry_state {
	unsigned int keep;
	bool copied; /* rsi is what rdi was */
	bool moved;  /* and rdi is not, any more */
};

/* Takes the current instruction into account; false if what has to be kept is lost by it. */
static bool step(struct entry_state *st, const struct probe_decoder *d)
{
	const cs_x86_op *op = d->insn->detail->x86.operands;
	unsigned int bits = written(d);

	if (is_last(d) || is_jump(d) || in_group(d, CS_GRP_CALL) || in_group(d, CS_GRP_INT) ||
	    bits & st->keep & ~PROBE_RDI)
		return false;
	if (bits & PROBE_RSI)
		st->copied = st->keep & PROBE_MAY_MOVE && !st->moved &&
			     d->insn->id == X86_INS_MOV && op[0].reg == X86_REG_RSI &&
			     op[1].type == X86_OP_REG && op[1].reg == X86_REG_RDI;
	if (bits & st->keep & PROBE_RDI)
		st->moved = true;
	return !st->moved || st->copied;
}

int probe_decoder__choose(struct probe_decoder *d, uint64_t vaddr, uint64_t before,
			  unsigned int keep, struct probe_point *ret)
{
	struct entry_state st = { .keep = keep };
	uint64_t addr = vaddr;
	int best = 0, p, i;

	for (i = 0; i < MAX_ENTRY_INSNS && best < PREFER_EMULATED; i++) {
		if (addr >= before || !decode(d, addr))
			break;
		p = preference(d);
		if (p > best) {
			best = p;
			fill_point(d, vaddr, ret);
			ret->moved = st.moved;
		}
		if (!step(&st, d))
			break;
		addr += d->insn->size;
	}
	return best ? 0 : -ENOENT;
}

/* ---- stacks that grow ---- */

/* Does the code there do nothing but save and restore registers, call something once, and go back? */
static bool leads_back(struct probe_decoder *d, uint64_t addr, uint64_t back)
{
	uint64_t target;
	int calls = 0;

	for (int i = 0; i < MAX_GROWTH_INSNS && decode(d, addr); i++) {
		addr += d->insn->size;
		if (d->insn->id == X86_INS_JMP)
			return calls == 1 && direct_target(d, &target) && target == back;
		if (is_jump(d) || is_last(d))
			return false;
		calls += in_group(d, CS_GRP_CALL);
	}
	return false;
}

/* Is the current instruction one that a frame begins with? */
static bool begins_frame(const struct probe_decoder *d)
{
	const cs_x86_op *op = d->insn->detail->x86.operands;

	return op[0].type == X86_OP_REG &&
	       ((d->insn->id == X86_INS_PUSH && op[0].reg == X86_REG_RBP) ||
		(d->insn->id == X86_INS_SUB && op[0].reg == X86_REG_RSP &&
		 op[1].type == X86_OP_IMM));
}

int probe_decoder__past_growth(struct probe_decoder *d, uint64_t vaddr, struct probe_point *ret)
{
	uint64_t addr = vaddr, grow = 0, below = 0;

	for (int i = 0; i < MAX_ENTRY_INSNS && !grow; i++) {
		if (!decode(d, addr))
			return -ENOENT;
		addr += d->insn->size;
		if (d->insn->id == X86_INS_JBE && direct_target(d, &grow))
			break;
		/* a frame that is larger than what may lie below the stack */
		if (d->insn->id == X86_INS_JB && !below && direct_target(d, &below))
			continue;
		if (is_jump(d) || is_last(d) || in_group(d, CS_GRP_CALL))
			return -ENOENT;
	}
	if (!grow || (below && below != grow) || !leads_back(d, grow, vaddr) || !decode(d, addr) ||
	    !begins_frame(d))
		return -ENOENT;
	fill_point(d, vaddr, ret);
	return 0;
}

int probe_decoder__nop(struct probe_decoder *d, uint64_t vaddr, struct probe_point *ret)
{
	if (!decode(d, vaddr) || d->insn->id != X86_INS_NOP ||
	    !(is_emulated(d->insn) || is_long_nop(d->insn)))
		return -ENOENT;
	fill_point(d, vaddr, ret);
	return 0;
}
