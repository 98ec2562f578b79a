/* SPDX-License-Identifier: BSD-2-Clause */
/* main hot read, and below it the kernel: nearly all time is spent clearing the buffer there. */
#include <fcntl.h>

#include "prog.h"

static char buffer[4 << 20];

static NOIPA long hot(int fd)
{
	long n = 0;

	while (!prog_stop)
		n += read(fd, buffer, sizeof(buffer));
	return n;
}

int main(int argc, char **argv)
{
	int fd = open("/dev/zero", O_RDONLY);

	prog_start(argc, argv);
	prog_ready();
	return hot(fd) == 12345;
}
