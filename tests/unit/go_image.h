/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small program as Go's linker would make it: three segments (code, constants, data), a table of
 * functions in any of its forms, trees of inlined calls, a moduledata, a version. Tests damage it
 * at the offsets that it tells.
 */
#ifndef TESTS_UNIT_GO_IMAGE_H
#define TESTS_UNIT_GO_IMAGE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GO_TEXT 0x401000ULL /* where code begins; a page of C code is before Go's, and one behind */
#define GO_CODE (GO_TEXT + 0x1000)
#define GO_CODE_SZ 0x1000ULL
#define GO_CONST 0x500000ULL
#define GO_DATA 0x600000ULL
#define GO_SEGMENT 0x4000ULL /* bytes of each segment */
#define GO_MAX_FUNCS 16

enum {
	GO_FILE_TEXT = 0x1000,
	GO_FILE_CONST = 0x5000,
	GO_FILE_DATA = 0x9000,
	GO_FILE_SZ = 0xe000
};

/* A value that holds for so many bytes; {} ends. */
struct go_value {
	int32_t value;
	uint32_t bytes;
};

struct go_call { /* of a tree */
	const char *name;
	uint8_t func_id;
	uint32_t parent_pc;
	int32_t start_line;
};

struct go_func {
	const char *name;
	uint32_t size;
	uint8_t func_id, flags;
	int32_t start_line;
	struct go_value pcsp[8], file[8], line[8], inlined[8]; /* file: index of go_image.files */
	struct go_call calls[4];
};

struct go_image {
	/* what is wanted */
	int minor; /* 16 to 27: which form */
	bool pie;
	bool has_sections;
	bool names_table; /* .gopclntab, or it has to be found */
	const struct go_func *funcs;
	const char *files[8];
	const char *version;
	const Elf64_Sym *syms; /* of .symtab; st_name: offset in syms_strings */
	size_t sym_cnt;
	const char *sym_strings;
	size_t sym_strings_sz;

	/* what was made */
	uint8_t data[GO_FILE_SZ];
	size_t header, names, cus, filetab, pctab, functab, records[GO_MAX_FUNCS], tables_end;
	size_t trees; /* go:func.* */
	size_t moduledata, buildinfo;
	size_t pos, names_end, rela_cnt, cnt;
	Elf64_Rela relas[128];
};

static inline void go_put(struct go_image *m, size_t pos, uint64_t v, size_t sz)
{
	memcpy(m->data + pos, &v, sz);
}

static inline uint64_t go_vaddr(size_t pos)
{
	return pos >= GO_FILE_DATA ? GO_DATA + (pos - GO_FILE_DATA) :
				     GO_CONST + (pos - GO_FILE_CONST);
}

/* A word that holds an address. */
static inline void go_put_address(struct go_image *m, size_t pos, uint64_t vaddr)
{
	if (m->pie)
		m->relas[m->rela_cnt++] =
			(Elf64_Rela){ .r_offset = go_vaddr(pos),
				      .r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE),
				      .r_addend = (int64_t)vaddr };
	else
		go_put(m, pos, vaddr, 8);
}

static inline size_t go_align(struct go_image *m, size_t to)
{
	m->pos = (m->pos + to - 1) & ~(to - 1);
	return m->pos;
}

static inline uint32_t go_add_string(struct go_image *m, const char *s, size_t base)
{
	size_t at = m->pos;

	strcpy((char *)m->data + m->pos, s);
	m->pos += strlen(s) + 1;
	return (uint32_t)(at - base);
}

static inline void go_add_number(struct go_image *m, uint32_t v)
{
	for (; v >= 0x80; v >>= 7)
		m->data[m->pos++] = (uint8_t)(v | 0x80);
	m->data[m->pos++] = (uint8_t)v;
}

/* The offset of a table of values in pctab; 0: there are none. */
static inline uint32_t go_add_values(struct go_image *m, const struct go_value *v)
{
	uint32_t at = (uint32_t)(m->pos - m->pctab);
	int32_t last = -1;

	if (!v->bytes)
		return 0;
	for (; v->bytes; last = v->value, v++) {
		int32_t change = (int32_t)((uint32_t)v->value - (uint32_t)last);

		go_add_number(m, change < 0 ? ~((uint32_t)change << 1) : (uint32_t)change << 1);
		go_add_number(m, v->bytes);
	}
	m->data[m->pos++] = 0;
	return at;
}

static inline size_t go_count_calls(const struct go_func *f)
{
	size_t n = 0;

	while (n < 4 && f->calls[n].name)
		n++;
	return n;
}

