/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds Go's own tables by section, else by their first bytes. */
#include "target/gofile.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/elf_relative.h"

#define PIECE (256U << 10)	  /* bytes searched at a time */
#define MAX_SEARCH (256ULL << 20) /* bytes of a segment that are searched */
#define MAX_MODULEDATAS 8	  /* places that look like one and are read */

/* Bytes 1 to 7 of a pcHeader: the rest of the magic, two of padding, the quantum of x86-64's
 * instructions, the size of its pointers. */
#define HEADER_TAIL 0x08010000ffffffULL

/* ---- the table ---- */

static int layout_of(uint8_t magic)
{
	return magic == 0xfa ? 16 : magic == 0xf0 ? 18 : magic == 0xf1 ? 20 : 0;
}

bool gofile_header__parse(struct gofile_header *h, const uint8_t bytes[GOFILE_MAX_HEADER],
			  uint64_t sz)
{
	uint64_t word[GOFILE_MAX_HEADER / 8], entry_sz;
	const uint64_t *at = word + 3;

	memcpy(word, bytes, sizeof(word));
	*h = (struct gofile_header){ .layout = layout_of(word[0] & 0xff), .nfunc = word[1] };
	if (word[0] >> 8 != HEADER_TAIL || !h->layout)
		return false;
	if (h->layout >= 18)
		h->text = *at++;
	h->names = at[0];
	h->cus = at[1];
	h->files = at[2];
	h->pctab = at[3];
	h->functab = at[4];
	entry_sz = h->layout >= 18 ? 8 : 16;
	return h->names >= (h->layout >= 18 ? 72 : 64) && h->names <= h->cus &&
	       h->cus <= h->files && h->files <= h->pctab && h->pctab <= h->functab &&
	       h->functab <= sz && h->nfunc &&
	       h->nfunc < (sz - h->functab) / entry_sz; /* one more entry follows them */
}

/* The table at a place, if its header holds. */
static int read_table(const struct elf_file *elf, struct gofile_table *t)
{
	uint8_t bytes[GOFILE_MAX_HEADER];
	int err = t->sz < sizeof(bytes) ? -ENODATA : 0;

	if (!err)
		err = elf_file__read(elf, t->offset, bytes, sizeof(bytes));
	if (!err && !gofile_header__parse(&t->header, bytes, t->sz))
		err = -ENOENT;
	return err == -ENODATA ? -ENOENT : err;
}

/* ---- searching ---- */

/* Calls back with each 8 bytes of a segment, aligned to 8 bytes of its address, from file offset
 * `from` on, until that returns other than 0; returns this, or 0, or -errno. */
typedef int (*word_fn)(void *ctx, uint64_t word, uint64_t offset);

static int search(const struct elf_file *elf, const struct elf_segment *s, uint64_t from,
		  uint8_t *piece, word_fn fn, void *ctx)
{
	uint64_t skew = -s->vaddr & 7, end = s->offset + MIN(s->filesz, MAX_SEARCH), pos, n, i,
		 word;
	int err = 0;

	for (pos = s->offset + skew; pos < end && !err; pos += n) {
		n = MIN(end - pos, PIECE);
		if (pos + n <= from)
			continue;
		err = elf_file__read(elf, pos, piece, n);
		for (i = 0; i + 8 <= n && !err; i += 8) {
			memcpy(&word, piece + i, 8);
			err = pos + i < from ? 0 : fn(ctx, word, pos + i);
		}
	}
	return err;
}

/* Searches what is no code. The data comes last, and is searched first: the constants before it are
 * the most. *ret_segment is the one that fn is called for. */
static int search_data(const struct elf_file *elf, const struct elf_segment **ret_segment,
		       word_fn fn, void *ctx)
{
	uint8_t *piece = malloc(PIECE);
	size_t cnt;
	int err = 0;

	if (!piece)
		return -ENOMEM;
	*ret_segment = elf_file__segments(elf, &cnt);
	for (*ret_segment += cnt; cnt && !err; cnt--) {
		--*ret_segment;
		if (!(*ret_segment)->exec)
			err = search(elf, *ret_segment, 0, piece, fn, ctx);
	}
	free(piece);
	return err;
}

