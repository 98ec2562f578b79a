/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of kernel addresses, asked of the kernel for just these addresses (5.14 and later).
 * /proc/kallsyms, which prints all symbols there are, costs some 60 ms of CPU time: as much as the
 * rest of a short run.
 */
#ifndef KERNEL_KSYMS_H
#define KERNEL_KSYMS_H

#include <stddef.h>
#include <stdint.h>

struct ksyms;
struct session;

/* NULL with errno; ENOTSUP if this kernel cannot do it: use kallsyms. */
struct ksyms *ksyms__new(struct session *s);
void ksyms__free(struct ksyms *k);

/*
 * Names cnt addresses, at most BPFPROF_KSYM_BATCH. ret_names[i]: the symbol's name, borrowed until
 * the next call; NULL if the address lies in none. ret_offsets[i]: how far it is in it. 0 or -errno.
 */
int ksyms__name(struct ksyms *k, const uint64_t *addrs, size_t cnt, const char **ret_names,
		uint64_t *ret_offsets);

#endif
