/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by code.c, files and their tables, and code_lists.c, what the kernel side is told of them. For these alone. */
#ifndef CAPTURE_CODE_PARTS_H
#define CAPTURE_CODE_PARTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/rest.h"
#include "capture/code.h"
#include "kernel/tables.h"

struct copies;
struct perf_maps;

/* How often a file is tried to be opened, through whichever process, before it is given up; as often through
 * such as have ended, before that is left to those that live. Stacks may enter a file many times. */
#define OPEN_TRIES 8
#define PIECES 256 /* of code that are kept */

/* By number of a proc_file. */
struct file_state {
	uint32_t object;
	uint8_t tries, tries_of_ended;
	uint32_t tried; /* the last process that it was tried through */
	uint64_t tried_ns;
	struct rest rest; /* it could not be had in time, and is given up as long */
	bool gone;	  /* or replaced, when it was to be opened */
	bool spare;	  /* was not needed at the last look, and nobody asked since */
	uint32_t own_cnt; /* processes that have another object of their own there */
};

struct part_state {
	uint64_t vaddr;
	uint32_t text_sz;
	struct tables_extent extent;
};

/* By number of an object. */
struct object_state {
	enum {
		NOT_LOADED,
		LOADED,
		NO_TABLE,
		RESTS, /* the same for the time being: see objects__unanswered */
	} table;
	struct part_state *parts;
	size_t part_cnt;
	uint64_t rows;
	uint64_t again_ns; /* NOT_LOADED: not before */
	bool built;	   /* counted in the statistics */
};

/* What a process has mapped as a file that is known by path and build id alone, where that is nobody's to trust: another
 * process, with other mounts, may have another one there. */
struct own_object {
	struct {
		uint32_t proc, file;
	} key;
	uint32_t object;
};

/* By number of a process. */
struct proc_state {
	struct tables_extent list; /* sz 0: the kernel side knows nothing */
	struct bpfprof_proc_key key;
	struct bpfprof_proc value;
	uint64_t ranges, loads; /* what was published: as ranges_of and code.loads were then */
	uint32_t own_cnt;	/* objects of its own */
};

/* A few bytes of code that were read: raw stacks that come together ask for the same ones. */
struct piece {
	uint64_t vaddr;
	uint32_t object;
	uint8_t sz; /* 0: nothing */
	uint8_t bytes[8];
};

struct code {
	struct procs *procs;
	struct objects *objects;
	struct tables *tables;
	struct perf_maps *perf_maps;
	struct copies *copies;
	struct file_state *files;
	size_t file_cap;
	struct hash own; /* struct own_object */
	struct object_state *states;
	size_t state_cap;
	struct proc_state *procs_state;
	size_t proc_cap;
	struct piece pieces[PIECES]; /* by a hash of where they are */
	struct tables_map *maps;     /* scratch */
	size_t map_cap;
	bool full;	/* the range being added does not fit */
	uint64_t loads; /* counts what may change a list: objects found, tables loaded, evicted,
			   given up */
	uint64_t wakes; /* objects__wakes, when ask_again looked last */
	bool evicting;
	size_t look_at_files;	 /* for what nobody needs, when there are so many */
	uint64_t look_at_bytes;	 /* the same of tables */
	size_t hand;		 /* of the clock by which tables are evicted */
	size_t proc_hand;	 /* the same of processes */
	struct code_stats stats; /* unopened: of files that were released */
};

/* The object of a file in a process, if it is known; OBJECTS_NONE: it is not. */
uint32_t code_known_object(const struct code *c, uint32_t proc, uint32_t file);
void code_forget_own(struct code *c, uint32_t proc);
struct proc_state *code_proc_state(struct code *c, uint32_t proc);

/* Of an object; NULL: there is no memory. The next call may move it. */
struct object_state *code_state_of(struct code *c, uint32_t object);

/*
 * Makes room: lets go of the tables that no stack went through since the last time, or, if all were used, of some of
 * them. False if there was nothing to let go of.
 */
bool code_evict(struct code *c);

/* Publishes processes anew, lest their lists name a table that is going away, or because a file may be asked for again:
 * all of them, or those that map anything else by now. */
void code_republish(struct code *c, bool all);

#endif
