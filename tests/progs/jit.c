/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code without unwind tables in an anonymous page, as a JIT compiler writes it.
 *   fp       two functions that keep frame pointers: main call_code (anon) (anon)
 *   leaf     one function that has pushed nothing, rbp holds no address: main call_code (anon)
 *   lost     the same after a push: nothing says where the return address is, the stack must end in
 *            a marker
 *   cyclic   two functions, the saved rbp points to itself; the stack must end in a marker, not go
 *            round
 *   inner    a function that has pushed nothing, called by one that keeps a frame pointer: main
 *            call_code (anon) (anon)
 *   wild     rbp points to addresses of code that nothing has called from: a marker
 *   zero     two functions, rbp is 0 in the outer one, which proves nothing: a marker
 *   null     rbp points to a return address of 0: a marker
 *   map      as fp, and names them jit_outer and jit_inner in /tmp/perf-PID.map
 *   memfd    the same in a memfd, of which the first page is no code
 */
#include <stdio.h>
#include <sys/mman.h>

#include "prog.h"

/* push %rbp; mov %rsp,%rbp; call 1f; pop %rbp; ret; 1: push %rbp; mov %rsp,%rbp; 2: pause; jmp 2b
 */
static const unsigned char fp_code[] = { 0x55, 0x48, 0x89, 0xe5, 0xe8, 2,    0,	   0,	 0,   0x5d,
					 0xc3, 0x55, 0x48, 0x89, 0xe5, 0xf3, 0x90, 0xeb, 0xfc };
/* mov $0x123,%ebp; 1: pause; jmp 1b */
static const unsigned char leaf_code[] = { 0xbd, 0x23, 1, 0, 0, 0xf3, 0x90, 0xeb, 0xfc };
/* mov $0x123,%ebp; push %rbp; 1: pause; jmp 1b */
static const unsigned char lost_code[] = { 0xbd, 0x23, 1, 0, 0, 0x55, 0xf3, 0x90, 0xeb, 0xfc };
/* call 1f; 1: push %rbp; mov %rsp,%rbp; mov %rbp,(%rbp); 2: pause; jmp 2b */
static const unsigned char cyclic_code[] = { 0xe8, 0,	 0,    0,    0,	   0x55, 0x48, 0x89, 0xe5,
					     0x48, 0x89, 0x6d, 0x00, 0xf3, 0x90, 0xeb, 0xfc };
/* push %rbp; mov %rsp,%rbp; call 1f; pop %rbp; ret; 1: pause; jmp 1b */
static const unsigned char inner_code[] = { 0x55, 0x48, 0x89, 0xe5, 0xe8, 2,	0,   0,
					    0,	  0x5d, 0xc3, 0xf3, 0x90, 0xeb, 0xfc };
/* lea 1f(%rip),%rax; 1: push %rax (four times); mov %rsp,%rbp; 2: pause; jmp 2b */
static const unsigned char wild_code[] = { 0x48, 0x8d, 0x05, 0,	   0,	 0,    0,    0x50, 0x50,
					   0x50, 0x50, 0x48, 0x89, 0xe5, 0xf3, 0x90, 0xeb, 0xfc };
/* xor %ebp,%ebp; call 1f; 1: push %rbp; mov %rsp,%rbp; 2: pause; jmp 2b */
static const unsigned char zero_code[] = { 0x31, 0xed, 0xe8, 0,	   0,	 0,    0,   0x55,
					   0x48, 0x89, 0xe5, 0xf3, 0x90, 0xeb, 0xfc };
/* push $0; push %rbp; mov %rsp,%rbp; 1: pause; jmp 1b */
static const unsigned char null_code[] = {
	0x6a, 0, 0x55, 0x48, 0x89, 0xe5, 0xf3, 0x90, 0xeb, 0xfc
};

static const struct {
	const char *mode;
	const unsigned char *code;
	size_t sz;
} codes[] = {
	{ "leaf", leaf_code, sizeof(leaf_code) },
	{ "lost", lost_code, sizeof(lost_code) },
	{ "cyclic", cyclic_code, sizeof(cyclic_code) },
	{ "inner", inner_code, sizeof(inner_code) },
	{ "wild", wild_code, sizeof(wild_code) },
	{ "zero", zero_code, sizeof(zero_code) },
	{ "null", null_code, sizeof(null_code) },
	{ "", fp_code, sizeof(fp_code) }, /* all other modes */
};

static NOIPA void call_code(void (*code)(void))
{
	code();
	__asm__ volatile("" : : : "memory", "rbx", "r12");
}

#define OUTER_SZ 11 /* bytes of the first function of fp_code */

/* tools/perf/Documentation/jit-interface.txt */
static void write_map(const char *code)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	f = fopen(path, "w");
	if (!f)
		_exit(1);
	fprintf(f, "%lx %zx jit_outer\n%lx %zx jit_inner\n", (unsigned long)code, (size_t)OUTER_SZ,
		(unsigned long)code + OUTER_SZ, sizeof(fp_code) - OUTER_SZ);
	fclose(f);
}

/* A page to write to: the second one of a memfd, or its own. */
static char *new_page(int memfd)
{
	int flags = memfd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;

	if (memfd >= 0 && ftruncate(memfd, 8192))
		return MAP_FAILED;
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, memfd, memfd < 0 ? 0 : 4096);
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);
	size_t i = 0;
	char *page = new_page(strcmp(mode, "memfd") ? -1 : memfd_create("jit", MFD_CLOEXEC));

	if (page == MAP_FAILED)
		return 1;
	/* not at the first byte, for a page begins with nothing before it */
	page += 64;
	while (codes[i].mode[0] && strcmp(mode, codes[i].mode))
		i++;
	memcpy(page, codes[i].code, codes[i].sz);
	if (mprotect(page - 64, 4096, PROT_READ | PROT_EXEC))
		return 1;
	if (!strcmp(mode, "map") || !strcmp(mode, "memfd"))
		write_map(page);
	prog_ready();
	call_code((void (*)(void))page);
	return 0;
}
