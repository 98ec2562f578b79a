/* SPDX-License-Identifier: BSD-2-Clause */
/* The few of the kernel's types that our programs are fitted to (CO-RE): libbpf compares each type of
 * a program with each one that it is given. */
#ifndef KERNEL_REDUCED_TYPES_H
#define KERNEL_REDUCED_TYPES_H

struct btf;
struct kernel_types;

/*
 * Writes to fd those that have the name of a struct, union, enum or typedef of `local`, with all
 * that is part of them, as BTF of their own: no more is needed to fit a program with the types
 * `local` to the kernel (CO-RE). They have other numbers there; what a pointer leads to is left out.
 * 0 or -errno.
 */
int reduced_types__write(const struct kernel_types *kt, const struct btf *local, int fd);

#endif
