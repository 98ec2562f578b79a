/* SPDX-License-Identifier: BSD-2-Clause */
/* Which machine this is, as far as it decides how fast programs run. */
#ifndef KERNEL_MACHINE_H
#define KERNEL_MACHINE_H

#include <stddef.h>

/* "AMD EPYC 7763, 4 CPUs, Linux 6.1.0-18-amd64": the processor's name, CPUs online, the kernel. Printable.
 * Returns text. */
char *machine_text(char *text, size_t sz);

#endif
