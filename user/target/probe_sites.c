/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/probe_sites.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "target/demangle.h"
#include "target/elf_file.h"
#include "target/elf_symbols.h"
#include "target/gofile.h"
#include "target/probe_point.h"
#include "target/usdt.h"

#define MAX_HINT 256
#define MAX_VERSIONS (8U << 20) /* bytes of .gnu.version */
#define HIDDEN 0x8000		/* there: of a version that nobody is linked with any more */

/* ---- functions ---- */

struct function_search {
	const struct elf_file *elf;
	const char *name;
	char hint[MAX_HINT]; /* its mangled form has this in it; "": not known */
	enum {
		NONE,
		DEMANGLED,
		EXACT
	} found; /* by which name */
	bool several;
	bool mangled; /* its symbol is C++'s or Rust's */
	uint64_t vaddr, size;
	const uint16_t *versions; /* of the table's symbols; NULL: they have none */
	size_t version_cnt;
};

static bool is_of_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* The last part of the name, before its parameters: compilers mangle it as it is, but for operators. */
static void set_hint(struct function_search *s)
{
	size_t end = strcspn(s->name, "(<"), len = 0;

	while (len < end && is_of_word(s->name[end - len - 1]))
		len++;
	if (len >= sizeof(s->hint) || strstr(s->name, "operator"))
		len = 0;
	memcpy(s->hint, s->name + end - len, len);
	s->hint[len] = '\0';
}

static bool has_mangling(const char *symbol)
{
	return !strncmp(symbol, "_Z", 2) || !strncmp(symbol, "_R", 2);
}

/* Is it the mangled form of the name? Parts of functions that compilers split are no functions. */
static bool is_mangled(const struct function_search *s, const char *symbol)
{
	size_t len = strlen(s->name);
	char *plain;
	bool same;

	if (!has_mangling(symbol) || !strstr(symbol, s->hint))
		return false;
	plain = demangle(symbol);
	same = plain && !strncmp(plain, s->name, len) && (!plain[len] || plain[len] == '(') &&
	       !strstr(plain, " [clone ");
	free(plain);
	return same;
}

static int visit_symbol(void *ctx, const Elf64_Sym *sym, const char *name, size_t index)
{
	struct function_search *s = ctx;
	bool exact = !strcmp(name, s->name);
	uint64_t offset;

	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF ||
	    (index < s->version_cnt && s->versions[index] & HIDDEN) ||
	    (!exact && (s->found == EXACT || !is_mangled(s, name))) ||
	    !elf_file__offset(s->elf, sym->st_value, true, &offset))
		return 0;
	if (s->found == NONE || (exact && s->found != EXACT)) {
		s->found = exact ? EXACT : DEMANGLED;
		s->several = false;
		s->mangled = has_mangling(name);
		s->vaddr = sym->st_value;
		s->size = sym->st_size;
	}
	s->several |= s->vaddr != sym->st_value;
	return 0;
}

/* Of several versions of a function the newest one is meant. */
static int visit_dynamic(struct function_search *s)
{
	struct elf_section versions;
	void *buf = NULL;
	size_t sz;
	int err = 0;

	if (elf_file__section(s->elf, ".gnu.version", &versions) && versions.size <= MAX_VERSIONS &&
	    !(versions.flags & SHF_COMPRESSED))
		err = elf_file__read_section(s->elf, &versions, MAX_VERSIONS, &buf, &sz);
	if (!err && buf) {
		s->versions = buf;
		s->version_cnt = sz / sizeof(*s->versions);
	}
	if (!err)
		err = elf_symbols__visit(s->elf, ".dynsym", visit_symbol, s);
	free(buf);
	return err;
}

static enum probe_target nowhere(void *ctx, uint64_t addr, bool got)
{
	(void)ctx;
	(void)addr;
	(void)got;
	return PROBE_ELSEWHERE;
}

/* What has to be as it was at the function's beginning: the address that it returns to, or the argument. */
static unsigned int kept(enum probe_sites_use use)
{
	static const unsigned int args[] = { PROBE_RDI, PROBE_RSI, PROBE_RDX,
					     PROBE_RCX, PROBE_R8,  PROBE_R9 };

	if (use < PROBE_SITES_ARG)
		return use == PROBE_SITES_RETURN ? PROBE_RSP : 0;
	return args[use - PROBE_SITES_ARG];
}

/* May the function be put to this use without harm, and to any good? */
static bool is_usable(const struct function_search *s, enum probe_sites_use use)
{
	struct gofile_table go;

	if (use == PROBE_SITES_HIT)
		return true;
	/* of Go's names each has a package */
	if (strchr(s->name, '.') && !gofile__find_table(s->elf, 0, &go))
		return false;
	return use != PROBE_SITES_RETURN || !s->mangled;
}

