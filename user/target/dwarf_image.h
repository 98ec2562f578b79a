/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ELF file in memory that has debug sections and nothing else, for libdw to read: where the file
 * itself has them in a way that libelf does not know.
 */
#ifndef TARGET_DWARF_IMAGE_H
#define TARGET_DWARF_IMAGE_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

struct dwarf_image {
	uint8_t *data;	/* NULL: there is none */
	size_t sz, cap; /* bytes: that it has, that there is room for */
};

struct dwarf_image_section {
	const char *name;
	const void *data;
	size_t sz;
};

/* An image of cnt sections, whose bytes are copied: those of the first one stand right behind the ELF header.
 * 0 or -ENOMEM. */
int dwarf_image__make(struct dwarf_image *i, const struct dwarf_image_section *sections,
		      size_t cnt);

/*
 * An image of the file's debug sections that names and lines need, expanded: from zlib, zstd, and
 * GNU's older form (.zdebug_…). max: bytes of all of them. 0; -E2BIG, -EBADMSG, -ENOMEM, -errno.
 */
int dwarf_image__expand(struct dwarf_image *i, const struct elf_file *elf, uint64_t max);

void dwarf_image__done(struct dwarf_image *i);

#endif
