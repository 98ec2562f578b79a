// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "serve/symbol_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/util.h"
#include "capture/capture.h"
#include "profile/profile.h"
#include "serve/profile_file.h"

#define MAX_NAME 4096

static int compare(const void *a, const void *b)
{
	const struct profile_location *x = *(const struct profile_location *const *)a;
	const struct profile_location *y = *(const struct profile_location *const *)b;

	return (x->address > y->address) - (x->address < y->address);
}

/* Of the innermost function there; NULL: what has no symbol is object+0xoffset, which is no name. */
static const char *name_of(const struct profile *p, const struct profile_location *l)
{
	const struct profile_function *f;

	if (!l->line_cnt)
		return NULL;
	f = &p->functions[p->lines[l->line].function];
	return f->system_name ? strtab__get(p->strings, f->name) : NULL;
}

static void print_name(FILE *f, uint64_t address, const char *name)
{
	char shown[MAX_NAME];

	if (name)
		fprintf(f, "%#" PRIx64 " %s\n", address,
			util_printable(shown, sizeof(shown), name));
}

/* In the order in which they were asked for. */
static void print(FILE *f, const struct profile *p, const struct profile_location **sorted,
		  const uint64_t *addresses, size_t cnt)
{
	for (size_t i = 0; i < p->location_cnt; i++)
		sorted[i] = &p->locations[i];
	qsort(sorted, p->location_cnt, sizeof(*sorted), compare);
	for (size_t i = 0; i < cnt; i++) {
		const struct profile_location key = { .address = addresses[i] }, *k = &key;
		const struct profile_location **l =
			bsearch(&k, sorted, p->location_cnt, sizeof(*sorted), compare);

		if (l)
			print_name(f, addresses[i], name_of(p, *l));
	}
}

static int write_text(FILE *f, const struct profile *p, const uint64_t *addresses, size_t cnt)
{
	const struct profile_location **sorted = calloc(p->location_cnt + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	fputs("num_symbols: 1\n", f);
	print(f, p, sorted, addresses, cnt);
	free(sorted);
	return 0;
}

/* The caller frees *ret. */
static int make_text(const struct profile *p, const uint64_t *addresses, size_t cnt, char **ret,
		     size_t *ret_sz)
{
	FILE *f = open_memstream(ret, ret_sz);
	int err;

	if (!f)
		return -ENOMEM;
	err = write_text(f, p, addresses, cnt);
	return fclose(f) ? -ENOMEM : err;
}

int symbol_file(struct capture *c, uint32_t pid, const uint64_t *addresses, size_t cnt)
{
	struct symbolize_stats ignored;
	struct capture_profile p;
	char *text = NULL;
	size_t sz = 0;
	int ret = capture__locate(c, pid, addresses, cnt, &p);

	if (ret)
		return ret;
	ret = capture__name(c, &p, &ignored);
	if (!ret)
		ret = make_text(p.profile, addresses, cnt, &text, &sz);
	profile__free(p.profile);
	if (!ret)
		ret = profile_file_of(text, sz);
	free(text);
	return ret;
}
