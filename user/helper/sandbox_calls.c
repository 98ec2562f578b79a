/* SPDX-License-Identifier: BSD-2-Clause */
/* The system calls that each kind of helper may make: seccomp(2). */
#include "helper/sandbox_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/util.h"

#define MAX_FILTER 1024
#define MAX_LISTS 5 /* of calls, that a kind may make */

/* What a probed function is made to call (6.11, 6.18), with --all -P heap this process's, too; from
 * elsewhere they are of no use. 6.14 lets them pass by itself. */
#define SYS_URETPROBE 335
#define SYS_UPROBE 336

struct check { /* (argument & mask) == value */
	uint8_t arg;
	uint32_t mask, value;
};

/* The first row of a call whose checks are met counts. */
struct allowed {
	int nr;
	struct check checks[2];
	uint8_t check_cnt;
	int refused; /* errno that it fails with; 0: it may go on */
};

/* What every kind asks for. */
static const struct allowed all_calls[] = {
#ifdef __SANITIZE_ADDRESS__
	{ .nr = SYS_sigaltstack }, /* ASan asks for it where a function does not return */
#endif
	{ .nr = SYS_recvmsg },	   { .nr = SYS_close },	    { .nr = SYS_restart_syscall },
	{ .nr = SYS_exit_group },  { .nr = SYS_URETPROBE }, { .nr = SYS_UPROBE },
};

/* glibc's allocator, and what looks at files that are open. */
static const struct allowed memory_calls[] = {
	{ .nr = SYS_pread64 },
	{ .nr = SYS_fstat },
	{ .nr = SYS_mprotect, .checks = { { 2, PROT_EXEC, 0 } }, .check_cnt = 1 },
	{ .nr = SYS_munmap },
	{ .nr = SYS_mremap },
	{ .nr = SYS_madvise },
	{ .nr = SYS_brk },
	{ .nr = SYS_futex },
	{ .nr = SYS_getrandom },
	/* glibc 2.41's getrandom, which asks the kernel for little */
	{ .nr = SYS_rt_sigprocmask },
	{ .nr = SYS_sysinfo },
	{ .nr = SYS_clock_gettime },
};

/* Who waits for several sockets, and answers at one that it was sent. vdso(7) tells the time, unless
 * by a clock that only the kernel can read. */
static const struct allowed socket_calls[] = {
	{ .nr = SYS_read },	    { .nr = SYS_write },	{ .nr = SYS_writev },
	{ .nr = SYS_poll },	    { .nr = SYS_recvfrom },	{ .nr = SYS_accept4 },
	{ .nr = SYS_getsockname },  { .nr = SYS_getpeername },	{ .nr = SYS_getsockopt },
	{ .nr = SYS_setsockopt },   { .nr = SYS_shutdown },	{ .nr = SYS_epoll_create1 },
	{ .nr = SYS_epoll_ctl },    { .nr = SYS_epoll_wait },	{ .nr = SYS_eventfd2 },
	{ .nr = SYS_fcntl },	    { .nr = SYS_rt_sigaction }, { .nr = SYS_exit },
	{ .nr = SYS_gettimeofday }, { .nr = SYS_time },
};

/* What our readers and libelf, libdw and zlib ask for beside these. */
static const struct allowed reader_calls[] = {
	{ .nr = SYS_recvfrom },
	{ .nr = SYS_sendto },
	/* glibc's fstat */
	{ .nr = SYS_newfstatat, .checks = { { 3, ~0U, AT_EMPTY_PATH } }, .check_cnt = 1 },
	{ .nr = SYS_lseek },
	{ .nr = SYS_fcntl,
	  .checks = { { 1, ~(F_GETFD ^ F_GETFL), F_GETFD } },
	  .check_cnt = 1 }, /* or F_GETFL */
	{ .nr = SYS_mmap,
	  .checks = { { 2, PROT_EXEC, 0 }, { 3, MAP_ANONYMOUS, MAP_ANONYMOUS } },
	  .check_cnt = 2 },
	/* libdw asks for the path of its file, next to which it would look for others */
	{ .nr = SYS_readlink, .refused = EPERM },
	{ .nr = SYS_lstat, .refused = EPERM },
};

