/* SPDX-License-Identifier: BSD-2-Clause */
/* The BPF programs as libbpf has them, and copies of single ones. */
#ifndef KERNEL_SKELETON_H
#define KERNEL_SKELETON_H

#include <stdint.h>

struct bpf_program;
struct bpfprof_bpf;

/* The skeleton, with the programs that this kernel takes; nothing is loaded. NULL with errno.
 * bpfprof_bpf__destroy frees it. The one that was opened last is the one that can be loaded. */
struct bpfprof_bpf *skeleton__open(void);

/* Loads what is not turned off. 0 or -errno. */
int skeleton__load(struct bpfprof_bpf *skel);

/*
 * Loads a program of a loaded skeleton once more, or at last, for probes that have this cookie (see
 * bpfprof_config.one_cookie). It has the skeleton's configuration and maps. Takes what the
 * verifier needs, some 10 ms. A descriptor, the caller's own, or -errno.
 */
int skeleton__load_copy(const struct bpfprof_bpf *skel, const struct bpf_program *prog,
			uint64_t cookie);

#endif
