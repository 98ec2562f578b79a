/* SPDX-License-Identifier: BSD-2-Clause */
/* Spends its time in a library (unsized_lib.c) whose local symbols are stripped. */
#include "prog.h"

void unsized_entry(long n);

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	unsized_entry(1);
	prog_ready();
	while (!prog_stop)
		unsized_entry(100000);
	return 0;
}
