/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Custom profiles of a recording: finds the probes by which programs say what they add and remove,
 * listens to them, and puts into a window what was added and not removed, by the stack that has
 * added it. What was added before that is not known.
 */
#ifndef CUSTOM_H
#define CUSTOM_H

#include <linux/types.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kernel/uprobes.h"

struct code;
struct collect;
struct custom;
struct custom_wanted;
struct live_entry;
struct objects;
struct procs;
struct session;
struct window;

/* method: that the session was opened for. Borrows all. NULL with errno. */
struct custom *custom__new(const struct custom_wanted *wanted, enum uprobe_method method,
			   struct session *session, struct procs *procs, struct objects *objects,
			   struct code *code, struct collect *collect);
void custom__free(struct custom *c);

/* A command about to be started, by its name: its program is listened to from its first instruction
 * on, its libraries as soon as it has mapped them. Our own image, which process pid still is, is left
 * alone. 0 or -errno. */
int custom__prepare_command(struct custom *c, pid_t pid, const char *argv0);

/* Listens to what has been mapped since the last call. To be called after each poll. 0 or -errno. */
int custom__update(struct custom *c);

/* Has each profile that was named been found? 0, or -ENOENT, said. */
int custom__check(const struct custom *c);

/* Begins to record: what was probed until now has recorded nothing. */
void custom__start(struct custom *c);
/* Ends it: what was recorded stays. What was named and has not been found is said. */
void custom__stop(struct custom *c);

/* What is held at a boundary. */
struct custom_part {
	struct live_entry *live;
	size_t live_cnt;
	int err; /* -errno: it could not be read */
};

/* Behind the end of its epoch. Asks nobody. */
void custom__read_live(struct custom *c, struct custom_part *ret);
/* The window has what is held, of what was added since since_ns, CLOCK_MONOTONIC, once its epochs are added up. 0 or
 * -errno. */
int custom__hold(struct custom *c, struct window *w, const struct custom_part *part,
		 uint64_t since_ns);
/* What the window holds is what has come since, less what has gone. */
void custom__begin_change(struct custom *c, struct window *w, const struct custom_part *part);
void custom_part__done(struct custom_part *part);

/* How many values each holds by now, by number, of cnt numbers from 0 on. 0 or -errno. */
int custom__held(struct custom *c, uint64_t *ret, size_t cnt);

/* Profiles that were named, or found so far: see custom_points.h. */
size_t custom__set_cnt(const struct custom *c);
const char *custom__set_name(const struct custom *c, uint32_t set);

#endif
