// SPDX-License-Identifier: BSD-2-Clause
/* Which links there are, for how many processes: links that only count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "capture/attachments.h"
#include "capture/targets.h"
#include "kernel/uprobes.h"
#include "target/objects.h"

#define FILES 2
static const char *const paths[FILES] = { "/proc/self/exe", "/bin/sh" };

/* What was done to the links of a file. */
static struct seen {
	size_t attached, first, shared, released, failed; /* calls */
	size_t own;					  /* at the last call for all */
	bool shares, was_attached; /* a link for all was there when it began to count */
	bool changes;		   /* from share to share_done */
	pid_t last_pid, last_released;
	size_t of_processes, of_all; /* what was released */
} seen[FILES];
static int refuse, refuse_shared; /* -errno */
static bool may;

/* ---- links that are numbers ---- */

static bool links;    /* there are some */
static uint64_t late; /* the clock is ahead by so much, in ns */
static struct {
	size_t calls;
	uint64_t takes_ns;
	struct uprobes *sets[FILES * ATTACHMENTS_SETS]; /* of the last call, NULLs left out */
	size_t cnt;
} cleaned;

static struct uprobes *link_of(uint32_t file, pid_t pid)
{
	return (struct uprobes *)(uintptr_t)(1000 * (file + 1) + (uint32_t)pid);
}

size_t __wrap_uprobes__point_cnt(const struct uprobes *set);
size_t __wrap_uprobes__point_cnt(const struct uprobes *set)
{
	return (uintptr_t)set % 1000;
}

void __wrap_uprobes__detach(struct uprobes **sets, size_t cnt);
void __wrap_uprobes__detach(struct uprobes **sets, size_t cnt)
{
	memset(sets, 0, cnt * sizeof(struct uprobes *));
}

int __wrap_uprobes__clean_children(struct uprobes *const *sets, size_t cnt);
int __wrap_uprobes__clean_children(struct uprobes *const *sets, size_t cnt)
{
	cleaned.calls++;
	cleaned.cnt = 0;
	for (size_t i = 0; i < cnt; i++)
		if (sets[i]) {
			assert_true(cleaned.cnt < ARRAY_SIZE(cleaned.sets));
			cleaned.sets[cleaned.cnt++] = sets[i];
		}
	late += cleaned.takes_ns;
	return 0;
}

uint64_t __wrap_util_monotonic_ns(void);
uint64_t __wrap_util_monotonic_ns(void)
{
	return 100 * NSEC_PER_SEC + late;
}

/* ---- what is done with them ---- */

static int attach(void *ctx, const struct attachments_file *f, pid_t pid, bool shared, bool first,
		  struct uprobes *ret[ATTACHMENTS_SETS])
{
	struct seen *s = &seen[f->number];
	int err = shared ? refuse_shared : refuse;

	(void)ctx;
	memset(ret, 0, ATTACHMENTS_SETS * sizeof(*ret));
	if (!err && links)
		ret[0] = link_of(f->number, pid);
	assert_true(fcntl(f->fd, F_GETFD) >= 0);
	s->first += first;
	s->shared += shared;
	s->attached += !shared;
	s->last_pid = pid;
	if (shared) {
		assert_int_equal(pid, 0);
		s->own = f->own;
	}
	return err;
}

static void failed(void *ctx, const struct attachments_file *f, pid_t pid, int err)
{
	(void)ctx;
	(void)pid;
	assert_true(err < 0);
	seen[f->number].failed++;
}

static void released(void *ctx, const struct attachments_file *f, pid_t pid)
{
	(void)ctx;
	seen[f->number].released++;
	seen[f->number].last_released = pid;
	seen[f->number].of_processes += pid != 0;
	seen[f->number].of_all += !pid;
}

static bool may_share(void *ctx, const struct attachments_file *f)
{
	(void)ctx;
	(void)f;
	return may;
}

static void share(void *ctx, const struct attachments_file *f, bool shared)
{
	struct seen *s = &seen[f->number];

	(void)ctx;
	assert_int_not_equal(s->shares, shared);
	assert_false(s->changes);
	s->changes = true;
	s->shares = shared;
	s->was_attached = shared ? s->shared : s->attached;
}

