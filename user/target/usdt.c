/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads USDT notes, whose form is SystemTap's:
 * sourceware.org/systemtap/wiki/UserSpaceProbeImplementation. An argument is SIZE@OPERAND, the
 * operand as the assembler of the site's compiler writes it.
 */
#include "target/usdt.h"

#include <elf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/elf_file.h"

#define MAX_NOTES (16U << 20) /* bytes of the section */
#define NOTE_TYPE 3
#define PROVIDER "otel_memory"
#define OFF_MAX 8191 /* what 14 bits hold, see BPFPROF_USDT_OFF */
#define OFF_MIN (-8192)

/* ---- arguments ---- */

/* DWARF numbers of the general registers (psABI, figure 3.36), by their names of 8 and 4 bytes. */
static const char *const registers[][2] = {
	{ "rax", "eax" },  { "rdx", "edx" },  { "rcx", "ecx" },	 { "rbx", "ebx" },
	{ "rsi", "esi" },  { "rdi", "edi" },  { "rbp", "ebp" },	 { "rsp", "esp" },
	{ "r8", "r8d" },   { "r9", "r9d" },   { "r10", "r10d" }, { "r11", "r11d" },
	{ "r12", "r12d" }, { "r13", "r13d" }, { "r14", "r14d" }, { "r15", "r15d" },
};

/* One argument without its size, as far as it has been read. */
struct operand {
	unsigned int reg;
	bool deref;
	int64_t off;
};

static bool parse_register(const char **s, bool wide_only, unsigned int *ret)
{
	size_t len, i, w;

	if (**s != '%')
		return false;
	len = strspn(*s + 1, "abcdefghijklmnopqrstuvwxyz0123456789");
	for (i = 0; i < ARRAY_SIZE(registers); i++) {
		for (w = 0; w < (wide_only ? 1 : 2); w++) {
			if (strlen(registers[i][w]) != len || memcmp(registers[i][w], *s + 1, len))
				continue;
			*ret = i;
			*s += 1 + len;
			return true;
		}
	}
	return false;
}

/* A number with an optional sign, decimal or after 0x hexadecimal; nothing else that strtoll takes.
 */
static bool parse_number(const char **s, int64_t *ret)
{
	const char *digits = *s + (**s == '-' || **s == '+');
	char *end;

	if (*digits < '0' || *digits > '9')
		return false;
	errno = 0;
	*ret = strtoll(*s, &end, 0);
	*s = end;
	return !errno;
}

static bool parse_operand(const char **s, struct operand *ret)
{
	*ret = (struct operand){ .reg = BPFPROF_USDT_CONST };
	if (**s == '%')
		return parse_register(s, false, &ret->reg);
	if (**s == '$') {
		++*s;
		return parse_number(s, &ret->off);
	}
	if (**s != '(' && !parse_number(s, &ret->off))
		return false;
	ret->deref = true;
	if (*(*s)++ != '(' || !parse_register(s, true, &ret->reg))
		return false;
	return *(*s)++ == ')';
}

static int parse_arg(const char **s, uint64_t *ret)
{
	struct operand op;
	int64_t size;

	if (!parse_number(s, &size) || *(*s)++ != '@')
		return -EINVAL;
	if (size != 8 && size != -8 && size != 4 && size != -4)
		return -EINVAL;
	if (!parse_operand(s, &op) || (**s && **s != ' '))
		return -EINVAL;
	if (op.off < OFF_MIN || op.off > OFF_MAX)
		return -EINVAL;
	*ret = op.reg | (uint64_t)op.deref << 5 | (uint64_t)(size == 4 || size == -4) << 6 |
	       ((uint64_t)op.off & 0x3fff) << 7;
	return 0;
}

int usdt_parse_args(const char *args, size_t want, uint64_t *ret)
{
	uint64_t arg, cookie = 0;
	size_t i;
	int err;

	for (i = 0; i < want; i++) {
		args += strspn(args, " ");
		err = parse_arg(&args, &arg);
		if (err)
			return err;
		cookie |= arg << (i * BPFPROF_USDT_ARG_BITS);
	}
	*ret = cookie;
	return 0;
}

/* ---- notes ---- */

