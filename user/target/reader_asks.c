/* SPDX-License-Identifier: BSD-2-Clause */
/* What a reader can be asked, and what is taken for an answer: none is trusted. */
#include <linux/types.h>

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/allocators.h"
#include "target/container_file.h"
#include "target/custom_sites.h"
#include "target/dwarf.h"
#include "target/names.h"
#include "target/perf_map.h"
#include "target/probe_sites.h"
#include "target/reader.h"
#include "target/reader_ask.h"
#include "target/said.h"
#include "target/stream.h"
#include "target/unwind_build.h"

#define MAX_VADDR (1ULL << 47) /* of a program */
#define MAX_PARTS 4096	       /* of an unwind table */
#define MAX_TABLE (256U << 20) /* bytes of its parts */

/* ---- answers ---- */

static int take_number(struct stream *from, const struct query *q, void *ret)
{
	(void)q;
	return stream__get(from, ret, sizeof(uint32_t));
}

/* Is there a NUL in it? */
static bool is_string(const char *s, size_t sz)
{
	return memchr(s, 0, sz);
}

static int check_description(const struct reader_description *d)
{
	bool good = d->segment_cnt <= ELF_FILE_MAX_SEGMENTS &&
		    d->build_id_sz <= sizeof(d->build_id) && d->alt_id_sz <= sizeof(d->alt_id) &&
		    is_string(d->interp, sizeof(d->interp)) &&
		    is_string(d->sanitizer, sizeof(d->sanitizer)) &&
		    is_string(d->debuglink, sizeof(d->debuglink)) &&
		    is_string(d->alt_name, sizeof(d->alt_name)) && !strchr(d->debuglink, '/');

	return good ? 0 : -EPROTO;
}

static int take_segments(struct stream *from, struct reader_file *f, size_t cnt)
{
	f->segments = calloc(cnt + 1, sizeof(*f->segments));
	if (!f->segments)
		return -ENOMEM;
	for (; f->segment_cnt < cnt; f->segment_cnt++) {
		struct reader_segment s;
		int err = stream__get(from, &s, sizeof(s));

		if (err)
			return err;
		if (s.vaddr > MAX_VADDR || s.filesz > MAX_VADDR - s.vaddr ||
		    s.memsz > MAX_VADDR - s.vaddr || s.offset > INT64_MAX)
			return -EPROTO;
		f->segments[f->segment_cnt] = (struct elf_segment){
			.vaddr = s.vaddr,
			.offset = s.offset,
			.filesz = s.filesz,
			.memsz = s.memsz,
			.exec = s.exec,
		};
	}
	return 0;
}

static int take_description(struct stream *from, const struct query *q, void *ret)
{
	struct reader_file *f = ret;
	struct reader_description d;
	int err = stream__get(from, &d, sizeof(d));

	(void)q;
	memset(f, 0, sizeof(*f));
	if (!err)
		err = check_description(&d);
	if (err)
		return err;
	memcpy(f->build_id, d.build_id, sizeof(f->build_id));
	memcpy(f->alt_id, d.alt_id, sizeof(f->alt_id));
	f->build_id_sz = d.build_id_sz;
	f->alt_id_sz = d.alt_id_sz;
	strcpy(f->interp, d.interp);
	strcpy(f->sanitizer, d.sanitizer);
	strcpy(f->debuglink, d.debuglink);
	strcpy(f->alt_name, d.alt_name);
	f->debuglink_crc = d.debuglink_crc;
	f->is_whole = d.is_whole;
	f->has_debug_info = d.has_debug_info;
	f->may_be_split = d.may_be_split;
	err = take_segments(from, f, d.segment_cnt);
	if (err)
		reader_file__done(f);
	return err;
}

void reader_file__done(struct reader_file *f)
{
	free(f->segments);
	memset(f, 0, sizeof(*f));
}

static int take_bytes(struct stream *from, const struct query *q, void *ret)
{
	return stream__get(from, ret, q->request.cnt);
}

struct pieces {
	size_t max;
	uint8_t *buf;
	uint32_t *sizes;
};

static int take_pieces(struct stream *from, const struct query *q, void *ret)
{
	const struct pieces *p = ret;
	uint8_t *to = p->buf;
	int err = 0;

	for (size_t i = 0; !err && i < q->request.cnt; i++) {
		err = stream__get(from, &p->sizes[i], sizeof(p->sizes[i]));
		if (!err && p->sizes[i] > p->max)
			err = -EPROTO;
		if (!err)
			err = stream__get(from, to, p->sizes[i]);
		to += err ? 0 : p->sizes[i];
	}
	return err;
}

