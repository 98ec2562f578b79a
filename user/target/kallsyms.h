/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel symbols, from /proc/kallsyms. Addresses are all 0 there for who may not see them
 * (kptr_restrict). */
#ifndef TARGET_KALLSYMS_H
#define TARGET_KALLSYMS_H

#include <stddef.h>
#include <stdint.h>

struct kallsyms;

struct kallsyms_symbol {
	const char *name;   /* borrowed until kallsyms__free */
	const char *module; /* "nf_conntrack", "bpf" for JIT code; NULL for the kernel itself */
	uint64_t start;
	uint64_t
		end; /* exclusive: the next symbol, or that of the page where none is known to follow */
};

/*
 * Parses text of the form of /proc/kallsyms (text symbols only: t, T, w, W), and takes it: a
 * malloc'd buffer with sz bytes and a NUL behind. NULL with errno; EPERM if all addresses are 0.
 * Fast: it is read in every run that meets the kernel (120,000 lines, 5 MB).
 */
struct kallsyms *kallsyms__parse(char *text, size_t sz);
struct kallsyms *kallsyms__load(void); /* from /proc/kallsyms */
void kallsyms__free(struct kallsyms *k);

/* 0, or -ENOENT if addr lies before the first symbol, or past the last one of the kernel or its
 * module, or past a BPF program or trampoline. */
int kallsyms__find(const struct kallsyms *k, uint64_t addr, struct kallsyms_symbol *ret);

#endif
