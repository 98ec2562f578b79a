// SPDX-License-Identifier: BSD-2-Clause
/* Keeps the last lines of the last two files that went by. */
#include "target/beside.h"

#include <string.h>

void beside__init(struct beside *b)
{
	memset(b->lines, 0, sizeof(b->lines));
	b->next_path = 0;
	b->memory = false;
}

static bool same_file(const struct proc_maps_line *a, const struct proc_maps_line *b)
{
	return a->file.ino == b->file.ino && a->file.maj == b->file.maj &&
	       a->file.min == b->file.min;
}

static void keep(struct beside *b, const struct proc_maps_line *line)
{
	char *path = b->lines[0].file.path;

	/* most lines are of the file of the line before them */
	if (!b->lines[0].end || !same_file(&b->lines[0], line)) {
		b->lines[1] = b->lines[0];
		path = b->paths[b->next_path];
		b->next_path = !b->next_path;
		/* a path that nobody can open by: as if the file were not there */
		if (strlen(line->file.path) >= PATH_MAX) {
			b->lines[0] = (struct proc_maps_line){};
			return;
		}
		strcpy(path, line->file.path);
	}
	b->lines[0] = *line;
	b->lines[0].file.path = path;
}

void beside__take(struct beside *b, const struct proc_maps_line *line, struct beside_found *ret)
{
	const struct proc_maps_line *before = &b->lines[0], *below = &b->lines[1];
	bool memory = proc_file_is_memory(&line->file);

	*ret = (struct beside_found){};
	if (memory && line->exec) {
		b->memory = true;
		ret->file = before->end ? before : NULL;
	}
	if (memory || line->file.kind != PROC_FILE_REGULAR)
		return;
	if (below->end && before->exec && same_file(below, line) && !same_file(before, line))
		ret->doubtful = before->start;
	if (b->memory || ret->doubtful)
		ret->file = line;
	b->memory = false;
	keep(b, line);
}
