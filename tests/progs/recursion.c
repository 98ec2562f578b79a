/* SPDX-License-Identifier: BSD-2-Clause */
/* main, then deep() as often as the mode says, then spin. */
#include "prog.h"

static NOIPA int deep(int n)
{
	char local[40 + n % 3 * 32];

	local[0] = n;
	__asm__ volatile("" : : "r"(local) : "memory");
	if (n > 1)
		return deep(n - 1) + local[0];
	prog_ready();
	spin();
	return local[0];
}

int main(int argc, char **argv)
{
	return deep(atoi(prog_start(argc, argv))) == 12345;
}
