/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the stubs that addresses lie in, and of the relocations those of the GOT entries that these
 * stubs jump through. */
#include "target/plt.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/elf_file.h"
#include "target/elf_got.h"

#define MAX_STUBS (16U << 20) /* bytes of a section of them */

struct stubs {
	struct plt_stub *v;
	size_t cnt, cap;
};

/* The GOT entry that the stub at vaddr jumps through: [endbr64] [bnd] jmp *rel32(%rip). 0 if it is
 * no such stub. */
static uint64_t stub_target(const uint8_t *code, size_t sz, uint64_t vaddr)
{
	size_t pos = 0;
	int32_t rel;

	if (sz >= 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4))
		pos = 4;
	if (pos < sz && code[pos] == 0xf2)
		pos++;
	if (sz - pos < 6 || code[pos] != 0xff || code[pos + 1] != 0x25)
		return 0;
	memcpy(&rel, code + pos + 2, 4);
	return vaddr + pos + 6 + (uint64_t)(int64_t)rel;
}

static int find_stubs(struct stubs *s, const struct elf_file *elf, const char *section,
		      const uint64_t *vaddrs, size_t cnt)
{
	struct elf_section sec;
	uint8_t code[16];
	size_t i = 0, step;
	int err = 0;

	if (!elf_file__section(elf, section, &sec) || sec.size > MAX_STUBS ||
	    sec.flags & SHF_COMPRESSED || sec.addr > UINT64_MAX - sec.size)
		return 0;
	/* .plt.got without endbr64 has entries of 8 bytes */
	step = sec.entsize == 8 ? 8 : 16;
	while (i < cnt && vaddrs[i] < sec.addr)
		i++;
	while (i < cnt && vaddrs[i] < sec.addr + sec.size / step * step && !err) {
		uint64_t pos = (vaddrs[i] - sec.addr) / step * step;
		struct plt_stub stub = { .start = sec.addr + pos, .first = i };

		while (i < cnt && vaddrs[i] - stub.start < step)
			i++;
		stub.cnt = i - stub.first;
		err = elf_file__read(elf, sec.offset + pos, code, step);
		if (!err)
			stub.got = stub_target(code, step, stub.start);
		if (!stub.got)
			continue;
		err = util_reserve(&s->v, &s->cap, s->cnt + 1, sizeof(stub));
		if (!err)
			s->v[s->cnt++] = stub;
	}
	return err;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = ((const struct plt_stub *)a)->got, y = ((const struct plt_stub *)b)->got;

	return x < y ? -1 : x > y;
}

static int name_stubs(void *ctx, uint64_t got, uint32_t symbol)
{
	const struct plt_stub key = { .got = got };
	struct stubs *s = ctx;
	struct plt_stub *stub = bsearch(&key, s->v, s->cnt, sizeof(key), compare);

	if (!stub || stub->symbol)
		return 0;
	while (stub > s->v && stub[-1].got == got)
		stub--;
	for (; stub < s->v + s->cnt && stub->got == got; stub++)
		stub->symbol = symbol;
	return 0;
}

int plt_find(const struct elf_file *elf, const uint64_t *vaddrs, size_t cnt, struct plt_stub **ret,
	     size_t *ret_cnt)
{
	static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
	struct stubs s = {};
	size_t i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(sections) && !err; i++)
		err = find_stubs(&s, elf, sections[i], vaddrs, cnt);
	if (!err && s.cnt) {
		qsort(s.v, s.cnt, sizeof(*s.v), compare);
		err = elf_got__visit(elf, name_stubs, &s);
	}
	if (err) {
		free(s.v);
		return err;
	}
	*ret = s.v;
	*ret_cnt = s.cnt;
	return 0;
}
