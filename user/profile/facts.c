// SPDX-License-Identifier: BSD-2-Clause
#include "profile/facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "profile/profile.h"

/* A key, and where its value is: one of the two. */
struct fact {
	const char *key;
	char *text;
	uint64_t *number, min;
};

#define FACT_CNT 13

static void list_facts(struct run_facts *f, struct fact ret[FACT_CNT])
{
	const struct fact facts[FACT_CNT] = {
		{ FACTS_RUN, f->run, NULL, 0 },	      { FACTS_MACHINE, f->machine, NULL, 0 },
		{ FACTS_BLOCK, NULL, &f->block, 0 },  { FACTS_SLOT, NULL, &f->slot, 0 },
		{ FACTS_SEED, NULL, &f->seed, 0 },    { FACTS_LOOK, NULL, &f->look, 1 },
		{ FACTS_OPS, NULL, &f->ops, 1 },      { FACTS_CPU, NULL, &f->cpu_ns, 1 },
		{ FACTS_WALL, NULL, &f->wall_ns, 1 }, { FACTS_OTHERS, NULL, &f->other_ns, 0 },
		{ FACTS_SEEN, NULL, &f->seen, 0 },    { FACTS_LOST, NULL, &f->lost, 0 },
		{ FACTS_BUILD, NULL, &f->build, 1 },
	};

	memcpy(ret, facts, sizeof(facts));
}

void facts_clear(struct run_facts *f)
{
	struct fact facts[FACT_CNT];

	*f = (struct run_facts){ 0 };
	list_facts(f, facts);
	for (size_t k = 0; k < FACT_CNT; k++)
		if (facts[k].number)
			*facts[k].number = FACTS_NONE;
}

/* The value behind a key, NULL: the line is of something else. */
static const char *value_of(const char *line, const char *key)
{
	size_t sz = strlen(key);

	return strncmp(line, key, sz) || line[sz] != '=' ? NULL : line + sz + 1;
}

bool facts_is_one(const char *comment)
{
	struct run_facts f = { 0 };
	struct fact facts[FACT_CNT];

	list_facts(&f, facts);
	for (size_t k = 0; k < FACT_CNT; k++)
		if (value_of(comment, facts[k].key))
			return true;
	return false;
}

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
	struct fact facts[FACT_CNT];

	facts_clear(ret);
	list_facts(ret, facts);
	for (size_t i = 0; i < p->comment_cnt; i++) {
		const char *line = strtab__get(p->strings, p->comments[i]);

		for (size_t k = 0; k < FACT_CNT; k++) {
			const struct fact *f = &facts[k];
			const char *value = value_of(line, f->key);
			int err;

			if (!value)
				continue;
			err = f->text ? read_text(value, f->text) :
					read_number(value, f->min, f->number);
			if (err) {
				*ret_key = f->key;
				return err;
			}
		}
	}
	return 0;
}

static bool is_said(const struct fact *f)
{
	return f->text ? *f->text : *f->number != FACTS_NONE;
}

static void forget(struct profile *p, const char *key)
{
	size_t kept = 0;

	for (size_t i = 0; i < p->comment_cnt; i++)
		if (!value_of(strtab__get(p->strings, p->comments[i]), key))
			p->comments[kept++] = p->comments[i];
	p->comment_cnt = kept;
}

int facts_write(struct profile *p, const struct run_facts *said)
{
	struct run_facts copy = *said;
	struct fact facts[FACT_CNT];
	int err = 0;

	list_facts(&copy, facts);
	for (size_t k = 0; !err && k < FACT_CNT; k++) {
		const struct fact *f = &facts[k];
		char line[FACTS_TEXT_SZ + 64];

		if (!is_said(f))
			continue;
		forget(p, f->key);
		if (f->text)
			snprintf(line, sizeof(line), "%s=%s", f->key, f->text);
		else
			snprintf(line, sizeof(line), "%s=%" PRIu64, f->key, *f->number);
		err = profile__add_comment(p, line);
	}
	return err;
}
