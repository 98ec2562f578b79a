/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one door to what is inside the files of other programs: unwind tables, names of addresses.
 * Everything behind it may be hostile. Narrow on purpose: file descriptors go in, bounded tables
 * come out, so that a process without rights can serve it.
 *
 * An object is one version of a file: the same build id, where only root or we can have written the
 * files and they have the same segments, or the same device, inode, size and
 * modification time. Objects are numbered from 0 and stay until objects__free; their descriptor
 * stays open, so that they can be read after they were deleted.
 */
#ifndef TARGET_OBJECTS_H
#define TARGET_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct allocator_points;
struct objects;
struct unwind_table;

#define OBJECTS_NONE UINT32_MAX

struct object_info {
	const char *path;   /* as the first process that had it names it, for people */
	char build_id[129]; /* lower-case hex, "" if it has none */
	char interp[32];    /* base name of its dynamic linker, cut; "": it has none */
	bool readable;	    /* false: not ELF64 x86-64 or damaged; neither table nor names */
};

struct objects *objects__new(void);
void objects__free(struct objects *o);

/*
 * The object behind an open regular file. Takes fd in every case (closes it if the object was
 * known). path is copied. Returns a number, or OBJECTS_NONE with errno. A file that cannot be
 * parsed is an object too: asked once, not again. EMFILE if the process has too few descriptors
 * left to keep this one, also after its soft limit was raised to the hard one.
 */
uint32_t objects__add(struct objects *o, int fd, const char *path);

/* The vDSO, whose image is the same for all 64-bit processes of this kernel: read from our own.
 * OBJECTS_NONE if we have none. */
uint32_t objects__add_vdso(struct objects *o);

const struct object_info *objects__info(const struct objects *o, uint32_t id);
size_t objects__cnt(const struct objects *o);

/* The virtual address in the object of a file offset; false if it lies in no executable segment. */
bool objects__vaddr(const struct objects *o, uint32_t id, uint64_t offset, uint64_t *ret_vaddr);

/* As ehframe_build. The caller owns the table. */
int objects__unwind_table(struct objects *o, uint32_t id, struct unwind_table *ret);

/* n bytes of the object at a virtual address (code). 0 or -errno. */
int objects__read(const struct objects *o, uint32_t id, uint64_t vaddr, void *buf, size_t n);

/* Does the object hold USDT probes of a program that samples its heap by itself? Much quicker than
 * the points. */
bool objects__has_usdt(const struct objects *o, uint32_t id);

/* As allocators_find. The caller releases *ret by allocator_points__done. */
int objects__allocators(const struct objects *o, uint32_t id, struct allocator_points *ret);

/* ---- names ---- */

struct symbol_frame {
	uint32_t name;	      /* offset in strings: demangled, full */
	uint32_t system_name; /* as the linker has it */
	uint32_t file;	      /* 0 ("") if unknown */
	uint32_t
		line; /* of the address, or of the call of the inlined frame before; 0 if unknown */
	uint32_t start_line; /* of the function's declaration; 0 if unknown */
};

struct symbols {
	/* for address i: frames[first[i]] … frames[first[i + 1] - 1], innermost inlined function
	 * first; none: no name */
	uint32_t *first; /* cnt + 1 entries */
	size_t cnt;
	struct symbol_frame *frames;
	size_t frame_cnt;
	char *strings; /* NUL-terminated, strings[0] == 0 */
	size_t strings_sz;
};

/*
 * Names vaddrs (ascending, of the object, each inside an instruction). DWARF first, from the object
 * or from its separate debug file (by build id, then by debuglink with its CRC, below
 * /usr/lib/debug), then .symtab of either, then .dynsym. An address in no symbol's range gets no
 * frame: never the name of the nearest one. Debug sections are read, used and given back within the
 * call. Returns 0 or -errno; *ret is the caller's to release.
 */
int objects__symbolize(struct objects *o, uint32_t id, const uint64_t *vaddrs, size_t cnt,
		       struct symbols *ret);
void symbols__done(struct symbols *s);

#endif
