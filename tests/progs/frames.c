/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of unusual shape, one kind per mode, each three deep:
 *   realign   aligned to 64 bytes and of variable size: gcc keeps the CFA in memory at -8(%rbp)
 *   entry     force_align_arg_pointer, as -mstackrealign makes of every function
 *   alloca    alloca and a variable length array, addressed from rbp
 *   big       300 KB of locals in each frame
 */
#include <alloca.h>

#include "prog.h"

static NOIPA void use(volatile char *p, size_t n)
{
	p[0] = p[n - 1] = 1;
}

static NOIPA void realign(int depth)
{
	_Alignas(64) char aligned[192];
	char *more = alloca(depth * 24 + 40);

	use(aligned, sizeof(aligned));
	use(more, depth * 24 + 40);
	if (depth > 1)
		realign(depth - 1);
	else
		spin();
	use(aligned, sizeof(aligned));
}

static NOIPA __attribute__((force_align_arg_pointer)) void entry(int depth)
{
	_Alignas(32) char aligned[96];

	use(aligned, sizeof(aligned));
	if (depth > 1)
		entry(depth - 1);
	else
		spin();
	use(aligned, sizeof(aligned));
}

static NOIPA void variable(int depth)
{
	char array[depth * 100 + 1];
	char *more = alloca(depth * 1000 + 1);

	use(array, sizeof(array));
	use(more, depth * 1000 + 1);
	if (depth > 1)
		variable(depth - 1);
	else
		spin();
	use(array, sizeof(array));
}

static NOIPA void big(int depth)
{
	char array[300000];

	use(array, sizeof(array));
	if (depth > 1)
		big(depth - 1);
	else
		spin();
	use(array, sizeof(array));
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);

	prog_ready();
	if (!strcmp(mode, "realign"))
		realign(3);
	else if (!strcmp(mode, "entry"))
		entry(3);
	else if (!strcmp(mode, "alloca"))
		variable(3);
	else
		big(3);
	return 0;
}
