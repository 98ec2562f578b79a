// SPDX-License-Identifier: BSD-2-Clause
/*
 * Descriptors of known origin. Once told to go on, functions open them in every way that a program
 * has without further rights, close some in every way, and leave the rest; it says how many are
 * left of each function, as JSON, and sleeps. Two are opened before, and what a child opens is its
 * own. Modes:
 *
 *   exec    says how many there are of those that an exec leaves open, and execs itself, as "rest"
 *   rest    says that it is there
 *   timeN   says how long N calls take that open, close, and do neither, in ns
 */
#include <fcntl.h>
#include <linux/openat2.h>
#include <linux/sched.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "prog.h"

#define MAX_FDS 256
#define NS_GET_USERNS 0xb701 /* include/uapi/linux/nsfs.h */
#define PASSED 3

#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static const char *owner[MAX_FDS]; /* the function that has opened it; NULL: it is not open */
static int first, second, third, channel[2];

static int mine(const char *function, int fd)
{
	if (fd >= 0 && fd < MAX_FDS)
		owner[fd] = function;
	return fd;
}

static void gone(int fd)
{
	owner[fd] = NULL;
}

static NOIPA void open_range(void)
{
	int fds[4];

	for (int i = 0; i < 4; i++)
		fds[i] = mine(__func__, open("/dev/null", O_RDONLY));
	if (!syscall(SYS_close_range, fds[0], fds[2], 0))
		for (int i = 0; i < 3; i++)
			gone(fds[i]);
}

static NOIPA void open_files(void)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC };

	first = mine(__func__, open("/dev/null", O_RDONLY));
	second = mine(__func__, (int)syscall(SYS_open, "/dev/null", O_RDONLY));
	third = mine(__func__, openat(AT_FDCWD, "/dev/null", O_RDONLY));
	mine(__func__, creat("/dev/null", 0600));
	mine(__func__, (int)syscall(SYS_openat2, AT_FDCWD, "/dev/null", &how, sizeof(how)));
	mine(__func__, open("/no/such/file", O_RDONLY));
}

static NOIPA void duplicate(void)
{
	mine(__func__, dup(first));
	mine(__func__, dup2(first, 100));
	mine(__func__, dup3(first, 101, O_CLOEXEC));
	mine(__func__, fcntl(first, F_DUPFD, 90));
	mine(__func__, fcntl(first, F_DUPFD_CLOEXEC, 90));
	(void)fcntl(first, F_GETFD);
	(void)fcntl(first, F_SETFL, O_NONBLOCK);
}

/* In place of one that open_files has opened; and onto itself, which opens nothing. */
static NOIPA void duplicate_over(void)
{
	mine(__func__, dup2(first, second));
	(void)dup2(third, third);
}

static NOIPA void close_one(void)
{
	if (!close(first))
		gone(first);
	(void)close(-1);
}

static NOIPA void make_pipes(void)
{
	int fds[4];

	if (pipe(fds) || pipe2(fds + 2, O_CLOEXEC))
		_exit(1);
	for (int i = 0; i < 4; i++)
		mine(__func__, fds[i]);
}

static NOIPA void make_sockets(void)
{
	/* a name that the kernel makes up */
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr);
	int listens = mine(__func__, socket(AF_UNIX, SOCK_STREAM, 0)), calls;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel))
		_exit(1);
	mine(__func__, channel[0]);
	mine(__func__, channel[1]);
	if (bind(listens, (struct sockaddr *)&addr, sizeof(addr.sun_family)) ||
	    listen(listens, 2) || getsockname(listens, (struct sockaddr *)&addr, &len))
		_exit(1);
	for (int i = 0; i < 2; i++) {
		calls = mine(__func__, socket(AF_UNIX, SOCK_STREAM, 0));
		if (connect(calls, (struct sockaddr *)&addr, len))
			_exit(1);
	}
	mine(__func__, accept(listens, NULL, NULL));
	mine(__func__, accept4(listens, NULL, NULL, SOCK_CLOEXEC));
}

/* Room for descriptors that are passed. */
struct passed {
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(PASSED * sizeof(int))];
	} control;
	char byte;
	struct iovec iov;
	struct mmsghdr msg;
};

static void set_up(struct passed *p, int cnt)
{
	memset(p, 0, sizeof(*p));
	p->iov = (struct iovec){ &p->byte, 1 };
	p->msg.msg_hdr.msg_iov = &p->iov;
	p->msg.msg_hdr.msg_iovlen = 1;
	p->msg.msg_hdr.msg_control = &p->control;
	p->msg.msg_hdr.msg_controllen = cnt ? CMSG_SPACE(cnt * sizeof(int)) : sizeof(p->control);
	p->control.head.cmsg_level = SOL_SOCKET;
	p->control.head.cmsg_type = SCM_RIGHTS;
	p->control.head.cmsg_len = CMSG_LEN(cnt * sizeof(int));
	for (int i = 0; i < cnt; i++)
		((int *)CMSG_DATA(&p->control.head))[i] = third;
}

static void pass(int cnt)
{
	struct passed p;

	set_up(&p, cnt);
	if (sendmsg(channel[0], &p.msg.msg_hdr, 0) != 1)
		_exit(1);
}

static void take(const char *function, const struct passed *p, int cnt)
{
	for (int i = 0; i < cnt; i++)
		mine(function, ((const int *)CMSG_DATA(&p->control.head))[i]);
}

