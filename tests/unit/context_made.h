/* SPDX-License-Identifier: BSD-2-Clause */
/* Process contexts (OTEP 4719), as those who publish them make them: written down by the specification,
 * not by what reads them. */
#ifndef TESTS_CONTEXT_MADE_H
#define TESTS_CONTEXT_MADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

struct context_header {
	char signature[8];
	uint32_t version, payload_sz;
	uint64_t published_ns, payload;
};

/* ---- messages: fields that have a length (protobuf.dev, "Encoding") ---- */

struct context_bytes {
	size_t sz;
	uint8_t data[80000];
};

static inline void context_varint(struct context_bytes *to, uint64_t v)
{
	for (; v > 127; v >>= 7)
		to->data[to->sz++] = (uint8_t)(v | 128);
	to->data[to->sz++] = (uint8_t)v;
}

static inline void context_field(struct context_bytes *to, unsigned int number, const void *data,
				 size_t sz)
{
	context_varint(to, number << 3 | 2);
	context_varint(to, sz);
	memcpy(to->data + to->sz, data, sz);
	to->sz += sz;
}

/* An attribute, to a resource. */
static inline void context_attribute(struct context_bytes *resource, const char *key,
				     const char *text)
{
	static struct context_bytes value, attribute;

	value.sz = attribute.sz = 0;
	context_field(&value, 1, text, strlen(text));
	context_field(&attribute, 1, key, strlen(key));
	context_field(&attribute, 2, value.data, value.sz);
	context_field(resource, 1, attribute.data, attribute.sz);
}

/* The message of a resource that has the name of a service. */
static inline void context_message(struct context_bytes *to, const char *service)
{
	static struct context_bytes resource;

	resource.sz = to->sz = 0;
	context_attribute(&resource, "telemetry.sdk.language", "c");
	context_attribute(&resource, "service.name", service);
	context_field(to, 1, resource.data, resource.sz);
}

/* ---- mappings ---- */

/* Of a page, as memfd or anonymous memory. *ret_named: the kernel names mappings. */
static inline struct context_header *context_map(bool memfd, bool *ret_named)
{
	int fd = memfd ? memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
	void *at;

	if (memfd && (fd < 0 || ftruncate(fd, sizeof(struct context_header))))
		return NULL;
	at = mmap(NULL, sizeof(struct context_header), PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | (memfd ? 0 : MAP_ANONYMOUS), fd, 0);
	if (fd >= 0)
		close(fd);
	if (at == MAP_FAILED || madvise(at, sizeof(struct context_header), MADV_DONTFORK))
		return NULL;
	*ret_named = !prctl(PR_SET_VMA, PR_SET_VMA_ANON_NAME, at, sizeof(struct context_header),
			    "OTEL_CTX");
	return at;
}

static inline void context_publish(struct context_header *h, const void *payload, size_t sz,
				   uint64_t time_ns)
{
	__atomic_store_n(&h->published_ns, 0, __ATOMIC_SEQ_CST);
	memcpy(h->signature, "OTEL_CTX", sizeof(h->signature));
	h->version = 2;
	h->payload_sz = (uint32_t)sz;
	h->payload = (uintptr_t)payload;
	__atomic_store_n(&h->published_ns, time_ns, __ATOMIC_SEQ_CST);
}

#endif
