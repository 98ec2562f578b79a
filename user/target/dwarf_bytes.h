/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers and strings of a section that may be damaged: what leads out of it is none. */
#ifndef TARGET_DWARF_BYTES_H
#define TARGET_DWARF_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/util.h"

struct dwarf_bytes {
	const unsigned char *p;
	size_t sz;
};

/* Takes a number of n bytes, at most 8; 0, and nothing is left, where there are fewer. */
static inline uint64_t dwarf_bytes__take(struct dwarf_bytes *b, size_t n)
{
	uint64_t v = 0;

	if (b->sz < n) {
		b->sz = 0;
		return 0;
	}
	memcpy(&v, b->p, n);
	b->p += n;
	b->sz -= n;
	return v;
}

/* One of either kind of LEB128 (DWARF 5, 7.6). */
static inline uint64_t dwarf_bytes__leb(struct dwarf_bytes *b, bool with_sign)
{
	uint64_t v = 0, byte;
	unsigned int shift = 0;

	do {
		byte = dwarf_bytes__take(b, 1);
		v |= shift < 64 ? (byte & 0x7f) << shift : 0;
		shift += 7;
	} while (byte & 0x80);
	return with_sign && byte & 0x40 && shift < 64 ? v | -1ULL << shift : v;
}

static inline uint64_t dwarf_bytes__uleb(struct dwarf_bytes *b)
{
	return dwarf_bytes__leb(b, false);
}

static inline int64_t dwarf_bytes__sleb(struct dwarf_bytes *b)
{
	return (int64_t)dwarf_bytes__leb(b, true);
}

/* Takes a string; NULL, and nothing is left, if it has no end. */
static inline const char *dwarf_bytes__string(struct dwarf_bytes *b)
{
	const char *s = (const char *)b->p, *end = b->sz ? memchr(s, 0, b->sz) : NULL;
	size_t sz = end ? (size_t)(end - s) + 1 : b->sz;

	b->p += sz;
	b->sz -= sz;
	return end ? s : NULL;
}

/* What is behind off. */
static inline struct dwarf_bytes dwarf_bytes__from(struct dwarf_bytes b, uint64_t off)
{
	off = MIN(off, b.sz);
	return (struct dwarf_bytes){ b.p + off, b.sz - off };
}

#endif
