/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes that are profiled and what code they have mapped, kept up to date by events.
 *
 * An entry is one program in one process: an exec begins a new entry, and so does a reuse of the
 * pid. Entries have a life span on CLOCK_MONOTONIC; a dead entry stays until it is removed, so that
 * what was sampled from it can still be named. Entries are numbered; a number is used again after
 * procs__remove.
 */
#ifndef TARGET_PROCS_H
#define TARGET_PROCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROCS_NONE UINT32_MAX
#define PROCS_MAX_MAPS 65536 /* executable ranges kept of one process */
#define PROCS_MAX_LINE 65536 /* bytes of a line of /proc/PID/maps; longer ones are cut */
#define PROCS_MAX_BESIDE 64  /* files that are remembered beside copies of one process */

enum proc_file_kind {
	PROC_FILE_REGULAR, /* has a path and, if it still exists, contents */
	PROC_FILE_VDSO,
	PROC_FILE_ANON, /* memory: JIT code */
};

/* What a range maps. Shared by all processes that map the same. */
struct proc_file {
	enum proc_file_kind kind;
	char *path; /* raw bytes as the kernel gave them */
	uint32_t maj, min;
	uint64_t ino; /* 0: unknown */
	uint8_t build_id[20];
	uint8_t build_id_sz; /* 0: unknown */
};

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
	uint32_t file;	     /* see procs__file */
	uint32_t copy;	     /* enum proc_map_copy */
};

struct proc_retired {
	struct proc_map map;
	uint64_t to_ns; /* from here on its addresses mean something else */
};

struct proc {
	uint32_t tgid;		 /* 0: the entry is free */
	uint32_t exec_id;	 /* task_struct.self_exec_id */
	uint64_t start_ns;	 /* start of the process, CLOCK_BOOTTIME; 0: not known yet */
	uint64_t from_ns, to_ns; /* life span of the entry; to_ns UINT64_MAX while it lives */
	char comm[16];
	bool kthread;
	bool maps_known;       /* maps are complete up to the last event */
	bool exec_known;       /* exec_id is certain */
	bool leader_exited;    /* other threads may still run */
	uint32_t gen;	       /* counts changes after which an address means something else */
	struct proc_map *maps; /* ascending, without overlap */
	size_t map_cnt, map_cap;
	size_t cut_cnt;		      /* ranges beyond PROCS_MAX_MAPS, since the maps were read */
	struct proc_retired *retired; /* what stood where something else does now */
	size_t retired_cnt, retired_cap;
	/* what maps files, code or not, at or beside ranges that may be copies: see copy_places */
	struct proc_map *beside;
	size_t beside_cnt, beside_cap;
	bool has_copies;     /* or had */
	uint64_t scanned_ns; /* identity known from a scan that began then: earlier events are in
				it; 0 */
	uint64_t read_ns;    /* when the maps were last read from /proc; 0: never */
};

struct objects;
struct proc_ids;
struct procs;

/* proc_dir: "/proc", or a directory made for a test. NULL with errno. */
struct procs *procs__new(const char *proc_dir);
void procs__free(struct procs *ps);

size_t procs__cnt(const struct procs *ps); /* entries, free ones included */
const struct proc *procs__get(const struct procs *ps,
			      uint32_t idx); /* borrowed until the next change */
const struct proc_file *procs__file(const struct procs *ps, uint32_t file);

/* Is it memory by its kind, or by the name that the kernel gives memory that programs share? */
bool proc_file_is_memory(const struct proc_file *f);

/* Is the entry that of a process, not of a kernel thread, which has not ended? */
bool procs__lives(const struct procs *ps, uint32_t idx);

/* Threads that the processes have now, kernel threads not counted. */
uint64_t procs__thread_cnt(const struct procs *ps);

/*
 * A process that a scan met which began at time_ns. An entry that contradicts it ends now. Returns
 * its number, or PROCS_NONE with errno.
 */
uint32_t procs__add(struct procs *ps, uint32_t tgid, uint32_t exec_id, uint64_t start_ns,
		    const char *comm, bool kthread, uint64_t time_ns);

/* A scan did not meet the process of this entry, which began before it: it ended without an event.
 */
void procs__end(struct procs *ps, uint32_t idx);

