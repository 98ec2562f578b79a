/* SPDX-License-Identifier: BSD-2-Clause */
/* main one two three spin, this file without unwind tables but with frame pointers; main is in
 * notable_main.c, with tables. */
#include "prog.h"

NOIPA void one(void);

static NOIPA void three(void)
{
	spin();
	NO_TAIL_CALL();
}

static NOIPA void two(void)
{
	three();
	NO_TAIL_CALL();
}

void one(void)
{
	two();
	NO_TAIL_CALL();
}
