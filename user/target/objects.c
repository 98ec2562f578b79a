/* SPDX-License-Identifier: BSD-2-Clause */
/* Knows every object once, by what it is and not by where it lies, and asks the readers of its
 * parts. */
#include "target/objects.h"

#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/strtab.h"
#include "base/util.h"
#include "target/allocators.h"
#include "target/debugfile.h"
#include "target/demangle.h"
#include "target/dwarf.h"
#include "target/ehframe.h"
#include "target/elf_file.h"
#include "target/symtab.h"
#include "target/usdt.h"

#define MAX_VDSO (64U << 10)
#define SPARE_FDS 64 /* descriptors left to all others: debug files, processes, what is written */

struct object {
	int fd;		      /* -1: an image in memory, or not readable */
	struct elf_file *elf; /* NULL: not readable */
	struct object_info info;
	char *path;
	uint64_t size, mtime_ns; /* of the file when it was added */
};

/* What says that two files are the same object; all of it zero but one part. */
struct identity {
	uint64_t dev, ino, size, mtime_ns;
	char build_id[sizeof(((struct object_info *)0)->build_id)];
};

struct entry {
	uint64_t hash;
	struct identity *identity;
	uint32_t object;
};

struct objects {
	struct object *objects;
	size_t cnt, cap;
	struct entry *entries;	     /* open addressing by hash; free where identity is NULL */
	size_t entry_cnt, entry_cap; /* a power of two */
	uint32_t vdso;
};

/* ---- identity ---- */

static struct entry *find_entry(const struct objects *o, const struct identity *id)
{
	uint64_t hash = util_hash(id, sizeof(*id), 0);
	size_t i = hash & (o->entry_cap - 1);

	for (; o->entries[i].identity; i = (i + 1) & (o->entry_cap - 1)) {
		if (o->entries[i].hash == hash && !memcmp(o->entries[i].identity, id, sizeof(*id)))
			break;
	}
	return &o->entries[i];
}

static int reserve_entry(struct objects *o)
{
	size_t cap = o->entry_cap ? o->entry_cap * 2 : 256, i, k;
	struct entry *entries;

	if (o->entry_cnt * 2 < o->entry_cap)
		return 0;
	entries = calloc(cap, sizeof(*entries));
	if (!entries)
		return -ENOMEM;
	for (i = 0; i < o->entry_cap; i++) {
		if (!o->entries[i].identity)
			continue;
		for (k = o->entries[i].hash & (cap - 1); entries[k].identity;)
			k = (k + 1) & (cap - 1);
		entries[k] = o->entries[i];
	}
	free(o->entries);
	o->entries = entries;
	o->entry_cap = cap;
	return 0;
}

static uint32_t lookup(const struct objects *o, const struct identity *id)
{
	struct entry *e = o->entry_cap ? find_entry(o, id) : NULL;

	return e && e->identity ? e->object : OBJECTS_NONE;
}

static int remember(struct objects *o, const struct identity *id, uint32_t object)
{
	struct identity *copy;
	struct entry *e;

	if (reserve_entry(o))
		return -ENOMEM;
	e = find_entry(o, id);
	if (e->identity)
		return 0;
	copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, id, sizeof(*copy));
	*e = (struct entry){ util_hash(id, sizeof(*id), 0), copy, object };
	o->entry_cnt++;
	return 0;
}

static uint64_t mtime_ns(const struct stat *st)
{
	return (uint64_t)st->st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)st->st_mtim.tv_nsec;
}

/*
 * Only root, or we ourselves, can have written the file. What others write may carry the build id
 * of a system library, to give its functions other names in the profiles of everybody.
 */
