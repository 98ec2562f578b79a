/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the functions that an object's call frame information describes, and has their rows packed.
 *
 * Two passes over each section, both linear: the first reads all CIEs, because .debug_frame may
 * have them behind the FDEs that use them, and runs their initial instructions once; the second
 * notes each FDE's range and where its instructions are. Then the FDEs are put in order of address
 * (a radix sort: there are 100,000 of them in a large library, in runs that the linker placed) and
 * their instructions run in that order, so that rows go to the packer as they come and need no
 * buffer.
 */
#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/cfi.h"
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

struct builder {
	struct elf_file *elf;
	struct cfi_section sections[2];
	size_t section_cnt;
	struct cfi_cie *cies; /* of all sections, each section's by ascending position */
	size_t cie_cnt, cie_cap;
	struct fde *fdes;
	size_t fde_cnt, fde_cap;
	bool damaged; /* something could not be read */

	/* what the last search found: the next one mostly wants the same */
	size_t last_cie;
	struct elf_segment text;
};

/* An entry of a section, CIE or FDE. */
struct entry {
	size_t pos;
	bool is_cie;
	uint64_t cie_pos;	/* of an FDE */
	struct cfi_reader body; /* behind the id */
};

/* ---- Sections ---- */

static struct cfi_section *add_section(struct builder *b, void *data, size_t sz, uint64_t vaddr,
				       bool eh)
{
	struct cfi_section *s = &b->sections[b->section_cnt++];

	*s = (struct cfi_section){ .data = data, .sz = sz, .vaddr = vaddr, .eh = eh };
	return s;
}

/* 0; -ENOENT if there is no such section. */
static int load_section(struct builder *b, const char *name, bool eh)
{
	struct elf_section s, got;
	struct cfi_section *section;
	void *data;
	size_t sz;
	int err;

	if (!elf_file__section(b->elf, name, &s))
		return -ENOENT;
	err = elf_file__read_section(b->elf, &s, MAX_SECTION, &data, &sz);
	if (err)
		return err;
	section = add_section(b, data, sz, s.addr, eh);
	if (eh && (elf_file__section(b->elf, ".got.plt", &got) ||
		   elf_file__section(b->elf, ".got", &got)))
		section->data_base = got.addr;
	return 0;
}

/* The address of .eh_frame as .eh_frame_hdr has it: LSB Core 10.6.2. */
static int find_by_header(const struct builder *b, uint64_t *ret_vaddr)
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
static int load_by_header(struct builder *b)
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
	add_section(b, data, sz, vaddr, true)->terminated = true;
	return 0;
}

/* -ENOENT if the object has none at all; a section that cannot be read leaves the other. */
static int load_sections(struct builder *b)
{
	int eh = load_section(b, ".eh_frame", true), debug;

	if (eh == -ENOENT)
		eh = load_by_header(b);
	debug = load_section(b, ".debug_frame", false);
	if (eh == -ENOMEM || debug == -ENOMEM)
		return -ENOMEM;
	if ((eh && eh != -ENOENT) || (debug && debug != -ENOENT))
		b->damaged = true;
	if (b->section_cnt)
		return 0;
	return eh == -ENOENT ? debug : eh;
}

/* ---- Entries ---- */

/* The entry at *pos, which then is that of the next one. False at the end, also where the rest
 * cannot be made sense of. */
static bool next_entry(struct builder *b, const struct cfi_section *s, size_t *pos,
		       struct entry *ret)
{
	struct cfi_reader in = { s->data + *pos, s->data + s->sz, false };
	bool is_64bit;
	uint64_t len, id;
	size_t id_pos;

	do {
		ret->pos = (size_t)(in.p - s->data);
		if (in.p == in.end)
			return false;
		len = cfi_reader__u32(&in);
		if (!len && s->terminated)
			return false;
	} while (!len && !in.bad);
	is_64bit = len == 0xffffffff; /* DWARF 5, 7.4 */
	if (is_64bit)
		len = cfi_reader__u64(&in);
	id_pos = (size_t)(in.p - s->data);
	if (!cfi_reader__take(&in, len)) {
		b->damaged = true;
		return false;
	}
	*pos = (size_t)(in.p - s->data);
	ret->body = (struct cfi_reader){ s->data + id_pos, in.p, false };
	id = is_64bit ? cfi_reader__u64(&ret->body) : cfi_reader__u32(&ret->body);
	if (s->eh) {
		/* a distance back from here, 0 is a CIE: LSB Core 10.6.1 */
		ret->is_cie = !id;
		ret->cie_pos = id_pos - id;
	} else {
		ret->is_cie = id == (is_64bit ? UINT64_MAX : UINT32_MAX);
		ret->cie_pos = id;
	}
	return true;
}