static NOIPA void receive(void)
{
	struct passed p;

	set_up(&p, 0);
	if (recvmsg(channel[1], &p.msg.msg_hdr, 0) != 1)
		_exit(1);
	take(__func__, &p, PASSED);
	/* and one that brings none */
	if (write(channel[0], "", 1) != 1)
		_exit(1);
	set_up(&p, 0);
	if (recvmsg(channel[1], &p.msg.msg_hdr, 0) != 1)
		_exit(1);
}

static NOIPA void receive_many(void)
{
	struct passed p;

	set_up(&p, 0);
	if (recvmmsg(channel[1], &p.msg, 1, 0, NULL) != 1)
		_exit(1);
	take(__func__, &p, 1);
}

static NOIPA void make_others(void)
{
	int of_signals, itself, space;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	mine(__func__, eventfd(0, 0));
	mine(__func__, epoll_create1(EPOLL_CLOEXEC));
	mine(__func__, epoll_create(1));
	mine(__func__, memfd_create("m", 0));
	mine(__func__, timerfd_create(CLOCK_MONOTONIC, 0));
	mine(__func__, inotify_init1(IN_CLOEXEC));
	mine(__func__, inotify_init());
	of_signals = mine(__func__, signalfd(-1, &set, 0));
	(void)signalfd(of_signals, &set, 0);
	itself = mine(__func__, (int)syscall(SYS_pidfd_open, getpid(), 0));
	mine(__func__, (int)syscall(SYS_pidfd_getfd, itself, third, 0));
	space = mine(__func__, open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC));
	mine(__func__, ioctl(space, NS_GET_USERNS));
}

/* A number that has been free, given out by a call that gives numbers now and then only. */
static NOIPA void use_again(void)
{
	int space = mine(__func__, open("/proc/self/ns/uts", O_RDONLY)), fd;

	fd = open("/dev/zero", O_RDONLY);
	if (close(fd) || ioctl(space, NS_GET_USERNS) != mine(__func__, fd))
		_exit(1);
}

static NOIPA void make_child(void)
{
	int fd = -1;
	struct clone_args args = { .flags = CLONE_PIDFD,
				   .pidfd = (uintptr_t)&fd,
				   .exit_signal = SIGCHLD };
	pid_t child = (pid_t)syscall(SYS_clone3, &args, sizeof(args));

	if (!child) {
		for (int i = 0; i < 3; i++)
			(void)open("/dev/null", O_RDONLY);
		_exit(0);
	}
	mine(__func__, fd);
	if (child < 0 || waitpid(child, NULL, 0) != child)
		_exit(1);
}

static NOIPA void *in_thread(void *fd)
{
	*(int *)fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	mine(__func__, *(int *)fd);
	mine(__func__, open("/dev/null", O_RDONLY));
	return NULL;
}

static NOIPA void do_all(void)
{
	pthread_t thread;
	int fd;

	open_range();
	open_files();
	duplicate();
	duplicate_over();
	close_one();
	make_pipes();
	make_sockets();
	pass(PASSED);
	receive();
	pass(1);
	receive_many();
	make_others();
	use_again();
	make_child();
	pthread_create(&thread, NULL, in_thread, &fd);
	pthread_join(thread, NULL);
	if (!close(fd))
		gone(fd);
}

/* By function, how many are open; over_exec: and stay so. */
static void say(int over_exec)
{
	const char *comma = "";

	fputs("{", stdout);
	for (int i = 0; i < MAX_FDS; i++) {
		const char *function = owner[i];
		int cnt = 0;

		for (int j = i; function && j < MAX_FDS; j++) {
			if (!owner[j] || strcmp(owner[j], function))
				continue;
			cnt += !over_exec || !(fcntl(j, F_GETFD) & FD_CLOEXEC);
			owner[j] = NULL;
		}
		if (cnt) {
			printf("%s\"%s\": %d", comma, function, cnt);
			comma = ", ";
		}
	}
	puts("}");
	fflush(stdout);
}

/* ---- how long calls take ---- */

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void time_calls(long rounds)
{
	double from, open_ns = 0, close_ns = 0;
	int fds[64];

	for (long i = 0; i < rounds; i += 64) {
		from = now_ns();
		for (int j = 0; j < 64; j++)
			fds[j] = dup(0);
		open_ns += now_ns() - from;
		from = now_ns();
		for (int j = 0; j < 64; j++)
			close(fds[j]);
		close_ns += now_ns() - from;
	}
	from = now_ns();
	for (long i = 0; i < rounds; i++)
		(void)syscall(SYS_getppid);
	printf("{\"open\": %.1f, \"close\": %.1f, \"other\": %.1f}\n", open_ns / rounds,
	       close_ns / rounds, (now_ns() - from) / rounds);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);

	if (!strcmp(mode, "rest")) {
		puts("rest");
		fflush(stdout);
		pause();
	}
	for (int i = 0; i < 2; i++)
		(void)open("/dev/null", O_RDONLY);
	prog_ready_to_go();
	if (!strncmp(mode, "time", 4)) {
		time_calls(atol(mode + 4));
		return 0;
	}
	do_all();
	say(!strcmp(mode, "exec"));
	if (!strcmp(mode, "exec"))
		prog_exec(argv[1], "rest");
	pause();
	return 0;
}
