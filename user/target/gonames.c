/* SPDX-License-Identifier: BSD-2-Clause */
/* Walks the tree of inlined calls from the innermost one at an address to the function itself. */
#include "target/gonames.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/strtab.h"
#include "base/util.h"
#include "target/elf_file.h"
#include "target/gopclntab.h"

/* A function at an address: called by the next one of those that it is inlined in. */
struct call {
	const char *name;
	uint64_t vaddr; /* where it is */
	int32_t start_line;
	uint8_t func_id;
};

struct go_namer {
	const struct elf_file *elf;
	struct gopclntab *table;
	int wrapper_id; /* FuncIDWrapper of this release; -1: unknown */
	struct strtab *strings;
	struct gonames_answers *ret;
};

/* ---- strings ---- */

/* The id of a foreign string: 0 without one, UINT32_MAX without memory. */
static uint32_t add_string(struct go_namer *n, const char *s)
{
	size_t len = s ? strnlen(s, GONAMES_MAX_NAME + 1) : 0;

	return !len || len > GONAMES_MAX_NAME ? 0 : strtab__add_n(n->strings, s, len);
}

/*
 * The id of a name as the runtime prints it: type arguments are three dots (runtime/traceback.go,
 * funcNameForPrint). Up to 1.20 the linker has written them so.
 */
static uint32_t add_printed(struct go_namer *n, uint32_t id)
{
	const char *name = strtab__get(n->strings, id), *open = strchr(name, '[');
	const char *close = open ? strrchr(open, ']') : NULL;
	uint32_t ret;
	char *printed;
	size_t head;

	if (!close || gopclntab__layout(n->table) < 18)
		return id;
	head = (size_t)(open - name);
	printed = malloc(head + strlen("[...]") + strlen(close + 1) + 1);
	if (!printed)
		return UINT32_MAX;
	memcpy(printed, name, head);
	strcpy(stpcpy(printed + head, "[...]"), close + 1);
	ret = strtab__add(n->strings, printed);
	free(printed);
	return ret;
}

/* ---- frames ---- */

/* A file of "?" is the runtime's word for none. */
static int set_line(struct go_namer *n, const struct gopclntab_func *f, uint64_t vaddr,
		    struct symbol_frame *frame)
{
	int32_t file = gopclntab__value(n->table, f, f->pcfile, vaddr);
	int32_t line = gopclntab__value(n->table, f, f->pcln, vaddr);

	if (file < 0 || line < 0)
		return 0;
	frame->file = add_string(n, gopclntab__file(n->table, f, file));
	frame->line = (uint32_t)line;
	return frame->file == UINT32_MAX ? -ENOMEM : 0;
}

static int add_frame(struct go_namer *n, const char *name, int32_t start_line,
		     struct symbol_frame frame)
{
	struct gonames_answers *ret = n->ret;

	frame.start_line = start_line > 0 ? (uint32_t)start_line : 0;
	frame.system_name = add_string(n, name);
	if (frame.system_name == UINT32_MAX)
		return -ENOMEM;
	if (!frame.system_name)
		return 0;
	frame.name = add_printed(n, frame.system_name);
	if (frame.name == UINT32_MAX || ret->frame_cnt >= UINT32_MAX ||
	    util_reserve(&ret->frames, &ret->frame_cap, ret->frame_cnt + 1, sizeof(frame)))
		return -ENOMEM;
	ret->frames[ret->frame_cnt++] = frame;
	return 0;
}

/* ---- inlined calls ---- */

/*
 * An entry of the tree (runtime/symtabinl.go, inlinedCall; up to 1.19 runtime/symtab.go), and where
 * in the function its caller is. False if there is none.
 */
static bool read_call(const struct go_namer *n, const struct gopclntab_func *f, int32_t index,
		      struct call *ret, uint64_t *ret_caller)
{
	uint64_t tree = gopclntab__funcdata(n->table, f, GOPCLNTAB_FUNCDATA_INLINE);
	bool starts = gopclntab__layout(n->table) >= 20;
	size_t sz = starts ? 16 : 20;
	uint32_t word[5], parent;

	if (!tree || elf_file__read_vaddr(n->elf, tree + (uint64_t)index * sz, word, sz))
		return false;
	parent = word[starts ? 2 : 4];
	ret->name = gopclntab__name(n->table, word[starts ? 1 : 3]);
	ret->start_line = starts ? (int32_t)word[3] : 0;
	ret->func_id = (uint8_t)(starts ? word[0] : word[0] >> 16);
	*ret_caller = f->start + parent;
	return ret->name && parent < f->end - f->start;
}

/* The calls at an address, innermost first; the last one is the function itself. 0 if the tree is
 * damaged. */
