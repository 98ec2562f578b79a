// SPDX-License-Identifier: BSD-2-Clause
/* What processes have mapped, each kept once. */
#include "target/proc_file.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"

struct file_entry {
	struct proc_file f;
	uint32_t refs;
	bool old; /* it was written over: what is mapped from now on has another number */
	char path[];
};

struct proc_files {
	struct file_entry **entries; /* NULL: there is none of this number */
	size_t end, cap;
	uint32_t *unused; /* numbers */
	size_t unused_cnt, unused_cap;
	proc_files_rewritten_fn *rewritten;
	void *rewritten_ctx;
	/* numbers of those that are not old, by what makes two files the same: programs choose it */
	struct hash numbers;
};

struct proc_files *proc_files__new(void)
{
	struct proc_files *fs = calloc(1, sizeof(*fs));

	if (fs)
		hash__init(&fs->numbers, sizeof(uint32_t), 0, HASH_MAX);
	return fs;
}

void proc_files__on_rewritten(struct proc_files *fs, proc_files_rewritten_fn *ask, void *ctx)
{
	fs->rewritten = ask;
	fs->rewritten_ctx = ctx;
}

void proc_files__free(struct proc_files *fs)
{
	if (!fs)
		return;
	for (size_t i = 0; i < fs->end; i++)
		free(fs->entries[i]);
	hash__done(&fs->numbers);
	free(fs->entries);
	free(fs->unused);
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

/* Two versions have two build ids, or it has to be asked. */
static bool is_old(const struct proc_files *fs, uint32_t file)
{
	struct file_entry *e = fs->entries[file];

	if (!e->f.build_id_sz && fs->rewritten)
		e->old = fs->rewritten(fs->rewritten_ctx, file);
	return e->old;
}

static uint64_t hash_of(const struct proc_files *fs, const struct proc_file *f, size_t path_len)
{
	const uint64_t words[] = { f->ino, (uint64_t)f->maj << 32 | f->min,
				   (uint64_t)f->kind << 8 | f->build_id_sz };
	uint64_t hash = util_hash(words, sizeof(words), fs->numbers.seed);

	hash = util_hash(f->build_id, f->build_id_sz, hash);
	return util_hash(f->path, path_len, hash);
}

/* With room to note that it is unused again; PROC_FILE_NONE: out of memory. */
static uint32_t take_number(struct proc_files *fs)
{
	if (fs->unused_cnt)
		return fs->unused[--fs->unused_cnt];
	if (fs->end >= PROC_FILE_NONE ||
	    util_reserve(&fs->entries, &fs->cap, fs->end + 1, sizeof(*fs->entries)) ||
	    util_reserve(&fs->unused, &fs->unused_cap, fs->end + 1, sizeof(*fs->unused)))
		return PROC_FILE_NONE;
	return (uint32_t)fs->end++;
}

uint32_t proc_files__add(struct proc_files *fs, const struct proc_file *f)
{
	size_t len = strlen(f->path);
	uint64_t hash = hash_of(fs, f, len);
	uint32_t *number = hash__first(&fs->numbers, hash), ret;
	struct file_entry *e;

	while (number && !same_file(&fs->entries[*number]->f, f))
		number = hash__next(&fs->numbers, number);
	if (number && !is_old(fs, *number))
		return *number;
	if (number)
		hash__remove(&fs->numbers, number);
	e = malloc(sizeof(*e) + len + 1);
	number = e ? hash__add(&fs->numbers, hash) : NULL;
	ret = number ? take_number(fs) : PROC_FILE_NONE;
	if (ret == PROC_FILE_NONE) {
		if (number)
			hash__remove(&fs->numbers, number);
		free(e);
		return ret;
	}
	e->f = *f;
	e->refs = 0;
	e->old = false;
	memcpy(e->path, f->path, len + 1);
	e->f.path = e->path;
	fs->entries[ret] = e;
	*number = ret;
	return ret;
}

const struct proc_file *proc_files__get(const struct proc_files *fs, uint32_t file)
{
	return &fs->entries[file]->f;
}

void proc_files__ref(struct proc_files *fs, uint32_t file)
{
	fs->entries[file]->refs++;
}

void proc_files__unref(struct proc_files *fs, uint32_t file)
{
	fs->entries[file]->refs--;
}

size_t proc_files__end(const struct proc_files *fs)
{
	return fs->end;
}

size_t proc_files__cnt(const struct proc_files *fs)
{
	return fs->end - fs->unused_cnt;
}

bool proc_files__is_free_of_refs(const struct proc_files *fs, uint32_t file)
{
	return fs->entries[file] && !fs->entries[file]->refs;
}

void proc_files__remove(struct proc_files *fs, uint32_t file)
{
	struct file_entry *e = fs->entries[file];
	uint32_t *number = NULL;

	if (!e->old)
		number = hash__first(&fs->numbers, hash_of(fs, &e->f, strlen(e->path)));
	while (number && *number != file)
		number = hash__next(&fs->numbers, number);
	if (number)
		hash__remove(&fs->numbers, number);
	free(e);
	fs->entries[file] = NULL;
	fs->unused[fs->unused_cnt++] = file;
}
