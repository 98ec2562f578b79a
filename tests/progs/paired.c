/* SPDX-License-Identifier: BSD-2-Clause */
/* Spends its time in a library (paired_lib.c) with two segments of code that share a page of the file. */
#include "prog.h"

void paired_first(long n);
void paired_second(long n);

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	paired_first(1);
	paired_second(1);
	prog_ready();
	while (!prog_stop) {
		paired_first(100000);
		paired_second(100000);
	}
	return 0;
}