static void share_done(void *ctx, const struct attachments_file *f)
{
	(void)ctx;
	assert_true(seen[f->number].changes);
	seen[f->number].changes = false;
}

static const struct attachments_ops ops = { .attach = attach,
					    .failed = failed,
					    .released = released,
					    .may_share = may_share,
					    .share = share,
					    .share_done = share_done };

static struct objects *objects;
static uint32_t ids[FILES];

static struct attachments *begin(void)
{
	struct attachments *a;

	objects = objects__new();
	assert_non_null(objects);
	for (int i = 0; i < FILES; i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC);

		assert_true(fd >= 0);
		ids[i] = objects__add(objects, fd, paths[i]);
		assert_int_not_equal(ids[i], OBJECTS_NONE);
	}
	memset(seen, 0, sizeof(seen));
	refuse = refuse_shared = 0;
	may = true;
	links = false;
	late = 0;
	memset(&cleaned, 0, sizeof(cleaned));
	a = attachments__new(&ops, NULL, objects);
	assert_non_null(a);
	return a;
}

static void end(struct attachments *a)
{
	assert_false(seen[0].changes || seen[1].changes);
	attachments__free(a);
	assert_false(seen[0].changes || seen[1].changes);
	objects__free(objects);
}

static void add(struct attachments *a, int file, pid_t first, pid_t last)
{
	for (pid_t pid = first; pid <= last; pid++) {
		int fd = open(paths[file], O_RDONLY | O_CLOEXEC);

		assert_true(fd >= 0);
		assert_int_equal(attachments__add(a, pid, fd, ids[file]), 0);
	}
}

static bool up_to(void *ctx, pid_t pid)
{
	return pid <= *(pid_t *)ctx;
}

/* Until no process is left but those up to last. */
static size_t drop(struct attachments *a, pid_t last)
{
	size_t ret = 0, n;

	while ((n = attachments__drop(a, up_to, &last)))
		ret += n;
	return ret;
}

/* Few have their own links, many share one, also those that come later, and few have their own again;
 * each time the new ones are there before those that are given up. */
static void test_share(void **state)
{
	struct attachments *a = begin();
	struct seen *s = &seen[0];

	(void)state;
	add(a, 0, 1, ATTACHMENTS_SHARED - 1);
	add(a, 0, 1, 3);
	assert_int_equal(s->attached, 0);
	attachments__settle(a);
	assert_int_equal(s->attached, ATTACHMENTS_SHARED - 1);
	assert_int_equal(s->first, ATTACHMENTS_SHARED - 1);
	assert_int_equal(attachments__most(a), ATTACHMENTS_SHARED - 1);
	assert_true(attachments__shared_ns(a, ids[0]) == UINT64_MAX);
	assert_true(attachments__in(a, 1, ids[0]) && !attachments__in(a, 1, ids[1]) &&
		    !attachments__in(a, ATTACHMENTS_SHARED, ids[0]));

	add(a, 0, ATTACHMENTS_SHARED, ATTACHMENTS_SHARED);
	attachments__settle(a);
	assert_int_equal(s->attached, ATTACHMENTS_SHARED - 1);
	assert_int_equal(s->shared, 1);
	assert_int_equal(s->own, ATTACHMENTS_SHARED - 1);
	assert_true(s->shares && s->was_attached);
	assert_int_equal(s->released, ATTACHMENTS_SHARED);
	assert_int_equal(attachments__most(a), 0);
	assert_true(attachments__shared_ns(a, ids[0]) <= util_monotonic_ns());
	add(a, 0, ATTACHMENTS_SHARED + 1, 1000);
	attachments__settle(a);
	assert_int_equal(s->attached, ATTACHMENTS_SHARED - 1);
	assert_int_equal(s->shared, 1);
	assert_true(attachments__in(a, 1000, ids[0]));

	assert_int_equal(drop(a, ATTACHMENTS_APART + 1), 1000 - ATTACHMENTS_APART - 1);
	attachments__settle(a);
	assert_true(s->shares);
	assert_int_equal(drop(a, ATTACHMENTS_APART), 1);
	s->attached = s->released = 0;
	attachments__settle(a);
	assert_true(!s->shares && s->was_attached);
	assert_int_equal(s->attached, ATTACHMENTS_APART);
	assert_int_equal(s->released, 1);
	assert_int_equal(s->last_released, 0);
	assert_int_equal(s->first, ATTACHMENTS_SHARED);
	assert_int_equal(attachments__most(a), ATTACHMENTS_APART);
	end(a);
}

