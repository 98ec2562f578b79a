/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What bpfprof does with a foreign ELF file, for the fuzzers: each reader is asked for all that it
 * gives, and what it gives has to keep what its header promises.
 */
#ifndef TESTS_FUZZ_PARSERS_H
#define TESTS_FUZZ_PARSERS_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

/* Where nothing else is said, counts are 0 after an error. */
struct parsers_found {
	/* 0 or -errno */
	int unwind_err, symbols_err, dwarf_err, names_err, usdt_err, allocators_err;
	uint64_t rows;
	size_t addresses;  /* asked for */
	size_t symbols;	   /* of them have a name by symbol */
	size_t dwarf;	   /* by DWARF */
	size_t usdt_sites; /* of allocators */
	size_t allocators; /* probe points */
};

/* End the program if a promise is broken. */
#define NEED(condition)                   \
	do {                              \
		if (!(condition))         \
			__builtin_trap(); \
	} while (0)

void parsers_frame(const struct elf_file *elf); /* segments, sections, build id, debug link */
void parsers_unwind(struct elf_file *elf, struct parsers_found *ret);
void parsers_symbols(const struct elf_file *elf, struct parsers_found *ret);
void parsers_dwarf(const struct elf_file *elf, struct parsers_found *ret);
void parsers_names(const struct elf_file *elf, struct parsers_found *ret); /* of both sources */
void parsers_usdt(const struct elf_file *elf, struct parsers_found *ret);
/* Where probes go that are named as in the seeds. */
void parsers_sites(const struct elf_file *elf);
void parsers_allocators(const struct elf_file *elf, struct parsers_found *ret);

#endif
