/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc/kallsyms. */
#include <stdlib.h>
#include <string.h>

#include "target/kallsyms.h"
#include "tests/fuzz/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	char *text = malloc(sz + 1);
	struct kallsyms_symbol s;
	struct kallsyms *k;
	uint64_t addr = 0;
	size_t i;

	NEED(text);
	memcpy(text, data, sz);
	text[sz] = '\0';
	k = kallsyms__parse(text, sz);
	if (!k)
		return 0;
	for (i = 0; i < 64; i++, addr = addr * 16 + i) {
		if (kallsyms__find(k, addr, &s))
			continue;
		NEED(s.start <= addr && addr < s.end && s.name[0]);
		NEED(!s.module || strlen(s.module) < sz);
	}
	kallsyms__free(k);
	return 0;
}
