/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Executes itself with a line on standard input, while it has a descriptor of FILE that the kernel closes then: the end
 * of it waits for the file's server. Executed so, it says so.
 */
#include <fcntl.h>

#include "prog.h"

int main(int argc, char **argv)
{
	char c;

	alarm(120);
	if (argc != 2 || open(argv[1], O_RDONLY | O_CLOEXEC) < 0)
		return 1;
	prog_ready();
	if (read(STDIN_FILENO, &c, 1) != 1)
		return 1;
	execl(argv[0], argv[0], argv[1], (char *)NULL);
	return 1;
}
