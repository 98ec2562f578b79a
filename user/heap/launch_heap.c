// SPDX-License-Identifier: BSD-2-Clause
/* How the heap of a command that is about to be started is sampled. */
#include "heap/launch_heap.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sanitizers.h"
#include "base/util.h"
#include "preload/loader.h"
#include "target/allocators.h"
#include "target/objects.h"

#define MAX_SCRIPTS 4 /* as user/preload/starts.c has it */
#define SCRIPT_LINE 256

const char *launch_heap_library(char *path, size_t path_sz)
{
	if (!util_find_part(LAUNCH_HEAP_LIBRARY, path, path_sz))
		return LAUNCH_HEAP_LIBRARY
			" is neither beside this program nor in ../lib/bpfprof "
			"(make, or make install)";
	if (strpbrk(path, " :"))
		return "the path of " LAUNCH_HEAP_LIBRARY
		       " has a blank or colon, at which LD_PRELOAD "
		       "is split (install it elsewhere)";
	return NULL;
}

/* Is it a script? Then path is that of its interpreter. */
static bool is_script(int fd, char path[PATH_MAX])
{
	char line[SCRIPT_LINE];
	ssize_t n = pread(fd, line, sizeof(line) - 1, 0);
	const char *s = line + 2;

	if (n < 3 || memcmp(line, "#!", 2))
		return false;
	line[n] = '\0';
	s += strspn(s, " \t");
	snprintf(path, PATH_MAX, "%.*s", (int)strcspn(s, " \t\n"), s);
	return true;
}

/* What runs in the end: not a script, but what interprets it. path: where that is. */
static int open_program(const char *argv0, char path[PATH_MAX])
{
	int fd;

	if (!util_find_program(argv0, path, PATH_MAX))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	for (int i = 0; fd >= 0 && i < MAX_SCRIPTS && is_script(fd, path); i++) {
		close(fd);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	}
	return fd;
}

static enum loader_of find_loader(int fd)
{
	struct loader own = loader_own();

	return loader_of(fd, &own);
}

static bool is_elf(int fd)
{
	unsigned char ident[EI_NIDENT];

	return pread(fd, ident, sizeof(ident), 0) == sizeof(ident) &&
	       !memcmp(ident, ELFMAG, SELFMAG);
}

/* Does the program hold an allocator of its own, which no library can stand before? */
static bool own_allocator(struct objects *objects, uint32_t object)
{
	struct allocator_points points;
	bool own = false;

	if (objects__allocators(objects, object, &points))
		return false;
	for (size_t i = 0; i < points.cnt; i++)
		own |= points.points[i].group == ALLOCATOR_ALLOC ||
		       points.points[i].group == ALLOCATOR_FREE;
	allocator_points__done(&points);
	return own;
}

static bool samples_itself(struct objects *objects, int fd, const char *path)
{
	uint32_t object;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return false;
	object = objects__add(objects, fcntl(fd, F_DUPFD_CLOEXEC, 0), path);
	return object != OBJECTS_NONE && objects__has_usdt(objects, object);
}

/* Why nothing can be preloaded into the program, or NULL. */
static const char *obstacle(struct objects *objects, int fd, const char *path)
{
	const char *others = getenv("LD_PRELOAD");
	const struct object_info *info;
	uint32_t object;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return "it cannot be read";
	if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	    (st.st_mode & S_ISGID && st.st_mode & S_IXGRP && st.st_gid != getegid()))
		return "it is setuid or setgid, which ignores LD_PRELOAD";
	if (others && sanitizers_in(others))
		return "LD_PRELOAD has the library of a sanitizer, which must be the first one";
	object = objects__add(objects, fcntl(fd, F_DUPFD_CLOEXEC, 0), path);
	/* what is none, a shell interprets */
	if (object == OBJECTS_NONE || !objects__info(objects, object)->readable)
		return is_elf(fd) ? "nothing is known of its file, which could not be read" : NULL;
	info = objects__info(objects, object);
	if (!*info->interp)
		return "it is statically linked";
	if (strncmp(info->interp, "ld-linux", 8))
		return "it uses another C library than glibc";
	if (*info->sanitizer)
		return "it is built with a sanitizer, whose library must be the first one";
	if (find_loader(fd) != LOADER_OWN)
		return "it has a glibc of its own";
	return own_allocator(objects, object) ? "it has an allocator of its own" : NULL;
}

void launch_heap(const char *argv0, uint64_t rate, struct objects *objects, struct launch_heap *ret)
{
	const char *others = getenv("LD_PRELOAD");
	enum loader_of of;
	char path[PATH_MAX];

	memset(ret, 0, sizeof(*ret));
	ret->file_fd = open_program(argv0, path);
	ret->missing = ret->file_fd < 0 && errno == ENOENT;
	if (ret->file_fd < 0) {
		ret->why = "it cannot be read";
	} else if ((of = find_loader(ret->file_fd)) == LOADER_32_BIT || of == LOADER_MACHINE) {
		/* whose allocators are not known, either */
		launch_heap__done(ret);
		ret->why = of == LOADER_32_BIT ? "it is a 32-bit program" :
						 "it is a program for another machine";
	} else {
		ret->samples_itself = samples_itself(objects, ret->file_fd, path);
		ret->why = ret->samples_itself ? "it samples by itself" :
						 obstacle(objects, ret->file_fd, path);
	}
	if (!ret->why)
		ret->why = launch_heap_library(ret->preload, sizeof(ret->preload));
	if (ret->why) {
		ret->preload[0] = '\0';
		return;
	}
	if (snprintf(ret->preload_env, sizeof(ret->preload_env), "LD_PRELOAD=%s%s%s", ret->preload,
		     others && *others ? ":" : "",
		     others ? others : "") >= (int)sizeof(ret->preload_env)) {
		ret->preload[0] = '\0';
		ret->why = "LD_PRELOAD is too long";
	}
	snprintf(ret->rate_env, sizeof(ret->rate_env), "BPFPROF_HEAP_RATE=%" PRIu64, rate);
}

void launch_heap__done(struct launch_heap *l)
{
	if (l->file_fd >= 0)
		close(l->file_fd);
	l->file_fd = -1;
}
