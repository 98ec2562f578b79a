// SPDX-License-Identifier: BSD-2-Clause
/* The profiles of the runs, in a folder. */
#include <linux/types.h>

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/output.h"
#include "base/util.h"
#include "bench/parts.h"
#include "kinds.h"
#include "options.h"
#include "profile/pprof.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"

#define ENDING ".pb.gz"
#define BEGUN ".run" ENDING
#define LOST_MAX 0.01 /* of the samples */

const char *const bench_side_names[2] = { [RUNS_BASE] = "base", [RUNS_NEW] = "new" };

/* ---- files ---- */

static void side_path(const struct bench_set *set, enum runs_side side, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.*s/%s", PATH_MAX - 16, set->path, bench_side_names[side]);
}

static void run_path(const struct bench_set *set, enum runs_side side, uint32_t run, int kind,
		     char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.*s/%s/%04" PRIu32 ".%s" ENDING, PATH_MAX - 64, set->path,
		 bench_side_names[side], run, kinds[kind].name);
}

void bench_set_begun(const struct bench_set *set, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%.*s/" BEGUN, PATH_MAX - 16, set->path);
}

/* The same of a kind, as record names it. */
static void begun_path(const struct bench *b, int kind, char path[PATH_MAX])
{
	size_t cnt = 0, len;

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		cnt += b->opts->kinds[i];
	bench_set_begun(&b->set, path);
	len = strlen(path);
	if (cnt > 1)
		snprintf(path + len, PATH_MAX - len, ".%s" ENDING, kinds[kind].name);
}

/* 0 or -errno, said. */
static int read_profile(const char *path, struct profile **ret)
{
	char *data;
	size_t sz;
	int err = util_read_file(path, PPROF_READ_MAX, &data, &sz);

	if (!err) {
		err = pprof_read(data, sz, ret);
		free(data);
	}
	if (err)
		log_error("cannot read '%s': %s", path, strerror(-err));
	return err;
}

/* What a profile of the run that has begun says of it; refuses what has lost too much. 0 or -errno, said. */
static int peek_kind(const struct bench *b, const char *name, int kind, struct run_facts *ret)
{
	const char *key;
	char path[PATH_MAX];
	struct profile *p;
	int err;

	begun_path(b, kind, path);
	err = read_profile(path, &p);
	if (err)
		return err;
	err = facts_read(p, ret, &key);
	profile__free(p);
	if (err || ret->wall_ns == FACTS_NONE || ret->seen == FACTS_NONE) {
		log_error("a run of the %s side was not recorded to its end", name);
		return -EINVAL;
	}
	if ((double)ret->lost > LOST_MAX * (double)ret->seen) {
		log_error("a run of the %s side has lost %.1f %% of its samples of %s", name,
			  100 * (double)ret->lost / (double)ret->seen, kinds[kind].name);
		return -EINVAL;
	}
	return 0;
}

int bench_set_peek(const struct bench *b, enum runs_side side, struct run_facts *ret)
{
	const char *name = bench_side_names[side];
	struct run_facts others;
	int first = -1, err = 0;

	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		if (!b->opts->kinds[i])
			continue;
		err = peek_kind(b, name, i, first < 0 ? ret : &others);
		first = first < 0 ? i : first;
	}
	/* of the other kinds a program may do nothing */
	if (!err && !ret->seen) {
		log_error(
			"a run of the %s side has no samples: give it more to do, or raise "
			"--frequency",
			name);
		err = -EINVAL;
	}
	return err;
}

int bench_set_read_begun(const struct bench *b, enum runs_side side, struct runs *runs)
{
	char path[PATH_MAX], text[1024];
	struct runs_paths sides[2] = { 0 };
	int err = 0;

	sides[side] = (struct runs_paths){ (char *[]){ path }, 1 };
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		if (!b->opts->kinds[i])
			continue;
		begun_path(b, i, path);
		err = runs__add_paths(runs, sides, text, sizeof(text));
	}
	if (err)
		log_error("%s", text);
	return err;
}

static int write_pprof(void *profile, FILE *f)
{
	return pprof_write(profile, f);
}

/* Reads a profile, says in it what is said in facts, and writes it to a path, which may be its own. 0 or
 * -errno, said. */
static int stamp(const char *from, const char *to, const struct run_facts *facts)
{
	struct profile *p;
	char text[PATH_MAX + 128];
	int err = read_profile(from, &p);

	if (err)
		return err;
	err = facts_write(p, facts);
	err = err ?: profile__finish(p);
	if (err)
		log_error("out of memory");
	else {
		err = output_write(to, write_pprof, p, text, sizeof(text));
		if (err)
			log_error("%s", text);
	}
	profile__free(p);
	return err;
}

int bench_set_add(const struct bench *b, enum runs_side side, uint32_t run, struct run_facts *facts)
{
	char from[PATH_MAX], to[PATH_MAX];
	int err = 0;

	snprintf(facts->run, sizeof(facts->run), "%04" PRIu32, run);
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++) {
		if (!b->opts->kinds[i])
			continue;
		begun_path(b, i, from);
		run_path(&b->set, side, run, i, to);
		err = stamp(from, to, facts);
	}
	bench_set_drop(b);
	return err;
}

void bench_set_drop(const struct bench *b)
{
	char path[PATH_MAX];

	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		if (!b->opts->kinds[i])
			continue;
		begun_path(b, i, path);
		(void)unlink(path);
	}
}

void bench_set_remove(const struct bench *b, enum runs_side side, uint32_t run)
{
	char path[PATH_MAX];

	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		run_path(&b->set, side, run, i, path);
		(void)unlink(path);
	}
}

