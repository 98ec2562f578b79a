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
#include "target/gocode.h"
#include "target/gopclntab.h"
#include "target/gostack.h"
#include "target/unwind_table.h"

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
	struct gocode code;
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

static bool copy_code(struct gorows *g, const struct function *fn, struct gostack_code *ret)
{
	const uint8_t *p;

	*ret = (struct gostack_code){ .vaddr = fn->start,
				      .sz = MIN(fn->size, (uint32_t)GOSTACK_MAX_CODE) };
	p = gocode__at(&g->code, fn->start, ret->sz);
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
				   const struct gocode_prologue *p, uint64_t addr, int32_t val)
{
	struct bpfprof_rule r;

	/* pcsp is void where rsp is set */
	if (val < 0 || (uint32_t)val > MAX_FRAME ||
	    (f->flags & GOPCLNTAB_SPWRITE && p->set == UINT64_MAX))
		return unsupported;
	r = gocode_rule(BPFPROF_CFA_SP, val + 8, val && addr >= p->saved);
	r.ra = caller_of(fn);
	return r;
}

/* Rows from [start, end), where val holds. */
static void value_rows(const struct gopclntab_func *f, const struct function *fn,
		       const struct gocode_prologue *p, uint64_t start, uint64_t end, int32_t val,
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
			 const struct function *fn, const struct gocode_prologue *p, uint64_t end,
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

static bool leaves_sp_in_r12(struct gorows *g, const struct gopclntab_func *f,
			     struct gocode_r12 *ret)
{
	return f->flags & GOPCLNTAB_SPWRITE && has_no_frame(g, f) &&
	       gocode__find_r12(&g->code, f->start, end_of(g, f), ret);
}

static void rows(void *ctx, size_t i, uint64_t end, struct unwind_packer *out)
{
	static const struct bpfprof_rule outermost = { .cfa = BPFPROF_CFA_SP,
						       .ra = BPFPROF_RA_END };
	static const struct bpfprof_rule signal = { .cfa = BPFPROF_CFA_SIGNAL };
	struct gorows *g = ctx;
	const struct function *fn = &g->functions[i];
	struct gopclntab_func f;
	struct gocode_r12 left;
	struct gocode_prologue p;
	uint64_t code_end;

	if (!gopclntab__func(g->table, fn->index, &f))
		return;
	p = gocode__prologue(&g->code, g->table, &f);
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
		gocode__rows_by_rbp(&g->code, &p, code_end, caller_of(fn), out);
		if (code_end < end)
			unwind_packer__row(out, code_end, none);
	} else if (leaves_sp_in_r12(g, &f, &left) && left.to < end) {
		gocode_rows_by_r12(fn->start, &left, out);
		code_end = end_of(g, &f);
		if (code_end < end)
			unwind_packer__row(out, code_end, none);
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
	struct gocode_r12 left;
	struct gopclntab_func f;
	int err = 0;

	g->table = gopclntab__open(g->elf);
	if (!g->table)
		return -errno;
	/* up to 1.16 it is not said which functions set rsp: there pcsp would lead anywhere */
	if (gopclntab__layout(g->table) == 16 && gopclntab__minor(g->table) != 17)
		return -ENOENT;
	err = gocode__init(&g->code, g->elf);
	for (size_t i = 0; i < gopclntab__cnt(g->table) && !err; i++) {
		/* what has no pcsp is C, or assembly that nothing is known of */
		if (!gopclntab__func(g->table, i, &f) || f.end <= f.start || !f.pcsp)
			continue;
		err = add_function(g, i, &f);
		g->has_r12 |= leaves_sp_in_r12(g, &f, &left);
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
	gocode__done(&g->code);
	free(g);
}

struct unwind_source gorows__source(struct gorows *g)
{
	return (struct unwind_source){ .ctx = g, .cnt = g->cnt, .range = range, .rows = rows };
}