static void skip_pointer(struct cfi_reader *in, uint8_t enc)
{
	static const uint8_t sz[16] = {
		[DW_EH_PE_absptr] = 8, [DW_EH_PE_udata2] = 2, [DW_EH_PE_udata4] = 4,
		[DW_EH_PE_udata8] = 8, [DW_EH_PE_sdata2] = 2, [DW_EH_PE_sdata4] = 4,
		[DW_EH_PE_sdata8] = 8,
	};
	uint8_t format = enc & 0x0f;

	if (enc == DW_EH_PE_omit)
		return;
	if (enc == DW_EH_PE_aligned)
		in->bad = true;
	else if (format == DW_EH_PE_uleb128 || format == DW_EH_PE_sleb128)
		cfi_reader__sleb(in);
	else if (sz[format])
		cfi_reader__take(in, sz[format]);
	else
		in->bad = true;
}

/* The letters of an augmentation: LSB Core 10.6.1.1.1. False for one that we do not know: it may
 * change any meaning. */
static bool parse_augmentation(struct cfi_cie *cie, const char *letters, struct cfi_reader *in)
{
	struct cfi_reader data = *in;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'z':
			cie->has_size = true;
			data.p = cfi_reader__take(in, cfi_reader__uleb(in));
			if (!data.p)
				return false;
			data.end = in->p;
			break;
		case 'R':
			cie->fde_enc = cfi_reader__u8(&data);
			break;
		case 'P':
			skip_pointer(&data, cfi_reader__u8(&data));
			break;
		case 'L':
			cfi_reader__u8(&data);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* AArch64 */
			break;
		default:
			return false;
		}
	}
	if (!cie->has_size)
		*in = data;
	return !data.bad;
}

/* DWARF 5, 6.4.1 */
static bool parse_cie(struct cfi_cie *cie, struct cfi_reader in)
{
	uint8_t version = cfi_reader__u8(&in);
	const char *letters = (const char *)in.p;
	const uint8_t *nul = memchr(in.p, 0, (size_t)(in.end - in.p));
	uint64_t code_align, ra;
	int64_t data_align;

	if (!nul || (version != 1 && version != 3 && version != 4))
		return false;
	in.p = nul + 1;
	if (version == 4 && (cfi_reader__u8(&in) != 8 || cfi_reader__u8(&in) != 0))
		return false; /* sizes of an address and of a segment selector */
	code_align = cfi_reader__uleb(&in);
	data_align = cfi_reader__sleb(&in);
	ra = version == 1 ? cfi_reader__u8(&in) : cfi_reader__uleb(&in);
	if (in.bad || code_align > UINT16_MAX || data_align < INT16_MIN || data_align > INT16_MAX ||
	    ra != 16)
		return false;
	cie->code_align = (uint32_t)code_align;
	cie->data_align = (int32_t)data_align;
	return parse_augmentation(cie, letters, &in) && !cfi__run_cie(cie, in);
}

static int add_cie(struct builder *b, const struct cfi_section *s, const struct entry *e)
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
	*cie = (struct cfi_cie){ .pos = e->pos, .section = s, .fde_enc = DW_EH_PE_absptr };
	cie->usable = parse_cie(cie, e->body);
	if (!cie->usable)
		b->damaged = true;
	return 0;
}

/* The CIE at pos among those from `first` on; NULL if there is none. */
static const struct cfi_cie *find_cie(struct builder *b, size_t first, uint64_t pos)
{
	size_t lo = first, hi = b->cie_cnt;

	if (b->last_cie >= first && b->last_cie < hi && b->cies[b->last_cie].pos == pos)
		return &b->cies[b->last_cie];
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (b->cies[mid].pos < pos)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == b->cie_cnt || b->cies[lo].pos != pos)
		return NULL;
	b->last_cie = lo;
	return &b->cies[lo];
}

/* Does the range lie in one executable segment's file part? Linkers leave FDEs of dropped
 * functions, at address 0 or near it. */
static bool is_text(struct builder *b, uint64_t start, uint64_t size)
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

