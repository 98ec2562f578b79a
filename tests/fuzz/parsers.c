/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/parsers.h"

#include <elf.h>
#include <linux/types.h>
#include <stdlib.h>
#include <string.h>

#include "base/strtab.h"
#include "base/util.h"
#include "bpfprof.h"
#include "target/allocators.h"
#include "target/custom_sites.h"
#include "target/copy.h"
#include "target/demangle.h"
#include "target/dwarf.h"
#include "target/elf_file.h"
#include "target/names.h"
#include "target/probe_sites.h"
#include "target/procs.h"
#include "target/symtab.h"
#include "target/unwind_build.h"
#include "target/usdt.h"
#include "tests/unit/truth.h"

#define PER_SEGMENT 24
#define MAX_ADDRESSES 96

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Addresses all over the code, ascending. */
static size_t pick_addresses(const struct elf_file *elf, uint64_t ret[static MAX_ADDRESSES])
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".text" };
	const struct elf_segment *seg;
	struct elf_section s;
	size_t n = 0, cnt, i, k;

	for (i = 0; i < ARRAY_SIZE(sections); i++) {
		for (k = 0; k < 8 && elf_file__section(elf, sections[i], &s); k++)
			ret[n++] = s.addr + 16 * k;
	}
	seg = elf_file__segments(elf, &cnt);
	for (i = 0; i < cnt; i++) {
		for (k = 0; k < PER_SEGMENT && seg[i].exec && n < MAX_ADDRESSES; k++)
			ret[n++] = seg[i].vaddr + seg[i].filesz / PER_SEGMENT * k;
	}
	qsort(ret, n, sizeof(*ret), ascending);
	return n;
}

/* Memory in the place of a segment, and all around it, by what else is mapped of the file. */
static void check_copies(const struct elf_segment *segments, size_t cnt)
{
	struct copy_place places[8];

	for (size_t i = 0; i < cnt; i++) {
		uint64_t page = segments[i].vaddr & ~(COPY_PAGE - 1);
		struct proc_map beside = { .start = page,
					   .offset = segments[i].offset & ~(COPY_PAGE - 1) };
		struct proc_map range = { .start = page, .end = page + (COPY_PAGE << i % 32) };
		size_t n = copy_places(segments, cnt, &beside, places, ARRAY_SIZE(places));

		NEED(n <= ARRAY_SIZE(places));
		while (n--) {
			struct copy_place *p = &places[n];

			NEED(p->start < p->end && p->start % COPY_PAGE == 0);
			NEED(!copy_cut(segments, cnt, &range, p) ||
			     (p->start >= range.start && p->end <= range.end && p->start < p->end &&
			      p->start % COPY_PAGE == 0));
		}
	}
}

void parsers_frame(const struct elf_file *elf)
{
	static const uint32_t types[] = { PT_GNU_EH_FRAME, PT_NOTE, PT_DYNAMIC, PT_INTERP };
	const struct elf_segment *seg;
	struct elf_segment view;
	struct elf_section s;
	uint64_t vaddr;
	uint32_t crc;
	char name[256];
	uint8_t code[16];
	size_t cnt, i;

	seg = elf_file__segments(elf, &cnt);
	NEED(cnt <= ELF_FILE_MAX_SEGMENTS);
	for (i = 0; i < cnt; i++) {
		truth_vaddr(elf, seg[i].offset, &vaddr);
		truth_vaddr(elf, seg[i].offset + seg[i].filesz, &vaddr);
		elf_file__read_vaddr(elf, seg[i].vaddr, code, sizeof(code));
		elf_file__read_vaddr(elf, seg[i].vaddr + seg[i].filesz - 8, code, sizeof(code));
	}
	check_copies(seg, cnt);
	for (i = 0; i < ARRAY_SIZE(types); i++)
		elf_file__program_header(elf, types[i], &view);
	for (i = 0; i < 64; i++)
		elf_file__section_by_index(elf, i, &s);
	elf_file__build_id(elf, &cnt);
	NEED(cnt <= ELF_FILE_MAX_BUILD_ID);
	if (elf_file__debuglink(elf, name, &crc))
		NEED(memchr(name, '\0', sizeof(name)) && name[0] && !strchr(name, '/'));
}

