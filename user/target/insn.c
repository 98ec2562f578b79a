/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of what follows an opcode, and of what it writes. */
#include "target/insn.h"

#include <string.h>

/*
 * What follows an opcode, by a letter:
 *   n nothing, b a byte, w two, z four (two with prefix 66), v eight with REX.W else as z,
 *   o an address of eight (four with prefix 67), e two and one, r and R a distance of one and four bytes;
 *   m a ModRM byte, M that and a byte, Z that and z; g and G a ModRM byte and b or z if its
 *   extension is 0 or 1; p it is a prefix, x leads to other encodings, - none.
 */
static const char one_byte[] =
	"mmmmbz--mmmmbz-x"
	"mmmmbz--mmmmbz--"
	"mmmmbzp-mmmmbzp-"
	"mmmmbzp-mmmmbzp-"
	"pppppppppppppppp"
	"nnnnnnnnnnnnnnnn"
	"--xmppppzZbMnnnn"
	"rrrrrrrrrrrrrrrr"
	"MZ-Mmmmmmmmmmmmm"
	"nnnnnnnnnn-nnnnn"
	"oooonnnnbznnnnnn"
	"bbbbbbbbvvvvvvvv"
	"MMwnxxMZenwnnb-n"
	"mmmm---nmmmmmmmm"
	"rrrrbbbbRR-rnnnn"
	"pnppnngGnnnnnnmm";
static const char two_bytes[] =
	"mmmm-nnnnn-n-mnM"
	"mmmmmmmmmmmmmmmm"
	"mmmm----mmmmmmmm"
	"nnnnnn-nx-x-----"
	"mmmmmmmmmmmmmmmm"
	"mmmmmmmmmmmmmmmm"
	"mmmmmmmmmmmmmmmm"
	"MMMMmmmnmm--mmmm"
	"RRRRRRRRRRRRRRRR"
	"mmmmmmmmmmmmmmmm"
	"nnnmMm--nnnmMmmm"
	"mmmmmmmmmmMmmmmm"
	"mmMmMMMmnnnnnnnn"
	"mmmmmmmmmmmmmmmm"
	"mmmmmmmmmmmmmmmm"
	"mmmmmmmmmmmmmmmm";

/*
 * What it writes of general registers, by a letter: m what ModRM names as register or memory,
 * r the register there, x both, o the one in the opcode, . none; by extension: 1 m but for 7
 * (cmp), 3 m for 2 and 3 (not, neg), 5 m for 0 and 1 (inc, dec), 8 m from 5 on; s r with prefix
 * f2 or f3, q m without f3, f m with it.
 */
static const char one_byte_writes[] =
	"mmrr....mmrr...."
	"mmrr....mmrr...."
	"mmrr....mmrr...."
	"mmrr............"
	"................"
	"........oooooooo"
	"...r.....r.r...."
	"................"
	"11.1..xxmmrrmr.m"
	"oooooooo........"
	"................"
	"oooooooooooooooo"
	"mm....mm........"
	"mmmm............"
	"................"
	"......33......55";
static const char two_bytes_writes[] =
	"m.rr............"
	"..............f."
	"mm..........ss.."
	"................"
	"rrrrrrrrrrrrrrrr"
	"r..............."
	"................"
	"........mr....q."
	"................"
	"mmmmmmmmmmmmmmmm"
	"....mm.....mmmfr"
	"mmrmrrrrr.8mrrrr"
	"xx...r.moooooooo"
	".......r........"
	"................"
	"................";
_Static_assert(sizeof(one_byte) == 257 && sizeof(two_bytes) == 257 &&
		       sizeof(one_byte_writes) == 257 && sizeof(two_bytes_writes) == 257,
	       "one letter for each opcode");

struct cursor {
	const uint8_t *p, *end;
	bool bad;
	bool addr32; /* prefix 67: addresses of 4 bytes */
};

static uint8_t next(struct cursor *c)
{
	if (c->p == c->end) {
		c->bad = true;
		return 0;
	}
	return *c->p++;
}

/* n bytes, little endian, with sign. */
static int64_t number(struct cursor *c, unsigned int n)
{
	uint64_t v = 0;

	if ((size_t)(c->end - c->p) < n) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->p, n);
	c->p += n;
	return n < 8 ? (int64_t)(v << (64 - 8 * n)) >> (64 - 8 * n) : (int64_t)v;
}

