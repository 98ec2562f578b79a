/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the functions that an object's call frame information describes, and gives their rows.
 *
 * Two passes over each section, both linear: the first reads all CIEs, because .debug_frame may
 * have them behind the FDEs that use them, and runs their initial instructions once; the second
 * notes each FDE's range and where its instructions are. Then the FDEs are put in order of address
 * (a radix sort: there are 100,000 of them in a large library, in runs that the linker placed), in
 * which their instructions are run when their rows are asked for.
 */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "base/sorted.h"
#include "base/util.h"
#include "bpfprof.h"
#include "target/cfi.h"
#include "target/cfi_entry.h"
#include "target/ehframe.h"
#include "target/elf_file.h"
#include "target/unwind_table.h"

/* Limits on what a file may ask for; the largest browsers stay below a quarter of each. */
#define MAX_SECTION (128U << 20) /* bytes */
#define MAX_CIES 65536
#define MAX_FDES (4U << 20)

#define FIRST_READ 65536U /* bytes, where the size is not known; then as much again */
#define PREFETCH 8	  /* FDEs ahead */

struct fde {
	uint64_t start;
	uint32_t size;
	uint32_t insn, insn_end; /* in its section */
	uint32_t cie;
};

/* One section's information. */
struct ehframe {
	const struct elf_file *elf;
	struct cfi_section section;
	struct cfi_cie *cies; /* by ascending position */
	size_t cie_cnt, cie_cap;
	struct fde *fdes;
	size_t fde_cnt, fde_cap;
	bool damaged; /* something could not be read */

	/* what the last search found: the next one mostly wants the same */
	size_t last_cie;
	struct elf_segment text;
};

/* ---- Sections ---- */

/* 0; -ENOENT if there is no such section. */
static int load_section(struct ehframe *b, const char *name, bool eh)
{
	struct elf_section s, got;
	void *data;
	size_t sz;
	int err;

	if (!elf_file__section(b->elf, name, &s))
		return -ENOENT;
	err = elf_file__read_section(b->elf, &s, MAX_SECTION, &data, &sz);
	if (err)
		return err;
	b->section = (struct cfi_section){ .data = data, .sz = sz, .vaddr = s.addr, .eh = eh };
	if (eh && (elf_file__section(b->elf, ".got.plt", &got) ||
		   elf_file__section(b->elf, ".got", &got)))
		b->section.data_base = got.addr;
	return 0;
}

/* The address of .eh_frame as .eh_frame_hdr has it: LSB Core 10.6.2. */
static int find_by_header(const struct ehframe *b, uint64_t *ret_vaddr)
{
	struct elf_segment ph;
	struct cfi_section hdr = { 0 };
	struct cfi_reader in;
	uint8_t head[4 + 8];

	if (!elf_file__program_header(b->elf, PT_GNU_EH_FRAME, &ph) || ph.filesz < sizeof(head))
		return -ENOENT;
	if (elf_file__read_vaddr(b->elf, ph.vaddr, head, sizeof(head)) || head[0] != 1)
		return -EBADMSG;
	hdr.data = head;
	hdr.vaddr = ph.vaddr;
	hdr.data_base = ph.vaddr;
	in = (struct cfi_reader){ head + 4, head + sizeof(head), false };
	return cfi__read_pointer(&hdr, &in, head[1], ret_vaddr) ? -EBADMSG : 0;
}

/* Does the entry of length 0 lie in the data? *pos is an entry to begin with, then the first one
 * that does not lie there as a whole. */
static bool has_end(const uint8_t *data, size_t sz, uint64_t *pos)
{
	while (*pos <= sz && sz - *pos >= 12) {
		struct cfi_reader in = { data + *pos, data + sz, false };
		uint64_t len = cfi_reader__u32(&in), head = 4;

		if (!len)
			return true;
		if (len == 0xffffffff) {
			len = cfi_reader__u64(&in);
			head = 12;
		}
		/* what leads nowhere has its end here */
		if (len > MAX_SECTION)
			return true;
		*pos += head + len;
	}
	return false;
}

/* Without section headers: from there up to the entry of length 0, or to the end of its segment,
 * which may be far away. */