/*
 * The entry that a sample belongs to: of this process, alive at time_ns. Learns start_ns and
 * exec_id where they were not known; an entry that contradicts them is not taken. PROCS_NONE if
 * there is none.
 */
uint32_t procs__find(struct procs *ps, uint32_t tgid, uint32_t exec_id, uint64_t start_ns,
		     uint64_t time_ns);
/* The entry of tgid that is alive now, or PROCS_NONE. */
uint32_t procs__find_live(const struct procs *ps, uint32_t tgid);

/* The range that held addr at time_ns, as far as it is still known: see procs__drop_retired. */
const struct proc_map *procs__map_at_time(const struct procs *ps, uint32_t idx, uint64_t addr,
					  uint64_t time_ns);
/* Forgets what was replaced before before_ns: no sample from then is to come. */
void procs__drop_retired(struct procs *ps, uint32_t idx, uint64_t before_ns);

/* The range that holds addr, or NULL. */
const struct proc_map *procs__map_at(const struct procs *ps, uint32_t idx, uint64_t addr);

/* The first range that ends behind addr, or NULL: to go through all of them while they change. */
const struct proc_map *procs__map_from(const struct procs *ps, uint32_t idx, uint64_t addr);

/*
 * Reads the maps of a living process from /proc, of thread tid where the main thread is gone (0:
 * the main one). What it finds replaces what was known. 0; -ESRCH if the process is gone or the pid
 * is another's by now; -errno.
 */
int procs__read_maps(struct procs *ps, uint32_t idx, uint32_t tid);

/* Has the process of this entry really gone (all of its threads)? Asks /proc. */
bool procs__is_gone(const struct procs *ps, uint32_t idx);

/*
 * Opens what a range of the process maps, through the process while it lives, by path afterwards,
 * by objects__open. Only regular files, and only if inode and device are those that were mapped
 * where they are known; a build id is for the caller to compare. Returns an O_PATH descriptor or
 * -errno.
 */
int procs__open(const struct procs *ps, struct objects *o, uint32_t idx,
		const struct proc_map *map);

/*
 * The memory of a living process, as a file of which an address is the offset: /proc/PID/mem,
 * proc(5). An O_PATH descriptor, or -errno. What is read from it is the process's if it lives
 * afterwards.
 */
int procs__open_memory(const struct procs *ps, uint32_t idx);

/*
 * What was found out about memory that may be a copy. Ranges are of whole pages. 0 or -ENOMEM.
 *
 * Part of such a range: the code that *piece maps is there. Its addresses mean that from now on.
 */
int procs__add_copy(struct procs *ps, uint32_t idx, const struct proc_map *piece);
/* What lies in [start, end), all of it memory, and is no copy: how it stands with that. */
void procs__judge_memory(struct procs *ps, uint32_t idx, uint64_t start, uint64_t end,
			 enum proc_map_copy copy);
/* Part of what was taken for a copy is memory with other code, or one that nobody knows. */
int procs__drop_copy(struct procs *ps, uint32_t idx, uint64_t start, uint64_t end,
		     enum proc_map_copy copy);

/* The root folder of a living process, which is in its mount namespace, by objects__open. An O_PATH
 * descriptor, or -errno; -ESRCH if the process is gone. */
int procs__open_root(const struct procs *ps, struct objects *o, uint32_t idx);
/* As proc_status_ids. */
int procs__ids(const struct procs *ps, uint32_t idx, struct proc_ids *ret);

/* ---- events, in the order of time. Unknown processes are made known. 0 or -ENOMEM. ---- */
int procs__on_mmap(struct procs *ps, uint32_t tgid, uint64_t time_ns, uint64_t start, uint64_t len,
		   uint64_t offset, const struct proc_file *file);
int procs__on_fork(struct procs *ps, uint32_t tgid, uint32_t parent, uint64_t time_ns);
int procs__on_exec(struct procs *ps, uint32_t tgid, uint64_t time_ns, const char *comm);
void procs__on_comm(struct procs *ps, uint32_t tgid, uint32_t tid, const char *comm);
void procs__on_exit(struct procs *ps, uint32_t tgid, uint32_t tid, uint64_t time_ns);

void procs__remove(struct procs *ps, uint32_t idx);

#endif
