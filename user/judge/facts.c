// SPDX-License-Identifier: BSD-2-Clause
#include "judge/facts.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "profile/profile.h"

static int read_number(const char *text, uint64_t min, uint64_t *ret)
{
	if (*ret != FACTS_NONE || util_parse_u64(text, min, FACTS_NONE - 1, ret))
		return -EBADMSG;
	return 0;
}

static int read_text(const char *text, char ret[FACTS_TEXT_SZ])
{
	if (*ret || strlen(text) >= FACTS_TEXT_SZ)
		return -EBADMSG;
	strcpy(ret, text);
	return 0;
}

int facts_read(const struct profile *p, struct run_facts *ret, const char **ret_key)
{
	const struct {
		const char *key;
		char *text;
		uint64_t *number, min;
	} keys[] = {
		{ FACTS_RUN, ret->run, NULL, 0 },      { FACTS_MACHINE, ret->machine, NULL, 0 },
		{ FACTS_BLOCK, NULL, &ret->block, 0 }, { FACTS_SLOT, NULL, &ret->slot, 0 },
		{ FACTS_SEED, NULL, &ret->seed, 0 },   { FACTS_OPS, NULL, &ret->ops, 1 },
		{ FACTS_CPU, NULL, &ret->cpu_ns, 1 },  { FACTS_WALL, NULL, &ret->wall_ns, 1 },
	};

	*ret = (struct run_facts){ .block = FACTS_NONE,
				   .slot = FACTS_NONE,
				   .seed = FACTS_NONE,
				   .ops = FACTS_NONE,
				   .cpu_ns = FACTS_NONE,
				   .wall_ns = FACTS_NONE };
	for (size_t i = 0; i < p->comment_cnt; i++) {
		const char *line = strtab__get(p->strings, p->comments[i]);

		for (size_t k = 0; k < ARRAY_SIZE(keys); k++) {
			size_t sz = strlen(keys[k].key);
			int err;

			if (strncmp(line, keys[k].key, sz) || line[sz] != '=')
				continue;
			err = keys[k].text ?
				      read_text(line + sz + 1, keys[k].text) :
				      read_number(line + sz + 1, keys[k].min, keys[k].number);
			if (err) {
				*ret_key = keys[k].key;
				return err;
			}
		}
	}
	return 0;
}