static bool is_trusted(const struct stat *st)
{
	return (!st->st_uid || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/*
 * The object's file, if it still is what it was when it was added; a file that was overwritten in
 * place has other code at the same addresses. NULL with *ret_err otherwise.
 */
static struct elf_file *current_file(const struct object *obj, int *ret_err)
{
	struct stat st;

	*ret_err = -ENOEXEC;
	if (!obj->elf || obj->fd < 0)
		return obj->elf;
	*ret_err = fstat(obj->fd, &st) ? -errno : -ESTALE;
	return (uint64_t)st.st_size == obj->size && mtime_ns(&st) == obj->mtime_ns ? obj->elf :
										     NULL;
}

/* Equal build ids are not enough: what claims one has to have the same segments, too, so that
 * addresses mean the same. */
static bool same_layout(const struct elf_file *a, const struct elf_file *b)
{
	size_t a_cnt, b_cnt, i;
	const struct elf_segment *x, *y;

	if (!a || !b)
		return false;
	x = elf_file__segments(a, &a_cnt);
	y = elf_file__segments(b, &b_cnt);
	if (a_cnt != b_cnt)
		return false;
	for (i = 0; i < a_cnt; i++) {
		if (x[i].vaddr != y[i].vaddr || x[i].offset != y[i].offset ||
		    x[i].filesz != y[i].filesz || x[i].memsz != y[i].memsz ||
		    x[i].exec != y[i].exec)
			return false;
	}
	return true;
}

/* ---- objects ---- */

struct objects *objects__new(void)
{
	struct objects *o = calloc(1, sizeof(*o));

	if (o)
		o->vdso = OBJECTS_NONE;
	return o;
}

static void object__done(struct object *obj)
{
	elf_file__free(obj->elf);
	if (obj->fd >= 0)
		close(obj->fd);
	free(obj->path);
}

void objects__free(struct objects *o)
{
	size_t i;

	if (!o)
		return;
	for (i = 0; i < o->cnt; i++)
		object__done(&o->objects[i]);
	for (i = 0; i < o->entry_cap; i++)
		free(o->entries[i].identity);
	free(o->entries);
	free(o->objects);
	free(o);
}

static void format_build_id(const struct elf_file *elf, char *out)
{
	size_t sz, i;
	const uint8_t *id = elf_file__build_id(elf, &sz);

	for (i = 0; i < sz; i++)
		sprintf(out + 2 * i, "%02x", id[i]);
}

/*
 * May an object keep this descriptor? They are numbered from below, so that it says how many there
 * are. The limit is raised when it is met and not before: a command that we started has got the one
 * that the user gave it.
 */
static bool may_keep(int fd)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) ||
	    (rlim_t)fd < lim.rlim_cur - MIN(lim.rlim_cur / 4, SPARE_FDS))
		return true;
	lim.rlim_cur = lim.rlim_max;
	return !setrlimit(RLIMIT_NOFILE, &lim) &&
	       (rlim_t)fd < lim.rlim_cur - MIN(lim.rlim_cur / 4, SPARE_FDS);
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

/* Takes fd and elf. OBJECTS_NONE with errno, then they are closed, too. */
static uint32_t append(struct objects *o, int fd, struct elf_file *elf, const char *path)
{
	struct object obj = { .fd = fd, .elf = elf };

	if (fd >= 0 && !elf) {
		close(fd);
		obj.fd = -1;
	} else if (fd >= 0 && !may_keep(fd)) {
		object__done(&obj);
		errno = EMFILE;
		return OBJECTS_NONE;
	}
	obj.path = strdup(path);
	if (!obj.path || o->cnt >= OBJECTS_NONE ||
	    util_reserve(&o->objects, &o->cap, o->cnt + 1, sizeof(obj))) {
		object__done(&obj);
		errno = ENOMEM;
		return OBJECTS_NONE;
	}
	obj.info.path = obj.path;
	obj.info.readable = elf;
	if (elf) {
		format_build_id(elf, obj.info.build_id);
		read_interp(elf, obj.info.interp, sizeof(obj.info.interp));
	}
	o->objects[o->cnt] = obj;
	return o->cnt++;
}

/* The object that a file is by its contents; takes fd. */
static uint32_t add_file(struct objects *o, int fd, const struct stat *st, const char *path)
{
	struct elf_file *elf = elf_file__open(fd);
	struct identity id;
	uint32_t known;

	if (!elf && errno == ENOMEM) {
		close(fd);
		errno = ENOMEM;
		return OBJECTS_NONE;
	}
	memset(&id, 0, sizeof(id));
	if (elf && is_trusted(st))
		format_build_id(elf, id.build_id);
	if (!id.build_id[0])
		return append(o, fd, elf, path);
	known = lookup(o, &id);
	if (known != OBJECTS_NONE && same_layout(elf, o->objects[known].elf)) {
		elf_file__free(elf);
		close(fd);
		return known;
	}
	known = append(o, fd, elf, path);
	if (known != OBJECTS_NONE && remember(o, &id, known)) {
		errno = ENOMEM;
		return OBJECTS_NONE;
	}
	return known;
}

