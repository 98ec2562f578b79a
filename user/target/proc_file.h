/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What processes have mapped: files, and memory by the names that the kernel gives it. Each is kept
 * once, by number, for all processes that map the same. A number is used again after
 * proc_files__remove.
 */
#ifndef TARGET_PROC_FILE_H
#define TARGET_PROC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROC_FILE_NONE UINT32_MAX

enum proc_file_kind {
	PROC_FILE_REGULAR, /* has a path and, if it still exists, contents */
	PROC_FILE_VDSO,
	PROC_FILE_ANON, /* memory: JIT code */
};

struct proc_file {
	enum proc_file_kind kind;
	char *path; /* raw bytes as the kernel gave them */
	uint32_t maj, min;
	uint64_t ino; /* 0: unknown */
	uint8_t build_id[20];
	uint8_t build_id_sz; /* 0: unknown */
};

/* Is it memory by its kind, or by the name that the kernel gives memory that programs share? */
bool proc_file_is_memory(const struct proc_file *f);

struct proc_files;

/* NULL with errno. */
struct proc_files *proc_files__new(void);
void proc_files__free(struct proc_files *fs);

/*
 * Asked for a file without a build id that is mapped once more: has it been written over since it got
 * its number? NULL: that is not known. It must not use the files.
 */
typedef bool proc_files_rewritten_fn(void *ctx, uint32_t file);
void proc_files__on_rewritten(struct proc_files *fs, proc_files_rewritten_fn *ask, void *ctx);

/* The number of the file, whose path is copied if it is new, or was written over. PROC_FILE_NONE: out of
 * memory. */
uint32_t proc_files__add(struct proc_files *fs, const struct proc_file *f);
/* Stays until it is removed. */
const struct proc_file *proc_files__get(const struct proc_files *fs, uint32_t file);

/* For whoever keeps the number, beside address spaces. */
void proc_files__ref(struct proc_files *fs, uint32_t file);
void proc_files__unref(struct proc_files *fs, uint32_t file);

/* Numbers are below this. */
size_t proc_files__end(const struct proc_files *fs);
/* Files that there are. */
size_t proc_files__cnt(const struct proc_files *fs);

/* Is there one of this number to which nobody refers by proc_files__ref? */
bool proc_files__is_free_of_refs(const struct proc_files *fs, uint32_t file);
void proc_files__remove(struct proc_files *fs, uint32_t file);

#endif
