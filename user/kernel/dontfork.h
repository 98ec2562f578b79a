/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps memory that is shared with the kernel side to this process. */
#ifndef KERNEL_DONTFORK_H
#define KERNEL_DONTFORK_H

/*
 * BPF maps and rings that are mapped by now are not inherited by a forked child, which could write
 * to unwind tables and move a ring's position: MADV_DONTFORK, see madvise(2). To be called when
 * some were mapped, also by libbpf, which does not tell where. 0 or -errno.
 */
int dontfork(void);

#endif
