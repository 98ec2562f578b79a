/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the reader of foreign files answers to the collector: it may have been taken over by one of
 * them. The first byte is the request, the rest the answer. Linked with the collector's half as it
 * is, whose functions are its own.
 */
#include "user/target/reader.c"
#include "user/target/reader_asks.c"

#include "tests/fuzz/parsers.h"
#include "tests/unit/truth.h"

#define ADDRESSES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

static struct reader r;
static uint8_t bytes[READER_MAX_BYTES];
static uint32_t number;
static struct reader_file file;
static struct unwind_table table;
static struct allocator_points points;
static struct symbols symbols;
static struct perf_map_names perf_map;
static struct said said;
static struct probe_sites sites;
static struct custom_sites custom;
static struct container_said container;
static uint8_t read_pieces[ADDRESSES * 16];
static uint32_t piece_sizes[ADDRESSES];
static struct pieces pieces = { .max = 16, .buf = read_pieces, .sizes = piece_sizes };

static void check_file(void)
{
	NEED(file.segment_cnt <= ELF_FILE_MAX_SEGMENTS);
	NEED(file.build_id_sz <= sizeof(file.build_id) && file.alt_id_sz <= sizeof(file.alt_id));
	NEED(!strchr(file.debuglink, '/') && strlen(file.interp) < sizeof(file.interp));
	reader_file__done(&file);
}

static void check_table(void)
{
	struct bpfprof_rule rule;
	uint64_t end = 0, addr;
	size_t i;

	for (i = 0; i < table.part_cnt; i++) {
		NEED(table.parts[i].vaddr >= end);
		end = table.parts[i].vaddr + table.parts[i].text_sz;
		for (addr = end; addr > table.parts[i].vaddr && end - addr < 1024; addr -= 8)
			truth_lookup(&table, addr - 1, &rule);
	}
	unwind_table__done(&table);
}

static void check_points(void)
{
	size_t i;

	for (i = 0; i < points.cnt; i++)
		NEED(strlen(points.points[i].name) < 64 && strlen(points.points[i].insn) < 40);
	allocator_points__done(&points);
}

static void check_names(struct symbols *s)
{
	const struct symbol_frame *f = s->frames;
	size_t i;

	NEED(s->first[s->cnt] == s->frame_cnt);
	for (i = 0; i < s->frame_cnt; i++)
		NEED(strlen(s->strings + f[i].name) + strlen(s->strings + f[i].file) <
		     2 * s->strings_sz);
	symbols__done(s);
}

static void check_symbols(void)
{
	check_names(&symbols);
}

static void check_perf_map(void)
{
	check_names(&perf_map.symbols);
}

static void check_said(void)
{
	NEED(said__is_clean(&said));
}

static void check_container(void)
{
	NEED(container_said__is_clean(&container));
}

static void check_sites(void)
{
	size_t i;

	NEED(sites.cnt && sites.cnt <= PROBE_SITES_MAX);
	for (i = 1; i < sites.cnt; i++)
		NEED(sites.sites[i].offset > sites.sites[i - 1].offset);
	probe_sites__done(&sites);
}

static void check_custom(void)
{
	size_t i;

	NEED(custom.cnt <= CUSTOM_SITES_MAX);
	for (i = 0; i < custom.cnt; i++)
		NEED(custom_name_ok(custom.sites[i].name) && custom.sites[i].removes <= 1);
	custom_sites__done(&custom);
}

static const struct {
	int (*take)(struct stream *from, const struct query *q, void *ret);
	void *ret;
	uint64_t cnt;
	void (*check)(void);
} ops[READER_NR_OPS] = {
	[READER_DESCRIBE] = { take_description, &file, 0, check_file },
	[READER_DESCRIBE_DEBUG] = { take_description, &file, 0, check_file },
	[READER_BYTES] = { take_bytes, bytes, sizeof(bytes), NULL },
	[READER_CRC] = { take_number, &number, 0, NULL },
	[READER_UNWIND_TABLE] = { take_table, &table, 0, check_table },
	[READER_HAS_USDT] = { take_number, &number, 0, NULL },
	[READER_ALLOCATORS] = { take_points, &points, 0, check_points },
	[READER_NAMES] = { take_names, &symbols, ADDRESSES, check_symbols },
	[READER_PLAIN_NAMES] = { take_names, &symbols, ADDRESSES, check_symbols },
	[READER_SPLIT_FILES] = { take_names, &symbols, ADDRESSES, check_symbols },
	[READER_PERF_MAP] = { take_perf_map, &perf_map, ADDRESSES, check_perf_map },
	[READER_ENVIRON] = { take_said, &said, 0, check_said },
	[READER_CONTEXT] = { take_said, &said, 0, check_said },
	[READER_SITES] = { take_sites, &sites, 0, check_sites },
	[READER_CUSTOM] = { take_custom, &custom, 0, check_custom },
	[READER_CONTAINER] = { take_container, &container, 0, check_container },
	[READER_PIECES] = { take_pieces, &pieces, ADDRESSES, NULL },
};
_Static_assert(READER_NR_OPS == 17, "each has a row above, and a seed in seeds.py");

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	unsigned int op = sz ? data[0] % READER_NR_OPS : 0;
	struct query q = query(op, -1, ops[op].take, ops[op].ret);
	int32_t refused;

	if (!sz || sz > STREAM_BUF)
		return 0;
	q.request.cnt = ops[op].cnt;
	/* all of the answer is there, and behind it the other end is gone */
	stream__init(&r.stream, -1);
	memcpy(r.stream.in, data + 1, sz - 1);
	r.stream.in_cnt = sz - 1;
	if (!get_answer(&r, &q, &refused) && !refused && ops[op].check)
		ops[op].check();
	return 0;
}
