/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small ELF file in memory whose sections hold fuzzed bytes: the fuzzers of single readers need
 * not find out first what a header looks like. 64 KiB of code lie at virtual address 0, the
 * sections behind them, each where it is in the file.
 */
#ifndef TESTS_FUZZ_IMAGE_H
#define TESTS_FUZZ_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#define IMAGE_TEXT_SZ 65536U

struct bytes {
	const uint8_t *p;
	size_t sz;
};

struct image_section {
	const char *name;
	uint32_t type;
	uint64_t flags;
	uint32_t link; /* number of another section, from 1 on */
	struct bytes bytes;
};

struct image {
	uint8_t *data;
	size_t sz;
};

/* code: the first bytes of the text. By header: there are no section headers, and the last section
 * is the one that PT_GNU_EH_FRAME points to. PT_NOTE is the first section of notes. */
struct image image__make(struct bytes code, const struct image_section *sections, size_t cnt,
			 int by_header);

/* The next piece of the input: two bytes say how long it is, it ends with the input at the latest.
 */
struct bytes bytes__next(struct bytes *in);

#endif
