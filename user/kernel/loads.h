/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that are loaded at the same time. To load is nearly all that a start waits for, and what
 * takes time is the verifier, of which the kernel runs as many as are asked for by who has CAP_BPF
 * (bpf_check takes bpf_verifier_lock for others only). libbpf loads one after the other, so it is
 * given a program of two instructions for each, while a thread loads the program that it stands for.
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
 * For a libbpf_prog_prepare_load_fn: begins to load a program as it is now, by these options, and
 * leaves libbpf another to load. Both are the program's until loads__finish. Where no thread can be
 * had, all is left as it is. 0 or -errno.
 */
int loads__begin(struct loads *l, struct bpf_program *prog, enum bpf_prog_type type,
		 struct bpf_prog_load_opts *opts);

/*
 * Waits for all that was begun. With keep, which says that libbpf has loaded its own, the programs
 * take the place of those: bpf_program__fd leads to them. Frees. 0, or -errno of the first that
 * the kernel has refused.
 */
int loads__finish(struct loads *l, bool keep);

#endif