/* Names of inlined functions follow those of functions. */
static inline void go_put_tree(struct go_image *m, const struct go_func *f, const uint32_t *names)
{
	for (size_t i = 0; i < go_count_calls(f); i++) {
		const struct go_call *c = &f->calls[i];

		if (m->minor >= 20) {
			go_put(m, m->pos, c->func_id, 4);
			go_put(m, m->pos + 4, names[i], 4);
			go_put(m, m->pos + 8, c->parent_pc, 4);
			go_put(m, m->pos + 12, (uint32_t)c->start_line, 4);
			m->pos += 16;
		} else {
			go_put(m, m->pos + 2, c->func_id, 1);
			go_put(m, m->pos + 12, names[i], 4);
			go_put(m, m->pos + 16, c->parent_pc, 4);
			m->pos += 20;
		}
	}
}

struct go_offsets { /* of one function */
	uint32_t name, calls[4], pcsp, file, line, inlined;
	size_t tree;
};

static inline void go_put_record(struct go_image *m, const struct go_func *f,
				 const struct go_offsets *o, uint64_t start)
{
	bool has_tree = go_count_calls(f);
	size_t at = m->pos, wide = m->minor >= 18 ? 4 : 8, sz = wide + (m->minor >= 20 ? 40 : 36);
	const uint32_t words[] = { o->name, 0, 0, o->pcsp, o->file, o->line, has_tree ? 3 : 0, 0 };

	if (m->minor >= 18)
		go_put(m, at, start - GO_CODE, 4);
	else
		go_put_address(m, at, start);
	for (size_t i = 0; i < 8; i++)
		go_put(m, at + wide + i * 4, words[i], 4);
	if (m->minor >= 20)
		go_put(m, at + 36, (uint32_t)f->start_line, 4);
	m->data[at + sz - 4] = f->func_id;
	m->data[at + sz - 3] = f->flags;
	m->data[at + sz - 1] = has_tree ? 4 : 0;
	m->pos += sz;
	if (!has_tree)
		return;
	go_put(m, m->pos + 8, o->inlined, 4);
	m->pos += 12;
	if (m->minor < 18) {
		go_align(m, 8);
		go_put_address(m, m->pos + 24, go_vaddr(o->tree));
		m->pos += 32;
	} else {
		for (size_t i = 0; i < 3; i++)
			go_put(m, m->pos + i * 4, UINT32_MAX, 4);
		go_put(m, m->pos + 12, o->tree - m->trees, 4);
		m->pos += 16;
	}
}

static inline void go_put_functab(struct go_image *m, const struct go_offsets *o)
{
	size_t entry = m->minor >= 18 ? 4 : 8, i;
	uint64_t start = GO_CODE;

	m->functab = go_align(m, 8);
	m->pos += (2 * m->cnt + 1) * entry;
	for (i = 0; i <= m->cnt; i++) {
		size_t at = m->functab + 2 * i * entry;

		if (m->minor >= 18)
			go_put(m, at, start - GO_CODE, 4);
		else
			go_put_address(m, at, start);
		if (i == m->cnt)
			break;
		m->records[i] = go_align(m, 8);
		go_put(m, at + entry, m->records[i] - m->functab, entry);
		go_put_record(m, &m->funcs[i], &o[i], start);
		start += m->funcs[i].size;
	}
	m->tables_end = go_align(m, 8);
}

static inline void go_put_header(struct go_image *m)
{
	const size_t offs[] = { m->names, m->cus, m->filetab, m->pctab, m->functab };
	size_t at = m->header + 24;

	go_put(m, m->header,
	       0x08010000ffffff00ULL | (m->minor >= 20 ? 0xf1 :
					m->minor >= 18 ? 0xf0 :
							 0xfa),
	       8);
	go_put(m, m->header + 8, m->cnt, 8);
	if (m->minor >= 18) {
		if (m->minor < 26)
			go_put_address(m, at, GO_CODE);
		at += 8;
	}
	for (size_t i = 0; i < 5; i++)
		go_put(m, at + i * 8, offs[i] - m->header, 8);
}

