/* SPDX-License-Identifier: BSD-2-Clause */
/* A program in C that runs what go_cgo.go has as a library, in the main thread and in another one. */
#include <pthread.h>

#include "prog.h"

void goRun(void);

static void *run(void *arg)
{
	goRun();
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	prog_start(argc, argv);
	if (pthread_create(&thread, NULL, run, NULL))
		return 1;
	prog_ready();
	run(NULL);
	return 0;
}
