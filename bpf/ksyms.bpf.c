// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0
/*
 * Names of kernel addresses, asked of the kernel itself. Reading /proc/kallsyms makes the kernel
 * print all of its 100,000 symbols, which costs more CPU than the whole of a short profile; a
 * profile has some hundred addresses.
 */
#include "common.bpf.h"

/* %pS: symbol+0xoffset/0xsize [module], Documentation/core-api/printk-formats.rst */
const char bp_ksym_format[] SEC(".rodata.ksyms") = "%pS";

static long name_one(void *map, __u32 *key, struct bpfprof_ksym *sym, void *ctx)
{
	if (!sym->addr)
		return 1;
	bpf_snprintf(sym->text, sizeof(sym->text), bp_ksym_format, &sym->addr, sizeof(sym->addr));
	return 0;
}

/* Fills in the text of each entry up to the first without an address. Run on request:
 * bpf_prog_test_run. */
SEC("?syscall")
int ksyms_name(void *ctx)
{
	bpf_for_each_map_elem(&bp_ksyms, name_one, NULL, 0);
	return 0;
}
