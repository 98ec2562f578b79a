/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of notable.c that has unwind tables. */
#include "prog.h"

void one(void);

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	prog_ready();
	one();
	return 0;
}
