/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that act on whoever prints them unescaped: of the process, of a thread, and of a function,
 * which no assembler would take. */
#include <pthread.h>
#include <sys/prctl.h>

#include "prog.h"

static NOIPA void evil_function_whose_name_is_replaced_by_the_test(void)
{
	spin();
	NO_TAIL_CALL();
}

static void *evil_thread(void *arg)
{
	prctl(PR_SET_NAME, "a;b\n\033[31m 7\377");
	evil_function_whose_name_is_replaced_by_the_test();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	prog_start(argc, argv);
	prctl(PR_SET_NAME, ");<\033[2J\n1 x");
	if (pthread_create(&thread, NULL, evil_thread, NULL))
		return 1;
	prog_ready();
	evil_function_whose_name_is_replaced_by_the_test();
	return 0;
}
