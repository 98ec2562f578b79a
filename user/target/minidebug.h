/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The symbols that a stripped file still has in .gnu_debugdata, compressed by xz, as all files of
 * Fedora and RHEL do: an ELF file with a .symtab of those that .dynsym has not.
 */
#ifndef TARGET_MINIDEBUG_H
#define TARGET_MINIDEBUG_H

struct elf_file;

struct minidebug {
	void *image;
	struct elf_file *elf; /* NULL: none is open */
};

/*
 * What it expands to, and takes for that, is bounded, whatever it says. 0; -ENOENT if there is none;
 * -E2BIG, -EBADMSG or -ENOEXEC if it cannot be read, -ENOMEM. To be closed after 0 only.
 */
int minidebug__open(struct minidebug *m, const struct elf_file *elf);
void minidebug__close(struct minidebug *m);

#endif
