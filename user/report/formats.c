// SPDX-License-Identifier: BSD-2-Clause
/* The table of formats and its readers. */
#include "report/formats.h"

#include <string.h>

#include "base/util.h"
#include "kinds.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/text.h"
#include "view/page.h"

static int write_pprof(const struct profile *p, const struct kind *kind, FILE *f)
{
	(void)kind;
	return pprof_write(p, f);
}

static int write_folded(const struct profile *p, const struct kind *kind, FILE *f)
{
	(void)kind;
	return folded_write(p, f);
}

static int write_text(const struct profile *p, const struct kind *kind, FILE *f)
{
	return kind->write_text ? kind->write_text(p, f) : text_write(p, f, 0);
}

static int write_flamegraph(const struct profile *p, const struct kind *kind, FILE *f)
{
	struct page_facts facts = { .title = kind->name, .value = profile__last_value(p) };

	return page_write(p, &facts, f);
}

const struct format formats[] = {
	{
		.name = "pprof",
		.ext = "pb.gz",
		.write = write_pprof,
		.binary = true,
		.like_pprof = true,
		.reader = "go tool pprof -http=:",
	},
	{ .name = "folded", .ext = "folded", .write = write_folded },
	{ .name = "text", .ext = "txt", .write = write_text },
	{ .name = "flamegraph", .ext = "html", .write = write_flamegraph },
};

const size_t format_cnt = ARRAY_SIZE(formats);

const struct format *formats_find(const char *name)
{
	for (size_t i = 0; i < format_cnt; i++)
		if (!strcmp(name, formats[i].name))
			return &formats[i];
	return NULL;
}

void formats_names(char *buf, size_t buf_sz)
{
	*buf = '\0';
	for (size_t i = 0; i < format_cnt; i++) {
		size_t len = strlen(buf);

		snprintf(buf + len, buf_sz - len, "%s%s", i ? ", " : "", formats[i].name);
	}
}
