/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the formats that were there before profile.proto, as gperftools, tcmalloc and old releases of Go
 * write them: stacks of one process as addresses, then its mappings. What they are, by how they begin:
 *
 *   five words 0, 3, 0, us, 0     CPU time, of 32 or 64 bits, of either byte order
 *   heap profile: 1: 64 [...] @   memory: heap_v2/N and heapz_v2/N, sampled at a mean distance of N bytes;
 *                                 heap/N, at N/2; heapprofile, growth, fragmentation, not sampled
 *   --- contentionz, --- contention:, --- mutex:
 *   NAME profile: total 5         counts
 *   --- threadz 1 ---             a stack of each thread
 *   --- symbol                    names of addresses, then one of these or a line "--- profile" and words,
 *                                 whose addresses are then no return addresses: google-pprof --raw
 *
 * What was sampled is scaled up as pprof does. Names are in none but the last; it says no distance of the
 * samples (it writes 1), so that they are mere counts. Addresses 0 and 1 are no code: no frame is made of them.
 * Samples of which nothing is left are left out. The caller that all samples of a CPU profile have in common
 * stays: pprof takes it for a signal handler's frame, and drops what may be the program's.
 */
#ifndef PROFILE_LEGACY_READ_H
#define PROFILE_LEGACY_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profile;

/* Does it begin like one of them? Nothing in profile.proto does. */
bool legacy_is(const void *data, size_t sz);

/*
 * data is expanded. memory: bytes that the profile may take. labels: sizes of objects, and equal samples are
 * added up; else samples stand there as they are, and nothing can be added to them. *ret is the caller's, and
 * not finished. 0; -EBADMSG: a line cannot be read, or it is cut; -E2BIG: it takes more memory; -ENOMEM.
 */
int legacy_read(const void *data, size_t sz, size_t memory, bool labels, struct profile **ret);

#endif
