// SPDX-License-Identifier: BSD-2-Clause
#include "serve/custom_found.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "serve/recordings.h"
#include "target/proc_text.h"
#include "target/process_files.h"

#define MAX_MAPS (16U << 20) /* bytes of /proc/PID/maps; one with more is looked at each time */

/* Of the lines that are of code: "55d0c0a00000-55d0c0a01000 r-xp ..." */
static uint64_t hash_maps(char *text)
{
	uint64_t hash = 0;
	char *save;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *rights = strchr(line, ' ');

		if (rights && strlen(rights) > 3 && rights[3] == 'x')
			hash = util_hash(line, strlen(line), hash);
	}
	return hash;
}

/* 0: it is not known. */
static uint64_t maps_of(uint32_t pid)
{
	char path[64], *text;
	uint64_t ret;
	size_t sz;

	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	if (proc_text_read(path, MAX_MAPS, &text, &sz))
		return 0;
	ret = hash_maps(text);
	free(text);
	return ret;
}

static void meanwhile(void *ctx)
{
	recordings__meanwhile(ctx);
}

int custom_found__look(struct custom_found *f, struct recordings *r, uint32_t pid)
{
	struct process_files files;
	uint64_t maps = maps_of(pid);
	int err;

	if (pid == f->pid && maps && maps == f->maps)
		return 0;
	*f = (struct custom_found){ .pid = pid, .maps = maps };
	r->took_long = true;
	err = process_files__open(pid, meanwhile, r, &files);
	for (size_t i = 0; !err && i < files.cnt; i++)
		custom_names__add(&f->names, files.objects, files.ids[i]);
	process_files__close(&files);
	custom_names__sort(&f->names);
	if (err)
		*f = (struct custom_found){ 0 };
	return err;
}
