// SPDX-License-Identifier: BSD-2-Clause
#include "target/process_context.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/deleted.h"
#include "base/util.h"
#include "process_context.pb-c.h"
#include "target/proc_maps.h"

#define SIGNATURE "OTEL_CTX"
#define VERSION 2
#define TRIES 3
#define MAX_MAPS (2U << 20) /* bytes that are read */

struct header {
	char signature[8]; /* SIGNATURE, without a NUL */
	uint32_t version;
	uint32_t payload_sz;
	uint64_t published_ns; /* CLOCK_BOOTTIME; 0: it is being changed */
	uint64_t payload;      /* address */
};
_Static_assert(sizeof(struct header) == 32, "header");

/* ---- where it is ---- */

static bool is_context(const struct proc_maps_line *line)
{
	static const char *const names[] = { "[anon_shmem:OTEL_CTX]", "[anon:OTEL_CTX]",
					     "/memfd:OTEL_CTX" };
	const char *path = line->file.path;

	for (size_t i = 0; !line->exec && i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]);

		/* a memfd has never had another name: the kernel takes it for deleted */
		if (!strncmp(path, names[i], len) && deleted_path_length(path, strlen(path)) == len)
			return true;
	}
	return false;
}

int process_context_find(const char *proc_dir, uint32_t tgid,
			 uint64_t ret[static PROCESS_CONTEXT_PLACES], size_t *ret_sz)
{
	struct proc_maps_reader r;
	struct proc_maps_line line;
	int cnt = 0, err = proc_maps_open(&r, proc_dir, tgid, 0, MAX_MAPS);

	*ret_sz = r.sz;
	if (err)
		return err;
	while (cnt < PROCESS_CONTEXT_PLACES && proc_maps_next(&r, &line))
		if (is_context(&line))
			ret[cnt++] = line.start;
	proc_maps_close(&r);
	return cnt;
}

/* ---- reading it ---- */

static int read_once(int (*read)(void *ctx, uint64_t addr, void *buf, size_t sz), void *ctx,
		     uint64_t addr, void *buf, size_t *ret_sz)
{
	struct header before, after;
	int err = read(ctx, addr, &before, sizeof(before)), payload_err;

	if (err)
		return err;
	if (memcmp(before.signature, SIGNATURE, sizeof(before.signature)) ||
	    before.version != VERSION)
		return -EBADMSG;
	if (!before.published_ns)
		return -EAGAIN;
	payload_err = -EBADMSG;
	if (before.payload_sz && before.payload_sz <= PROCESS_CONTEXT_MAX)
		payload_err = read(ctx, before.payload, buf, before.payload_sz);
	/* what was wrong may have been right before it changed, and be right now */
	err = read(ctx, addr, &after, sizeof(after));
	if (err)
		return err;
	if (memcmp(&before, &after, sizeof(before)))
		return -EAGAIN;
	*ret_sz = before.payload_sz;
	return payload_err;
}

int process_context_read(int (*read)(void *ctx, uint64_t addr, void *buf, size_t sz), void *ctx,
			 uint64_t addr, void *buf, size_t *ret_sz)
{
	int err = -EAGAIN;

	for (int i = 0; err == -EAGAIN && i < TRIES; i++)
		err = read_once(read, ctx, addr, buf, ret_sz);
	return err;
}

/* ---- what it says ---- */

int process_context_parse(const void *data, size_t sz, struct said *ret)
{
	Otel__ProcessContext *m = otel__process_context__unpack(NULL, sz, data);
	const Otel__Resource *resource = m ? m->resource : NULL;

	*ret = (struct said){ 0 };
	if (!m)
		return -EBADMSG;
	for (size_t i = 0; resource && i < resource->n_attributes; i++) {
		const Otel__KeyValue *a = resource->attributes[i];
		enum said_fact fact = said_fact_of(a->key, strlen(a->key));

		if (fact != SAID_FACTS && a->value)
			said__put(ret, fact, a->value->string_value,
				  strlen(a->value->string_value));
	}
	otel__process_context__free_unpacked(m, NULL);
	if (!*ret->text[SAID_SERVICE])
		*ret = (struct said){ 0 };
	return 0;
}
