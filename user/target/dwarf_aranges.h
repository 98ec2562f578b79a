/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which units can hold some addresses, as .debug_aranges says it (DWARF 5, 6.1.2). To ask each unit of a
 * C library for its ranges takes longer than all else that an address needs.
 *
 * A unit that is listed there is taken to be listed with all of its code, as compilers and assemblers do
 * that write the section at all; of a unit that is not listed nothing is known.
 */
#ifndef TARGET_DWARF_ARANGES_H
#define TARGET_DWARF_ARANGES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwarf_aranges {
	struct dwarf_aranges_unit {
		uint64_t off; /* of its header in .debug_info */
		bool holds;   /* one of the addresses */
	} * units;	      /* by off, each once */
	size_t cnt, cap;
};

/* section: may be NULL; what is damaged in it says nothing. vaddrs: ascending. 0 or -ENOMEM; to be released
 * by dwarf_aranges__done in either case. */
int dwarf_aranges__read(struct dwarf_aranges *a, const Elf_Data *section, const uint64_t *vaddrs,
			size_t cnt);

/* Does the unit whose header is at off hold none of them? */
bool dwarf_aranges__rules_out(const struct dwarf_aranges *a, uint64_t off);

void dwarf_aranges__done(struct dwarf_aranges *a);

#endif