static const struct allowed opener_calls[] = {
	{ .nr = SYS_sendmsg },
	{ .nr = SYS_openat,
	  .checks = { { 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY } },
	  .check_cnt = 1 },
	{ .nr = SYS_readlinkat },
	/* of what is open */
	{ .nr = SYS_statx,
	  .checks = { { 2, ~0U, AT_EMPTY_PATH | AT_STATX_DONT_SYNC } },
	  .check_cnt = 1 },
	{ .nr = SYS_fcntl,
	  .checks = { { 1, ~(F_GETFD ^ F_GETFL), F_GETFD } },
	  .check_cnt = 1 }, /* or F_GETFL */
};

/*
 * What libcurl with its resolver's threads, glibc's name service, OpenSSL and zlib ask for. A name
 * service that is not in glibc itself would be loaded as code: it is unavailable.
 */
static const struct allowed courier_calls[] = {
	{ .nr = SYS_readv },
	{ .nr = SYS_ppoll },
	{ .nr = SYS_sendto },
	{ .nr = SYS_sendmsg },
	{ .nr = SYS_sendmmsg },
	{ .nr = SYS_recvmmsg },
	{ .nr = SYS_socket, .checks = { { 0, ~0U, AF_INET } }, .check_cnt = 1 },
	{ .nr = SYS_socket, .checks = { { 0, ~0U, AF_INET6 } }, .check_cnt = 1 },
	/* of name services, and what addresses there are */
	{ .nr = SYS_socket, .checks = { { 0, ~0U, AF_UNIX } }, .check_cnt = 1 },
	{ .nr = SYS_socket, .checks = { { 0, ~0U, AF_NETLINK } }, .check_cnt = 1 },
	{ .nr = SYS_socket, .refused = EAFNOSUPPORT },
	{ .nr = SYS_socketpair, .checks = { { 0, ~0U, AF_UNIX } }, .check_cnt = 1 },
	{ .nr = SYS_connect },
	{ .nr = SYS_bind },
	{ .nr = SYS_pipe2 },
	{ .nr = SYS_openat,
	  .checks = { { 2, O_ACCMODE | O_CREAT | O_TRUNC, O_RDONLY } },
	  .check_cnt = 1 },
	{ .nr = SYS_openat, .refused = EACCES },
	{ .nr = SYS_access },
	{ .nr = SYS_stat },
	{ .nr = SYS_newfstatat },
	{ .nr = SYS_lseek },
	{ .nr = SYS_ioctl, .checks = { { 1, ~0U, FIONREAD } }, .check_cnt = 1 },
	{ .nr = SYS_ioctl, .refused = ENOTTY },
	{ .nr = SYS_readlink, .refused = EPERM },
	{ .nr = SYS_mmap, .checks = { { 2, PROT_EXEC, 0 } }, .check_cnt = 1 },
	{ .nr = SYS_mmap, .refused = EPERM },
	/* its flags are in memory, where they cannot be checked: clone is used instead */
	{ .nr = SYS_clone3, .refused = ENOSYS },
	{ .nr = SYS_clone,
	  .checks = { { 0, CLONE_THREAD | CLONE_VM, CLONE_THREAD | CLONE_VM } },
	  .check_cnt = 1 },
	{ .nr = SYS_set_robust_list },
	{ .nr = SYS_rseq },
	{ .nr = SYS_sigaltstack },
	{ .nr = SYS_sched_yield },
	{ .nr = SYS_sched_getaffinity },
	{ .nr = SYS_rt_sigreturn },
	{ .nr = SYS_getpid },
	{ .nr = SYS_gettid },
	{ .nr = SYS_getuid },
	{ .nr = SYS_geteuid },
	{ .nr = SYS_getgid },
	{ .nr = SYS_getegid },
	{ .nr = SYS_uname },
	{ .nr = SYS_prctl, .checks = { { 0, ~0U, PR_SET_NAME } }, .check_cnt = 1 },
	{ .nr = SYS_prctl, .refused = EINVAL },
	{ .nr = SYS_clock_nanosleep },
	{ .nr = SYS_nanosleep },
};

/* Beside what the courier asks for: to begin a file again. */
static const struct allowed fetcher_calls[] = { { .nr = SYS_ftruncate } };

