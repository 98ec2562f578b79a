/* SPDX-License-Identifier: BSD-2-Clause */
/* Works for 20 ms in brief(), and ends. */
#include <time.h>

#include "prog.h"

static NOIPA void brief(void)
{
	while (clock() < CLOCKS_PER_SEC / 50)
		for (int n = 0; n < 10000; n++)
			prog_sink++;
}

int main(void)
{
	brief();
	return 0;
}
