/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "tests/fuzz/parsers.h"

#define HEAD_SZ (sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Phdr))

static size_t align(size_t v)
{
	return (v + 15) & ~(size_t)15;
}

struct bytes bytes__next(struct bytes *in)
{
	struct bytes ret = { in->p, 0 };
	size_t sz;

	if (in->sz < 2)
		return ret;
	sz = in->p[0] | (size_t)in->p[1] << 8;
	ret = (struct bytes){ in->p + 2, MIN(sz, in->sz - 2) };
	in->p = ret.p + ret.sz;
	in->sz -= 2 + ret.sz;
	return ret;
}

static Elf64_Phdr program_header(uint32_t type, uint64_t pos, uint64_t sz)
{
	return (Elf64_Phdr){ .p_type = type,
			     .p_flags = PF_R | PF_X,
			     .p_offset = pos,
			     .p_vaddr = pos,
			     .p_filesz = sz,
			     .p_memsz = sz,
			     .p_align = 4 };
}

struct image image__make(struct bytes code, const struct image_section *sections, size_t cnt,
			 int by_header)
{
	size_t names_sz = 1 + sizeof(".shstrtab") + sizeof(".text"), pos = IMAGE_TEXT_SZ, name = 1;
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = ET_DYN,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 3,
			  .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Shdr sh[16] = {};
	Elf64_Phdr ph[3] = {};
	struct image img;
	size_t names, i;

	NEED(cnt + 3 <= ARRAY_SIZE(sh));
	for (i = 0; i < cnt; i++) {
		names_sz += strlen(sections[i].name) + 1;
		pos = align(pos + sections[i].bytes.sz);
	}
	names = pos;
	img.sz = names + align(names_sz) + (by_header ? 0 : (cnt + 3) * sizeof(*sh));
	img.data = calloc(1, img.sz);
	NEED(img.data);
	if (code.sz)
		memcpy(img.data + HEAD_SZ, code.p, MIN(code.sz, IMAGE_TEXT_SZ - HEAD_SZ));

	pos = IMAGE_TEXT_SZ;
	for (i = 0; i < cnt; i++) {
		const struct image_section *s = &sections[i];

		if (s->bytes.sz)
			memcpy(img.data + pos, s->bytes.p, s->bytes.sz);
		sh[i + 1] = (Elf64_Shdr){ .sh_name = name,
					  .sh_type = s->type,
					  .sh_flags = s->flags,
					  .sh_addr = pos,
					  .sh_offset = pos,
					  .sh_size = s->bytes.sz,
					  .sh_link = s->link };
		if (s->type == SHT_NOTE && !ph[1].p_type)
			ph[1] = program_header(PT_NOTE, pos, s->bytes.sz);
		if (by_header && i + 1 == cnt)
			ph[2] = program_header(PT_GNU_EH_FRAME, pos, s->bytes.sz);
		strcpy((char *)img.data + names + name, s->name);
		name += strlen(s->name) + 1;
		pos = align(pos + s->bytes.sz);
	}
	sh[cnt + 1] = (Elf64_Shdr){ .sh_name = name,
				    .sh_type = SHT_PROGBITS,
				    .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				    .sh_addr = HEAD_SZ,
				    .sh_offset = HEAD_SZ,
				    .sh_size = IMAGE_TEXT_SZ - HEAD_SZ };
	strcpy((char *)img.data + names + name, ".text");
	name += sizeof(".text");
	sh[cnt + 2] = (Elf64_Shdr){
		.sh_name = name, .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = names_sz
	};
	strcpy((char *)img.data + names + name, ".shstrtab");
	if (!by_header) {
		eh.e_shoff = names + align(names_sz);
		eh.e_shnum = cnt + 3;
		eh.e_shstrndx = cnt + 2;
		memcpy(img.data + eh.e_shoff, sh, eh.e_shnum * sizeof(*sh));
	}
	ph[0] = program_header(PT_LOAD, 0, names);
	memcpy(img.data, &eh, sizeof(eh));
	memcpy(img.data + sizeof(eh), ph, sizeof(ph));
	return img;
}