/* How far behind its beginning a function is probed: where it goes on once its stack has grown; else only
 * where all of its jumps are known. */
static int choose_skew(const struct function_search *s, enum probe_sites_use use, uint64_t *ret)
{
	struct probe_decoder *d = probe_decoder__new(s->elf);
	struct probe_targets targets = { .classify = nowhere };
	size_t left = PROBE_MAX_INSNS;
	struct probe_body body;
	struct probe_point point;

	if (!d)
		return -errno;
	*ret = 0;
	probe_decoder__scan(d, s->vaddr, s->size, &targets, &left, &body);
	if ((use == PROBE_SITES_HIT && !probe_decoder__past_growth(d, s->vaddr, &point)) ||
	    (left && !probe_decoder__choose(d, s->vaddr, body.first_target, kept(use), &point) &&
	     point.emulated))
		*ret = point.skew;
	probe_decoder__free(d);
	return 0;
}

static int find_function(const struct elf_file *elf, const struct elf_file *debug, const char *name,
			 enum probe_sites_use use, struct probe_sites *ret)
{
	struct function_search s = { .elf = elf, .name = name };
	uint64_t skew = 0;
	int err;

	set_hint(&s);
	err = elf_symbols__visit(elf, ".symtab", visit_symbol, &s);
	if (!err && !s.found && debug)
		err = elf_symbols__visit(debug, ".symtab", visit_symbol, &s);
	if (!err && !s.found)
		err = visit_dynamic(&s);
	if (!err && (!s.found || s.several))
		err = s.found ? -ENOTUNIQ : -ENOENT;
	if (!err && !is_usable(&s, use))
		err = -EOPNOTSUPP;
	if (!err)
		err = choose_skew(&s, use, &skew);
	if (err)
		return err;
	ret->sites = calloc(1, sizeof(*ret->sites));
	if (!ret->sites)
		return -ENOMEM;
	ret->cnt = 1;
	return elf_file__offset(elf, s.vaddr + skew, true, &ret->sites->offset) ? 0 : -ENOENT;
}

/* ---- USDT probes ---- */

struct usdt_search {
	const struct elf_file *elf;
	const char *provider, *name;
	struct probe_decoder *decoder;
	struct probe_sites *ret;
	size_t cap;
};

static int visit_note(void *ctx, const struct usdt_note *n)
{
	struct probe_site site = { 0 };
	struct usdt_search *s = ctx;
	struct probe_point insn;

	/* what is at no address of code cannot be hit */
	if (strcmp(n->provider, s->provider) || strcmp(n->name, s->name) ||
	    !elf_file__offset(s->elf, n->vaddr, true, &site.offset))
		return 0;
	if ((n->semaphore && !elf_file__offset(s->elf, n->semaphore, false, &site.ref_ctr)) ||
	    probe_decoder__nop(s->decoder, n->vaddr, &insn))
		return -EOPNOTSUPP;
	for (size_t i = 0; i < s->ret->cnt; i++)
		if (s->ret->sites[i].offset == site.offset)
			return 0;
	if (s->ret->cnt == PROBE_SITES_MAX)
		return -EOVERFLOW;
	if (util_reserve(&s->ret->sites, &s->cap, s->ret->cnt + 1, sizeof(site)))
		return -ENOMEM;
	s->ret->sites[s->ret->cnt++] = site;
	return 0;
}

static int compare_sites(const void *a, const void *b)
{
	const struct probe_site *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int find_usdt(const struct elf_file *elf, const char *provider, const char *name,
		     struct probe_sites *ret)
{
	struct usdt_search s = { .elf = elf, .provider = provider, .name = name, .ret = ret };
	int err;

	s.decoder = probe_decoder__new(elf);
	if (!s.decoder)
		return -errno;
	err = usdt_visit(elf, visit_note, &s);
	probe_decoder__free(s.decoder);
	if (err)
		return err;
	if (ret->cnt)
		qsort(ret->sites, ret->cnt, sizeof(*ret->sites), compare_sites);
	return ret->cnt ? 0 : -ENOENT;
}

int probe_sites_find(const struct elf_file *elf, const struct elf_file *debug, const char *provider,
		     const char *name, enum probe_sites_use use, struct probe_sites *ret)
{
	int err;

	*ret = (struct probe_sites){ 0 };
	err = *provider ? find_usdt(elf, provider, name, ret) :
			  find_function(elf, debug, name, use, ret);
	if (err)
		probe_sites__done(ret);
	return err;
}

void probe_sites__done(struct probe_sites *s)
{
	free(s->sites);
	*s = (struct probe_sites){ 0 };
}
