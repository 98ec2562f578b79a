/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings: mangled names, names of allocators, arguments of USDT probes. */
#include <stdlib.h>
#include <string.h>

#include "target/allocator_names.h"
#include "target/demangle.h"
#include "target/usdt.h"
#include "tests/fuzz/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	struct allocator_name name;
	char *s = malloc(sz + 1), *out;
	uint64_t cookie;

	NEED(s);
	memcpy(s, data, sz);
	s[sz] = '\0';
	out = demangle(s);
	NEED(!out || (out[0] && strlen(out) <= 65536));
	free(out);
	allocator_name__find(s, &name);
	usdt_parse_args(s, 3, &cookie);
	free(s);
	return 0;
}
