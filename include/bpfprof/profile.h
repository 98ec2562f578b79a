/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Custom profiles of bpfprof(8), for C and C++: which stacks have added what is not removed yet.
 *
 *     struct conn *conn_open(...)              void conn_close(struct conn *c)
 *     {                                        {
 *             ...                                      BPFPROF_REMOVE("conn", c);
 *             BPFPROF_ADD("conn", c);                  ...
 *             return c;                                free(c);
 *     }                                        }
 *
 *     bpfprof --pid PID -P custom:conn
 *
 * Add a value once what it stands for is there, and remove it before that is gone: another thread
 * may be given the same value from then on.
 *
 * name: a string literal of 1 to 63 letters, digits, and . _ - / : (Go's convention: a path before
 * it, such as "example.org/net.conn"). value: a pointer, or an integer of at most 64 bits, which is
 * evaluated once. Values of different names have nothing to do with each other.
 *
 * Each use is an instruction that does nothing (nop), and a note in the file that says where it is:
 * a USDT probe of the provider bpfprof_add or bpfprof_remove, with the name of the profile and one
 * argument. Other languages write the same probes by other means. While nobody listens it costs what
 * it takes to have the value in a register. It needs no library, and no semaphore, which would cost
 * more than the nop. On other machines than x86-64 the value is evaluated, and that is all.
 */
#ifndef BPFPROF_PROFILE_H
#define BPFPROF_PROFILE_H

#define BPFPROF_ADD(name, value) BPFPROF_SITE("bpfprof_add", name, value)
#define BPFPROF_REMOVE(name, value) BPFPROF_SITE("bpfprof_remove", name, value)

/*
 * The note has the form that SystemTap has defined for version 3 of its probes: where the nop is,
 * where .stapsdt.base is, no semaphore, and three strings. It belongs to the section's group ("?"),
 * so that it goes where the linker leaves out a copy of an inline function.
 *
 * A nop of one byte: of a probed one of five Linux 6.18 to 7.1 make a call, which costs less than a
 * breakpoint, but writes over the red zone of functions that call none.
 */
/* clang-format off */
#if defined(__x86_64__) && defined(__LP64__) && defined(__ELF__)
#define BPFPROF_SITE(provider, name, value)                                                   \
	__asm__ __volatile__(                                                                 \
		"990: nop\n"                                                                  \
		".pushsection .note.stapsdt, \"?\", \"note\"\n"                               \
		".balign 4\n"                                                                 \
		".long 992f - 991f, 994f - 993f, 3\n"                                         \
		"991: .asciz \"stapsdt\"\n"                                                   \
		"992: .balign 4\n"                                                            \
		"993: .quad 990b, _.stapsdt.base, 0\n"                                        \
		".asciz \"" provider "\"\n"                                                   \
		".asciz \"" name "\"\n"                                                       \
		".asciz \"8@%0\"\n"                                                           \
		"994: .balign 4\n"                                                            \
		".popsection\n"                                                               \
		".ifndef _.stapsdt.base\n"                                                    \
		".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"   \
		".weak _.stapsdt.base\n"                                                      \
		".hidden _.stapsdt.base\n"                                                    \
		"_.stapsdt.base: .space 1\n"                                                  \
		".size _.stapsdt.base, 1\n"                                                   \
		".popsection\n"                                                               \
		".endif\n"                                                                    \
		:                                                                             \
		: "r"((unsigned long)(value)))
#else
#define BPFPROF_SITE(provider, name, value) ((void)(value))
#endif
/* clang-format on */

#endif
