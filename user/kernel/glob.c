// SPDX-License-Identifier: BSD-2-Clause
/* Compiles a thread name pattern into the automaton that the BPF filter runs. */
#include "kernel/glob.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

int glob_compile(const char *pattern, struct bpfprof_config *cfg)
{
	unsigned int state = 0;

	memset(cfg->comm_match, 0, sizeof(cfg->comm_match));
	cfg->comm_loop = 0;
	for (const unsigned char *p = (const unsigned char *)pattern; *p; p++) {
		if (*p == '*') {
			cfg->comm_loop |= 1ULL << state;
			continue;
		}
		if (state == BPFPROF_GLOB_MAX)
			return -E2BIG;
		if (*p == '?') {
			for (int c = 1; c < 256; c++)
				cfg->comm_match[c] |= 1ULL << state;
		} else {
			if (*p == '\\' && p[1])
				p++;
			cfg->comm_match[*p] |= 1ULL << state;
		}
		state++;
	}
	cfg->comm_accept = 1ULL << state;
	return 0;
}
