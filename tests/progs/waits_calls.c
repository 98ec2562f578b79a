// SPDX-License-Identifier: BSD-2-Clause
/*
 * One thread, `calls`, that waits in one system call after the other, in an order that looks random
 * and for 50 us each, in a function for each call, and in the same read() of two kinds of files.
 * After SIGUSR1; n=COUNT calls in all. Prints
 *     {"calls":{"call_poll":801, ...,"call_read timerfd":799,"call_read sock":805}}
 * how often it has slept in each.
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include "waits.h"

#define WAIT_NS 50000

static const struct timespec wait_time = { 0, WAIT_NS };
static int epoll_fd, timer_fd, sockets[2], sem, over;
static int read_fd; /* that is read next */

static NOIPA void call_clock_nanosleep(void)
{
	clock_nanosleep(CLOCK_MONOTONIC, 0, &wait_time, NULL);
	NO_TAIL_CALL();
}

/* glibc's poll, select and nanosleep call other system calls than their names say */
static NOIPA void call_nanosleep(void)
{
	syscall(SYS_nanosleep, &wait_time, NULL);
	NO_TAIL_CALL();
}

static NOIPA void call_poll(void)
{
	struct pollfd fd = { .fd = timer_fd, .events = POLLIN };
	struct itimerspec t = { .it_value = wait_time };

	timerfd_settime(timer_fd, 0, &t, NULL);
	syscall(SYS_poll, &fd, 1, -1);
	NO_TAIL_CALL();
}

static NOIPA void call_ppoll(void)
{
	ppoll(NULL, 0, &wait_time, NULL);
	NO_TAIL_CALL();
}

static NOIPA void call_select(void)
{
	struct timeval t = { 0, WAIT_NS / 1000 };

	syscall(SYS_select, 0, NULL, NULL, NULL, &t);
	NO_TAIL_CALL();
}

static NOIPA void call_pselect6(void)
{
	pselect(0, NULL, NULL, NULL, &wait_time, NULL);
	NO_TAIL_CALL();
}

static NOIPA void call_epoll_wait(void)
{
	struct itimerspec t = { .it_value = wait_time };
	struct epoll_event e;

	timerfd_settime(timer_fd, 0, &t, NULL);
	syscall(SYS_epoll_wait, epoll_fd, &e, 1, -1);
	NO_TAIL_CALL();
}

static NOIPA void call_futex(void)
{
	static uint32_t word;

	futex(&word, FUTEX_WAIT_PRIVATE, 0, &wait_time, NULL, 0);
	NO_TAIL_CALL();
}

static NOIPA void call_rt_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigtimedwait(&set, NULL, &wait_time);
	NO_TAIL_CALL();
}

static NOIPA void call_semtimedop(void)
{
	struct sembuf take = { .sem_op = -1 };

	semtimedop(sem, &take, 1, &wait_time);
	NO_TAIL_CALL();
}

static NOIPA void call_read(void)
{
	struct itimerspec t = { .it_value = wait_time };
	uint64_t expired;

	timerfd_settime(timer_fd, 0, &t, NULL);
	if (read(read_fd, &expired, sizeof(expired)) < 0 && errno != EAGAIN)
		_exit(4);
	NO_TAIL_CALL();
}

static NOIPA void call_recvfrom(void)
{
	char byte;

	recv(sockets[0], &byte, 1, 0);
	NO_TAIL_CALL();
}

static struct call {
	const char *name;
	void (*wait)(void);
	const int *fd; /* that is read, or NULL */
	long slept;
} calls[] = {
	{ "call_read timerfd", call_read, &timer_fd, 0 },
	{ "call_clock_nanosleep", call_clock_nanosleep, NULL, 0 },
	{ "call_nanosleep", call_nanosleep, NULL, 0 },
	{ "call_poll", call_poll, NULL, 0 },
	{ "call_ppoll", call_ppoll, NULL, 0 },
	{ "call_select", call_select, NULL, 0 },
	{ "call_pselect6", call_pselect6, NULL, 0 },
	{ "call_epoll_wait", call_epoll_wait, NULL, 0 },
	{ "call_futex", call_futex, NULL, 0 },
	{ "call_rt_sigtimedwait", call_rt_sigtimedwait, NULL, 0 },
	{ "call_semtimedop", call_semtimedop, NULL, 0 },
	{ "call_read sock", call_read, &sockets[0], 0 },
	{ "call_recvfrom", call_recvfrom, NULL, 0 },
};
#define NR_CALLS (sizeof(calls) / sizeof(calls[0]))

/* The first of all calls, so often: a kernel stack that is taken for one that was seen before is
 * taken for this one, and the same read() of the other kind of file shows it. */
#define FIRST_CALLS 16

static NOIPA void *calls_thread(void *arg)
{
	long cnt = waits_number("n", 12000), before;
	uint64_t random = 1;

	prctl(PR_SET_NAME, "calls");
	prctl(PR_SET_TIMERSLACK, 1);
	for (long i = 0; i < cnt; i++) {
		struct call *c;

		random =
			random * 6364136223846793005ULL + 1442695040888963407ULL; /* Knuth's MMIX */
		c = &calls[i < FIRST_CALLS ? 0 : (random >> 33) % NR_CALLS];
		read_fd = c->fd ? *c->fd : -1;
		before = times_slept();
		c->wait();
		c->slept += times_slept() - before;
	}
	waits_set(&over, 1);
	pause();
	return arg;
}

int main(int argc, char **argv)
{
	struct timeval t = { 0, WAIT_NS / 1000 };
	struct epoll_event e = { .events = EPOLLIN };
	pthread_t thread;
	size_t i;

	waits_begin(argc, argv);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	sem = semget(IPC_PRIVATE, 1, 0600);
	if (sem < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, timer_fd, &e) ||
	    socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets) ||
	    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)))
		return 4;
	waits_go();
	waits_thread(&thread, calls_thread, NULL);
	while (!waits_get(&over))
		pause_us(1000);
	semctl(sem, 0, IPC_RMID);
	waits_say("{\"calls\":{");
	for (i = 0; i < NR_CALLS; i++)
		waits_say("%s\"%s\":%ld", i ? "," : "", calls[i].name, calls[i].slept);
	waits_say("}}\n");
	waits_end();
	return 0;
}
