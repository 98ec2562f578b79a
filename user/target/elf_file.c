/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the frame of an ELF64 file (headers, segments, sections, notes) without trusting any of it.
 */
#include "target/elf_file.h"

#include <elf.h>
#include <endian.h>
#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/util.h"

#define PAGE 4096ULL /* of x86-64 */
/* TASK_SIZE_MAX (asm/page_64.h); with five levels of page tables nothing is linked higher */
#define MAX_VADDR (1ULL << 47)
#define MAX_SECTIONS (1U << 16)
#define MAX_SECTION_NAMES (16U << 20) /* bytes of .shstrtab */
#define MAX_NOTES (64U << 10)	      /* bytes of one note segment that are searched */
#define MAX_DEFLATE_EXTRA (64U << 10) /* bytes that what does not compress becomes longer */
/* zlib's deflate cannot do better than 1032 : 1 (zlib.net/zlib_tech.html): what promises more lies
 */
#define MAX_DEFLATE_RATIO 1040

struct elf_file {
	int fd; /* -1: mem */
	const uint8_t *mem;
	uint64_t size;
	Elf64_Ehdr eh;
	Elf64_Phdr *ph;
	size_t ph_cnt;
	Elf64_Shdr *sh;
	size_t sh_cnt;
	char *names; /* .shstrtab with a NUL behind */
	size_t names_sz;
	struct elf_segment *segments;
	size_t segment_cnt;
	uint8_t build_id[ELF_FILE_MAX_BUILD_ID];
	size_t build_id_sz;
};

static bool in_file(const struct elf_file *e, uint64_t off, uint64_t sz)
{
	return off <= e->size && sz <= e->size - off;
}

int elf_file__read(const struct elf_file *e, uint64_t off, void *buf, size_t sz)
{
	if (!in_file(e, off, sz))
		return -ENODATA;
	if (e->fd >= 0)
		return util_pread_full(e->fd, buf, sz, off);
	memcpy(buf, e->mem + off, sz);
	return 0;
}

/* A buffer with a NUL behind its sz bytes, or NULL with errno. */
static void *read_alloc(const struct elf_file *e, uint64_t off, size_t sz)
{
	char *buf;
	int err;

	if (!in_file(e, off, sz)) {
		errno = ENODATA;
		return NULL;
	}
	buf = malloc(sz + 1);
	if (!buf)
		return NULL;
	err = elf_file__read(e, off, buf, sz);
	if (err) {
		free(buf);
		errno = -err;
		return NULL;
	}
	buf[sz] = '\0';
	return buf;
}

static int read_header(struct elf_file *e, bool debug)
{
	int err = elf_file__read(e, 0, &e->eh, sizeof(e->eh));

	if (err)
		return err == -ENODATA ? -ENOEXEC : err;
	if (memcmp(e->eh.e_ident, ELFMAG, SELFMAG) || e->eh.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e->eh.e_ident[EI_DATA] != ELFDATA2LSB || e->eh.e_machine != EM_X86_64 ||
	    (e->eh.e_type != ET_EXEC && e->eh.e_type != ET_DYN &&
	     (e->eh.e_type != ET_REL || !debug)))
		return -ENOEXEC;
	return 0;
}

/* False if it can neither be mapped nor read. */
static bool make_segment(const struct elf_file *e, const Elf64_Phdr *ph, struct elf_segment *ret)
{
	if (ph->p_offset > e->size || ph->p_vaddr > MAX_VADDR ||
	    ph->p_memsz > MAX_VADDR - ph->p_vaddr || ph->p_filesz > MAX_VADDR - ph->p_vaddr)
		return false;
	*ret = (struct elf_segment){
		.vaddr = ph->p_vaddr,
		.offset = ph->p_offset,
		.filesz = MIN(ph->p_filesz, e->size - ph->p_offset),
		.memsz = ph->p_memsz,
		.exec = ph->p_flags & PF_X,
	};
	return true;
}

