/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the frame of target/cfi_entry.h that is around the instructions of target/cfi.h. */
#include "target/cfi_entry.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "base/util.h"

/* Of an augmentation: GCC and LLVM use up to 5. A long one, read again for each FDE, would cost
 * more than the section has bytes. */
#define MAX_LETTERS 8

int cfi_entry__read(const struct cfi_section *s, uint64_t *pos, struct cfi_entry *ret)
{
	struct cfi_reader in = { s->data + *pos, s->data + s->sz, false };
	uint64_t len = 0, id, id_pos;
	bool is_64bit;

	/* an entry of length 0 ends the contribution of one file: more may follow */
	while (!len && in.p != in.end) {
		ret->pos = (uint64_t)(in.p - s->data);
		len = cfi_reader__u32(&in);
		if (!len && s->terminated)
			break;
	}
	if (!len)
		return in.bad ? -EBADMSG : -ENOENT;
	is_64bit = len == 0xffffffff; /* DWARF 5, 7.4 */
	if (is_64bit)
		len = cfi_reader__u64(&in);
	id_pos = (uint64_t)(in.p - s->data);
	if (!cfi_reader__take(&in, len))
		return -EBADMSG;
	*pos = (uint64_t)(in.p - s->data);
	ret->body = (struct cfi_reader){ s->data + id_pos, in.p, false };
	id = is_64bit ? cfi_reader__u64(&ret->body) : cfi_reader__u32(&ret->body);
	/* .eh_frame has a distance back from the field, and 0 for a CIE */
	ret->is_cie = s->eh ? !id : id == (is_64bit ? UINT64_MAX : UINT32_MAX);
	ret->cie_pos = s->eh ? id_pos - id : id;
	return 0;
}

static void skip_pointer(struct cfi_reader *in, uint8_t enc)
{
	/* only the length counts: what it is relative to does not matter */
	struct cfi_section nowhere = { .data = (uint8_t *)in->p };
	uint64_t ignored;

	if (enc == DW_EH_PE_omit)
		return;
	if (enc == DW_EH_PE_aligned || cfi__read_pointer(&nowhere, in, enc & 0x0f, &ignored))
		in->bad = true;
}

/* LSB Core 10.6.1.1.1 */
static bool parse_augmentation(struct cfi_cie_head *cie, const uint8_t *letters,
			       struct cfi_reader *in)
{
	struct cfi_reader data = *in;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'z':
			cie->has_size = true;
			data.p = cfi_reader__take(in, cfi_reader__uleb(in));
			if (!data.p)
				return false;
			data.end = in->p;
			break;
		case 'R':
			cie->fde_enc = cfi_reader__u8(&data);
			break;
		case 'P':
			skip_pointer(&data, cfi_reader__u8(&data));
			break;
		case 'L':
			cfi_reader__u8(&data);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* AArch64 */
			break;
		default:
			return false;
		}
	}
	if (!cie->has_size)
		*in = data;
	return !data.bad;
}

bool cfi_entry__parse_cie(struct cfi_reader *in, struct cfi_cie_head *ret)
{
	uint8_t version = cfi_reader__u8(in);
	const uint8_t *letters = in->p;
	size_t len =
		strnlen((const char *)letters, MIN((size_t)(in->end - in->p), MAX_LETTERS + 1));

	*ret = (struct cfi_cie_head){ .fde_enc = DW_EH_PE_absptr };
	if (len > MAX_LETTERS || !cfi_reader__take(in, len + 1) ||
	    (version != 1 && version != 3 && version != 4))
		return false;
	/* sizes of an address and of a segment selector */
	if (version == 4 && (cfi_reader__u8(in) != 8 || cfi_reader__u8(in) != 0))
		return false;
	ret->code_align = cfi_reader__uleb(in);
	ret->data_align = cfi_reader__sleb(in);
	ret->ra = version == 1 ? cfi_reader__u8(in) : cfi_reader__uleb(in);
	return !in->bad && parse_augmentation(ret, letters, in);
}
