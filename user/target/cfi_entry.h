/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entries of a section of call frame information, CIEs and FDEs: where each is, and what a CIE
 * says before its instructions (DWARF 5, 6.4.1; LSB Core 10.6.1 for .eh_frame).
 */
#ifndef TARGET_CFI_ENTRY_H
#define TARGET_CFI_ENTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "target/cfi.h"

struct cfi_entry {
	uint64_t pos; /* in its section */
	bool is_cie;
	uint64_t cie_pos;	/* of an FDE; may lead anywhere */
	struct cfi_reader body; /* behind the id; bad if the entry ends before */
};

/*
 * The entry at *pos, at most the size of the section, or the first one behind entries of length 0;
 * *pos is behind it then. 0; -ENOENT at the end; -EBADMSG if the rest cannot be made sense of.
 */
int cfi_entry__read(const struct cfi_section *s, uint64_t *pos, struct cfi_entry *ret);

struct cfi_cie_head {
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra;	 /* register of the return address */
	uint8_t fde_enc; /* DW_EH_PE_… of an FDE's addresses */
	bool has_size;	 /* augmentation 'z': FDEs carry augmentation data, with its length */
	bool signal;	 /* augmentation 'S' */
};

/* Reads a CIE's body up to its initial instructions, where *in is then. False if there is something
 * that is not known: it may change any meaning. */
bool cfi_entry__parse_cie(struct cfi_reader *in, struct cfi_cie_head *ret);

#endif
