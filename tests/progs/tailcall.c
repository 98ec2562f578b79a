/* SPDX-License-Identifier: BSD-2-Clause */
/* main third spin: first and second have jumped on and are not on the stack; no profiler may invent
 * them. */
#include "prog.h"

static NOIPA void third(int n)
{
	prog_sink = n;
	spin();
	NO_TAIL_CALL();
}

static NOIPA void second(int n)
{
	third(n + 1);
}

static NOIPA void first(int n)
{
	second(n + 1);
}

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	prog_ready();
	first(argc);
	NO_TAIL_CALL();
	return 0;
}
