/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where Go's runtime keeps the stacks that it switches between. The structures differ by release;
 * the functions that switch say where the fields are, so their code is read: a release that is not
 * known yet needs no table of offsets.
 */
#ifndef TARGET_GOSTACK_H
#define TARGET_GOSTACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a function that are looked at, at most. */
#define GOSTACK_MAX_CODE 256

/* Code of one function, at its virtual address. */
struct gostack_code {
	uint64_t vaddr;
	size_t sz;
	uint8_t bytes[GOSTACK_MAX_CODE];
};

struct gostack {
	int32_t g; /* of the word that holds g, from the thread pointer; or, if via_got is set … */
	bool via_got; /* … the virtual address of the word that holds this distance */
	uint16_t g_m, m_curg, sched_sp, sched_bp; /* as in struct bpfprof_rule */
};

/* Reads runtime.morestack and runtime.systemstack. 0; -ENOTSUP if they are not understood; -ENOMEM.
 */
int gostack_read(const struct gostack_code *morestack, const struct gostack_code *systemstack,
		 struct gostack *ret);

/*
 * Where runtime.asmcgocall of Go up to 1.20 saves g and how deep the goroutine's stack was, in
 * bytes from its rsp. 0 or -ENOTSUP.
 */
int gostack_read_asmcgocall(const struct gostack_code *code, int16_t *ret_g, int16_t *ret_depth);

#endif
