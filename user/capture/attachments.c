// SPDX-License-Identifier: BSD-2-Clause
/* Links of programs to files that processes map. */
#include "capture/attachments.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "capture/targets.h"
#include "kernel/uprobes.h"
#include "target/objects.h"

#define IN_FLIGHT_US 1000 /* calls under way still return to the links that have seen them begin */
#define CLEAN_NS NSEC_PER_SEC /* between two looks after children that were forked */
#define DROP_AT_ONCE 64	      /* members: the kernel takes as long for all of these as for one */

/* Of one file in one process, or (pid 0) in all. */
struct member {
	pid_t pid;
	uint32_t file;
	bool tried, failed; /* to attach */
	bool late;	    /* that took too long, or is to be done anew: it is tried again */
	bool linked;
	struct uprobes *sets[ATTACHMENTS_SETS];
};

struct file {
	struct attachments_file f; /* fd < 0: none has this number */
	size_t members;
	bool tried, failed; /* to attach the link for all */
	bool late;	    /* that took too long: it is tried again */
	bool refused;	    /* so it is not shared */
	uint64_t since_ns;  /* it is */
	struct uprobes *sets[ATTACHMENTS_SETS];
};

struct attachments {
	struct attachments_ops ops;
	void *ctx;
	struct objects *objects;
	struct file *files;
	size_t file_cnt, file_cap;
	struct member *members;
	size_t cnt, cap;
	bool attached;
	bool late; /* ETIMEDOUT was said, which is the same for all */
	uint64_t forks, next_clean_ns;
};

struct attachments *attachments__new(const struct attachments_ops *ops, void *ctx,
				     struct objects *objects)
{
	struct attachments *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->ops = *ops;
	a->ctx = ctx;
	a->objects = objects;
	a->attached = true;
	return a;
}

static void released(struct attachments *a, const struct file *f, pid_t pid)
{
	if (a->ops.released)
		a->ops.released(a->ctx, &f->f, pid);
}

/* Nobody has the file any more. */
static void forget_file(struct attachments *a, struct file *f)
{
	if (f->f.shared)
		a->ops.share(a->ctx, &f->f, false);
	uprobes__detach(f->sets, ATTACHMENTS_SETS);
	if (f->f.shared)
		a->ops.share_done(a->ctx, &f->f);
	released(a, f, 0);
	objects__unref(a->objects, f->f.object);
	close(f->f.fd);
	*f = (struct file){ .f.fd = -1 };
}

void attachments__free(struct attachments *a)
{
	if (!a)
		return;
	(void)attachments__detach(a);
	for (size_t i = 0; i < a->cnt; i++) {
		struct member *m = &a->members[i];

		uprobes__detach(m->sets, ATTACHMENTS_SETS);
		released(a, &a->files[m->file], m->pid);
	}
	for (size_t i = 0; i < a->file_cnt; i++)
		if (a->files[i].f.fd >= 0)
			forget_file(a, &a->files[i]);
	free(a->files);
	free(a->members);
	free(a);
}

/* ---- what there is ---- */

/*
 * Tells files apart as the kernel's probes do, which go by inode. Through an overlay that is the one of the layer below: mounts
 * of one image, as containers have them, show each its own device for it, and the number that it has below
 * (Documentation/filesystems/overlayfs.rst, "Inode properties"), to which the build id of the object belongs, "": it has none.
 * A file that was copied up keeps that number: it is taken for the one below. 0 or -errno.
 */
static int identify(int fd, const char *build_id, uint64_t ret[static 2])
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) || fstatfs(fd, &fs))
		return -errno;
	ret[0] = st.st_dev;
	ret[1] = st.st_ino;
	if (fs.f_type == OVERLAYFS_SUPER_MAGIC && *build_id)
		ret[0] = util_hash(build_id, strlen(build_id), OVERLAYFS_SUPER_MAGIC);
	return 0;
}

static bool is_of(const struct file *f, const uint64_t inode[static 2])
{
	return f->f.fd >= 0 && f->f.inode[0] == inode[0] && f->f.inode[1] == inode[1];
}

