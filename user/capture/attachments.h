/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links of programs to files that processes map, for those who put probes into them: which file is
 * linked to in which process, and how.
 *
 * Each process has links of its own, as long as few map the same file. A hit passes all links of the
 * file, whichever processes they are for, and to remove one the kernel looks at each process that
 * maps the file and asks the links that are left whether one of them wants it: n^3 steps for n
 * processes, 1 s for 200 of them and 6 s for 400. So from ATTACHMENTS_SHARED processes on there is
 * one link to the file in all processes of the machine, whose hits the BPF programs tell apart:
 *
 *	   own links  --- share: ATTACHMENTS_SHARED processes ---->  one link
 *	              <-- back: ATTACHMENTS_APART, or it must not be ---
 *
 * The links that come are there before those that go are taken away. In between a call hits both,
 * of which the owner of the links makes one count (the operation share).
 */
#ifndef CAPTURE_ATTACHMENTS_H
#define CAPTURE_ATTACHMENTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define ATTACHMENTS_SETS 6    /* of one file in one process, at most */
#define ATTACHMENTS_SHARED 32 /* processes: detaching their own links takes 0.2 s */
#define ATTACHMENTS_APART 8

struct attachments;
struct objects;
struct target_forks;
struct uprobes;

struct attachments_file {
	uint64_t inode
		[2]; /* which one it is for probes, also below an overlay: see identify in attachments.c */
	int fd;		 /* open */
	uint32_t object; /* kept, while the file is here */
	uint32_t number; /* among those that are here, from 0 on */
	size_t own;	 /* processes with links of their own */
	bool shared;	 /* there is, or would be while links are attached, one link for all */
};

/* What its owner knows of links. ctx: as given to attachments__new. */
struct attachments_ops {
	/* Links to f in a process (pid 0: in all), or, shared, the one of many processes. first: it is
	 * asked for the first time. 0, or -errno with nothing attached. */
	int (*attach)(void *ctx, const struct attachments_file *f, pid_t pid, bool shared,
		      bool first, struct uprobes *ret[ATTACHMENTS_SETS]);
	/* Some could not be attached, for that -errno: said once of each process and of a shared one; of -ETIMEDOUT, which
	 * is the same for all, once. */
	void (*failed)(void *ctx, const struct attachments_file *f, pid_t pid, int err);
	/* The links of a process, or (pid 0) that for all, will not be attached again. NULL: nobody
	 * cares. */
	void (*released)(void *ctx, const struct attachments_file *f, pid_t pid);
	/* May processes share a link to f? NULL: never. */
	bool (*may_share)(void *ctx, const struct attachments_file *f);
	/* From now on hits of the shared link count and those of the others do not; or, !shared, the
	 * other way round. */
	void (*share)(void *ctx, const struct attachments_file *f, bool shared);
	/* After each share: those that do not count are gone. */
	void (*share_done)(void *ctx, const struct attachments_file *f);
};

/* Borrows all. NULL with errno. */
struct attachments *attachments__new(const struct attachments_ops *ops, void *ctx,
				     struct objects *objects);
void attachments__free(struct attachments *a);

/* Adds an object, open at fd, in one process (pid 0: in all), unless it is there already. Takes fd.
 * Links come with attachments__settle. 0 or -errno. */
int attachments__add(struct attachments *a, pid_t pid, int fd, uint32_t object);

/*
 * Another than the main thread of a process has called exec. A link is to the main thread that there was when it was made,
 * which has ended with that, and not to the one that there is now: detaches what the process has of its own, to be
 * attached again with attachments__settle.
 */
void attachments__relink(struct attachments *a, pid_t pid);

/* Attaches what was added, and lets processes share links, or have their own again. */
void attachments__settle(struct attachments *a);

/* Detaches and forgets what processes have that keep(keep_ctx, pid) says no of, some of them at a
 * time. Returns how many files in how many processes. */
size_t attachments__drop(struct attachments *a, bool (*keep)(void *keep_ctx, pid_t pid),
			 void *keep_ctx);

/* Attaches all, and what will be added, as they are at first; detaches all. 0 or -ENOMEM. */
void attachments__attach(struct attachments *a);
int attachments__detach(struct attachments *a);

/* Forked children that are not followed inherit breakpoints, which cost them time for nothing:
 * removes these, which takes as long as to detach. To be called often, with all forks so far; looks after
 * the children of those that have forked since the last time, a second after that was done at the earliest. */
void attachments__clean_children(struct attachments *a, const struct target_forks *forks);

/* Is an object linked in a process, or in all? */
bool attachments__in(const struct attachments *a, pid_t pid, uint32_t object);
/* In how many processes has the file links of their own that has the most? */
size_t attachments__most(const struct attachments *a);
/* Since when a link for all has been on an object: CLOCK_MONOTONIC. UINT64_MAX: there is none. */
uint64_t attachments__shared_ns(const struct attachments *a, uint32_t object);
/* Is one of the objects such? */
bool attachments__any(const struct attachments *a, bool (*is)(void *is_ctx, uint32_t object),
		      void *is_ctx);

#endif
