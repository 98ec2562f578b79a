/* SPDX-License-Identifier: BSD-2-Clause */
/* Packs rows of unwind rules into the parts of a struct unwind_table (unwind_build.h), whose form is
 * that of bpf/bpfprof.h. */
#ifndef TARGET_UNWIND_TABLE_H
#define TARGET_UNWIND_TABLE_H

#include <stdint.h>
#include <linux/types.h>

#include "bpfprof.h"

struct unwind_packer;
struct unwind_table;

/* Fills *t, which has to be empty and outlive the packer. NULL with errno. */
struct unwind_packer *unwind_packer__new(struct unwind_table *t);
void unwind_packer__free(struct unwind_packer *p);

/*
 * The rule that holds from vaddr on. vaddr has to be above that of the row before. Unused fields of
 * the rule have to be 0: equal rules are recognised by their bytes. Errors are kept until the end,
 * rows after one ignored.
 */
void unwind_packer__row(struct unwind_packer *p, uint64_t vaddr, struct bpfprof_rule rule);

/* 0, or the error that the rows so far have met. */
int unwind_packer__error(const struct unwind_packer *p);

/* No more rows: the last rule has to be BPFPROF_CFA_NONE. 0; -ENOMEM; -E2BIG if a limit was met. *t
 * has what was packed. */
int unwind_packer__finish(struct unwind_packer *p);

#endif