static bool has(const struct attachments *a, pid_t pid, const uint64_t inode[static 2])
{
	for (size_t i = 0; i < a->cnt; i++) {
		const struct member *m = &a->members[i];

		if ((m->pid == pid || !m->pid) && is_of(&a->files[m->file], inode))
			return true;
	}
	return false;
}

/* The file, which is made if it is not there yet, and takes fd then. NULL with errno. */
static struct file *file_of(struct attachments *a, int fd, const uint64_t inode[static 2],
			    uint32_t object)
{
	struct file *f;
	size_t at = a->file_cnt;
	int err;

	for (size_t i = 0; i < a->file_cnt; i++) {
		f = &a->files[i];
		if (is_of(f, inode) && f->f.object == object)
			return f;
		if (f->f.fd < 0)
			at = i;
	}
	err = util_reserve(&a->files, &a->file_cap, at + 1, sizeof(*a->files));
	if (err) {
		errno = -err;
		return NULL;
	}
	a->file_cnt = MAX(a->file_cnt, at + 1);
	f = &a->files[at];
	*f = (struct file){
		.f = { .inode = { inode[0], inode[1] }, .fd = fd, .object = object, .number = at }
	};
	objects__ref(a->objects, object);
	return f;
}

int attachments__add(struct attachments *a, pid_t pid, int fd, uint32_t object)
{
	struct file *f = NULL;
	uint64_t inode[2];
	int err = identify(fd, objects__info(a->objects, object)->build_id, inode);

	if (!err && !has(a, pid, inode)) {
		err = util_reserve(&a->members, &a->cap, a->cnt + 1, sizeof(*a->members));
		if (!err) {
			f = file_of(a, fd, inode, object);
			err = f ? 0 : -errno;
		}
	}
	if (!f || f->f.fd != fd)
		close(fd);
	if (!f)
		return err;
	a->members[a->cnt++] = (struct member){ .pid = pid, .file = f->f.number };
	f->members++;
	return 0;
}

/* ---- attaching ---- */

static void failed(struct attachments *a, const struct file *f, pid_t pid, int err)
{
	if (err == -ETIMEDOUT && a->late)
		return;
	a->late |= err == -ETIMEDOUT;
	a->ops.failed(a->ctx, &f->f, pid, err);
}

static void attach_own(struct attachments *a, struct member *m)
{
	struct file *f = &a->files[m->file];
	int err = a->ops.attach(a->ctx, &f->f, m->pid, false, !m->tried, m->sets);

	m->tried = true;
	m->late = err == -ETIMEDOUT;
	m->linked = !err;
	f->f.own += m->linked;
	if (err && !m->failed)
		failed(a, f, m->pid, err);
	m->failed |= err != 0;
}

static int attach_shared(struct attachments *a, struct file *f)
{
	int err = a->ops.attach(a->ctx, &f->f, 0, true, !f->tried, f->sets);

	f->tried = true;
	f->late = err == -ETIMEDOUT;
	if (err && !f->failed)
		failed(a, f, 0, err);
	f->failed |= err != 0;
	return err;
}

/* Takes the own links of a member, and adds them to what is to be detached. */
static void take_own(struct attachments *a, struct member *m, struct uprobes **ret)
{
	a->files[m->file].f.own -= m->linked;
	m->linked = false;
	memcpy(ret, m->sets, sizeof(m->sets));
	memset(m->sets, 0, sizeof(m->sets));
}

/* Detaches the own links of the members of a file. NULL: of all. */
static int detach_own(struct attachments *a, const struct file *f)
{
	struct uprobes **sets = calloc(a->cnt + 1, ATTACHMENTS_SETS * sizeof(*sets));
	size_t cnt = 0;

	if (!sets)
		return -ENOMEM;
	for (size_t i = 0; i < a->cnt; i++)
		if (!f || &a->files[a->members[i].file] == f)
			take_own(a, &a->members[i], sets + ATTACHMENTS_SETS * cnt++);
	uprobes__detach(sets, cnt * ATTACHMENTS_SETS);
	free(sets);
	return 0;
}

static void say(const struct attachments *a, const struct file *f, const char *where)
{
	log_debug("'%s' is probed %s", objects__info(a->objects, f->f.object)->path, where);
}

