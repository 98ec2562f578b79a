/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/gorows.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/elf_file.h"
#include "target/gopclntab.h"
#include "target/gostack.h"
#include "target/insn.h"
#include "target/unwind_table.h"

#define WINDOW (256U << 10)  /* bytes of code read at a time */
#define PROLOGUE 24	     /* bytes looked at to find out where rbp is saved */
#define REG_R12 12	     /* DWARF number */
#define MAX_FRAME (1U << 30) /* bytes; reflect calls with as much (runtime.call1073741824) */

/* What is special about a function. */
enum special {
	ORDINARY,
	OUTERMOST, /* nothing is above it, or what is belongs to somebody else by now */
	SYSTEMSTACK,
	MORESTACK,
	ASMCGOCALL,
	SIGRETURN,   /* what a signal handler returns to */
	INTERRUPTED, /* called by nobody: put above the interrupted function */
	EXECUTE,
};

static const struct {
	const char *name;
	enum special special;
} specials[] = {
	/* Behind mcall the goroutine may already run on another thread. gogo has left for another
	 * stack. */
	{ "runtime.mcall", OUTERMOST },
	{ "runtime.gogo", OUTERMOST },
	{ "gogo", OUTERMOST },
	{ "runtime.goexit", OUTERMOST },
	{ "runtime.mstart", OUTERMOST },
	{ "runtime.rt0_go", OUTERMOST },
	{ "_rt0_amd64", OUTERMOST },
	{ "_rt0_amd64_linux", OUTERMOST },
	{ "runtime.systemstack", SYSTEMSTACK },
	{ "runtime.morestack", MORESTACK },
	{ "runtime.asmcgocall", ASMCGOCALL },
	{ "runtime.sigreturn", SIGRETURN },
	{ "runtime.sigreturn__sigaction", SIGRETURN },
	{ "runtime.sigpanic", INTERRUPTED },
	{ "runtime.asyncPreempt", INTERRUPTED },
	{ "runtime.debugCallV1", INTERRUPTED },
	{ "runtime.debugCallV2", INTERRUPTED },
	{ "runtime.execute", EXECUTE },
};

struct function {
	uint64_t start;
	uint32_t size, index;
	uint8_t special; /* enum special */
};

struct gorows {
	const struct elf_file *elf;
	struct gopclntab *table;
	struct function *functions;
	size_t cnt, cap;
	bool has_stacks, has_asmcgocall, has_r12;
	struct gostack stacks;
	int16_t cgo_g, cgo_depth;
	uint64_t window_vaddr; /* code read last */
	size_t window_sz;
	uint8_t *window;
};

/* Where a function keeps the caller's rbp. */
struct prologue {
	uint64_t saved; /* from this address on at the CFA - 16; UINT64_MAX: never */
	uint64_t set;	/* from this one on rbp points to it */
	int32_t frame;	/* bytes below the return address at that time */
};

/* ---- functions ---- */

/* Go names the form of its assembly that others call by ABI0 so. */
static size_t base_length(const char *name)
{
	size_t len = strlen(name);

	return len > 5 && !strcmp(name + len - 5, ".abi0") ? len - 5 : len;
}

/* A wrapper of assembly has its name, but is none: an ordinary function. */
static enum special special_of(const struct gorows *g, const struct gopclntab_func *f)
{
	bool is_asm = f->flags & GOPCLNTAB_ASM || gopclntab__layout(g->table) == 16;
	size_t len = base_length(f->name);

	for (size_t i = 0; i < ARRAY_SIZE(specials); i++) {
		if (strlen(specials[i].name) != len || memcmp(specials[i].name, f->name, len))
			continue;
		if (is_asm || specials[i].special == INTERRUPTED || specials[i].special == EXECUTE)
			return specials[i].special;
	}
	/* sigtramp is called by the kernel: the frame of the signal is above it */
	return f->flags & GOPCLNTAB_TOPFRAME && strncmp(f->name, "runtime.sigtramp", 16) ?
		       OUTERMOST :
		       ORDINARY;
}

/* Where its code ends and padding begins. */
static uint64_t end_of(const struct gorows *g, const struct gopclntab_func *f)
{
	uint64_t start, end = f->start;
	struct gopclntab_values v;
	int32_t val;

	gopclntab_values__init(&v, g->table, f, f->pcsp);
	while (gopclntab_values__next(&v, &start, &end, &val))
		;
	return end;
}

