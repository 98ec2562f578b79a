/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions, inlined functions and source lines of code that Go made, from Go's own table: as
 * runtime.CallersFrames tells them, and in its spelling.
 */
#ifndef TARGET_GONAMES_H
#define TARGET_GONAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/names.h"

struct elf_file;
struct strtab;

#define GONAMES_MAX_INLINE 128 /* frames of one address; with more, the table is damaged */
#define GONAMES_MAX_NAME 65536 /* bytes; a longer name, or file, is none */

struct gonames_answer {
	bool is_go;	     /* the address is between the first of Go's functions and the last */
	uint32_t first, cnt; /* of frames, innermost first; none: the table is damaged here */
};

struct gonames_answers {
	struct gonames_answer *answers; /* one for each address */
	struct symbol_frame *frames;	/* with ids of strings */
	size_t frame_cnt, frame_cap;
};

/*
 * Answers for cnt virtual addresses. Names are added to strings. 0; -ENOENT if this is no program
 * of Go, or what gopclntab__open() failed with; -ENOMEM. *ret is the caller's after 0 only.
 *
 * Of the frames of one address those are left out that the runtime leaves out of its tracebacks:
 * wrappers that call what they wrap (runtime/traceback.go, elideWrapperCalling). A wrapper that is
 * an address's only frame is marked, since it depends on its callee's.
 */
int gonames_resolve(const struct elf_file *elf, const uint64_t *vaddrs, size_t cnt,
		    struct strtab *strings, struct gonames_answers *ret);
void gonames_answers__done(struct gonames_answers *a);

#endif
