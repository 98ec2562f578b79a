/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one door to what is inside the files of other programs: unwind tables, names of addresses,
 * also of those that a perf map names.
 * Everything behind it may be hostile. Narrow on purpose: file descriptors go in, bounded tables
 * come out, and processes without rights do what is in between (target/reader.h). An object that
 * does them harm is set aside: from then on it is not readable.
 *
 * An object is one version of a file: the same build id, where only root or we can have written the
 * files and they have the same segments, or the same device, inode, size and
 * modification time. The descriptors of those used last stay open, so that they can be read after
 * they were deleted; the others are opened again by their paths when they are asked for, and are
 * lost if they are not there any more.
 *
 * Objects are numbered from 0. An object stays until objects__release_unused finds that nobody
 * refers to it, and its number is given to another one then: whoever keeps a number for longer
 * takes a reference, or keeps the serial number instead, which no other object ever has.
 */
#ifndef TARGET_OBJECTS_H
#define TARGET_OBJECTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/container_file.h"
#include "target/elf_file.h"
#include "target/names.h"

struct allocator_points;
struct elf_segment;
struct objects;
struct perf_map_names;
struct custom_sites;
struct probe_sites;
struct said;
struct unwind_table;

#define OBJECTS_NONE UINT32_MAX
#define OBJECTS_MAX_READ 65536 /* bytes that are read at a time */

struct object_info {
	uint64_t serial;    /* from 1 on */
	const char *path;   /* as the first process that had it names it, for people */
	char build_id[129]; /* lower-case hex, "" if it has none */
	char interp[32];    /* base name of its dynamic linker, cut; "": it has none */
	char sanitizer
		[32];	  /* library of a sanitizer that it needs (base/sanitizers.h), cut, or "" */
	uint32_t fetched; /* how often debug information came in that it lacked: objects__give */
	/* false: not ELF64 x86-64, damaged, harmful, or asked in vain a while ago; neither table nor names */
	bool readable;
	bool trusted; /* file_stat_trusted: it may be another's that has the same build id */
};

struct objects_stats {
	uint64_t lost;	    /* objects whose descriptor was closed, and that were gone afterwards */
	uint64_t set_aside; /* objects and perf maps that did harm, and paths that led
			       nowhere in time */
	uint64_t readers_died; /* see struct reader_stats */
	uint64_t readers_timed_out, readers_lied, readers_cpu_ns;
};

struct objects *objects__new(void);
void objects__free(struct objects *o);

/* While a file is read, which may take seconds, call(ctx) is called every 5 ms. It must not use
 * objects. */
void objects__meanwhile(struct objects *o, void (*call)(void *ctx), void *ctx);

/*
 * Gets hold of a path without opening it and without waiting for long: an O_PATH descriptor of what
 * is there, or -errno; -ETIMEDOUT: a file system's server does not answer. The way may lead through
 * somebody else's folders, or wait for somebody else's process.
 */
int objects__open(struct objects *o, const char *path);
/* The same of a name in somebody else's folder, an O_PATH descriptor; a link is not followed. */
int objects__open_at(struct objects *o, int folder, const char *name);
/* May a descriptor be kept for long, and leave enough of them to all others? */
bool objects__may_keep(int fd);

/*
 * The object behind an open regular file; O_PATH will do. Takes fd in every case (closes it if the
 * object was known). path is copied. Returns a number, or OBJECTS_NONE with errno. A file that
 * cannot be parsed is an object too: asked once, not again. EAGAIN if there is no reader at the
 * moment.
 */
uint32_t objects__add(struct objects *o, int fd, const char *path);

/* The vDSO, whose image is the same for all 64-bit processes of this kernel: read from our own.
 * OBJECTS_NONE with errno if we have none. */
uint32_t objects__add_vdso(struct objects *o);

void objects__ref(struct objects *o, uint32_t id);
void objects__unref(struct objects *o, uint32_t id);

/* Frees the objects that nobody refers to, with their descriptors. gone(ctx, id) is called for each
 * before that. */
void objects__release_unused(struct objects *o, void (*gone)(void *ctx, uint32_t id), void *ctx);

const struct object_info *objects__info(const struct objects *o, uint32_t id);
/* Numbers are below this. */
size_t objects__end(const struct objects *o);
/* Objects that there are. */
size_t objects__cnt(const struct objects *o);
void objects__stats(const struct objects *o, struct objects_stats *ret);
/* Sum over the readers: see reader__peak_rss. */
uint64_t objects__readers_peak_rss(const struct objects *o);

/*
 * Is the object's file what it was when the object was added, as its descriptor tells? Asks no
 * reader. False also if it is not readable, or if the descriptor was closed for others: what was
 * learnt of the object before can then not be relied upon.
 */
bool objects__unchanged(struct objects *o, uint32_t id);
/* May its file have been written after then, CLOCK_MONOTONIC, before the object was added? */
bool objects__written_since(const struct objects *o, uint32_t id, uint64_t ns);
/* Was it written over since, as its descriptor tells? False also if that was closed. */
bool objects__rewritten(const struct objects *o, uint32_t id);

/*
 * Debug files of an object are looked for in our own root folder, and in that of a process which has
 * mapped it, once that is known: it is asked for once. set_root takes it, an O_PATH descriptor; -1:
 * it cannot be had.
 */
