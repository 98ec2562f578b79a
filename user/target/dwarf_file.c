/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a file of debug information in libdw, after a look at what that would make it read. */
#include "target/dwarf_file.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <gelf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "target/elf_file.h"

#define MAX_TOTAL (2ULL << 30) /* bytes of all debug sections of a file */

__thread jmp_buf dwarf_file_no_memory;

/* The sections that we look into ourselves. */
enum {
	INFO,
	LINE,
	ADDR,
	RANGES,
	ARANGES,
	STR,
	LINE_STR,
	NR_SCNS
};
static const char *const scn_names[NR_SCNS] = { ".debug_info",	  ".debug_line",    ".debug_addr",
						".debug_ranges",  ".debug_aranges", ".debug_str",
						".debug_line_str" };

/* Where variables lie and what macros stand for is of no use here, but libdw expands at once all
 * that it finds. */
static bool is_needed(const char *name)
{
	return strncmp(name, ".debug_loc", strlen(".debug_loc")) &&
	       strncmp(name, ".debug_mac", strlen(".debug_mac")) && strcmp(name, ".debug_frame");
}

/* Not all that libelf could expand, but it would take small pages for it, and read all of what is
 * compressed at once. */
static bool is_compressed(const GElf_Shdr *sh, const char *name)
{
	return !strncmp(name, ".zdebug", strlen(".zdebug")) || sh->sh_flags & SHF_COMPRESSED;
}

/* What libdw ignores: a section that the file does not hold. */
static int hide(Elf_Scn *scn, GElf_Shdr *sh)
{
	sh->sh_type = SHT_NOBITS;
	return gelf_update_shdr(scn, sh) ? 0 : -EBADMSG;
}

/* Finds them, adds the sizes of all that libdw would read up, and hides what is not needed.
 * -EOPNOTSUPP: there is one that is compressed. */
static int check_sections(Elf *elf, Elf_Scn *scns[static NR_SCNS], uint64_t *ret_total)
{
	uint64_t total = 0, sz;
	Elf_Scn *scn = NULL;
	const char *name;
	size_t names, i;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &names))
		return -EBADMSG;
	while ((scn = elf_nextscn(elf, scn))) {
		name = gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (!name)
			return -EBADMSG;
		if (!strstr(name, "debug"))
			continue;
		if (is_compressed(&sh, name))
			return -EOPNOTSUPP;
		if (!is_needed(name)) {
			if (hide(scn, &sh))
				return -EBADMSG;
			continue;
		}
		sz = sh.sh_type == SHT_NOBITS ? 0 : sh.sh_size;
		if (sz > ELF_FILE_MAX_SECTION || total + sz > MAX_TOTAL)
			return -E2BIG;
		total += sz;
		for (i = 0; i < NR_SCNS; i++) {
			if (!scns[i] && sz && !strcmp(name, scn_names[i]))
				scns[i] = scn;
		}
	}
	*ret_total = total;
	return scns[INFO] ? 0 : -ENOENT;
}

/* Takes the sections once libdw has expanded them. */
static int take_sections(struct dwarf_file *f, Elf_Scn *scns[static NR_SCNS])
{
	const Elf_Data *data[NR_SCNS];
	size_t i;

	for (i = 0; i < NR_SCNS; i++) {
		data[i] = scns[i] ? elf_getdata(scns[i], NULL) : NULL;
		if (scns[i] && (!data[i] || !data[i]->d_buf || !data[i]->d_size))
			return -EBADMSG;
		/* libdw takes for granted that the last string has an end */
		if (i >= STR && data[i] && ((const char *)data[i]->d_buf)[data[i]->d_size - 1])
			return -EBADMSG;
	}
	f->info = data[INFO];
	f->line = data[LINE];
	f->addr = data[ADDR];
	f->ranges = data[RANGES];
	f->aranges = data[ARANGES];
	f->str = data[STR];
	f->line_str = data[LINE_STR];
	return 0;
}

/* Instead of libdw's own, which ends the program. */
static void __attribute__((noreturn)) out_of_memory(void)
{
	longjmp(dwarf_file_no_memory, 1);
}

Dwarf *dwarf_file_begin(Elf *elf)
{
	Dwarf *dbg = dwarf_begin_elf(elf, DWARF_C_READ, NULL);

	if (dbg)
		dwarf_new_oom_handler(dbg, out_of_memory);
	return dbg;
}

static int begin(struct dwarf_file *f)
{
	const char *name;
	const void *id;

	f->dbg = dwarf_file_begin(f->elf);
	if (!f->dbg)
		return -EBADMSG;
	if (f->alt)
		dwarf_setalt(f->dbg, f->alt->dbg);
	else if (dwelf_dwarf_gnu_debugaltlink(f->dbg, &name, &id))
		return -ENOENT;
	return 0;
}

/* The sections of the file, or, where they are compressed, of an image that has them. */
static int open_sections(struct dwarf_file *f, const struct elf_file *elf,
			 Elf_Scn *scns[static NR_SCNS])
{
	int err;

	f->elf = elf_begin(elf_file__fd(elf), ELF_C_READ, NULL);
	err = f->elf ? check_sections(f->elf, scns, &f->total) : -EBADMSG;
	if (err != -EOPNOTSUPP)
		return err;
	elf_end(f->elf);
	f->elf = NULL;
	err = dwarf_image__expand(&f->image, elf, MAX_TOTAL);
	if (err)
		return err;
	memset(scns, 0, NR_SCNS * sizeof(*scns));
	f->elf = elf_memory((char *)f->image.data, f->image.sz);
	return f->elf ? check_sections(f->elf, scns, &f->total) : -EBADMSG;
}

int dwarf_file__open(struct dwarf_file *f, const struct elf_file *elf, struct dwarf_file *alt)
{
	Elf_Scn *scns[NR_SCNS] = {};
	int err;

	memset(f, 0, sizeof(*f));
	if (elf_file__fd(elf) < 0)
		return -ENOENT;
	elf_version(EV_CURRENT);
	f->alt = alt;
	err = open_sections(f, elf, scns);
	if (!err)
		err = begin(f);
	if (!err)
		err = take_sections(f, scns);
	if (err)
		dwarf_file__close(f);
	return err;
}

void dwarf_file__close(struct dwarf_file *f)
{
	dwarf_end(f->dbg);
	elf_end(f->elf);
	dwarf_image__done(&f->image);
	memset(f, 0, sizeof(*f));
}

void dwarf_file__detach(struct dwarf_file *f)
{
	if (f->elf)
		(void)elf_cntl(f->elf, ELF_C_FDDONE);
}

/* Is there a NUL behind s, if s lies in .debug_info? */
static bool ends(const struct dwarf_file *f, const char *s)
{
	const char *start = f->info->d_buf, *end = start + f->info->d_size;

	return s < start || s >= end || memchr(s, 0, end - s);
}

const char *dwarf_file__string(const struct dwarf_file *f, Dwarf_Attribute *attr)
{
	/* libdw checks those of string sections, but not those that stand in a DIE */
	const char *s = dwarf_formstring(attr);

	return s && ends(f, s) && (!f->alt || ends(f->alt, s)) ? s : NULL;
}
