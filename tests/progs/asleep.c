/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeps a millisecond at a time. */
#include "prog.h"

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	prog_ready();
	while (!prog_stop)
		usleep(1000);
	return 0;
}
