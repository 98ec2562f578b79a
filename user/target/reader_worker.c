/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads foreign files without any rights, one request after the other; nothing is kept in between
 * but debug information (target/dwarf_kept.h), and that only while requests come.
 * Whoever opens the files for it does not look into them.
 */
#include "target/reader_worker.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#include <zlib.h>

#include "base/sanitizers.h"
#include "base/util.h"
#include "target/allocators.h"
#include "target/container_file.h"
#include "target/custom_sites.h"
#include "target/dwarf_kept.h"
#include "target/dwarf_split.h"
#include "target/elf_file.h"
#include "helper/fd_message.h"
#include "target/names.h"
#include "target/path_walk.h"
#include "target/perf_map.h"
#include "target/probe_sites.h"
#include "target/process_context.h"
#include "target/process_env.h"
#include "target/reader_wire.h"
#include "target/stream.h"
#include "target/unwind_build.h"
#include "target/usdt.h"

#define REQUESTS 0 /* descriptors, see sandbox_enter */
#define FILES 1
#define MAX_VDSO (64U << 10)
#define CRC_CHUNK (256U << 10)
#define MAX_DYNAMIC 512
#define PIECE_PAGE 4096U
/* Blocks that are mapped, and given back as soon as they are freed: by itself glibc takes ever larger
 * ones from the heap, which then keeps their room for the next. */
#define MAPPED_FROM (256 << 10)
#define FREE_KEPT (1U << 20) /* bytes of the heap between two requests */

static void close_files(const int *files, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		close(files[i]);
}

/* ---- the opener ---- */

static bool send_opened(int to, int32_t err, const int *files, size_t cnt)
{
	struct reader_opened opened = { .err = err };

	return !fd_message_send(to, &opened, sizeof(opened), files, cnt, 0);
}

static bool is_path(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || flags & O_PATH;
}

/* Opens for reading what an O_PATH descriptor holds. */
static int reopen(int fd)
{
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return ret < 0 ? -errno : ret;
}