static void read_modrm(struct insn *in, struct cursor *c)
{
	unsigned int mod, rm;

	in->has_modrm = true;
	in->modrm = next(c);
	mod = in->modrm >> 6;
	rm = in->modrm & 7;
	if (mod == 3)
		return;
	if (rm == 4)
		in->sib = next(c);
	if (mod == 1)
		in->disp = (int32_t)number(c, 1);
	else if (mod == 2 || rm == 5 || (rm == 4 && (in->sib & 7) == 5))
		in->disp = (int32_t)number(c, 4);
}

/* What follows the opcode. */
static void read_operands(struct insn *in, struct cursor *c, char form)
{
	unsigned int z = in->half && !in->wide ? 2 : 4;

	switch (form) {
	case 'n':
		break;
	case 'm':
		read_modrm(in, c);
		break;
	case 'M':
		read_modrm(in, c);
		in->imm = number(c, 1);
		break;
	case 'Z':
		read_modrm(in, c);
		in->imm = number(c, z);
		break;
	case 'b':
	case 'r':
		in->imm = number(c, 1);
		break;
	case 'w':
		in->imm = number(c, 2);
		break;
	case 'z':
		in->imm = number(c, z);
		break;
	/* a prefix 66 does not make a branch's distance shorter: Intel's processors ignore it */
	case 'R':
		in->imm = number(c, 4);
		break;
	case 'v':
		in->imm = number(c, in->wide ? 8 : z);
		break;
	case 'o':
		in->imm = number(c, c->addr32 ? 4 : 8);
		break;
	case 'e':
		number(c, 2);
		in->imm = number(c, 1);
		break;
	case 'g':
	case 'G':
		read_modrm(in, c);
		if (insn__ext(in) < 2)
			in->imm = number(c, form == 'g' ? 1 : z);
		break;
	default:
		c->bad = true;
		break;
	}
}

/* Prefixes c5, c4, 62, and 8f where it is AMD's: R, X, B, vvvv are inverted there. */
static void read_vex(struct insn *in, struct cursor *c, uint8_t prefix)
{
	uint8_t a = next(c), b, map = 1;
	char form = 'm';

	in->vex = true;
	in->rex = (uint8_t)(~a >> 5 & 4);
	b = a;
	if (prefix != 0xc5) {
		b = next(c);
		in->rex |= (uint8_t)((~a >> 5 & 2) | (~a >> 5 & 1) | (b >> 4 & 8));
		map = a & (prefix == 0x62 ? 7 : 31);
	}
	if (prefix == 0x62)
		next(c);
	in->wide = in->rex & 8;
	in->vvvv = (uint8_t)(~b >> 3 & 15);
	in->half = (b & 3) == 1;
	in->rep = (b & 3) == 2 ? 0xf3 : (b & 3) == 3 ? 0xf2 : 0;
	in->op = next(c);
	in->map = map <= INSN_0F3A ? map : INSN_OTHER;
	if (map == INSN_0F)
		form = two_bytes[in->op];
	else if (map == INSN_0F3A || map == 8)
		form = 'M';
	else if (map == 10)
		form = 'Z';
	if (!map || (form != 'm' && form != 'M' && form != 'Z' && in->op != 0x77))
		c->bad = true;
	in->half &= map != 10;
	read_operands(in, c, form);
}

static bool finish(struct insn *in, const struct cursor *c, const uint8_t *start)
{
	in->len = (uint8_t)(c->p - start);
	return !c->bad;
}

bool insn_decode(const uint8_t *p, size_t sz, struct insn *ret)
{
	struct cursor c = { p, p + (sz < INSN_MAX ? sz : INSN_MAX), false, false };
	uint8_t b;

	*ret = (struct insn){ 0 };
	for (b = next(&c); one_byte[b] == 'p'; b = next(&c)) {
		/* REX counts only right before the opcode */
		ret->has_rex = b >> 4 == 4;
		ret->rex = ret->has_rex ? b & 15 : 0;
		ret->half |= b == 0x66;
		c.addr32 |= b == 0x67;
		if (b == 0xf2 || b == 0xf3)
			ret->rep = b;
	}
	ret->wide = ret->rex & 8;
	if (b == 0xc4 || b == 0xc5 || b == 0x62 || (b == 0x8f && c.p < c.end && *c.p & 0x18)) {
		read_vex(ret, &c, b);
		return finish(ret, &c, p);
	}
	ret->op = b;
	if (b != 0x0f) {
		read_operands(ret, &c, one_byte[b]);
		return finish(ret, &c, p);
	}
	ret->op = next(&c);
	ret->map = INSN_0F;
	if (ret->op == 0x38 || ret->op == 0x3a) {
		ret->map = ret->op == 0x38 ? INSN_0F38 : INSN_0F3A;
		ret->op = next(&c);
		read_operands(ret, &c, ret->map == INSN_0F38 ? 'm' : 'M');
	} else {
		read_operands(ret, &c, two_bytes[ret->op]);
	}
	return finish(ret, &c, p);
}

