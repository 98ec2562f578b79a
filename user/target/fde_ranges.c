/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the heads of FDEs: where each begins and how long it is.
 *
 * Each is noted at the first of the addresses that it begins at or before, so that it costs one
 * binary search whatever its range is. The last that begins before an address is then the best one
 * noted at it or at any before it.
 */
#include "target/fde_ranges.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/cfi.h"
#include "target/elf_file.h"

#define MAX_SECTION (128U << 20) /* bytes */
#define MAX_LETTERS 8		 /* of an augmentation; GCC and LLVM use up to 5 */

struct cie { /* what the FDEs of a CIE look like */
	uint64_t pos;
	uint8_t fde_enc; /* DW_EH_PE_… */
	bool signal;
};

struct pass {
	struct fde_range *ranges;
	size_t cnt;
	struct cfi_section section;
	struct cie cie; /* the last one: most FDEs have that of the one before */
};

/* The index of the first range at or behind vaddr; cnt if there is none. */
static size_t first_at(const struct pass *p, uint64_t vaddr)
{
	size_t lo = 0, hi = p->cnt;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (p->ranges[mid].vaddr < vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static void note(struct pass *p, uint64_t start, uint64_t size, bool signal)
{
	size_t i = first_at(p, start);
	struct fde_range *r;

	if (i > 0)
		p->ranges[i - 1].next = MIN(p->ranges[i - 1].next, start);
	if (i == p->cnt)
		return;
	r = &p->ranges[i];
	if (start > r->start || (start == r->start && start + size > r->end)) {
		r->start = start;
		r->end = start + size;
		r->signal = signal;
	}
}

static bool skip_pointer(struct cfi_reader *in, uint8_t enc)
{
	uint64_t ignored;
	/* only the length counts: what it is relative to does not matter */
	uint8_t format = enc & 0x0f;
	struct cfi_section nowhere = { .data = (uint8_t *)in->p };

	if (enc == DW_EH_PE_omit)
		return true;
	return enc != DW_EH_PE_aligned && !cfi__read_pointer(&nowhere, in, format, &ignored);
}

/* LSB Core 10.6.1.1.1. False for a letter that is not known: it may change any meaning. */
static bool parse_augmentation(struct cie *cie, const uint8_t *letters, struct cfi_reader in)
{
	for (; *letters; letters++) {
		switch (*letters) {
		case 'z':
			cfi_reader__uleb(&in);
			break;
		case 'R':
			cie->fde_enc = cfi_reader__u8(&in);
			break;
		case 'P':
			if (!skip_pointer(&in, cfi_reader__u8(&in)))
				return false;
			break;
		case 'L':
			cfi_reader__u8(&in);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B':
			break;
		default:
			return false;
		}
	}
	return !in.bad;
}

/* DWARF 5, 6.4.1, as far as FDEs need it. in: behind the id */
static bool parse_cie(struct cie *cie, struct cfi_reader in)
{
	uint8_t version = cfi_reader__u8(&in);
	const uint8_t *letters = in.p;
	size_t len = strnlen((const char *)letters, MIN((size_t)(in.end - in.p), MAX_LETTERS + 1));

	if (len > MAX_LETTERS || !cfi_reader__take(&in, len + 1) || letters[len] ||
	    (version != 1 && version != 3 && version != 4))
		return false;
	/* sizes of an address and of a segment selector */
	if (version == 4 && (cfi_reader__u8(&in) != 8 || cfi_reader__u8(&in) != 0))
		return false;
	cfi_reader__uleb(&in);
	cfi_reader__sleb(&in);
	if (version == 1)
		cfi_reader__u8(&in);
	else
		cfi_reader__uleb(&in);
	return parse_augmentation(cie, letters, in);
}

/* An entry of a section. */
struct entry {
	bool is_cie;
	uint64_t cie_pos;	/* of an FDE */
	struct cfi_reader body; /* behind the id */
};

/* The entry at *pos, which then is that of the next one. 0; -ENOENT at the end; -EBADMSG. */
static int read_entry(const struct cfi_section *s, uint64_t *pos, struct entry *ret)
{
	struct cfi_reader in = { s->data + *pos, s->data + s->sz, false };
	uint64_t len = 0, id, id_pos;
	bool is_64bit;

	/* an entry of length 0 ends the contribution of one file: more may follow */
	while (!len && in.p != in.end && !in.bad)
		len = cfi_reader__u32(&in);
	if (!len)
		return in.bad ? -EBADMSG : -ENOENT;
	is_64bit = len == 0xffffffff; /* DWARF 5, 7.4 */
	if (is_64bit)
		len = cfi_reader__u64(&in);
	id_pos = (uint64_t)(in.p - s->data);
	if (!cfi_reader__take(&in, len))
		return -EBADMSG;
	*pos = (uint64_t)(in.p - s->data);
	ret->body = (struct cfi_reader){ s->data + id_pos, in.p, false };
	id = is_64bit ? cfi_reader__u64(&ret->body) : cfi_reader__u32(&ret->body);
	/* .eh_frame has a distance back from the field, and 0 for a CIE */
	ret->is_cie = s->eh ? !id : id == (is_64bit ? UINT64_MAX : UINT32_MAX);
	ret->cie_pos = s->eh ? id_pos - id : id;
	return ret->body.bad ? -EBADMSG : 0;
}

static int find_cie(struct pass *p, uint64_t pos)
{
	struct entry e;
	uint64_t at = pos;

	if (p->cie.pos == pos)
		return 0;
	p->cie = (struct cie){ .pos = UINT64_MAX, .fde_enc = DW_EH_PE_absptr };
	if (pos >= p->section.sz || read_entry(&p->section, &at, &e) || !e.is_cie ||
	    !parse_cie(&p->cie, e.body))
		return -EBADMSG;
	p->cie.pos = pos;
	return 0;
}

static int take_fde(struct pass *p, struct entry *e)
{
	uint64_t start, size;

	if (find_cie(p, e->cie_pos) ||
	    cfi__read_pointer(&p->section, &e->body, p->cie.fde_enc, &start) ||
	    cfi__read_pointer(&p->section, &e->body, p->cie.fde_enc & 0x0f, &size))
		return -EBADMSG;
	/* those of functions that the linker dropped are at 0 */
	if (start && size && size <= UINT64_MAX - start)
		note(p, start, size, p->cie.signal);
	return 0;
}

static int read_frames(struct pass *p)
{
	struct entry e;
	uint64_t pos = 0;
	int err;

	p->cie.pos = UINT64_MAX;
	do {
		err = read_entry(&p->section, &pos, &e);
		if (!err && !e.is_cie)
			err = take_fde(p, &e);
	} while (!err);
	return err == -ENOENT ? 0 : err;
}

/* 0, also if there is no such section. */
static int read_section(struct pass *p, const struct elf_file *elf, const char *name, bool eh)
{
	struct elf_section s;
	void *data;
	size_t sz;
	int err;

	if (!elf_file__section(elf, name, &s) || s.type == SHT_NOBITS)
		return 0;
	err = elf_file__read_section(elf, &s, MAX_SECTION, &data, &sz);
	if (err)
		return err;
	p->section = (struct cfi_section){ .data = data, .sz = sz, .vaddr = s.addr, .eh = eh };
	err = read_frames(p);
	free(data);
	return err;
}

/* What is noted of each address becomes what is known of it. */
static void settle(struct pass *p)
{
	struct fde_range last = {};
	uint64_t next = UINT64_MAX;
	size_t i;

	for (i = p->cnt; i-- > 0;)
		p->ranges[i].next = next = MIN(next, p->ranges[i].next);
	for (i = 0; i < p->cnt; i++) {
		struct fde_range *r = &p->ranges[i];

		if (r->start > last.start || (r->start == last.start && r->end > last.end))
			last = *r;
		r->start = r->vaddr < last.end ? last.start : 0;
		r->end = r->start ? last.end : 0;
		r->signal = r->start && last.signal;
	}
}

int fde_ranges_find(const struct elf_file *elf, const struct elf_file *debug,
		    struct fde_range *ranges, size_t cnt)
{
	struct pass p = { .ranges = ranges, .cnt = cnt };
	struct elf_section any;
	size_t i;
	int err;

	for (i = 0; i < cnt; i++)
		ranges[i] = (struct fde_range){ .vaddr = ranges[i].vaddr, .next = UINT64_MAX };
	/* without section headers it is not known whether there are any */
	if (!elf_file__section_by_index(elf, 1, &any))
		return -EBADMSG;
	err = read_section(&p, elf, ".eh_frame", true);
	if (!err)
		err = read_section(&p, elf, ".debug_frame", false);
	if (!err && debug)
		err = read_section(&p, debug, ".debug_frame", false);
	settle(&p);
	return err;
}
