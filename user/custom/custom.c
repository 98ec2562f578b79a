// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "custom/custom.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "bpfprof.h"
#include "capture/attachments.h"
#include "capture/collect.h"
#include "capture/mapped_files.h"
#include "capture/windows.h"
#include "custom/custom_points.h"
#include "custom/custom_wanted.h"
#include "kernel/live.h"
#include "kernel/probe_custom.h"
#include "kernel/return_probes.h"
#include "kernel/uprobes.h"
#include "target/objects.h"
#include "target/proc_maps.h"
#include "target/procs.h"

struct custom {
	enum uprobe_method method;
	const struct custom_wanted *wanted;
	struct session *session;
	struct procs *procs;
	struct objects *objects;
	struct collect *collect;
	struct mapped_files *files;
	struct custom_points *points;
	struct attachments *attachments;
	uint32_t skip_proc;	 /* our own image, before the command has become another */
	uint32_t spared_command; /* its process id, of which it has been said; 0 */
	uint32_t *said; /* by number of a process its id, once it is said that it is spared */
	size_t said_cap;
};

static int attach(void *ctx, const struct attachments_file *f, pid_t pid, bool shared, bool first,
		  struct uprobes *ret[ATTACHMENTS_SETS]);
static void failed(void *ctx, const struct attachments_file *f, pid_t pid, int err);

static const struct attachments_ops ops = { .attach = attach, .failed = failed };

struct custom *custom__new(const struct custom_wanted *wanted, enum uprobe_method method,
			   struct session *session, struct procs *procs, struct objects *objects,
			   struct code *code, struct collect *collect)
{
	struct custom *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->method = method;
	c->wanted = wanted;
	c->session = session;
	c->procs = procs;
	c->objects = objects;
	c->collect = collect;
	c->skip_proc = PROCS_NONE;
	c->files = mapped_files__new(procs, objects, code);
	c->points = custom_points__new(wanted, objects);
	c->attachments = attachments__new(&ops, c, objects);
	if (c->files && c->points && c->attachments)
		return c;
	custom__free(c);
	errno = ENOMEM;
	return NULL;
}

void custom__free(struct custom *c)
{
	if (!c)
		return;
	attachments__free(c->attachments);
	custom_points__free(c->points);
	mapped_files__free(c->files);
	free(c->said);
	free(c);
}

/* ---- probes ---- */

static int attach(void *ctx, const struct attachments_file *f, pid_t pid, bool shared, bool first,
		  struct uprobes *ret[ATTACHMENTS_SETS])
{
	struct custom *c = ctx;
	const struct custom_object *o = custom_points__get(c->points, f->object);
	int err = 0;

	(void)shared;
	(void)first;
	for (int g = 0; o && !err && g < PROBE_CUSTOM_NR_GROUPS; g++) {
		if (!o->cnt[g])
			continue;
		ret[g] = probe_custom__attach(c->session, c->method, g, f->fd, pid, o->points[g],
					      o->cnt[g]);
		err = ret[g] ? 0 : -errno;
	}
	if (err)
		uprobes__detach(ret, PROBE_CUSTOM_NR_GROUPS);
	return err;
}
_Static_assert((int)PROBE_CUSTOM_NR_GROUPS <= ATTACHMENTS_SETS, "each group has a set");

static void failed(void *ctx, const struct attachments_file *f, pid_t pid, int err)
{
	const struct custom *c = ctx;

	if (err != -ESRCH)
		log_error("cannot probe the custom profiles of '%s' in process %d: %s",
			  objects__info(c->objects, f->object)->path, (int)pid,
			  uprobes_failure(err));
}

/* Would probes of an object end the process? */
static bool is_to_be_spared(struct custom *c, pid_t pid, uint32_t object)
{
	const struct custom_object *o = custom_points__get(c->points, object);

	return o && (o->cnt[PROBE_CUSTOM_ADD_RETURN] || o->cnt[PROBE_CUSTOM_REMOVE_RETURN]) &&
	       return_probes_harm() && return_probes_filtered(pid);
}

static void say_spared(const struct custom *c, pid_t pid, uint32_t object)
{
	log_error(
		"no custom profiles of '%s' in process %d: it filters its system calls, and with "
		"this kernel a probe of what a function returns would end it (mended in Linux "
		"6.14)",
		objects__info(c->objects, object)->path, (int)pid);
}

/* Once of each process. */
static void note_spared(struct custom *c, uint32_t proc, uint32_t object)
{
	uint32_t tgid = procs__get(c->procs, proc)->tgid;

	if (tgid == c->spared_command ||
	    util_reserve_zeroed(&c->said, &c->said_cap, proc, sizeof(*c->said)) ||
	    c->said[proc] == tgid)
		return;
	c->said[proc] = tgid;
	say_spared(c, (pid_t)tgid, object);
}

