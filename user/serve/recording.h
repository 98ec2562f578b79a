/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is recorded of a process, for those who have asked for it: one capture, and a window for each,
 * which may overlap. Without anybody who waits it has nothing to do any more, unless it goes on all
 * the time: then it has a window since its start, too.
 */
#ifndef SERVE_RECORDING_H
#define SERVE_RECORDING_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"

struct asked;
struct options;
struct profile;
struct serve_custom;
struct recording;

/* Of each that was asked for: 200 with a memfd that is its own then, or another status with a sentence, fd
 * -1. */
typedef void (*recording_answer)(void *ctx, const struct asked *a, unsigned int status, int fd,
				 const char *text);

struct recording_opts {
	const struct options *opts; /* how is recorded, but for the frequency */
	uint32_t frequency;	    /* CPU samples a second on each CPU */
	uint32_t pid;
	bool kinds[BPFPROF_NR_KINDS];
	bool always;
	recording_answer answer;
	/* Of a change of what is of one moment, the first one: the profile is the callee's. */
	void (*first)(void *ctx, const struct asked *a, struct profile *p);
	void *ctx;
};

/* 0; -ESRCH: there is no such process; -errno, said. */
int recording__new(const struct recording_opts *opts, struct recording **ret);
/* Who still waits is not answered. */
void recording__free(struct recording *r);

/* Does it record this kind of this process? hz: its frequency, where the kind is the CPU's. */
bool recording__has(const struct recording *r, uint32_t pid, enum bpfprof_kind kind, uint32_t hz);
bool recording__is_of(const struct recording *r, uint32_t pid);
/* The functions at addresses of the process: see symbol_file.h. A descriptor or -errno. */
int recording__symbols(struct recording *r, const uint64_t *addresses, size_t cnt);
/* Samples of a kind that were recorded so far. */
uint64_t recording__samples(const struct recording *r, enum bpfprof_kind kind);
/* How many values a custom profile holds by now, of those that are recorded, cnt of them: each has its name. */
void recording__custom(struct recording *r, struct serve_custom *ret, size_t cnt);

/* Somebody waits for it, from now on or from the start. 0 or -errno. */
int recording__add(struct recording *r, const struct asked *a);
/* He waits no more. False: he does not wait here. */
bool recording__drop(struct recording *r, uint64_t number);
void recording__drop_all(struct recording *r);

/* Readable when recording__poll is to be called, two descriptors; and when it is, CLOCK_MONOTONIC. */
void recording__fds(const struct recording *r, int ret[static 2]);
uint64_t recording__next_ns(const struct recording *r);
/* Takes in what has arrived, and answers. False: there is nothing to do for it any more. */
bool recording__poll(struct recording *r);
/* As capture__meanwhile. */
void recording__meanwhile(struct recording *r);

#endif
