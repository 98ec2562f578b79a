// SPDX-License-Identifier: BSD-2-Clause
/* What processes have mapped, each kept once. */
#include "target/proc_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"

#define BUCKETS 4096 /* a power of two */

struct file_entry {
	struct proc_file f;
	uint32_t next; /* in its bucket */
	char path[];
};

struct proc_files {
	struct file_entry **entries;
	size_t cnt, cap;
	uint32_t buckets[BUCKETS];
};

struct proc_files *proc_files__new(void)
{
	struct proc_files *fs = calloc(1, sizeof(*fs));

	if (fs)
		memset(fs->buckets, 0xff, sizeof(fs->buckets));
	return fs;
}

void proc_files__free(struct proc_files *fs)
{
	if (!fs)
		return;
	for (size_t i = 0; i < fs->cnt; i++)
		free(fs->entries[i]);
	free(fs->entries);
	free(fs);
}

bool proc_file_is_memory(const struct proc_file *f)
{
	static const char *const begins[] = { "/memfd:", "/dev/zero", "/anon_hugepage", "/SYSV" };

	if (f->kind != PROC_FILE_REGULAR)
		return f->kind == PROC_FILE_ANON;
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (!strncmp(f->path, begins[i], strlen(begins[i])))
			return true;
	return false;
}

static bool same_file(const struct proc_file *a, const struct proc_file *b)
{
	return a->kind == b->kind && a->ino == b->ino && a->maj == b->maj && a->min == b->min &&
	       a->build_id_sz == b->build_id_sz &&
	       !memcmp(a->build_id, b->build_id, a->build_id_sz) && !strcmp(a->path, b->path);
}

uint32_t proc_files__add(struct proc_files *fs, const struct proc_file *f)
{
	size_t len = strlen(f->path);
	uint32_t *bucket = &fs->buckets[util_hash(f->path, len, f->ino ^ f->build_id_sz) % BUCKETS];
	struct file_entry *e;

	for (uint32_t i = *bucket; i != PROC_FILE_NONE; i = fs->entries[i]->next)
		if (same_file(&fs->entries[i]->f, f))
			return i;
	if (util_reserve(&fs->entries, &fs->cap, fs->cnt + 1, sizeof(*fs->entries)))
		return PROC_FILE_NONE;
	e = malloc(sizeof(*e) + len + 1);
	if (!e)
		return PROC_FILE_NONE;
	e->f = *f;
	memcpy(e->path, f->path, len + 1);
	e->f.path = e->path;
	e->next = *bucket;
	fs->entries[fs->cnt] = e;
	*bucket = fs->cnt;
	return fs->cnt++;
}

const struct proc_file *proc_files__get(const struct proc_files *fs, uint32_t file)
{
	return &fs->entries[file]->f;
}
