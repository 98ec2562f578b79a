/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each of the means would nearly do by itself: no descriptor but two, no capability, another user,
 * limits, landlock, and a list of the system calls that are needed.
 */
#include "helper/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/memory_max.h"
#include "base/util.h"
#include "helper/sandbox_calls.h"

#define NOBODY 65534
/* CAP_KILL: only what the parent can end then becomes another user */
#define TO_BECOME_NOBODY (CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SETGID) | CAPS_BIT(CAP_KILL))
/* files that not everybody may read; /proc/PID/root; /proc/PID/map_files */
#define TO_OPEN                                                     \
	(CAPS_BIT(CAP_DAC_READ_SEARCH) | CAPS_BIT(CAP_SYS_PTRACE) | \
	 CAPS_BIT(CAP_CHECKPOINT_RESTORE))

/* What the kinds differ in. */
struct rules {
	const char *name;
	uint64_t rights;     /* handed on by the parent: to become nobody with, or to be kept */
	bool nobody;	     /* becomes nobody, and loses them */
	rlim_t max_fds;	     /* 0: as the parent */
	uint64_t max_memory; /* bytes beyond what was there, if there are as many; 0: no limit */
	rlim_t max_file;     /* bytes of a file that it writes */
	bool lasts;	     /* is not the first to go when memory gets short */
	bool any_path;	     /* sees all files, else those below `paths` */
	const char *const *paths;
};

/* Where names of machines, and whom to trust, are looked up. */
static const char *const network_paths[] = {
	"/etc",
	"/usr",
	"/lib",
	"/lib64",
	"/run/NetworkManager",
	"/run/nscd",
	"/run/resolvconf",
	"/run/systemd/resolve",
	"/var/lib/ca-certificates",
	NULL,
};

static const struct rules rules[] = {
	[SANDBOX_READER] = {
		.name = "bpfprof-reader",
		.rights = TO_BECOME_NOBODY,
		.nobody = true,
		.max_fds = 16,
		.max_memory = 4ULL << 30, /* debug sections may have 2 GiB */
	},
	[SANDBOX_OPENER] = {
		.name = "bpfprof-opener",
		.rights = TO_OPEN,
		/* whoever sends descriptors may have no more of them under way than this, all of
		 * its user's counted (unix(7), ETOOMANYREFS): also those of other programs */
		.max_fds = 0,
		.lasts = true,
		.any_path = true,
	},
	[SANDBOX_COURIER] = {
		.name = "bpfprof-courier",
		.rights = TO_BECOME_NOBODY,
		.nobody = true,
		.max_fds = 512,
		.max_memory = 1ULL << 30,
		.paths = network_paths,
	},
	[SANDBOX_FETCHER] = {
		.name = "bpfprof-fetcher",
		.rights = TO_BECOME_NOBODY,
		.nobody = true,
		.max_fds = 512,
		.max_memory = 1ULL << 30,
		.max_file = 512ULL << 20,
		.paths = network_paths,
	},
	[SANDBOX_SERVER] = {
		.name = "bpfprof-server",
		.rights = TO_BECOME_NOBODY,
		.nobody = true,
		.max_fds = 1200, /* a client has one, and a few more its profile */
		.max_memory = 256ULL << 20,
	},
};

const char *sandbox_name(enum sandbox kind)
{
	return rules[kind].name;
}

static int keep_descriptors(int in, int out)
{
	/* out of the way of each other */
	in = fcntl(in, F_DUPFD, 2);
	out = fcntl(out, F_DUPFD, 2);
	if (in < 0 || out < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0)
		return -errno;
	return close_range(2, UINT_MAX, 0) ? -errno : 0;
}

/* Bytes of address space that the process has by now. */
static uint64_t address_space(void)
{
	char *buf;
	size_t sz;
	uint64_t pages;

	if (util_read_file("/proc/self/statm", 256, &buf, &sz))
		return 0;
	pages = strtoull(buf, NULL, 10);
	free(buf);
	return pages * sysconf(_SC_PAGESIZE);
}

