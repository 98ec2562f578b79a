/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which x86-64 code belongs to a function for sure whose first instruction is known, but whose end
 * is not: what control reaches from there without entering another function. Decoded by capstone;
 * the work is bounded whatever the bytes are.
 */
#ifndef TARGET_CODE_FLOW_H
#define TARGET_CODE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CODE_FLOW_MAX_SZ 32768U	       /* bytes behind a function's start that are looked at */
#define CODE_FLOW_MAX_INSNS (1U << 18) /* instructions that one code_flow decodes */

struct code_flow;
struct elf_file;

/* Borrows elf. NULL with errno. */
struct code_flow *code_flow__new(const struct elf_file *elf);
void code_flow__free(struct code_flow *f);

/*
 * Follows the code that begins at start, up to end, exclusive, which is above it. What cannot be
 * read or decoded is not reached. It stays so until the next call.
 *
 * Control goes on behind an instruction and to the target of a direct jump. It does not
 *  - behind a call or a system call that may not return, unless no function can begin there: code that uses
 *    the result, or takes its stack pointer from a register that is the caller's;
 *  - through padding to where a function may begin, with nothing on the stack;
 *  - by a jump that may leave the function, as tail calls do: with nothing on the stack, to where a
 *    function may begin;
 *  - behind an indirect jump.
 */
void code_flow__follow(struct code_flow *f, uint64_t start, uint64_t end);

/* Does the byte at vaddr belong to an instruction that was reached? */
bool code_flow__reaches(const struct code_flow *f, uint64_t vaddr);

#endif
