// SPDX-License-Identifier: BSD-2-Clause
/* What the files of a run are called. */
#include <linux/types.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"
#include "report/formats.h"
#include "kinds.h"
#include "options.h"
#include "record/run_parts.h"

/* Several kinds were asked for: then each has a name of its own, also if one cannot be had. */
static bool several_kinds(const struct options *o)
{
	size_t n = 0;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		n += o->kinds[i];
	return n > 1;
}

/* Puts the number of a window in front of an ending, if the path has it, else behind all. */
static void add_number(char path[PATH_MAX], const char *ending, unsigned int number)
{
	size_t len = strlen(path), sz = strlen(ending);
	const char *tail = len > sz && !strcmp(path + len - sz, ending) ? ending : "";

	if (number)
		snprintf(path + len - strlen(tail), PATH_MAX - len + strlen(tail), ".%04u%s",
			 number, tail);
}

void run_output_path(const struct run *r, int kind, unsigned int number, char path[PATH_MAX])
{
	const struct options *o = r->opts;
	char ending[16];

	snprintf(ending, sizeof(ending), ".%s", o->format->ext);
	if (!o->output)
		snprintf(path, PATH_MAX, "bpfprof.%s.%s%s", r->file_target, kinds[kind].name,
			 ending);
	else if (!several_kinds(o))
		snprintf(path, PATH_MAX, "%s", o->output);
	else
		snprintf(path, PATH_MAX, "%s.%s%s", o->output, kinds[kind].name, ending);
	add_number(path, ending, number);
}

void run_stats_path(const struct run *r, unsigned int number, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s", r->opts->stats);
	add_number(path, ".json", number);
}

int run_remove_file(const char *path)
{
	if (!unlink(path) || errno == ENOENT)
		return 0;
	log_error("cannot remove '%s': %s", path, strerror(errno));
	return -errno;
}

static int check_output(const char *path, bool binary)
{
	char text[PATH_MAX + 128];
	int err = output_check(path, binary, text, sizeof(text));

	if (err)
		log_error("%s", text);
	return err;
}

/* A folder would get files whose names begin with a dot. */
static int check_prefix(const struct options *o)
{
	const char *base = o->output ? strrchr(o->output, '/') : NULL;

	base = base ? base + 1 : o->output;
	if (!base || !several_kinds(o) || (*base && strcmp(base, ".") && strcmp(base, "..")))
		return 0;
	log_error("cannot write '%s': %s", o->output, output_reason(-EISDIR));
	return -EISDIR;
}

int run_check_outputs(const struct run *r)
{
	unsigned int first = r->opts->window_ns ? 1 : 0;
	char path[PATH_MAX];
	int err = check_prefix(r->opts);

	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		if (!r->opts->kinds[i])
			continue;
		run_output_path(r, i, first, path);
		err = check_output(path, formats_is_binary(r->opts->format, &kinds[i]));
	}
	if (!err && r->opts->stats) {
		run_stats_path(r, first, path);
		err = check_output(path, false);
	}
	return err;
}
