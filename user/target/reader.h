/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads foreign files in a process of its own, which has no rights (helper/sandbox.h) and nothing
 * of the caller's memory (target/reader_start.h). Whatever a file does to what reads it, crash it,
 * keep it waiting, take it over, stays there.
 *
 * Two processes serve a reader. The worker parses; it gets descriptors and gives tables, every
 * number of which is checked here before it is used. Opening a file for reading, and closing it,
 * can take for ever (FUSE), so another one, the opener, does it, from O_PATH descriptors, which are
 * all that the caller ever holds. Either is killed when a request is not answered in time; both are
 * started anew when the next one comes. The opener walks paths, too, which lead through the
 * directories of such file systems.
 *
 * A reader that was taken over can lie about what it reads afterwards: files that others can write
 * are for another reader than those of the system.
 */
#ifndef TARGET_READER_H
#define TARGET_READER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/container_file.h"
#include "target/elf_file.h"

#define READER_MAX_BYTES 65536U		/* that are read at a time */
#define READER_MAX_STRINGS (128U << 20) /* bytes of the names that one request is answered with */
#define READER_MAX_FRAMES (16U << 20)	/* of its addresses */

struct allocator_points;
struct perf_map_names;
struct custom_sites;
struct probe_sites;
struct reader;
struct said;
struct symbols;
struct unwind_table;

/* Files that names come from: the object, its debug file, the supplementary file, a .dwo or .dwp. */
enum {
	READER_FD_OBJECT,
	READER_FD_DEBUG,
	READER_FD_ALT,
	READER_FD_SPLIT,
	READER_NAMES_FILES
};
#define READER_MAX_LINK 1024 /* bytes of a path in .gnu_debugaltlink; a longer one is none */

/* What the headers of an ELF file say. */
struct reader_file {
	struct elf_segment *segments;
	size_t segment_cnt;
	uint8_t build_id[ELF_FILE_MAX_BUILD_ID], alt_id[ELF_FILE_MAX_BUILD_ID];
	size_t build_id_sz, alt_id_sz; /* 0: it has none */
	char interp[32];	       /* base name of its dynamic linker, cut; "": it has none */
	char sanitizer
		[32]; /* library of a sanitizer that it needs (base/sanitizers.h), cut, or "" */
	char debuglink[256]; /* base name, "": none */
	uint32_t debuglink_crc;
	char alt_name[READER_MAX_LINK]; /* path of the supplementary file, or "" */
	bool is_whole;			/* see elf_file__is_whole */
	bool has_debug_info;
	bool may_be_split; /* its DWARF: some of it may be in other files */
};

struct reader_stats {
	uint64_t died;	    /* workers that did not survive what they read, or were killed */
	uint64_t timed_out; /* those that were killed since they did not answer in time, or did
			       nothing for it */
	uint64_t lied;	    /* answers that could not be true */
	uint64_t cpu_ns;    /* of its processes */
};

/*
 * Starts its processes; if that fails, it is tried again with the first request. timeout_factor: it waits
 * so many times as long for an answer as it would for a stranger's. NULL with errno.
 */
struct reader *reader__new(unsigned int timeout_factor);
void reader__free(struct reader *r);

/* While an answer is waited for, call(ctx) is called every 5 ms. It must not ask. */
void reader__meanwhile(struct reader *r, void (*call)(void *ctx), void *ctx);

void reader__stats(const struct reader *r, struct reader_stats *ret);
/* Bytes, of the largest of its workers. The kernel writes a page of text to tell it: not for each window. */
uint64_t reader__peak_rss(const struct reader *r);
/* Starts its processes unless they are there, and waits until they can be asked, for whom an answer is urgent. 0 or
 * -errno: then the next request tries it again. */
int reader__make_ready(struct reader *r);
/* The process that parses, for tests; 0: none. */
pid_t reader__pid(const struct reader *r);

/*
 * All of these return 0 or -errno. Of these stand for the file's having done harm: -ETIMEDOUT,
 * -EPIPE (the worker has died of it, and fresh ones as well) and -EPROTO (a lie): it is better not
 * asked for again. -EAGAIN: there is no worker, and none could be started. -ENOMEM: the caller has
 * no memory; that the worker had none is -E2BIG.
 *
 * fd: a regular file, O_PATH or not; -1: the vDSO.
 */
int reader__describe(struct reader *r, int fd, bool debug, struct reader_file *ret);
void reader_file__done(struct reader_file *f);

/*
 * What is at an absolute path that somebody else controls, as an O_PATH descriptor: also the walk
 * there can take for ever. Links are followed, wherever they lead.
 */
int reader__open(struct reader *r, const char *path);
/* The same of a name in a folder, an O_PATH descriptor. A link is not followed, it is what is
 * there.
 */
int reader__open_at(struct reader *r, int folder, const char *name);
/* The same of a path, which begins with '/', seen from another root, an O_PATH descriptor: as
 * path_walk. */
int reader__open_in(struct reader *r, int root, const char *path, uint32_t who);

int reader__bytes(struct reader *r, int fd, uint64_t offset, void *buf, size_t sz);
/*
 * Of each of cnt offsets up to max bytes, READER_MAX_BYTES at most, as far as they can be read: of the memory of a
 * process, whose addresses they are then. Pages of zeros at the end of a piece are left out. ret_sizes: how many; they
 * stand one after the other in buf, which has room for cnt * max.
 */
int reader__pieces(struct reader *r, int fd, const uint64_t *offsets, size_t cnt, size_t max,
		   void *buf, uint32_t *ret_sizes);
int reader__crc(struct reader *r, int fd, uint32_t *ret);
/* As unwind_build, usdt_find (is there any?), allocators_find, names_find; fds: all but the object -1
 * if there is none. */
int reader__unwind_table(struct reader *r, int fd, struct unwind_table *ret);
int reader__has_usdt(struct reader *r, int fd, bool *ret);
int reader__allocators(struct reader *r, int fd, struct allocator_points *ret);
int reader__names(struct reader *r, const int fds[static READER_NAMES_FILES],
		  const uint64_t *vaddrs, size_t cnt, bool plain, struct symbols *ret);
/* As names_split_files. */
int reader__split_files(struct reader *r, const int fds[static READER_NAMES_FILES],
			const uint64_t *vaddrs, size_t cnt, struct symbols *ret);
/* As custom_sites_find. */
int reader__custom_sites(struct reader *r, int fd, struct custom_sites *ret);
/* As probe_sites_find; fds: the object, its debug file or -1. -EINVAL: names that are too long. */
int reader__sites(struct reader *r, const int fds[static 2], const char *provider, const char *name,
		  uint32_t use, struct probe_sites *ret);
/* As perf_map_find. */
int reader__perf_map(struct reader *r, int fd, const uint64_t *addrs, size_t cnt,
		     struct perf_map_names *ret);
/* As process_env_read and process_context_parse; after an error nothing is said. */
int reader__environ(struct reader *r, int fd, struct said *ret);
int reader__context(struct reader *r, const void *data, size_t sz, struct said *ret);
/* As container_file_read. */
int reader__container(struct reader *r, int fd, enum container_file whose, const char *id,
		      struct container_said *ret);

static inline bool reader_harmed(int err)
{
	return err == -ETIMEDOUT || err == -EPIPE || err == -EPROTO;
}

#endif
