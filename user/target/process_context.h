/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process context, by which a process tells those who look at it from outside what its
 * OpenTelemetry resource is: version 2 of the format, as of OTEP 4719 (opentelemetry-specification,
 * oteps/profiles/4719-process-ctx.md, at 1377f53b), with the message of opentelemetry-proto 1.11.
 *
 * It is a mapping that its name tells of, with a header of 32 bytes and a pointer to a message of
 * protobuf, which lies anywhere in the process:
 *
 *	[anon_shmem:OTEL_CTX]	a memfd, and prctl(2) PR_SET_VMA_ANON_NAME has worked (5.17 and
 *				CONFIG_ANON_VMA_NAME)
 *	[anon:OTEL_CTX]		anonymous memory, with the same
 *	/memfd:OTEL_CTX		a memfd, without it
 *
 * The process changes both while they are read: it sets the header's time to 0 before, and to
 * another one than it was afterwards.
 */
#ifndef TARGET_PROCESS_CONTEXT_H
#define TARGET_PROCESS_CONTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "target/said.h"

#define PROCESS_CONTEXT_MAX 65536U /* bytes of a message, as OpenTelemetry's eBPF profiler has it */
#define PROCESS_CONTEXT_PLACES 4   /* there should be one */

/*
 * Where its header may be, in a process whose main thread lives. proc_dir: "/proc", but in tests.
 * *ret_sz: bytes of /proc/PID/maps that were read for it, 2 MiB at most. Returns how many places
 * there are, or -errno; -ESRCH: there is no such process.
 */
int process_context_find(const char *proc_dir, uint32_t tgid,
			 uint64_t ret[static PROCESS_CONTEXT_PLACES], size_t *ret_sz);

/*
 * Takes the message whose header is at addr, of PROCESS_CONTEXT_MAX bytes at most, to buf. read(ctx,
 * addr, buf, sz) reads exactly sz bytes of the process's memory: 0 or -errno. Returns 0; -EBADMSG:
 * that is no header; -EAGAIN: it was being changed, three times in a row; or what read returned.
 */
int process_context_read(int (*read)(void *ctx, uint64_t addr, void *buf, size_t sz), void *ctx,
			 uint64_t addr, void *buf, size_t *ret_sz);

/* What the message says; without a service's name it has no other fact either. 0; -EBADMSG: that is
 * no such message, or there is no memory for it. */
int process_context_parse(const void *data, size_t sz, struct said *ret);

#endif
