/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The grammar of DWARF 2 to 5, as far as names and lines of code need it: sections, units,
 * abbreviations, attribute values. Private to dwarf.c and dwarf_line.c. All of it is read from
 * foreign bytes: every read is checked, and `budget` bounds the work, so that lists that are shared
 * a million times cannot keep us busy.
 */
#ifndef TARGET_DWARF_READ_H
#define TARGET_DWARF_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

/* ---- bytes ---- */

/* A failed read returns 0, moves p to end and sets bad. */
struct rd {
	const uint8_t *p, *end;
	bool bad;
};

void rd_fail(struct rd *r);
uint64_t rd_uint(struct rd *r, size_t sz); /* sz 1 to 8 */
uint64_t rd_uleb(struct rd *r);
uint16_t
rd_uleb16(struct rd *r); /* a tag, attribute or form; 0xffff, which is none, if it is larger */
int64_t rd_sleb(struct rd *r);
const char *rd_string(struct rd *r); /* NULL if it is not terminated */
void rd_skip(struct rd *r, uint64_t sz);
/* A unit's length and, by it, the size of offsets (DWARF 5, 7.4); r->end is set to the unit's end.
 * 0 if it is damaged. */
unsigned int rd_unit_length(struct rd *r);

/* ---- sections, units ---- */

enum dwarf_sec {
	DWARF_SEC_INFO,
	DWARF_SEC_ABBREV,
	DWARF_SEC_STR,
	DWARF_SEC_LINE,
	DWARF_SEC_LINE_STR,
	DWARF_SEC_RANGES,
	DWARF_SEC_RNGLISTS,
	DWARF_SEC_ADDR,
	DWARF_SEC_STR_OFFSETS,
	DWARF_NR_SECS,
};

struct dwarf_unit {
	uint64_t off, die_off, end; /* in .debug_info: header, first DIE, end */
	uint64_t abbrev_off;
	uint16_t version;
	uint8_t offset_sz; /* 4 or 8 */
	uint8_t type;	   /* DW_UT_… */
	/* of the first DIE */
	bool has_lines;
	bool cxx; /* DW_AT_language */
	uint64_t low_pc, line_off, str_base, addr_base, rnglists_base;
	const char *comp_dir; /* or NULL; borrowed from a section */
};

struct dwarf_file {
	uint8_t *sec[DWARF_NR_SECS]; /* NULL: empty */
	size_t sec_sz[DWARF_NR_SECS];
	struct dwarf_unit *units; /* ascending */
	size_t unit_cnt, unit_cap;
	struct dwarf_file
		*alt;	 /* what DW_FORM_GNU_ref_alt and strp_alt refer to, or NULL; borrowed */
	uint64_t budget; /* steps left */
};

/* Reads the sections and the units' headers; alt as above. NULL with errno: ENOENT without
 * .debug_info. */
struct dwarf_file *dwarf_file__load(const struct elf_file *elf, struct dwarf_file *alt);
void dwarf_file__free(struct dwarf_file *f);

/* The unit that holds an offset of .debug_info, or NULL. */
const struct dwarf_unit *dwarf_file__unit_at(const struct dwarf_file *f, uint64_t off);

/* From off to the end of a section; empty and bad if off lies outside. */
struct rd dwarf_file__rd(const struct dwarf_file *f, enum dwarf_sec sec, uint64_t off);

/* Takes steps from the budget; false if it is used up. */
bool dwarf_file__spend(struct dwarf_file *f, uint64_t steps);

/* ---- attributes ---- */

struct dwarf_value {
	uint16_t form; /* 0: there is no such attribute */
	uint64_t u;
	const char *str; /* DW_FORM_string */
};

struct dwarf_spec {
	uint16_t attr, form;
	int64_t implicit;
};

struct dwarf_abbrev {
	uint64_t code;
	uint16_t tag;
	bool children;
	int32_t fixed_sz;	 /* bytes of all values, -1 if it varies */
	uint32_t spec, spec_cnt; /* into specs */
};

