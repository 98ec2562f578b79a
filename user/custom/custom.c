// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "custom/custom.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "bpfprof.h"
#include "capture/collect.h"
#include "capture/mapped_files.h"
#include "capture/windows.h"
#include "custom/custom_points.h"
#include "custom/custom_wanted.h"
#include "kernel/live.h"
#include "kernel/probe_custom.h"
#include "target/objects.h"
#include "target/proc_maps.h"
#include "target/procs.h"

#define CLEAN_NS NSEC_PER_SEC /* between two looks after children that were forked */
#define DROP_AT_ONCE 64	      /* attachments */

/* A file that is probed in a process. */
struct attachment {
	pid_t pid;
	dev_t dev;
	ino_t ino;
	struct uprobes *sets[PROBE_CUSTOM_NR_GROUPS];
};

struct custom {
	enum uprobe_method method;
	const struct custom_wanted *wanted;
	struct session *session;
	struct procs *procs;
	struct objects *objects;
	struct collect *collect;
	struct mapped_files *files;
	struct custom_points *points;
	struct attachment *attachments;
	size_t cnt, cap;
	uint32_t skip_proc; /* our own image, before the command has become another */
	uint64_t forks, next_clean_ns;
};

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
	if (c->files && c->points)
		return c;
	custom__free(c);
	errno = ENOMEM;
	return NULL;
}

/* Takes the probes off processes that have ended, or off all, some at a time: the kernel takes as long
 * for all of these as for one. */
static void detach(struct custom *c, bool all)
{
	struct uprobes *dropped[DROP_AT_ONCE][PROBE_CUSTOM_NR_GROUPS];
	size_t kept = 0, cnt = 0;

	for (size_t i = 0; i < c->cnt; i++) {
		struct attachment *a = &c->attachments[i];

		if (!all && procs__find_live(c->procs, (uint32_t)a->pid) != PROCS_NONE) {
			c->attachments[kept++] = *a;
			continue;
		}
		memcpy(dropped[cnt++], a->sets, sizeof(a->sets));
		if (cnt < DROP_AT_ONCE)
			continue;
		uprobes__detach(dropped[0], cnt * PROBE_CUSTOM_NR_GROUPS);
		cnt = 0;
	}
	c->cnt = kept;
	if (cnt)
		uprobes__detach(dropped[0], cnt * PROBE_CUSTOM_NR_GROUPS);
}

void custom__free(struct custom *c)
{
	if (!c)
		return;
	detach(c, true);
	free(c->attachments);
	custom_points__free(c->points);
	mapped_files__free(c->files);
	free(c);
}

/* ---- probes ---- */

static int attach_groups(struct custom *c, struct attachment *a, int fd,
			 const struct custom_object *o)
{
	int err = 0;

	for (int g = 0; !err && g < PROBE_CUSTOM_NR_GROUPS; g++) {
		if (!o->cnt[g])
			continue;
		a->sets[g] = probe_custom__attach(c->session, c->method, g, fd, a->pid,
						  o->points[g], o->cnt[g]);
		err = a->sets[g] ? 0 : -errno;
	}
	if (err)
		uprobes__detach(a->sets, PROBE_CUSTOM_NR_GROUPS);
	return err;
}

/* Probes an object, open at fd, in one process, unless it is there already. 0 or -errno; what cannot
 * be probed is said, and not tried again. */
static int attach(struct custom *c, pid_t pid, int fd, uint32_t object,
		  const struct custom_object *o)
{
	struct attachment *a;
	struct stat st;
	int err = fstat(fd, &st) ? -errno : 0;

	for (size_t i = 0; !err && i < c->cnt; i++) {
		a = &c->attachments[i];
		if (a->pid == pid && a->dev == st.st_dev && a->ino == st.st_ino)
			return 0;
	}
	if (!err)
		err = util_reserve(&c->attachments, &c->cap, c->cnt + 1, sizeof(*a));
	if (err)
		return err;
	a = &c->attachments[c->cnt++];
	*a = (struct attachment){ .pid = pid, .dev = st.st_dev, .ino = st.st_ino };
	err = attach_groups(c, a, fd, o);
	if (err && err != -ESRCH)
		log_error("cannot probe the custom profiles of '%s' in process %d: %s",
			  objects__info(c->objects, object)->path, (int)pid, strerror(-err));
	return err == -ENOMEM ? err : 0;
}

int custom__prepare_command(struct custom *c, pid_t pid, const char *argv0)
{
	const struct custom_object *o;
	char path[PATH_MAX];
	uint32_t object;
	int fd, copy, err = 0;

	c->skip_proc = procs__find_live(c->procs, pid);
	/* that there is none its start will say */
	if (!util_find_program(argv0, path, sizeof(path)))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	object = copy < 0 ? OBJECTS_NONE : objects__add(c->objects, copy, path);
	o = object == OBJECTS_NONE ? NULL : custom_points__get(c->points, object);
	if (o)
		err = attach(c, pid, fd, object, o);
	if (fd >= 0)
		close(fd);
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
		const struct custom_object *o;

		o = object == OBJECTS_NONE ? NULL : custom_points__get(c->points, object);
		fd = o ? mapped_files__open(c->files, proc, &s->maps[i], object) : -1;
		if (fd < 0)
			continue;
		err = attach(c, pid, fd, object, o);
		close(fd);
	}
	return err;
}

/* Forked children that are not followed inherit breakpoints, which cost them time for nothing. */
static void clean_children(struct custom *c)
{
	uint64_t forks = collect__forks(c->collect), now = util_monotonic_ns();

	if (forks == c->forks || now < c->next_clean_ns)
		return;
	c->forks = forks;
	c->next_clean_ns = now + CLEAN_NS;
	for (size_t i = 0; i < c->cnt; i++)
		for (int g = 0; g < PROBE_CUSTOM_NR_GROUPS; g++)
			if (c->attachments[i].sets[g])
				(void)uprobes__clean_children(c->attachments[i].sets[g]);
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
		if (!err && news != MAPPED_FILES_SAME)
			err = look_at(c, i, news == MAPPED_FILES_FIRST);
	}
	detach(c, false);
	clean_children(c);
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

int custom__hold(struct custom *c, struct window *w, const struct custom_part *part)
{
	struct windows *windows = collect__windows(c->collect);

	/* one whose stack was lost has none: it was counted then */
	for (size_t i = 0; !part->err && i < part->live_cnt; i++)
		(void)windows__hold(windows, w, &part->live[i].live.stack);
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
