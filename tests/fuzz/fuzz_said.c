/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes say of their services. The first byte says what the rest is: the message of a process
 * context, or an environment. */
#include <string.h>

#include "target/process_context.h"
#include "target/process_env.h"
#include "tests/fuzz/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	struct said s, again = { 0 };

	if (!sz)
		return 0;
	if (data[0] % 2)
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
