/* SPDX-License-Identifier: BSD-2-Clause */
/* A 32-bit program, without any library: its stacks must end in a marker, its frames must not be
 * guessed. */
void _start(void);

void _start(void)
{
	static const char ready[] = "ready\n";
	volatile unsigned long n = 0;
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "0"(27), "b"(120) : "memory"); /* alarm */
	__asm__ volatile("int $0x80" : "=a"(ret) : "0"(4), "b"(1), "c"(ready), "d"(6) : "memory");
	for (;;)
		n++;
}
