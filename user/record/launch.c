// SPDX-License-Identifier: BSD-2-Clause
/* Starts the command to be profiled, held back until the samplers are armed. */
#include "record/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/util.h"
#include "record/inherited.h"

/* 0 or -errno. Nothing of our rights is left. */
static int become(const struct launch_user *u)
{
	int err = *u->name ? initgroups(u->name, u->gid) : setgroups(0, NULL);

	if (err || setresgid(u->gid, u->gid, u->gid) || setresuid(u->uid, u->uid, u->uid))
		return -errno;
	if (*u->home)
		setenv("HOME", u->home, true);
	if (*u->name) {
		setenv("USER", u->name, true);
		setenv("LOGNAME", u->name, true);
	}
	return 0;
}

bool launch_sudo_user(struct launch_user *ret)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	const struct passwd *pw;
	uint64_t u, g;

	if (geteuid() || !uid || !gid || util_parse_u64(uid, 1, UINT32_MAX - 1, &u) ||
	    util_parse_u64(gid, 0, UINT32_MAX - 1, &g))
		return false;
	*ret = (struct launch_user){ .uid = (uid_t)u, .gid = (gid_t)g };
	pw = getpwuid(ret->uid);
	if (pw) {
		snprintf(ret->name, sizeof(ret->name), "%s", pw->pw_name);
		snprintf(ret->home, sizeof(ret->home), "%s", pw->pw_dir);
	}
	return true;
}

static void add_env(char *const env[])
{
	for (size_t i = 0; env && env[i]; i++)
		putenv(env[i]);
}

static void __attribute__((noreturn))
child(char *const argv[], const struct launch_settings *s, int go_fd, int error_fd)
{
	char byte;
	int err = 0;

	/* programs that use select(2) rely on the limit of descriptors; and we block what we take by signalfd */
	inherited_restore();
	if (s && s->own_session)
		(void)setsid();
	else if (s && s->own_group)
		(void)setpgid(0, 0);
	if (s && s->user)
		err = -become(s->user);
	if (s) {
		add_env(s->env);
		add_env(s->more_env);
	}
	if (read(go_fd, &byte, 1) == 1) {
		if (!err) {
			execvp(argv[0], argv);
			err = errno;
		}
		if (write(error_fd, &err, sizeof(err)) < 0)
			_exit(126);
	}
	_exit(127);
}

int launch_prepare(char *const argv[], const struct launch_settings *settings, struct launch *ret)
{
	int go[2] = { -1, -1 }, error[2] = { -1, -1 }, err;
	pid_t pid;

	memset(ret, 0, sizeof(*ret));
	ret->go_fd = ret->error_fd = -1;
	if (pipe2(go, O_CLOEXEC) || pipe2(error, O_CLOEXEC))
		goto cleanup;
	pid = fork();
	if (pid < 0)
		goto cleanup;
	if (!pid) {
		close(go[1]);
		child(argv, settings, go[0], error[1]);
	}
	close(go[0]);
	close(error[1]);
	ret->pid = pid;
	ret->go_fd = go[1];
	ret->error_fd = error[0];
	return 0;

cleanup:
	err = -errno;
	for (int i = 0; i < 2; i++) {
		if (go[i] >= 0)
			close(go[i]);
		if (error[i] >= 0)
			close(error[i]);
	}
	return err;
}

int launch_go(struct launch *l)
{
	int err = 0;
	ssize_t n;

	if (write(l->go_fd, "", 1) != 1)
		err = errno;
	close(l->go_fd);
	l->go_fd = -1;
	/* closed by a successful exec */
	do {
		n = err ? 0 : read(l->error_fd, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	close(l->error_fd);
	l->error_fd = -1;
	return -err;
}

bool launch_ended(struct launch *l)
{
	pid_t pid = l->pid && !l->reaped ? waitpid(l->pid, &l->status, WNOHANG) : 0;

	/* ECHILD: whoever started us lets the kernel reap, and the status is gone */
	if (pid > 0 || (pid < 0 && errno == ECHILD))
		l->reaped = true;
	return l->reaped;
}

bool launch_wait(struct launch *l)
{
	for (int ms = LAUNCH_PATIENCE_MS; ms > 0 && !launch_ended(l); ms -= 10)
		usleep(10000);
	return launch_ended(l);
}

void launch_ask(struct launch *l)
{
	l->ended_by_us = true;
	kill(l->pid, SIGTERM);
	kill(l->pid, SIGCONT);
}

void launch_done(struct launch *l)
{
	if (l->go_fd >= 0)
		close(l->go_fd);
	if (l->error_fd >= 0)
		close(l->error_fd);
	l->go_fd = l->error_fd = -1;
	if (!l->pid || launch_ended(l))
		return;
	launch_ask(l);
	if (launch_wait(l))
		return;
	kill(l->pid, SIGKILL);
	while (!launch_ended(l))
		usleep(1000);
}

int launch_exit_status(const struct launch *l)
{
	if (l->ended_by_us)
		return 0;
	if (WIFSIGNALED(l->status))
		return 128 + WTERMSIG(l->status);
	return WEXITSTATUS(l->status);
}
