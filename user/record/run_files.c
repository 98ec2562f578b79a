// SPDX-License-Identifier: BSD-2-Clause
/* What the files of a run are called. */
#include <linux/types.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"
#include "capture/capture.h"
#include "report/formats.h"
#include "kinds.h"
#include "options.h"
#include "record/run_parts.h"
#include "target/custom_sites.h"

/* Several kinds were asked for: then each has a name of its own, also if one cannot be had. */
static bool several_kinds(const struct options *o)
{
	size_t n = 0;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		n += i != BPFPROF_CUSTOM && o->kinds[i];
	/* of all that there are it is not known how many */
	n += o->custom.all ? 2 : custom_wanted__cnt(&o->custom);
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

/* What a profile is called in a path; name: of a custom profile, in which '/' becomes %2F. */
static void profile_name(int kind, const char *name, char *ret, size_t ret_sz)
{
	size_t n = (size_t)snprintf(ret, ret_sz, "%s%s", kinds[kind].name, name ? "." : "");

	for (; name && *name && n + 3 < ret_sz; name++)
		n += (size_t)snprintf(ret + n, ret_sz - n, "%.*s", *name == '/' ? 3 : 1,
				      *name == '/' ? "%2F" : name);
}

static void output_path(const struct run *r, int kind, const char *name, unsigned int number,
			char path[PATH_MAX])
{
	char ending[16], text[3 * CUSTOM_NAME_SZ + 16];
	const struct options *o = r->opts;

	snprintf(ending, sizeof(ending), ".%s", o->format->ext);
	profile_name(kind, name, text, sizeof(text));
	if (!o->output)
		snprintf(path, PATH_MAX, "bpfprof.%s.%s%s", r->file_target, text, ending);
	else if (!several_kinds(o))
		snprintf(path, PATH_MAX, "%s", o->output);
	else
		snprintf(path, PATH_MAX, "%s.%s%s", o->output, text, ending);
	add_number(path, ending, number);
}

void run_output_path(const struct run *r, int profile, unsigned int number, char path[PATH_MAX])
{
	const char *name = profile < BPFPROF_NR_KINDS ?
				   NULL :
				   capture__custom_name(r->capture, RUN_CUSTOM_NUMBER(profile));

	output_path(r, RUN_KIND(profile), name, number, path);
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

/* What is written last would be all that is left; a device takes both. */
static int check_apart(const struct run *r, const char *path)
{
	char stats[PATH_MAX];
	struct stat st;

	if (!r->opts->stats)
		return 0;
	run_stats_path(r, r->opts->window_ns ? 1 : 0, stats);
	if (strcmp(path, stats) != 0 || (!stat(path, &st) && S_ISCHR(st.st_mode)))
		return 0;
	log_error("--stats would write over the profile in '%s': give it another file", path);
	return -EEXIST;
}

static int check_kind(const struct run *r, int kind, const char *name)
{
	char path[PATH_MAX];
	int err;

	output_path(r, kind, name, r->opts->window_ns ? 1 : 0, path);
	err = check_apart(r, path);
	return err ? err : check_output(path, formats_is_binary(r->opts->format, &kinds[kind]));
}

/* Those that were named; of all, one for the others, whose names only the recording will tell. */
static int check_custom(const struct run *r)
{
	const struct custom_wanted *w = &r->opts->custom;
	int err = w->all ? check_kind(r, BPFPROF_CUSTOM, "NAME") : 0;

	for (size_t i = 0; !err && i < custom_wanted__cnt(w); i++)
		err = check_kind(r, BPFPROF_CUSTOM, custom_wanted__name(w, i));
	return err;
}

int run_check_outputs(const struct run *r)
{
	char path[PATH_MAX];
	int err = check_prefix(r->opts);

	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++)
		if (r->opts->kinds[i])
			err = i == BPFPROF_CUSTOM ? check_custom(r) : check_kind(r, i, NULL);
	if (!err && r->opts->stats) {
		run_stats_path(r, r->opts->window_ns ? 1 : 0, path);
		err = check_output(path, false);
	}
	return err;
}