/* Of the maps 0f38 and 0f3a, and of VEX. */
static char writes_of(const struct insn *in)
{
	uint8_t op = in->op;

	switch (in->map) {
	case INSN_ONE:
		return one_byte_writes[op];
	case INSN_0F:
		/* of masks, kmov to a register is all that matters */
		if (in->vex && op >= 0x40 && op < 0x50)
			return '.';
		if (in->vex && op >= 0x90 && op < 0xa0)
			return op == 0x93 ? 'r' : '.';
		return two_bytes_writes[op];
	case INSN_0F38:
		/* blsr, blsmsk, blsi write what vvvv names, mulx as well */
		if (in->vex && op == 0xf3)
			return 'v';
		return op >= 0xf0 && op <= 0xf7 ? 'r' : '.';
	case INSN_0F3A:
		return op >= 0x14 && op <= 0x17 ? 'm' : op == 0xf0 ? 'r' : '.';
	default:
		return '.';
	}
}

/* Of instructions on bytes, registers 4 to 7 are ah to bh without REX. */
static bool is_high_byte(const struct insn *in)
{
	bool bytes = (in->map == INSN_ONE && in->op < 0xb0 && !(in->op & 1) && in->op != 0x8c &&
		      (in->op < 0x50 || in->op > 0x6f) && (in->op & 0xf8) != 0x90) ||
		     (in->map == INSN_ONE && in->op >= 0xb0 && in->op < 0xb8) ||
		     (in->map == INSN_ONE && in->op >= 0xc0 && !(in->op & 1)) ||
		     (in->map == INSN_0F && (in->op >> 4 == 9 || in->op == 0xb0 || in->op == 0xc0));

	return bytes && !in->has_rex && !in->vex;
}

uint32_t insn__written(const struct insn *in)
{
	char what = writes_of(in);
	uint32_t rm = in->has_modrm && in->modrm >= 0xc0 ? 1U << insn__rm(in) : 0;
	unsigned int ext = insn__ext(in);

	if (what == '.' || is_high_byte(in))
		return 0;
	switch (what) {
	case 'm':
		return rm;
	case 'r':
		/* mulx has two */
		return 1U << insn__reg(in) | (in->vex && in->op == 0xf6 ? 1U << in->vvvv : 0);
	case 'x':
		return rm | 1U << insn__reg(in);
	case 'o':
		return 1U << insn__opreg(in);
	case 'v':
		return 1U << in->vvvv;
	case '1':
		return ext != 7 ? rm : 0;
	case '3':
		return ext == 2 || ext == 3 ? rm : 0;
	case '5':
		return ext < 2 ? rm : 0;
	case '8':
		return ext > 4 ? rm : 0;
	case 's':
		return in->rep ? 1U << insn__reg(in) : 0;
	case 'q':
		return in->rep != 0xf3 ? rm : 0;
	default: /* f, of 0f 1e rdssp (ext 1) alone */
		return in->rep == 0xf3 && (in->op != 0x1e || ext == 1) ? rm : 0;
	}
}

unsigned int insn__base(const struct insn *in)
{
	if (!in->has_modrm || insn__mod(in) == 3 || (in->modrm & 0xc7) == 5)
		return INSN_NO_REG;
	if ((in->modrm & 7) != 4)
		return insn__rm(in);
	/* index 4 is none, X extends it; base 5 without mod is none */
	if ((in->sib & 0x38) != 0x20 || in->rex & 2 || (!insn__mod(in) && (in->sib & 7) == 5))
		return INSN_NO_REG;
	return (in->sib & 7) | (in->rex & 1) << 3;
}
