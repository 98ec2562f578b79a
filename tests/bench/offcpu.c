// SPDX-License-Identifier: BSD-2-Clause
/*
 * An off-CPU profiler of the usual make, which does at each switch what bcc's offcputime does,
 * where that finds no kprobes or kernel headers: offcpu PID; 0: all. Prints "ready", keeps on until
 * standard input ends, then prints how many different stacks it found.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offcpu.skel.h"

static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

int main(int argc, char **argv)
{
	struct offcpu *skel;
	unsigned char key[32], next[32];
	int found = 0, fd;

	if (argc != 2)
		return 2;
	libbpf_set_print(silent);
	skel = offcpu__open();
	if (!skel)
		return 1;
	skel->rodata->target = atoi(argv[1]);
	if (offcpu__load(skel) || offcpu__attach(skel)) {
		puts("this kernel has no sched_exit_tp");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF)
		;
	fd = bpf_map__fd(skel->maps.delays);
	for (void *from = NULL; !bpf_map_get_next_key(fd, from, next);
	     from = memcpy(key, next, sizeof(key)))
		found++;
	printf("%d\n", found);
	offcpu__destroy(skel);
	return 0;
}