bool objects__wants_root(const struct objects *o, uint32_t id);
void objects__set_root(struct objects *o, uint32_t id, int root);

/*
 * The build id of a file of debug information that is in none of these places, and names of the object
 * would be better with: its own, or the supplementary one of dwz. 0; -ENOENT: none; -errno.
 */
int objects__lacks(struct objects *o, uint32_t id, uint8_t ret_id[ELF_FILE_MAX_BUILD_ID],
		   size_t *ret_sz);

/*
 * Such a file, from elsewhere, for the objects that lack it; takes fd, O_PATH. Whoever has written it may
 * have meant harm: it is read by a process that reads nothing of the system's. 0; -EBADMSG: it is no
 * ELF file with that build id, or a part of one; -ENOMEM.
 */
int objects__give(struct objects *o, const uint8_t *build_id, size_t sz, int fd);
/* Is there one of that build id? One that did harm is forgotten, unless it was with a stranger's
 * object. */
bool objects__has_given(const struct objects *o, const uint8_t *build_id, size_t sz);
/* The object has a use for what was given: its names are others from now on. */
void objects__learn(struct objects *o, uint32_t id);

/*
 * A request that was not answered tells nothing of the file: it took too long, so that it is left alone for some time
 * (base/rest.h), or there was no memory, or no reader. True if err, a result of one of the requests below, is that.
 * Whoever did without asks again when objects__wakes has changed.
 */
bool objects__unanswered(struct objects *o, uint32_t id, int err);
/* How often there was something to be asked for again. */
uint64_t objects__wakes(struct objects *o);
/* objects__wakes is to change then, CLOCK_MONOTONIC, or before: for what is left alone by somebody else. */
void objects__wake_at(struct objects *o, uint64_t ns);
/* Is the object left alone? */
bool objects__rests(const struct objects *o, uint32_t id);

/* The virtual address in the object of a file offset, or of a mapping, as elf_segments__vaddr; false if it
 * lies in no executable segment. Known also of what is left alone. */
bool objects__vaddr(const struct objects *o, uint32_t id, uint64_t offset, uint64_t sz,
		    uint64_t *ret_vaddr);

/* The object's segments in the order of the file, none if it is not readable; borrowed until an
 * object is added. */
const struct elf_segment *objects__segments(const struct objects *o, uint32_t id, size_t *ret_cnt);

/* As unwind_build. The caller owns the table. */
int objects__unwind_table(struct objects *o, uint32_t id, struct unwind_table *ret);

/* n bytes of the object at a virtual address (code), at most OBJECTS_MAX_READ. 0 or -errno. */
int objects__read(struct objects *o, uint32_t id, uint64_t vaddr, void *buf, size_t n);

/*
 * The same of the memory of a process, by a descriptor of procs__open_memory. What is mapped there
 * may be a file whose server does not answer: -ETIMEDOUT, then it is better not asked for again.
 */
int objects__read_memory(struct objects *o, int fd, uint64_t addr, void *buf, size_t n);

/* As reader__pieces, of such memory. */
int objects__read_pieces(struct objects *o, int fd, const uint64_t *addrs, size_t cnt, size_t max,
			 void *buf, uint32_t *ret_sizes);
/* What reads memory is there, and need not be waited for. 0 or -errno. */
int objects__await_memory_reader(struct objects *o);

/*
 * What a process says of its service: its environment, by a descriptor of procs__open_environ, read
 * as process_env_read does and by whom reads memory; and the message of a process context, taken
 * apart by whom takes foreign files apart. 0 or -errno; after an error nothing is said.
 */
int objects__read_environ(struct objects *o, int fd, struct said *ret);
int objects__parse_context(struct objects *o, const void *data, size_t sz, struct said *ret);

/* As container_file_read; fd: O_PATH will do. */
int objects__read_container(struct objects *o, int fd, enum container_file whose, const char *id,
			    struct container_said *ret);

/* Does the object hold USDT probes of a program that samples its heap by itself? Much quicker than
 * the points. */
bool objects__has_usdt(struct objects *o, uint32_t id);

/* As allocators_find. The caller releases *ret by allocator_points__done. */
int objects__allocators(struct objects *o, uint32_t id, struct allocator_points *ret);

/* As custom_sites_find. The caller releases *ret by custom_sites__done. */
int objects__custom_sites(struct objects *o, uint32_t id, struct custom_sites *ret);

/* As probe_sites_find (use: enum probe_sites_use), which has the separate debug file as objects__symbolize finds it. The caller
 * releases *ret by probe_sites__done. */
int objects__sites(struct objects *o, uint32_t id, const char *provider, const char *name,
		   uint32_t use, struct probe_sites *ret);

/*
 * Names vaddrs (ascending, of the object, each inside an instruction): see names_find. Separate debug
 * files are those that debugfile__open finds; one that is nowhere is looked for again after a minute, and a
 * fetched one that does harm is forgotten. Returns 0 or -errno; *ret is the caller's to release.
 */
int objects__symbolize(struct objects *o, uint32_t id, const uint64_t *vaddrs, size_t cnt,
		       bool plain, struct symbols *ret);

/* Names addresses by a perf map, of which an O_PATH descriptor will do: as perf_map_find. */
int objects__perf_map(struct objects *o, int fd, const uint64_t *addrs, size_t cnt,
		      struct perf_map_names *ret);

#endif
