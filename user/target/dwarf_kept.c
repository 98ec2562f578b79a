/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/dwarf_kept.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/util.h"
#include "target/elf_file.h"

/* A file that was changed a moment ago may be changed again without a sign of it: its times are as
 * coarse as the kernel's tick, or as FAT's 2 s. */
#define SETTLED_S 3
#define SLOTS 64
/* What libelf and libdw take for a file, as measured: 40 KiB; for units, and the names of their attributes, a fifth
 * of its sections. */
#define FILE_COST (40U << 10)
#define UNITS_SHARE 5

/* What says that a file is the same. Compared with all padding. */
struct identity {
	uint64_t dev, ino, sz;
	struct timespec mtime, ctime;
};

struct slot {
	struct dwarf_kept k;	  /* first: users have its address */
	struct identity elf, alt; /* zeros: there is none */
	bool full;
	uint64_t used; /* higher: later */
};

static struct slot slots[SLOTS];
static uint64_t uses;
static bool enabled;

void dwarf_kept_enable(void)
{
	enabled = true;
}

/* False: it cannot be told, or may still be changing. */
static bool identify(const struct elf_file *elf, struct identity *ret)
{
	struct timespec now;
	struct stat st;

	memset(ret, 0, sizeof(*ret));
	if (!elf)
		return true;
	if (fstat(elf_file__fd(elf), &st) || clock_gettime(CLOCK_REALTIME, &now))
		return false;
	ret->dev = st.st_dev;
	ret->ino = st.st_ino;
	ret->sz = (uint64_t)st.st_size;
	ret->mtime = st.st_mtim;
	ret->ctime = st.st_ctim;
	return now.tv_sec > MAX(st.st_ctim.tv_sec, st.st_mtim.tv_sec) + SETTLED_S;
}

static void empty(struct slot *s)
{
	dwarf_file__close(&s->k.file);
	dwarf_file__close(&s->k.alt);
	memset(s, 0, sizeof(*s));
}

static struct slot *find(const struct identity *elf, const struct identity *alt)
{
	for (size_t i = 0; i < SLOTS; i++)
		if (slots[i].full && !memcmp(&slots[i].elf, elf, sizeof(*elf)) &&
		    !memcmp(&slots[i].alt, alt, sizeof(*alt)))
			return &slots[i];
	return NULL;
}

/* The one that was not used for longest, or that is not used. */
static struct slot *oldest(void)
{
	struct slot *ret = &slots[0];

	for (size_t i = 1; i < SLOTS; i++)
		if (slots[i].used < ret->used)
			ret = &slots[i];
	return ret;
}

static uint64_t size_of(const struct slot *s)
{
	uint64_t sections = s->k.file.total + s->k.alt.total;

	return FILE_COST + sections + sections / UNITS_SHARE;
}

/* All but this one make room for it. */
static void make_room(const struct slot *for_this)
{
	for (;;) {
		struct slot *first = NULL;
		uint64_t sum = 0;

		for (size_t i = 0; i < SLOTS; i++) {
			sum += slots[i].full ? size_of(&slots[i]) : 0;
			if (slots[i].full && &slots[i] != for_this &&
			    (!first || slots[i].used < first->used))
				first = &slots[i];
		}
		if (!first || sum <= DWARF_KEPT_MAX)
			return;
		empty(first);
	}
}

int dwarf_kept__open(const struct elf_file *elf, const struct elf_file *alt,
		     struct dwarf_kept **ret)
{
	struct identity id, alt_id;
	/* both are looked at before they are read */
	bool elf_known = identify(elf, &id), alt_known = identify(alt, &alt_id);
	bool known = elf_known && alt_known && enabled;
	struct slot *s = known ? find(&id, &alt_id) : NULL;
	int err = 0;

	if (s) {
		s->used = ++uses;
		*ret = &s->k;
		return 0;
	}
	s = oldest();
	empty(s);
	if (alt)
		err = dwarf_file__open(&s->k.alt, alt, NULL);
	if (!err)
		err = dwarf_file__open(&s->k.file, elf, alt ? &s->k.alt : NULL);
	if (err) {
		empty(s);
		return err;
	}
	s->elf = id;
	s->alt = alt_id;
	s->used = ++uses;
	s->full = known && size_of(s) <= DWARF_KEPT_MAX;
	make_room(s);
	*ret = &s->k;
	return 0;
}

void dwarf_kept__close(struct dwarf_kept *k, bool broken)
{
	struct slot *s = (struct slot *)k;

	if (!s->full || broken) {
		empty(s);
		return;
	}
	/* whoever opened it closes its descriptor */
	dwarf_file__detach(&k->file);
	dwarf_file__detach(&k->alt);
	make_room(s);
}

void dwarf_kept_drop(void)
{
	for (size_t i = 0; i < SLOTS; i++)
		empty(&slots[i]);
}
