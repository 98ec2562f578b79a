/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds its own map of memory: a thread reads a page of FILE, whose server at first says that it cannot read it. The
 * kernel asks once more then, and does not let go of the map while it waits for that. It begins with a line on standard
 * input.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "prog.h"

#define PAGE 4096

static void *hold(void *page)
{
	return (void *)(long)*(volatile char *)page;
}

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDONLY) : -1;
	void *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	pthread_t thread;
	char c;

	if (page == MAP_FAILED)
		return 1;
	/* without a page it is SIGBUS */
	signal(SIGBUS, prog_end);
	alarm(120);
	prog_ready();
	if (read(STDIN_FILENO, &c, 1) != 1 || pthread_create(&thread, NULL, hold, page))
		return 1;
	for (;;)
		pause();
}