static inline void go_put_moduledata(struct go_image *m)
{
	/* which word go:func.* is: 1.27 has moved it */
	size_t at = m->moduledata, word = m->minor >= 27 ? 43 : m->minor >= 20 ? 40 : 38;
	uint64_t end = GO_CODE;

	for (size_t i = 0; i < m->cnt; i++)
		end += m->funcs[i].size;
	go_put_address(m, at, go_vaddr(m->header));
	go_put_address(m, at + 8, go_vaddr(m->names));
	go_put(m, at + 17 * 8, m->cnt + 1, 8);
	go_put_address(m, at + 20 * 8, GO_CODE);
	go_put_address(m, at + 21 * 8, end);
	go_put_address(m, at + 22 * 8, GO_CODE);
	go_put_address(m, at + 30 * 8, GO_DATA + 0x3000);
	if (m->minor >= 18)
		go_put_address(m, at + word * 8, go_vaddr(m->trees));
}

static inline void go_put_buildinfo(struct go_image *m)
{
	size_t at = m->buildinfo;

	memcpy(m->data + at, "\xff Go buildinf:\x08", 15);
	if (m->minor >= 18) {
		m->data[at + 15] = 2;
		m->data[at + 32] = (uint8_t)strlen(m->version);
		memcpy(m->data + at + 33, m->version, strlen(m->version));
	} else {
		go_put_address(m, at + 16, go_vaddr(at + 64));
		go_put_address(m, at + 64, go_vaddr(at + 128));
		go_put(m, at + 72, strlen(m->version), 8);
		memcpy(m->data + at + 128, m->version, strlen(m->version));
	}
}

static inline void go_put_strings(struct go_image *m, struct go_offsets *o)
{
	uint32_t files[8];
	size_t i, k, n;

	m->names = m->pos;
	m->pos++; /* an empty one, so that no name is at 0 */
	for (i = 0; i < m->cnt; i++) {
		o[i].name = go_add_string(m, m->funcs[i].name, m->names);
		for (k = 0; k < go_count_calls(&m->funcs[i]); k++)
			o[i].calls[k] = go_add_string(m, m->funcs[i].calls[k].name, m->names);
	}
	m->names_end = m->pos;
	m->cus = go_align(m, 8);
	for (n = 0; n < 8 && m->files[n]; n++)
		;
	m->filetab = m->pos + 4 * n;
	m->pos = m->filetab;
	for (i = 0; i < n; i++)
		files[i] = go_add_string(m, m->files[i], m->filetab);
	memcpy(m->data + m->cus, files, 4 * n);
	m->pctab = go_align(m, 8);
	m->pos++; /* offset 0 is none */
	for (i = 0; i < m->cnt; i++) {
		o[i].pcsp = go_add_values(m, m->funcs[i].pcsp);
		o[i].file = go_add_values(m, m->funcs[i].file);
		o[i].line = go_add_values(m, m->funcs[i].line);
		o[i].inlined = go_add_values(m, m->funcs[i].inlined);
	}
}

static inline void go_put_trees(struct go_image *m, struct go_offsets *o)
{
	m->trees = m->pos;
	for (size_t i = 0; i < m->cnt; i++) {
		o[i].tree = m->pos;
		go_put_tree(m, &m->funcs[i], o[i].calls);
	}
}

/* ---- ELF ---- */

static inline Elf64_Phdr go_phdr(uint32_t type, uint32_t flags, uint64_t off, uint64_t vaddr,
				 uint64_t sz)
{
	return (Elf64_Phdr){ .p_type = type,
			     .p_flags = flags,
			     .p_offset = off,
			     .p_vaddr = vaddr,
			     .p_filesz = sz,
			     .p_memsz = sz,
			     .p_align = 0x1000 };
}

struct go_section {
	const char *name;
	uint32_t type;
	uint64_t flags, addr, off, sz;
	uint32_t link;
};

