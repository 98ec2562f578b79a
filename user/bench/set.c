// SPDX-License-Identifier: BSD-2-Clause
/* The profiles of the runs, in a folder. */
#include <linux/types.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

static void run_name(uint32_t run, int kind, char name[64])
{
	snprintf(name, 64, "%04" PRIu32 ".%s" ENDING, run, kinds[kind].name);
}

static void run_path(const struct bench_set *set, enum runs_side side, uint32_t run, int kind,
		     char path[PATH_MAX])
{
	char name[64];

	run_name(run, kind, name);
	snprintf(path, PATH_MAX, "%.*s/%s/%s", PATH_MAX - 128, set->path, bench_side_names[side],
		 name);
}

/* Is the folder of a side still where it was? 0 or -ESTALE, said. */
static int check_place(const struct bench_set *set, enum runs_side side)
{
	char path[PATH_MAX];
	struct stat now, then;

	side_path(set, side, path);
	if (!lstat(path, &now) && !fstat(set->sides[side], &then) && now.st_dev == then.st_dev &&
	    now.st_ino == then.st_ino)
		return 0;
	log_error("somebody has moved the folder '%s'", path);
	return -ESTALE;
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
	int err = check_place(&b->set, side);

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
	char name[64];

	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		run_name(run, i, name);
		(void)unlinkat(b->set.sides[side], name, 0);
	}
}

int bench_set_say_ops(const struct bench *b, uint64_t ops)
{
	char folder[PATH_MAX], path[PATH_MAX];
	struct run_facts facts;
	int err = 0;

	facts_clear(&facts);
	facts.ops = ops;
	for (int side = 0; !err && side < 2; side++) {
		struct dirent *e;
		DIR *d;

		err = check_place(&b->set, side);
		if (err)
			break;
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

/* What its runs did, which those that are added did as well unless options say it of each. 0 or -EINVAL, said. */
static int check_ops(const struct bench *b, const struct runs *runs)
{
	const struct bench_options *o = &b->opts->bench;

	if (o->ops || o->ops_regex || o->ops_probe)
		return 0;
	for (size_t i = 1; i < runs->run_cnt; i++)
		if (runs->runs[i].facts.ops != runs->runs[0].facts.ops) {
			log_error(
				"the runs in '%s' did different numbers of operations: give "
				"--ops-regex or --ops-probe as before",
				b->set.path);
			return -EINVAL;
		}
	return 0;
}

/* What is there, to go on from. 0 or -EINVAL, said. */
static int look_at(struct bench *b)
{
	struct bench_set *set = &b->set;
	struct runs *runs = read_apart(b);
	int err;

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
	err = check_builds(b) ?: check_ops(b, runs);
	runs__free(runs);
	return err;
}

/* Its descriptor, or -errno, said. */
static int open_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd >= 0)
		return fd;
	log_error("cannot open the folder '%s': %s", path, strerror(errno));
	return -errno;
}

/* The same of a new one. */
static int make_folder(const char *path)
{
	char text[PATH_MAX + 128];
	int fd = output_make_folder(path, text, sizeof(text));

	if (fd < 0)
		log_error("%s", text);
	return fd;
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
	return open_folder(set->path);
}

/* 0 or -errno, said. */
static int open_folders(struct bench_set *set, bool append)
{
	char side[PATH_MAX];
	int fd;

	set->folder = set->sides[0] = set->sides[1] = -1;
	set->open = true;
	if (append)
		fd = open(set->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	else
		fd = *set->path ? make_folder(set->path) : make_temporary(set);
	if (append && fd < 0)
		log_error("cannot open the folder '%s': %s", set->path, strerror(errno));
	set->folder = fd;
	set->made = !append && fd >= 0;
	for (int i = 0; fd >= 0 && i < 2; i++) {
		side_path(set, i, side);
		fd = append ? open_folder(side) : make_folder(side);
		set->sides[i] = fd;
	}
	return MIN(fd, 0);
}

int bench_set_open(struct bench *b, const char *path, bool append)
{
	struct bench_set *set = &b->set;
	int err;

	set->ops_before = FACTS_NONE;
	if (path && strlen(path) >= PATH_MAX - 128) {
		log_error("the path of the folder is too long");
		return -ENAMETOOLONG;
	}
	if (path)
		snprintf(set->path, sizeof(set->path), "%s", path);
	/* the message that it is not there is look_at's */
	err = append ? look_at(b) : 0;
	return err ?: open_folders(set, append);
}

/* Removes the profiles in a folder, by its descriptor, and the folder at its path if it is empty then. Takes fd. */
static void remove_folder(const char *path, int fd)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;

	if (!d) {
		close(fd);
		return;
	}
	while ((e = readdir(d)))
		if (strstr(e->d_name, ENDING)) /* one that was being written has more behind that */
			(void)unlinkat(fd, e->d_name, 0);
	closedir(d);
	(void)rmdir(path);
}

void bench_set_close(struct bench_set *set)
{
	/* one that was made for nothing is in the way of the next attempt */
	bool remove = set->temporary || (set->made && !set->runs);
	char path[PATH_MAX];

	if (!set->open)
		return;
	for (int i = 0; i < 2; i++) {
		side_path(set, i, path);
		if (remove && set->sides[i] >= 0)
			remove_folder(path, set->sides[i]);
		else if (set->sides[i] >= 0)
			close(set->sides[i]);
	}
	if (remove && set->folder >= 0)
		remove_folder(set->path, set->folder);
	else if (set->folder >= 0)
		close(set->folder);
}
