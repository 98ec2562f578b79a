/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table that Go's runtime keeps of its functions, .gopclntab, of programs of Go 1.16 to 1.27 for
 * x86-64: where they begin, what they are called, and by address how far the stack pointer has
 * moved, file, line and what else the compiler notes. It is there in every program, stripped or not.
 * Source: runtime/symtab.go, runtime/runtime2.go (_func), cmd/link/internal/ld/pcln.go.
 *
 * The file is somebody else's: nothing is read outside of the table, and nothing that it can claim
 * makes a loop endless.
 */
#ifndef TARGET_GOPCLNTAB_H
#define TARGET_GOPCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;
struct gopclntab;

/* Bits of gopclntab_func.flags (internal/abi/symtab.go); 1.16 has none of them. */
enum gopclntab_flag {
	GOPCLNTAB_TOPFRAME = 1, /* the outermost function of a stack */
	GOPCLNTAB_SPWRITE = 2,	/* sets the stack pointer: pcsp does not hold behind that */
	GOPCLNTAB_ASM = 4,
};

/* Numbers in _func.pcdata and _func.funcdata (internal/abi/symtab.go). */
#define GOPCLNTAB_PCDATA_INLINE 2
#define GOPCLNTAB_FUNCDATA_INLINE 3

struct gopclntab_func {
	uint64_t start, end; /* virtual addresses; the end is the next function's start */
	const char *name;    /* borrowed; ends with the table at the latest: may be very long */
	uint32_t pcsp, pcfile, pcln; /* for gopclntab_values__init(); 0: none */
	uint32_t cu;		     /* of its table of files; UINT32_MAX: none */
	int32_t start_line;	     /* 0: unknown (before 1.20) */
	uint8_t func_id;	     /* internal/abi.FuncID; the numbers differ between releases */
	uint8_t flags;
	uint32_t npcdata, nfuncdata;
	uint64_t arrays; /* offset of the numbers of pcdata */
};

/*
 * Reads the table; elf is not needed afterwards. NULL with errno: ENOENT if this is no program of
 * Go, or of a release that is not known; EBADMSG if the table contradicts itself or the file, E2BIG
 * if it is larger than 256 MiB, ENOMEM, or what reading failed with.
 */
struct gopclntab *gopclntab__open(const struct elf_file *elf);
void gopclntab__free(struct gopclntab *g);

/* The first release, 1.n, of the table's form: 16, 18 or 20. */
int gopclntab__layout(const struct gopclntab *g);
/* The release that made the file, as it says itself; 0 if it does not. */
int gopclntab__minor(const struct gopclntab *g);

/* Functions ascend by start, and lie in one executable segment. C functions are among them if Go's
 * own linker has linked them: without any tables. */
size_t gopclntab__cnt(const struct gopclntab *g);
/* False if i is too large, or the function's record is damaged. */
bool gopclntab__func(const struct gopclntab *g, size_t i, struct gopclntab_func *ret);
/* The number of the function around an address; false if it is before the first or behind the
 * last. */
bool gopclntab__find(const struct gopclntab *g, uint64_t vaddr, size_t *ret);

/* The table number n of a function's further ones by address, for gopclntab_values__init(); 0:
 * none. */
uint32_t gopclntab__pcdata(const struct gopclntab *g, const struct gopclntab_func *f, uint32_t n);
/* The virtual address of a function's data number n, which lies outside of the table up to 1.25; 0:
 * none, or it is not known where. */
uint64_t gopclntab__funcdata(const struct gopclntab *g, const struct gopclntab_func *f, uint32_t n);

/* The name at an offset, as records have it, and a file by its number in a function's table of
 * files, both as gopclntab_func.name is; NULL: there is none. */
const char *gopclntab__name(const struct gopclntab *g, uint32_t offset);
const char *gopclntab__file(const struct gopclntab *g, const struct gopclntab_func *f,
			    int32_t number);

/* ---- values by address ---- */

struct gopclntab_values {
	const uint8_t *p, *end; /* p is NULL at the end */
	uint64_t pc, limit;
	uint32_t value;
	bool first;
};

/* Begins one of a function's tables. An offset of 0, or outside of the table, has no values. */
void gopclntab_values__init(struct gopclntab_values *v, const struct gopclntab *g,
			    const struct gopclntab_func *f, uint32_t offset);
/*
 * The next value, which holds for [start, end): ranges ascend without gaps from the function's
 * start, and end before the function does where that is followed by padding. False at the end, also
 * where the table is damaged: each range has at least one byte.
 */
bool gopclntab_values__next(struct gopclntab_values *v, uint64_t *ret_start, uint64_t *ret_end,
			    int32_t *ret_value);
/* The value at an address of the function; -1, as the runtime has it, where there is none. */
int32_t gopclntab__value(const struct gopclntab *g, const struct gopclntab_func *f, uint32_t offset,
			 uint64_t vaddr);

#endif
