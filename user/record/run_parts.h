/* SPDX-License-Identifier: BSD-2-Clause */
/* What a recording consists of: run_open.c puts it together, run.c lets it run, run_windows.c takes
 * one window after the other, run_write.c makes files of them, or run_spool.c for the agent, and
 * dump.c takes them from there. For these alone. */
#ifndef RUN_PARTS_H
#define RUN_PARTS_H

#include <linux/types.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpfprof.h"
#include "custom/custom_points.h"
#include "profile/facts.h"
#include "record/command_cost.h"
#include "record/launch.h"

struct capture;
struct capture_boundary;
struct capture_window;
struct fetch;
struct options;
struct profile;
struct push;
struct report;
struct report_debuginfod;
struct run_budget;
struct run_targets;
struct spool;

/*
 * Profiles of a window by number: those of kinds by their own; custom profiles, which are numbered from
 * 1 on, behind them. BPFPROF_CUSTOM itself has none.
 */
#define RUN_MAX_PROFILES (BPFPROF_NR_KINDS + CUSTOM_MAX_SETS)
#define RUN_CUSTOM(number) (BPFPROF_NR_KINDS - 1 + (int)(number))
#define RUN_KIND(profile) ((profile) < BPFPROF_NR_KINDS ? (profile) : BPFPROF_CUSTOM)
#define RUN_CUSTOM_NUMBER(profile) ((uint32_t)((profile)-BPFPROF_NR_KINDS + 1))

/* Since the start, for those who watch the agent. */
struct run_totals {
	uint64_t windows, windows_failed;
	uint64_t seen[BPFPROF_NR_KINDS], recorded[BPFPROF_NR_KINDS], whole[BPFPROF_NR_KINDS],
		own[BPFPROF_NR_KINDS], lost[BPFPROF_NR_KINDS][BPFPROF_NR_LOST];
	uint64_t others_ns; /* CPU time of processes that are neither of readers nor the courier */
	uint64_t late_ns;   /* of the last window: the longest time that the loop came too late */
	bool reload_failed;
	uint64_t reload_ns; /* CLOCK_REALTIME, of the last that did not fail */
};

#define RUN_MAX_CHILDREN 64
/* Processes that it has started, as of the window at hand. */
struct run_own {
	bool asked;
	pid_t children[RUN_MAX_CHILDREN];
	ssize_t cnt; /* -errno: not known */
};

struct run {
	const struct options *opts;
	bool only_threads;     /* no kind takes time */
	char target[256];      /* for people and --stats */
	char file_target[256]; /* as it stands in file names */
	struct launch launch;
	struct command_cost cost; /* of the command */
	uint64_t ops;  /* that it has done by its end; FACTS_NONE: they are not counted */
	bool ops_lost; /* there may have been more */
	struct capture *capture;
	/* the first window that is not written, and its number, 0 where there is only this one */
	struct capture_window *window;
	unsigned int window_number;
	/* --keep: the sets of files that are there, by their numbers, ascending */
	unsigned int *sets;
	size_t set_cnt, set_cap;
	unsigned int
		no_room; /* windows before which the oldest set goes: there was no room for one more */
	struct profile *profiles[RUN_MAX_PROFILES]; /* of a window that has ended */
	struct spool *spool;			    /* the agent's */
	struct push *push;			    /* NULL: nothing is delivered */
	struct run_targets *targets;		    /* NULL: the configuration has none */
	struct run_budget *budget;		    /* NULL: it has no limit */
	struct fetch *fetch;			    /* NULL: no debug information is fetched */
	uint64_t next_look_ns;			    /* which is missing */
	uint64_t pushed_bytes;			    /* of the spool, that it has heard of */
	struct options *fresh; /* with the configuration in force; NULL: it is that of opts */
	bool reload;	       /* it is to be read again */
	struct run_totals totals;
	struct run_own own;
	uint64_t next_status_ns; /* when they are told */
	bool wrong_setup;	 /* what was given cannot be used */
	bool failed;		 /* the files of a window are not all right */
	bool stopped;		 /* it is the last window */
	int *pidfds;		 /* of the processes named, -1: ended */
	size_t alive;
	int epoll_fd, signal_fd;
	uint64_t startup_ns, next_progress_ns;
	uint64_t watchdog_ns; /* see ready_alive */
	bool progress_shown;
	int stops;     /* signals that asked to stop */
	bool told;     /* by somebody, who may have told us alone: not by the terminal */
	bool over;     /* the recording has come to its end, with no signal or error */
	bool cut;      /* the window is to end */
	bool dump;     /* the last minutes are to be dumped */
	pid_t dumping; /* the process that does so, or 0 */
};

/* What is waited for, by the number that epoll gives back. */
enum {
	WATCH_SIGNAL,
	WATCH_CAPTURE,
	WATCH_PUSH,
	WATCH_FETCH,
	WATCH_PID
};

/*
 * From the options to where everything records. 0 or -errno, and what is wrong has been said; what
 * is there by then is run_close's to end, either way.
 */
int run_open(struct run *r);
void run_close(struct run *r);

/* Counts those that ask to stop. */
void run_read_signals(struct run *r);
/* Was it asked to stop a second time? */
bool run_is_aborted(struct run *r);
/* Removes the line that shows how far it is. */
void run_end_progress(struct run *r);

