/* SPDX-License-Identifier: BSD-2-Clause */
/* Works for 10 ms in brief(), and ends. */
#include <time.h>

#include "prog.h"

static NOIPA void brief(void)
{
	while (clock() < CLOCKS_PER_SEC / 100)
		for (int n = 0; n < 10000; n++)
			prog_sink++;
}

int main(void)
{
	brief();
	return 0;
}
