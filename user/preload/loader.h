/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dynamic linker that starts a program. One that comes with another C library, such as an older one in
 * a bundle, may find that it lacks what the preload library needs, and ends the program. Only programs of
 * the one that has started ourselves are known to load it.
 *
 * Nothing here is a cancellation point, allocates, or takes a lock.
 */
#ifndef PRELOAD_LOADER_H
#define PRELOAD_LOADER_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOADER_MAX_HEADERS 64 /* of a program */
#define LOADER_MAX_DYNAMIC 512
#define LOADER_PATH 256 /* that a path may take with its end */

/* A file, however it is named; 0, 0: none. */
struct loader {
	dev_t dev;
	ino_t ino;
};

static inline bool loader_is(const struct loader *l, const struct stat *st)
{
	return st->st_dev == l->dev && st->st_ino == l->ino;
}

static inline bool loader_read(int fd, uint64_t at, void *buf, size_t sz)
{
	return syscall(SYS_pread64, fd, buf, sz, at) == (long)sz;
}

/* That of this process, as it is found by its name now. */
static inline struct loader loader_own(void)
{
	const Elf64_Phdr *p = (const Elf64_Phdr *)getauxval(AT_PHDR);
	unsigned long cnt = getauxval(AT_PHNUM);
	const char *path = NULL;
	uintptr_t bias = 0;
	struct stat st;

	for (unsigned long i = 0; p && i < cnt; i++)
		if (p[i].p_type == PT_PHDR)
			bias = (uintptr_t)p - p[i].p_vaddr;
	for (unsigned long i = 0; p && i < cnt; i++)
		if (p[i].p_type == PT_INTERP)
			path = (const char *)(bias + p[i].p_vaddr);
	if (!path || stat(path, &st))
		return (struct loader){ 0 };
	return (struct loader){ .dev = st.st_dev, .ino = st.st_ino };
}

/* Does a program name its dynamic linker here, and is it another one? */
static inline bool loader_named_differs(int fd, const Elf64_Phdr *interp, const struct loader *own)
{
	char path[LOADER_PATH];
	struct stat st;

	if (!interp->p_filesz || interp->p_filesz > sizeof(path) ||
	    !loader_read(fd, interp->p_offset, path, interp->p_filesz) ||
	    path[interp->p_filesz - 1] || stat(path, &st))
		return true;
	return !loader_is(own, &st);
}

/* Has what is executed itself the name of a library? So dynamic linkers have, that are told the program by
 * an argument. */
static inline bool loader_is_library(int fd, const Elf64_Phdr *dynamic)
{
	Elf64_Dyn d;

	for (int i = 0; i < LOADER_MAX_DYNAMIC; i++) {
		if (!loader_read(fd, dynamic->p_offset + i * sizeof(d), &d, sizeof(d)) ||
		    d.d_tag == DT_NULL)
			return false;
		if (d.d_tag == DT_SONAME)
			return true;
	}
	return false;
}

enum loader_of {
	LOADER_OWN,   /* ours, or none: a static program, or what is no ELF file */
	LOADER_OTHER, /* or it cannot be told */
	LOADER_32_BIT,
	LOADER_MACHINE, /* for another machine, emulated */
};

/* Who starts the program in fd, if own starts us. */
static inline enum loader_of loader_of(int fd, const struct loader *own)
{
	Elf64_Phdr p, dynamic = { 0 };
	struct stat st;
	Elf64_Ehdr e;

	if (!loader_read(fd, 0, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG))
		return LOADER_OWN;
	if (e.e_ident[EI_CLASS] == ELFCLASS32)
		return LOADER_32_BIT;
	if (e.e_machine != EM_X86_64 || e.e_ident[EI_DATA] != ELFDATA2LSB)
		return LOADER_MACHINE;
	if (e.e_phentsize != sizeof(p) || e.e_phnum > LOADER_MAX_HEADERS)
		return LOADER_OTHER;
	for (int i = 0; i < e.e_phnum; i++) {
		if (!loader_read(fd, e.e_phoff + i * sizeof(p), &p, sizeof(p)))
			return LOADER_OTHER;
		if (p.p_type == PT_INTERP)
			return loader_named_differs(fd, &p, own) ? LOADER_OTHER : LOADER_OWN;
		if (p.p_type == PT_DYNAMIC)
			dynamic = p;
	}
	if (!dynamic.p_filesz || !loader_is_library(fd, &dynamic))
		return LOADER_OWN;
	return fstat(fd, &st) || !loader_is(own, &st) ? LOADER_OTHER : LOADER_OWN;
}

#endif
