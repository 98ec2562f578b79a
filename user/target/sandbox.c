/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each of the means would nearly do by itself: no descriptor but two, no capability, another user,
 * limits, landlock, and a list of the system calls that are needed.
 */
#include "target/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/caps.h"
#include "base/util.h"

#define NOBODY 65534
#define MAX_MEMORY (4ULL << 30) /* beyond what was there; debug sections may have 2 GiB */
#define MAX_FDS 16
/* CAP_KILL: only what the parent can end then becomes another user */
#define TO_BECOME_NOBODY (CAPS_BIT(CAP_SETUID) | CAPS_BIT(CAP_SETGID) | CAPS_BIT(CAP_KILL))
/* files that not everybody may read; /proc/PID/root; /proc/PID/map_files */
#define TO_OPEN                                                     \
	(CAPS_BIT(CAP_DAC_READ_SEARCH) | CAPS_BIT(CAP_SYS_PTRACE) | \
	 CAPS_BIT(CAP_CHECKPOINT_RESTORE))
#define MAX_FILTER 512

/* ---- system calls ---- */

/* What a probed function is made to call (6.11, 6.18), with --all -P heap this process's, too; from
 * elsewhere they are of no use. 6.14 lets them pass by itself. */
#define SYS_URETPROBE 335
#define SYS_UPROBE 336

struct check { /* (argument & mask) == value */
	uint8_t arg;
	uint32_t mask, value;
};

struct allowed {
	int nr;
	struct check checks[2];
	uint8_t check_cnt;
	int refused; /* errno that it fails with; 0: it may go on */
};

/* What glibc's allocator, our readers and libelf, libdw and zlib ask for. */
static const struct allowed reader_calls[] = {
#ifdef __SANITIZE_ADDRESS__
	{ .nr = SYS_sigaltstack }, /* ASan asks for it where a function does not return */
#endif
	{ .nr = SYS_pread64 },
	{ .nr = SYS_recvfrom },
	{ .nr = SYS_sendto },
	{ .nr = SYS_recvmsg },
	{ .nr = SYS_close },
	{ .nr = SYS_fstat },
	/* glibc's fstat */
	{ .nr = SYS_newfstatat, .checks = { { 3, ~0U, AT_EMPTY_PATH } }, .check_cnt = 1 },
	{ .nr = SYS_lseek },
	{ .nr = SYS_fcntl,
	  .checks = { { 1, ~(F_GETFD ^ F_GETFL), F_GETFD } },
	  .check_cnt = 1 }, /* or F_GETFL */
	{ .nr = SYS_mmap,
	  .checks = { { 2, PROT_EXEC, 0 }, { 3, MAP_ANONYMOUS, MAP_ANONYMOUS } },
	  .check_cnt = 2 },
	{ .nr = SYS_mprotect, .checks = { { 2, PROT_EXEC, 0 } }, .check_cnt = 1 },
	{ .nr = SYS_munmap },
	{ .nr = SYS_mremap },
	{ .nr = SYS_madvise },
	{ .nr = SYS_brk },
	{ .nr = SYS_futex },
	{ .nr = SYS_getrandom },
	{ .nr = SYS_sysinfo },
	{ .nr = SYS_clock_gettime },
	{ .nr = SYS_restart_syscall },
	{ .nr = SYS_exit_group },
	{ .nr = SYS_URETPROBE },
	{ .nr = SYS_UPROBE },
	/* libdw asks for the path of its file, next to which it would look for others */
	{ .nr = SYS_readlink, .refused = EPERM },
	{ .nr = SYS_lstat, .refused = EPERM },
};

static const struct allowed opener_calls[] = {
#ifdef __SANITIZE_ADDRESS__
	{ .nr = SYS_sigaltstack }, /* ASan asks for it where a function does not return */
#endif
	{ .nr = SYS_recvmsg },
	{ .nr = SYS_sendmsg },
	{ .nr = SYS_openat,
	  .checks = { { 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY } },
	  .check_cnt = 1 },
	{ .nr = SYS_close },
	{ .nr = SYS_restart_syscall },
	{ .nr = SYS_exit_group },
	{ .nr = SYS_URETPROBE },
	{ .nr = SYS_UPROBE },
};

