/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ten functions, then a callback through libc: main a b c d e f g h i j qsort compare spin. Built
 * in many ways: without and with frame pointers, static, static-pie, at a fixed address, stripped,
 * without sections, against musl. Mode "plain" leaves the callback out: j calls spin.
 */
#include "prog.h"

static int through_libc;

static NOIPA int compare(const void *a, const void *b)
{
	prog_ready();
	spin();
	return *(const char *)a - *(const char *)b;
}

NOIPA int j(int n);
NOIPA int j(int n)
{
	char two[2] = { (char)n, 0 };

	if (through_libc) {
		qsort(two, 2, 1, compare);
	} else {
		prog_ready();
		spin();
	}
	return two[0] + n;
}

#define CALLS(f, g)                  \
	NOIPA int f(int n);          \
	NOIPA int f(int n)           \
	{                            \
		return g(n + 1) * n; \
	}
CALLS(i, j)
CALLS(h, i)
CALLS(g, h)
CALLS(f, g)
CALLS(e, f)
CALLS(d, e)
CALLS(c, d)
CALLS(b, c)
CALLS(a, b)

int main(int argc, char **argv)
{
	through_libc = strcmp(prog_start(argc, argv), "plain");
	return a(argc) == 12345;
}
