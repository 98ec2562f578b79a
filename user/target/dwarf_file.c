/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens a file of debug information in libdw, after a look at what that would make it read; looks
 * lines up. */
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
/* Of a unit. A row takes libdw 150 bytes and 0.6 us to make; compilers write 3 to 5 bytes for one,
 * but one will do. */
#define MAX_LINE_TABLE (64U << 20)
#define MAX_ROWS (8U << 20)

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

int dwarf_file__restart(struct dwarf_file *f)
{
	dwarf_end(f->dbg);
	return begin(f);
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

/* ---- lines of a unit ---- */

/* 0 if the unit has no table that lies in the section. */
static uint64_t table_size(const struct dwarf_file *f, Dwarf_Die *unit, uint64_t *ret_off)
{
	Dwarf_Attribute attr;
	uint64_t off, len = 0;
	const char *p;

	if (!f->line || dwarf_formudata(dwarf_attr(unit, DW_AT_stmt_list, &attr), &off) ||
	    off > f->line->d_size || f->line->d_size - off < 12)
		return 0;
	p = (const char *)f->line->d_buf + off;
	memcpy(&len, p, 4);
	if (len == 0xffffffff) /* DWARF 5, 7.4 */
		memcpy(&len, p + 4, 8);
	*ret_off = off;
	return len < f->line->d_size - off ? len : 0;
}

struct cursor {
	const uint8_t *p, *end;
};

/* A number of n bytes; 0 where there are fewer. */
static uint64_t get(struct cursor *r, size_t n)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->p) < n) {
		r->p = r->end;
		return 0;
	}
	memcpy(&v, r->p, n);
	r->p += n;
	return v;
}

static void skip(struct cursor *r, uint64_t n)
{
	r->p += MIN(n, (uint64_t)(r->end - r->p));
}

static uint64_t get_uleb(struct cursor *r)
{
	uint64_t v = 0, byte;
	unsigned int shift = 0;

	do {
		byte = get(r, 1);
		v |= shift < 64 ? (byte & 0x7f) << shift : 0;
		shift += 7;
	} while (byte & 0x80);
	return v;
}

/* How many rows a line program of sz bytes makes (DWARF 5, 6.2.4 and 6.2.5), before libdw makes
 * them. */
static uint64_t count_rows(const uint8_t *table, uint64_t sz)
{
	struct cursor r = { table, table + sz }, lengths;
	size_t off_sz = get(&r, 4) == 0xffffffff ? 8 : 4;
	uint64_t version, header_sz, base, rows = 0;

	skip(&r, off_sz == 8 ? 8 : 0);
	version = get(&r, 2);
	skip(&r, version >= 5 ? 2 : 0);
	header_sz = get(&r, off_sz);
	lengths = r;
	skip(&r, header_sz);
	/* what stands between is of no use here, but for its last byte */
	skip(&lengths, version >= 4 ? 5 : 4);
	base = get(&lengths, 1);
	while (r.p < r.end) {
		uint8_t op = get(&r, 1);

		if (op >= base || op == DW_LNS_copy) {
			rows++;
		} else if (op == 0) {
			uint64_t len = get_uleb(&r);

			rows += len && r.p < r.end && *r.p == DW_LNE_end_sequence;
			skip(&r, len);
		} else if (op == DW_LNS_fixed_advance_pc) {
			skip(&r, 2);
		} else if (op - 1 < lengths.end - lengths.p) {
			for (int n = lengths.p[op - 1]; n; n--)
				get_uleb(&r);
		}
	}
	return rows;
}

uint64_t dwarf_lines__open(struct dwarf_lines *l, const struct dwarf_file *f, Dwarf_Die *unit)
{
	uint64_t off, sz = table_size(f, unit, &off);
	Dwarf_Attribute attr;

	memset(l, 0, sizeof(*l));
	if (!sz || sz > MAX_LINE_TABLE ||
	    count_rows((const uint8_t *)f->line->d_buf + off, sz) > MAX_ROWS)
		return 0;
	if (dwarf_attr(unit, DW_AT_comp_dir, &attr)) {
		l->comp_dir = dwarf_file__string(f, &attr);
		/* libdw would look for its end */
		if (!l->comp_dir)
			return 0;
	}
	if (dwarf_getsrclines(unit, &l->rows, &l->row_cnt) ||
	    dwarf_getsrcfiles(unit, &l->files, &l->file_cnt))
		l->row_cnt = l->file_cnt = 0;
	return sz;
}

static uint64_t row_address(const struct dwarf_lines *l, size_t row)
{
	Dwarf_Addr addr = 0;

	dwarf_lineaddr(dwarf_onesrcline(l->rows, row), &addr);
	return addr;
}

bool dwarf_lines__has_discarded(const struct dwarf_lines *l)
{
	return l->row_cnt && (dwarf_is_discarded(row_address(l, 0)) ||
			      dwarf_is_discarded(row_address(l, l->row_cnt - 1)));
}

bool dwarf_lines__range(const struct dwarf_lines *l, size_t row, uint64_t *lo, uint64_t *hi)
{
	bool last;

	if (row + 1 >= l->row_cnt || dwarf_lineendsequence(dwarf_onesrcline(l->rows, row), &last) ||
	    last)
		return false;
	*lo = row_address(l, row);
	*hi = row_address(l, row + 1);
	return true;
}

bool dwarf_lines__find(const struct dwarf_lines *l, uint64_t addr, uint64_t *file, uint64_t *line)
{
	size_t lo = 0, hi = l->row_cnt, idx;
	Dwarf_Files *files;
	Dwarf_Line *row;
	bool last;
	int no;

	/* the last row that is not above the address */
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (row_address(l, mid) <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	row = lo ? dwarf_onesrcline(l->rows, lo - 1) : NULL;
	if (!row || dwarf_lineendsequence(row, &last) || last || dwarf_lineno(row, &no))
		return false;
	*file = dwarf_line_file(row, &files, &idx) ? UINT64_MAX : idx;
	*line = MAX(no, 0);
	return true;
}

const char *dwarf_lines__path(const struct dwarf_lines *l, uint64_t file, char *buf, size_t sz)
{
	const char *path = dwarf_filesrc(l->files, file, NULL, NULL), *dir = l->comp_dir;
	int n;

	if (!path || !strcmp(path, "???")) /* libdw's own, for a file that is none */
		return "";
	if (path[0] == '/')
		return path;
	/* DWARF 5 lists the unit's directory as number 0, which need not be absolute */
	if (!dir || !*dir || (!strncmp(path, dir, strlen(dir)) && path[strlen(dir)] == '/'))
		return path;
	n = snprintf(buf, sz, "%s/%s", dir, path);
	return n < 0 || (size_t)n >= sz ? "" : buf;
}