static int read_program_headers(struct elf_file *e)
{
	size_t cnt = MIN(e->eh.e_phnum, ELF_FILE_MAX_SEGMENTS), i;

	if (!cnt)
		return 0;
	if (e->eh.e_phentsize != sizeof(Elf64_Phdr))
		return -ENOEXEC;
	e->ph = read_alloc(e, e->eh.e_phoff, cnt * sizeof(Elf64_Phdr));
	if (!e->ph)
		return errno == ENODATA ? -ENOEXEC : -errno;
	e->ph_cnt = cnt;
	e->segments = calloc(cnt, sizeof(*e->segments));
	if (!e->segments)
		return -ENOMEM;
	for (i = 0; i < cnt; i++) {
		if (e->ph[i].p_type == PT_LOAD &&
		    make_segment(e, &e->ph[i], &e->segments[e->segment_cnt]))
			e->segment_cnt++;
	}
	return 0;
}

/* Section headers are a help, no more: without them, or with damaged ones, the file has no
 * sections. */
static int read_section_headers(struct elf_file *e)
{
	uint64_t cnt = e->eh.e_shnum, names = e->eh.e_shstrndx;
	Elf64_Shdr first;

	if (!e->eh.e_shoff || e->eh.e_shentsize != sizeof(Elf64_Shdr))
		return 0;
	if (elf_file__read(e, e->eh.e_shoff, &first, sizeof(first)))
		return 0;
	/* gABI, ELF header: numbers that do not fit are in section 0 */
	if (!cnt)
		cnt = first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (!cnt || cnt > MAX_SECTIONS || names >= cnt)
		return 0;
	e->sh = read_alloc(e, e->eh.e_shoff, cnt * sizeof(Elf64_Shdr));
	if (!e->sh)
		return errno == ENOMEM ? -ENOMEM : 0;
	if (e->sh[names].sh_type == SHT_STRTAB && e->sh[names].sh_size <= MAX_SECTION_NAMES) {
		e->names = read_alloc(e, e->sh[names].sh_offset, e->sh[names].sh_size);
		if (!e->names && errno == ENOMEM)
			return -ENOMEM;
		e->names_sz = e->names ? e->sh[names].sh_size : 0;
	}
	e->sh_cnt = cnt;
	return 0;
}

/* Searches the notes in buf for the build id (gABI, note section; GNU property notes are aligned to
 * 8). */
static bool find_build_id(struct elf_file *e, const uint8_t *buf, size_t sz, size_t align)
{
	size_t pos = 0;
	Elf64_Nhdr nh;

	while (sz - pos >= sizeof(nh)) {
		uint64_t desc, end;

		memcpy(&nh, buf + pos, sizeof(nh));
		desc = pos + sizeof(nh) + (uint64_t)nh.n_namesz;
		desc = (desc + align - 1) & ~(uint64_t)(align - 1);
		end = desc + nh.n_descsz;
		if (end > sz)
			return false;
		if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == 4 &&
		    !memcmp(buf + pos + sizeof(nh), "GNU", 4) && nh.n_descsz &&
		    nh.n_descsz <= ELF_FILE_MAX_BUILD_ID) {
			memcpy(e->build_id, buf + desc, nh.n_descsz);
			e->build_id_sz = nh.n_descsz;
			return true;
		}
		end = (end + align - 1) & ~(uint64_t)(align - 1);
		pos = MIN(end, sz);
	}
	return false;
}

