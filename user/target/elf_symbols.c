/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a table of symbols in pieces. */
#include "target/elf_symbols.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/util.h"
#include "target/elf_file.h"

#define MAX_TABLE (256ULL << 20) /* bytes of a symbol table, and of its strings */
#define PIECE 2048		 /* symbols read at a time */

static int visit(const struct elf_file *elf, const struct elf_section *s, const char *strings,
		 size_t strings_sz, elf_symbol_fn fn, void *ctx)
{
	size_t left = s->size / sizeof(Elf64_Sym), pos = 0, n, i;
	Elf64_Sym *piece = malloc(PIECE * sizeof(*piece));
	int err = piece ? 0 : -ENOMEM;

	for (; left && !err; left -= n, pos += n) {
		n = MIN(left, PIECE);
		err = elf_file__read(elf, s->offset + pos * sizeof(*piece), piece,
				     n * sizeof(*piece));
		for (i = 0; i < n && !err; i++)
			if (piece[i].st_name && piece[i].st_name < strings_sz &&
			    strings[piece[i].st_name])
				err = fn(ctx, &piece[i], strings + piece[i].st_name, pos + i);
	}
	free(piece);
	return err;
}

int elf_symbols__visit(const struct elf_file *elf, const char *section, elf_symbol_fn fn, void *ctx)
{
	struct elf_section s, str;
	void *strings;
	size_t sz;
	int err;

	if (!elf_file__section(elf, section, &s) || s.size > MAX_TABLE ||
	    s.flags & SHF_COMPRESSED || !elf_file__section_by_index(elf, s.link, &str) ||
	    str.type != SHT_STRTAB || str.size > MAX_TABLE || str.flags & SHF_COMPRESSED)
		return 0;
	/* has a NUL behind */
	err = elf_file__read_section(elf, &str, MAX_TABLE, &strings, &sz);
	if (err)
		return err;
	err = visit(elf, &s, strings, sz, fn, ctx);
	free(strings);
	return err;
}
