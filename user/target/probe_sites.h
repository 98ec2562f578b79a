/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a probe goes that somebody names: to a function, by its name in the symbol tables, or to all
 * sites of a USDT probe. A function's is put on its first instruction, or on one behind it that every
 * call comes to once, if the kernel emulates that one (allocators.h has what it saves), or if the function
 * may begin anew (probe_decoder__past_growth).
 */
#ifndef TARGET_PROBE_SITES_H
#define TARGET_PROBE_SITES_H

#include <stddef.h>
#include <stdint.h>

struct elf_file;

/* What a probe of a function is for. */
enum probe_sites_use {
	PROBE_SITES_HIT,    /* that it was called */
	PROBE_SITES_RETURN, /* what it returns: a return probe is to be set there */
	PROBE_SITES_ARG,    /* its first argument, where that is passed in a register; and so on: */
	PROBE_SITES_ARG_LAST = PROBE_SITES_ARG + 5,
};

#define PROBE_SITES_MAX 512
#define PROBE_SITES_MAX_NAME 4096 /* bytes of a name, with its NUL */

struct probe_site {
	uint64_t offset;  /* in the file, of the instruction to probe */
	uint64_t ref_ctr; /* in the file, of a USDT probe's semaphore; 0: none */
};

struct probe_sites {
	struct probe_site *sites; /* by offset, each offset once */
	size_t cnt;
};

/*
 * use: of a USDT probe PROBE_SITES_HIT. name: of a function that the file defines, as its tables have it, or demangled, with parameters or
 * without; debug: its file of separate debug information, or NULL. provider "": it is a function; else
 * name is that of a USDT probe.
 *
 * 0, and the caller releases *ret, which has one site at least; -ENOENT: there is none of that name;
 * -ENOTUNIQ: several functions have it; -EOVERFLOW: more than PROBE_SITES_MAX sites; -EOPNOTSUPP: a site
 * that cannot be probed without harm: an exception would not pass a return probe, so it may be none of
 * C++ or Rust; and one of Go, whose arguments and stacks are others; -ENOMEM, or what reading the file failed with.
 */
int probe_sites_find(const struct elf_file *elf, const struct elf_file *debug, const char *provider,
		     const char *name, enum probe_sites_use use, struct probe_sites *ret);
void probe_sites__done(struct probe_sites *s);

#endif
