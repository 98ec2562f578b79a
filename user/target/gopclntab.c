/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps a copy of the table, with the addresses in it that relocations hold, and reads it in place. */
#include "target/gopclntab.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/elf_relative.h"
#include "target/gofile.h"

#define MAX_TABLES 16 /* of the bytes that look like one */
#define MAX_ALIGN 64  /* bytes between the records and go:func.* */

struct gopclntab {
	uint8_t *data; /* sz bytes from the pcHeader on, and a NUL */
	uint64_t sz;
	struct gofile_header header;
	uint64_t text;	   /* what the functab's addresses count from */
	uint64_t funcdata; /* what offsets of funcdata count from; 0: unknown */
	int minor;
};

static uint32_t u32(const struct gopclntab *g, uint64_t pos)
{
	uint32_t v;

	memcpy(&v, g->data + pos, sizeof(v));
	return v;
}

static uint64_t u64(const struct gopclntab *g, uint64_t pos)
{
	uint64_t v;

	memcpy(&v, g->data + pos, sizeof(v));
	return v;
}

/* ---- the functab ---- */

/* i: nfunc at most, which has the end of the last function. */
static uint64_t entry(const struct gopclntab *g, size_t i)
{
	return g->header.layout >= 18 ? g->text + u32(g, g->header.functab + i * 8) :
					u64(g, g->header.functab + i * 16);
}

/* The offset in data of function i's record. */
static uint64_t record(const struct gopclntab *g, size_t i)
{
	uint64_t off = g->header.layout >= 18 ? u32(g, g->header.functab + i * 8 + 4) :
						u64(g, g->header.functab + i * 16 + 8);

	return off <= g->sz - g->header.functab ? g->header.functab + off : g->sz;
}

static bool ascends(const struct gopclntab *g)
{
	uint64_t last = entry(g, 0), next;
	size_t i;

	for (i = 1; i <= g->header.nfunc; i++, last = next) {
		next = entry(g, i);
		if (next < last)
			return false;
	}
	return true;
}

/* Does the file have the code that the table speaks of? */
static bool is_code(const struct elf_file *elf, uint64_t start, uint64_t end)
{
	const struct elf_segment *s;
	size_t cnt;

	for (s = elf_file__segments(elf, &cnt); cnt; s++, cnt--) {
		if (s->exec && start >= s->vaddr && end >= start && end - s->vaddr <= s->filesz)
			return true;
	}
	return false;
}

/* ---- opening ---- */

static int read_data(struct gopclntab *g, const struct elf_file *elf, const struct gofile_table *t)
{
	int err;

	g->data = malloc(t->sz + 1);
	if (!g->data)
		return -ENOMEM;
	g->data[t->sz] = '\0';
	g->sz = t->sz;
	err = elf_file__read(elf, t->offset, g->data, t->sz);
	if (!err)
		err = elf_relative__apply(elf, t->vaddr, g->data, t->sz);
	if (!err && !gofile_header__parse(&g->header, g->data, t->sz))
		err = -EBADMSG;
	return err == -ENODATA ? -EBADMSG : err;
}

/*
 * What the addresses count from is in the header up to 1.25, and in the moduledata always. .text
 * would be wrong: C code may come first. words is NULL if there is no moduledata.
 */
static int settle_text(struct gopclntab *g, const struct elf_file *elf, const uint64_t *words)
{
	uint64_t start, end;

	g->text = words ? words[GOFILE_TEXT] : g->header.text;
	if (g->header.layout >= 18 && !g->text)
		return -EBADMSG;
	start = entry(g, 0);
	end = entry(g, g->header.nfunc);
	if (words && (words[GOFILE_MINPC] != start || words[GOFILE_MAXPC] != end))
		return -EBADMSG;
	return ascends(g) && is_code(elf, start, end) ? 0 : -EBADMSG;
}

/*
 * go:func.*, as words of the moduledata. From 1.26 on it stands behind the records, aligned as its
 * contents need; which of the words has it differs between releases whose layout is the same.
 */
