/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts a copy of its code in the place of what the file has mapped there, as programs do that want
 * huge pages for it. Then main outer middle spin, by mode:
 *   whole    all of the code, moved there at once from other memory
 *   middle   all but the first and the last page
 *   memfd    all of it, in a memfd
 *   file     all of it, in a file without a name, as those of huge pages are
 *   running  all of it, at SIGUSR1: memory first, the code copied into it after that
 * and main outer steps, main outer changed in turn, where `changed` is no more what the file has:
 *   changed  from the start
 *   patched  from SIGUSR1 on, in a copy that was the same until then
 */
#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>

#include "prog.h"

#define PAGE 4096UL

/* More than is compared of a copy before it is believed, before and behind what runs. */
__asm__(".text\n"
	"	.fill 524288, 8, 0x8877665544332211\n"
	".section .text.tail, \"ax\"\n"
	"	.fill 524288, 8, 0x8877665544332211\n"
	".text\n");

/*
 * void fill(char *at, size_t sz, const char *from): maps memory at `at` and copies the code to it.
 * It is copied itself before, and runs there: mmap (9), mprotect (10).
 */
extern const char fill_begin[], fill_end[];
__asm__(".text\n"
	"fill_begin:\n"
	"	push %r12; push %r13; push %r14\n"
	"	mov %rdi, %r12; mov %rsi, %r13; mov %rdx, %r14\n"
	"	mov $9, %eax; mov $7, %edx; mov $0x32, %r10d; mov $-1, %r8; xor %r9d, %r9d\n"
	"	syscall\n"
	"	mov %r12, %rdi; mov %r14, %rsi; mov %r13, %rcx\n"
	"	rep movsb\n"
	"	mov $10, %eax; mov %r12, %rdi; mov %r13, %rsi; mov $5, %edx\n"
	"	syscall\n"
	"	pop %r14; pop %r13; pop %r12\n"
	"	ret\n"
	"fill_end:\n");

struct text {
	char *start;
	size_t sz;
};

static void need(int condition)
{
	if (!condition)
		_exit(1);
}

/* The program's own code, which is what it tells of first. */
static int find_text(struct dl_phdr_info *info, size_t sz, void *ctx)
{
	struct text *t = ctx;

	(void)sz;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + ph->p_vaddr;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X))
			continue;
		t->start = (char *)(start & ~(PAGE - 1));
		t->sz = (start + ph->p_filesz - (uintptr_t)t->start + PAGE - 1) & ~(PAGE - 1);
	}
	return 1;
}

static void *new_memory(size_t sz)
{
	void *mem = mmap(NULL, sz, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	need(mem != MAP_FAILED);
	return mem;
}

static char *copy_of(const struct text *t)
{
	return memcpy(new_memory(t->sz), t->start, t->sz);
}

static void move_there(const struct text *t, char *copy)
{
	need(!mprotect(copy, t->sz, PROT_READ | PROT_EXEC));
	need(mremap(copy, t->sz, t->sz, MREMAP_MAYMOVE | MREMAP_FIXED, t->start) == t->start);
}

static void map_file(const struct text *t, int fd)
{
	need(fd >= 0 && write(fd, t->start, t->sz) == (ssize_t)t->sz);
	need(mmap(t->start, t->sz, PROT_READ | PROT_EXEC, MAP_FIXED | MAP_PRIVATE, fd, 0) ==
	     t->start);
}

static void fill_there(const struct text *t)
{
	char *stub = new_memory(PAGE), *copy = copy_of(t);

	memcpy(stub, fill_begin, fill_end - fill_begin);
	need(!mprotect(stub, PAGE, PROT_READ | PROT_EXEC));
	((void (*)(char *, size_t, const char *))stub)(t->start, t->sz, copy);
}

static volatile unsigned long sink;

static NOIPA void steps(void)
{
	for (unsigned long i = 0; i < 200000; i++)
		sink += i;
}

/* On a page of its own; the number that is stored is what will be another one. */
extern char changed_byte[];
static NOIPA __attribute__((aligned(4096))) void changed(void)
{
	/* a store takes a tenth of what a sum takes */
	for (unsigned long i = 0; i < 2000000; i++)
		__asm__ volatile(
			".globl changed_byte\n\t"
			"movb $1, %0\n"
			"changed_byte = . - 1"
			: "=m"(sink));
}

static NOIPA __attribute__((aligned(4096))) void middle(void)
{
	spin();
	NO_TAIL_CALL();
}

static NOIPA void outer(int in_turn)
{
	while (in_turn) {
		steps();
		changed();
	}
	middle();
	NO_TAIL_CALL();
}

/* In a copy: the byte of `changed` is another. */
static void change(const struct text *t, char *copy)
{
	copy[changed_byte - t->start] = 2;
}

/* The same in the code that runs. */
static void patch(void)
{
	char *page = (char *)((uintptr_t)changed_byte & ~(PAGE - 1));

	need(!mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC));
	*changed_byte = 2;
	need(!mprotect(page, PAGE, PROT_READ | PROT_EXEC));
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);
	int is_changed = !strcmp(mode, "changed"), is_patched = !strcmp(mode, "patched");
	struct text t = { 0 };
	char *copy;

	dl_iterate_phdr(find_text, &t);
	if (!strcmp(mode, "middle")) {
		t.start += PAGE;
		t.sz -= 2 * PAGE;
	}
	if (!strcmp(mode, "running")) {
		prog_ready_to_go();
		fill_there(&t);
	} else if (!strcmp(mode, "memfd")) {
		map_file(&t, memfd_create("text", MFD_CLOEXEC));
	} else if (!strcmp(mode, "file")) {
		map_file(&t, open("/tmp", O_RDWR | O_TMPFILE | O_CLOEXEC, 0700));
	} else {
		copy = copy_of(&t);
		if (is_changed)
			change(&t, copy);
		move_there(&t, copy);
	}
	if (is_patched) {
		prog_ready_to_go();
		patch();
	} else if (strcmp(mode, "running")) {
		prog_ready();
	}
	outer(is_changed || is_patched);
	return 0;
}
