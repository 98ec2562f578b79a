/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks which .dwo each address lies in, then each of these for its addresses, and puts the answers
 * together. */
#include "target/split_names.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "target/debugfile.h"
#include "target/names.h"
#include "target/reader.h"

#define MAX_FILES 4096		      /* that are looked at in one request */
#define MAX_NS (20ULL * NSEC_PER_SEC) /* for all of them, as for one: MAX_NS of dwarf.c */

/* What is known of the addresses, from one file. */
struct part {
	struct symbols symbols;
	size_t *idx; /* of its addresses, among all */
};

struct gathering {
	const struct debugfile_object *o;
	const struct debugfile *debug; /* found for it */
	int fds[READER_NAMES_FILES];
	const uint64_t *vaddrs;
	size_t cnt;
	struct symbols where; /* of each address the path of its .dwo, or nothing */
	bool *asked;	      /* with its .dwo */
	bool *answered;
	uint64_t *addrs; /* scratch */
	struct part *parts;
	size_t part_cnt, part_cap;
	uint64_t frames, strings; /* of the parts; bytes */
	bool full;		  /* there is no room for what a .dwo has */
	uint64_t until_ns;
};

/* The path of an address's .dwo, as an offset; 0: none, or it is not there. */
static uint32_t file_of(const struct gathering *g, size_t i)
{
	const struct symbols *w = &g->where;

	return w->first[i] == w->first[i + 1] ? 0 : w->frames[w->first[i]].name;
}

static bool is_late(const struct gathering *g)
{
	return util_monotonic_ns() > g->until_ns;
}

/* One .dwo may have as much as a request is answered with, and so may all of them together. */
static bool is_too_much(const struct gathering *g, const struct symbols *s)
{
	return g->frames + s->frame_cnt > READER_MAX_FRAMES ||
	       g->strings + s->strings_sz > READER_MAX_STRINGS;
}
_Static_assert(2 * READER_MAX_STRINGS < UINT32_MAX,
	       "those of the .dwo and of the rest have offsets");

/* Asks for the addresses of one .dwo; 0: for all that have no answer yet, of which there are symbols alone
 * where it has become late, or there is no room for more. On failure they have none. */
static int ask(struct gathering *g, uint32_t file)
{
	struct part p = { .idx = calloc(g->cnt, sizeof(*p.idx)) };
	size_t n = 0;
	int err;

	if (!p.idx || util_reserve(&g->parts, &g->part_cap, g->part_cnt + 1, sizeof(*g->parts))) {
		free(p.idx);
		return -ENOMEM;
	}
	for (size_t i = 0; i < g->cnt; i++) {
		if (g->answered[i] || (file && file_of(g, i) != file))
			continue;
		p.idx[n] = i;
		g->addrs[n++] = g->vaddrs[i];
		g->asked[i] = true;
	}
	err = reader__names(g->o->reader, g->fds, g->addrs, n, !file && (g->full || is_late(g)),
			    &p.symbols);
	if (!err && file && is_too_much(g, &p.symbols)) {
		symbols__done(&p.symbols);
		g->full = true;
		err = -E2BIG;
	}
	if (err) {
		free(p.idx);
		return err;
	}
	for (size_t i = 0; i < n; i++)
		g->answered[p.idx[i]] = true;
	g->frames += p.symbols.frame_cnt;
	g->strings += p.symbols.strings_sz;
	g->parts[g->part_cnt++] = p;
	return 0;
}

/* A file of this name, whatever its folder, in the folder of another one. As debugfile__open_split. */
static int open_in_folder(struct debugfile *d, const struct debugfile_object *o, const char *of,
			  const char *name, const char *ending)
{
	const char *slash = strrchr(of, '/'), *base = strrchr(name, '/');
	char path[PATH_MAX];

	*d = (struct debugfile){ .fd = -1 };
	if (!slash || (size_t)snprintf(path, sizeof(path), "%.*s%s", (int)(slash + 1 - of), of,
				       base ? base + 1 : name) >= sizeof(path))
		return -ENOENT;
	return debugfile__open_split(d, o, path, ending);
}

/* A .dwo, where the program says; else beside that, beside its debug file, or with debug files. */
static int open_dwo(struct debugfile *d, const struct gathering *g, const char *path)
{
	const char *folders[] = { g->o->path, g->debug->fd >= 0 ? g->debug->path : "",
				  DEBUGFILE_FOLDER "/" };
	int err = debugfile__open_split(d, g->o, path, "");

	for (size_t i = 0; i < ARRAY_SIZE(folders) && err == -ENOENT; i++)
		err = open_in_folder(d, g->o, folders[i], path, "");
	return err;
}

static int ask_file(struct gathering *g, uint32_t file)
{
	struct debugfile d;
	int err = open_dwo(&d, g, g->where.strings + file);

	if (!err) {
		g->fds[READER_FD_SPLIT] = d.fd;
		err = ask(g, file);
		g->fds[READER_FD_SPLIT] = -1;
	}
	debugfile__close(&d);
	/* what has no file, or one that the reader refuses, or that has too much, has the rest of what is known */
	return reader_harmed(err) || err == -ENOMEM || err == -EAGAIN ? err : 0;
}

