/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's types (BTF, Documentation/bpf/btf.rst), some 130,000: found by name where libbpf would
 * copy all of them and compare name after name.
 *
 * One thread uses it. What is got is there until it is dropped, and is read again by the next one
 * who asks: they are needed while a session begins, and take 1 MB (5 MB more before 6.16).
 */
#ifndef KERNEL_KERNEL_TYPES_H
#define KERNEL_KERNEL_TYPES_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

struct btf_type;
struct kernel_types;

/* NULL with errno: there are none, or they cannot be understood. */
const struct kernel_types *kernel_types__get(void);
void kernel_types__drop(void);

/* The same of bytes, which have to outlive it. NULL with errno (EINVAL: they cannot be understood).
 * kernel_types__free frees it. */
struct kernel_types *kernel_types__parse(const void *data, size_t sz);
void kernel_types__free(struct kernel_types *kt);

/* The type of that name and kind (BTF_KIND_…). Its number, or 0. */
uint32_t kernel_types__find(const struct kernel_types *kt, const char *name, uint32_t kind);

/* How many there are, with the first one, 0, which is void. */
uint32_t kernel_types__cnt(const struct kernel_types *kt);

/* By number; NULL: there is none. */
const struct btf_type *kernel_types__type(const struct kernel_types *kt, uint32_t id);

/* By what types and their members have as their name; "" where there is none. */
const char *kernel_types__name(const struct kernel_types *kt, uint32_t name_off);

/* For who looks for many: what types whose names are equal have in common, and hardly any others. */
uint32_t kernel_types__key(const struct kernel_types *kt, uint32_t id);
uint32_t kernel_types__key_of(const char *name);

/* Bytes behind the type's head; -1: of a kind that is not known, which none of kernel_types is. */
int64_t kernel_types__tail(const struct btf_type *t);

/* What a program of that kind is loaded for: a function (BPF_TRACE_FENTRY, BPF_TRACE_FEXIT), a
 * tracepoint (BPF_TRACE_RAW_TP), or an iterator (BPF_TRACE_ITER). The type's number, or 0. */
uint32_t kernel_types__target(const struct kernel_types *kt, const char *name,
			      enum bpf_attach_type type);

#endif
