// SPDX-License-Identifier: BSD-2-Clause
#include "bench/words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <wordexp.h>

#include "base/util.h"

static const char *text_of(int err)
{
	switch (err) {
	case WRDE_BADCHAR:
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
				 "cannot split '%s' into words: %s", command, text_of(failed));
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

void words_free(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}