static uint64_t find_funcdata(const struct gopclntab *g, const struct gofile_table *t,
			      const uint64_t *words)
{
	struct gopclntab_func last;
	uint64_t end;
	size_t i;

	if (g->header.layout < 18)
		return 0;
	if (g->header.text)
		return words[g->header.layout == 18 ? GOFILE_FUNCDATA_18 : GOFILE_FUNCDATA_20];
	if (!gopclntab__func(g, g->header.nfunc - 1, &last))
		return 0;
	end = t->vaddr + last.arrays + ((uint64_t)last.npcdata + last.nfuncdata) * 4;
	for (i = GOFILE_TEXT + 1; i < GOFILE_MODULEDATA_WORDS; i++) {
		if (words[i] >= end && words[i] - end <= MAX_ALIGN)
			return words[i];
	}
	return 0;
}

static int open_table(struct gopclntab *g, const struct elf_file *elf)
{
	uint64_t words[GOFILE_MODULEDATA_WORDS], from = 0;
	struct gofile_table table = {};
	unsigned int left = MAX_TABLES;
	bool has_words;
	int err;

	do {
		err = gofile__find_table(elf, from, &table);
		if (err)
			return err;
		err = gofile__read_moduledata(elf, &table, words);
		if (err && err != -ENOENT)
			return err;
		has_words = !err;
		from = table.offset + 8;
	} while (table.by_scan && !has_words && --left);
	if (!left)
		return -ENOENT;
	err = read_data(g, elf, &table);
	if (!err)
		err = settle_text(g, elf, has_words ? words : NULL);
	if (!err && has_words)
		g->funcdata = find_funcdata(g, &table, words);
	return err;
}

struct gopclntab *gopclntab__open(const struct elf_file *elf)
{
	struct gopclntab *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return NULL;
	err = open_table(g, elf);
	if (err) {
		gopclntab__free(g);
		errno = -err;
		return NULL;
	}
	g->minor = gofile__minor(elf);
	return g;
}

void gopclntab__free(struct gopclntab *g)
{
	if (!g)
		return;
	free(g->data);
	free(g);
}

int gopclntab__layout(const struct gopclntab *g)
{
	return g->header.layout;
}

int gopclntab__minor(const struct gopclntab *g)
{
	return g->minor;
}

/* ---- functions ---- */

const char *gopclntab__name(const struct gopclntab *g, uint32_t offset)
{
	if (offset >= g->header.cus - g->header.names)
		return NULL;
	return (const char *)g->data + g->header.names + offset;
}

size_t gopclntab__cnt(const struct gopclntab *g)
{
	return g->header.nfunc;
}

bool gopclntab__func(const struct gopclntab *g, size_t i, struct gopclntab_func *ret)
{
	/* the entry's size is the only thing that differs in front */
	uint64_t pos, entry_sz = g->header.layout >= 18 ? 4 : 8, sz;
	const char *name;

	if (i >= g->header.nfunc)
		return false;
	pos = record(g, i);
	sz = entry_sz + (g->header.layout >= 20 ? 40 : 36);
	if (g->sz - pos < sz)
		return false;
	name = gopclntab__name(g, u32(g, pos + entry_sz));
	if (!name)
		return false;
	*ret = (struct gopclntab_func){
		.start = entry(g, i),
		.end = entry(g, i + 1),
		.name = name,
		.pcsp = u32(g, pos + entry_sz + 12),
		.pcfile = u32(g, pos + entry_sz + 16),
		.pcln = u32(g, pos + entry_sz + 20),
		.npcdata = u32(g, pos + entry_sz + 24),
		.cu = u32(g, pos + entry_sz + 28),
		.start_line = g->header.layout >= 20 ? (int32_t)u32(g, pos + 36) : 0,
		.func_id = g->data[pos + sz - 4],
		.flags = g->data[pos + sz - 3],
		.nfuncdata = g->data[pos + sz - 1],
		.arrays = pos + sz,
	};
	return ret->npcdata <= (g->sz - ret->arrays) / 4;
}

