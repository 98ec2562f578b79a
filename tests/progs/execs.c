/* SPDX-License-Identifier: BSD-2-Clause */
/* Becomes itself anew MODE times. */
#include <stdio.h>

#include "prog.h"

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);
	char less[16];

	if (atoi(mode) > 0) {
		snprintf(less, sizeof(less), "%d", atoi(mode) - 1);
		prog_exec(argv[1], less);
	}
	return 0;
}
