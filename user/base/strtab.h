/* SPDX-License-Identifier: BSD-2-Clause */
/* Interned strings with small ids. Id 0 is "" (as in profile.proto); ids count up in order of first
 * use. */
#ifndef BASE_STRTAB_H
#define BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

struct strtab;

/* NULL with errno if there is no memory. */
struct strtab *strtab__new(void);
void strtab__free(struct strtab *st);

/* The id of s, made if new. Returns 0 for "" and for NULL, UINT32_MAX with errno if there is no
 * memory. */
uint32_t strtab__add(struct strtab *st, const char *s);
uint32_t strtab__add_n(struct strtab *st, const char *s, size_t sz);

/* Borrowed until the next add; "" for an id that was never given out. */
const char *strtab__get(const struct strtab *st, uint32_t id);
uint32_t strtab__cnt(const struct strtab *st);

/* Of all strings, each with its NUL. */
size_t strtab__bytes(const struct strtab *st);

#endif