static size_t find_calls(const struct go_namer *n, const struct gopclntab_func *f, uint64_t vaddr,
			 struct call calls[GONAMES_MAX_INLINE])
{
	uint32_t inlined = gopclntab__pcdata(n->table, f, GOPCLNTAB_PCDATA_INLINE);
	size_t cnt;

	for (cnt = 0; cnt < GONAMES_MAX_INLINE; cnt++) {
		int32_t index = gopclntab__value(n->table, f, inlined, vaddr);

		calls[cnt] = (struct call){ .name = f->name,
					    .vaddr = vaddr,
					    .start_line = f->start_line,
					    .func_id = f->func_id };
		if (index < 0)
			return cnt + 1;
		if (!read_call(n, f, index, &calls[cnt], &vaddr))
			return 0;
	}
	return 0;
}

/* The runtime shows a wrapper that has called one of these, and not what it wraps. */
static bool is_panic(const char *name)
{
	return !strcmp(name, "runtime.gopanic") || !strcmp(name, "runtime.sigpanic") ||
	       !strcmp(name, "runtime.panicwrap");
}

static bool is_elided(const struct go_namer *n, const struct call *calls, size_t i)
{
	return calls[i].func_id == n->wrapper_id && (!i || !is_panic(calls[i - 1].name));
}

/* ---- addresses ---- */

static int name_function(struct go_namer *n, const struct gopclntab_func *f, uint64_t vaddr)
{
	struct call calls[GONAMES_MAX_INLINE];
	size_t cnt = find_calls(n, f, vaddr, calls), i, first = n->ret->frame_cnt;
	struct symbol_frame frame;
	int err = 0;

	/* the line would be that of a call which is not known */
	if (!cnt)
		return add_frame(
			n, f->name, f->start_line,
			(struct symbol_frame){ .from_entry = symbol_from_entry(vaddr, f->start) });
	for (i = 0; i < cnt && !err; i++) {
		/* one has to be left */
		bool last = i + 1 == cnt && n->ret->frame_cnt == first;

		if (is_elided(n, calls, i) && !last)
			continue;
		frame = (struct symbol_frame){ .wrapper = is_elided(n, calls, i),
					       .from_entry = symbol_from_entry(vaddr, f->start) };
		err = set_line(n, f, calls[i].vaddr, &frame);
		if (!err)
			err = add_frame(n, calls[i].name, calls[i].start_line, frame);
	}
	return err;
}

static int name_address(struct go_namer *n, uint64_t vaddr, struct gonames_answer *ret)
{
	struct gopclntab_func f;
	size_t function;
	int err = 0;

	ret->first = (uint32_t)n->ret->frame_cnt;
	ret->is_go = gopclntab__find(n->table, vaddr, &function);
	if (ret->is_go && gopclntab__func(n->table, function, &f))
		err = name_function(n, &f, vaddr);
	ret->cnt = (uint32_t)n->ret->frame_cnt - ret->first;
	return err;
}

/*
 * The number says nothing without the release, and releases number anew. runtime.deferreturn bears
 * it in all of them so as to be left out (cmd/internal/objabi/funcid.go), every program has it, and
 * the runtime's packages come early in the table.
 */
static int find_wrapper_id(const struct gopclntab *table)
{
	struct gopclntab_func f;
	size_t i;

	for (i = 0; i < gopclntab__cnt(table); i++) {
		if (gopclntab__func(table, i, &f) && !strcmp(f.name, "runtime.deferreturn"))
			return f.func_id;
	}
	return -1;
}

static int resolve(struct go_namer *n, const uint64_t *vaddrs, size_t cnt)
{
	size_t i;
	int err = 0;

	n->ret->answers = calloc(cnt + 1, sizeof(*n->ret->answers));
	if (!n->ret->answers)
		return -ENOMEM;
	n->wrapper_id = find_wrapper_id(n->table);
	for (i = 0; i < cnt && !err; i++)
		err = name_address(n, vaddrs[i], &n->ret->answers[i]);
	return err;
}

int gonames_resolve(const struct elf_file *elf, const uint64_t *vaddrs, size_t cnt,
		    struct strtab *strings, struct gonames_answers *ret)
{
	struct go_namer n = { .elf = elf, .strings = strings, .ret = ret };
	int err;

	*ret = (struct gonames_answers){};
	n.table = gopclntab__open(elf);
	if (!n.table)
		return -errno;
	err = resolve(&n, vaddrs, cnt);
	if (err)
		gonames_answers__done(ret);
	gopclntab__free(n.table);
	return err;
}

void gonames_answers__done(struct gonames_answers *a)
{
	free(a->answers);
	free(a->frames);
	*a = (struct gonames_answers){};
}