static int add_function(struct gorows *g, size_t index, const struct gopclntab_func *f)
{
	enum special special = special_of(g, f);
	uint64_t end = special == ORDINARY ? f->end : end_of(g, f);
	struct function fn = {
		.start = f->start,
		.size = (uint32_t)MIN(end - f->start, (uint64_t)UINT32_MAX),
		.index = (uint32_t)index,
		.special = special,
	};
	int err;

	if (!fn.size)
		return 0;
	/* it is returned to, but never called: what is looked up is the byte in front of it, which
	 * is padding, or the end of a function that cannot be called from there */
	if (fn.special == SIGRETURN) {
		fn.start--;
		fn.size++;
	}
	if (g->cnt && fn.start <= g->functions[g->cnt - 1].start)
		return 0;
	err = util_reserve(&g->functions, &g->cap, g->cnt + 1, sizeof(fn));
	if (!err)
		g->functions[g->cnt++] = fn;
	return err;
}

/* ---- code ---- */

/* sz bytes of code, or NULL; good until the next call. */
static const uint8_t *code_at(struct gorows *g, uint64_t vaddr, size_t sz)
{
	const struct elf_segment *s;
	size_t cnt;

	if (g->window_sz >= sz && vaddr >= g->window_vaddr &&
	    vaddr - g->window_vaddr <= g->window_sz - sz)
		return g->window + (vaddr - g->window_vaddr);
	g->window_sz = 0;
	for (s = elf_file__segments(g->elf, &cnt); cnt; s++, cnt--) {
		uint64_t left;

		if (!s->exec || vaddr < s->vaddr || vaddr - s->vaddr >= s->filesz)
			continue;
		left = MIN(s->filesz - (vaddr - s->vaddr), (uint64_t)WINDOW);
		if (left < sz || elf_file__read_vaddr(g->elf, vaddr, g->window, left))
			return NULL;
		g->window_vaddr = vaddr;
		g->window_sz = left;
		return g->window;
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
static struct prologue read_prologue(struct gorows *g, const struct gopclntab_func *f)
{
	struct prologue ret = { .saved = UINT64_MAX, .set = UINT64_MAX };
	uint64_t start, end;
	struct gopclntab_values v;
	const uint8_t *p;
	int32_t first, val;
	size_t n;

	gopclntab_values__init(&v, g->table, f, f->pcsp);
	if (!gopclntab_values__next(&v, &start, &end, &first) || first ||
	    !gopclntab_values__next(&v, &start, &end, &val) || val < 8)
		return ret;
	p = code_at(g, start - 1, PROLOGUE);
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

static bool copy_code(struct gorows *g, const struct function *fn, struct gostack_code *ret)
{
	const uint8_t *p;

	*ret = (struct gostack_code){ .vaddr = fn->start,
				      .sz = MIN(fn->size, (uint32_t)GOSTACK_MAX_CODE) };
	p = code_at(g, fn->start, ret->sz);
	if (p)
		memcpy(ret->bytes, p, ret->sz);
	return p;
}

/* The function that is special so; NULL if there is none. */
static const struct function *find_special(const struct gorows *g, enum special special)
{
	for (size_t i = 0; i < g->cnt; i++)
		if (g->functions[i].special == special)
			return &g->functions[i];
	return NULL;
}

static int read_stacks(struct gorows *g)
{
	const struct function *more = find_special(g, MORESTACK);
	const struct function *system = find_special(g, SYSTEMSTACK);
	const struct function *cgo = find_special(g, ASMCGOCALL);
	struct gostack_code a, b;
	int err = -ENOTSUP;

	if (more && system && copy_code(g, more, &a) && copy_code(g, system, &b))
		err = gostack_read(&a, &b, &g->stacks);
	g->has_stacks = !err;
	if (!err && cgo && copy_code(g, cgo, &a))
		g->has_asmcgocall = !gostack_read_asmcgocall(&a, &g->cgo_g, &g->cgo_depth);
	return err == -ENOTSUP ? 0 : err;
}

/* ---- rules ---- */

static const struct bpfprof_rule none, unsupported = { .cfa = BPFPROF_CFA_UNSUPPORTED };

/* Go's functions save no register but rbp. */
static struct bpfprof_rule plain(uint8_t cfa, int32_t cfa_off, bool saved)
{
	return (struct bpfprof_rule){ .cfa = cfa,
				      .cfa_off = cfa_off,
				      .fp = saved ? BPFPROF_FP_CFA : BPFPROF_FP_SAME,
				      .fp_off = saved ? -16 : 0,
				      .bx_off = BPFPROF_BX_UNKNOWN };
}

/* Of a function that switches stacks without a frame pointer. */
static struct bpfprof_rule switches(const struct gorows *g, enum special special)
{
	struct bpfprof_rule r = {
		.cfa = special == SYSTEMSTACK ? BPFPROF_CFA_GO_SYSTEMSTACK :
		       special == MORESTACK   ? BPFPROF_CFA_GO_MORESTACK :
						BPFPROF_CFA_GO_ASMCGOCALL,
		.reg = g->stacks.via_got,
		.cfa_off = g->stacks.g,
		.fp_off = BPFPROF_GO_OFFSETS(g->stacks.g_m, g->stacks.m_curg),
		.aux = (int16_t)g->stacks.sched_sp,
		.bx_off = (int16_t)g->stacks.sched_bp,
	};

	if (!g->has_stacks || (special == ASMCGOCALL && !g->has_asmcgocall))
		return unsupported;
	if (special == ASMCGOCALL) {
		r.aux = g->cgo_depth;
		r.bx_off = g->cgo_g;
	}
	return r;
}

static uint8_t caller_of(const struct function *fn)
{
	return fn->special == INTERRUPTED ? BPFPROF_RA_INTERRUPTED :
	       fn->special == EXECUTE	  ? BPFPROF_RA_GO_EXECUTE :
					    BPFPROF_RA_CFA;
}

static struct bpfprof_rule rule_at(const struct gopclntab_func *f, const struct function *fn,
				   const struct prologue *p, uint64_t addr, int32_t val)
{
	struct bpfprof_rule r;

	/* pcsp is void where rsp is set */
	if (val < 0 || (uint32_t)val > MAX_FRAME ||
	    (f->flags & GOPCLNTAB_SPWRITE && p->set == UINT64_MAX))
		return unsupported;
	r = plain(BPFPROF_CFA_SP, val + 8, val && addr >= p->saved);
	r.ra = caller_of(fn);
	return r;
}

/* Rows from [start, end), where val holds. */
static void value_rows(const struct gopclntab_func *f, const struct function *fn,
		       const struct prologue *p, uint64_t start, uint64_t end, int32_t val,
		       struct unwind_packer *out)
{
	uint64_t next;

	for (; start < end; start = next) {
		next = end;
		if (start < p->saved)
			next = MIN(next, p->saved);
		unwind_packer__row(out, start, rule_at(f, fn, p, start, val));
	}
}

static void rows_by_pcsp(struct gorows *g, const struct gopclntab_func *f,
			 const struct function *fn, const struct prologue *p, uint64_t end,
			 struct unwind_packer *out)
{
	struct gopclntab_values v;
	uint64_t from, to, last = fn->start;
	int32_t val;

	gopclntab_values__init(&v, g->table, f, f->pcsp);
	while (gopclntab_values__next(&v, &from, &to, &val) && from < end) {
		value_rows(f, fn, p, from, MIN(to, end), val, out);
		last = to;
	}
	if (last < end)
		unwind_packer__row(out, last, none);
}

static bool decode(struct gorows *g, uint64_t vaddr, uint64_t end, struct insn *ret)
{
	size_t sz = MIN(end - vaddr, (uint64_t)INSN_MAX);
	const uint8_t *p = vaddr < end ? code_at(g, vaddr, sz) : NULL;

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

/*
 * Rows of a function that sets rsp, from where it has set rbp: the frame pointer leads from any stack
 * to the goroutine's. Only where rbp is restored already, which Go's assembler does last, rsp counts:
 * it is right again, while pcsp is not.
 */
static void rows_by_rbp(struct gorows *g, const struct function *fn, const struct prologue *p,
			uint64_t end, struct unwind_packer *out)
{
	enum {
		SET,
		LOADED,
		DROPPED
	} rbp = SET;
	struct bpfprof_rule rules[] = {
		[SET] = plain(BPFPROF_CFA_FP, 16, true),
		[LOADED] = plain(BPFPROF_CFA_SP, p->frame + 8, false),
		[DROPPED] = plain(BPFPROF_CFA_SP, 8, false),
	};
	struct insn in;
	uint64_t at;

	for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
		rules[i].ra = caller_of(fn);
	for (at = p->set; at < end; at += in.len) {
		unwind_packer__row(out, at, rules[rbp]);
		if (!decode(g, at, end, &in))
			break;
		if (rbp == SET && loads_rbp(&in, p->frame))
			rbp = LOADED;
		else if (pops_rbp(&in) || (rbp == LOADED && drops(&in, p->frame)))
			rbp = DROPPED;
		else if (leaves(&in))
			rbp = SET;
	}
	if (at < end)
		unwind_packer__row(out, at, unsupported);
}

/* Where a function without a frame has left rsp in r12, and from where on rsp is that again. */
struct left_in_r12 {
	uint64_t from, to;
};

static bool has_no_frame(const struct gorows *g, const struct gopclntab_func *f)
{
	struct gopclntab_values v;
	uint64_t from, to;
	int32_t val;

	gopclntab_values__init(&v, g->table, f, f->pcsp);
	while (gopclntab_values__next(&v, &from, &to, &val))
		if (val)
			return false;
	return true;
}

static bool find_left_in_r12(struct gorows *g, const struct gopclntab_func *f,
			     struct left_in_r12 *ret)
{
	uint64_t end = end_of(g, f);
	struct insn in;

	*ret = (struct left_in_r12){};
	if (!(f->flags & GOPCLNTAB_SPWRITE) || !has_no_frame(g, f))
		return false;
	for (uint64_t at = f->start; decode(g, at, end, &in); at += in.len) {
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

/*
 * racecall, which calls the race detector, and its like for other sanitizers. C preserves r12, and
 * what that leads to follows a call.
 */
static void rows_by_r12(const struct function *fn, const struct left_in_r12 *left,
			uint64_t code_end, uint64_t end, struct unwind_packer *out)
{
	struct bpfprof_rule in_r12 = plain(BPFPROF_CFA_REG, 8, false);

	in_r12.reg = REG_R12;
	in_r12.ra = BPFPROF_RA_CALL;
	unwind_packer__row(out, fn->start, plain(BPFPROF_CFA_SP, 8, false));
	unwind_packer__row(out, left->from, in_r12);
	unwind_packer__row(out, left->to, plain(BPFPROF_CFA_SP, 8, false));
	if (code_end < end)
		unwind_packer__row(out, code_end, none);
}

static void rows(void *ctx, size_t i, uint64_t end, struct unwind_packer *out)
{
	static const struct bpfprof_rule outermost = { .cfa = BPFPROF_CFA_SP,
						       .ra = BPFPROF_RA_END };
	static const struct bpfprof_rule signal = { .cfa = BPFPROF_CFA_SIGNAL };
	struct gorows *g = ctx;
	const struct function *fn = &g->functions[i];
	struct gopclntab_func f;
	struct left_in_r12 left;
	struct prologue p;
	uint64_t code_end;

	if (!gopclntab__func(g->table, fn->index, &f))
		return;
	p = read_prologue(g, &f);
	switch (fn->special) {
	case OUTERMOST:
		unwind_packer__row(out, fn->start, outermost);
		return;
	case SIGRETURN:
		unwind_packer__row(out, fn->start, signal);
		return;
	case MORESTACK:
		unwind_packer__row(out, fn->start, switches(g, MORESTACK));
		return;
	case SYSTEMSTACK:
	case ASMCGOCALL:
		if (p.set == UINT64_MAX) {
			unwind_packer__row(out, fn->start, switches(g, fn->special));
			return;
		}
		break;
	default:
		break;
	}
	if (f.flags & GOPCLNTAB_SPWRITE && p.set < end) {
		rows_by_pcsp(g, &f, fn, &p, p.set, out);
		code_end = MIN(end, end_of(g, &f));
		rows_by_rbp(g, fn, &p, code_end, out);
		if (code_end < end)
			unwind_packer__row(out, code_end, none);
	} else if (find_left_in_r12(g, &f, &left)) {
		rows_by_r12(fn, &left, MIN(end, end_of(g, &f)), end, out);
	} else {
		rows_by_pcsp(g, &f, fn, &p, end, out);
	}
}

static void range(const void *ctx, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct function *fn = &((const struct gorows *)ctx)->functions[i];

	*ret_start = fn->start;
	*ret_end = fn->start + fn->size;
}

bool gorows__leaves_sp_in_r12(const struct gorows *g)
{
	return g->has_r12;
}

/* ---- opening ---- */

static int open_rows(struct gorows *g)
{
	struct left_in_r12 left;
	struct gopclntab_func f;
	int err = 0;

	g->table = gopclntab__open(g->elf);
	if (!g->table)
		return -errno;
	/* up to 1.16 it is not said which functions set rsp: there pcsp would lead anywhere */
	if (gopclntab__layout(g->table) == 16 && gopclntab__minor(g->table) != 17)
		return -ENOENT;
	g->window = malloc(WINDOW);
	if (!g->window)
		return -ENOMEM;
	for (size_t i = 0; i < gopclntab__cnt(g->table) && !err; i++) {
		/* what has no pcsp is C, or assembly that nothing is known of */
		if (!gopclntab__func(g->table, i, &f) || f.end <= f.start || !f.pcsp)
			continue;
		err = add_function(g, i, &f);
		g->has_r12 |= find_left_in_r12(g, &f, &left);
	}
	return err ? err : read_stacks(g);
}

struct gorows *gorows__open(const struct elf_file *elf)
{
	struct gorows *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return NULL;
	g->elf = elf;
	err = open_rows(g);
	if (err) {
		gorows__free(g);
		errno = -err;
		return NULL;
	}
	return g;
}

void gorows__free(struct gorows *g)
{
	if (!g)
		return;
	gopclntab__free(g->table);
	free(g->functions);
	free(g->window);
	free(g);
}

struct unwind_source gorows__source(struct gorows *g)
{
	return (struct unwind_source){ .ctx = g, .cnt = g->cnt, .range = range, .rows = rows };
}