static inline void go_put_sections(struct go_image *m, Elf64_Ehdr *eh)
{
	const struct go_section sections[] = {
		{ "", SHT_NULL, 0, 0, 0, 0, 0 },
		{ ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, GO_TEXT, GO_FILE_TEXT,
		  GO_SEGMENT, 0 },
		{ !m->names_table	  ? ".rodata" :
		  m->pie && m->minor < 26 ? ".data.rel.ro.gopclntab" :
					    ".gopclntab",
		  SHT_PROGBITS, SHF_ALLOC, go_vaddr(m->header), m->header, GO_FILE_DATA - m->header,
		  0 },
		{ m->version ? ".go.buildinfo" : ".other", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE,
		  go_vaddr(m->buildinfo), m->buildinfo, 256, 0 },
		{ ".symtab", SHT_SYMTAB, 0, 0, 0xd000, m->sym_cnt * sizeof(Elf64_Sym), 5 },
		{ ".strtab", SHT_STRTAB, 0, 0, 0xd400, m->sym_strings_sz, 0 },
		{ ".shstrtab", SHT_STRTAB, 0, 0, 0xd800, 0x200, 0 },
	};
	size_t cnt = sizeof(sections) / sizeof(sections[0]), name = 0xd800 + 1;

	for (size_t i = 1; i < cnt; i++) {
		const struct go_section *s = &sections[i];
		Elf64_Shdr sh = { .sh_name = (uint32_t)(name - 0xd800),
				  .sh_type = s->type,
				  .sh_flags = s->flags,
				  .sh_addr = s->addr,
				  .sh_offset = s->off,
				  .sh_size = s->sz,
				  .sh_link = s->link };

		strcpy((char *)m->data + name, s->name);
		name += strlen(s->name) + 1;
		memcpy(m->data + 0xda00 + i * sizeof(sh), &sh, sizeof(sh));
	}
	if (m->sym_cnt)
		memcpy(m->data + 0xd000, m->syms, m->sym_cnt * sizeof(Elf64_Sym));
	if (m->sym_strings_sz)
		memcpy(m->data + 0xd400, m->sym_strings, m->sym_strings_sz);
	eh->e_shoff = 0xda00;
	eh->e_shnum = (uint16_t)cnt;
	eh->e_shstrndx = (uint16_t)(cnt - 1);
}

/* Relocations and what leads to them are at the end of the constants. */
static inline void go_put_dynamic(struct go_image *m)
{
	const size_t rela = GO_FILE_CONST + 0x3000, dynamic = rela + sizeof(m->relas);
	const Elf64_Dyn dyn[] = { { DT_RELA, { go_vaddr(rela) } },
				  { DT_RELASZ, { m->rela_cnt * sizeof(Elf64_Rela) } },
				  { DT_NULL, { 0 } } };
	Elf64_Phdr ph = go_phdr(PT_DYNAMIC, PF_R, dynamic, go_vaddr(dynamic), sizeof(dyn));

	memcpy(m->data + rela, m->relas, sizeof(m->relas));
	memcpy(m->data + dynamic, dyn, sizeof(dyn));
	memcpy(m->data + sizeof(Elf64_Ehdr) + 3 * sizeof(ph), &ph, sizeof(ph));
}

static inline void go_put_elf(struct go_image *m)
{
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			  .e_type = m->pie ? ET_DYN : ET_EXEC,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_phoff = sizeof(eh),
			  .e_ehsize = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = m->pie ? 4 : 3,
			  .e_shentsize = sizeof(Elf64_Shdr) };
	const Elf64_Phdr ph[] = {
		go_phdr(PT_LOAD, PF_R | PF_X, GO_FILE_TEXT, GO_TEXT, GO_SEGMENT),
		go_phdr(PT_LOAD, PF_R, GO_FILE_CONST, GO_CONST, GO_SEGMENT),
		go_phdr(PT_LOAD, PF_R | PF_W, GO_FILE_DATA, GO_DATA, GO_SEGMENT),
	};

	memcpy(m->data + sizeof(eh), ph, sizeof(ph));
	if (m->pie)
		go_put_dynamic(m);
	if (m->has_sections)
		go_put_sections(m, &eh);
	memcpy(m->data, &eh, sizeof(eh));
}

/* Makes the image; to be called again after a change of what is wanted. */
static inline void go_image__make(struct go_image *m)
{
	struct go_offsets o[GO_MAX_FUNCS] = {};

	memset(m->data, 0, sizeof(m->data));
	m->rela_cnt = 0;
	for (m->cnt = 0; m->funcs[m->cnt].name; m->cnt++)
		;
	m->pos = GO_FILE_CONST + 0x40;
	if (m->minor < 26) /* in .rodata */
		go_put_trees(m, o);
	m->header = go_align(m, 32);
	m->pos += m->minor >= 18 ? 72 : 64;
	go_put_strings(m, o);
	if (m->minor < 26) {
		/* once more, now that names have offsets */
		size_t end = m->pos;

		m->pos = m->trees;
		go_put_trees(m, o);
		m->pos = end;
	}
	go_put_functab(m, o);
	if (m->minor >= 26) {
		go_align(m, 32);
		go_put_trees(m, o);
		m->pos = m->functab;
		go_put_functab(m, o); /* with the trees' offsets */
	}
	go_put_header(m);
	m->moduledata = GO_FILE_DATA + 0x400;
	m->buildinfo = GO_FILE_DATA + 0x1000;
	go_put_moduledata(m);
	if (m->version)
		go_put_buildinfo(m);
	go_put_elf(m);
}

#endif