uint32_t objects__add(struct objects *o, int fd, const char *path)
{
	struct identity id;
	struct stat st;
	uint32_t known;
	size_t before;
	int err;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		err = S_ISREG(st.st_mode) ? errno : EINVAL;
		close(fd);
		errno = err;
		return OBJECTS_NONE;
	}
	memset(&id, 0, sizeof(id)); /* padding is compared as well */
	id.dev = st.st_dev;
	id.ino = st.st_ino;
	id.size = (uint64_t)st.st_size;
	id.mtime_ns = mtime_ns(&st);
	known = lookup(o, &id);
	if (known != OBJECTS_NONE) {
		close(fd);
		return known;
	}
	before = o->cnt;
	known = add_file(o, fd, &st, path);
	if (known != OBJECTS_NONE && known >= before) {
		o->objects[known].size = id.size;
		o->objects[known].mtime_ns = id.mtime_ns;
	}
	if (known != OBJECTS_NONE && remember(o, &id, known)) {
		errno = ENOMEM;
		return OBJECTS_NONE;
	}
	return known;
}

/* How many bytes the vDSO's image has: its section headers are its end (vdso2c puts them there). */
static size_t vdso_size(const void *image)
{
	const Elf64_Ehdr *eh = image;
	uint64_t sz = eh->e_shoff + (uint64_t)eh->e_shnum * eh->e_shentsize;

	return eh->e_shoff && sz <= MAX_VDSO ? sz : 0;
}

uint32_t objects__add_vdso(struct objects *o)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	struct elf_file *elf;

	if (o->vdso != OBJECTS_NONE)
		return o->vdso;
	elf = image && vdso_size(image) ? elf_file__open_memory(image, vdso_size(image)) : NULL;
	if (!elf) {
		if (!image)
			errno = ENOENT;
		return OBJECTS_NONE;
	}
	o->vdso = append(o, -1, elf, "[vdso]");
	return o->vdso;
}

const struct object_info *objects__info(const struct objects *o, uint32_t id)
{
	return &o->objects[id].info;
}

size_t objects__cnt(const struct objects *o)
{
	return o->cnt;
}

bool objects__vaddr(const struct objects *o, uint32_t id, uint64_t offset, uint64_t *ret_vaddr)
{
	const struct elf_file *elf = o->objects[id].elf;

	return elf && elf_file__vaddr(elf, offset, ret_vaddr);
}

int objects__unwind_table(struct objects *o, uint32_t id, struct unwind_table *ret)
{
	int err;
	struct elf_file *elf = current_file(&o->objects[id], &err);

	return elf ? ehframe_build(elf, ret) : err;
}

int objects__read(const struct objects *o, uint32_t id, uint64_t vaddr, void *buf, size_t n)
{
	int err;
	const struct elf_file *elf = current_file(&o->objects[id], &err);

	return elf ? elf_file__read_vaddr(elf, vaddr, buf, n) : err;
}

int objects__allocators(const struct objects *o, uint32_t id, struct allocator_points *ret)
{
	int err;
	const struct elf_file *elf = current_file(&o->objects[id], &err);

	*ret = (struct allocator_points){};
	return elf ? allocators_find(elf, ret) : err;
}

bool objects__has_usdt(const struct objects *o, uint32_t id)
{
	int err;
	const struct elf_file *elf = current_file(&o->objects[id], &err);
	struct usdt_site *sites;
	size_t cnt;

	if (!elf || usdt_find(elf, &sites, &cnt))
		return false;
	free(sites);
	return cnt > 0;
}

/* ---- names ---- */

/* What one call of objects__symbolize works with. Frames have ids of `strings` until the end, then
 * offsets. */
struct naming {
	const struct object *obj;
	struct debugfile debug, alt;
	struct dwarf_answers dwarf; /* answers is NULL without DWARF */
	struct symtab_answers symtab;
	uint32_t *symbol; /* by address: 1 + the index in symtab, 0: not asked for */
	struct strtab *strings;
	uint32_t *demangled; /* by id: the id of the name for people, 0: not asked for yet */
	size_t demangled_cnt, demangled_cap;
	struct symbols *ret;
	size_t frame_cap;
};

