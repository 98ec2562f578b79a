/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the mappings of the legacy formats: lines of /proc/PID/maps, or "start-end [perm] path [(@offset)] [build id]". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/deleted.h"
#include "base/sorted.h"
#include "base/util.h"
#include "profile/legacy_reader.h"

bool legacy_is_maps_head(struct legacy_text line)
{
	return legacy_take(&line, "MAPPED_LIBRARIES:") || legacy_take(&line, "--- Memory map: ---");
}

/* ---- a line ---- */

/* "r-xp", which a line need not have. */
static bool take_permissions(struct legacy_text *line, bool *ret_code)
{
	struct legacy_text in = *line, word;

	if (!legacy_take_word(&in, &word) || legacy_left(&word) < 3 || legacy_left(&word) > 4)
		return false;
	for (const char *c = word.at; c < word.end; c++)
		if (!strchr("-rwxps", *c) || !*c)
			return false;
	*ret_code = word.at[2] == 'x';
	legacy_skip_blanks(&in);
	*line = in;
	return true;
}

/* "00001000 fe:01 1234", and the path behind it. */
static bool take_kernels(struct legacy_text *line, struct legacy_map *ret)
{
	struct legacy_text in = *line;
	uint64_t offset, device;
	int64_t inode;

	if (!legacy_take_hex(&in, &offset))
		return false;
	legacy_skip_blanks(&in);
	if (!legacy_take_hex(&in, &device) || !legacy_take(&in, ":") ||
	    !legacy_take_hex(&in, &device) || !legacy_take_number(&in, &inode))
		return false;
	legacy_skip_blanks(&in);
	in.end = in.at + deleted_path_length(in.at, (size_t)(in.end - in.at));
	ret->offset = offset;
	ret->path = in;
	*line = in;
	return true;
}

/* "path (@1000) build id". */
static bool take_brief(struct legacy_text *line, struct legacy_map *ret)
{
	struct legacy_text word;
	bool parens;

	if (!legacy_take_word(line, &ret->path))
		return false;
	legacy_skip_blanks(line);
	parens = legacy_take(line, "(@");
	if (parens || legacy_take(line, "@")) {
		if (!legacy_take_hex(line, &ret->offset) || (parens && !legacy_take(line, ")")))
			return false;
		legacy_skip_blanks(line);
	}
	word = *line;
	for (const char *c = word.at; c < word.end; c++)
		if (!(*c >= '0' && *c <= '9') && !(*c >= 'a' && *c <= 'f'))
			return false;
	ret->build_id = word;
	return true;
}

/* Of code: others are none that an address of a stack is in. */
static bool take_map(struct legacy_text line, struct legacy_map *ret)
{
	bool code = true;

	*ret = (struct legacy_map){ .path = { line.end, line.end } };
	ret->build_id = ret->path;
	if (!legacy_take_hex(&line, &ret->start) || !legacy_take(&line, "-") ||
	    !legacy_take_hex(&line, &ret->limit) || ret->limit <= ret->start)
		return false;
	legacy_skip_blanks(&line);
	if (take_permissions(&line, &code) && !code)
		return false;
	return take_kernels(&line, ret) || take_brief(&line, ret);
}

/* ---- all of them ---- */

static int compare_maps(const void *pa, const void *pb)
{
	const struct legacy_map *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

int legacy_read_maps(struct legacy_reader *r, struct legacy_text in)
{
	struct legacy_text line;
	struct legacy_map map;
	int err;

	while (legacy_line(&in, &line)) {
		if (!take_map(line, &map))
			continue;
		/* a path that is cut would be that of another object */
		if (in.at[-1] != '\n')
			return -EBADMSG;
		err = legacy_spend(r, sizeof(struct profile_mapping) + sizeof(map) + 4 * LEGACY_INDEX_COST + 2 * legacy_left(&map.path)) ?:
			      util_reserve(&r->maps, &r->map_cap, r->map_cnt + 1, sizeof(*r->maps));
		if (err)
			return err;
		map.order = (uint32_t)r->map_cnt;
		r->maps[r->map_cnt++] = map;
	}
	if (r->map_cnt)
		qsort(r->maps, r->map_cnt, sizeof(*r->maps), compare_maps);
	return 0;
}

int legacy_find_maps(struct legacy_reader *r)
{
	struct legacy_text in = r->in, line;

	while (legacy_line(&in, &line))
		if (legacy_is_maps_head(line))
			return legacy_read_maps(r, in);
	return 0;
}

/* "libc.so.6", "libm-2.31.so" */
static bool is_library(const struct legacy_text *path)
{
	static const char so[] = ".so";
	const char *at = path->at, *end;

	while ((at = memmem(at, (size_t)(path->end - at), so, strlen(so)))) {
		end = at + strlen(so);
		if (end == path->end || *end == '.' || *end == '_')
			return true;
		at = end;
	}
	return false;
}

/* Readers take the first mapping for the program's. NULL: there is none. */
static struct legacy_map *program_of(const struct legacy_reader *r)
{
	struct legacy_map *ret = NULL;

	for (size_t i = 0; i < r->map_cnt; i++) {
		struct legacy_map *m = &r->maps[i];

		if (legacy_left(&m->path) && *m->path.at != '[' && !is_library(&m->path) &&
		    (!ret || m->order < ret->order))
			ret = m;
	}
	return ret;
}

static int add_map(struct legacy_reader *r, struct legacy_map *m)
{
	struct profile_mapping to = { .start = m->start, .limit = m->limit, .offset = m->offset };

	to.filename = legacy_string(r, &m->path);
	to.build_id = legacy_string(r, &m->build_id);
	if (to.filename == PROFILE_NONE || to.build_id == PROFILE_NONE)
		return -ENOMEM;
	m->mapping = profile__add_mapping(r->out, &to);
	return m->mapping == PROFILE_NONE ? -ENOMEM : 0;
}

int legacy_add_maps(struct legacy_reader *r)
{
	struct legacy_map *program = program_of(r), named = { .path = r->program };
	int err = 0;

	/* no range of it is known */
	if (!r->map_cnt && legacy_left(&r->program))
		program = &named;
	if (program)
		err = add_map(r, program);

	for (size_t i = 0; !err && i < r->map_cnt; i++)
		err = add_map(r, &r->maps[i]);
	return err;
}

uint32_t legacy_map_at(const struct legacy_reader *r, uint64_t address)
{
	/* the last one that begins at the address or before */
	size_t cnt = SORTED_UPPER_BOUND(r->maps, r->map_cnt, start, address);

	return cnt && address < r->maps[cnt - 1].limit ? r->maps[cnt - 1].mapping : PROFILE_NONE;
}
