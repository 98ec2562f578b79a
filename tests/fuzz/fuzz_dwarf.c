/* SPDX-License-Identifier: BSD-2-Clause */
/* DWARF of a whole ELF file, which libdw reads from a descriptor, and its symbols. It is not
 * instrumented: what it does wrong shows where it reads or writes past what was allocated by calls
 * of libc. */
#include <sys/mman.h>
#include <unistd.h>

#include "target/elf_file.h"
#include "tests/fuzz/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	static int fd = -1;
	struct parsers_found found = {};
	struct elf_file *elf;

	if (fd < 0)
		fd = memfd_create("input", MFD_CLOEXEC);
	NEED(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, data, sz, 0) == (ssize_t)sz);
	elf = elf_file__open(fd);
	if (elf)
		parsers_names(elf, &found);
	elf_file__free(elf);
	return 0;
}