/* Does everything that the part names lie in it? */
static bool good_part(const struct unwind_part *p)
{
	const uint8_t *blob = p->blob;
	struct bpfprof_part head;
	uint16_t v, last = 0;
	uint64_t rules;

	if (p->blob_sz < sizeof(head))
		return false;
	memcpy(&head, blob, sizeof(head));
	if (head.row_cnt > BPFPROF_PART_MAX_ROWS ||
	    head.blk_cnt != p->text_sz >> BPFPROF_BLOCK_SHIFT ||
	    sizeof(head) + 2 * (head.blk_cnt + 1ULL) > head.off_pos ||
	    (uint64_t)head.off_pos + head.row_cnt > head.rule_pos ||
	    head.rule_pos + 2ULL * head.row_cnt > head.rules_pos || head.rules_pos > p->blob_sz ||
	    head.rule_pos % 2 || head.rules_pos % 16)
		return false;
	rules = (p->blob_sz - head.rules_pos) / sizeof(struct bpfprof_rule);
	for (size_t i = 0; i <= head.blk_cnt; i++) {
		memcpy(&v, blob + sizeof(head) + 2 * i, sizeof(v));
		if (v < last)
			return false;
		last = v;
	}
	if (last != head.row_cnt)
		return false;
	for (size_t i = 0; i < head.row_cnt; i++) {
		memcpy(&v, blob + head.rule_pos + 2 * i, sizeof(v));
		if (v >= rules)
			return false;
	}
	return true;
}

/* One part, behind those that there are. */
static int take_part(struct stream *from, struct unwind_table *t)
{
	struct unwind_part *p = &t->parts[t->part_cnt], *before = t->part_cnt ? p - 1 : NULL;
	const uint64_t block = 1ULL << BPFPROF_BLOCK_SHIFT;
	struct reader_part head;
	int err = stream__get(from, &head, sizeof(head));

	if (err)
		return err;
	if (head.vaddr % block || head.text_sz % block || head.vaddr > MAX_VADDR ||
	    (before && head.vaddr < before->vaddr + before->text_sz) ||
	    head.blob_sz > BPFPROF_CHUNK_SZ / 2 || t->blob_sz + head.blob_sz > MAX_TABLE)
		return -EPROTO;
	*p = (struct unwind_part){ .vaddr = head.vaddr,
				   .text_sz = head.text_sz,
				   .blob_sz = head.blob_sz,
				   .blob = malloc(head.blob_sz + 1) };
	if (!p->blob)
		return -ENOMEM;
	t->part_cnt++;
	t->blob_sz += head.blob_sz;
	err = stream__get(from, p->blob, head.blob_sz);
	return err ? err : good_part(p) ? 0 : -EPROTO;
}

static int take_table(struct stream *from, const struct query *q, void *ret)
{
	struct unwind_table *t = ret;
	struct reader_table head;
	int err = stream__get(from, &head, sizeof(head));

	(void)q;
	memset(t, 0, sizeof(*t));
	if (err || head.part_cnt > MAX_PARTS || head.row_cnt > UNWIND_MAX_ROWS)
		return err ? err : -EPROTO;
	t->parts = calloc(head.part_cnt + 1, sizeof(*t->parts));
	if (!t->parts)
		return -ENOMEM;
	t->row_cnt = head.row_cnt;
	t->rule_cnt = head.rule_cnt;
	t->cfi_sz = head.cfi_sz;
	t->unsupported_cnt = head.unsupported_cnt;
	while (!err && t->part_cnt < head.part_cnt)
		err = take_part(from, t);
	if (err)
		unwind_table__done(t);
	return err;
}

static int take_points(struct stream *from, const struct query *q, void *ret)
{
	struct allocator_points *points = ret;
	uint64_t cnt;
	int err = stream__get(from, &cnt, sizeof(cnt));

	(void)q;
	*points = (struct allocator_points){};
	if (err || !cnt || cnt > ALLOCATORS_MAX_POINTS)
		return !err && cnt ? -EPROTO : err;
	points->points = calloc(cnt, sizeof(*points->points));
	if (!points->points)
		return -ENOMEM;
	while (!err && points->cnt < cnt) {
		struct allocator_point *p = &points->points[points->cnt];
		struct reader_point point;

		err = stream__get(from, &point, sizeof(point));
		if (!err && (point.group > ALLOCATOR_USDT_FREE ||
			     !is_string(point.name, sizeof(point.name)) ||
			     !is_string(point.insn, sizeof(point.insn)) ||
			     (points->cnt && point.offset <= p[-1].offset)))
			err = -EPROTO;
		if (err)
			break;
		*p = (struct allocator_point){
			.group = (enum allocator_group)point.group,
			.offset = point.offset,
			.ref_ctr = point.ref_ctr,
			.cookie = point.cookie,
			.vaddr = point.vaddr,
			.skew = point.skew,
			.emulated = point.emulated,
		};
		memcpy(p->name, point.name, sizeof(p->name));
		memcpy(p->insn, point.insn, sizeof(p->insn));
		points->cnt++;
	}
	if (err)
		allocator_points__done(points);
	return err;
}
_Static_assert(sizeof(((struct reader_point *)0)->name) ==
			       sizeof(((struct allocator_point *)0)->name) &&
		       sizeof(((struct reader_point *)0)->insn) ==
			       sizeof(((struct allocator_point *)0)->insn),
	       "names fit");

