/* SPDX-License-Identifier: BSD-2-Clause */
/* A command that is given as one argument, as a list of words. */
#ifndef BENCH_WORDS_H
#define BENCH_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORDS_NUMBER "{i}"

/*
 * Splits as a shell does: quotes, backslashes, variables, patterns. Without commands inside, pipes and
 * redirections: both sides are to be started alike, without a shell. *ret is NULL-terminated, for
 * words_free. 0; -EINVAL or -ENOMEM with a sentence in err.
 */
int words_split(const char *command, char ***ret, char *err, size_t err_sz);
/* The same of words that are there already. 0 or -ENOMEM. */
int words_copy(char *const *argv, char ***ret);
/* The same, with a number in place of each WORDS_NUMBER. */
int words_number(char *const *argv, uint64_t number, char ***ret);
bool words_have_number(char *const *argv);
void words_free(char **words);

#endif