int custom__prepare_command(struct custom *c, pid_t pid, const char *argv0)
{
	char path[PATH_MAX];
	uint32_t object;
	int fd, copy, err = 0;
	bool spared;

	c->skip_proc = procs__find_live(c->procs, pid);
	/* that there is none its start will say */
	if (!util_find_program(argv0, path, sizeof(path)))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	object = copy < 0 ? OBJECTS_NONE : objects__add(c->objects, copy, path);
	/* a filter of ours is the command's, too */
	spared = object != OBJECTS_NONE && is_to_be_spared(c, pid, object);
	if (spared) {
		c->spared_command = (uint32_t)pid;
		say_spared(c, pid, object);
	}
	if (object != OBJECTS_NONE && !spared && custom_points__get(c->points, object))
		err = attachments__add(c->attachments, pid, fd, object);
	else if (fd >= 0)
		close(fd);
	attachments__settle(c->attachments);
	return err;
}

static int look_at(struct custom *c, uint32_t proc, bool first)
{
	const struct proc_space *s = procs__space(c->procs, proc);
	pid_t pid = (pid_t)procs__get(c->procs, proc)->tgid;
	int err = 0, fd;

	if (main_thread_of(pid) == MAIN_THREAD_LEFT) {
		if (first)
			log_info(
				"no custom profiles of process %d: its main thread has ended, by "
				"which "
				"the kernel finds its memory",
				(int)pid);
		return 0;
	}
	for (size_t i = 0; !err && i < s->map_cnt; i++) {
		uint32_t object = mapped_files__object(c->files, proc, &s->maps[i]);

		if (object == OBJECTS_NONE || !custom_points__get(c->points, object))
			continue;
		if (is_to_be_spared(c, pid, object)) {
			note_spared(c, proc, object);
			continue;
		}
		fd = mapped_files__open(c->files, proc, &s->maps[i], object);
		if (fd >= 0)
			err = attachments__add(c->attachments, pid, fd, object);
	}
	return err;
}

static bool runs(void *ctx, pid_t pid)
{
	const struct custom *c = ctx;

	return procs__find_live(c->procs, (uint32_t)pid) != PROCS_NONE;
}

int custom__update(struct custom *c)
{
	int err = 0;

	/* its number may be given to another */
	if (c->skip_proc != PROCS_NONE && procs__get(c->procs, c->skip_proc)->to_ns != UINT64_MAX)
		c->skip_proc = PROCS_NONE;
	for (size_t i = 0; !err && i < procs__cnt(c->procs); i++) {
		enum mapped_files_news news;

		if (!procs__lives(c->procs, i) || i == c->skip_proc)
			continue;
		err = mapped_files__look(c->files, i, &news);
		if (!err && news == MAPPED_FILES_FIRST && procs__get(c->procs, i)->by_thread)
			attachments__relink(c->attachments, procs__get(c->procs, i)->tgid);
		if (!err && news != MAPPED_FILES_SAME)
			err = look_at(c, i, news == MAPPED_FILES_FIRST);
	}
	attachments__settle(c->attachments);
	(void)attachments__drop(c->attachments, runs, c);
	attachments__clean_children(c->attachments, collect__forks(c->collect));
	return err;
}

int custom__check(const struct custom *c)
{
	char text[512];
	int err = custom_points__check(c->points, text, sizeof(text));

	if (err)
		log_error("%s", text);
	else if (!custom_points__set_cnt(c->points))
		log_info(
			"no custom profiles in the files that the processes map: see "
			"bpfprof/profile.h");
	return err;
}

void custom__start(struct custom *c)
{
	probe_custom__enable(c->session, true);
}

void custom__stop(struct custom *c)
{
	char text[512];

	probe_custom__enable(c->session, false);
	/* of a command it was not known before */
	if (custom_points__check(c->points, text, sizeof(text)))
		log_info("%s", text);
}

/* ---- what is held ---- */

void custom__read_live(struct custom *c, struct custom_part *ret)
{
	ret->err = probe_custom__live(c->session, &ret->live, &ret->live_cnt);
}

int custom__hold(struct custom *c, struct window *w, const struct custom_part *part,
		 uint64_t since_ns)
{
	struct windows *windows = collect__windows(c->collect);

	/* one whose stack was lost has none: it was counted then */
	for (size_t i = 0; !part->err && i < part->live_cnt; i++)
		if (part->live[i].live.time_ns >= since_ns)
			(void)windows__hold(windows, w, &part->live[i].live.stack);
		else
			windows__note_live(windows, &part->live[i].live.stack);
	if (!part->err)
		windows__drop_freed(windows, BPFPROF_CUSTOM);
	return part->err;
}

void custom__begin_change(struct custom *c, struct window *w, const struct custom_part *part)
{
	for (size_t i = 0; i < part->live_cnt; i++)
		windows__unhold(collect__windows(c->collect), w, &part->live[i].live.stack);
}

int custom__held(struct custom *c, uint64_t *ret, size_t cnt)
{
	struct custom_part now = { 0 };
	int err;

	memset(ret, 0, cnt * sizeof(*ret));
	custom__read_live(c, &now);
	for (size_t i = 0; i < now.live_cnt; i++)
		if (now.live[i].key.set < cnt)
			ret[now.live[i].key.set]++;
	err = now.err;
	custom_part__done(&now);
	return err;
}

void custom_part__done(struct custom_part *part)
{
	free(part->live);
	*part = (struct custom_part){ 0 };
}

size_t custom__set_cnt(const struct custom *c)
{
	return custom_points__set_cnt(c->points);
}

const char *custom__set_name(const struct custom *c, uint32_t set)
{
	return custom_points__set_name(c->points, set);
}