static int read_dwarf(struct naming *n, const uint64_t *vaddrs, size_t cnt)
{
	struct elf_section info;
	const struct elf_file *elf = n->obj->elf;
	int err;

	if (!elf_file__section(elf, ".debug_info", &info)) {
		err = debugfile__open(&n->debug, elf, n->obj->path, DEBUGFILE_ROOT);
		if (err)
			return err == -ENOENT ? 0 : err;
		elf = n->debug.elf;
	}
	err = debugfile__open_alt(&n->alt, elf, DEBUGFILE_ROOT);
	if (err == -ENOMEM)
		return err;
	err = dwarf_resolve(elf, n->alt.elf, vaddrs, cnt, n->strings, &n->dwarf);
	/* whatever is wrong with its DWARF, the object may have symbols */
	return err == -ENOMEM ? err : 0;
}

/* Does DWARF leave the physical function at address i without the name that the linker has? */
static bool needs_symbol(const struct naming *n, size_t i)
{
	const struct dwarf_answer *a = n->dwarf.answers ? &n->dwarf.answers[i] : NULL;
	const struct dwarf_frame *d = a && a->cnt ? &n->dwarf.frames[a->first + a->cnt - 1] : NULL;

	return !d || d->unqualified || (!d->name && !d->linkage_name);
}

/* Asks the symbol tables, all at once, for the addresses that need them. */
static int read_symbols(struct naming *n, const uint64_t *vaddrs, size_t cnt)
{
	uint64_t *asked = calloc(cnt + 1, sizeof(*asked));
	size_t asked_cnt = 0, i;
	int err = 0;

	n->symbol = calloc(cnt + 1, sizeof(*n->symbol));
	if (!asked || !n->symbol) {
		free(asked);
		return -ENOMEM;
	}
	for (i = 0; i < cnt; i++) {
		if (needs_symbol(n, i)) {
			asked[asked_cnt++] = vaddrs[i];
			n->symbol[i] = asked_cnt;
		}
	}
	if (asked_cnt)
		err = symtab_resolve(n->obj->elf, n->debug.elf, asked, asked_cnt, &n->symtab);
	free(asked);
	/* whatever is wrong with its symbols, the object may have DWARF */
	return err == -ENOMEM ? err : 0;
}

/* NULL: no symbol, or it was not asked for. */
static const char *symbol_name(const struct naming *n, size_t i)
{
	const struct symtab_symbol *sym;

	if (!n->symbol[i] || !n->symtab.symbols)
		return NULL;
	sym = &n->symtab.symbols[n->symbol[i] - 1];
	return sym->name ? n->symtab.names + sym->name : NULL;
}

/* The id of a name for people. */
static int demangled_id(struct naming *n, uint32_t id, uint32_t *ret)
{
	size_t cnt = strtab__cnt(n->strings);
	char *name;

	if (id >= n->demangled_cnt) {
		if (util_reserve(&n->demangled, &n->demangled_cap, cnt, sizeof(*n->demangled)))
			return -ENOMEM;
		memset(n->demangled + n->demangled_cnt, 0,
		       (cnt - n->demangled_cnt) * sizeof(*n->demangled));
		n->demangled_cnt = cnt;
	}
	if (!n->demangled[id]) {
		name = demangle(strtab__get(n->strings, id));
		n->demangled[id] = name ? strtab__add(n->strings, name) : id;
		free(name);
		if (n->demangled[id] == UINT32_MAX)
			return -ENOMEM;
	}
	*ret = n->demangled[id];
	return 0;
}

/* Fills in the names of a frame for which DWARF knows `name` and `linkage_name`, or neither. */
static int name_frame(struct naming *n, const struct dwarf_frame *d, struct symbol_frame *frame)
{
	uint32_t name;
	int err;

	frame->system_name = d->linkage_name ? d->linkage_name : d->name;
	err = demangled_id(n, frame->system_name, &name);
	if (err)
		return err;
	/* a linkage name that cannot be demangled is worse than the plain one: Go and Rust have
	 * such */
	frame->name = name == d->linkage_name && d->name ? d->name : name;
	return 0;
}

static int add_frame(struct naming *n, const struct symbol_frame *frame)
{
	struct symbols *ret = n->ret;

	if (ret->frame_cnt >= UINT32_MAX ||
	    util_reserve(&ret->frames, &n->frame_cap, ret->frame_cnt + 1, sizeof(*frame)))
		return -ENOMEM;
	ret->frames[ret->frame_cnt++] = *frame;
	return 0;
}

