// SPDX-License-Identifier: BSD-2-Clause
/* The table of formats and its readers. */
#include "report/formats.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "kinds.h"
#include "profile/legacy.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/text.h"
#include "report/process_memory.h"
#include "view/page.h"

static int write_pprof(const struct profile *p, const struct kind *kind, pid_t pid, FILE *f)
{
	(void)kind;
	(void)pid;
	return pprof_write(p, f);
}

static int write_folded(const struct profile *p, const struct kind *kind, pid_t pid, FILE *f)
{
	(void)kind;
	(void)pid;
	return folded_write(p, f);
}

static int write_text(const struct profile *p, const struct kind *kind, pid_t pid, FILE *f)
{
	(void)pid;
	return kind->write_text ? kind->write_text(p, f) : text_write(p, f, 0);
}

/* A custom profile has a name of its own. */
static const char *name_of(const struct profile *p, const struct kind *kind)
{
	return kind == &kinds[BPFPROF_CUSTOM] ? p->value_types[0].type : kind->name;
}

static int write_flamegraph(const struct profile *p, const struct kind *kind, pid_t pid, FILE *f)
{
	struct page_facts facts = { .title = name_of(p, kind), .value = profile__last_value(p) };

	(void)pid;
	return page_write(p, &facts, f);
}

/* The last two formats: with the memory of the process, if it is a heap profile, and it is still there. */
static int write_addresses(const struct profile *p, const struct kind *kind, pid_t pid, FILE *f,
			   int (*write)(const struct profile *p, const struct legacy *what,
					FILE *f))
{
	char *memory = kind->legacy == LEGACY_HEAP ? process_memory(pid) : NULL;
	struct legacy what = { .form = kind->legacy, .name = name_of(p, kind), .memory = memory };
	int err = write(p, &what, f);

	free(memory);
	return err;
}

static int write_debug1(const struct profile *p, const struct kind *kind, pid_t pid, FILE *f)
{
	return write_addresses(p, kind, pid, f, debug1_write);
}

static int write_debug2(const struct profile *p, const struct kind *kind, pid_t pid, FILE *f)
{
	(void)kind;
	(void)pid;
	return debug2_write(p, f);
}

static int write_legacy(const struct profile *p, const struct kind *kind, pid_t pid, FILE *f)
{
	return write_addresses(p, kind, pid, f, legacy_write);
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
	{ .name = "debug1", .ext = "debug1.txt", .write = write_debug1, .one_process = true },
	{
		.name = "debug2",
		.ext = "debug2.txt",
		.write = write_debug2,
		.one_process = true,
		.only_threads = true,
	},
	{
		.name = "legacy",
		.ext = "prof",
		.write = write_legacy,
		.one_process = true,
		.like_pprof = true,
		.reader = "go tool pprof -http=:",
	},
};

const size_t format_cnt = ARRAY_SIZE(formats);

bool formats_is_binary(const struct format *f, const struct kind *kind)
{
	return f->binary || (f->write == write_legacy && kind->legacy == LEGACY_CPU);
}

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
