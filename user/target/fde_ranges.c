/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the heads of FDEs: where each begins and how long it is.
 *
 * Each is noted at the first of the addresses that it begins at or before, so that it costs one
 * binary search whatever its range is. The last that begins before an address is then the best one
 * noted at it or at any before it.
 */
#include "target/fde_ranges.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/sorted.h"
#include "base/util.h"
#include "target/cfi_entry.h"
#include "target/elf_file.h"

#define MAX_SECTION (128U << 20) /* bytes */

struct pass {
	struct fde_range *ranges;
	size_t cnt;
	struct cfi_section section;
	/* the last CIE, as most FDEs have that of the one before; UINT64_MAX: none */
	uint64_t cie_pos;
	struct cfi_cie_head cie;
};

/* The index of the first range at or behind vaddr; cnt if there is none. */
static size_t first_at(const struct pass *p, uint64_t vaddr)
{
	return SORTED_LOWER_BOUND(p->ranges, p->cnt, vaddr, vaddr);
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

static int find_cie(struct pass *p, uint64_t pos)
{
	struct cfi_entry e;
	uint64_t at = pos;

	if (pos >= p->section.sz)
		return -EBADMSG;
	if (p->cie_pos == pos)
		return 0;
	p->cie_pos = UINT64_MAX;
	if (cfi_entry__read(&p->section, &at, &e) || !e.is_cie ||
	    !cfi_entry__parse_cie(&e.body, &p->cie))
		return -EBADMSG;
	p->cie_pos = pos;
	return 0;
}

static int take_fde(struct pass *p, struct cfi_entry *e)
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
	struct cfi_entry e;
	uint64_t pos = 0;
	int err;

	p->cie_pos = UINT64_MAX;
	do {
		err = cfi_entry__read(&p->section, &pos, &e);
		if (!err && e.body.bad)
			err = -EBADMSG;
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
