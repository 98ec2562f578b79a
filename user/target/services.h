/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The services that processes say they belong to (target/said.h): by their process context
 * (process_context.h), else by the environment that their program was started with (process_env.h). A
 * process is asked when it is first sampled, while it lives, and again after an exec, as an entry of
 * procs is one program in one process. A context may be there only once the program has got so far:
 * one that has begun less than a second ago is not asked for it yet, and one that had none is asked
 * again, if it is still sampled 1, 10 and 60 seconds later.
 *
 * To ask takes 60 us, 50 us more for a context and 0.3 us for each of the process's mappings, and some
 * times as long where nothing of it is in the caches: 300 to 500 us beside a load. Where a context
 * lies in a file that does not answer it takes up to a second (objects__read_memory). So no more than
 * SERVICES_ASKS_PER_SECOND are asked, after SERVICES_BURST at first; the others wait for a later
 * sample. One with many mappings counts as several: as another one for each SERVICES_MAPS_SZ bytes of
 * /proc/PID/maps. One that does harm is not asked again, and counts as all of ten seconds.
 */
#ifndef TARGET_SERVICES_H
#define TARGET_SERVICES_H

#include <stdint.h>

#include "target/said.h"

#define SERVICES_MAX 4096 /* different ones at a time; what further processes say is not known */
#define SERVICES_BURST 512
#define SERVICES_ASKS_PER_SECOND 20
#define SERVICES_MAPS_SZ 65536

struct objects;
struct procs;
struct services;

struct service {
	struct said said; /* with a name */
	/* private */
	uint32_t refs;
};

/* Borrows both. NULL with errno. */
struct services *services__new(struct procs *procs, struct objects *objects);
/* References are void then. */
void services__free(struct services *s);

/*
 * The service of the process with this number, from which there is a sample of time_ns
 * (CLOCK_MONOTONIC). With a reference, which the caller gives back. Equal ones are the same. NULL:
 * none is known.
 */
struct service *services__of(struct services *s, uint32_t proc, uint64_t time_ns);
void service__ref(struct service *service);
void services__unref(struct services *s, struct service *service);

#endif
