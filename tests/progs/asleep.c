/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeps a millisecond at a time; mode: so many. */
#include "prog.h"

int main(int argc, char **argv)
{
	unsigned int ms = atoi(prog_start(argc, argv));

	prog_ready();
	while (!prog_stop)
		usleep((ms ? ms : 1) * 1000);
	return 0;
}