static bool good_site(const struct probe_sites *s, const struct probe_site *site)
{
	return site->offset <= INT64_MAX && site->ref_ctr <= INT64_MAX &&
	       (!s->cnt || site->offset > s->sites[s->cnt - 1].offset);
}

static int take_sites(struct stream *from, const struct query *q, void *ret)
{
	struct probe_sites *s = ret;
	uint64_t cnt;
	int err = stream__get(from, &cnt, sizeof(cnt));

	(void)q;
	*s = (struct probe_sites){ 0 };
	if (err || !cnt || cnt > PROBE_SITES_MAX)
		return err ?: -EPROTO;
	s->sites = calloc(cnt, sizeof(*s->sites));
	if (!s->sites)
		return -ENOMEM;
	for (; !err && s->cnt < cnt; s->cnt++) {
		struct probe_site site;

		err = stream__get(from, &site, sizeof(site));
		if (!err && !good_site(s, &site))
			err = -EPROTO;
		if (err)
			break;
		s->sites[s->cnt] = site;
	}
	if (err)
		probe_sites__done(s);
	return err;
}

static bool good_custom_site(const struct custom_site *site)
{
	return site->offset <= INT64_MAX && site->ref_ctr <= INT64_MAX &&
	       site->value < 1U << BPFPROF_USDT_ARG_BITS && site->removes <= 1 &&
	       is_string(site->name, sizeof(site->name)) && custom_name_ok(site->name);
}

static int take_custom(struct stream *from, const struct query *q, void *ret)
{
	struct custom_sites *s = ret;
	uint64_t head[2];
	int err = stream__get(from, head, sizeof(head));

	(void)q;
	*s = (struct custom_sites){ 0 };
	if (err || head[0] > CUSTOM_SITES_MAX)
		return err ?: -EPROTO;
	s->refused = head[1];
	s->sites = calloc(head[0] + 1, sizeof(*s->sites));
	if (!s->sites)
		return -ENOMEM;
	for (; !err && s->cnt < head[0]; s->cnt++) {
		struct custom_site *site = &s->sites[s->cnt];

		err = stream__get(from, site, sizeof(*site));
		if (!err && !good_custom_site(site))
			err = -EPROTO;
		if (err)
			break;
	}
	if (err)
		custom_sites__done(s);
	return err;
}

/* Does every number lead to something? */
static bool good_names(const struct symbols *s)
{
	if (!s->strings_sz || s->strings[0] || s->strings[s->strings_sz - 1] || s->first[0] ||
	    s->first[s->cnt] != s->frame_cnt)
		return false;
	for (size_t i = 0; i < s->cnt; i++)
		if (s->first[i] > s->first[i + 1])
			return false;
	for (size_t i = 0; i < s->frame_cnt; i++) {
		const struct symbol_frame *f = &s->frames[i];

		if (f->name >= s->strings_sz || f->system_name >= s->strings_sz ||
		    f->file >= s->strings_sz)
			return false;
	}
	return true;
}

static int take_names(struct stream *from, const struct query *q, void *ret)
{
	size_t cnt = q->request.cnt;
	struct symbols *s = ret;
	struct reader_names head;
	int err = stream__get(from, &head, sizeof(head));

	memset(s, 0, sizeof(*s));
	if (err)
		return err;
	if (head.frame_cnt > MIN(cnt * (DWARF_MAX_INLINE + 1ULL), READER_MAX_FRAMES) ||
	    head.strings_sz > READER_MAX_STRINGS)
		return -EPROTO;
	s->cnt = cnt;
	s->frame_cnt = head.frame_cnt;
	s->strings_sz = head.strings_sz;
	s->first = calloc(cnt + 1, sizeof(*s->first));
	s->frames = calloc(s->frame_cnt + 1, sizeof(*s->frames));
	s->strings = malloc(s->strings_sz + 1);
	if (!s->first || !s->frames || !s->strings)
		err = -ENOMEM;
	if (!err)
		err = stream__get(from, s->first, (cnt + 1) * sizeof(*s->first));
	if (!err)
		err = stream__get(from, s->frames, s->frame_cnt * sizeof(*s->frames));
	if (!err)
		err = stream__get(from, s->strings, s->strings_sz);
	if (!err && !good_names(s))
		err = -EPROTO;
	if (err)
		symbols__done(s);
	return err;
}

