/* SPDX-License-Identifier: BSD-2-Clause */
/* Spends its time in PLT stubs: hot() calls functions of a library (tiny.c) that return at once. */
#include "prog.h"

int tiny_a(void);
int tiny_b(void);
int tiny_c(void);

static NOIPA int hot(void)
{
	int n = 0;

	while (!prog_stop)
		n += tiny_a() + tiny_b() + tiny_c() + tiny_a() + tiny_b() + tiny_c();
	return n;
}

int main(int argc, char **argv)
{
	prog_start(argc, argv);
	prog_ready();
	return hot() == 12345;
}