/* While nothing is attached it is only noted who will share. */
static void test_detached(void **state)
{
	struct attachments *a = begin();

	(void)state;
	assert_int_equal(attachments__detach(a), 0);
	add(a, 0, 1, ATTACHMENTS_SHARED);
	add(a, 1, 1, 2);
	attachments__settle(a);
	assert_int_equal(seen[0].shared + seen[0].attached + seen[1].attached, 0);
	assert_true(seen[0].shares && !seen[1].shares);
	for (size_t i = 1; i <= 2; i++) {
		attachments__attach(a);
		assert_int_equal(seen[0].shared, i);
		assert_int_equal(seen[0].attached, 0);
		assert_int_equal(seen[1].attached, 2 * i);
		assert_int_equal(attachments__most(a), 2);
		assert_int_equal(attachments__detach(a), 0);
		assert_int_equal(attachments__most(a), 0);
	}
	end(a);
}

/* Where it must not be, or the kernel does not allow it, each has its own; that something could not be
 * attached is said once of each. */
static void test_refused(void **state)
{
	struct attachments *a = begin();

	(void)state;
	refuse_shared = -EPERM;
	add(a, 0, 1, ATTACHMENTS_SHARED);
	attachments__settle(a);
	attachments__settle(a);
	assert_int_equal(seen[0].shared, 1);
	assert_int_equal(seen[0].failed, 1);
	assert_int_equal(seen[0].attached, ATTACHMENTS_SHARED);
	assert_false(seen[0].shares);

	may = false;
	refuse = -EPERM;
	add(a, 1, 1, ATTACHMENTS_SHARED);
	attachments__settle(a);
	assert_int_equal(seen[1].attached, ATTACHMENTS_SHARED);
	assert_int_equal(seen[1].shared, 0);
	attachments__attach(a);
	assert_int_equal(seen[1].attached, 2 * ATTACHMENTS_SHARED);
	assert_int_equal(seen[1].failed, ATTACHMENTS_SHARED);

	/* what may not be any more */
	may = true;
	refuse = refuse_shared = 0;
	attachments__settle(a);
	assert_true(seen[1].shares);
	may = false;
	attachments__settle(a);
	assert_false(seen[1].shares);
	assert_int_equal(attachments__most(a), ATTACHMENTS_SHARED);
	end(a);
}

/* What keeps the kernel waiting is the same for all: it is said once, and tried again. */
static void test_late(void **state)
{
	struct attachments *a = begin();

	(void)state;
	refuse = -ETIMEDOUT;
	add(a, 0, 1, 3);
	add(a, 1, 1, 2);
	attachments__settle(a);
	assert_int_equal(seen[0].attached + seen[1].attached, 5);
	assert_int_equal(seen[0].failed + seen[1].failed, 1);
	refuse = 0;
	attachments__settle(a);
	assert_int_equal(seen[0].attached + seen[1].attached, 10);
	assert_int_equal(seen[0].first + seen[1].first, 5);
	assert_int_equal(attachments__most(a), 3);
	attachments__settle(a);
	assert_int_equal(seen[0].attached + seen[1].attached, 10);
	assert_int_equal(seen[0].failed + seen[1].failed, 1);
	end(a);
}

/* So is a link for all: one that its members are to share, and one that they share already. */
static void test_late_for_all(void **state)
{
	struct attachments *a = begin();
	struct seen *s = &seen[0];

	(void)state;
	refuse = refuse_shared = -ETIMEDOUT;
	add(a, 0, 1, ATTACHMENTS_SHARED);
	attachments__settle(a);
	assert_int_equal(s->shared, 1);
	assert_false(s->shares);
	refuse = refuse_shared = 0;
	attachments__settle(a);
	assert_int_equal(s->shared, 2);
	assert_true(s->shares);

	assert_int_equal(attachments__detach(a), 0);
	refuse_shared = -ETIMEDOUT;
	attachments__attach(a);
	assert_int_equal(s->shared, 3);
	attachments__settle(a);
	assert_int_equal(s->shared, 4);
	refuse_shared = 0;
	attachments__settle(a);
	assert_int_equal(s->shared, 5);
	attachments__settle(a);
	assert_int_equal(s->shared, 5);
	assert_int_equal(s->failed, 1);
	end(a);
}

