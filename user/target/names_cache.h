/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What objects have answered about their addresses, also that no symbol covers one: a program whose
 * profile is taken every few seconds runs the same code each time, and its DWARF need not be read
 * again for it.
 *
 * An answer is of an object's serial number (struct object_info), which stands for one version of a
 * file and is never given to another object.
 * Whether the file still is that version, objects__unchanged says. An answer may know less than the
 * object would tell by now: separate debug information that is installed meanwhile is seen once the
 * answer has gone.
 *
 * The cache has two halves. Answers are put into the younger one. When it is full, all that the
 * older one holds is evicted, and the two change places. What is found in the older one is copied
 * into the younger one. So answers that are in use stay, if they fill no more than a half, and what
 * was not looked up while a half filled goes. Each half has strings of its own, each of them once.
 */
#ifndef TARGET_NAMES_CACHE_H
#define TARGET_NAMES_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "target/names.h"

/*
 * Bytes of both halves; what was never filled takes no memory, and where new programs come all the time
 * all of it is filled. An answer takes 64 bytes (C) to 280 (Rust, with inlined functions), so that a
 * half has room for those of 15,000 addresses: a window of a machine that compiles and runs tests at
 * 99 Hz has 2,500 to 4,100.
 */
#define NAMES_CACHE_BYTES (8U << 20)
/* Bytes of an answer that is kept, if none of its strings were there: 64 inlined functions with
 * long names. A longer one would push out too many others. */
#define NAMES_CACHE_MAX_ANSWER (128U << 10)
/*
 * Objects that come while a half is filled. With more it counts as full: where programs and libraries
 * come and go, most of what it holds is of objects that are no more, and would only take memory.
 */
#define NAMES_CACHE_MAX_OBJECTS 1024

struct names_cache;

/* NULL with errno if there is no memory. */
struct names_cache *names_cache__new(void);
void names_cache__free(struct names_cache *c);

/* Of an object's number, from the lowest on, those of its serial number. What stands above tells apart answers of several kinds. */
#define NAMES_CACHE_SERIAL_BITS 48

/* What the object has answered about the address; false if that is not known. *ret is borrowed
 * until the next call. */
bool names_cache__lookup(struct names_cache *c, uint64_t object, uint64_t vaddr,
			 struct symbol_frames *ret);

/*
 * Keeps a copy of an answer. Of two for one address the first is kept: both come from the same
 * bytes. answer must not be one that this cache has lent.
 */
void names_cache__insert(struct names_cache *c, uint64_t object, uint64_t vaddr,
			 const struct symbol_frames *answer);

/* Answers that have gone so far, to make room. */
uint64_t names_cache__evicted(const struct names_cache *c);

#endif
