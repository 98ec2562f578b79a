/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/fetched.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"

static struct fetched_file *find(const struct fetched_files *f, const uint8_t *id, size_t id_sz)
{
	for (size_t i = 0; i < f->cnt; i++)
		if (f->v[i].id_sz == id_sz && !memcmp(f->v[i].id, id, id_sz))
			return &f->v[i];
	return NULL;
}

int fetched__add(struct fetched_files *f, const uint8_t *id, size_t id_sz, int fd)
{
	struct fetched_file *file;

	if (find(f, id, id_sz)) {
		close(fd);
		return 0;
	}
	if (util_reserve(&f->v, &f->cap, f->cnt + 1, sizeof(*f->v))) {
		close(fd);
		return -ENOMEM;
	}
	file = &f->v[f->cnt++];
	*file = (struct fetched_file){ .id_sz = id_sz, .fd = fd };
	memcpy(file->id, id, id_sz);
	return 0;
}

int fetched__find(const struct fetched_files *f, const uint8_t *id, size_t id_sz)
{
	const struct fetched_file *file = find(f, id, id_sz);

	return file ? file->fd : -1;
}

void fetched__remove(struct fetched_files *f, const uint8_t *id, size_t id_sz)
{
	struct fetched_file *file = find(f, id, id_sz);

	if (!file)
		return;
	close(file->fd);
	*file = f->v[--f->cnt];
}

void fetched__done(struct fetched_files *f)
{
	for (size_t i = 0; i < f->cnt; i++)
		close(f->v[i].fd);
	free(f->v);
	*f = (struct fetched_files){ 0 };
}
