/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where to put probes on the memory allocators of an object: glibc, musl, jemalloc, tcmalloc,
 * mimalloc, the C++ operators, and copies of them with a prefix, found by the names of their
 * functions; and the USDT probes otel_memory:alloc and otel_memory:free of programs that sample
 * their allocations themselves.
 *
 * A breakpoint on an instruction that the kernel emulates (push, nop, jmp, jcc, call) costs some
 * 0.75 us in a virtual machine, on one that it has to single-step 10 to 15 us. So the probe is put
 * on the first emulated instruction of a function that is reached by every call, exactly once, with
 * the arguments still in their registers and, where the return is wanted too, with rsp still
 * pointing to the return address.
 */
#ifndef TARGET_ALLOCATORS_H
#define TARGET_ALLOCATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

enum allocator_group {
	ALLOCATOR_ALLOC,      /* entry and return are of interest */
	ALLOCATOR_FREE,	      /* entry only */
	ALLOCATOR_USDT_ALLOC, /* otel_memory:alloc(pointer, size, weighted bytes) */
	ALLOCATOR_USDT_FREE,  /* otel_memory:free(pointer) */
};

struct allocator_point {
	enum allocator_group group;
	uint64_t offset;  /* in the file, of the instruction to probe */
	uint64_t ref_ctr; /* in the file, of a USDT probe's semaphore; 0: none */
	uint64_t cookie;  /* see bpf/bpfprof.h: operation, or place of USDT arguments */
	uint64_t vaddr;	  /* of the function, or of the USDT site */
	uint32_t skew;	  /* bytes from the function's start to the probe */
	bool emulated;	  /* false: every hit will be single-stepped */
	char name[64];	  /* the symbol: "malloc"; of aliases the plainest */
	char insn[40];	  /* the probed instruction, "push r12" */
};

struct allocator_points {
	struct allocator_point *points; /* by offset, each offset once */
	size_t cnt;
};

#define ALLOCATORS_MAX_POINTS 512 /* of one object; more are left out */

/*
 * Finds the probe points of an object. None found is no error (cnt 0). 0 or -errno; the caller
 * releases *ret by allocator_points__done.
 */
int allocators_find(const struct elf_file *elf, struct allocator_points *ret);
void allocator_points__done(struct allocator_points *p);

/* Is this the name of a function that only serves to allocate ("malloc", "_Znwm", "je_calloc")?
 * system_name: as the linker has it. */
bool allocators_is_name(const char *system_name);

/* The names looked for, for people: "malloc, free, calloc, ... with the prefixes je_, ...". */
const char *allocators_names(void);

#endif