static void share(struct attachments *a, struct file *f)
{
	int err = a->attached ? attach_shared(a, f) : 0;

	/* what took too long may not do so later: it is the kernel that refuses */
	f->refused = err && err != -ETIMEDOUT;
	if (err)
		return;
	f->f.shared = true;
	a->ops.share(a->ctx, &f->f, true);
	f->since_ns = util_monotonic_ns();
	say(a, f, "in all processes, of which those count that are profiled");
	if (f->f.own) {
		usleep(IN_FLIGHT_US);
		(void)detach_own(a, f);
		for (size_t i = 0; i < a->cnt; i++)
			if (&a->files[a->members[i].file] == f)
				released(a, f, a->members[i].pid);
	}
	a->ops.share_done(a->ctx, &f->f);
}

static void part(struct attachments *a, struct file *f)
{
	f->f.shared = false;
	for (size_t i = 0; a->attached && i < a->cnt; i++)
		if (&a->files[a->members[i].file] == f)
			attach_own(a, &a->members[i]);
	a->ops.share(a->ctx, &f->f, false);
	say(a, f, "in each process by itself");
	usleep(IN_FLIGHT_US);
	uprobes__detach(f->sets, ATTACHMENTS_SETS);
	a->ops.share_done(a->ctx, &f->f);
	released(a, f, 0);
}

static void settle_file(struct attachments *a, struct file *f)
{
	bool may = a->ops.may_share && a->ops.may_share(a->ctx, &f->f);

	if (!f->f.shared && may && !f->refused && f->members >= ATTACHMENTS_SHARED)
		share(a, f);
	else if (f->f.shared && (!may || f->members <= ATTACHMENTS_APART))
		part(a, f);
	else if (f->f.shared && f->late && a->attached)
		(void)attach_shared(a, f);
}

void attachments__settle(struct attachments *a)
{
	for (size_t i = 0; i < a->file_cnt; i++)
		if (a->files[i].f.fd >= 0)
			settle_file(a, &a->files[i]);
	for (size_t i = 0; a->attached && i < a->cnt; i++)
		if ((!a->members[i].tried || a->members[i].late) &&
		    !a->files[a->members[i].file].f.shared)
			attach_own(a, &a->members[i]);
}

void attachments__attach(struct attachments *a)
{
	a->attached = true;
	for (size_t i = 0; i < a->file_cnt; i++)
		if (a->files[i].f.shared)
			(void)attach_shared(a, &a->files[i]);
	for (size_t i = 0; i < a->cnt; i++)
		if (!a->files[a->members[i].file].f.shared)
			attach_own(a, &a->members[i]);
}

/* ---- detaching ---- */

int attachments__detach(struct attachments *a)
{
	size_t cnt = a->cnt + a->file_cnt, at = 0;
	struct uprobes **sets = calloc(cnt + 1, ATTACHMENTS_SETS * sizeof(*sets));

	if (!sets)
		return -ENOMEM;
	a->attached = false;
	for (size_t i = 0; i < a->cnt; i++)
		take_own(a, &a->members[i], sets + ATTACHMENTS_SETS * at++);
	for (size_t i = 0; i < a->file_cnt; i++) {
		memcpy(sets + ATTACHMENTS_SETS * at++, a->files[i].sets, sizeof(a->files[i].sets));
		memset(a->files[i].sets, 0, sizeof(a->files[i].sets));
	}
	uprobes__detach(sets, cnt * ATTACHMENTS_SETS);
	free(sets);
	return 0;
}

size_t attachments__drop(struct attachments *a, bool (*keep)(void *keep_ctx, pid_t pid),
			 void *keep_ctx)
{
	struct uprobes *sets[DROP_AT_ONCE][ATTACHMENTS_SETS];
	size_t kept = 0, cnt = 0;

	for (size_t i = 0; i < a->cnt; i++) {
		struct member *m = &a->members[i];

		if (!m->pid || cnt == DROP_AT_ONCE || keep(keep_ctx, m->pid)) {
			a->members[kept++] = *m;
			continue;
		}
		take_own(a, m, sets[cnt++]);
		released(a, &a->files[m->file], m->pid);
		a->files[m->file].members--;
	}
	a->cnt = kept;
	if (!cnt)
		return 0;
	uprobes__detach(sets[0], cnt * ATTACHMENTS_SETS);
	for (size_t i = 0; i < a->file_cnt; i++)
		if (a->files[i].f.fd >= 0 && !a->files[i].members)
			forget_file(a, &a->files[i]);
	return cnt;
}

