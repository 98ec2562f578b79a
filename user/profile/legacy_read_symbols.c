/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of names that google-pprof --raw puts before a profile: "0x401136 main", "0x401150 caller--inlined". */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "profile/legacy_reader.h"

#define ADDRESS_SZ (1 + 16 + 1)
#define BETWEEN "--" /* names of what is inlined */

static int compare_symbols(const void *pa, const void *pb)
{
	const struct legacy_symbol *a = pa, *b = pb;

	return a->address < b->address ? -1 : a->address > b->address;
}

/* A name that is the address again is none. */
static bool take_symbol(struct legacy_text line, struct legacy_symbol *ret)
{
	if (legacy_left(&line) < 2 || memcmp(line.at, "0x", 2) != 0 ||
	    !legacy_take_hex(&line, &ret->address))
		return false;
	legacy_skip_blanks(&line);
	ret->names = line;
	return line.at < line.end && !legacy_take(&line, "0x");
}

static int add_symbol(struct legacy_reader *r, const struct legacy_symbol *symbol)
{
	int err = legacy_spend(r, sizeof(*symbol)) ?:
			  util_reserve(&r->symbols, &r->symbol_cap, r->symbol_cnt + 1,
				       sizeof(*symbol));

	if (!err)
		r->symbols[r->symbol_cnt++] = *symbol;
	return err;
}

/* What comes next may have a heading that says no more than what its own first line says. */
static void skip_heading(struct legacy_reader *r)
{
	static const char *const heads[] = { "--- profile", "--- heap", "--- growth" };
	struct legacy_text in = r->in, line;

	if (!legacy_line(&in, &line))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		if (legacy_take(&line, heads[i]))
			r->in = in;
}

int legacy_read_symbols(struct legacy_reader *r)
{
	struct legacy_symbol symbol;
	struct legacy_text line;
	bool ended = false;
	int err = 0;

	legacy_line(&r->in, &line);
	while (!err && !ended && legacy_line(&r->in, &line))
		if (legacy_take(&line, "binary="))
			r->program = line;
		else if (take_symbol(line, &symbol))
			err = add_symbol(r, &symbol);
		else
			ended = legacy_take(&line, "---");
	if (!err && !ended)
		err = -EBADMSG;
	if (r->symbol_cnt)
		qsort(r->symbols, r->symbol_cnt, sizeof(*r->symbols), compare_symbols);
	r->symbolized = true;
	skip_heading(r);
	return err;
}

static const struct legacy_symbol *find(const struct legacy_reader *r, uint64_t address)
{
	struct legacy_symbol key = { .address = address };

	return !r->symbol_cnt ?
		       NULL :
		       bsearch(&key, r->symbols, r->symbol_cnt, sizeof(key), compare_symbols);
}

bool legacy_has_symbol(const struct legacy_reader *r, uint64_t address)
{
	return find(r, address);
}

/* Takes the last name off. */
static struct legacy_text take_innermost(struct legacy_text *names)
{
	struct legacy_text ret = *names;
	const char *at = names->at;

	while ((at = memmem(at, (size_t)(names->end - at), BETWEEN, strlen(BETWEEN)))) {
		at += strlen(BETWEEN);
		ret.at = at;
	}
	names->end = ret.at == names->at ? names->at : ret.at - strlen(BETWEEN);
	return ret;
}

/* google-pprof writes "main<0000000000001136>" where it has names of nm alone: it differs with each build. */
static void take_address_off(struct legacy_text *name)
{
	const char *at = name->end - ADDRESS_SZ;
	size_t digits = 0;

	if (legacy_left(name) <= ADDRESS_SZ || *at != '<' || name->end[-1] != '>')
		return;
	while (isxdigit((unsigned char)at[1 + digits]))
		digits++;
	if (digits == ADDRESS_SZ - 2)
		name->end = at;
}

static int add_line(struct legacy_reader *r, const struct legacy_text *name,
		    struct profile_line *ret)
{
	struct profile_function f = { 0 };
	int err = legacy_spend(r, sizeof(*ret) + sizeof(f) + 4 * LEGACY_INDEX_COST +
					  legacy_left(name));

	if (err)
		return err;
	f.name = f.system_name = legacy_string(r, name);
	if (f.name == PROFILE_NONE)
		return -ENOMEM;
	ret->function = profile__add_function(r->out, &f);
	return ret->function == PROFILE_NONE ? -ENOMEM : 0;
}

int legacy_name(struct legacy_reader *r, uint32_t location, uint64_t address)
{
	const struct legacy_symbol *symbol = find(r, address);
	struct legacy_text names = symbol ? symbol->names : (struct legacy_text){ 0 };
	struct profile_line lines[16] = { 0 };
	size_t cnt = 0;
	int err = 0;

	while (!err && names.at < names.end && cnt < ARRAY_SIZE(lines)) {
		struct legacy_text name = take_innermost(&names);

		take_address_off(&name);
		if (name.at < name.end)
			err = add_line(r, &name, &lines[cnt++]);
	}
	return err ?: profile__set_lines(r->out, location, lines, cnt);
}
