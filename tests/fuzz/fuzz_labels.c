/* SPDX-License-Identifier: BSD-2-Clause */
/* What symbols without a size may name: pieces of .eh_frame and .debug_frame, and the code behind
 * them. */
#include <elf.h>
#include <stdlib.h>
#include <linux/types.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/fde_ranges.h"
#include "target/label_proof.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/parsers.h"

#define LABELS 8
#define PER_LABEL 32
#define CNT (LABELS * PER_LABEL)
#define CODE 0x100 /* behind the headers */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

static void check_ranges(const struct elf_file *elf)
{
	struct fde_range r[CNT];
	size_t i;

	for (i = 0; i < CNT; i++)
		r[i].vaddr = CODE + 4 * i;
	if (fde_ranges_find(elf, NULL, r, CNT))
		return;
	for (i = 0; i < CNT; i++) {
		NEED(r[i].next > r[i].vaddr);
		NEED(!r[i].start || (r[i].start <= r[i].vaddr && r[i].vaddr < r[i].end));
		NEED(r[i].start || !r[i].end);
	}
}

static void check_proofs(const struct elf_file *elf)
{
	struct label_claim c[CNT];
	size_t i;

	for (i = 0; i < CNT; i++) {
		uint64_t label = CODE + i / PER_LABEL * 256;

		c[i] = (struct label_claim){ .vaddr = label + 4 * (i % PER_LABEL),
					     .label = label,
					     .end = label + 256,
					     .is_function = i / PER_LABEL % 2 };
	}
	NEED(!label_proof(elf, NULL, c, CNT));
	for (i = 0; i < CNT; i++)
		NEED(!c[i].proved || (c[i].label <= c[i].vaddr && c[i].vaddr < c[i].end));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	struct bytes in = { data, sz };
	struct image_section s[] = {
		{ ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0, bytes__next(&in) },
		{ ".debug_frame", SHT_PROGBITS, 0, 0, bytes__next(&in) },
	};
	struct image img = image__make(in, s, ARRAY_SIZE(s), 0);
	struct elf_file *elf = elf_file__open_memory(img.data, img.sz);

	NEED(elf);
	check_ranges(elf);
	check_proofs(elf);
	elf_file__free(elf);
	free(img.data);
	return 0;
}
