/* SPDX-License-Identifier: BSD-2-Clause */
/* main hot clock_gettime (vDSO): the kernel's code page in user memory. */
#include <time.h>

#include "prog.h"

static NOIPA void hot(void)
{
	struct timespec t;

	while (!prog_stop)
		clock_gettime(CLOCK_MONOTONIC, &t);
}

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	prog_ready();
	hot();
	return 0;
}
