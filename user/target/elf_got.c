/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the relocations of target/elf_got.h in pieces. */
#include "target/elf_got.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "target/elf_file.h"

#define MAX_RELOCS (1U << 20) /* of a section */
#define PIECE 2048	      /* relocations read at a time */

static int visit_section(const struct elf_file *elf, const char *section, Elf64_Rela *piece,
			 elf_got_fn fn, void *ctx)
{
	struct elf_section s;
	size_t left, pos = 0, n, i;
	int err = 0;

	if (!elf_file__section(elf, section, &s) || s.type != SHT_RELA ||
	    s.size > MAX_RELOCS * sizeof(*piece) || s.flags & SHF_COMPRESSED)
		return 0;
	for (left = s.size / sizeof(*piece); left && !err; left -= n, pos += n) {
		n = MIN(left, PIECE);
		err = elf_file__read(elf, s.offset + pos * sizeof(*piece), piece,
				     n * sizeof(*piece));
		for (i = 0; i < n && !err; i++) {
			uint32_t type = ELF64_R_TYPE(piece[i].r_info);

			if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT)
				err = fn(ctx, piece[i].r_offset, ELF64_R_SYM(piece[i].r_info));
		}
	}
	return err;
}

int elf_got__visit(const struct elf_file *elf, elf_got_fn fn, void *ctx)
{
	Elf64_Rela *piece = malloc(PIECE * sizeof(*piece));
	int err;

	if (!piece)
		return -ENOMEM;
	err = visit_section(elf, ".rela.plt", piece, fn, ctx);
	if (!err)
		err = visit_section(elf, ".rela.dyn", piece, fn, ctx);
	free(piece);
	return err;
}