static int load_by_header(struct ehframe *b)
{
	uint64_t vaddr, pos = 0, max;
	const struct elf_segment *seg;
	size_t i, cnt, sz = 0, cap = 0;
	uint8_t *data = NULL;
	int err = find_by_header(b, &vaddr);

	if (err)
		return err;
	seg = elf_file__segments(b->elf, &cnt);
	for (i = 0; i < cnt; i++) {
		if (vaddr >= seg[i].vaddr && vaddr - seg[i].vaddr < seg[i].filesz)
			break;
	}
	if (i == cnt)
		return -EBADMSG;
	max = MIN(seg[i].filesz - (vaddr - seg[i].vaddr), (uint64_t)MAX_SECTION);
	do {
		size_t more = MIN(max - sz, MAX(sz, FIRST_READ));

		err = util_reserve(&data, &cap, sz + more, 1);
		if (!err)
			err = elf_file__read_vaddr(b->elf, vaddr + sz, data + sz, more);
		if (err) {
			free(data);
			return err;
		}
		sz += more;
	} while (sz < max && !has_end(data, sz, &pos));
	b->section = (struct cfi_section){
		.data = data, .sz = sz, .vaddr = vaddr, .eh = true, .terminated = true
	};
	return 0;
}

/* ---- Entries ---- */

/* False at the end, also where the rest cannot be made sense of. */
static bool next_entry(struct ehframe *b, uint64_t *pos, struct cfi_entry *ret)
{
	int err = cfi_entry__read(&b->section, pos, ret);

	b->damaged |= err == -EBADMSG;
	return !err;
}

static bool parse_cie(struct cfi_cie *cie, struct cfi_reader in)
{
	struct cfi_cie_head head;

	if (!cfi_entry__parse_cie(&in, &head) || head.code_align > UINT16_MAX ||
	    head.data_align < INT16_MIN || head.data_align > INT16_MAX || head.ra != 16)
		return false;
	cie->code_align = (uint32_t)head.code_align;
	cie->data_align = (int32_t)head.data_align;
	cie->fde_enc = head.fde_enc;
	cie->has_size = head.has_size;
	cie->signal = head.signal;
	return !cfi__run_cie(cie, in);
}

static int add_cie(struct ehframe *b, const struct cfi_entry *e)
{
	struct cfi_cie *cie;
	int err;

	if (b->cie_cnt == MAX_CIES) {
		b->damaged = true;
		return 0;
	}
	err = util_reserve(&b->cies, &b->cie_cap, b->cie_cnt + 1, sizeof(*cie));
	if (err)
		return err;
	cie = &b->cies[b->cie_cnt++];
	*cie = (struct cfi_cie){ .pos = e->pos, .section = &b->section };
	cie->usable = parse_cie(cie, e->body);
	if (!cie->usable)
		b->damaged = true;
	return 0;
}

/* The CIE at pos; NULL if there is none. */
static const struct cfi_cie *find_cie(struct ehframe *b, uint64_t pos)
{
	size_t i;

	if (b->last_cie < b->cie_cnt && b->cies[b->last_cie].pos == pos)
		return &b->cies[b->last_cie];
	i = SORTED_LOWER_BOUND(b->cies, b->cie_cnt, pos, pos);
	if (i == b->cie_cnt || b->cies[i].pos != pos)
		return NULL;
	b->last_cie = i;
	return &b->cies[i];
}

/* Does the range lie in one executable segment's file part? Linkers leave FDEs of dropped
 * functions, at address 0 or near it. */
static bool is_text(struct ehframe *b, uint64_t start, uint64_t size)
{
	const struct elf_segment *seg;
	size_t i, cnt;

	if (start >= b->text.vaddr && start - b->text.vaddr < b->text.filesz &&
	    size <= b->text.filesz - (start - b->text.vaddr))
		return true;
	seg = elf_file__segments(b->elf, &cnt);
	for (i = 0; i < cnt; i++) {
		if (seg[i].exec && start >= seg[i].vaddr && start - seg[i].vaddr < seg[i].filesz &&
		    size <= seg[i].filesz - (start - seg[i].vaddr)) {
			b->text = seg[i];
			return true;
		}
	}
	return false;
}

static int add_fde(struct ehframe *b, struct cfi_entry *e)
{
	const struct cfi_section *s = &b->section;
	const struct cfi_cie *cie = find_cie(b, e->cie_pos);
	struct cfi_reader *in = &e->body;
	uint64_t start, size;
	int err;

	if (!cie || !cie->usable || cfi__read_pointer(s, in, cie->fde_enc, &start) ||
	    cfi__read_pointer(s, in, cie->fde_enc & 0x0f, &size)) {
		b->damaged = true;
		return 0;
	}
	if (cie->has_size)
		cfi_reader__take(in, cfi_reader__uleb(in));
	if (in->bad)
		b->damaged = true;
	if (in->bad || !start || !size || size > UINT32_MAX || !is_text(b, start, size))
		return 0;
	if (b->fde_cnt == MAX_FDES)
		return -E2BIG;
	err = util_reserve(&b->fdes, &b->fde_cap, b->fde_cnt + 1, sizeof(*b->fdes));
	if (err)
		return err;
	b->fdes[b->fde_cnt++] = (struct fde){
		.start = start,
		.size = (uint32_t)size,
		.insn = (uint32_t)(in->p - s->data),
		.insn_end = (uint32_t)(in->end - s->data),
		.cie = (uint32_t)(cie - b->cies),
	};
	return 0;
}