/* The physical function, to which code belongs, from DWARF or from the symbol table. */
static int add_outermost(struct naming *n, size_t i, const struct dwarf_frame *d)
{
	struct symbol_frame frame = { .file = d->file,
				      .line = d->line,
				      .start_line = d->start_line };
	const char *symbol = symbol_name(n, i);
	struct dwarf_frame named = *d;
	int err;

	if (!d->name && !d->linkage_name) {
		if (!symbol)
			return 0;
		named.linkage_name = strtab__add(n->strings, symbol);
	} else if (symbol && !strncmp(symbol, "_Z", 2)) {
		/* without what GCC says of clones and of parts split off */
		named.linkage_name = strtab__add_n(n->strings, symbol, strcspn(symbol, "."));
	}
	if (named.linkage_name == UINT32_MAX)
		return -ENOMEM;
	err = name_frame(n, &named, &frame);
	return err ? err : add_frame(n, &frame);
}

static int name_address(struct naming *n, size_t index)
{
	const struct dwarf_answer *a = n->dwarf.answers ? &n->dwarf.answers[index] : NULL;
	struct dwarf_frame none = {};
	uint32_t i;
	int err = 0;

	if (!a || !a->cnt)
		return add_outermost(n, index, &none);
	for (i = 0; i + 1 < a->cnt && !err; i++) {
		const struct dwarf_frame *d = &n->dwarf.frames[a->first + i];
		struct symbol_frame frame = { .file = d->file,
					      .line = d->line,
					      .start_line = d->start_line };

		err = name_frame(n, d, &frame);
		if (!err)
			err = add_frame(n, &frame);
	}
	return err ? err : add_outermost(n, index, &n->dwarf.frames[a->first + a->cnt - 1]);
}

/* Replaces ids by offsets into one block of strings, which has those that are used. */
static int export_strings(struct naming *n)
{
	size_t cnt = strtab__cnt(n->strings), sz = 1, cap = 0, i, k;
	uint32_t *offsets = calloc(cnt, sizeof(*offsets));
	struct symbols *ret = n->ret;
	int err = offsets ? util_reserve(&ret->strings, &cap, sz, 1) : -ENOMEM;

	if (!err)
		ret->strings[0] = '\0';
	for (i = 0; i < ret->frame_cnt && !err; i++) {
		struct symbol_frame *f = &ret->frames[i];
		uint32_t *ids[] = { &f->name, &f->system_name, &f->file };

		for (k = 0; k < ARRAY_SIZE(ids) && !err; k++) {
			const char *s = strtab__get(n->strings, *ids[k]);
			size_t len = strlen(s) + 1;

			if (*ids[k] && !offsets[*ids[k]]) {
				err = sz + len > UINT32_MAX ?
					      -ENOMEM :
					      util_reserve(&ret->strings, &cap, sz + len, 1);
				if (err)
					break;
				memcpy(ret->strings + sz, s, len);
				offsets[*ids[k]] = sz;
				sz += len;
			}
			*ids[k] = offsets[*ids[k]];
		}
	}
	free(offsets);
	ret->strings_sz = sz;
	return err;
}

static int symbolize(struct naming *n, const uint64_t *vaddrs, size_t cnt)
{
	size_t i;
	int err;

	n->strings = strtab__new();
	n->ret->first = calloc(cnt + 1, sizeof(*n->ret->first));
	if (!n->strings || !n->ret->first)
		return -ENOMEM;
	n->ret->cnt = cnt;
	err = read_dwarf(n, vaddrs, cnt);
	if (!err)
		err = read_symbols(n, vaddrs, cnt);
	for (i = 0; i < cnt && !err; i++) {
		err = name_address(n, i);
		n->ret->first[i + 1] = n->ret->frame_cnt;
	}
	return err ? err : export_strings(n);
}

int objects__symbolize(struct objects *o, uint32_t id, const uint64_t *vaddrs, size_t cnt,
		       struct symbols *ret)
{
	struct naming n = {
		.obj = &o->objects[id], .debug = { .fd = -1 }, .alt = { .fd = -1 }, .ret = ret
	};
	int err;

	memset(ret, 0, sizeof(*ret));
	if (!current_file(n.obj, &err))
		return err;
	err = symbolize(&n, vaddrs, cnt);
	if (err)
		symbols__done(ret);
	debugfile__close(&n.alt);
	debugfile__close(&n.debug);
	dwarf_answers__done(&n.dwarf);
	symtab_answers__done(&n.symtab);
	free(n.symbol);
	strtab__free(n.strings);
	free(n.demangled);
	return err;
}

void symbols__done(struct symbols *s)
{
	free(s->first);
	free(s->frames);
	free(s->strings);
	memset(s, 0, sizeof(*s));
}
