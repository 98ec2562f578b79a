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

#include "target/proc_space.h"
#include "target/process_context.h"

#define PROCS_NONE UINT32_MAX

struct proc {
	uint32_t tgid;		 /* 0: the entry is free */
	uint32_t exec_id;	 /* task_struct.self_exec_id */
	uint64_t start_ns;	 /* start of the process, CLOCK_BOOTTIME; 0: not known yet */
	uint64_t from_ns, to_ns; /* life span of the entry; to_ns UINT64_MAX while it lives */
	char comm[16];
	bool kthread;
	bool exec_known; /* exec_id is certain */
	bool by_exec;	 /* the entry before it is of the same process */
	bool by_thread;	 /* and another than its main thread has called exec, which is that now */
	bool leader_exited;  /* other threads may still run */
	uint32_t thread_cnt; /* 0: not known, since it was met when it ran already */
	uint64_t scanned_ns; /* identity known from a scan that began then: earlier events are in
				it; 0 */
	uint64_t met_ns;     /* by then it had met the process */
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

/* Files: see proc_file.h. A number stands for the same file until procs__release_files; whoever
 * keeps one for longer takes a reference. */
const struct proc_file *procs__file(const struct procs *ps, uint32_t file);
void procs__ref_file(struct procs *ps, uint32_t file);
void procs__unref_file(struct procs *ps, uint32_t file);
/* As proc_files__on_rewritten. */
void procs__on_rewritten(struct procs *ps, proc_files_rewritten_fn *ask, void *ctx);
/* Files that there are. */
size_t procs__file_cnt(const struct procs *ps);
/* Forgets the files that no process has mapped, or had a moment ago, and to which nobody refers.
 * let_go(ctx, file) is called for each before that; where it returns false the file stays. 0 or
 * -ENOMEM, and then nothing was forgotten. */
int procs__release_files(struct procs *ps, bool (*let_go)(void *ctx, uint32_t file), void *ctx);

/* What code it has mapped, as the events have it. Borrowed until the next change of any process. */
const struct proc_space *procs__space(const struct procs *ps, uint32_t idx);
/* The same without the records that nobody has asked for yet: for statistics. */
const struct proc_space *procs__peek(const struct procs *ps, uint32_t idx);

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

/* The entries that have ended and were not removed. Borrowed until the next change. */
const uint32_t *procs__ended(const struct procs *ps, size_t *ret_cnt);

/* The range that held addr at time_ns, as far as it is still known: see procs__drop_retired. */
const struct proc_map *procs__map_at_time(const struct procs *ps, uint32_t idx, uint64_t addr,
					  uint64_t time_ns);
/* Forgets what was replaced before before_ns, in all processes: no sample from then is to come. */
void procs__drop_retired(struct procs *ps, uint64_t before_ns);

/* The range that holds addr, or NULL. */
const struct proc_map *procs__map_at(const struct procs *ps, uint32_t idx, uint64_t addr);

/* The first range that ends behind addr, or NULL: to go through all of them while they change. */
const struct proc_map *procs__map_from(const struct procs *ps, uint32_t idx, uint64_t addr);

/*
 * Reads the maps of a living process from /proc, of thread tid where the main thread is gone (0:
 * the main one). What it finds replaces what was known. 0; -ESRCH if the process is gone or the pid
 * is another's by now; -ETIMEDOUT, see proc_text.h, and where there was more than PROC_MAPS_MAX a moment
 * ago; -errno.
 */
int procs__read_maps(struct procs *ps, uint32_t idx, uint32_t tid);
/* When that was done last, of any process; 0: never. It holds together with the events up to then,
 * which have to be applied before a sample is looked at. */
uint64_t procs__read_ns(const struct procs *ps);

/* Has the process of this entry really gone (all of its threads)? Asks /proc. */
bool procs__is_gone(const struct procs *ps, uint32_t idx);
/* Is there a process with this number, known or not? One that has ended has it until it is waited for. */
bool procs__has_number(const struct procs *ps, uint32_t tgid);

/*
 * Opens what a range of the process maps, through the process while it lives, by path afterwards,
 * by objects__open. Only regular files, and only if inode and device are those that were mapped
 * where they are known; a build id is for the caller to compare. Returns an O_PATH descriptor or
 * -errno; -ETIMEDOUT: it is the file that was waited for in vain, -EAGAIN: the process, or there is
 * no reader.
 */
int procs__open(struct procs *ps, struct objects *o, uint32_t idx, const struct proc_map *map);

/*
 * The memory of a living process, as a file of which an address is the offset: /proc/PID/mem,
 * proc(5). An O_PATH descriptor, or -errno. What is read from it is the process's if it lives
 * afterwards.
 */
int procs__open_memory(const struct procs *ps, uint32_t idx);

/* The same of its environment: /proc/PID/environ. */
int procs__open_environ(const struct procs *ps, uint32_t idx);
/* As process_context_find, of a living process. */
int procs__find_contexts(const struct procs *ps, uint32_t idx,
			 uint64_t ret[static PROCESS_CONTEXT_PLACES], size_t *ret_sz);

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

/* The living entry of a process that an event says maps something. An exec that changes the credentials tells of
 * an exit first, which is taken for the process's end where it has ended by the time that is read: as it maps
 * something after that, with no fork in between, its last entry lives again. PROCS_NONE: it is not known. */
uint32_t procs__find_mapping(struct procs *ps, uint32_t tgid);

/* ---- events, in the order of time. Unknown processes are made known. 0 or -ENOMEM. ---- */
int procs__on_mmap(struct procs *ps, uint32_t tgid, uint64_t time_ns, uint64_t start, uint64_t len,
		   uint64_t offset, const struct proc_file *file);
int procs__on_fork(struct procs *ps, uint32_t tgid, uint32_t parent, uint64_t time_ns);
int procs__on_exec(struct procs *ps, uint32_t tgid, uint64_t time_ns, const char *comm);
void procs__on_comm(struct procs *ps, uint32_t tgid, uint32_t tid, const char *comm);
void procs__on_exit(struct procs *ps, uint32_t tgid, uint32_t tid, uint64_t time_ns);
/* Events were lost: what is known of mappings and threads is doubtful. */
void procs__on_lost(struct procs *ps);

void procs__remove(struct procs *ps, uint32_t idx);

#endif
