/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes say of their services, and runtimes of their containers. The first byte says what the
 * rest is: the message of a process context, an environment, or a file of each kind. */
#include <string.h>

#include "target/container_file.h"
#include "target/process_context.h"
#include "target/process_env.h"
#include "tests/fuzz/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

static void parse_container(enum container_file whose, const uint8_t *data, size_t sz)
{
	struct container_said s;

	(void)container_file_parse(whose, (const char *)data, sz, "0123456789ab", &s);
	NEED(container_said__is_clean(&s));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	unsigned int what = sz ? data[0] % (2 + CONTAINER_FILE_NR) : 0;
	struct said s, again = { 0 };

	if (!sz)
		return 0;
	if (what >= 2) {
		parse_container((enum container_file)(what - 2), data + 1, sz - 1);
		return 0;
	}
	if (what)
		process_env_parse((const char *)data + 1, sz - 1, &s);
	else
		(void)process_context_parse(data + 1, sz - 1, &s);
	NEED(said__is_clean(&s));
	for (enum said_fact i = 0; i < SAID_FACTS; i++) {
		/* nothing without a name */
		NEED(!*s.text[i] || *s.text[SAID_SERVICE]);
		said__put(&again, i, s.text[i], strlen(s.text[i]));
		NEED(!strncmp(again.text[i], s.text[i], strlen(again.text[i])));
	}
	return 0;
}
