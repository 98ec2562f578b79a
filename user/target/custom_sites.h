/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The USDT probes by which a program says what it adds to its custom profiles and what it removes
 * (include/bpfprof/profile.h): provider bpfprof_add or bpfprof_remove, the profile's name, and one
 * argument, the value.
 */
#ifndef TARGET_CUSTOM_SITES_H
#define TARGET_CUSTOM_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_file;

#define CUSTOM_NAME_SZ 64     /* bytes of a profile's name, with its NUL */
#define CUSTOM_SITES_MAX 1024 /* of one object; more are refused */

struct custom_site {
	uint64_t offset;  /* in the file, of the instruction to probe */
	uint64_t ref_ctr; /* in the file, of its semaphore; 0: none */
	uint64_t value;	  /* where it is: BPFPROF_USDT_ARG_BITS of a cookie, see bpf/bpfprof.h */
	uint32_t removes; /* 1: bpfprof_remove */
	char name[CUSTOM_NAME_SZ]; /* custom_name_ok; behind its NUL zeros */
};

struct custom_sites {
	struct custom_site *sites; /* by offset, then by name */
	size_t cnt;
	/* left out: a name or an argument of another form, no nop that can be probed without harm,
	 * or too many */
	uint64_t refused;
};

/* 1 to CUSTOM_NAME_SZ - 1 letters, digits and . _ - / : */
bool custom_name_ok(const char *name);

/* None is no error. 0, and the caller releases *ret; -ENOMEM, or what reading the file failed with. */
int custom_sites_find(const struct elf_file *elf, struct custom_sites *ret);
void custom_sites__done(struct custom_sites *s);

#endif