struct table_search {
	const struct elf_file *elf;
	const struct elf_segment *segment;
	struct gofile_table *table;
};

static int match_table(void *ctx, uint64_t word, uint64_t offset)
{
	struct table_search *s = ctx;
	uint64_t rel = offset - s->segment->offset;
	int err;

	if (word >> 8 != HEADER_TAIL || !layout_of(word & 0xff))
		return 0;
	*s->table = (struct gofile_table){ .vaddr = s->segment->vaddr + rel,
					   .offset = offset,
					   .sz = MIN(s->segment->filesz - rel, GOFILE_MAX_TABLE),
					   .by_scan = true };
	err = read_table(s->elf, s->table);
	return err == -ENOENT ? 0 : err ? err : 1;
}

static int search_table(const struct elf_file *elf, uint64_t from, struct gofile_table *ret)
{
	struct table_search s = { .elf = elf, .table = ret };
	uint8_t *piece = malloc(PIECE);
	size_t cnt, i;
	int err = 0;

	if (!piece)
		return -ENOMEM;
	s.segment = elf_file__segments(elf, &cnt);
	for (i = 0; i < cnt && !err; i++, s.segment++) {
		if (!s.segment->exec)
			err = search(elf, s.segment, from, piece, match_table, &s);
	}
	free(piece);
	return err > 0 ? 0 : err ? err : -ENOENT;
}

/* May a file have a table that no section is named for? To search everybody's would cost. */
static bool is_searched(const struct elf_file *elf)
{
	struct elf_section s;

	return elf_file__section(elf, ".go.buildinfo", &s) ||
	       elf_file__section(elf, ".note.go.buildid", &s) ||
	       !elf_file__section_by_index(elf, 1, &s);
}

int gofile__find_table(const struct elf_file *elf, uint64_t from, struct gofile_table *ret)
{
	struct elf_section s;

	if (elf_file__section(elf, ".gopclntab", &s) ||
	    elf_file__section(elf, ".data.rel.ro.gopclntab", &s)) {
		*ret = (struct gofile_table){ .vaddr = s.addr, .offset = s.offset, .sz = s.size };
		if (s.flags & SHF_COMPRESSED || s.offset < from)
			return -ENOENT;
		return s.size > GOFILE_MAX_TABLE ? -E2BIG : read_table(elf, ret);
	}
	return is_searched(elf) ? search_table(elf, from, ret) : -ENOENT;
}

/* ---- the moduledata ---- */

struct moduledata_search {
	const struct elf_file *elf;
	const struct elf_segment *segment;
	const struct gofile_table *table;
	uint64_t *words;
	unsigned int read_cnt;
};

/* Reads the moduledata at a virtual address: 1 if it is the table's, 0 if it is none. */
static int read_moduledata(struct moduledata_search *s, uint64_t vaddr)
{
	const struct gofile_table *t = s->table;
	size_t sz = GOFILE_MODULEDATA_WORDS * sizeof(*s->words);
	int err;

	if (s->read_cnt++ >= MAX_MODULEDATAS)
		return -ENOENT;
	err = elf_file__read_vaddr(s->elf, vaddr, s->words, sz);
	if (!err)
		err = elf_relative__apply(s->elf, vaddr, s->words, sz);
	if (err)
		return err == -ENODATA ? 0 : err;
	return s->words[GOFILE_HEADER] == t->vaddr &&
	       s->words[GOFILE_NAMES] == t->vaddr + t->header.names &&
	       s->words[GOFILE_FUNCTAB_LEN] == t->header.nfunc + 1;
}

static int match_moduledata(void *ctx, uint64_t word, uint64_t offset)
{
	struct moduledata_search *s = ctx;

	return word != s->table->vaddr ?
		       0 :
		       read_moduledata(s, s->segment->vaddr + (offset - s->segment->offset));
}