/* A hard limit that is lower already stays: to raise it takes a capability. */
static int limit(int resource, rlim_t to)
{
	struct rlimit l;

	if (getrlimit(resource, &l))
		return -errno;
	l.rlim_cur = l.rlim_max = MIN(l.rlim_max, to);
	return setrlimit(resource, &l) ? -errno : 0;
}

/* proc(5), oom_score_adj */
void sandbox_end_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "1000", 4);
	close(fd);
}

static int limit_resources(const struct rules *r, uint64_t memory_max)
{
	int err = limit(RLIMIT_FSIZE, r->max_file);

	if (!err)
		err = limit(RLIMIT_CORE, 0);
	if (!err && r->max_fds)
		err = limit(RLIMIT_NOFILE, r->max_fds);
	if (!err && r->max_memory)
		err = limit(RLIMIT_AS,
			    address_space() + memory_max_share(memory_max, 2, r->max_memory));
	return err;
}

#define READ (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

/* A path that is not there needs no leave. */
static int allow_reading(int ruleset, const char *path)
{
	struct landlock_path_beneath_attr beneath = { .allowed_access = READ };
	int fd = open(path, O_PATH | O_CLOEXEC), err = 0;

	if (fd < 0)
		return 0;
	beneath.parent_fd = fd;
	if (syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0))
		err = -errno;
	close(fd);
	return err;
}

/* landlock(7): no access to any path but these, and to them only for reading; older kernels have
 * none. */
static int forbid_paths(const char *const *but)
{
	struct landlock_ruleset_attr attr = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				     READ | LANDLOCK_ACCESS_FS_REMOVE_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
				     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM,
	};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0), err = 0;

	if (fd < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	for (; but && *but && !err; but++)
		err = allow_reading(fd, *but);
	if (!err && syscall(SYS_landlock_restrict_self, fd, 0))
		err = -errno;
	close(fd);
	return err;
}

/*
 * nobody's rights, where we may choose. A parent without CAP_KILL, which it would have handed on,
 * may end us only as long as the saved user is its own: kill(2).
 */
static int become_nobody(void)
{
	uint64_t permitted, effective;
	int err = caps_get(&permitted, &effective);
	uid_t saved = effective & CAPS_BIT(CAP_KILL) ? NOBODY : 0;

	if (err || geteuid())
		return err;
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, saved))
		return errno == EPERM || errno == EINVAL ? 0 : -errno;
	return 0;
}

uint64_t sandbox_rights(enum sandbox kind)
{
	return rules[kind].rights;
}

/* Keeps what was handed on. */
static int drop_capabilities(const struct rules *r)
{
	uint64_t permitted = 0, effective, kept = 0;
	int err = caps_handed_on(&kept);

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* the bounding set only matters to an exec; without CAP_SETPCAP it stays */
	for (int cap = 0; !prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); cap++)
		;
	if (!err)
		err = caps_get(&permitted, &effective);
	kept &= permitted & r->rights;
	return err ? err : caps_set(kept, kept);
}

/* All but the system calls. */
static int give_up(const struct rules *r, int in, int out, uint64_t memory_max)
{
	int err = keep_descriptors(in, out);

	/* no folder is kept from being unmounted */
	if (!err && chdir("/"))
		err = -errno;
	/* asks /proc the first time */
	(void)util_monotonic_ns();
	if (!r->lasts)
		sandbox_end_first();
	if (!err)
		err = limit_resources(r, memory_max);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (!err && !r->any_path)
		err = forbid_paths(r->paths);
	if (!err)
		err = drop_capabilities(r);
	if (!err && r->nobody)
		err = become_nobody();
	if (!err && r->nobody)
		err = caps_set(0, 0);
	return err;
}

int sandbox_enter(enum sandbox kind, int in, int out, pid_t parent, uint64_t memory_max)
{
	/* what a terminal sends to all of its processes is for the parent */
	static const int ignored[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP };
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	if (prctl(PR_SET_NAME, rules[kind].name))
		return -errno;
	err = give_up(&rules[kind], in, out, memory_max);
	/* a change of user would have cleared both */
	if (!err && (prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL)))
		err = -errno;
	if (!err && getppid() != parent)
		err = -ESRCH;
	return err ? err : sandbox_filter_calls(kind);
}