/* A late link for all is not tried while nothing is to be attached, nor when few are left to share it. */
static void test_late_given_up(void **state)
{
	struct attachments *a = begin();
	struct seen *s = &seen[0];

	(void)state;
	add(a, 0, 1, ATTACHMENTS_SHARED);
	attachments__settle(a);
	assert_int_equal(attachments__detach(a), 0);
	refuse_shared = -ETIMEDOUT;
	attachments__attach(a);
	assert_int_equal(s->shared, 2);
	assert_int_equal(attachments__detach(a), 0);
	attachments__settle(a);
	assert_int_equal(s->shared, 2);
	attachments__attach(a);
	assert_int_equal(drop(a, ATTACHMENTS_APART), ATTACHMENTS_SHARED - ATTACHMENTS_APART);
	attachments__settle(a);
	attachments__settle(a);
	assert_int_equal(s->shared, 3);
	assert_int_equal(attachments__most(a), ATTACHMENTS_APART);
	end(a);
}

/* A file that nobody has any more is forgotten, and its number given to the next one. */
static void test_number_used_again(void **state)
{
	struct attachments *a = begin();

	(void)state;
	add(a, 0, 1, ATTACHMENTS_SHARED);
	attachments__settle(a);
	assert_true(seen[0].shares);
	assert_int_equal(drop(a, 0), ATTACHMENTS_SHARED);
	assert_false(seen[0].shares);
	memset(seen, 0, sizeof(seen));
	add(a, 1, 5, 5);
	attachments__settle(a);
	assert_int_equal(seen[0].attached, 1);
	assert_int_equal(seen[0].last_pid, 5);
	end(a);
}

/* What its owner keeps for a process, or for all, goes with the last of it. */
static void test_released_at_end(void **state)
{
	struct attachments *a = begin();

	(void)state;
	add(a, 0, 1, 2);
	add(a, 1, 1, ATTACHMENTS_SHARED);
	attachments__settle(a);
	assert_true(seen[1].shares);
	assert_int_equal(seen[0].of_processes, 0);
	end(a);
	assert_int_equal(seen[0].of_processes, 2);
	assert_int_equal(seen[0].of_all, 1);
	assert_int_equal(seen[1].of_all, 1);
}

/* ---- one file below several overlays ---- */

static void write_copy(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	struct stat st;

	assert_true(in >= 0 && out >= 0 && !fstat(in, &st));
	assert_int_equal(sendfile(out, in, NULL, (size_t)st.st_size), st.st_size);
	close(in);
	close(out);
}

/* Below folder, in a mount namespace of our own. False: this kernel has none, or does not let us. */
static bool mount_overlays(const char *folder, int cnt)
{
	char path[256], options[512];

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", folder, "tmpfs", 0, NULL))
		return false;
	snprintf(path, sizeof(path), "%s/lower", folder);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/lower/sh", folder);
	write_copy("/bin/sh", path);
	for (int i = 0; i < cnt; i++) {
		for (const char *const *part =
			     (const char *const[]){ "upper", "work", "merged", NULL };
		     *part; part++) {
			snprintf(path, sizeof(path), "%s/%s%d", folder, *part, i);
			assert_int_equal(mkdir(path, 0755), 0);
		}
		snprintf(options, sizeof(options),
			 "lowerdir=%s/lower,upperdir=%s/upper%d,workdir=%s/work%d", folder, folder,
			 i, folder, i);
		if (mount("overlay", path, "overlay", 0, options))
			return false;
	}
	return true;
}

/* Adds the object that it is, in all processes. */
static uint32_t add_path(struct attachments *a, const char *path, struct stat *ret)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), object_fd = open(path, O_RDONLY | O_CLOEXEC);
	uint32_t object = objects__add(objects, object_fd, path);

	assert_true(fd >= 0 && object_fd >= 0 && !fstat(fd, ret));
	assert_int_not_equal(object, OBJECTS_NONE);
	assert_int_equal(attachments__add(a, 0, fd, object), 0);
	return object;
}

