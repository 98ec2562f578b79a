// SPDX-License-Identifier: BSD-2-Clause
#include "bench/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wordexp.h>

#include "base/util.h"

static const char *text_of(int err, const char *command)
{
	switch (err) {
	case WRDE_BADCHAR:
		if (strstr(command, WORDS_NUMBER))
			return WORDS_NUMBER " is the number of a build: give --builds";
		return "it has a character that only a shell understands: write sh -c '...'";
	case WRDE_BADVAL:
		return "a variable of it is not set";
	case WRDE_CMDSUB:
		return "it has a command inside: write sh -c '...'";
	case WRDE_SYNTAX:
		return "a quotation mark or bracket is not closed";
	default:
		return "out of memory";
	}
}

int words_split(const char *command, char ***ret, char *err, size_t err_sz)
{
	wordexp_t words = { 0 };
	int failed = wordexp(command, &words, WRDE_NOCMD | WRDE_UNDEF), res;

	if (failed) {
		/* the only failure that leaves something */
		if (failed == WRDE_NOSPACE)
			wordfree(&words);
		return util_fail(failed == WRDE_NOSPACE ? -ENOMEM : -EINVAL, err, err_sz,
				 "cannot split '%s' into words: %s", command,
				 text_of(failed, command));
	}
	if (!words.we_wordc)
		res = util_fail(-EINVAL, err, err_sz, "the command is empty");
	else if (words_copy(words.we_wordv, ret))
		res = util_fail(-ENOMEM, err, err_sz, "out of memory");
	else
		res = 0;
	wordfree(&words);
	return res;
}

int words_copy(char *const *argv, char ***ret)
{
	size_t cnt = 0;
	char **words;

	while (argv[cnt])
		cnt++;
	words = calloc(cnt + 1, sizeof(*words));
	for (size_t i = 0; words && i < cnt; i++) {
		words[i] = strdup(argv[i]);
		if (words[i])
			continue;
		words_free(words);
		words = NULL;
	}
	*ret = words;
	return words ? 0 : -ENOMEM;
}

bool words_have_number(char *const *argv)
{
	bool any = false;

	for (; *argv; argv++)
		any |= strstr(*argv, WORDS_NUMBER) != NULL;
	return any;
}

/* NULL: there is no memory. */
static char *put_number(const char *word, uint64_t number)
{
	char *ret = NULL;
	size_t sz;
	FILE *f = open_memstream(&ret, &sz);
	const char *at;

	if (!f)
		return NULL;
	for (; (at = strstr(word, WORDS_NUMBER)); word = at + strlen(WORDS_NUMBER))
		fprintf(f, "%.*s%" PRIu64, (int)(at - word), word, number);
	fputs(word, f);
	if (!fclose(f))
		return ret;
	free(ret);
	return NULL;
}

int words_number(char *const *argv, uint64_t number, char ***ret)
{
	int err = words_copy(argv, ret);

	for (char **word = *ret; !err && *word; word++) {
		char *numbered = put_number(*word, number);

		if (!numbered) {
			err = -ENOMEM;
			break;
		}
		free(*word);
		*word = numbered;
	}
	if (err) {
		words_free(*ret);
		*ret = NULL;
	}
	return err;
}

void words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}