/* The kernel side masks what it reads of a part, but what it finds has to be the part's own. */
static void check_part(const struct unwind_part *part)
{
	const struct bpfprof_part *head = part->blob;
	const uint8_t *blob = part->blob;
	uint32_t rules, i;
	uint16_t first, next, rule;

	NEED(part->blob_sz <= BPFPROF_CHUNK_SZ / 2 && part->blob_sz >= sizeof(*head));
	NEED(head->row_cnt <= BPFPROF_PART_MAX_ROWS && head->rules_pos <= part->blob_sz);
	NEED(sizeof(*head) + 2 * (head->blk_cnt + 1) <= head->off_pos);
	NEED(head->off_pos + head->row_cnt <= head->rule_pos);
	NEED(head->rule_pos + 2 * head->row_cnt <= head->rules_pos);
	rules = (part->blob_sz - head->rules_pos) / sizeof(struct bpfprof_rule);
	for (i = 0; i < head->blk_cnt; i++) {
		memcpy(&first, blob + sizeof(*head) + 2 * i, 2);
		memcpy(&next, blob + sizeof(*head) + 2 * (i + 1), 2);
		NEED(first <= next && next <= head->row_cnt);
		for (; first + 1 < next; first++)
			NEED(blob[head->off_pos + first] < blob[head->off_pos + first + 1]);
	}
	for (i = 0; i < head->row_cnt; i++) {
		memcpy(&rule, blob + head->rule_pos + 2 * i, 2);
		NEED(rule < rules);
	}
}

void parsers_unwind(struct elf_file *elf, struct parsers_found *ret)
{
	struct bpfprof_rule rule;
	struct unwind_table t;
	uint64_t end = 0;
	size_t i;

	ret->unwind_err = unwind_build(elf, &t);
	if (ret->unwind_err)
		return;
	NEED(t.row_cnt <= UNWIND_MAX_ROWS);
	for (i = 0; i < t.part_cnt; i++) {
		NEED(t.parts[i].vaddr >= end && !(t.parts[i].vaddr % 256));
		end = t.parts[i].vaddr + t.parts[i].text_sz;
		NEED(end > t.parts[i].vaddr);
		check_part(&t.parts[i]);
		truth_lookup(&t, t.parts[i].vaddr + t.parts[i].text_sz / 2, &rule);
		NEED(rule.cfa <= BPFPROF_CFA_UNSUPPORTED);
	}
	ret->rows = t.row_cnt;
	unwind_table__done(&t);
}

void parsers_symbols(const struct elf_file *elf, struct parsers_found *ret)
{
	uint64_t vaddrs[MAX_ADDRESSES];
	struct symtab_answers a;
	size_t i;

	ret->addresses = pick_addresses(elf, vaddrs);
	ret->symbols_err = symtab_resolve(elf, NULL, vaddrs, ret->addresses, &a);
	if (ret->symbols_err)
		return;
	for (i = 0; i < ret->addresses; i++) {
		if (!a.symbols[i].name)
			continue;
		NEED(a.symbols[i].start <= vaddrs[i]);
		free(demangle(a.names + a.symbols[i].name));
		ret->symbols++;
	}
	symtab_answers__done(&a);
}

