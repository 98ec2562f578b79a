/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Maps each file that it is given as code, whatever it is, and calls what is at offset 4096 in it:
 * a loop that counts its argument down. In between it works itself, in own_work.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CODE 4096
#define MAX_FILES 64
#define ROUNDS 200000 /* about 0.1 ms */

static volatile unsigned long sink;

static __attribute__((noipa)) void own_work(unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++)
		sink += i;
}

int main(int argc, char **argv)
{
	void (*code[MAX_FILES])(unsigned long);
	struct stat st;
	int i, fd;

	if (argc > MAX_FILES)
		return 1;
	for (i = 1; i < argc; i++) {
		char *base = MAP_FAILED;

		fd = open(argv[i], O_RDONLY);
		if (fd >= 0 && !fstat(fd, &st))
			base = mmap(NULL, st.st_size, PROT_READ | PROT_EXEC,
				    MAP_PRIVATE | MAP_NORESERVE, fd, 0);
		if (base == MAP_FAILED) {
			perror(argv[i]);
			return 1;
		}
		close(fd);
		code[i] = (void (*)(unsigned long))(base + CODE);
	}
	alarm(120);
	if (write(STDOUT_FILENO, "ready\n", 6) != 6)
		return 1;
	for (;;) {
		own_work((unsigned long)argc * ROUNDS / 4);
		for (i = 1; i < argc; i++)
			code[i](ROUNDS);
	}
}