static int ask_all(struct gathering *g)
{
	uint32_t file, last = 0;
	size_t files = 0;
	int err = 0;

	for (size_t i = 0; i < g->cnt && !err; i++) {
		file = file_of(g, i);
		if (!file || file == last || g->asked[i] || ++files > MAX_FILES || g->full ||
		    is_late(g))
			continue;
		last = file;
		err = ask_file(g, file);
	}
	return err ? err : ask(g, 0);
}

/* Which answer, of which part, an address has. */
struct source {
	const struct symbols *symbols;
	uint32_t idx, strings_at;
};

static int put_together(struct gathering *g, struct symbols *ret)
{
	struct source *from = calloc(g->cnt + 1, sizeof(*from));
	size_t frames = 0, strings = 1;
	int err = 0;

	*ret = (struct symbols){ .cnt = g->cnt };
	for (size_t k = 0; from && k < g->part_cnt; k++) {
		const struct symbols *s = &g->parts[k].symbols;

		for (size_t i = 0; i < s->cnt; i++)
			from[g->parts[k].idx[i]] =
				(struct source){ s, (uint32_t)i, (uint32_t)strings };
		frames += s->frame_cnt;
		strings += s->strings_sz;
	}
	ret->first = calloc(g->cnt + 1, sizeof(*ret->first));
	ret->frames = calloc(frames + 1, sizeof(*ret->frames));
	ret->strings = calloc(strings, 1);
	ret->strings_sz = strings;
	if (!from || !ret->first || !ret->frames || !ret->strings)
		err = -ENOMEM;
	for (size_t i = 0; i < g->cnt && !err; i++) {
		struct symbol_frames f = { 0 };
		struct symbol_frame *to = ret->frames + ret->frame_cnt;

		if (from[i].symbols)
			f = symbols__of(from[i].symbols, from[i].idx);
		for (size_t k = 0; k < f.cnt; k++) {
			to[k] = f.frames[k];
			to[k].name += to[k].name ? from[i].strings_at : 0;
			to[k].system_name += to[k].system_name ? from[i].strings_at : 0;
			to[k].file += to[k].file ? from[i].strings_at : 0;
		}
		ret->frame_cnt += f.cnt;
		ret->first[i + 1] = (uint32_t)ret->frame_cnt;
	}
	for (size_t k = 0, at = 1; k < g->part_cnt && !err; k++) {
		const struct symbols *s = &g->parts[k].symbols;

		memcpy(ret->strings + at, s->strings, s->strings_sz);
		at += s->strings_sz;
	}
	free(from);
	if (err)
		symbols__done(ret);
	return err;
}

/* By the .dwo of each unit. */
static int by_units(struct gathering *g, struct symbols *ret)
{
	int err;

	g->until_ns = util_monotonic_ns() + MAX_NS;
	err = reader__split_files(g->o->reader, g->fds, g->vaddrs, g->cnt, &g->where);

	if (reader_harmed(err) || err == -ENOMEM)
		return err;
	if (err || !g->where.frame_cnt) {
		symbols__done(&g->where);
		return reader__names(g->o->reader, g->fds, g->vaddrs, g->cnt, false, ret);
	}
	g->asked = calloc(g->cnt, sizeof(*g->asked));
	g->answered = calloc(g->cnt, sizeof(*g->answered));
	g->addrs = calloc(g->cnt, sizeof(*g->addrs));
	err = g->asked && g->answered && g->addrs ? ask_all(g) : -ENOMEM;
	if (!err)
		err = put_together(g, ret);
	for (size_t k = 0; k < g->part_cnt; k++) {
		symbols__done(&g->parts[k].symbols);
		free(g->parts[k].idx);
	}
	free(g->parts);
	free(g->asked);
	free(g->answered);
	free(g->addrs);
	symbols__done(&g->where);
	return err;
}

/* NAME.dwp, beside the object or beside its debug file, with the name of either, or with debug files. */
static int open_package(struct debugfile *d, const struct debugfile_object *o,
			const struct debugfile *debug)
{
	int err = debugfile__open_split(d, o, o->path, ".dwp");

	if (err == -ENOENT && debug->fd >= 0)
		err = debugfile__open_split(d, o, debug->path, ".dwp");
	if (err == -ENOENT && debug->fd >= 0)
		err = open_in_folder(d, o, debug->path, o->path, ".dwp");
	return err == -ENOENT ? open_in_folder(d, o, DEBUGFILE_FOLDER "/", o->path, ".dwp") : err;
}

int split_names(const struct debugfile_object *o, int fd, const struct debugfile *debug,
		const struct debugfile *alt, const uint64_t *vaddrs, size_t cnt,
		struct symbols *ret)
{
	struct gathering g = { .o = o,
			       .debug = debug,
			       .fds = { fd, debug->fd, alt->fd, -1 },
			       .vaddrs = vaddrs,
			       .cnt = cnt };
	bool is_split = debug->fd >= 0 ? debug->file.may_be_split : o->file->may_be_split;
	struct debugfile package;
	int err;

	if (!is_split)
		return reader__names(o->reader, g.fds, vaddrs, cnt, false, ret);
	err = open_package(&package, o, debug);
	if (!err) {
		g.fds[READER_FD_SPLIT] = package.fd;
		err = reader__names(o->reader, g.fds, vaddrs, cnt, false, ret);
	} else if (err == -ENOENT) {
		err = by_units(&g, ret);
	}
	debugfile__close(&package);
	return err;
}
