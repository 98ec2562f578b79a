/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what any program has written as profile.proto, or in the formats before it (legacy_read.h), gzip'd or
 * not. */
#ifndef PROFILE_PPROF_READ_H
#define PROFILE_PPROF_READ_H

#include <stdbool.h>
#include <stddef.h>

struct profile;

#define PPROF_READ_MAX (256U << 20)   /* bytes, once it is expanded */
#define PPROF_READ_MEMORY (2UL << 30) /* bytes that the profile may take */

/*
 * *ret is the caller's, and not finished. What a struct profile has no place for is left out:
 * columns, folded locations, the URL. Bytes that are no UTF-8 become U+FFFD. Samples of equal stack
 * and labels are added up.
 *
 * 0; -EBADMSG: it is no profile, or refers to what is not there; -E2BIG: it is larger than
 * PPROF_READ_MAX or takes more than PPROF_READ_MEMORY, or has more values to a sample than
 * PROFILE_MAX_VALUES; -ENOMEM.
 */
int pprof_read(const void *data, size_t sz, struct profile **ret);

/* The same with another limit than PPROF_READ_MEMORY: an empty message has two bytes in a file, and up to a
 * hundred in memory. */
int pprof_read_within(const void *data, size_t sz, size_t memory, struct profile **ret);

/* The same of profile.proto alone, and of the labels those whose keys are kept: samples that the others told
 * apart are added up. */
int pprof_read_keeping(const void *data, size_t sz, bool (*keeps)(const char *key),
		       struct profile **ret);

/* The same without labels, and samples as they stand there, for who only reads them: nothing can be added to
 * it. */
int pprof_read_stacks(const void *data, size_t sz, struct profile **ret);

#endif
