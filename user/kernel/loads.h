/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads BPF programs at the same time. Most of a start is the time that the kernel's verifier takes, and
 * libbpf loads one program after the other. The kernel verifies several at once for whoever has CAP_BPF
 * (only for others does bpf_check take bpf_verifier_lock). So each program is loaded by a thread,
 * and libbpf loads a program of two instructions in its stead.
 */
#ifndef KERNEL_LOADS_H
#define KERNEL_LOADS_H

#include <bpf/bpf.h>
#include <stdbool.h>

struct bpf_program;
struct loads;

/* NULL with errno. */
struct loads *loads__new(void);

/*
 * To be called by a libbpf_prog_prepare_load_fn. Starts a thread that loads the program with its
 * present instructions and these options, and gives libbpf the two instructions. What the options point
 * to has to stay until loads__finish. Where no thread can be started, libbpf loads the program itself.
 * 0 or -errno.
 */
int loads__begin(struct loads *l, struct bpf_program *prog, enum bpf_prog_type type,
		 struct bpf_prog_load_opts *opts);

/*
 * Waits for the threads. keep: libbpf has loaded what it was given, and bpf_program__fd of each program
 * leads to the one that its thread has loaded from now on; else these are unloaded. Frees l. 0, or
 * -errno of the first program that the kernel has refused.
 */
int loads__finish(struct loads *l, bool keep);

#endif
