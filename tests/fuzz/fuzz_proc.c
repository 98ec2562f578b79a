/* SPDX-License-Identifier: BSD-2-Clause */
/* The text files of /proc/PID: maps and stat have the same bytes, in a folder that looks like one
 * of a process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "target/beside.h"
#include "target/proc_maps.h"
#include "tests/fuzz/parsers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz);

static char dir[] = "/tmp/bpfprof-fuzz-XXXXXX";
static int fd;

static void path_in(char path[static 64], const char *name)
{
	snprintf(path, 64, "%s/1%s", dir, name);
}

static void clean(void)
{
	static const char *const names[] = { "/maps", "/stat", "" };
	char path[64];
	size_t i;

	for (i = 0; i < 3; i++) {
		path_in(path, names[i]);
		remove(path);
	}
	remove(dir);
}

static void make_dir(void)
{
	char path[64], target[64];

	fd = memfd_create("input", MFD_CLOEXEC);
	NEED(fd >= 0 && mkdtemp(dir));
	atexit(clean);
	snprintf(target, sizeof(target), "/proc/self/fd/%d", fd);
	path_in(path, "");
	NEED(!mkdir(path, 0700));
	path_in(path, "/maps");
	NEED(!symlink(target, path));
	path_in(path, "/stat");
	NEED(!symlink(target, path));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t sz)
{
	struct beside beside;
	struct beside_found found;
	struct proc_maps_reader r;
	struct proc_maps_line line;
	uint64_t ns;

	if (!fd)
		make_dir();
	NEED(!ftruncate(fd, 0) && pwrite(fd, data, sz, 0) == (ssize_t)sz);
	NEED(!proc_maps_open(&r, dir, 1, 0, PROC_MAPS_MAX));
	beside__init(&beside);
	while (proc_maps_next(&r, &line)) {
		NEED(line.start < line.end && !(line.start >> 63));
		NEED(line.file.path && strlen(line.file.path) <= PROCS_MAX_LINE);
		beside__take(&beside, &line, &found);
		NEED(!found.file || (found.file->end > found.file->start &&
				     found.file->file.kind == PROC_FILE_REGULAR &&
				     strlen(found.file->file.path) <= PROCS_MAX_LINE));
	}
	proc_maps_close(&r);
	proc_stat_start(dir, 1, &ns);
	return 0;
}