/* A path, a path in a root, or a name in a folder, as O_PATH, or -errno. */
static int hold(int folder, const char *path, uint32_t who)
{
	int fd;

	if (folder >= 0 && path[0] == '/')
		return path_walk(folder, path, who);
	fd = folder < 0 ? open(path, O_PATH | O_CLOEXEC) :
			  openat(folder, path, O_PATH | O_CLOEXEC | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

/* The caller gets what is there. */
static bool open_path(int folder, const char *path, uint32_t who)
{
	int fd = hold(folder, path, who);
	bool sent = send_opened(REQUESTS, MIN(fd, 0), &fd, fd >= 0);

	if (fd >= 0)
		close(fd);
	return sent;
}

static bool open_in_folder(int folder, const char *name, uint32_t who)
{
	bool sent = open_path(folder, name, who);

	close(folder);
	return sent;
}

/* Descriptors: the worker gets the files to read. One that is open for that is handed on as it is: what its owner may
 * open may be refused to us. */
static bool open_files(const int *paths, size_t cnt)
{
	int files[READER_MAX_FILES], err = 0;
	size_t opened = 0;
	bool sent;

	while (opened < cnt && !err) {
		files[opened] = is_path(paths[opened]) ? reopen(paths[opened]) : paths[opened];
		err = MIN(files[opened], 0);
		opened += !err;
	}
	for (size_t i = 0; i < cnt; i++)
		if (i >= opened || files[i] != paths[i])
			close(paths[i]);
	sent = send_opened(FILES, err, files, err ? 0 : opened);
	/* closing may have to wait for the file's server, so it belongs to the request */
	close_files(files, opened);
	return sent && send_opened(FILES, 0, NULL, 0);
}

void reader_opener(void)
{
	int paths[READER_MAX_FILES];
	char path[PATH_MAX + sizeof(uint32_t) + 1];
	bool going = send_opened(REQUESTS, 0, NULL, 0);

	while (going) {
		uint32_t who = PATH_WALK_ANYBODY;
		size_t cnt, len;
		ssize_t n = fd_message_receive(REQUESTS, path, sizeof(path) - 1, paths,
					       ARRAY_SIZE(paths), &cnt, 0);

		if (n <= 0)
			return;
		path[n] = '\0';
		len = strlen(path) + 1;
		if (n - len == sizeof(who))
			memcpy(&who, path + len, sizeof(who));
		if (!cnt)
			going = open_path(-1, path, who);
		else
			going = path[0] ? open_in_folder(paths[0], path, who) :
					  open_files(paths, cnt);
	}
}

/* ---- the worker ---- */

struct job {
	struct stream *stream;
	struct reader_request request;
	int files[READER_MAX_FILES]; /* by bit of request.files; -1: not sent */
	struct elf_file *elfs[READER_MAX_FILES];
	void *input; /* what follows the request: addresses, or bytes */
};

/* How many bytes the vDSO's image has: its section headers are its end (vdso2c puts them there). */
static size_t vdso_size(const void *image)
{
	const Elf64_Ehdr *eh = image;
	uint64_t sz = eh->e_shoff + (uint64_t)eh->e_shnum * eh->e_shentsize;

	return eh->e_shoff && sz <= MAX_VDSO ? sz : 0;
}

/* The vDSO's image is the same for all 64-bit processes of this kernel: our own. */
static struct elf_file *open_vdso(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);

	errno = ENOENT;
	return image && vdso_size(image) ? elf_file__open_memory(image, vdso_size(image)) : NULL;
}

static int open_elfs(struct job *j)
{
	uint32_t op = j->request.op;

	if (op == READER_PERF_MAP || op == READER_ENVIRON || op == READER_CONTEXT ||
	    op == READER_CONTAINER ||
	    (j->files[0] >= 0 && (op == READER_BYTES || op == READER_CRC || op == READER_PIECES)))
		return 0;
	if (j->files[0] < 0)
		j->elfs[0] = open_vdso();
	else
		j->elfs[0] = op == READER_DESCRIBE_DEBUG ? elf_file__open_debug(j->files[0]) :
							   elf_file__open(j->files[0]);
	if (!j->elfs[0])
		return -errno;
	for (size_t i = 1; i < READER_MAX_FILES; i++)
		if (j->files[i] >= 0)
			j->elfs[i] = elf_file__open_debug(j->files[i]);
	return 0;
}

/* The answer's beginning; what follows it is only wanted where it is 0. */
static int begin_answer(struct job *j, int32_t err)
{
	return stream__put(j->stream, &err, sizeof(err));
}

/* PT_INTERP (gABI, program header): the path of the dynamic linker, with its NUL. */
static void read_interp(const struct elf_file *elf, char *ret, size_t ret_sz)
{
	char path[PATH_MAX] = "";
	struct elf_segment seg;
	const char *base;

	if (!elf_file__program_header(elf, PT_INTERP, &seg) || seg.filesz >= sizeof(path) ||
	    elf_file__read(elf, seg.offset, path, seg.filesz))
		return;
	base = strrchr(path, '/');
	snprintf(ret, ret_sz, "%s", base ? base + 1 : path);
}

/* Of the libraries that PT_DYNAMIC (gABI, dynamic section) says it needs, one of a sanitizer. */
static void read_sanitizer(const struct elf_file *elf, char *ret, size_t ret_sz)
{
	Elf64_Dyn dyn[MAX_DYNAMIC];
	uint64_t names = 0;
	struct elf_segment seg;
	size_t cnt;

	if (!elf_file__program_header(elf, PT_DYNAMIC, &seg))
		return;
	cnt = MIN(seg.filesz / sizeof(*dyn), ARRAY_SIZE(dyn));
	if (elf_file__read(elf, seg.offset, dyn, cnt * sizeof(*dyn)))
		return;
	for (size_t i = 0; i < cnt; i++)
		if (dyn[i].d_tag == DT_STRTAB)
			names = dyn[i].d_un.d_ptr;
	for (size_t i = 0; i < cnt && dyn[i].d_tag != DT_NULL; i++) {
		char name[32];

		if (dyn[i].d_tag != DT_NEEDED ||
		    elf_file__read_vaddr(elf, names + dyn[i].d_un.d_val, name, sizeof(name)) ||
		    !sanitizers_has(name, strnlen(name, sizeof(name))))
			continue;
		snprintf(ret, ret_sz, "%.*s", (int)strnlen(name, sizeof(name)), name);
		return;
	}
}

/* .gnu_debugaltlink (dwz): a path and a build id. */
static void read_altlink(const struct elf_file *elf, struct reader_description *d)
{
	char link[READER_MAX_LINK + ELF_FILE_MAX_BUILD_ID];
	struct elf_section s;
	size_t len;

	if (!elf_file__section(elf, ".gnu_debugaltlink", &s) || s.size > sizeof(link) ||
	    elf_file__read(elf, s.offset, link, s.size))
		return;
	len = strnlen(link, s.size);
	if (len + 1 >= s.size || s.size - len - 1 > sizeof(d->alt_id))
		return;
	d->alt_id_sz = s.size - len - 1;
	memcpy(d->alt_id, link + len + 1, d->alt_id_sz);
	if (len < sizeof(d->alt_name))
		strcpy(d->alt_name, link);
}

static int describe(struct job *j)
{
	struct reader_description d = {};
	const struct elf_file *elf = j->elfs[0];
	const struct elf_segment *segments;
	const uint8_t *id;
	size_t sz, cnt;
	int err;

	id = elf_file__build_id(elf, &sz);
	memcpy(d.build_id, id, sz);
	d.build_id_sz = sz;
	segments = elf_file__segments(elf, &cnt);
	d.segment_cnt = cnt;
	d.is_whole = elf_file__is_whole(elf);
	d.has_debug_info = elf_file__has_dwarf(elf);
	d.may_be_split = dwarf_split__may_be(elf);
	read_interp(elf, d.interp, sizeof(d.interp));
	read_sanitizer(elf, d.sanitizer, sizeof(d.sanitizer));
	read_altlink(elf, &d);
	if (!elf_file__debuglink(elf, d.debuglink, &d.debuglink_crc))
		d.debuglink[0] = '\0';
	err = begin_answer(j, 0);
	if (!err)
		err = stream__put(j->stream, &d, sizeof(d));
	for (size_t i = 0; i < cnt && !err; i++) {
		struct reader_segment s = {
			.vaddr = segments[i].vaddr,
			.offset = segments[i].offset,
			.filesz = segments[i].filesz,
			.memsz = segments[i].memsz,
			.exec = segments[i].exec,
		};

		err = stream__put(j->stream, &s, sizeof(s));
	}
	return err;
}

static int read_bytes(struct job *j)
{
	uint8_t buf[READER_MAX_BYTES];
	uint64_t offset = j->request.offset;
	size_t cnt = j->request.cnt;
	int err = j->elfs[0] ? elf_file__read(j->elfs[0], offset, buf, cnt) :
			       util_pread_full(j->files[0], buf, cnt, offset);

	if (err)
		return begin_answer(j, err);
	err = begin_answer(j, 0);
	return err ? err : stream__put(j->stream, buf, cnt);
}

/* How many of sz bytes from an offset there are up to the last page which is not all zeros. */
static uint32_t without_empty_pages(const uint8_t *buf, uint64_t offset, uint32_t sz)
{
	static const uint8_t zeros[PIECE_PAGE];

	while (sz) {
		uint32_t last = (uint32_t)((offset + sz - 1) % PIECE_PAGE) + 1;

		if (last > sz || memcmp(buf + sz - last, zeros, last))
			break;
		sz -= last;
	}
	return sz;
}

/* Of memory also what the program itself may not read is read: behind a stack, the guard of the next one. */
static int read_pieces(struct job *j)
{
	static uint8_t buf[READER_MAX_BYTES];
	const uint64_t *offsets = j->input;
	int err = begin_answer(j, 0);

	for (size_t i = 0; !err && i < j->request.cnt; i++) {
		ssize_t n = pread(j->files[0], buf, j->request.offset, (off_t)offsets[i]);
		uint32_t sz = n > 0 ? without_empty_pages(buf, offsets[i], (uint32_t)n) : 0;

		err = stream__put(j->stream, &sz, sizeof(sz));
		if (!err)
			err = stream__put(j->stream, buf, sz);
	}
	return err;
}

/* The CRC of a whole file, as .gnu_debuglink has it (GDB manual, "Separate Debug Files"): zlib's.
 */
static int read_crc(struct job *j)
{
	unsigned char *buf = malloc(CRC_CHUNK);
	uint32_t crc = crc32(0, NULL, 0);
	ssize_t n = 0;
	off_t off = 0;
	int err = buf ? 0 : -ENOMEM;

	while (buf && (n = pread(j->files[0], buf, CRC_CHUNK, off)) > 0) {
		crc = crc32(crc, buf, n);
		off += n;
	}
	if (n < 0)
		err = -errno;
	free(buf);
	if (err)
		return begin_answer(j, err);
	err = begin_answer(j, 0);
	return err ? err : stream__put(j->stream, &crc, sizeof(crc));
}

static int put_table(struct job *j, const struct unwind_table *t)
{
	struct reader_table head = {
		.part_cnt = t->part_cnt,
		.row_cnt = t->row_cnt,
		.rule_cnt = t->rule_cnt,
		.cfi_sz = t->cfi_sz,
		.unsupported_cnt = t->unsupported_cnt,
	};
	int err = stream__put(j->stream, &head, sizeof(head));

	for (size_t i = 0; i < t->part_cnt && !err; i++) {
		struct reader_part part = {
			.vaddr = t->parts[i].vaddr,
			.text_sz = t->parts[i].text_sz,
			.blob_sz = t->parts[i].blob_sz,
		};

		err = stream__put(j->stream, &part, sizeof(part));
		if (!err)
			err = stream__put(j->stream, t->parts[i].blob, part.blob_sz);
	}
	return err;
}

static int build_table(struct job *j)
{
	struct unwind_table t;
	int err = unwind_build(j->elfs[0], &t);

	if (err)
		return begin_answer(j, err);
	err = begin_answer(j, 0);
	if (!err)
		err = put_table(j, &t);
	unwind_table__done(&t);
	return err;
}

static int find_usdt(struct job *j)
{
	struct usdt_site *sites;
	uint32_t found;
	size_t cnt;
	int err = usdt_find(j->elfs[0], &sites, &cnt);

	if (err)
		return begin_answer(j, err);
	free(sites);
	found = cnt > 0;
	err = begin_answer(j, 0);
	return err ? err : stream__put(j->stream, &found, sizeof(found));
}

static int find_allocators(struct job *j)
{
	struct allocator_points found = {};
	int err = allocators_find(j->elfs[0], &found);
	uint64_t cnt = found.cnt;

	if (err)
		return begin_answer(j, err);
	err = begin_answer(j, 0);
	if (!err)
		err = stream__put(j->stream, &cnt, sizeof(cnt));
	for (size_t i = 0; i < cnt && !err; i++) {
		const struct allocator_point *p = &found.points[i];
		struct reader_point point = {
			.offset = p->offset,
			.ref_ctr = p->ref_ctr,
			.cookie = p->cookie,
			.vaddr = p->vaddr,
			.group = p->group,
			.skew = p->skew,
			.emulated = p->emulated,
		};

		memcpy(point.name, p->name, sizeof(point.name));
		memcpy(point.insn, p->insn, sizeof(point.insn));
		err = stream__put(j->stream, &point, sizeof(point));
	}
	allocator_points__done(&found);
	return err;
}

/* The two strings that follow the request. */
static bool split_input(const struct job *j, const char **ret_first, const char **ret_second)
{
	const char *first = j->input, *end = first + j->request.cnt, *nul;

	nul = j->request.cnt ? memchr(first, '\0', j->request.cnt) : NULL;
	*ret_first = first;
	*ret_second = nul ? nul + 1 : NULL;
	return nul && nul + 1 < end && memchr(nul + 1, '\0', (size_t)(end - nul) - 1) == end - 1;
}

static int find_sites(struct job *j)
{
	const char *provider, *name;
	struct probe_sites found;
	uint64_t cnt;
	int err = split_input(j, &provider, &name) && j->request.offset <= PROBE_SITES_ARG_LAST ?
			  0 :
			  -EINVAL;

	err = err   ?:
		      probe_sites_find(j->elfs[0], j->elfs[1], provider, name,
				       (enum probe_sites_use)j->request.offset, &found);
	if (err)
		return begin_answer(j, err);
	cnt = found.cnt;
	err = begin_answer(j, 0);
	if (!err)
		err = stream__put(j->stream, &cnt, sizeof(cnt));
	if (!err)
		err = stream__put(j->stream, found.sites, cnt * sizeof(*found.sites));
	probe_sites__done(&found);
	return err;
}

static int find_custom(struct job *j)
{
	struct custom_sites found;
	int err = custom_sites_find(j->elfs[0], &found);
	uint64_t head[2];

	if (err)
		return begin_answer(j, err);
	head[0] = found.cnt;
	head[1] = found.refused;
	err = begin_answer(j, 0);
	if (!err)
		err = stream__put(j->stream, head, sizeof(head));
	if (!err)
		err = stream__put(j->stream, found.sites, found.cnt * sizeof(*found.sites));
	custom_sites__done(&found);
	return err;
}

static int put_symbols(struct job *j, const struct symbols *s)
{
	struct reader_names head = { .frame_cnt = s->frame_cnt, .strings_sz = s->strings_sz };
	int err = stream__put(j->stream, &head, sizeof(head));

	if (!err)
		err = stream__put(j->stream, s->first, (s->cnt + 1) * sizeof(*s->first));
	if (!err)
		err = stream__put(j->stream, s->frames, s->frame_cnt * sizeof(*s->frames));
	return err ? err : stream__put(j->stream, s->strings, s->strings_sz);
}

static int find_names(struct job *j)
{
	struct symbols s;
	int err = j->request.op == READER_SPLIT_FILES ?
			  names_split_files(j->elfs[0], j->elfs[1], j->elfs[2], j->input,
					    j->request.cnt, &s) :
			  names_find(j->elfs[0], j->elfs[1], j->elfs[2], j->elfs[3], j->input,
				     j->request.cnt, j->request.op == READER_PLAIN_NAMES, &s);

	if (err)
		return begin_answer(j, err);
	err = begin_answer(j, 0);
	if (!err)
		err = put_symbols(j, &s);
	symbols__done(&s);
	return err;
}

static int read_perf_map(struct job *j)
{
	struct perf_map_names names;
	struct reader_perf_map head;
	int err = perf_map_find(j->files[0], j->input, j->request.cnt, &names);

	if (err)
		return begin_answer(j, err);
	head = (struct reader_perf_map){ .ignored = names.ignored, .unread = names.unread };
	err = begin_answer(j, 0);
	if (!err)
		err = stream__put(j->stream, &head, sizeof(head));
	if (!err)
		err = put_symbols(j, &names.symbols);
	symbols__done(&names.symbols);
	return err;
}

static int put_said(struct job *j, int said_err, const struct said *s)
{
	int err = begin_answer(j, said_err);

	return err || said_err ? err : stream__put(j->stream, s, sizeof(*s));
}

static int read_environ(struct job *j)
{
	struct said s;

	return put_said(j, process_env_read(j->files[0], &s), &s);
}

static int parse_context(struct job *j)
{
	struct said s;

	return put_said(j, process_context_parse(j->input, j->request.cnt, &s), &s);
}

static int read_container(struct job *j)
{
	const char *id = j->input;
	struct container_said s;
	int err = -EINVAL;

	if (id && !id[j->request.cnt - 1] && j->request.offset < CONTAINER_FILE_NR)
		err = container_file_read((enum container_file)j->request.offset, j->files[0], id,
					  &s);
	if (err)
		return begin_answer(j, err);
	err = begin_answer(j, 0);
	return err ? err : stream__put(j->stream, &s, sizeof(s));
}

static int (*const answers[READER_NR_OPS])(struct job *j) = {
	[READER_DESCRIBE] = describe,	       [READER_DESCRIBE_DEBUG] = describe,
	[READER_BYTES] = read_bytes,	       [READER_CRC] = read_crc,
	[READER_UNWIND_TABLE] = build_table,   [READER_HAS_USDT] = find_usdt,
	[READER_ALLOCATORS] = find_allocators, [READER_NAMES] = find_names,
	[READER_PLAIN_NAMES] = find_names,     [READER_SPLIT_FILES] = find_names,
	[READER_PERF_MAP] = read_perf_map,     [READER_ENVIRON] = read_environ,
	[READER_CONTEXT] = parse_context,      [READER_SITES] = find_sites,
	[READER_CUSTOM] = find_custom,	       [READER_CONTAINER] = read_container,
	[READER_PIECES] = read_pieces,
};

/* The files that the opener sends. False if it is gone. */
static bool take_files(struct job *j, int32_t *ret_err)
{
	struct reader_opened opened = {};
	int files[READER_MAX_FILES];
	size_t cnt, n = 0;

	for (size_t i = 0; i < READER_MAX_FILES; i++)
		j->files[i] = -1;
	*ret_err = 0;
	if (!j->request.files)
		return true;
	if (fd_message_receive(FILES, &opened, sizeof(opened), files, ARRAY_SIZE(files), &cnt, 0) !=
	    sizeof(opened))
		return false;
	*ret_err = opened.err;
	for (size_t i = 0; i < READER_MAX_FILES && n < cnt; i++)
		if (j->request.files & 1U << i)
			j->files[i] = files[n++];
	return true;
}

/* Closes all files and hears that the opener did. False if it is gone. */
static bool give_files_back(struct job *j)
{
	struct reader_opened closed;
	int none[READER_MAX_FILES];
	size_t cnt;
	ssize_t n;

	for (size_t i = 0; i < READER_MAX_FILES; i++) {
		elf_file__free(j->elfs[i]);
		if (j->files[i] >= 0)
			close(j->files[i]);
	}
	if (!j->request.files)
		return true;
	n = fd_message_receive(FILES, &closed, sizeof(closed), none, ARRAY_SIZE(none), &cnt, 0);
	close_files(none, cnt);
	return n == sizeof(closed);
}

static bool asks_for_names(const struct reader_request *r)
{
	return r->op == READER_NAMES || r->op == READER_PLAIN_NAMES ||
	       r->op == READER_SPLIT_FILES || r->op == READER_PERF_MAP;
}

static bool takes_addresses(const struct reader_request *r)
{
	return asks_for_names(r) || r->op == READER_PIECES;
}

static bool good_request(const struct reader_request *r)
{
	return r->op < READER_NR_OPS && r->files < 1U << READER_MAX_FILES &&
	       r->cnt <= (takes_addresses(r) ? READER_MAX_ADDRESSES : READER_MAX_BYTES) &&
	       (r->op != READER_PIECES || (r->files && r->offset <= READER_MAX_BYTES));
}

/* Of what follows it. */
static size_t input_element(const struct reader_request *r)
{
	if (takes_addresses(r))
		return sizeof(uint64_t);
	return r->op == READER_CONTEXT || r->op == READER_SITES || r->op == READER_CONTAINER;
}

/* -errno if the collector is gone. */
static int take_input(struct job *j)
{
	size_t each = input_element(&j->request);
	size_t sz = each * j->request.cnt;

	if (!sz)
		return 0;
	j->input = malloc(sz);
	return j->input ? stream__get(j->stream, j->input, sz) : -ENOMEM;
}

/* Gives back what is free where that is much: debug sections of hundreds of MiB are not for keeping, nor is
 * what a table was made of. What little a request takes is the next one's: each page of it would cost a fault
 * anew. */
static void trim(void)
{
#if __GLIBC_PREREQ(2, 33)
	if (mallinfo2().fordblks <= FREE_KEPT)
		return;
#endif
	malloc_trim(0);
}

/* The next request has come. Has there been none for long, what is kept goes meanwhile. */
static int await_request(struct stream *s)
{
	int err = stream__await(s);

	if (err != -ETIMEDOUT)
		return err;
	dwarf_kept_drop();
	malloc_trim(0);
	while ((err = stream__await(s)) == -ETIMEDOUT)
		;
	return err;
}

void reader_worker(void)
{
	static struct stream stream;
	const uint32_t ready = READER_READY, done = READER_DONE;

	(void)mallopt(M_MMAP_THRESHOLD, MAPPED_FROM);
	dwarf_kept_enable();
	stream__init(&stream, REQUESTS);
	if (stream__put(&stream, &ready, sizeof(ready)) || stream__flush(&stream))
		return;
	for (;;) {
		struct job j = { .stream = &stream };
		int32_t refused;
		int err = await_request(&stream);

		if (!err)
			err = stream__get(&stream, &j.request, sizeof(j.request));
		if (!err && !good_request(&j.request))
			err = -EPROTO;
		if (!err)
			err = take_input(&j);
		if (err || !take_files(&j, &refused))
			return;
		if (!refused)
			refused = open_elfs(&j);
		err = refused ? begin_answer(&j, refused) : answers[j.request.op](&j);
		free(j.input);
		if (!give_files_back(&j) || err || stream__put(&stream, &done, sizeof(done)) ||
		    stream__flush(&stream))
			return;
		if (asks_for_names(&j.request) || j.request.op == READER_UNWIND_TABLE ||
		    j.request.op == READER_CONTAINER)
			trim();
	}
}
