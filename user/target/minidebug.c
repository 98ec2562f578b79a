/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/minidebug.h"

#include <errno.h>
#include <lzma.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/util.h"
#include "target/elf_file.h"

#define MAX_PACKED (64U << 20) /* bytes of the section */
#define MAX_IMAGE (256U << 20) /* bytes that it expands to: xz can make 7,000 of one */
#define MAX_DECODER \
	(128U << 20) /* bytes that liblzma may take: a dictionary of `xz -9` has 64 MiB */
#define FIRST_STEP (1U << 20)

/* Expands all of the input, as far as it goes. What it says of its size is not believed. */
static int expand(lzma_stream *s, uint8_t **ret, size_t *ret_sz)
{
	size_t cap = 0, want = FIRST_STEP;
	lzma_ret res = LZMA_OK;

	while (res == LZMA_OK) {
		if (s->total_out == MAX_IMAGE)
			return -E2BIG;
		if (util_reserve(ret, &cap, want, 1))
			return -ENOMEM;
		cap = MIN(cap, MAX_IMAGE);
		s->next_out = *ret + s->total_out;
		s->avail_out = cap - s->total_out;
		res = lzma_code(s, LZMA_FINISH);
		want = cap + 1;
	}
	*ret_sz = s->total_out;
	if (res == LZMA_STREAM_END)
		return 0;
	return res == LZMA_MEM_ERROR ? -ENOMEM : res == LZMA_MEMLIMIT_ERROR ? -E2BIG : -EBADMSG;
}

static int unpack(const uint8_t *packed, size_t packed_sz, uint8_t **ret, size_t *ret_sz)
{
	lzma_stream s = LZMA_STREAM_INIT;
	int err;

	if (lzma_stream_decoder(&s, MAX_DECODER, 0) != LZMA_OK)
		return -ENOMEM;
	s.next_in = packed;
	s.avail_in = packed_sz;
	err = expand(&s, ret, ret_sz);
	lzma_end(&s);
	return err;
}

int minidebug__open(struct minidebug *m, const struct elf_file *elf)
{
	struct elf_section section;
	uint8_t *image = NULL;
	size_t packed_sz, sz;
	void *packed;
	int err;

	if (!elf_file__section(elf, ".gnu_debugdata", &section))
		return -ENOENT;
	err = elf_file__read_section(elf, &section, MAX_PACKED, &packed, &packed_sz);
	if (err)
		return err;
	err = unpack(packed, packed_sz, &image, &sz);
	free(packed);
	if (!err) {
		*m = (struct minidebug){ image, elf_file__open_memory(image, sz) };
		err = m->elf ? 0 : -errno;
	}
	if (err)
		free(image);
	return err;
}

void minidebug__close(struct minidebug *m)
{
	elf_file__free(m->elf);
	free(m->image);
}