/* All of it jumps forward, to the next call's test or to the end of its own. */
static size_t add_call(struct sock_filter *f, const struct allowed *a)
{
	size_t n = 0, len = 2 + 3U * a->check_cnt, i;

	f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, a->nr, 0, len);
	for (i = 0; i < a->check_cnt; i++) {
		const struct check *c = &a->checks[i];

		f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						      offsetof(struct seccomp_data, args[c->arg]));
		f[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, c->mask);
		f[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, c->value, 0,
						    len - n);
		n++;
	}
	f[n++] = (struct sock_filter)BPF_STMT(
		BPF_RET | BPF_K,
		a->refused ? SECCOMP_RET_ERRNO | (uint32_t)a->refused : SECCOMP_RET_ALLOW);
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	return n;
}

static int filter_calls(const struct allowed *calls, size_t cnt)
{
	static const struct sock_filter begin[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_filter f[MAX_FILTER];
	struct sock_fprog prog = { .len = ARRAY_SIZE(begin), .filter = f };

	memcpy(f, begin, sizeof(begin));
	for (size_t i = 0; i < cnt; i++)
		prog.len += add_call(f + prog.len, &calls[i]);
	f[prog.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? -errno : 0;
}
_Static_assert(F_GETFD == 1 && F_GETFL == 3, "they differ in one bit");
_Static_assert(ARRAY_SIZE(reader_calls) * (3 + 3 * 2) + 5 <= MAX_FILTER, "the filter has room");

/* ---- everything else ---- */

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

static int limit(int resource, rlim_t to)
{
	struct rlimit l = { to, to };

	return setrlimit(resource, &l) ? -errno : 0;
}

/* If memory gets short, it is not to be what we serve that has to go: proc(5), oom_score_adj. */
static void end_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "1000", 4);
	close(fd);
}

static int limit_resources(enum sandbox kind)
{
	int err = limit(RLIMIT_FSIZE, 0);

	if (!err)
		err = limit(RLIMIT_CORE, 0);
	if (!err)
		err = limit(RLIMIT_NOFILE, MAX_FDS);
	if (!err && kind == SANDBOX_READER)
		err = limit(RLIMIT_AS, address_space() + MAX_MEMORY);
	return err;
}

/* landlock(7): no access to any path; older kernels have none. */
static int forbid_paths(void)
{
	struct landlock_ruleset_attr attr = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE |
				     LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_DIR |
				     LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
				     LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |
				     LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
				     LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM,
	};
	int fd = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0), err;

	if (fd < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP ? 0 : -errno;
	err = syscall(SYS_landlock_restrict_self, fd, 0) ? -errno : 0;
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
	return kind == SANDBOX_READER ? TO_BECOME_NOBODY : TO_OPEN;
}

/* Keeps what was handed on. */
static int drop_capabilities(enum sandbox kind)
{
	uint64_t permitted = 0, effective, kept = 0;
	int err = caps_handed_on(&kept);

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	/* the bounding set only matters to an exec; without CAP_SETPCAP it stays */
	for (int cap = 0; !prctl(PR_CAPBSET_DROP, cap, 0, 0, 0); cap++)
		;
	if (!err)
		err = caps_get(&permitted, &effective);
	kept &= permitted & sandbox_rights(kind);
	return err ? err : caps_set(kept, kept);
}

int sandbox_enter(enum sandbox kind, int in, int out, pid_t parent)
{
	/* what a terminal sends to all of its processes is for the parent */
	static const int ignored[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP };
	bool reader = kind == SANDBOX_READER;
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		signal(ignored[i], SIG_IGN);
	if (prctl(PR_SET_NAME, reader ? "bpfprof-reader" : "bpfprof-opener"))
		return -errno;
	err = keep_descriptors(in, out);
	/* asks /proc the first time */
	(void)util_monotonic_ns();
	if (reader)
		end_first();
	if (!err)
		err = limit_resources(kind);
	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		err = -errno;
	if (!err && reader)
		err = forbid_paths();
	if (!err)
		err = drop_capabilities(kind);
	if (!err && reader)
		err = become_nobody();
	if (!err && reader)
		err = caps_set(0, 0);
	/* a change of user would have cleared both */
	if (!err && (prctl(PR_SET_DUMPABLE, 0) || prctl(PR_SET_PDEATHSIG, SIGKILL)))
		err = -errno;
	if (!err && getppid() != parent)
		err = -ESRCH;
	if (err)
		return err;
	return reader ? filter_calls(reader_calls, ARRAY_SIZE(reader_calls)) :
			filter_calls(opener_calls, ARRAY_SIZE(opener_calls));
}
