/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads /proc/kallsyms, keeps its text symbols sorted and finds the one around an address. */
#include "target/kallsyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sorted.h"
#include "base/util.h"
#include "target/symtab.h"

#define MAX_TEXT (256U << 20)
#define PAGE 4096ULL

struct symbol {
	uint64_t addr;
	const char *name;
	const char *module; /* points into the text; equal modules at different places of it */
	char type;
};

struct kallsyms {
	char *text;
	struct symbol *symbols; /* ascending, one for each address */
	size_t cnt, cap;
};

/* "address type name[\tmodule]" between p and its newline, which became a NUL. False if it is no
 * symbol of code. */
static bool parse_line(char *p, struct symbol *ret)
{
	char *tab;
	int digit;

	ret->addr = 0;
	while ((digit = util_hex_digit(*p)) >= 0) {
		ret->addr = ret->addr << 4 | (uint64_t)digit;
		p++;
	}
	if (p[0] != ' ' || !p[1] || p[2] != ' ' || !p[3] || p[3] == '\t')
		return false;
	ret->type = p[1];
	if (ret->type != 't' && ret->type != 'T' && ret->type != 'w' && ret->type != 'W')
		return false;
	ret->name = p + 3;
	ret->module = NULL;
	tab = strchr(p + 3, '\t');
	if (tab) {
		size_t len = strlen(tab);

		*tab = '\0';
		if (len >= 4 && tab[1] == '[' && tab[len - 1] == ']') {
			tab[len - 1] = '\0';
			ret->module = tab + 2;
		}
	}
	return true;
}

static int rank(const struct symbol *s)
{
	return s->type == 'T' ? 2 : s->type == 'W' || s->type == 'w' ? 1 : 0;
}

static int compare(const void *pa, const void *pb)
{
	const struct symbol *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return symtab_prefer(a->name, rank(a), b->name, rank(b));
}

static bool is_sorted(const struct kallsyms *k)
{
	size_t i;

	for (i = 1; i < k->cnt; i++) {
		if (k->symbols[i - 1].addr > k->symbols[i].addr)
			return false;
	}
	return true;
}

/* Leaves one symbol for each address: the one to show. */
static void drop_aliases(struct kallsyms *k)
{
	size_t i, n = 0;

	for (i = 0; i < k->cnt; i++) {
		if (n && k->symbols[n - 1].addr == k->symbols[i].addr) {
			if (compare(&k->symbols[i], &k->symbols[n - 1]) < 0)
				k->symbols[n - 1] = k->symbols[i];
		} else {
			k->symbols[n++] = k->symbols[i];
		}
	}
	k->cnt = n;
}

static int parse(struct kallsyms *k, size_t sz)
{
	char *p = k->text, *end = p + sz, *nl;
	uint64_t any = 0;
	struct symbol s;

	for (; p < end; p = nl + 1) {
		nl = memchr(p, '\n', end - p);
		if (!nl)
			nl = end;
		*nl = '\0';
		if (!parse_line(p, &s))
			continue;
		any |= s.addr;
		/* of per-CPU data, on old kernels, and what is hidden */
		if (!s.addr)
			continue;
		if (util_reserve(&k->symbols, &k->cap, k->cnt + 1, sizeof(s)))
			return -ENOMEM;
		k->symbols[k->cnt++] = s;
	}
	if (!any)
		return -EPERM;
	/* the kernel's own come sorted, those of modules and JIT code behind them do not */
	if (!is_sorted(k))
		qsort(k->symbols, k->cnt, sizeof(*k->symbols), compare);
	drop_aliases(k);
	return 0;
}

struct kallsyms *kallsyms__parse(char *text, size_t sz)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	int err;

	if (!k) {
		free(text);
		return NULL;
	}
	k->text = text;
	err = parse(k, sz);
	if (err) {
		kallsyms__free(k);
		errno = -err;
		return NULL;
	}
	return k;
}

struct kallsyms *kallsyms__load(void)
{
	size_t sz;
	char *text;
	int err = util_read_file("/proc/kallsyms", MAX_TEXT, &text, &sz);

	if (err) {
		errno = -err;
		return NULL;
	}
	return kallsyms__parse(text, sz);
}

void kallsyms__free(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->text);
	free(k->symbols);
	free(k);
}

static bool same_module(const struct symbol *a, const struct symbol *b)
{
	if (!a->module || !b->module)
		return a->module == b->module;
	return !strcmp(a->module, b->module);
}

/* Code that is made one piece at a time: between two of them may be anything, or nothing. */
static bool is_made(const struct symbol *s)
{
	static const char *const makers[] = { "bpf", "__builtin__ftrace", "__builtin__kprobes" };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(makers); i++) {
		if (s->module && !strcmp(s->module, makers[i]))
			return true;
	}
	return false;
}

/* Where symbol i ends: at the next one; the last one of a module, and what was made by itself, has
 * no known end and gets the rest of its page. */
static uint64_t symbol_end(const struct kallsyms *k, size_t i)
{
	const struct symbol *s = &k->symbols[i];
	uint64_t end =
		(s->addr | (PAGE - 1)) == UINT64_MAX ? UINT64_MAX : (s->addr | (PAGE - 1)) + 1;

	if (i + 1 == k->cnt)
		return end;
	return same_module(s, s + 1) && !is_made(s) ? s[1].addr : MIN(end, s[1].addr);
}

int kallsyms__find(const struct kallsyms *k, uint64_t addr, struct kallsyms_symbol *ret)
{
	size_t cnt = SORTED_UPPER_BOUND(k->symbols, k->cnt, addr, addr);
	const struct symbol *s;
	uint64_t end;

	if (!cnt)
		return -ENOENT;
	s = &k->symbols[cnt - 1];
	end = symbol_end(k, cnt - 1);
	if (addr >= end)
		return -ENOENT;
	*ret = (struct kallsyms_symbol){
		.name = s->name, .module = s->module, .start = s->addr, .end = end
	};
	return 0;
}