bool gopclntab__find(const struct gopclntab *g, uint64_t vaddr, size_t *ret)
{
	size_t lo = 0, hi = g->header.nfunc;

	if (vaddr < entry(g, 0) || vaddr >= entry(g, hi))
		return false;
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;

		if (entry(g, mid) <= vaddr)
			lo = mid;
		else
			hi = mid;
	}
	*ret = lo;
	return true;
}

uint32_t gopclntab__pcdata(const struct gopclntab *g, const struct gopclntab_func *f, uint32_t n)
{
	return n < f->npcdata ? u32(g, f->arrays + (uint64_t)n * 4) : 0;
}

uint64_t gopclntab__funcdata(const struct gopclntab *g, const struct gopclntab_func *f, uint32_t n)
{
	uint64_t pos = f->arrays + (uint64_t)f->npcdata * 4;

	if (n >= f->nfuncdata)
		return 0;
	if (g->header.layout < 18) { /* pointers, aligned */
		pos = ((pos + 7) & ~UINT64_C(7)) + (uint64_t)n * 8;
		return pos <= g->sz && g->sz - pos >= 8 ? u64(g, pos) : 0;
	}
	pos += (uint64_t)n * 4;
	if (!g->funcdata || pos > g->sz || g->sz - pos < 4 || u32(g, pos) == UINT32_MAX)
		return 0;
	return g->funcdata + u32(g, pos);
}

const char *gopclntab__file(const struct gopclntab *g, const struct gopclntab_func *f,
			    int32_t number)
{
	uint64_t cnt = (g->header.files - g->header.cus) / 4, index;
	uint32_t offset;

	index = (uint64_t)f->cu + (uint32_t)number;
	if (f->cu == UINT32_MAX || number < 0 || index >= cnt)
		return NULL;
	offset = u32(g, g->header.cus + index * 4);
	if (offset >= g->header.pctab - g->header.files)
		return NULL;
	return (const char *)g->data + g->header.files + offset;
}

/* ---- values by address ---- */

void gopclntab_values__init(struct gopclntab_values *v, const struct gopclntab *g,
			    const struct gopclntab_func *f, uint32_t offset)
{
	*v = (struct gopclntab_values){
		.end = g->data + g->header.functab,
		.pc = f->start,
		.limit = f->end,
		.value = UINT32_MAX,
		.first = true,
	};
	if (offset && offset < g->header.functab - g->header.pctab)
		v->p = g->data + g->header.pctab + offset;
}

/* A number in groups of 7 bits, the lowest first; false if it has no end, or more than 32 bits. */
static bool take_number(struct gopclntab_values *v, uint32_t *ret)
{
	unsigned int shift;

	*ret = 0;
	for (shift = 0; shift < 35 && v->p < v->end; shift += 7) {
		*ret |= (uint32_t)(*v->p & 0x7f) << shift;
		if (!(*v->p++ & 0x80))
			return true;
	}
	return false;
}

bool gopclntab_values__next(struct gopclntab_values *v, uint64_t *ret_start, uint64_t *ret_end,
			    int32_t *ret_value)
{
	uint32_t change, step;

	if (!v->p || v->pc >= v->limit || !take_number(v, &change) || (!change && !v->first) ||
	    !take_number(v, &step) || !step) {
		v->p = NULL;
		return false;
	}
	v->first = false;
	/* the sign is the lowest bit */
	v->value += change & 1 ? ~(change >> 1) : change >> 1;
	*ret_start = v->pc;
	*ret_end = MIN(v->pc + step, v->limit);
	*ret_value = (int32_t)v->value;
	v->pc = *ret_end;
	return true;
}

int32_t gopclntab__value(const struct gopclntab *g, const struct gopclntab_func *f, uint32_t offset,
			 uint64_t vaddr)
{
	struct gopclntab_values v;
	uint64_t start, end;
	int32_t value;

	gopclntab_values__init(&v, g, f, offset);
	while (gopclntab_values__next(&v, &start, &end, &value)) {
		if (vaddr < end)
			return value;
	}
	return -1;
}
