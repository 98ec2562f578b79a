/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An ELF64 x86-64 file of somebody else's, which may be hostile: read with pread only (a mapping of
 * a file that is truncated kills the reader with SIGBUS), every offset and size checked against the
 * file, sizes capped.
 */
#ifndef TARGET_ELF_FILE_H
#define TARGET_ELF_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELF_FILE_MAX_SECTION (1U << 30) /* bytes of one section, expanded, that anyone may want */
#define ELF_FILE_MAX_SEGMENTS 256
#define ELF_FILE_MAX_BUILD_ID 64
#define ELF_FILE_ZSTD 2 /* ELFCOMPRESS_ZSTD of newer headers */

struct elf_file;

/* A PT_LOAD. What it claims beyond the end of the file is left out of filesz; and it is no segment
 * if all of it lies there, or if its addresses are not of a program (above 2^47). */
struct elf_segment {
	uint64_t vaddr, offset, filesz, memsz;
	bool exec;
};

struct elf_section {
	uint32_t type;	/* SHT_… */
	uint64_t flags; /* SHF_… */
	uint64_t addr, offset, size;
	uint32_t link, info;
	uint64_t entsize;
};

/* Borrows fd, which has to stay open. NULL with errno: ENOEXEC if it is no ELF64 x86-64 executable
 * or shared object. */
struct elf_file *elf_file__open(int fd);
/* The same for a file of debug information, which may be ET_REL without any segments: those that
 * dwz -m makes are. */
struct elf_file *elf_file__open_debug(int fd);
/* An image in memory (the vDSO); borrows data. */
struct elf_file *elf_file__open_memory(const void *data, size_t sz);
void elf_file__free(struct elf_file *e);

int elf_file__fd(const struct elf_file *e); /* -1 for an image in memory */

/* Loadable segments in the order of the file; borrowed. */
const struct elf_segment *elf_file__segments(const struct elf_file *e, size_t *ret_cnt);

/* The segment's other view: PT_GNU_EH_FRAME, PT_NOTE, PT_DYNAMIC … the first of that type. False if
 * there is none. */
bool elf_file__program_header(const struct elf_file *e, uint32_t type, struct elf_segment *ret);

/* A section by name; false if there is none, or no section headers at all, or it does not lie in
 * the file (SHT_NOBITS has no bytes). */
bool elf_file__section(const struct elf_file *e, const char *name, struct elf_section *ret);

/* Has it section headers, and all that they name? Not if it is a part of a file. */
bool elf_file__is_whole(const struct elf_file *e);
/* Has it debug information, compressed in whatever form? */
bool elf_file__has_dwarf(const struct elf_file *e);
/* Indices of sections are below this; 0: there are no section headers. */
size_t elf_file__section_cnt(const struct elf_file *e);
/* The section by index (for sh_link). */
bool elf_file__section_by_index(const struct elf_file *e, size_t idx, struct elf_section *ret);

/*
 * Contents of a section, decompressed if it is SHF_COMPRESSED (zlib, zstd), in a buffer for the caller to
 * free, which has a NUL behind. -E2BIG if it is, or says that it expands to, more than max bytes
 * (ELF_FILE_MAX_SECTION at most), -EBADMSG if it is damaged.
 */
int elf_file__read_section(const struct elf_file *e, const struct elf_section *s, size_t max,
			   void **ret_buf, size_t *ret_sz);

/* How many bytes a section would have, as it says; 0 where it cannot be expanded. gnu: it is compressed in
 * GNU's older form (.zdebug_…). */
uint64_t elf_file__expanded_size(const struct elf_file *e, const struct elf_section *s, bool gnu);
/* Its contents, which have to be of that size. Of the cap bytes at `to` those behind them may be written to
 * as well. 0; -EBADMSG, -ENOMEM, -errno. */
int elf_file__expand(const struct elf_file *e, const struct elf_section *s, bool gnu, void *to,
		     size_t sz, size_t cap);

/* sz bytes at a file offset: 0 or -errno, -ENODATA past the end. */
int elf_file__read(const struct elf_file *e, uint64_t off, void *buf, size_t sz);
/* sz bytes at a virtual address, which have to lie in one loadable segment's file part. */
int elf_file__read_vaddr(const struct elf_file *e, uint64_t vaddr, void *buf, size_t sz);

/* The file offset of an address, in executable segments only if exec is set. False if it is in none. */
bool elf_file__offset(const struct elf_file *e, uint64_t vaddr, bool exec, uint64_t *ret);

/* Virtual address of a file offset by the executable segment that holds it (page-rounded, as mmap
 * is), false if none does. sz: of the mapping that begins at the offset, which tells apart two segments
 * that share its first page; 0: the byte at the offset is meant. */
bool elf_segments__vaddr(const struct elf_segment *segments, size_t cnt, uint64_t offset,
			 uint64_t sz, uint64_t *ret_vaddr);
/* The way back: the file offset of sz bytes at a virtual address, in any segment. */
bool elf_segments__offset(const struct elf_segment *segments, size_t cnt, uint64_t vaddr, size_t sz,
			  uint64_t *ret_offset);

/* NT_GNU_BUILD_ID from program headers' notes; length 0 if there is none. Borrowed. */
const uint8_t *elf_file__build_id(const struct elf_file *e, size_t *ret_sz);

/* .gnu_debuglink: the file name (no '/' in it, else it is refused) and CRC. False if there is none.
 */
bool elf_file__debuglink(const struct elf_file *e, char name[static 256], uint32_t *ret_crc);

#endif
