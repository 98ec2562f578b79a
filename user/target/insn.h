/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The encoding of x86-64 instructions (Intel SDM, volume 2, chapter 2 and appendix A): how long one
 * is, what its fields are, whether it writes a register. That is all that following code takes, and
 * ten times as fast as a disassembler, which also makes text.
 */
#ifndef TARGET_INSN_H
#define TARGET_INSN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INSN_MAX 15 /* bytes; SDM 2.3.11 */

enum insn_map {
	INSN_ONE, /* one byte of opcode */
	INSN_0F,
	INSN_0F38,
	INSN_0F3A,
	INSN_OTHER, /* maps without general registers: AVX512-FP16, AMD's XOP */
};

/* Numbers of general registers, as instructions have them. */
enum {
	INSN_AX = 0,
	INSN_SP = 4,
	INSN_BP = 5,
	INSN_R12 = 12,
	INSN_NO_REG = 0xff
};

struct insn {
	uint8_t len;
	uint8_t map; /* enum insn_map */
	uint8_t op;
	uint8_t rex; /* bits W, R, X, B from bit 3 down, also of VEX and EVEX */
	uint8_t modrm, sib;
	bool has_rex; /* byte registers 4 to 7 are spl to dil */
	bool has_modrm;
	bool vex;    /* VEX or EVEX */
	bool wide;   /* REX.W: operands of 8 bytes */
	bool half;   /* prefix 66: of 2 bytes */
	uint8_t rep; /* prefix f2 or f3, or 0 */
	uint8_t vvvv;
	int32_t disp;
	int64_t imm; /* also of a relative branch; of two, the last */
};

/* Decodes the instruction at p, of which sz bytes can be read. False if there is no valid one. */
bool insn_decode(const uint8_t *p, size_t sz, struct insn *ret);

/*
 * The general registers that it writes as operands, a bit each. What push, pop, call, ret and the
 * like do to rsp, and others to rax, rdx and so on, is not counted. Errs on the side of more.
 */
uint32_t insn__written(const struct insn *in);

static inline bool insn__writes(const struct insn *in, unsigned int reg)
{
	return insn__written(in) >> reg & 1;
}

static inline unsigned int insn__mod(const struct insn *in)
{
	return in->modrm >> 6;
}

/* The opcode's extension, of those that have one. */
static inline unsigned int insn__ext(const struct insn *in)
{
	return in->modrm >> 3 & 7;
}

/* The register operand. */
static inline unsigned int insn__reg(const struct insn *in)
{
	return (in->modrm >> 3 & 7) | (in->rex & 4) << 1;
}

/* The other one, where it is a register (mod 3). */
static inline unsigned int insn__rm(const struct insn *in)
{
	return (in->modrm & 7) | (in->rex & 1) << 3;
}

/* The register that the last three bits of the opcode name. */
static inline unsigned int insn__opreg(const struct insn *in)
{
	return (in->op & 7) | (in->rex & 1) << 3;
}

/* Is its operand disp(%rip)? */
static inline bool insn__rip_relative(const struct insn *in)
{
	return in->has_modrm && (in->modrm & 0xc7) == 5;
}

/* Puts it a constant of 32 bits or more somewhere: mov, push? */
static inline bool insn__puts_constant(const struct insn *in)
{
	return in->map == INSN_ONE &&
	       ((in->op >= 0xb8 && in->op <= 0xbf) || in->op == 0xc7 || in->op == 0x68);
}

/* The base register of its memory operand if that is disp(base), else INSN_NO_REG. */
unsigned int insn__base(const struct insn *in);

#endif
