/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that processes map, for those who put probes into them: which have news, and the file
 * behind a mapping, for certain.
 */
#ifndef CAPTURE_MAPPED_FILES_H
#define CAPTURE_MAPPED_FILES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct code;
struct mapped_files;
struct objects;
struct proc_map;
struct procs;

enum mapped_files_news {
	MAPPED_FILES_SAME, /* as when it was looked at last */
	MAPPED_FILES_OTHER, /* it maps other files than then, or one may answer that did not: objects__unanswered */
	MAPPED_FILES_FIRST, /* it, or the program that it runs, has not been looked at yet */
};

/* Borrows all. NULL with errno. */
struct mapped_files *mapped_files__new(struct procs *procs, struct objects *objects,
				       struct code *code);
void mapped_files__free(struct mapped_files *m);

/* What is new of a process, by its number in procs. 0 or -ENOMEM. */
int mapped_files__look(struct mapped_files *m, uint32_t proc, enum mapped_files_news *ret);
/* Has it been looked at since the program that it ran has ended? */
bool mapped_files__has_looked_back(const struct mapped_files *m, uint32_t proc);
/* Of one that is looked at anew, if it comes back. */
void mapped_files__forget(struct mapped_files *m, uint32_t tgid);

/* The object of a mapping in which probes would be hit, or OBJECTS_NONE. */
uint32_t mapped_files__object(struct mapped_files *m, uint32_t proc, const struct proc_map *map);
/* The file of a mapping, O_PATH, if it is that object; the caller closes it. -1: it is not. */
int mapped_files__open(struct mapped_files *m, uint32_t proc, const struct proc_map *map,
		       uint32_t object);

#endif