int gofile__read_moduledata(const struct elf_file *elf, const struct gofile_table *table,
			    uint64_t ret_words[GOFILE_MODULEDATA_WORDS])
{
	struct moduledata_search s = { .elf = elf, .table = table, .words = ret_words };
	uint64_t places[MAX_MODULEDATAS];
	size_t cnt, i;
	int err = elf_relative__find(elf, table->vaddr, places, ARRAY_SIZE(places), &cnt);

	for (i = 0; i < cnt && !err; i++)
		err = read_moduledata(&s, places[i]);
	s.read_cnt = 0;
	if (!err)
		err = search_data(elf, &s.segment, match_moduledata, &s);
	return err > 0 ? 0 : err ? err : -ENOENT;
}

/* ---- the version ---- */

#define BUILDINFO_SZ 32	   /* before what follows from 1.18 on */
#define BUILDINFO_INLINE 2 /* a flag */
#define MAX_VERSION 128	   /* bytes of it that are looked at */

static const char buildinfo[] = "\xff Go buildinf:\x08";

/* "go1.21.3", "devel go1.22-12ab34cd", with anything behind it. */
static int parse_version(const char *s)
{
	unsigned int minor = 0, digits;

	s = strstr(s, "go1.");
	if (!s)
		return 0;
	for (s += 4, digits = 0; *s >= '0' && *s <= '9' && digits < 4; s++, digits++)
		minor = minor * 10 + (unsigned int)(*s - '0');
	return (int)minor;
}

/* Words of the file as the loader leaves them. */
static int read_words(const struct elf_file *elf, uint64_t vaddr, uint64_t *words, size_t cnt)
{
	int err = elf_file__read_vaddr(elf, vaddr, words, cnt * 8);

	return err ? err : elf_relative__apply(elf, vaddr, words, cnt * 8);
}

struct buildinfo_search {
	const struct elf_file *elf;
	const struct elf_segment *segment;
	uint64_t vaddr;
};

static int match_buildinfo(void *ctx, uint64_t word, uint64_t offset)
{
	struct buildinfo_search *s = ctx;
	char head[sizeof(buildinfo) - 1];
	int err;

	if (memcmp(&word, buildinfo, sizeof(word)))
		return 0;
	err = elf_file__read(s->elf, offset, head, sizeof(head));
	if (err || memcmp(head, buildinfo, sizeof(head)))
		return err == -ENODATA ? 0 : err;
	s->vaddr = s->segment->vaddr + (offset - s->segment->offset);
	return 1;
}

/* The address of the build information; 0: there is none. */
static uint64_t find_buildinfo(const struct elf_file *elf)
{
	struct buildinfo_search s = { .elf = elf };
	struct elf_section section;

	if (elf_file__section(elf, ".go.buildinfo", &section))
		return section.addr;
	if (!elf_file__section_by_index(elf, 1, &section))
		(void)search_data(elf, &s.segment, match_buildinfo, &s);
	return s.vaddr;
}

int gofile__minor(const struct elf_file *elf)
{
	char head[BUILDINFO_SZ], version[MAX_VERSION + 1] = "";
	uint64_t vaddr = find_buildinfo(elf), at, len, string[2];

	if (!vaddr || elf_file__read_vaddr(elf, vaddr, head, sizeof(head)) ||
	    memcmp(head, buildinfo, sizeof(buildinfo) - 1))
		return 0;
	if (head[15] & BUILDINFO_INLINE) {
		at = vaddr + sizeof(head);
		/* the length of a version fits one byte of the number that it is written as */
		if (elf_file__read_vaddr(elf, at++, version, 1))
			return 0;
		len = (uint8_t)version[0];
	} else {
		if (read_words(elf, vaddr + 16, &at, 1) || read_words(elf, at, string, 2))
			return 0;
		at = string[0];
		len = string[1];
	}
	len = MIN(len, MAX_VERSION);
	if (elf_file__read_vaddr(elf, at, version, len))
		return 0;
	version[len] = '\0';
	return parse_version(version);
}
