/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the text files of /proc/PID: maps, stat and status. See proc_pid_maps(5) and so on. */
#ifndef TARGET_PROC_MAPS_H
#define TARGET_PROC_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/proc_file.h"

#define PROCS_MAX_LINE 65536 /* bytes of a line of /proc/PID/maps; longer ones are cut */

struct proc_maps_line {
	uint64_t start, end, offset;
	bool exec;
	struct proc_file file; /* path borrowed until the next line */
};

/*
 * Bytes that are read of a process whose mappings are to be known. A program may make as many as it likes: each of
 * its ranges takes a line, whose path it chooses, and the kernel some ns for each byte. This is room for the 262,144
 * ranges of 128 bytes that databases ask to be allowed.
 */
#define PROC_MAPS_MAX (32U << 20)

struct proc_maps_reader {
	char *text, *next; /* what was read; the line that comes next, NULL: there is none */
	size_t sz;	   /* bytes that were read */
	bool cut;	   /* there are more lines */
};

/* Reads the lines that end within its first max bytes. tid: the thread to ask, 0: the main one. 0; -ESRCH if there is no
 * such process; -ETIMEDOUT, see proc_text.h; -errno. */
int proc_maps_open(struct proc_maps_reader *r, const char *proc_dir, uint32_t tgid, uint32_t tid,
		   size_t max);
/* False at the end. Lines that are none are left out. */
bool proc_maps_next(struct proc_maps_reader *r, struct proc_maps_line *ret);
void proc_maps_close(struct proc_maps_reader *r);

/* Takes one line apart; changes it. False if it is none. */
bool proc_maps_parse(char *line, struct proc_maps_line *ret);

/*
 * Start of a process in ns of CLOCK_BOOTTIME, by clock ticks. 0; -ESRCH, also where all of its
 * threads have ended and only the parent has not waited for it yet; -EBADMSG.
 */
int proc_stat_start(const char *proc_dir, uint32_t tgid, uint64_t *ret_ns);

enum main_thread {
	MAIN_THREAD_RUNS,
	MAIN_THREAD_ENDED, /* with its process, which perhaps waits to be reaped */
	/* Others go on. The kernel takes a process for its main thread's memory, and there is none:
	 * it sets breakpoints and calls no program. */
	MAIN_THREAD_LEFT,
};

enum main_thread main_thread_of(pid_t pid);

/* Is a process about to go on, were there a CPU for it? */
bool proc_is_runnable(pid_t pid);

/* Is it a thread of the kernel's? False, too, if that cannot be told. */
bool proc_is_kthread(const char *proc_dir, uint32_t tgid);

struct proc_ids {
	uint32_t euid;	 /* in our user namespace */
	uint32_t ns_pid; /* of the process, in its own pid namespace: as it sees itself */
};

/* 0; -ESRCH if there is no such process; -EBADMSG. */
int proc_status_ids(const char *proc_dir, uint32_t tgid, struct proc_ids *ret);

#endif