void parsers_dwarf(const struct elf_file *elf, struct parsers_found *ret)
{
	struct strtab *strings = strtab__new();
	uint64_t vaddrs[MAX_ADDRESSES];
	struct dwarf_answers a;
	size_t cnt, i;

	NEED(strings);
	cnt = pick_addresses(elf, vaddrs);
	ret->dwarf_err = dwarf_resolve(elf, NULL, NULL, vaddrs, cnt, strings, &a);
	for (i = 0; i < cnt && !ret->dwarf_err; i++) {
		NEED(!a.answers || a.answers[i].cnt <= DWARF_MAX_INLINE);
		NEED(!a.answers || a.answers[i].first + a.answers[i].cnt <= a.frame_cnt);
		ret->dwarf += a.answers && a.answers[i].cnt;
	}
	for (i = 0; i < a.frame_cnt && !ret->dwarf_err; i++) {
		NEED(strtab__get(strings, a.frames[i].name));
		NEED(strtab__get(strings, a.frames[i].linkage_name));
		NEED(strtab__get(strings, a.frames[i].file));
	}
	if (!ret->dwarf_err)
		dwarf_answers__done(&a);
	strtab__free(strings);
}

void parsers_names(const struct elf_file *elf, struct parsers_found *ret)
{
	uint64_t vaddrs[MAX_ADDRESSES];
	struct symbols s;
	size_t cnt, i;

	cnt = pick_addresses(elf, vaddrs);
	ret->names_err = names_find(elf, NULL, NULL, NULL, vaddrs, cnt, false, &s);
	if (ret->names_err)
		return;
	NEED(s.cnt == cnt && !s.first[0] && s.first[cnt] == s.frame_cnt);
	NEED(s.strings_sz && !s.strings[0] && !s.strings[s.strings_sz - 1]);
	for (i = 0; i < cnt; i++)
		NEED(s.first[i] <= s.first[i + 1]);
	for (i = 0; i < s.frame_cnt; i++) {
		NEED(s.frames[i].name && s.frames[i].name < s.strings_sz);
		NEED(s.frames[i].system_name < s.strings_sz && s.frames[i].file < s.strings_sz);
	}
	symbols__done(&s);
}

void parsers_usdt(const struct elf_file *elf, struct parsers_found *ret)
{
	struct custom_sites custom;
	struct usdt_site *sites;

	ret->usdt_err = usdt_find(elf, &sites, &ret->usdt_sites);
	NEED(ret->usdt_sites <= USDT_MAX_SITES);
	if (!ret->usdt_err)
		free(sites);
	if (custom_sites_find(elf, &custom))
		return;
	NEED(custom.cnt <= CUSTOM_SITES_MAX);
	for (size_t i = 0; i < custom.cnt; i++)
		NEED(custom_name_ok(custom.sites[i].name));
	custom_sites__done(&custom);
}

void parsers_sites(const struct elf_file *elf)
{
	static const struct {
		const char *provider, *name;
		enum probe_sites_use use;
	} asked[] = {
		{ "", "main", PROBE_SITES_HIT },      { "", "main", PROBE_SITES_RETURN },
		{ "", "main", PROBE_SITES_ARG_LAST }, { "", "a", PROBE_SITES_ARG },
		{ "", "a::b", PROBE_SITES_HIT },      { "otel_memory", "alloc", PROBE_SITES_HIT }
	};
	struct probe_sites s;
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(asked); i++) {
		int err = probe_sites_find(elf, elf, asked[i].provider, asked[i].name, asked[i].use,
					   &s);

		NEED(err ? !s.cnt : s.cnt && s.cnt <= PROBE_SITES_MAX);
		for (k = 1; k < s.cnt; k++)
			NEED(s.sites[k].offset > s.sites[k - 1].offset);
		probe_sites__done(&s);
	}
}

void parsers_allocators(const struct elf_file *elf, struct parsers_found *ret)
{
	struct allocator_points p;
	size_t i;

	ret->allocators_err = allocators_find(elf, &p);
	if (ret->allocators_err)
		return;
	NEED(p.cnt <= ALLOCATORS_MAX_POINTS);
	for (i = 0; i < p.cnt; i++) {
		NEED(!i || p.points[i - 1].offset < p.points[i].offset);
		NEED(memchr(p.points[i].name, '\0', sizeof(p.points[i].name)));
		NEED(memchr(p.points[i].insn, '\0', sizeof(p.points[i].insn)));
	}
	ret->allocators = p.cnt;
	allocator_points__done(&p);
}