static int take_perf_map(struct stream *from, const struct query *q, void *ret)
{
	struct perf_map_names *names = ret;
	struct reader_perf_map head;
	int err = stream__get(from, &head, sizeof(head));

	*names = (struct perf_map_names){};
	if (err)
		return err;
	names->ignored = head.ignored;
	names->unread = head.unread;
	return take_names(from, q, &names->symbols);
}

static int take_said(struct stream *from, const struct query *q, void *ret)
{
	struct said *s = ret;
	int err = stream__get(from, s, sizeof(*s));

	(void)q;
	if (!err && !said__is_clean(s))
		err = -EPROTO;
	if (err)
		*s = (struct said){ 0 };
	return err;
}

static int take_container(struct stream *from, const struct query *q, void *ret)
{
	struct container_said *s = ret;
	int err = stream__get(from, s, sizeof(*s));

	(void)q;
	if (!err && !container_said__is_clean(s))
		err = -EPROTO;
	if (err)
		*s = (struct container_said){ 0 };
	return err;
}

/* ---- what can be asked ---- */

static void release_file(void *ret)
{
	reader_file__done(ret);
}

static void release_table(void *ret)
{
	unwind_table__done(ret);
}

static void release_points(void *ret)
{
	allocator_points__done(ret);
}

static void release_custom(void *ret)
{
	custom_sites__done(ret);
}

static void release_sites(void *ret)
{
	probe_sites__done(ret);
}

static void release_names(void *ret)
{
	symbols__done(ret);
}

static void release_perf_map(void *ret)
{
	symbols__done(&((struct perf_map_names *)ret)->symbols);
}

static struct query query(enum reader_op op, int fd,
			  int (*take)(struct stream *, const struct query *, void *), void *ret)
{
	static void (*const release[READER_NR_OPS])(void *) = {
		[READER_DESCRIBE] = release_file,      [READER_DESCRIBE_DEBUG] = release_file,
		[READER_UNWIND_TABLE] = release_table, [READER_ALLOCATORS] = release_points,
		[READER_NAMES] = release_names,	       [READER_PLAIN_NAMES] = release_names,
		[READER_SPLIT_FILES] = release_names,  [READER_PERF_MAP] = release_perf_map,
		[READER_SITES] = release_sites,	       [READER_CUSTOM] = release_custom,
	};

	return (struct query){ .request = { .op = op, .files = fd < 0 ? 0 : READER_FILE_OBJECT },
			       .fds = { fd, -1, -1, -1 },
			       .take = take,
			       .release = release[op],
			       .ret = ret };
}

int reader__describe(struct reader *r, int fd, bool debug, struct reader_file *ret)
{
	struct query q =
		query(debug ? READER_DESCRIBE_DEBUG : READER_DESCRIBE, fd, take_description, ret);

	return reader_ask(r, &q);
}

int reader__bytes(struct reader *r, int fd, uint64_t offset, void *buf, size_t sz)
{
	struct query q = query(READER_BYTES, fd, take_bytes, buf);

	if (sz > READER_MAX_BYTES)
		return -E2BIG;
	q.request.offset = offset;
	q.request.cnt = sz;
	return reader_ask(r, &q);
}

int reader__pieces(struct reader *r, int fd, const uint64_t *offsets, size_t cnt, size_t max,
		   void *buf, uint32_t *ret_sizes)
{
	struct pieces pieces = { .max = max, .buf = buf, .sizes = ret_sizes };
	struct query q = query(READER_PIECES, fd, take_pieces, &pieces);

	if (max > READER_MAX_BYTES || cnt > READER_MAX_ADDRESSES)
		return -E2BIG;
	q.request.offset = max;
	q.request.cnt = cnt;
	q.input = offsets;
	q.input_sz = cnt * sizeof(*offsets);
	return reader_ask(r, &q);
}

int reader__crc(struct reader *r, int fd, uint32_t *ret)
{
	struct query q = query(READER_CRC, fd, take_number, ret);

	return reader_ask(r, &q);
}

