/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address space of a process: which code is mapped where, and what was there a moment ago.
 *
 * Records of mappings are only kept at first. Nothing is done with them until somebody asks for the
 * mappings: most processes end without that. A fork shares the space of its parent, records that
 * lie unread included, until one of the two changes it.
 *
 * Whoever asks for members goes through procs__space, which takes in what lies unread.
 */
#ifndef TARGET_PROC_SPACE_H
#define TARGET_PROC_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/map_log.h"
#include "target/proc_file.h"

#define PROCS_MAX_MAPS 65536 /* executable ranges kept of one process */
#define PROCS_MAX_BESIDE 64  /* files that are remembered beside copies of one process */
/* Bytes of records that lie unread, of one space and of all together. One that there is no room for
 * is taken in at once, with those that came before it. */
#define PROC_SPACE_MAX_UNREAD (16U << 10)
#define PROC_SPACES_MAX_UNREAD (8U << 20)

/* Is a range memory with a file's code, which was copied there? See target/copy.h. */
enum proc_map_copy {
	PROC_MAP_AS_IS,	     /* no: it maps what the kernel says */
	PROC_MAP_MAYBE_COPY, /* that is to be found out: it lies where such code could be */
	PROC_MAP_NO_COPY,    /* its bytes are others; the next event of it asks anew */
	PROC_MAP_UNREAD,     /* they could not be compared; the same */
	PROC_MAP_COPY,	     /* yes: `file` and `offset` are what it is a copy of */
};

struct proc_map {
	uint64_t start, end; /* end exclusive */
	uint64_t offset;     /* in the file, of start */
	uint32_t file;	     /* see proc_files; PROC_FILE_NONE where nobody knows, in what is
				retired */
	uint32_t copy;	     /* enum proc_map_copy */
};

struct proc_retired {
	struct proc_map map;
	uint64_t to_ns; /* from here on its addresses mean something else */
};

struct proc_space {
	uint32_t refs;	       /* processes that have it */
	bool known;	       /* the ranges are complete up to the last record */
	bool has_copies;       /* or had */
	uint32_t gen;	       /* counts changes after which an address means something else */
	struct proc_map *maps; /* ascending, without overlap */
	size_t map_cnt, map_cap;
	/* ranges beyond PROCS_MAX_MAPS, since the maps were read; all that is beyond PROC_MAPS_MAX
	 * counts as one */
	size_t cut_cnt;
	struct proc_retired *retired; /* what stood where something else does now, by to_ns */
	size_t retired_cnt, retired_cap;
	/* what maps files, code or not, at or beside ranges that may be copies: see copy_places */
	struct proc_map *beside;
	size_t beside_cnt, beside_cap;
	/* What was mapped before then nobody knows; UINT64_MAX: nothing is known at all. What a
	 * record from before then replaced is unknown, though its range was read as it is now. */
	uint64_t since_ns;
	struct map_log unread;
};

/* What all spaces have in common. */
struct proc_spaces {
	struct proc_files *files;
	size_t unread_sz;   /* bytes of records */
	size_t retired_cnt; /* ranges */
	uint64_t before_ns; /* what was replaced before then is not asked for */
};

/* A space of which nothing is known, for one process. NULL: out of memory. */
struct proc_space *proc_space__new(void);
/* Another process has it too. */
struct proc_space *proc_space__share(struct proc_space *s);
/* A process has it no more; NULL is none. */
void proc_space__put(struct proc_spaces *all, struct proc_space *s);

/* Makes *s the process's own, to change it: a copy if others have it too. 0 or -ENOMEM. */
int proc_space__own(struct proc_spaces *all, struct proc_space **s);

/*
 * A record, in the order of time. read_later: the ranges were read from this process's /proc when it
 * had mapped that already. 0 or -ENOMEM.
 */
int proc_space__on_record(struct proc_spaces *all, struct proc_space **s,
			  const struct map_record *r, bool read_later);

/* Takes in what lies unread. Where there is no memory for it, the space is not known any more. */
void proc_space__apply(struct proc_spaces *all, struct proc_space *s);

/* Events were lost, or the ranges are another program's: they have to be read from /proc. */
void proc_space__doubt(struct proc_space *s);
void proc_space__forget(struct proc_spaces *all, struct proc_space *s);

/* The range that holds addr, or NULL. */
const struct proc_map *proc_space__at(const struct proc_space *s, uint64_t addr);
/* The first range that ends behind addr, or NULL. */
const struct proc_map *proc_space__from(const struct proc_space *s, uint64_t addr);
/* The range that held addr at time_ns, NULL if that is not known. */
const struct proc_map *proc_space__at_time(const struct proc_space *s, uint64_t addr,
					   uint64_t time_ns);
/* Forgets what was replaced before all->before_ns. */
void proc_space__drop_retired(struct proc_spaces *all, struct proc_space *s);

/* Sets mapped[] of each file that the space refers to. Records that lie unread have no numbers. */
void proc_space__mark_files(const struct proc_space *s, bool *mapped);

/*
 * Reading maps: lines go into a space of their own by add_line, and this one into *s, as what is
 * mapped at now_ns. Ranges that are gone since are kept: samples from them may still arrive, and
 * their addresses mean nothing else. 0, or -errno.
 */
struct beside;
struct proc_maps_line;
int proc_space__add_line(struct proc_spaces *all, struct proc_space *s, struct beside *beside,
			 struct proc_maps_line *line);
int proc_space__merge(struct proc_spaces *all, struct proc_space **s, struct proc_space *fresh,
		      uint64_t now_ns);

/* See procs__add_copy, procs__judge_memory and procs__drop_copy. */
int proc_space__add_copy(struct proc_spaces *all, struct proc_space **s,
			 const struct proc_map *piece);
int proc_space__judge(struct proc_spaces *all, struct proc_space **s, uint64_t start, uint64_t end,
		      enum proc_map_copy copy);
int proc_space__drop_copy(struct proc_spaces *all, struct proc_space **s, uint64_t start,
			  uint64_t end, enum proc_map_copy copy);

#endif
