// SPDX-License-Identifier: BSD-2-Clause
/* Records of what a process has mapped, packed. */
#include "target/map_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define FIRST_SZ 512 /* bytes: what a program that has just been started maps fits in */
#define ALIGN 8

/* In the buffer, followed by the path and its NUL, and by what aligns the next one. */
struct packed {
	uint64_t time_ns, start, len, offset, ino;
	uint32_t maj, min;
	uint8_t build_id[20];
	uint8_t build_id_sz, kind;
	uint16_t path_len;
};

static size_t room_of(size_t path_len)
{
	return (sizeof(struct packed) + path_len + 1 + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

int map_log__put(struct map_log *l, const struct map_record *r)
{
	const struct proc_file *f = &r->file;
	size_t len = MIN(strlen(f->path), MAP_LOG_MAX_PATH), room = room_of(len);
	struct packed *p;
	int err = util_reserve(&l->buf, &l->cap, MAX(l->sz + room, FIRST_SZ), 1);

	if (err)
		return err;
	p = (struct packed *)(l->buf + l->sz);
	*p = (struct packed){ .time_ns = r->time_ns,
			      .start = r->start,
			      .len = r->len,
			      .offset = r->offset,
			      .ino = f->ino,
			      .maj = f->maj,
			      .min = f->min,
			      .build_id_sz = f->build_id_sz,
			      .kind = f->kind,
			      .path_len = len };
	memcpy(p->build_id, f->build_id, sizeof(p->build_id));
	memcpy(p + 1, f->path, len);
	memset((char *)(p + 1) + len, 0, room - sizeof(*p) - len);
	l->sz += room;
	return 0;
}

bool map_log__next(const struct map_log *l, size_t *pos, struct map_record *ret)
{
	struct packed *p;

	if (*pos >= l->sz)
		return false;
	p = (struct packed *)(l->buf + *pos);
	*ret = (struct map_record){ .time_ns = p->time_ns,
				    .start = p->start,
				    .len = p->len,
				    .offset = p->offset,
				    .file = { .kind = p->kind,
					      .path = (char *)(p + 1),
					      .maj = p->maj,
					      .min = p->min,
					      .ino = p->ino,
					      .build_id_sz = p->build_id_sz } };
	memcpy(ret->file.build_id, p->build_id, sizeof(p->build_id));
	*pos += room_of(p->path_len);
	return true;
}

int map_log__copy(struct map_log *to, const struct map_log *from)
{
	if (!from->sz)
		return 0;
	to->buf = malloc(from->sz);
	if (!to->buf)
		return -ENOMEM;
	memcpy(to->buf, from->buf, from->sz);
	to->sz = to->cap = from->sz;
	return 0;
}

void map_log__clear(struct map_log *l)
{
	free(l->buf);
	*l = (struct map_log){};
}
