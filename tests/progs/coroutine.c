/* SPDX-License-Identifier: BSD-2-Clause */
/* A coroutine on a stack of its own (makecontext), which lies below main's or above: its frames end
 * where it began. */
#include <ucontext.h>

#include "prog.h"

static ucontext_t back, coroutine;

static NOIPA void inner(void)
{
	spin();
	NO_TAIL_CALL();
}

static void body(void)
{
	prog_ready();
	inner();
	NO_TAIL_CALL();
}

static NOIPA void resume(void)
{
	swapcontext(&back, &coroutine);
	NO_TAIL_CALL();
}

int main(int argc, char **argv)
{
	static char stack[256 * 1024];

	prog_start(argc, argv);
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = stack;
	coroutine.uc_stack.ss_size = sizeof(stack);
	coroutine.uc_link = &back;
	makecontext(&coroutine, body, 0);
	resume();
	return 0;
}
