/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capstone for x86-64, with all that it tells of an instruction. Its tables take the dynamic linker
 * 8 ms, in each process that is started: so it is loaded by those that read code, and by no others.
 */
#ifndef TARGET_DISASSEMBLER_H
#define TARGET_DISASSEMBLER_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct disassembler {
	csh handle;
	cs_insn *insn; /* the one that was decoded last */
};

/* Loads the library, as the first one who opens one does, too: for a process that will not be able to
 * any more. 0 or -ENOENT. */
int disassembler_load(void);

/* 0 or -errno, with nothing in *ret; -ENOENT: there is no library. */
int disassembler__open(struct disassembler *ret);
/* Also of one that is all zero. */
void disassembler__close(struct disassembler *d);

/* As the functions of these names in capstone.h. */
bool disassembler__decode(const struct disassembler *d, const uint8_t **code, size_t *sz,
			  uint64_t *addr);
bool disassembler__in_group(const struct disassembler *d, unsigned int group);
int disassembler__regs(const struct disassembler *d, cs_regs read, uint8_t *read_cnt,
		       cs_regs written, uint8_t *written_cnt);

#endif
