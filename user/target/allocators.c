/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds an object's allocator functions by name, and for each the point to probe.
 *
 * An allocator's functions call each other and those of other objects, and every hit of a probe
 * costs. So each function's code is followed from its start: one that always hands on to another
 * that is probed (libstdc++'s operators, musl's free, glibc's reallocarray) needs no probe of its
 * own; one that may do so (musl's calloc, glibc's realloc) is marked, so that what happens within
 * it is not counted twice.
 */
#include "target/allocators.h"

#include <elf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/allocator_names.h"
#include "target/elf_file.h"
#include "target/elf_got.h"
#include "target/elf_symbols.h"
#include "target/probe_point.h"
#include "target/symtab.h"
#include "target/usdt.h"

#define MAX_SYMBOLS 4096      /* with a name that we know, of each sort */
#define MAX_INSNS (1U << 18)  /* read of one object */
#define MAX_CALLEE_INSNS 4096 /* read of the functions that one function calls */

struct function {
	uint64_t vaddr, size;
	struct allocator_name name;
	char text[ALLOCATOR_NAME_MAX + 1];
	bool usable; /* there is a point to probe */
	bool passes_on, may_enter;
	uint64_t entered; /* what it passes on to, if that is in this object */
	struct probe_point point;
};

struct external {     /* a symbol of .dynsym with a name that we know, or the GOT entry for it */
	uint64_t key; /* index, or virtual address */
	struct allocator_name name;
};

struct callee {
	uint64_t vaddr;
	bool enters;
};

struct finder {
	const struct elf_file *elf;
	struct function *functions; /* by address, once sorted */
	size_t function_cnt, function_cap;
	uint64_t *ends; /* functions that no way leads on from; ascending, once sorted */
	size_t end_cnt, end_cap;
	struct external *symbols, *gots; /* ascending */
	size_t symbol_cnt, symbol_cap, got_cnt, got_cap;
	struct callee *callees;
	size_t callee_cnt, callee_cap;
	struct probe_decoder *decoder;
	bool sanitizer; /* the object is the run-time of one, or has it */
	bool frees;	/* the function being followed frees memory */
	size_t left;	/* instructions */
};

static bool is_free(const struct allocator_name *name)
{
	return name->op == BPFPROF_ALLOC_FREE;
}

/* ---- symbols ---- */

static int add_external(struct external **v, size_t *cnt, size_t *cap, uint64_t key,
			const struct allocator_name *name)
{
	if (*cnt >= MAX_SYMBOLS)
		return 0;
	if (util_reserve(v, cap, *cnt + 1, sizeof(**v)))
		return -ENOMEM;
	(*v)[(*cnt)++] = (struct external){ key, *name };
	return 0;
}

static int add_function(struct finder *f, const Elf64_Sym *sym, const char *text,
			const struct allocator_name *name)
{
	struct function fn = { .vaddr = sym->st_value, .size = sym->st_size, .name = *name };
	uint64_t offset;

	if (sym->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(sym->st_info) != STT_FUNC ||
	    !elf_file__offset(f->elf, sym->st_value, true, &offset))
		return 0;
	if (name->role == ALLOCATOR_END) {
		if (f->end_cnt >= MAX_SYMBOLS)
			return 0;
		if (util_reserve(&f->ends, &f->end_cap, f->end_cnt + 1, sizeof(*f->ends)))
			return -ENOMEM;
		f->ends[f->end_cnt++] = sym->st_value;
		return 0;
	}
	if (f->function_cnt >= MAX_SYMBOLS)
		return 0;
	if (util_reserve(&f->functions, &f->function_cap, f->function_cnt + 1, sizeof(fn)))
		return -ENOMEM;
	snprintf(fn.text, sizeof(fn.text), "%.*s", (int)strcspn(text, "@"), text);
	f->functions[f->function_cnt++] = fn;
	return 0;
}

/* What instrumented code calls first (compiler-rt, lib/NAME/NAME_interface.h). */
static void look_for_sanitizer(struct finder *f, const Elf64_Sym *sym, const char *text)
{
	static const char *const inits[] = { "__asan_init", "__hwasan_init", "__lsan_init",
					     "__msan_init", "__tsan_init" };

	if (f->sanitizer || text[0] != '_' || sym->st_shndx == SHN_UNDEF ||
	    ELF64_ST_TYPE(sym->st_info) != STT_FUNC)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(inits); i++) {
		size_t len = strlen(inits[i]);

		f->sanitizer |= !strncmp(text, inits[i], len) && (!text[len] || text[len] == '@');
	}
}