int reader__unwind_table(struct reader *r, int fd, struct unwind_table *ret)
{
	struct query q = query(READER_UNWIND_TABLE, fd, take_table, ret);

	return reader_ask(r, &q);
}

int reader__has_usdt(struct reader *r, int fd, bool *ret)
{
	uint32_t found = 0;
	struct query q = query(READER_HAS_USDT, fd, take_number, &found);
	int err = reader_ask(r, &q);

	*ret = found;
	return err;
}

int reader__allocators(struct reader *r, int fd, struct allocator_points *ret)
{
	struct query q = query(READER_ALLOCATORS, fd, take_points, ret);

	return reader_ask(r, &q);
}

int reader__custom_sites(struct reader *r, int fd, struct custom_sites *ret)
{
	struct query q = query(READER_CUSTOM, fd, take_custom, ret);

	return reader_ask(r, &q);
}

static int ask_names(struct reader *r, enum reader_op op, const int *fds, const uint64_t *vaddrs,
		     size_t cnt, struct symbols *ret)
{
	struct query q = query(op, fds[0], take_names, ret);

	if (cnt > READER_MAX_ADDRESSES)
		return -E2BIG;
	for (size_t i = 0; i < READER_NAMES_FILES; i++) {
		q.fds[i] = fds[i];
		q.request.files |= fds[i] < 0 ? 0 : 1U << i;
	}
	q.request.cnt = cnt;
	q.input = vaddrs;
	q.input_sz = cnt * sizeof(*vaddrs);
	return reader_ask(r, &q);
}

int reader__names(struct reader *r, const int fds[static READER_NAMES_FILES],
		  const uint64_t *vaddrs, size_t cnt, bool plain, struct symbols *ret)
{
	return ask_names(r, plain ? READER_PLAIN_NAMES : READER_NAMES, fds, vaddrs, cnt, ret);
}

int reader__split_files(struct reader *r, const int fds[static READER_NAMES_FILES],
			const uint64_t *vaddrs, size_t cnt, struct symbols *ret)
{
	return ask_names(r, READER_SPLIT_FILES, fds, vaddrs, cnt, ret);
}

int reader__sites(struct reader *r, const int fds[static 2], const char *provider, const char *name,
		  uint32_t use, struct probe_sites *ret)
{
	struct query q = query(READER_SITES, fds[0], take_sites, ret);
	char text[2 * PROBE_SITES_MAX_NAME];

	*ret = (struct probe_sites){ 0 };
	if (strlen(provider) >= PROBE_SITES_MAX_NAME || strlen(name) >= PROBE_SITES_MAX_NAME)
		return -EINVAL;
	q.fds[1] = fds[1];
	q.request.files |= fds[1] < 0 ? 0 : READER_FILE_DEBUG;
	q.input_sz = strlen(provider) + strlen(name) + 2;
	memcpy(text, provider, strlen(provider) + 1);
	memcpy(text + strlen(provider) + 1, name, strlen(name) + 1);
	q.request.cnt = q.input_sz;
	q.request.offset = use;
	q.input = text;
	return reader_ask(r, &q);
}

int reader__perf_map(struct reader *r, int fd, const uint64_t *addrs, size_t cnt,
		     struct perf_map_names *ret)
{
	struct query q = query(READER_PERF_MAP, fd, take_perf_map, ret);

	if (cnt > READER_MAX_ADDRESSES)
		return -E2BIG;
	q.request.cnt = cnt;
	q.input = addrs;
	q.input_sz = cnt * sizeof(*addrs);
	return reader_ask(r, &q);
}

int reader__environ(struct reader *r, int fd, struct said *ret)
{
	struct query q = query(READER_ENVIRON, fd, take_said, ret);

	*ret = (struct said){ 0 };
	return reader_ask(r, &q);
}

int reader__context(struct reader *r, const void *data, size_t sz, struct said *ret)
{
	struct query q = query(READER_CONTEXT, -1, take_said, ret);

	*ret = (struct said){ 0 };
	if (sz > READER_MAX_BYTES)
		return -E2BIG;
	q.request.cnt = sz;
	q.input = data;
	q.input_sz = sz;
	return reader_ask(r, &q);
}

int reader__container(struct reader *r, int fd, enum container_file whose, const char *id,
		      struct container_said *ret)
{
	struct query q = query(READER_CONTAINER, fd, take_container, ret);

	*ret = (struct container_said){ 0 };
	q.request.offset = whose;
	q.request.cnt = strlen(id) + 1;
	q.input = id;
	q.input_sz = q.request.cnt;
	return q.request.cnt > READER_MAX_BYTES ? -E2BIG : reader_ask(r, &q);
}
