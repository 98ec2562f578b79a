/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a symbol without a size (a label) may name an address behind it. Assembly code has such:
 * where the function ends is not said, and what follows, as far as the next symbol, may be any
 * number of others whose symbols were stripped.
 */
#ifndef TARGET_LABEL_PROOF_H
#define TARGET_LABEL_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct label_claim {
	uint64_t vaddr, label; /* label <= vaddr < end */
	uint64_t end;	       /* of what may be the label's: the next symbol, its section's end */
	bool is_function;      /* by the symbol's type; else it may mark a place */
	bool proved;	       /* the answer */
};

/*
 * Decides on cnt claims, of which vaddr and label ascend. One is proved if
 *  - an FDE begins at the label and is around the address, or
 *  - no FDE is around either, and control reaches the address from the label (target/code_flow.h)
 *    before the next FDE and before the first address behind the label that is called directly from
 *    anywhere in the object.
 * debug: the file of separate debug information, or NULL. 0 or -ENOMEM; what cannot be read proves
 * nothing.
 */
int label_proof(const struct elf_file *elf, const struct elf_file *debug,
		struct label_claim *claims, size_t cnt);

#endif
