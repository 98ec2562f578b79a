/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads DT_RELA by way of the program headers, which strip leaves alone, in pieces. */
#include "target/elf_relative.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/elf_file.h"

#define MAX_DYNAMIC 4096       /* entries of PT_DYNAMIC */
#define MAX_RELOCS (16U << 20) /* as many are 384 MiB of the file */
#define PIECE 4096	       /* relocations read at a time */

typedef void (*visit_fn)(void *ctx, uint64_t place, uint64_t addend);

/* The address and the number of the relocations; none if the file is not linked dynamically. */
static int find_rela(const struct elf_file *elf, uint64_t *ret_vaddr, uint64_t *ret_cnt)
{
	struct elf_segment dynamic;
	Elf64_Dyn dyn;
	size_t i;
	int err;

	*ret_vaddr = *ret_cnt = 0;
	if (!elf_file__program_header(elf, PT_DYNAMIC, &dynamic))
		return 0;
	for (i = 0; i < MIN(dynamic.filesz / sizeof(dyn), MAX_DYNAMIC); i++) {
		err = elf_file__read(elf, dynamic.offset + i * sizeof(dyn), &dyn, sizeof(dyn));
		if (err)
			return err == -ENODATA ? 0 : err;
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_RELA)
			*ret_vaddr = dyn.d_un.d_ptr;
		else if (dyn.d_tag == DT_RELASZ)
			*ret_cnt = MIN(dyn.d_un.d_val / sizeof(Elf64_Rela), MAX_RELOCS);
	}
	return 0;
}

static int visit_all(const struct elf_file *elf, visit_fn visit, void *ctx)
{
	uint64_t vaddr, cnt, pos, n, i;
	Elf64_Rela *piece;
	int err = find_rela(elf, &vaddr, &cnt);

	if (err || !cnt)
		return err;
	piece = malloc(PIECE * sizeof(*piece));
	if (!piece)
		return -ENOMEM;
	for (pos = 0; pos < cnt && !err; pos += n) {
		n = MIN(cnt - pos, PIECE);
		err = elf_file__read_vaddr(elf, vaddr + pos * sizeof(*piece), piece,
					   n * sizeof(*piece));
		for (i = 0; i < n && !err; i++) {
			if (ELF64_R_TYPE(piece[i].r_info) == R_X86_64_RELATIVE)
				visit(ctx, piece[i].r_offset, (uint64_t)piece[i].r_addend);
		}
	}
	free(piece);
	return err == -ENODATA ? 0 : err;
}

struct apply {
	uint64_t vaddr, sz;
	uint8_t *buf;
};

static void apply(void *ctx, uint64_t place, uint64_t addend)
{
	struct apply *a = ctx;

	if (place >= a->vaddr && a->sz >= 8 && place - a->vaddr <= a->sz - 8)
		memcpy(a->buf + (place - a->vaddr), &addend, 8);
}

int elf_relative__apply(const struct elf_file *elf, uint64_t vaddr, void *buf, size_t sz)
{
	struct apply a = { vaddr, sz, buf };

	return visit_all(elf, apply, &a);
}

struct find {
	uint64_t addend;
	uint64_t *places;
	size_t cnt, max;
};

static void find(void *ctx, uint64_t place, uint64_t addend)
{
	struct find *f = ctx;

	if (addend == f->addend && f->cnt < f->max)
		f->places[f->cnt++] = place;
}

int elf_relative__find(const struct elf_file *elf, uint64_t addend, uint64_t *ret_places,
		       size_t max, size_t *ret_cnt)
{
	struct find f = { addend, ret_places, 0, max };
	int err = visit_all(elf, find, &f);

	*ret_cnt = f.cnt;
	return err;
}