static int read_build_id(struct elf_file *e)
{
	struct elf_section s;
	bool found = false;
	void *buf;
	size_t i;

	for (i = 0; i < e->ph_cnt && !found; i++) {
		const Elf64_Phdr *ph = &e->ph[i];
		size_t sz = MIN(ph->p_filesz, MAX_NOTES);

		if (ph->p_type != PT_NOTE)
			continue;
		buf = read_alloc(e, ph->p_offset, sz);
		if (!buf && errno == ENOMEM)
			return -ENOMEM;
		if (buf)
			found = find_build_id(e, buf, sz, ph->p_align == 8 ? 8 : 4);
		free(buf);
	}
	/* files of debug information may have program headers that lead nowhere */
	if (!found && elf_file__section(e, ".note.gnu.build-id", &s)) {
		buf = read_alloc(e, s.offset, MIN(s.size, MAX_NOTES));
		if (!buf && errno == ENOMEM)
			return -ENOMEM;
		if (buf)
			find_build_id(e, buf, MIN(s.size, MAX_NOTES), 4);
		free(buf);
	}
	return 0;
}

static struct elf_file *open_common(int fd, const void *mem, uint64_t sz, bool debug)
{
	struct elf_file *e = calloc(1, sizeof(*e));
	int err;

	if (!e)
		return NULL;
	e->fd = fd;
	e->mem = mem;
	e->size = sz;
	err = read_header(e, debug);
	if (!err)
		err = read_program_headers(e);
	if (!err)
		err = read_section_headers(e);
	if (!err)
		err = read_build_id(e);
	if (err) {
		elf_file__free(e);
		errno = -err;
		return NULL;
	}
	return e;
}

static struct elf_file *open_file(int fd, bool debug)
{
	struct stat st;

	if (fstat(fd, &st))
		return NULL;
	if (!S_ISREG(st.st_mode) || st.st_size < 0) {
		errno = ENOEXEC;
		return NULL;
	}
	return open_common(fd, NULL, (uint64_t)st.st_size, debug);
}

struct elf_file *elf_file__open(int fd)
{
	return open_file(fd, false);
}

struct elf_file *elf_file__open_debug(int fd)
{
	return open_file(fd, true);
}

struct elf_file *elf_file__open_memory(const void *data, size_t sz)
{
	return open_common(-1, data, sz, false);
}

void elf_file__free(struct elf_file *e)
{
	if (!e)
		return;
	free(e->ph);
	free(e->sh);
	free(e->names);
	free(e->segments);
	free(e);
}

int elf_file__fd(const struct elf_file *e)
{
	return e->fd;
}

const struct elf_segment *elf_file__segments(const struct elf_file *e, size_t *ret_cnt)
{
	*ret_cnt = e->segment_cnt;
	return e->segments;
}

bool elf_file__program_header(const struct elf_file *e, uint32_t type, struct elf_segment *ret)
{
	size_t i;

	for (i = 0; i < e->ph_cnt; i++) {
		const Elf64_Phdr *ph = &e->ph[i];

		if (ph->p_type != type)
			continue;
		*ret = (struct elf_segment){
			.vaddr = ph->p_vaddr,
			.offset = ph->p_offset,
			.filesz = ph->p_filesz,
			.memsz = ph->p_memsz,
			.exec = ph->p_flags & PF_X,
		};
		return true;
	}
	return false;
}

size_t elf_file__section_cnt(const struct elf_file *e)
{
	return e->sh_cnt;
}

bool elf_file__section_by_index(const struct elf_file *e, size_t idx, struct elf_section *ret)
{
	const Elf64_Shdr *sh;

	if (idx >= e->sh_cnt)
		return false;
	sh = &e->sh[idx];
	if (sh->sh_type == SHT_NULL ||
	    (sh->sh_type != SHT_NOBITS && !in_file(e, sh->sh_offset, sh->sh_size)))
		return false;
	*ret = (struct elf_section){
		.type = sh->sh_type,
		.flags = sh->sh_flags,
		.addr = sh->sh_addr,
		.offset = sh->sh_offset,
		.size = sh->sh_size,
		.link = sh->sh_link,
		.info = sh->sh_info,
		.entsize = sh->sh_entsize,
	};
	return true;
}