/* Takes the next string from a description that ends at end. */
static const char *next_string(const char **p, const char *end)
{
	const char *s = *p, *nul = memchr(s, '\0', end - s);

	if (!nul)
		return NULL;
	*p = nul + 1;
	return s;
}

/* Prelink moves the addresses, but not those in notes: by as much as the section of the base has moved. */
static bool parse_desc(const char *desc, size_t sz, const struct elf_section *base,
		       struct usdt_note *ret)
{
	const char *p = desc + 24, *end = desc + sz;
	uint64_t words[3], moved;

	if (sz < sizeof(words))
		return false;
	memcpy(words, desc, sizeof(words));
	moved = base && words[1] ? base->addr - words[1] : 0;
	ret->vaddr = words[0] + moved;
	ret->semaphore = words[2] ? words[2] + moved : 0;
	ret->provider = next_string(&p, end);
	ret->name = ret->provider ? next_string(&p, end) : NULL;
	ret->args = ret->name ? next_string(&p, end) : NULL;
	return ret->args;
}

/* The notes in a section, each: header, name, description, the latter two padded to 4. */
static int read_notes(const char *buf, size_t sz, const struct elf_section *base, usdt_note_fn fn,
		      void *ctx)
{
	uint64_t pos = 0, name, desc, end;
	struct usdt_note note;
	Elf64_Nhdr nh;
	int err = 0;

	for (; !err && sz - pos >= sizeof(nh); pos = MIN((end + 3) & ~3ULL, sz)) {
		memcpy(&nh, buf + pos, sizeof(nh));
		name = pos + sizeof(nh);
		desc = name + ((nh.n_namesz + UINT64_C(3)) & ~UINT64_C(3));
		end = desc + nh.n_descsz;
		if (end > sz)
			break;
		if (nh.n_type == NOTE_TYPE && nh.n_namesz == sizeof("stapsdt") &&
		    !memcmp(buf + name, "stapsdt", sizeof("stapsdt")) &&
		    parse_desc(buf + desc, nh.n_descsz, base, &note))
			err = fn(ctx, &note);
	}
	return err;
}

int usdt_visit(const struct elf_file *elf, usdt_note_fn fn, void *ctx)
{
	struct elf_section notes, base;
	bool has_base = elf_file__section(elf, ".stapsdt.base", &base);
	size_t sz;
	void *buf;
	int err;

	if (!elf_file__section(elf, ".note.stapsdt", &notes) || notes.type != SHT_NOTE ||
	    notes.size > MAX_NOTES || notes.flags & SHF_COMPRESSED)
		return 0;
	err = elf_file__read_section(elf, &notes, MAX_NOTES, &buf, &sz);
	if (err)
		return err;
	err = read_notes(buf, sz, has_base ? &base : NULL, fn, ctx);
	free(buf);
	return err;
}

/* ---- of allocations ---- */

struct sites {
	struct usdt_site *sites;
	size_t cnt, cap;
};

static bool make_site(const struct usdt_note *n, struct usdt_site *ret)
{
	if (strcmp(n->provider, PROVIDER))
		return false;
	*ret = (struct usdt_site){ .vaddr = n->vaddr,
				   .semaphore = n->semaphore,
				   .alloc = !strcmp(n->name, "alloc") };
	if (!ret->alloc && strcmp(n->name, "free"))
		return false;
	return !usdt_parse_args(n->args, ret->alloc ? 3 : 1, &ret->cookie);
}

static int add_site(void *ctx, const struct usdt_note *n)
{
	struct sites *s = ctx;
	struct usdt_site site;

	if (s->cnt >= USDT_MAX_SITES || !make_site(n, &site))
		return 0;
	if (util_reserve(&s->sites, &s->cap, s->cnt + 1, sizeof(site)))
		return -ENOMEM;
	s->sites[s->cnt++] = site;
	return 0;
}

int usdt_find(const struct elf_file *elf, struct usdt_site **ret, size_t *ret_cnt)
{
	struct sites s = { 0 };
	int err = usdt_visit(elf, add_site, &s);

	if (err) {
		free(s.sites);
		s = (struct sites){ 0 };
	}
	*ret = s.sites;
	*ret_cnt = s.cnt;
	return err;
}
