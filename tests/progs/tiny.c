/* SPDX-License-Identifier: BSD-2-Clause */
/* The library of plt.c: functions that return at once. */
int tiny_a(void);
int tiny_b(void);
int tiny_c(void);

int tiny_a(void)
{
	return 1;
}

int tiny_b(void)
{
	return 2;
}

int tiny_c(void)
{
	return 3;
}