bool elf_file__section(const struct elf_file *e, const char *name, struct elf_section *ret)
{
	size_t i;

	for (i = 1; i < e->sh_cnt; i++) {
		const Elf64_Shdr *sh = &e->sh[i];

		if (sh->sh_name < e->names_sz && !strcmp(e->names + sh->sh_name, name))
			return sh->sh_type != SHT_NOBITS && elf_file__section_by_index(e, i, ret);
	}
	return false;
}

bool elf_file__is_whole(const struct elf_file *e)
{
	for (size_t i = 0; i < e->sh_cnt; i++) {
		const Elf64_Shdr *sh = &e->sh[i];

		if (sh->sh_type != SHT_NULL && sh->sh_type != SHT_NOBITS &&
		    !in_file(e, sh->sh_offset, sh->sh_size))
			return false;
	}
	return e->sh_cnt > 0;
}

bool elf_file__has_dwarf(const struct elf_file *e)
{
	struct elf_section info;

	return elf_file__section(e, ".debug_info", &info) ||
	       elf_file__section(e, ".zdebug_info", &info);
}

/* Where a section is expanded: sz bytes at `at`, and behind them what is free of cap. */
struct room {
	uint8_t *at;
	size_t sz, cap;
};

/* What is compressed, sz bytes at off: behind what it becomes if it fits there, for to get fresh memory
 * takes longer than to read. *ret_own is the caller's to free. NULL with errno. */
static const void *read_packed_data(const struct elf_file *e, uint64_t off, size_t sz,
				    const struct room *room, void **ret_own)
{
	void *to;
	int err;

	*ret_own = NULL;
	if (sz > room->cap - room->sz)
		return *ret_own = read_alloc(e, off, sz);
	to = room->at + room->cap - sz;
	err = elf_file__read(e, off, to, sz);
	errno = -err;
	return err ? NULL : to;
}

/* Inflates in_sz bytes at off to exactly room->sz. By libdeflate, which takes a third of the time that zlib
 * takes, and wants all of it in memory. */
static int inflate_all(const struct elf_file *e, uint64_t off, uint64_t in_sz,
		       const struct room *room)
{
	/* deflate makes nothing much longer: what comes behind is no part of it */
	uint64_t sz = MIN(in_sz, room->sz + room->sz / 64 + MAX_DEFLATE_EXTRA);
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	void *own = NULL;
	const void *in = d ? read_packed_data(e, off, sz, room, &own) : NULL;
	int err = !d ? -ENOMEM : !in ? -errno : 0;

	if (!err &&
	    libdeflate_zlib_decompress(d, in, sz, room->at, room->sz, NULL) != LIBDEFLATE_SUCCESS)
		err = -EBADMSG;
	free(own);
	libdeflate_free_decompressor(d);
	return err;
}

/* The same by zstd (RFC 8878). */
static int unzstd_all(const struct elf_file *e, uint64_t off, uint64_t in_sz,
		      const struct room *room)
{
	void *own;
	const void *in = read_packed_data(e, off, in_sz, room, &own);
	size_t n;

	if (!in)
		return -errno;
	n = ZSTD_decompress(room->at, room->sz, in, in_sz);
	free(own);
	if (!ZSTD_isError(n))
		return n == room->sz ? 0 : -EBADMSG;
	return ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
}

/* A compressed section, told apart from what its header says. */
struct packed {
	uint32_t type; /* ELFCOMPRESS_… */
	uint64_t size; /* expanded */
	size_t header_sz;
};