static bool is_known(const Elf64_Sym *sym, const char *text, struct allocator_name *ret)
{
	/* other than functions, only what is undefined (its type may be unknown) */
	return (ELF64_ST_TYPE(sym->st_info) == STT_FUNC || sym->st_shndx == SHN_UNDEF) &&
	       allocator_name__find(text, ret);
}

static int read_symbol(void *ctx, const Elf64_Sym *sym, const char *text, size_t index)
{
	struct allocator_name name;

	(void)index;
	look_for_sanitizer(ctx, sym, text);
	return is_known(sym, text, &name) ? add_function(ctx, sym, text, &name) : 0;
}

static int read_dynamic_symbol(void *ctx, const Elf64_Sym *sym, const char *text, size_t index)
{
	struct allocator_name name;
	struct finder *f = ctx;
	int err;

	look_for_sanitizer(f, sym, text);
	if (!is_known(sym, text, &name))
		return 0;
	err = add_function(f, sym, text, &name);
	return err ?: add_external(&f->symbols, &f->symbol_cnt, &f->symbol_cap, index, &name);
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return symtab_prefer(x->text, x->name.rank, y->text, y->name.rank);
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Of several names of an address, as most tables have them, the plainest is left. */
static void sort_functions(struct finder *f)
{
	size_t i, n = 0;

	if (f->function_cnt)
		qsort(f->functions, f->function_cnt, sizeof(*f->functions), compare_functions);
	for (i = 0; i < f->function_cnt; i++) {
		if (!n || f->functions[n - 1].vaddr != f->functions[i].vaddr)
			f->functions[n++] = f->functions[i];
		/* what may leave by one name may leave by all */
		f->functions[n - 1].name.throws |= f->functions[i].name.throws;
	}
	f->function_cnt = MIN(n, ALLOCATORS_MAX_POINTS);
	if (f->end_cnt)
		qsort(f->ends, f->end_cnt, sizeof(*f->ends), compare_u64);
}

/* ---- the GOT ---- */

static struct external *find_external(struct external *v, size_t cnt, uint64_t key)
{
	return cnt ? bsearch(&key, v, cnt, sizeof(*v), compare_u64) : NULL;
}

static int add_got(void *ctx, uint64_t got, uint32_t symbol)
{
	struct finder *f = ctx;
	const struct external *known = find_external(f->symbols, f->symbol_cnt, symbol);

	return known ? add_external(&f->gots, &f->got_cnt, &f->got_cap, got, &known->name) : 0;
}

static int read_got(struct finder *f)
{
	int err = elf_got__visit(f->elf, add_got, f);

	if (f->got_cnt)
		qsort(f->gots, f->got_cnt, sizeof(*f->gots), compare_u64);
	return err;
}

/* ---- code ---- */

static enum probe_target target_kind(const struct finder *f, const struct allocator_name *name)
{
	if (name->role == ALLOCATOR_END)
		return PROBE_END;
	return is_free(name) == f->frees ? PROBE_ENTRY : PROBE_ELSEWHERE;
}

static enum probe_target classify(void *ctx, uint64_t addr, bool got)
{
	const struct external *external;
	const struct function *fn;
	struct finder *f = ctx;

	if (got) {
		external = find_external(f->gots, f->got_cnt, addr);
		return external ? target_kind(f, &external->name) : PROBE_ELSEWHERE;
	}
	if (f->end_cnt && bsearch(&addr, f->ends, f->end_cnt, sizeof(addr), compare_u64))
		return PROBE_END;
	/* both begin with the address */
	fn = bsearch(&addr, f->functions, f->function_cnt, sizeof(*fn), compare_u64);
	return fn ? target_kind(f, &fn->name) : PROBE_ELSEWHERE;
}

/* Does one of the functions that an allocating function calls enter another one? */
static int scan_callees(struct finder *f, const struct probe_body *body,
			const struct probe_targets *targets, bool *ret)
{
	size_t left = MIN(f->left, MAX_CALLEE_INSNS), most = left, i, k;
	struct probe_body callee;

	for (i = 0; i < body->callee_cnt && left && !*ret; i++) {
		for (k = 0; k < f->callee_cnt && f->callees[k].vaddr != body->callees[i]; k++)
			;
		if (k == f->callee_cnt) {
			if (util_reserve(&f->callees, &f->callee_cap, k + 1, sizeof(*f->callees)))
				return -ENOMEM;
			probe_decoder__scan(f->decoder, body->callees[i], 0, targets, &left,
					    &callee);
			f->callees[f->callee_cnt++] =
				(struct callee){ body->callees[i], callee.enters };
		}
		*ret = f->callees[k].enters;
	}
	f->left -= most - left;
	return 0;
}

/*
 * The registers that the probe reads (psABI, 3.2.3): where the size is, and the pointer if it is
 * one of the arguments. mimalloc's malloc puts the size where memalign has it before its first
 * branch.
 */
static unsigned int argument_registers(uint8_t op)
{
	switch (op) {
	case BPFPROF_ALLOC_MALLOC:
		return PROBE_RDI | PROBE_MAY_MOVE;
	case BPFPROF_ALLOC_FREE:
		return PROBE_RDI;
	case BPFPROF_ALLOC_ALIGNED:
		return PROBE_RSI;
	case BPFPROF_ALLOC_POSIX_MEMALIGN:
		return PROBE_RDI | PROBE_RDX;
	case BPFPROF_ALLOC_REALLOCARRAY:
		return PROBE_RDI | PROBE_RSI | PROBE_RDX;
	default:
		return PROBE_RDI | PROBE_RSI;
	}
}

static int scan_function(struct finder *f, struct function *fn)
{
	struct probe_targets targets = { classify, f, is_free(&fn->name) };
	unsigned int keep = argument_registers(fn->name.op);
	struct probe_body body;

	/* the return address is where rsp points to */
	if (!is_free(&fn->name))
		keep |= PROBE_RSP;
	f->frees = is_free(&fn->name);
	probe_decoder__scan(f->decoder, fn->vaddr, fn->size, &targets, &f->left, &body);
	fn->usable =
		!probe_decoder__choose(f->decoder, fn->vaddr, body.first_target, keep, &fn->point);
	/* if reallocarray calls realloc at all, then whenever the product does not overflow */
	fn->passes_on = body.enters && (!body.returns || fn->name.op == BPFPROF_ALLOC_REALLOCARRAY);
	fn->entered = body.entry;
	fn->may_enter = body.enters;
	/* what malloc calls may lead to error messages, which allocate; it is the innermost one */
	if (fn->may_enter || f->frees || !strcmp(fn->text, "malloc"))
		return 0;
	return scan_callees(f, &body, &targets, &fn->may_enter);
}

/* ---- points ---- */

static int add_point(struct allocator_points *p, size_t *cap, const struct allocator_point *point)
{
	if (p->cnt >= ALLOCATORS_MAX_POINTS)
		return 0;
	if (util_reserve(&p->points, cap, p->cnt + 1, sizeof(*point)))
		return -ENOMEM;
	p->points[p->cnt++] = *point;
	return 0;
}

static void set_insn(struct allocator_point *p, const struct probe_point *point)
{
	_Static_assert(sizeof(p->insn) == sizeof(point->insn), "insn");
	p->skew = point->skew;
	p->emulated = point->emulated;
	memcpy(p->insn, point->insn, sizeof(p->insn));
}

/* Does another probe see every call? If the one in this object can be made. */
static bool is_seen_elsewhere(const struct finder *f, const struct function *fn)
{
	const struct function *to = NULL;

	if (!fn->passes_on)
		return false;
	if (fn->entered)
		to = bsearch(&fn->entered, f->functions, f->function_cnt, sizeof(*to), compare_u64);
	return !to || (to != fn && to->usable);
}

/*
 * A sanitizer's allocator takes the stack of each call, and reports it: a return address that a
 * probe has replaced would end it. So calls are recorded at their entry, which does not tell their
 * address. What may call another one would count twice then, and frees are of no use.
 */
static bool spares_returns(const struct allocator_point *p)
{
	return p->group == ALLOCATOR_ALLOC && !(p->cookie & BPFPROF_COOKIE_WRAPPER) &&
	       BPFPROF_COOKIE_OP(p->cookie) != BPFPROF_ALLOC_XALLOCX;
}

static int add_functions(struct finder *f, struct allocator_points *ret, size_t *cap)
{
	size_t i;
	int err = 0;

	for (i = 0; i < f->function_cnt && !err; i++) {
		const struct function *fn = &f->functions[i];
		struct allocator_point p = {
			.group = is_free(&fn->name) ? ALLOCATOR_FREE : ALLOCATOR_ALLOC,
			.vaddr = fn->vaddr,
			.cookie = fn->point.moved ? BPFPROF_ALLOC_ALIGNED : fn->name.op
		};

		if (!fn->usable || is_seen_elsewhere(f, fn) ||
		    !elf_file__offset(f->elf, fn->vaddr + fn->point.skew, true, &p.offset))
			continue;
		if (fn->may_enter && !is_free(&fn->name))
			p.cookie |= BPFPROF_COOKIE_WRAPPER;
		if (fn->name.throws)
			p.cookie |= BPFPROF_COOKIE_THROWS;
		if (f->sanitizer && !spares_returns(&p))
			continue;
		if (f->sanitizer)
			p.cookie |= BPFPROF_COOKIE_BEGIN;
		set_insn(&p, &fn->point);
		snprintf(p.name, sizeof(p.name), "%s", fn->text);
		err = add_point(ret, cap, &p);
	}
	return err;
}

static int add_sites(struct finder *f, struct allocator_points *ret, size_t *cap)
{
	struct usdt_site *sites;
	struct probe_point insn;
	size_t cnt, i;
	int err = usdt_find(f->elf, &sites, &cnt);

	for (i = 0; i < cnt && !err; i++) {
		const struct usdt_site *s = &sites[i];
		struct allocator_point p = { .group = s->alloc ? ALLOCATOR_USDT_ALLOC :
								 ALLOCATOR_USDT_FREE,
					     .vaddr = s->vaddr,
					     .cookie = s->cookie };

		if (!elf_file__offset(f->elf, s->vaddr, true, &p.offset) ||
		    (s->semaphore && !elf_file__offset(f->elf, s->semaphore, false, &p.ref_ctr)) ||
		    probe_decoder__nop(f->decoder, s->vaddr, &insn))
			continue;
		set_insn(&p, &insn);
		snprintf(p.name, sizeof(p.name), "otel_memory:%s", s->alloc ? "alloc" : "free");
		err = add_point(ret, cap, &p);
	}
	free(sites);
	return err;
}

static int compare_points(const void *a, const void *b)
{
	const struct allocator_point *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static void sort_points(struct allocator_points *p)
{
	size_t i, n = 0;

	if (p->cnt)
		qsort(p->points, p->cnt, sizeof(*p->points), compare_points);
	for (i = 0; i < p->cnt; i++) {
		if (!n || p->points[n - 1].offset != p->points[i].offset)
			p->points[n++] = p->points[i];
	}
	p->cnt = n;
}

static int find(struct finder *f, struct allocator_points *ret)
{
	size_t cap = 0, i;
	int err;

	f->decoder = probe_decoder__new(f->elf);
	if (!f->decoder)
		return -ENOMEM;
	err = elf_symbols__visit(f->elf, ".symtab", read_symbol, f);
	if (!err)
		err = elf_symbols__visit(f->elf, ".dynsym", read_dynamic_symbol, f);
	sort_functions(f);
	if (!err && f->function_cnt)
		err = read_got(f);
	for (i = 0; i < f->function_cnt && !err; i++)
		err = scan_function(f, &f->functions[i]);
	if (!err)
		err = add_functions(f, ret, &cap);
	if (!err)
		err = add_sites(f, ret, &cap);
	if (!err)
		sort_points(ret);
	return err;
}

int allocators_find(const struct elf_file *elf, struct allocator_points *ret)
{
	struct finder f = { .elf = elf, .left = MAX_INSNS };
	int err;

	*ret = (struct allocator_points){};
	err = find(&f, ret);
	if (err)
		allocator_points__done(ret);
	probe_decoder__free(f.decoder);
	free(f.functions);
	free(f.ends);
	free(f.symbols);
	free(f.gots);
	free(f.callees);
	return err;
}

void allocator_points__done(struct allocator_points *p)
{
	free(p->points);
	*p = (struct allocator_points){};
}
