/* SPDX-License-Identifier: BSD-2-Clause */
/* main visible, and in it by inlining middle and innermost: frames that only DWARF knows. Built
 * with -g. */
#include "prog.h"

static inline __attribute__((always_inline)) void innermost(int n)
{
	while (!prog_stop)
		prog_sink += n;
}

static inline __attribute__((always_inline)) void middle(int n)
{
	innermost(n + 1);
}

static NOIPA void visible(int n)
{
	middle(n + 1);
}

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	prog_ready();
	visible(argc);
	NO_TAIL_CALL();
	return 0;
}
