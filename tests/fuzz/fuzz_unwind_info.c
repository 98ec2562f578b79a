/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information. The first byte says which: 0 .eh_frame and .debug_frame, one after the
 * other; 1 .eh_frame by .eh_frame_hdr, without section headers; 2 .eh_frame compressed; 3 the
 * instructions of one function, behind those of an ordinary CIE.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "target/elf_file.h"
#include "tests/fuzz/image.h"
#include "tests/fuzz/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

static struct image make_sections(struct bytes in, uint64_t flags)
{
	struct image_section s[] = {
		{ ".eh_frame", SHT_PROGBITS, SHF_ALLOC | flags, 0, bytes__next(&in) },
		{ ".debug_frame", SHT_PROGBITS, flags, 0, in },
	};

	return image__make((struct bytes){ NULL, 0 }, s, 2, 0);
}

static struct image make_by_header(struct bytes in)
{
	struct image_section s[] = {
		{ ".eh_frame", SHT_PROGBITS, SHF_ALLOC, 0, bytes__next(&in) },
		{ ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC, 0, in },
	};

	return image__make((struct bytes){ NULL, 0 }, s, 2, 1);
}

/* CIE: version 1, no augmentation, factors 1 and -8, return address 16; CFA rsp + 8, ra at cfa - 8.
 * FDE: 4,096 bytes of code at 256. */
static struct image make_function(struct bytes in)
{
	static const uint8_t head[] = { 16, 0,	  0,  0,  255, 255, 255, 255, 1, 0,
					1,  0x78, 16, 12, 7,   8,   144, 1,   0, 0 };
	static const uint8_t range[] = {
		0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0
	};
	uint32_t len = sizeof(range) + in.sz;
	uint8_t *frame = malloc(sizeof(head) + 4 + len);
	struct image_section s = { ".debug_frame", SHT_PROGBITS, 0, 0, { frame, 0 } };
	struct image img;

	NEED(frame);
	memcpy(frame, head, sizeof(head));
	memcpy(frame + sizeof(head), &len, 4);
	memcpy(frame + sizeof(head) + 4, range, sizeof(range));
	if (in.sz)
		memcpy(frame + sizeof(head) + 4 + sizeof(range), in.p, in.sz);
	s.bytes.sz = sizeof(head) + 4 + len;
	img = image__make((struct bytes){ NULL, 0 }, &s, 1, 0);
	free(frame);
	return img;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	struct bytes in = { data + 1, sz - 1 };
	struct parsers_found found = {};
	struct elf_file *elf;
	struct image img;

	if (!sz)
		return 0;
	switch (data[0] & 3) {
	case 0:
		img = make_sections(in, 0);
		break;
	case 1:
		img = make_by_header(in);
		break;
	case 2:
		img = make_sections(in, SHF_COMPRESSED);
		break;
	default:
		img = make_function(in);
	}
	elf = elf_file__open_memory(img.data, img.sz);
	NEED(elf);
	parsers_unwind(elf, &found);
	elf_file__free(elf);
	free(img.data);
	return 0;
}
