/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes: those of USDT probes, that of the build id; the debug link behind them. */
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
		{ ".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0, bytes__next(&in) },
		{ ".note.stapsdt", SHT_NOTE, 0, 0, bytes__next(&in) },
		{ ".gnu_debuglink", SHT_PROGBITS, 0, 0, bytes__next(&in) },
		{ ".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, 0, in },
	};
	struct image img = image__make((struct bytes){ NULL, 0 }, s, sizeof(s) / sizeof(s[0]), 0);
	struct elf_file *elf = elf_file__open_memory(img.data, img.sz);
	struct parsers_found found = {};

	NEED(elf);
	parsers_frame(elf);
	parsers_usdt(elf, &found);
	parsers_sites(elf);
	elf_file__free(elf);
	free(img.data);
	return 0;
}
