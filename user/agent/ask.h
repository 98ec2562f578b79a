/* SPDX-License-Identifier: BSD-2-Clause */
/* Asks the agent that has a spool open to end its window now. */
#ifndef AGENT_ASK_H
#define AGENT_ASK_H

#include <signal.h>
#include <stdint.h>

struct spool;

/* What an agent takes for that. It takes it from when it has the spool on. */
#define ASK_SIGNAL SIGUSR1

enum ask_answer {
	ASK_DONE,   /* all that was sampled up to the call is in the spool */
	ASK_NOBODY, /* no agent has it */
	ASK_ENDED,  /* the agent has ended meanwhile, without saying that */
	ASK_UNSEEN, /* one has it, in a pid namespace that is not below ours */
	ASK_LATE,   /* not within that time */
};

/*
 * Waits for it, so long at most. No other process is ever meant: the kernel says who has the spool, and
 * the signal goes to that process or to none. An answer; -errno: the agent cannot be signalled.
 */
int ask_for_window(const struct spool *s, uint64_t timeout_ns);

#endif