static int read_entries(struct ehframe *b)
{
	struct cfi_entry e;
	uint64_t pos;
	int err = 0;

	for (pos = 0; !err && next_entry(b, &pos, &e);) {
		if (e.is_cie)
			err = add_cie(b, &e);
	}
	for (pos = 0; !err && next_entry(b, &pos, &e);) {
		if (!e.is_cie)
			err = add_fde(b, &e);
	}
	return err;
}

/* ---- Order ---- */

#define DIGIT_BITS 11
#define DIGITS (1U << DIGIT_BITS)

static void sort_by_digit(const struct fde *from, struct fde *to, size_t n, uint64_t min,
			  unsigned int shift)
{
	size_t at[DIGITS] = { 0 }, sum = 0, i;

	for (i = 0; i < n; i++)
		at[(from[i].start - min) >> shift & (DIGITS - 1)]++;
	for (i = 0; i < DIGITS; i++) {
		size_t cnt = at[i];

		at[i] = sum;
		sum += cnt;
	}
	for (i = 0; i < n; i++)
		to[at[(from[i].start - min) >> shift & (DIGITS - 1)]++] = from[i];
}

/* Sorts by start; equal ones stay in their order. */
static int sort_fdes(struct fde *v, size_t n)
{
	uint64_t min = UINT64_MAX, max = 0;
	struct fde *from = v, *to, *tmp;
	bool sorted = true;
	unsigned int shift;
	size_t i;

	for (i = 0; i < n; i++) {
		min = MIN(min, v[i].start);
		sorted = sorted && v[i].start >= max;
		max = MAX(max, v[i].start);
	}
	if (sorted)
		return 0;
	tmp = malloc(n * sizeof(*tmp));
	if (!tmp)
		return -ENOMEM;
	to = tmp;
	for (shift = 0; shift < 64 && (max - min) >> shift; shift += DIGIT_BITS) {
		struct fde *done = to;

		sort_by_digit(from, to, n, min, shift);
		to = from;
		from = done;
	}
	if (from != v)
		memcpy(v, from, n * sizeof(*v));
	free(tmp);
	return 0;
}

/* Puts the FDEs in order. Of those that begin at the same address, the first one stays. */
static int order_fdes(struct ehframe *b)
{
	size_t kept = 0, i;
	int err = sort_fdes(b->fdes, b->fde_cnt);

	if (err)
		return err;
	for (i = 0; i < b->fde_cnt; i++) {
		if (!kept || b->fdes[i].start != b->fdes[kept - 1].start)
			b->fdes[kept++] = b->fdes[i];
	}
	b->fde_cnt = kept;
	return 0;
}

/* ---- Rows ---- */

static void range(const void *ctx, size_t i, uint64_t *ret_start, uint64_t *ret_end)
{
	const struct fde *fde = &((const struct ehframe *)ctx)->fdes[i];

	*ret_start = fde->start;
	*ret_end = fde->start + fde->size;
}

static void rows(void *ctx, size_t i, uint64_t end, struct unwind_packer *out)
{
	const struct ehframe *b = ctx;
	const struct fde *fde = &b->fdes[i];
	const uint8_t *data = b->section.data;
	struct cfi_reader in = { data + fde->insn, data + fde->insn_end, false };

	if (i + PREFETCH < b->fde_cnt)
		__builtin_prefetch(data + fde[PREFETCH].insn);
	cfi__run_fde(&b->cies[fde->cie], in, fde->start, end, out);
}

void ehframe__follow_r12(struct ehframe *e)
{
	e->section.follow_r12 = true;
}

struct unwind_source ehframe__source(struct ehframe *e)
{
	return (struct unwind_source){ .ctx = e, .cnt = e->fde_cnt, .range = range, .rows = rows };
}

size_t ehframe__size(const struct ehframe *e)
{
	return e->section.sz;
}

void ehframe__free(struct ehframe *e)
{
	if (!e)
		return;
	free(e->section.data);
	free(e->cies);
	free(e->fdes);
	free(e);
}

struct ehframe *ehframe__open(const struct elf_file *elf, bool debug)
{
	struct ehframe *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return NULL;
	e->elf = elf;
	err = load_section(e, debug ? ".debug_frame" : ".eh_frame", !debug);
	if (err == -ENOENT && !debug)
		err = load_by_header(e);
	if (!err)
		err = read_entries(e);
	if (!err)
		err = order_fdes(e);
	if (!err && !e->fde_cnt && e->damaged)
		err = -EBADMSG;
	if (err) {
		ehframe__free(e);
		errno = -err;
		return NULL;
	}
	return e;
}