static int add_fde(struct builder *b, const struct cfi_section *s, size_t first_cie,
		   struct entry *e)
{
	const struct cfi_cie *cie = find_cie(b, first_cie, e->cie_pos);
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

static int read_section(struct builder *b, const struct cfi_section *s)
{
	size_t first_cie = b->cie_cnt, pos;
	struct entry e;
	int err = 0;

	for (pos = 0; !err && next_entry(b, s, &pos, &e);) {
		if (e.is_cie)
			err = add_cie(b, s, &e);
	}
	for (pos = 0; !err && next_entry(b, s, &pos, &e);) {
		if (!e.is_cie)
			err = add_fde(b, s, first_cie, &e);
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

/* Puts the FDEs from `first` on, of which there are some, in order. Of those that begin at the same
 * address, the first one stays. */
static int order_fdes(struct builder *b, size_t first)
{
	struct fde *v = b->fdes + first;
	size_t n = b->fde_cnt - first, kept = 0, i;
	int err = sort_fdes(v, n);

	if (err)
		return err;
	for (i = 0; i < n; i++) {
		if (!kept || v[i].start != v[kept - 1].start)
			v[kept++] = v[i];
	}
	b->fde_cnt = first + kept;
	return 0;
}

/*
 * The eh_cnt sorted FDEs of .eh_frame at the front, and of the sorted ones of .debug_frame behind
 * them those that begin where the former say nothing.
 */
static int merge_fdes(struct builder *b, size_t eh_cnt)
{
	size_t debug_cnt = b->fde_cnt - eh_cnt, i = 0, j, n = 0;
	const struct fde *eh = b->fdes, *debug;
	struct fde *out;

	if (!debug_cnt || !eh_cnt)
		return 0;
	debug = eh + eh_cnt;
	out = malloc(b->fde_cnt * sizeof(*out));
	if (!out)
		return -ENOMEM;
	for (j = 0; j < debug_cnt; j++) {
		while (i < eh_cnt && eh[i].start <= debug[j].start)
			out[n++] = eh[i++];
		if (!i || debug[j].start - eh[i - 1].start >= eh[i - 1].size)
			out[n++] = debug[j];
	}
	while (i < eh_cnt)
		out[n++] = eh[i++];
	free(b->fdes);
	b->fdes = out;
	b->fde_cap = b->fde_cnt;
	b->fde_cnt = n;
	return 0;
}

static int read_sections(struct builder *b)
{
	size_t i, first, eh_cnt = 0;
	int err;

	for (i = 0; i < b->section_cnt; i++) {
		first = b->fde_cnt;
		err = read_section(b, &b->sections[i]);
		if (!err && b->fde_cnt > first)
			err = order_fdes(b, first);
		if (err)
			return err;
		if (b->sections[i].eh)
			eh_cnt = b->fde_cnt;
	}
	return merge_fdes(b, eh_cnt);
}

/* ---- Rows ---- */

static void run_fde(const struct builder *b, size_t i, struct unwind_packer *out)
{
	static const struct bpfprof_rule none;
	const struct fde *fde = &b->fdes[i];
	const struct cfi_cie *cie = &b->cies[fde->cie];
	const uint8_t *data = cie->section->data;
	struct cfi_reader in = { data + fde->insn, data + fde->insn_end, false };
	uint64_t end = fde->start + fde->size, next = 0;
	bool last = i + 1 == b->fde_cnt;

	if (!last) {
		next = fde[1].start;
		end = MIN(end, next);
	}
	cfi__run_fde(cie, in, fde->start, end, out);
	/* no rule for what lies between functions, padding too: a return address there is forged */
	if (last || next > end)
		unwind_packer__row(out, end, none);
}

static int pack(const struct builder *b, struct unwind_table *t)
{
	struct unwind_packer *packer = unwind_packer__new(t);
	size_t i;
	int err;

	if (!packer)
		return -errno;
	for (i = 0; i < b->fde_cnt && !unwind_packer__error(packer); i++) {
		if (i + PREFETCH < b->fde_cnt) {
			const struct fde *ahead = &b->fdes[i + PREFETCH];

			__builtin_prefetch(b->cies[ahead->cie].section->data + ahead->insn);
		}
		run_fde(b, i, packer);
	}
	err = unwind_packer__finish(packer);
	unwind_packer__free(packer);
	return err;
}

int ehframe_build(struct elf_file *elf, struct unwind_table *ret)
{
	struct builder b = { .elf = elf };
	size_t i;
	int err;

	memset(ret, 0, sizeof(*ret));
	err = load_sections(&b);
	if (!err)
		err = read_sections(&b);
	if (!err && !b.fde_cnt && b.damaged)
		err = -EBADMSG;
	if (!err)
		err = pack(&b, ret);
	if (err)
		unwind_table__done(ret);
	for (i = 0; i < b.section_cnt; i++) {
		ret->cfi_sz += err ? 0 : b.sections[i].sz;
		free(b.sections[i].data);
	}
	free(b.cies);
	free(b.fdes);
	return err;
}
