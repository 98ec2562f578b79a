/* SPDX-License-Identifier: BSD-2-Clause */
/* The ELF header, the sections one after the other, their names, the section headers. */
#include "target/dwarf_image.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/util.h"
#include "target/elf_file.h"

/* What dwarf.c, and libdw for it, look into; and what says that there is a supplementary file. */
static const char *const needed[] = {
	".debug_info",	   ".debug_abbrev",	 ".debug_line",	 ".debug_str",
	".debug_line_str", ".debug_str_offsets", ".debug_addr",	 ".debug_ranges",
	".debug_rnglists", ".debug_aranges",	 ".debug_types", ".gnu_debugaltlink",
};

#define HUGE_PAGE (2U << 20)
#define MAX_SECTIONS (ARRAY_SIZE(needed) + 2) /* the first one, and the names */

static void *put(struct dwarf_image *i, const void *data, size_t sz)
{
	void *to = i->data + i->sz;

	if (sz)
		memcpy(to, data, sz);
	i->sz += sz;
	return to;
}

static void put_padding(struct dwarf_image *i)
{
	while (i->sz % 8)
		i->data[i->sz++] = 0;
}

/* In huge pages, if there are any: to get small ones takes a third of the time that expanding takes. */
static void *alloc(uint64_t sz)
{
	void *ret;

	if (sz < HUGE_PAGE)
		return malloc(sz);
	ret = aligned_alloc(HUGE_PAGE, (sz + HUGE_PAGE - 1) & ~(uint64_t)(HUGE_PAGE - 1));
	if (ret)
		(void)madvise(ret, sz, MADV_HUGEPAGE);
	return ret;
}

/* Reserves so many bytes, and puts an ELF header there. */
static int begin(struct dwarf_image *i, uint64_t section_bytes)
{
	static const Elf64_Ehdr eh = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};

	*i = (struct dwarf_image){ .cap = sizeof(eh) + section_bytes +
					  MAX_SECTIONS * (sizeof(Elf64_Shdr) + 64) };
	i->data = alloc(i->cap);
	if (!i->data)
		return -ENOMEM;
	put(i, &eh, sizeof(eh));
	return 0;
}

struct headers {
	Elf64_Shdr sh[MAX_SECTIONS]; /* the first one is empty */
	size_t cnt;
	char names[32 * MAX_SECTIONS];
	size_t names_sz;
};

/* A section's header. Its bytes are what comes next. */
static void add_header(struct dwarf_image *i, struct headers *h, uint32_t type, const char *name,
		       size_t sz)
{
	h->sh[h->cnt++] = (Elf64_Shdr){ .sh_name = (Elf64_Word)h->names_sz,
					.sh_type = type,
					.sh_offset = i->sz,
					.sh_size = sz,
					.sh_addralign = 1 };
	strcpy(h->names + h->names_sz, name);
	h->names_sz += strlen(name) + 1;
}

static void add(struct dwarf_image *i, struct headers *h, uint32_t type,
		const struct dwarf_image_section *s)
{
	add_header(i, h, type, s->name, s->sz);
	put(i, s->data, s->sz);
	put_padding(i);
}

static void end(struct dwarf_image *i, struct headers *h)
{
	struct dwarf_image_section names = { ".shstrtab", h->names,
					     h->names_sz + sizeof(".shstrtab") };
	Elf64_Ehdr *eh = (void *)i->data;

	/* its own name is there before it is copied */
	memcpy(h->names + h->names_sz, ".shstrtab", sizeof(".shstrtab"));
	add(i, h, SHT_STRTAB, &names);
	eh->e_shoff = i->sz;
	eh->e_shnum = (Elf64_Half)h->cnt;
	eh->e_shstrndx = (Elf64_Half)(h->cnt - 1);
	put(i, h->sh, h->cnt * sizeof(*h->sh));
}

int dwarf_image__make(struct dwarf_image *i, const struct dwarf_image_section *sections, size_t cnt)
{
	struct headers h = { .cnt = 1, .names_sz = 1 };
	uint64_t sum = 0;

	for (size_t k = 0; k < cnt; k++)
		sum += sections[k].sz;
	if (cnt > ARRAY_SIZE(needed) || begin(i, sum))
		return -ENOMEM;
	for (size_t k = 0; k < cnt; k++)
		add(i, &h, SHT_PROGBITS, &sections[k]);
	end(i, &h);
	return 0;
}

/* A section in any of its forms. */
static bool find(const struct elf_file *elf, const char *name, struct elf_section *ret,
		 bool *ret_gnu)
{
	char old[64];

	*ret_gnu = false;
	if (elf_file__section(elf, name, ret))
		return true;
	snprintf(old, sizeof(old), ".z%s", name + 1);
	*ret_gnu = true;
	return elf_file__section(elf, old, ret);
}

/* left: bytes that there is room for. The file may be another one than when they were counted. */
static int expand_all(struct dwarf_image *i, const struct elf_file *elf, uint64_t left)
{
	struct headers h = { .cnt = 1, .names_sz = 1 };
	struct elf_section section;
	bool gnu;
	int err = 0;

	for (size_t k = 0; k < ARRAY_SIZE(needed) && !err; k++) {
		uint64_t sz;

		if (!find(elf, needed[k], &section, &gnu))
			continue;
		sz = elf_file__expanded_size(elf, &section, gnu);
		if (sz > left)
			err = -EBADMSG;
		if (!err)
			err = elf_file__expand(elf, &section, gnu, i->data + i->sz, sz,
					       i->cap - i->sz);
		if (err)
			break;
		left -= sz;
		add_header(i, &h, SHT_PROGBITS, needed[k], sz);
		i->sz += sz;
		put_padding(i);
	}
	end(i, &h);
	return err;
}

int dwarf_image__expand(struct dwarf_image *i, const struct elf_file *elf, uint64_t max)
{
	struct elf_section section;
	uint64_t sum = 0, room = 0;
	bool gnu;
	int err;

	for (size_t k = 0; k < ARRAY_SIZE(needed); k++) {
		uint64_t sz;

		if (!find(elf, needed[k], &section, &gnu))
			continue;
		/* anything, as the file says it */
		sz = elf_file__expanded_size(elf, &section, gnu);
		if (sz > ELF_FILE_MAX_SECTION || sz > max - sum)
			return -E2BIG;
		sum += sz;
		/* what is compressed is read behind it */
		if (gnu || section.flags & SHF_COMPRESSED)
			room = MAX(room, sum + MIN(section.size, sz));
	}
	err = begin(i, MAX(room, sum));
	if (!err)
		err = expand_all(i, elf, sum);
	if (err)
		dwarf_image__done(i);
	return err;
}

void dwarf_image__done(struct dwarf_image *i)
{
	free(i->data);
	*i = (struct dwarf_image){ 0 };
}
