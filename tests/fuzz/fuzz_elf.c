/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole ELF file: headers, sections, notes, and every reader behind them but that of DWARF. */
#include "target/elf_file.h"
#include "tests/fuzz/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	struct elf_file *elf = elf_file__open_memory(data, sz);
	struct parsers_found found = {};

	if (!elf)
		return 0;
	parsers_frame(elf);
	parsers_unwind(elf, &found);
	parsers_symbols(elf, &found);
	parsers_usdt(elf, &found);
	parsers_sites(elf);
	parsers_allocators(elf, &found);
	elf_file__free(elf);
	return 0;
}
