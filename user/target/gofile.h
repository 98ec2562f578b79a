/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where in an ELF file Go's linker has put what Go's runtime reads of its own program: the table of
 * functions (runtime.pclntab, from its pcHeader on), the moduledata that refers to it, the version.
 * Forms: runtime/symtab.go and debug/buildinfo of Go 1.16 to 1.27.
 *
 * strip and -s leave all of it; section names may be gone, or swallowed: GNU ld puts
 * .data.rel.ro.gopclntab of a cgo program into .data.rel.ro.
 */
#ifndef TARGET_GOFILE_H
#define TARGET_GOFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GOFILE_MAX_TABLE (256U << 20) /* bytes of the table that are read */
#define GOFILE_MAX_HEADER 72
#define GOFILE_MODULEDATA_WORDS 49

struct elf_file;

/* The pcHeader. Offsets are in bytes from it, ascend in this order, and lie in the table; a
 * region ends where the next begins, the last one with the table. */
struct gofile_header {
	int layout;	/* the first release of 1.x whose form this is: 16, 18 or 20 */
	uint64_t nfunc; /* of functions; the functab has one entry more, and lies in the table */
	uint64_t text;	/* layouts 18 and 20; 0: see the moduledata (1.26) */
	uint64_t names, cus, files, pctab, functab;
};

struct gofile_table {
	uint64_t vaddr, offset,
		sz;   /* of the pcHeader; sz: up to the end of its section or segment */
	bool by_scan; /* no section named it: a moduledata has to refer to it */
	struct gofile_header header;
};

/* False if the bytes, sz in all of a table that begins with them, are no pcHeader of x86-64. */
bool gofile_header__parse(struct gofile_header *h, const uint8_t bytes[GOFILE_MAX_HEADER],
			  uint64_t sz);

/* The first table at file offset `from` or behind it. 0, -ENOENT, or -errno of reading. */
int gofile__find_table(const struct elf_file *elf, uint64_t from, struct gofile_table *ret);

/* What is read of moduledata, by the index of a word. The layout of the first 23 has not changed
 * since 1.16. */
enum gofile_word {
	GOFILE_HEADER = 0,
	GOFILE_NAMES = 1,
	GOFILE_FUNCTAB_LEN = 17,
	GOFILE_MINPC = 20,
	GOFILE_MAXPC = 21,
	GOFILE_TEXT = 22,
	GOFILE_FUNCDATA_18 = 38, /* go:func.*, of 1.18 and 1.19 */
	GOFILE_FUNCDATA_20 = 40, /* of 1.20 to 1.25 */
};

/* The words of the moduledata that refers to the table. 0, -ENOENT if there is none. */
int gofile__read_moduledata(const struct elf_file *elf, const struct gofile_table *table,
			    uint64_t ret_words[GOFILE_MODULEDATA_WORDS]);

/* The n of Go 1.n that made the file, as .go.buildinfo has it; 0 if it cannot be told. */
int gofile__minor(const struct elf_file *elf);

#endif