void attachments__relink(struct attachments *a, pid_t pid)
{
	for (size_t i = 0; i < a->cnt; i++) {
		struct uprobes *sets[ATTACHMENTS_SETS];
		struct member *m = &a->members[i];

		if (m->pid != pid)
			continue;
		take_own(a, m, sets);
		uprobes__detach(sets, ATTACHMENTS_SETS);
		m->late = true;
		log_debug("process %d goes on in another thread: '%s' is probed anew", (int)pid,
			  objects__info(a->objects, a->files[m->file].f.object)->path);
	}
}

static size_t points_of(const struct member *m)
{
	size_t ret = 0;

	for (size_t i = 0; i < ATTACHMENTS_SETS; i++)
		ret += m->sets[i] ? uprobes__point_cnt(m->sets[i]) : 0;
	return ret;
}

/* Has it forked since there were so many forks? */
static bool has_forked(const struct target_forks *forks, uint64_t since, pid_t pid)
{
	if (forks->cnt - since > TARGET_FORKS)
		return true;
	for (uint64_t n = since; n < forks->cnt; n++)
		if (forks->forkers[n % TARGET_FORKS] == (uint32_t)pid)
			return true;
	return false;
}

/* The links of the process that has the most: they find the children of all. NULL: no child has the file. */
static const struct member *find_cleaner(const struct attachments *a, const struct file *f,
					 const struct target_forks *forks)
{
	const struct member *most = NULL;
	bool any = false;

	for (size_t i = 0; i < a->cnt; i++) {
		const struct member *m = &a->members[i];

		if (!m->pid || &a->files[m->file] != f)
			continue;
		any = any || has_forked(forks, a->forks, m->pid);
		if (!most || points_of(m) > points_of(most))
			most = m;
	}
	return any ? most : NULL;
}

void attachments__clean_children(struct attachments *a, const struct target_forks *forks)
{
	struct uprobes **sets;
	size_t cnt = 0;

	if (forks->cnt == a->forks || util_monotonic_ns() < a->next_clean_ns)
		return;
	sets = calloc(a->file_cnt + 1, ATTACHMENTS_SETS * sizeof(*sets));
	if (!sets)
		return;
	for (size_t i = 0; i < a->file_cnt; i++) {
		const struct member *m =
			a->files[i].f.own ? find_cleaner(a, &a->files[i], forks) : NULL;

		if (m)
			memcpy(sets + ATTACHMENTS_SETS * cnt++, m->sets, sizeof(m->sets));
	}
	if (cnt)
		(void)uprobes__clean_children(sets, ATTACHMENTS_SETS * cnt);
	free(sets);
	a->forks = forks->cnt;
	/* what it takes is not to be all that is done */
	a->next_clean_ns = util_monotonic_ns() + CLEAN_NS;
}

/* ---- what is asked ---- */

bool attachments__in(const struct attachments *a, pid_t pid, uint32_t object)
{
	for (size_t i = 0; i < a->cnt; i++) {
		const struct member *m = &a->members[i];

		if ((m->pid == pid || !m->pid) && a->files[m->file].f.object == object)
			return true;
	}
	return false;
}

size_t attachments__most(const struct attachments *a)
{
	size_t ret = 0;

	for (size_t i = 0; i < a->file_cnt; i++)
		ret = MAX(ret, a->files[i].f.own);
	return ret;
}

uint64_t attachments__shared_ns(const struct attachments *a, uint32_t object)
{
	for (size_t i = 0; i < a->file_cnt; i++)
		if (a->files[i].f.shared && a->files[i].f.object == object)
			return a->files[i].since_ns;
	return UINT64_MAX;
}

bool attachments__any(const struct attachments *a, bool (*is)(void *is_ctx, uint32_t object),
		      void *is_ctx)
{
	for (size_t i = 0; i < a->file_cnt; i++)
		if (a->files[i].f.fd >= 0 && is(is_ctx, a->files[i].f.object))
			return true;
	return false;
}