/* What libmicrohttpd asks for, with a socket that listens. */
static const struct allowed server_calls[] = {
	/* TCP fast open connects */
	{ .nr = SYS_sendto, .checks = { { 3, MSG_FASTOPEN, 0 } }, .check_cnt = 1 },
	{ .nr = SYS_sendmsg, .checks = { { 2, MSG_FASTOPEN, 0 } }, .check_cnt = 1 },
	{ .nr = SYS_listen },
	/* how many descriptors it may have */
	{ .nr = SYS_prlimit64, .checks = { { 0, ~0U, 0 } }, .check_cnt = 1 },
	/* glibc's fstat */
	{ .nr = SYS_newfstatat, .checks = { { 3, ~0U, AT_EMPTY_PATH } }, .check_cnt = 1 },
	/* other files are none of its business: the time zone, what libraries are configured by */
	{ .nr = SYS_openat, .refused = EACCES },
	{ .nr = SYS_mmap,
	  .checks = { { 2, PROT_EXEC, 0 }, { 3, MAP_ANONYMOUS, MAP_ANONYMOUS } },
	  .check_cnt = 2 },
};

/* All of it jumps forward, to what follows the row. */
static size_t add_call(struct sock_filter *f, const struct allowed *a)
{
	size_t n = 0, len = 3 + 3U * a->check_cnt, i;

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					      offsetof(struct seccomp_data, nr));
	f[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, a->nr, 0, len - n - 1);
	n++;
	for (i = 0; i < a->check_cnt; i++) {
		const struct check *c = &a->checks[i];

		f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						      offsetof(struct seccomp_data, args[c->arg]));
		f[n++] = (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, c->mask);
		f[n] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, c->value, 0,
						    len - n - 1);
		n++;
	}
	f[n++] = (struct sock_filter)BPF_STMT(
		BPF_RET | BPF_K,
		a->refused ? SECCOMP_RET_ERRNO | (uint32_t)a->refused : SECCOMP_RET_ALLOW);
	return n;
}

#define CALLS(array)                     \
	{                                \
		array, ARRAY_SIZE(array) \
	}

static const struct {
	const struct allowed *v;
	size_t cnt;
} calls_of[][MAX_LISTS] = {
	[SANDBOX_READER] = { CALLS(all_calls), CALLS(memory_calls), CALLS(reader_calls) },
	[SANDBOX_OPENER] = { CALLS(all_calls), CALLS(opener_calls) },
	[SANDBOX_COURIER] = { CALLS(all_calls), CALLS(memory_calls), CALLS(socket_calls),
			      CALLS(courier_calls) },
	[SANDBOX_FETCHER] = { CALLS(all_calls), CALLS(memory_calls), CALLS(socket_calls),
			      CALLS(courier_calls), CALLS(fetcher_calls) },
	[SANDBOX_SERVER] = { CALLS(all_calls), CALLS(memory_calls), CALLS(socket_calls),
			     CALLS(server_calls) },
};

int sandbox_filter_calls(enum sandbox kind)
{
	static const struct sock_filter begin[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_filter f[MAX_FILTER];
	struct sock_fprog prog = { .len = ARRAY_SIZE(begin), .filter = f };

	memcpy(f, begin, sizeof(begin));
	for (size_t l = 0; l < MAX_LISTS; l++)
		for (size_t i = 0; i < calls_of[kind][l].cnt; i++)
			prog.len += add_call(f + prog.len, &calls_of[kind][l].v[i]);
	f[prog.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) ? -errno : 0;
}
_Static_assert(F_GETFD == 1 && F_GETFL == 3, "they differ in one bit");
#define MAX_OWN                                                      \
	MAX(MAX(ARRAY_SIZE(reader_calls), ARRAY_SIZE(opener_calls)), \
	    MAX(ARRAY_SIZE(courier_calls) + ARRAY_SIZE(fetcher_calls), ARRAY_SIZE(server_calls)))
_Static_assert((ARRAY_SIZE(all_calls) + ARRAY_SIZE(memory_calls) + ARRAY_SIZE(socket_calls) +
		MAX_OWN) * (3 + 3 * 2) +
			       4 <=
		       MAX_FILTER,
	       "the filter has room");
