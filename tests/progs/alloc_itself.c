/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that samples its allocations by itself and tells of them at the USDT probes of the OpenTelemetry
 * design: blocks of a pool of its own. What it asks libc for besides is none of that.
 *
 * `alloc_itself SECONDS [now]` prints "ready", waits for SIGUSR1 (with `now` it does not), takes 10 blocks of
 * 1000 bytes from its pool and 10 from libc, gives 3 of the pool back, and does the same again: prints "ready",
 * and waits for SIGUSR1 to end.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "prog.h"

#define BLOCKS 10
#define GIVEN_BACK 3
#define BLOCK_SZ 1000

/* As sys/sdt.h makes them. */
#define SITE(name, args)                                                                        \
	"990: nop\n"                                                                            \
	".pushsection .note.stapsdt,\"\",\"note\"; .balign 4; .4byte 992f-991f, 994f-993f, 3\n" \
	"991: .asciz \"stapsdt\"\n992: .balign 4\n"                                             \
	"993: .8byte 990b, _.stapsdt.base, 0\n"                                                 \
	".asciz \"otel_memory\"; .asciz \"" name "\"; .asciz \"" args                           \
	"\"\n"                                                                                  \
	"994: .balign 4; .popsection"
__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
	".weak _.stapsdt.base; .hidden _.stapsdt.base; _.stapsdt.base: .space 1\n.popsection");

static char pool[BLOCKS][BLOCK_SZ];

static NOIPA void pool_allocates(int i)
{
	uint64_t sz = BLOCK_SZ;

	__asm__ volatile(SITE("alloc", "8@%%rdi 8@%%rsi 8@%%rdx")
			 :
			 : "D"(pool[i]), "S"(sz), "d"(sz)
			 : "memory");
}

static NOIPA void pool_frees(int i)
{
	__asm__ volatile(SITE("free", "8@%%rdi") : : "D"(pool[i]) : "memory");
}

static NOIPA void libc_allocates(void)
{
	void *p = malloc(BLOCK_SZ);

	__asm__ volatile("" : : "r"(p));
}

int main(int argc, char **argv)
{
	bool waits = strcmp(prog_start(argc, argv), "now");

	if (waits)
		prog_ready_to_go();
	for (int i = 0; i < BLOCKS; i++) {
		pool_allocates(i);
		libc_allocates();
	}
	for (int i = 0; i < GIVEN_BACK; i++)
		pool_frees(i);
	if (waits)
		prog_ready_to_go();
	return 0;
}