int bench_set_say_ops(const struct bench *b, uint64_t ops)
{
	char folder[PATH_MAX], path[PATH_MAX];
	struct run_facts facts;
	int err = 0;

	facts_clear(&facts);
	facts.ops = ops;
	for (int side = 0; side < 2; side++) {
		struct dirent *e;
		DIR *d;

		side_path(&b->set, side, folder);
		d = opendir(folder);
		if (!d) {
			log_error("cannot read '%s': %s", folder, strerror(errno));
			return -errno;
		}
		while (!err && (e = readdir(d))) {
			if (*e->d_name == '.')
				continue;
			snprintf(path, sizeof(path), "%.*s/%s", PATH_MAX - NAME_MAX - 2, folder,
				 e->d_name);
			err = stamp(path, path, &facts);
		}
		closedir(d);
	}
	return err;
}

/* ---- the folder ---- */

/* Each by itself, also those of a build. */
static struct runs *read_apart(const struct bench *b)
{
	struct runs *runs = runs__new();
	char base[PATH_MAX], new[PATH_MAX], text[1024] = "out of memory";
	const struct runs_paths sides[2] = {
		[RUNS_BASE] = { (char *[]){ base }, 1 },
		[RUNS_NEW] = { (char *[]){ new }, 1 },
	};
	int err = runs ? 0 : -ENOMEM;

	side_path(&b->set, RUNS_BASE, base);
	side_path(&b->set, RUNS_NEW, new);
	err = err ?: runs__add_paths(runs, sides, text, sizeof(text));
	err = err ?: runs__finish(runs, text, sizeof(text));
	if (!err)
		return runs;
	log_error("%s", text);
	runs__free(runs);
	return NULL;
}

struct runs *bench_set_read(const struct bench *b)
{
	struct runs *runs = read_apart(b);

	if (!runs || !runs__join_builds(runs))
		return runs;
	log_error("out of memory");
	runs__free(runs);
	return NULL;
}

/* Builds that are not those of before cannot be told from them by number; more of them there may be: a set
 * that was interrupted has no runs of the last ones. 0 or -EINVAL, said. */
static int check_builds(const struct bench *b)
{
	uint64_t now = b->opts->bench.builds, before = b->set.builds / (b->opts->bench.aa ? 2 : 1);

	if (now == before || (before && now > before))
		return 0;
	if (before)
		log_error("the runs in '%s' are of %" PRIu64
			  " builds a side: give --builds %" PRIu64 " or more",
			  b->set.path, before, before);
	else
		log_error("the runs in '%s' are of one build a side: leave --builds out",
			  b->set.path);
	return -EINVAL;
}

/* What is there, to go on from. 0 or -EINVAL, said. */
static int look_at(struct bench *b)
{
	struct bench_set *set = &b->set;
	struct runs *runs = read_apart(b);

	if (!runs)
		return -EINVAL;
	for (size_t i = 0; i < runs->run_cnt; i++) {
		const struct run_facts *f = &runs->runs[i].facts;
		uint64_t number;

		if (f->look == FACTS_NONE || f->block == FACTS_NONE ||
		    util_parse_u64(f->run, 1, UINT32_MAX - 1, &number)) {
			log_error("'%s' was not written by bpfprof bench: nothing can be added",
				  runs->runs[i].path);
			runs__free(runs);
			return -EINVAL;
		}
		set->runs = MAX(set->runs, (uint32_t)number);
		set->blocks = MAX(set->blocks, f->block + 1);
		set->looks = MAX(set->looks, f->look);
		set->ops_before = f->ops;
		if (f->build != FACTS_NONE)
			set->builds = MAX(set->builds, f->build);
	}
	runs__free(runs);
	return check_builds(b);
}

/* 0 or -errno, said. */
static int make_folder(const char *path)
{
	char text[PATH_MAX + 128];
	int err = output_make_folder(path, text, sizeof(text));

	if (err)
		log_error("%s", text);
	return err;
}

static int make_temporary(struct bench_set *set)
{
	const char *base = getenv("TMPDIR");

	snprintf(set->path, sizeof(set->path), "%.*s/bpfprof-bench.XXXXXX", PATH_MAX - 64,
		 base && *base == '/' ? base : "/tmp");
	if (!mkdtemp(set->path)) {
		log_error("cannot make '%s': %s", set->path, strerror(errno));
		return -errno;
	}
	set->temporary = true;
	return 0;
}

int bench_set_open(struct bench *b, const char *path, bool append)
{
	struct bench_set *set = &b->set;
	char side[PATH_MAX];
	int err = 0;

	set->ops_before = FACTS_NONE;
	if (path && strlen(path) >= PATH_MAX - 128) {
		log_error("the path of the folder is too long");
		return -ENAMETOOLONG;
	}
	if (path)
		snprintf(set->path, sizeof(set->path), "%s", path);
	if (append)
		return look_at(b);
	err = path ? make_folder(path) : make_temporary(set);
	set->made = !err;
	for (int i = 0; !err && i < 2; i++) {
		side_path(set, i, side);
		err = make_folder(side);
	}
	return err;
}

/* Files of a folder, and the folder. */
static void remove_folder(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	(void)rmdir(path);
}

void bench_set_close(struct bench_set *set)
{
	/* one that was made for nothing is in the way of the next attempt */
	bool remove = set->temporary || (set->made && !set->runs);
	char path[PATH_MAX];

	for (int i = 0; remove && i < 2; i++) {
		side_path(set, i, path);
		remove_folder(path);
	}
	if (remove)
		remove_folder(set->path);
}
