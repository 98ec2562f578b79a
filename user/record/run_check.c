// SPDX-License-Identifier: BSD-2-Clause
/* Is there what was named? Asked before anything is loaded, which takes a moment, or recorded. */
#include <linux/types.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/proc_status.h"
#include "base/util.h"
#include "options.h"
#include "record/run_parts.h"

/* Of proc_pid_status(5). */
struct status {
	uint32_t tgid, threads;
	bool zombie;
};

/* False: it cannot be told, as where /proc is mounted with hidepid. */
static bool read_status(uint32_t tid, struct status *ret)
{
	const char *state;
	char *text;

	if (proc_status_read(PROC_STATUS_DIR, tid, &text))
		return false;
	state = proc_status_line(text, "State");
	*ret = (struct status){ .tgid = (uint32_t)proc_status_number(text, "Tgid"),
				.threads = (uint32_t)proc_status_number(text, "Threads"),
				.zombie = state && !strncmp(state, "\tZ", 2) };
	free(text);
	return true;
}

static bool is_gone(uint32_t tid)
{
	return kill((pid_t)tid, 0) && errno == ESRCH;
}

static int check_pid(uint32_t pid)
{
	struct status s;

	if (!read_status(pid, &s)) {
		if (!is_gone(pid))
			return 0;
		log_error("no process %u", pid);
		return -ESRCH;
	}
	if (s.tgid && s.tgid != pid) {
		log_error("%u is a thread of process %u (--pid %u --tid %u)", pid, s.tgid, s.tgid,
			  pid);
		return -ESRCH;
	}
	/* a main thread may have ended before the others */
	if (s.zombie && s.threads <= 1) {
		log_error(
			"process %u has ended: there is nothing left of it but its exit status, "
			"for its parent",
			pid);
		return -ESRCH;
	}
	return 0;
}

static int check_tid(const struct options *o, uint32_t tid)
{
	bool among = o->all;
	struct status s;

	if (!read_status(tid, &s)) {
		if (!is_gone(tid))
			return 0;
		log_error("no thread %u", tid);
		return -ESRCH;
	}
	for (size_t i = 0; i < o->pids.cnt; i++)
		among |= o->pids.ids[i] == s.tgid;
	/* those of followed children are found, or not, once these are known */
	if (among || o->follow)
		return 0;
	log_error("no thread %u in the processes named: it is one of process %u", tid, s.tgid);
	return -ESRCH;
}

static int check_cgroup(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = fd < 0 ? -errno : 0;
	struct statfs fs;

	if (!err && (fstatfs(fd, &fs) || fs.f_type != CGROUP2_SUPER_MAGIC))
		err = -EINVAL;
	if (fd >= 0)
		close(fd);
	if (err)
		log_error(
			"cannot use '%s' as a control group: %s (groups are the folders of "
			"cgroup2: findmnt -t cgroup2)",
			path, err == -EINVAL ? "it is none of cgroup2's" : strerror(-err));
	return err;
}

/* What execvp(3) will make of its name. */
static int check_command(const char *name)
{
	const char *remedy = "";
	char path[PATH_MAX];
	struct stat st;
	int err = 0;

	if (!util_find_program(name, path, sizeof(path))) {
		err = -ENOENT;
		remedy = " (it is in no folder of PATH; one of this folder needs ./)";
	} else if (stat(path, &st)) {
		err = -errno;
	} else if (S_ISDIR(st.st_mode)) {
		err = -EISDIR;
	} else if (!S_ISREG(st.st_mode) || access(path, X_OK)) {
		err = -EACCES;
		remedy = " (chmod +x, or name what interprets it)";
	}
	if (err)
		log_error("cannot start '%s': %s%s", name, strerror(-err), remedy);
	return err;
}

int run_check_targets(const struct run *r)
{
	const struct options *o = r->opts;
	int err = o->argv ? check_command(o->argv[0]) : 0;

	for (size_t i = 0; !err && i < o->pids.cnt; i++)
		err = check_pid(o->pids.ids[i]);
	for (size_t i = 0; !err && i < o->tids.cnt && !o->argv; i++)
		err = check_tid(o, o->tids.ids[i]);
	if (!err && o->cgroup)
		err = check_cgroup(o->cgroup);
	return err;
}