/* gABI, section compression; or GNU's older form: "ZLIB" and the size, big endian. */
static int read_packed(const uint8_t *raw, size_t raw_sz, bool gnu, struct packed *ret)
{
	Elf64_Chdr ch;

	*ret = (struct packed){ ELFCOMPRESS_ZLIB, 0, gnu ? 12 : sizeof(ch) };
	if (raw_sz < ret->header_sz || (gnu && memcmp(raw, "ZLIB", 4)))
		return -EBADMSG;
	if (gnu) {
		memcpy(&ret->size, raw + 4, 8);
		ret->size = be64toh(ret->size);
		return 0;
	}
	memcpy(&ch, raw, sizeof(ch));
	ret->type = ch.ch_type;
	ret->size = ch.ch_size;
	return ch.ch_type == ELFCOMPRESS_ZLIB || ch.ch_type == ELF_FILE_ZSTD ? 0 : -EOPNOTSUPP;
}

/* What a section is, as its first bytes say; one that is not compressed has type 0. */
static int look_into(const struct elf_file *e, const struct elf_section *s, bool gnu,
		     struct packed *ret)
{
	uint8_t head[sizeof(Elf64_Chdr)];
	size_t sz = MIN(sizeof(head), s->size);
	int err;

	if (s->type == SHT_NOBITS)
		return -ENODATA;
	*ret = (struct packed){ 0, s->size, 0 };
	if (!gnu && !(s->flags & SHF_COMPRESSED))
		return 0;
	err = elf_file__read(e, s->offset, head, sz);
	return err ? err : read_packed(head, sz, gnu, ret);
}

/* Can so few bytes expand to what it says? Asked before there is memory for that. */
static bool is_credible(const struct elf_section *s, const struct packed *p)
{
	return p->type != ELFCOMPRESS_ZLIB || p->size / MAX_DEFLATE_RATIO <= s->size - p->header_sz;
}

/* Its contents, of p's size, which is room's. */
static int fill(const struct elf_file *e, const struct elf_section *s, const struct packed *p,
		const struct room *room)
{
	uint64_t off = s->offset + p->header_sz, sz = s->size - p->header_sz;

	switch (p->type) {
	case ELFCOMPRESS_ZLIB:
		return inflate_all(e, off, sz, room);
	case ELF_FILE_ZSTD:
		return unzstd_all(e, off, sz, room);
	}
	return elf_file__read(e, off, room->at, sz);
}

int elf_file__read_section(const struct elf_file *e, const struct elf_section *s, size_t max,
			   void **ret_buf, size_t *ret_sz)
{
	struct packed p;
	uint8_t *buf;
	int err;

	if (s->size > max)
		return s->type == SHT_NOBITS ? -ENODATA : -E2BIG;
	err = look_into(e, s, false, &p);
	if (err)
		return err == -ENODATA && s->type != SHT_NOBITS ? -EBADMSG : err;
	if (p.size > max)
		return -E2BIG;
	if (!is_credible(s, &p))
		return -EBADMSG;
	buf = malloc(p.size + 1);
	if (!buf)
		return -ENOMEM;
	err = fill(e, s, &p, &(struct room){ buf, p.size, p.size });
	if (err) {
		free(buf);
		return err == -ENODATA ? -EBADMSG : err;
	}
	buf[p.size] = '\0';
	*ret_buf = buf;
	*ret_sz = p.size;
	return 0;
}

uint64_t elf_file__expanded_size(const struct elf_file *e, const struct elf_section *s, bool gnu)
{
	struct packed p;

	if (look_into(e, s, gnu, &p))
		return 0;
	/* what would be too large is said to be that, whether it lies or not */
	return p.size > ELF_FILE_MAX_SECTION || is_credible(s, &p) ? p.size : 0;
}

int elf_file__expand(const struct elf_file *e, const struct elf_section *s, bool gnu, void *to,
		     size_t sz, size_t cap)
{
	struct packed p;
	int err = look_into(e, s, gnu, &p);

	if (!err && (p.size != sz || !is_credible(s, &p)))
		err = -EBADMSG;
	return err ? err : fill(e, s, &p, &(struct room){ to, sz, cap });
}

