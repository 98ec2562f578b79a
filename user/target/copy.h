/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that want huge pages for their code copy it to memory and put that in the place of what
 * the file has mapped there: node --use-largepages, HHVM, Intel's iodlr, BOLT's hugify. The kernel
 * then knows of no file at these addresses. Where such code could lie follows from what else of the
 * file is mapped, since the distances between its segments are those of its program headers (gABI,
 * "Program Header"); here is the arithmetic of that. Whether the bytes are the file's is for others
 * to find out.
 */
#ifndef TARGET_COPY_H
#define TARGET_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COPY_PAGE 4096ULL
/* Bytes of a second copy, at another place, that are worth a search: V8's builtins have 1.5 MiB. */
#define COPY_MIN_MOVED (1ULL << 20)
#define COPY_MAX_SEGMENTS 32

struct elf_segment;
struct proc_map;

/* Where code of a file would be mapped: whole pages. */
struct copy_place {
	uint64_t start, end; /* in the process */
	uint64_t offset;     /* in the file, of start */
	uint64_t vaddr;	     /* in the object, of start */
};

/*
 * Where the code of an object lies, if `beside` maps the object: at most max places, each once.
 * What beside maps may be no code, and its first page may belong to two segments. The segments may
 * be hostile: those behind the first COPY_MAX_SEGMENTS, which no linker makes, are left out.
 */
size_t copy_places(const struct elf_segment *segments, size_t cnt, const struct proc_map *beside,
		   struct copy_place *ret, size_t max);

/* Cuts *place down to what of it is in the range. False if that is nothing, or if it cannot be told
 * which code it is. */
bool copy_cut(const struct elf_segment *segments, size_t cnt, const struct proc_map *range,
	      struct copy_place *place);

/*
 * Of the part [start, end) of map, which maps code of an object: what the file has bytes for. False
 * if that is nothing; else *start, *end are cut down to it, and *ret_vaddr is the virtual address
 * of *start in the object.
 */
bool copy_file_part(const struct elf_segment *segments, size_t cnt, const struct proc_map *map,
		    uint64_t *start, uint64_t *end, uint64_t *ret_vaddr);

#endif