/* Can all files be written? To be asked before a long run. 0 or -errno, said. */
int run_check_outputs(const struct run *r);
/* Are the processes, threads and the control group there that were named? run_check.c. 0 or -errno, said. */
int run_check_targets(const struct run *r);
/* The paths of a window's files, number 0: of the whole run's. Its account is wanted. */
void run_output_path(const struct run *r, int profile, unsigned int number, char path[PATH_MAX]);
void run_stats_path(const struct run *r, unsigned int number, char path[PATH_MAX]);
/* Removes a file if it is there. 0 or -errno, said. */
int run_remove_file(const char *path);

/* Writes the files of a window that has ended, if there is one, and begins the next one. What cannot be written is said
 * to be missing. 0; -errno: the run cannot go on, -EINTR: as its user wants. */
int run_write_next(struct run *r);
/* The same at the end of the run: also of one whose end has just been passed, and of those that are
 * passed meanwhile. To be called before run_write_last. */
int run_write_ended(struct run *r);
/* Ends the run, and does the same with the last window. 0; -errno, said, also if a former one is
 * missing. */
int run_write_last(struct run *r);

/* Puts the profiles of the window that ends at a boundary together, and writes its files. 0 or
 * -errno, said. */
int run_write_window(struct run *r, const struct capture_boundary *to);

/* Which processes are its own: run_own.c. Those that it has started, and that are there; how many, -errno: the
 * kernel does not say. */
ssize_t run_children(pid_t ret[RUN_MAX_CHILDREN]);
/* CPU time of this one; and with that of those, and of all that it had started and that have ended. */
uint64_t run_own_ns(void);
uint64_t run_processes_ns(const pid_t *children, size_t cnt);
/* The same of what runs now, but for the command, reaped or not. */
uint64_t run_besides_ns(pid_t command);
/* Bytes of a process that no other has and that cannot be given back: not what is mapped of files. 0: it has
 * ended. */
uint64_t run_memory_of(pid_t pid);
/* Is it one of them, or this one? ctx: the run. */
bool run_is_own(void *ctx, int64_t pid, const char *comm);
/* Others may be there by the next window. */
void run_forget_own(struct run *r);

/* The agent's: run_spool.c. The former begins, the latter takes the profiles of a window, which are
 * finished. 0 or -errno, said. */
int run_open_spool(struct run *r);
int run_spool_window(struct run *r, const struct report *report);

/* Stores, if the agent's configuration has some: run_push.c. 0 or -errno, said. */
int run_open_push(struct run *r);
/* What is wrong with an option's value, which the command line or the configuration gives. */
void run_log_setup(const struct options *o, const char *option, const char *value,
		   const char *text);
int run_watch_push(struct run *r);
void run_close_push(struct run *r);
/* The configuration in force, NULL: there is none. */
const struct config *run_config(const struct run *r);
/* A window is in the spool. */
void run_push_news(struct run *r);
/* --debuginfod: run_debuginfod.c. 0 or -errno, said. */
int run_open_debuginfod(struct run *r);
void run_close_debuginfod(struct run *r);
/* -1: none is waited for. */
int run_debuginfod_fd(const struct run *r);
void run_handle_debuginfod(struct run *r);
/* To be called often: looks now and then what is missing by now. */
void run_tend_debuginfod(struct run *r);
/* The last window has ended: waits for what is to come, and says what does not. */
void run_finish_debuginfod(struct run *r);
/* False: none is asked for. */
bool run_debuginfod_stats(const struct run *r, struct report_debuginfod *ret);
/* Names are there: what did harm is not kept for other runs. */
void run_forget_debuginfod(struct run *r);
/* Reads the configuration again. One that is wrong is said to be, and the old one stays. 0 or
 * -errno: the run cannot go on. */
int run_reload(struct run *r);
/* The configuration's targets: run_targets.c. 0 or -errno. */
int run_open_targets(struct run *r);
void run_close_targets(struct run *r);
/* To be called often: looks every few seconds which processes they are by now. 0 or -errno: the run
 * cannot go on. */
int run_choose_targets(struct run *r);
/* The configuration is another one. */
void run_reload_targets(struct run *r);
/* Of a rule of the configuration: how many there are. */
size_t run_target_processes(const struct run *r, size_t rule);
/* --max-cpu and --max-memory: run_budget.c. 0 or -ENOMEM. */
int run_open_budget(struct run *r);
void run_close_budget(struct run *r);
/* A window's profiles have been written: gives up more, or less, from now on. */
void run_budget_window(struct run *r);
/* Kinds that are given up, bit i: kind i: by now, and at some time of the window that ends. */
uint32_t run_budget_off(const struct run *r);
uint32_t run_budget_off_in_window(const struct run *r);
/* Says in a profile what was given up. 0 or -ENOMEM. */
int run_budget_comment(const struct run *r, struct profile *p);
/* How it stands by the last window. False: there is no limit. */
struct run_budget_state {
	unsigned int step; /* 0: nothing is given up */
	double cpu;	   /* share of all CPUs */
	uint64_t memory;   /* bytes */
	uint64_t bpf_ns;   /* that BPF programs ran since the start; 0 without --max-cpu */
};
bool run_budget_get(const struct run *r, struct run_budget_state *ret);
/* What the agent says of itself: run_status.c. */
void run_count_window(struct run *r, const struct report *report, bool written);
void run_tell_status(struct run *r);
/* Waits a while until all is delivered. */
void run_flush_push(struct run *r);

/* What signals ask the agent for: run_dump.c. The window ends; r->cut stays if it cannot just now. 0 or
 * -errno: the run cannot go on. */
int run_end_window(struct run *r);
/* The last minutes are to be dumped; at a time one dump. */
void run_want_dump(struct run *r);
void run_start_dump(struct run *r);
/* Some child has ended. */
void run_end_dump(struct run *r);

#endif
