/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbol tables, PLT, relocations, and the code of allocators that they lead to: pieces in this
 * order, and the code behind them. */
#include <elf.h>
#include <stdlib.h>

#include "target/elf_file.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	struct bytes in = { data, sz };
	struct image_section s[] = {
		{ ".strtab", SHT_STRTAB, 0, 0, bytes__next(&in) },
		{ ".symtab", SHT_SYMTAB, 0, 1, bytes__next(&in) },
		{ ".dynstr", SHT_STRTAB, 0, 0, bytes__next(&in) },
		{ ".dynsym", SHT_DYNSYM, 0, 3, bytes__next(&in) },
		{ ".rela.plt", SHT_RELA, 0, 4, bytes__next(&in) },
		{ ".plt", SHT_PROGBITS, SHF_EXECINSTR, 0, bytes__next(&in) },
	};
	struct image img = image__make(in, s, sizeof(s) / sizeof(s[0]), 0);
	struct elf_file *elf = elf_file__open_memory(img.data, img.sz);
	struct parsers_found found = {};

	NEED(elf);
	parsers_symbols(elf, &found);
	parsers_sites(elf);
	parsers_allocators(elf, &found);
	elf_file__free(elf);
	free(img.data);
	return 0;
}
