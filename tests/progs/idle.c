/* SPDX-License-Identifier: BSD-2-Clause */
/* Sleeps: nothing to be sampled. */
#include "prog.h"

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	prog_ready();
	while (!prog_stop)
		pause();
	return 0;
}