struct dwarf_abbrevs {
	struct dwarf_abbrev *abbrevs; /* ascending codes */
	size_t cnt, cap;
	struct dwarf_spec *specs;
	size_t spec_cnt, spec_cap;
};

/*
 * Reads the abbreviations of a unit, or, with only != 0, the one of that code. Empties *ret first,
 * keeps its memory. 0, -EBADMSG, -ENOMEM.
 */
int dwarf_abbrevs__read(struct dwarf_file *f, const struct dwarf_unit *u, uint64_t only,
			struct dwarf_abbrevs *ret);
void dwarf_abbrevs__done(struct dwarf_abbrevs *a);
const struct dwarf_abbrev *dwarf_abbrevs__find(const struct dwarf_abbrevs *a, uint64_t code);

/* Reads one value; form 0 and r->bad if it is damaged or of an unknown form. */
struct dwarf_value dwarf_read_value(struct rd *r, const struct dwarf_unit *u,
				    const struct dwarf_spec *spec);

/* A value as what its attribute means; NULL or false if it is none of that. */
const char *dwarf_value_string(const struct dwarf_file *f, const struct dwarf_unit *u,
			       const struct dwarf_value *v);
bool dwarf_value_address(const struct dwarf_file *f, const struct dwarf_unit *u,
			 const struct dwarf_value *v, uint64_t *ret);
/* A reference: an offset in .debug_info, of the other file if *ret_alt. */
bool dwarf_value_ref(const struct dwarf_unit *u, const struct dwarf_value *v, uint64_t *ret,
		     bool *ret_alt);
bool dwarf_value_const(const struct dwarf_value *v, uint64_t *ret);

/* Entry idx, of sz bytes, of the table at base of a section. */
bool dwarf_table_entry(const struct dwarf_file *f, enum dwarf_sec sec, uint64_t base, uint64_t idx,
		       size_t sz, uint64_t *ret);

/* ---- ranges of addresses ---- */

struct dwarf_ranges {
	struct dwarf_file *f;
	const struct dwarf_unit *u;
	struct rd r; /* at the list's next entry; v5 or not by the unit */
	uint64_t base;
	uint64_t lo, hi; /* not yet given out, if lo < hi */
	bool list;
};

/* The ranges of a DIE with these values of DW_AT_low_pc, high_pc and ranges; false if it has none.
 */
bool dwarf_ranges__init(struct dwarf_ranges *it, struct dwarf_file *f, const struct dwarf_unit *u,
			const struct dwarf_value *low, const struct dwarf_value *high,
			const struct dwarf_value *ranges);
/* The next one that is not empty and is not the mark of discarded code. */
bool dwarf_ranges__next(struct dwarf_ranges *it, uint64_t *ret_lo, uint64_t *ret_hi);

/* ---- lines ---- */

struct dwarf_line_file {
	const char *name;
	uint64_t dir;
};

struct dwarf_lines {
	uint8_t version, min_inst, line_range, opcode_base;
	int8_t line_base;
	const uint8_t *opcode_args; /* opcode_base - 1 */
	struct rd program;
	const char **dirs;
	size_t dir_cnt, dir_cap;
	struct dwarf_line_file *files;
	size_t file_cnt, file_cap;
	const char *comp_dir;
};

/* Reads the header of a unit's line table. 0, -ENOENT, -EBADMSG, -ENOMEM; dwarf_lines__done in
 * every case. */
int dwarf_lines__open(struct dwarf_lines *l, const struct dwarf_file *f,
		      const struct dwarf_unit *u);
void dwarf_lines__done(struct dwarf_lines *l);

/* Runs the program; calls row for each range of addresses of one line. Ranges of a sequence ascend.
 */
void dwarf_lines__run(struct dwarf_lines *l, struct dwarf_file *f,
		      void (*row)(void *ctx, uint64_t lo, uint64_t hi, uint64_t file,
				  uint64_t line),
		      void *ctx);

/* The absolute path of a file of the table (relative only if no directory is known); "" if there is
 * none. Returns buf. */
const char *dwarf_lines__path(const struct dwarf_lines *l, uint64_t file, char *buf, size_t sz);

#endif