bool elf_segments__offset(const struct elf_segment *segments, size_t cnt, uint64_t vaddr, size_t sz,
			  uint64_t *ret_offset)
{
	size_t i;

	for (i = 0; i < cnt; i++) {
		const struct elf_segment *s = &segments[i];
		uint64_t rel = vaddr - s->vaddr;

		if (vaddr < s->vaddr || rel > s->filesz || sz > s->filesz - rel)
			continue;
		*ret_offset = s->offset + rel;
		return s->offset <= UINT64_MAX - rel;
	}
	return false;
}

bool elf_file__offset(const struct elf_file *e, uint64_t vaddr, bool exec, uint64_t *ret)
{
	for (size_t i = 0; i < e->segment_cnt; i++) {
		const struct elf_segment *s = &e->segments[i];

		if ((exec && !s->exec) || vaddr < s->vaddr || vaddr - s->vaddr >= s->filesz)
			continue;
		return !__builtin_add_overflow(s->offset, vaddr - s->vaddr, ret);
	}
	return false;
}

int elf_file__read_vaddr(const struct elf_file *e, uint64_t vaddr, void *buf, size_t sz)
{
	uint64_t offset;

	if (!elf_segments__offset(e->segments, e->segment_cnt, vaddr, sz, &offset))
		return -ENODATA;
	return elf_file__read(e, offset, buf, sz);
}

/*
 * How well the segment goes with a mapping of sz bytes from the offset on; 0: not at all. Segments are
 * mapped by whole pages, and a page may belong to two of them. The one that is mapped just so is meant
 * before one that holds all of the mapping, and that before one whose own bytes it begins with.
 */
static unsigned int fit(const struct elf_segment *s, uint64_t offset, uint64_t sz)
{
	bool own = offset >= s->offset && offset - s->offset < s->filesz, mapped, holds, whole;
	uint64_t start = s->offset & ~(PAGE - 1), end;

	if (__builtin_add_overflow(s->offset, s->filesz, &end) || end > UINT64_MAX - PAGE)
		return (unsigned int)own << 1;
	end = (end + PAGE - 1) & ~(PAGE - 1);
	mapped = offset >= start && offset < end;
	holds = mapped && sz <= end - offset;
	whole = mapped && offset == start && sz == end - start;
	return (unsigned int)whole << 3 | (unsigned int)holds << 2 | (unsigned int)own << 1 |
	       mapped;
}

bool elf_segments__vaddr(const struct elf_segment *segments, size_t cnt, uint64_t offset,
			 uint64_t sz, uint64_t *ret_vaddr)
{
	const struct elf_segment *found = NULL;
	unsigned int best = 0;

	for (size_t i = 0; i < cnt; i++) {
		unsigned int n = segments[i].exec ? fit(&segments[i], offset, sz) : 0;

		if (n > best) {
			found = &segments[i];
			best = n;
		}
	}
	if (!found)
		return false;
	*ret_vaddr = found->vaddr + (offset - found->offset);
	return true;
}

const uint8_t *elf_file__build_id(const struct elf_file *e, size_t *ret_sz)
{
	*ret_sz = e->build_id_sz;
	return e->build_id;
}

bool elf_file__debuglink(const struct elf_file *e, char name[static 256], uint32_t *ret_crc)
{
	char buf[256 + 8];
	struct elf_section s;
	size_t len, crc;

	if (!elf_file__section(e, ".gnu_debuglink", &s) || s.flags & SHF_COMPRESSED ||
	    s.size > sizeof(buf))
		return false;
	if (elf_file__read(e, s.offset, buf, s.size))
		return false;
	len = strnlen(buf, s.size);
	crc = (len + 1 + 3) & ~3ULL;
	if (!len || len > 255 || crc + 4 > s.size)
		return false;
	if (memchr(buf, '/', len) || !strcmp(buf, ".") || !strcmp(buf, ".."))
		return false;
	memcpy(name, buf, len + 1);
	memcpy(ret_crc, buf + crc, 4);
	return true;
}
