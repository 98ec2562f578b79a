// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/kernel_types.h"

#include <bpf/btf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"

#define FILE_MAX (64U << 20)
#define KEY_BYTES 8

struct kernel_types {
	const char *types, *strings;
	uint32_t types_sz, strings_sz;
	uint32_t cnt;	/* with type 0, which is void */
	uint32_t *offs; /* by number, of what begins at types */
	uint32_t *keys; /* by number: see key_of */
};

/* ---- reading ---- */

int64_t kernel_types__tail(const struct btf_type *t)
{
	switch (btf_kind(t)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return 0;
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return btf_vlen(t) * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return btf_vlen(t) * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return btf_vlen(t) * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return btf_vlen(t) * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return btf_vlen(t) * sizeof(struct btf_var_secinfo);
	}
	return -1;
}

/* Of the first bytes of a name, of which `readable` may be read: most names differ there, and those
 * that do not are compared. */
static uint32_t key_of(const char *name, size_t readable)
{
	uint64_t word = 0, ends;

	memcpy(&word, name, MIN(readable, KEY_BYTES));
	/* the lowest byte that is 0, and what is behind it */
	ends = (word - 0x0101010101010101U) & ~word & 0x8080808080808080U;
	if (ends)
		word &= (ends & -ends) - 1;
	return (uint32_t)((word * 0x9e3779b97f4a7c15U) >> 32);
}

const char *kernel_types__name(const struct kernel_types *kt, uint32_t name_off)
{
	return name_off < kt->strings_sz ? kt->strings + name_off : "";
}

static uint32_t key_at(const struct kernel_types *kt, uint32_t name_off)
{
	return name_off < kt->strings_sz ?
		       key_of(kt->strings + name_off, kt->strings_sz - name_off) :
		       key_of("", 1);
}

uint32_t kernel_types__cnt(const struct kernel_types *kt)
{
	return kt->cnt;
}

uint32_t kernel_types__key(const struct kernel_types *kt, uint32_t id)
{
	return kt->keys[id];
}

uint32_t kernel_types__key_of(const char *name)
{
	return key_of(name, strlen(name) + 1);
}

const struct btf_type *kernel_types__type(const struct kernel_types *kt, uint32_t id)
{
	return id && id < kt->cnt ? (const void *)(kt->types + kt->offs[id]) : NULL;
}

/* Notes where each type begins. */
static int index_types(struct kernel_types *kt)
{
	size_t most = kt->types_sz / sizeof(struct btf_type) + 1;
	uint32_t off = 0;

	kt->offs = malloc(most * sizeof(*kt->offs));
	kt->keys = malloc(most * sizeof(*kt->keys));
	if (!kt->offs || !kt->keys)
		return -ENOMEM;
	for (kt->cnt = 1; off < kt->types_sz; kt->cnt++) {
		const struct btf_type *t = (const void *)(kt->types + off);
		int64_t left = kt->types_sz - off - (int64_t)sizeof(*t);
		int64_t tail = left < 0 ? -1 : kernel_types__tail(t);

		if (tail < 0 || tail > left)
			return -EINVAL;
		kt->offs[kt->cnt] = off;
		kt->keys[kt->cnt] = key_at(kt, t->name_off);
		off += sizeof(*t) + tail;
	}
	return 0;
}

static bool is_inside(const struct btf_header *h, size_t sz, uint32_t off, uint32_t len)
{
	return (uint64_t)h->hdr_len + off + len <= sz && off % 4 == 0;
}

struct kernel_types *kernel_types__parse(const void *data, size_t sz)
{
	const struct btf_header *h = data;
	struct kernel_types *kt;
	int err = -EINVAL;

	kt = calloc(1, sizeof(*kt));
	if (!kt)
		return NULL;
	if (sz < sizeof(*h) || h->magic != BTF_MAGIC || h->hdr_len < sizeof(*h) || h->hdr_len % 4 ||
	    !is_inside(h, sz, h->type_off, h->type_len) ||
	    !is_inside(h, sz, h->str_off, h->str_len))
		goto fail;
	kt->types = (const char *)data + h->hdr_len + h->type_off;
	kt->types_sz = h->type_len;
	kt->strings = (const char *)data + h->hdr_len + h->str_off;
	kt->strings_sz = h->str_len;
	if (!kt->strings_sz || kt->strings[kt->strings_sz - 1])
		goto fail;
	err = index_types(kt);
	if (!err)
		return kt;
fail:
	kernel_types__free(kt);
	errno = -err;
	return NULL;
}

void kernel_types__free(struct kernel_types *kt)
{
	if (!kt)
		return;
	free(kt->offs);
	free(kt->keys);
	free(kt);
}

/* ---- those of this kernel ---- */

static struct {
	struct kernel_types *kt;
	void *mapped; /* from 6.16 on; else they are read */
	char *read;
	size_t sz;
} ours;

static int load_ours(void)
{
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
	struct stat st;
	int err = 0;

	if (fd < 0 || fstat(fd, &st)) {
		err = -errno;
	} else {
		ours.sz = st.st_size;
		ours.mapped = mmap(NULL, ours.sz, PROT_READ, MAP_PRIVATE, fd, 0);
		if (ours.mapped == MAP_FAILED) {
			ours.mapped = NULL;
			err = util_read_fd(fd, FILE_MAX, &ours.read, &ours.sz);
		}
	}
	if (fd >= 0)
		close(fd);
	return err;
}

const struct kernel_types *kernel_types__get(void)
{
	int err;

	if (ours.kt)
		return ours.kt;
	err = load_ours();
	if (!err) {
		ours.kt = kernel_types__parse(ours.mapped ? ours.mapped : ours.read, ours.sz);
		err = ours.kt ? 0 : -errno;
	}
	if (err)
		kernel_types__drop();
	errno = -err;
	return ours.kt;
}

void kernel_types__drop(void)
{
	kernel_types__free(ours.kt);
	if (ours.mapped)
		munmap(ours.mapped, ours.sz);
	free(ours.read);
	memset(&ours, 0, sizeof(ours));
}

/* ---- by name ---- */

uint32_t kernel_types__find(const struct kernel_types *kt, const char *name, uint32_t kind)
{
	uint32_t key = kernel_types__key_of(name);

	for (uint32_t id = 1; id < kt->cnt; id++) {
		const struct btf_type *t;

		if (kt->keys[id] != key)
			continue;
		t = kernel_types__type(kt, id);
		if (btf_kind(t) == kind && !strcmp(kernel_types__name(kt, t->name_off), name))
			return id;
	}
	return 0;
}

uint32_t kernel_types__target(const struct kernel_types *kt, const char *name,
			      enum bpf_attach_type type)
{
	const char *before = type == BPF_TRACE_RAW_TP ? "btf_trace_" :
			     type == BPF_TRACE_ITER   ? "bpf_iter_" :
							"";
	char full[256];

	if ((size_t)snprintf(full, sizeof(full), "%s%s", before, name) >= sizeof(full))
		return 0;
	return kernel_types__find(kt, full,
				  type == BPF_TRACE_RAW_TP ? BTF_KIND_TYPEDEF : BTF_KIND_FUNC);
}