/* Containers of one image: a link on each file would see each hit as often as there are containers. */
static void test_overlays(void **state)
{
	char folder[] = "/tmp/test_attachments.XXXXXX", path[3][256];
	struct stat st[3];
	struct attachments *a;
	uint32_t object;

	(void)state;
	assert_non_null(mkdtemp(folder));
	if (!mount_overlays(folder, 2)) {
		rmdir(folder);
		skip();
	}
	for (int i = 0; i < 2; i++)
		snprintf(path[i], sizeof(path[i]), "%s/merged%d/sh", folder, i);
	/* another file of the same build id */
	snprintf(path[2], sizeof(path[2]), "%s/copy", folder);
	write_copy("/bin/sh", path[2]);
	a = begin();
	object = add_path(a, path[0], &st[0]);
	assert_string_not_equal(objects__info(objects, object)->build_id, "");
	assert_int_equal(add_path(a, path[1], &st[1]), object);
	assert_int_equal(st[0].st_ino, st[1].st_ino);
	assert_int_not_equal(st[0].st_dev, st[1].st_dev);
	attachments__settle(a);
	assert_int_equal(seen[0].attached, 1);
	assert_int_equal(add_path(a, path[2], &st[2]), object);
	attachments__settle(a);
	assert_int_equal(seen[0].attached, 1);
	assert_int_equal(seen[1].attached, 1);
	end(a);
	assert_int_equal(umount2(folder, MNT_DETACH), 0);
	assert_int_equal(rmdir(folder), 0);
}

static void fork_of(struct target_forks *forks, pid_t forker)
{
	forks->forkers[forks->cnt++ % TARGET_FORKS] = forker;
}

/* Children are looked after in one go, by the links of one process for each file that who has forked
 * has, and a second after the last time was over: however long it took. */
static void test_clean_children(void **state)
{
	struct target_forks forks = { 0 };
	struct attachments *a = begin();

	(void)state;
	links = true;
	add(a, 0, 1, 5);
	add(a, 1, 4, 7);
	attachments__settle(a);
	attachments__clean_children(a, &forks);
	assert_int_equal(cleaned.calls, 0);

	cleaned.takes_ns = 3 * NSEC_PER_SEC;
	fork_of(&forks, 4);
	attachments__clean_children(a, &forks);
	assert_int_equal(cleaned.calls, 1);
	assert_int_equal(cleaned.cnt, 2);
	assert_ptr_equal(cleaned.sets[0], link_of(0, 5));
	assert_ptr_equal(cleaned.sets[1], link_of(1, 7));
	fork_of(&forks, 2);
	attachments__clean_children(a, &forks);
	assert_int_equal(cleaned.calls, 1);

	late += NSEC_PER_SEC;
	attachments__clean_children(a, &forks);
	assert_int_equal(cleaned.calls, 2);
	assert_int_equal(cleaned.cnt, 1);
	assert_ptr_equal(cleaned.sets[0], link_of(0, 5));

	/* by who has none of the files; and by so many that not all of them are known */
	late += NSEC_PER_SEC;
	fork_of(&forks, 8);
	attachments__clean_children(a, &forks);
	assert_int_equal(cleaned.calls, 2);
	late += NSEC_PER_SEC;
	for (int i = 0; i <= TARGET_FORKS; i++)
		fork_of(&forks, 8);
	attachments__clean_children(a, &forks);
	assert_int_equal(cleaned.calls, 3);
	assert_int_equal(cleaned.cnt, 2);

	/* what is not attached was taken out of all */
	late += NSEC_PER_SEC;
	assert_int_equal(attachments__detach(a), 0);
	fork_of(&forks, 4);
	attachments__clean_children(a, &forks);
	assert_int_equal(cleaned.calls, 3);
	end(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share),		cmocka_unit_test(test_detached),
		cmocka_unit_test(test_refused),		cmocka_unit_test(test_number_used_again),
		cmocka_unit_test(test_released_at_end), cmocka_unit_test(test_late),
		cmocka_unit_test(test_late_for_all),	cmocka_unit_test(test_late_given_up),
		cmocka_unit_test(test_overlays),	cmocka_unit_test(test_clean_children),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
