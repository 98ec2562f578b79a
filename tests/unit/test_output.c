// SPDX-License-Identifier: BSD-2-Clause
/* Result files: whole or not at all, for nobody else's eyes, and never through what somebody
 * planted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output.h"
#include "toolrun.h"

/* Each test has an empty folder of its own. */
static int setup(void **state)
{
	(void)state;
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	return !toolrun("rm -rf dir && mkdir -m 755 dir") || chdir(toolrun_path("dir"));
}

static int entries(void)
{
	DIR *d = opendir(".");
	struct dirent *e;
	int n = 0;

	assert_non_null(d);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}

static void expect_contents(const char *path, const char *want)
{
	size_t sz;
	char *got = toolrun_read(path, &sz);

	got[sz] = '\0';
	assert_string_equal(got, want);
	free(got);
}

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void test_new_file(void **state)
{
	struct output o;
	struct stat st;

	(void)state;
	umask(0);
	assert_int_equal(output_probe("new"), 0);
	assert_int_equal(entries(), 0);
	assert_int_equal(output_open("new", &o), 0);
	fputs("first half, ", o.f);
	fflush(o.f);
	/* nothing under its name yet; what there is, is private already */
	assert_int_equal(access("new", F_OK), -1);
	assert_int_equal(entries(), 1);
	assert_int_equal(fstat(fileno(o.f), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	fputs("second half", o.f);
	assert_int_equal(output_commit(&o), 0);
	assert_null(o.f);
	expect_contents("new", "first half, second half");
	assert_int_equal(lstat("new", &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(entries(), 1);
	/* committed is done with */
	output_abort(&o);
	assert_int_equal(entries(), 1);
}

static void test_replaces(void **state)
{
	struct output o;
	struct stat st;
	char buf[16] = "";
	int fd;

	(void)state;
	write_file("old", "old text");
	assert_int_equal(chmod("old", 0644), 0);
	assert_int_equal(link("old", "other-name"), 0);
	fd = open("old", O_RDONLY);
	assert_int_equal(output_open("old", &o), 0);
	fputs("new", o.f);
	expect_contents("old", "old text");
	assert_int_equal(output_commit(&o), 0);
	expect_contents("old", "new");
	assert_int_equal(stat("old", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	/* another name of the old file, and who has it open, keep what they had */
	expect_contents("other-name", "old text");
	assert_int_equal(read(fd, buf, sizeof(buf)), 8);
	close(fd);
}

static void test_abort(void **state)
{
	struct output o;

	(void)state;
	write_file("old", "old text");
	assert_int_equal(output_open("old", &o), 0);
	fputs("half", o.f);
	fflush(o.f);
	output_abort(&o);
	expect_contents("old", "old text");
	assert_int_equal(entries(), 1);
	output_abort(&o);
	assert_int_equal(output_open("new", &o), 0);
	output_abort(&o);
	assert_int_equal(entries(), 1);
}

static void refuse(const char *path, int want)
{
	struct output o;
	int n = entries(), probe = output_probe(path), opened = output_open(path, &o);

	if (probe != want || opened != want)
		fail_msg("'%.40s': probe %d, open %d, not %d", path, probe, opened, want);
	assert_int_equal(entries(), n);
}

static void test_refused(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX, .sun_path = "socket" };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	static char name[8192];

	(void)state;
	write_file("victim", "precious");
	assert_int_equal(symlink("victim", "link"), 0);
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	assert_int_equal(symlink("/dev/null", "link-to-device"), 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(mkdir("folder", 0700), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	refuse("link", -ELOOP);
	refuse("dangling", -ELOOP);
	refuse("link-to-device", -ELOOP);
	refuse("fifo", -EEXIST);
	refuse("socket", -EEXIST);
	refuse("folder", -EISDIR);
	refuse("folder/", -EISDIR);
	refuse("missing/", -EISDIR);
	refuse("missing/file", -ENOENT);
	refuse("victim/file", -ENOTDIR);
	refuse(".", -EISDIR);
	refuse("/", -EISDIR);
	refuse("", -EINVAL);
	memset(name, 'n', sizeof(name) - 1);
	refuse(name, -ENAMETOOLONG);
	assert_int_equal(entries(), 7);
	expect_contents("victim", "precious");
	close(fd);
}

/* A name that fits, but not with what is appended to it while it is written. */
static void test_longest_name(void **state)
{
	struct output o;
	char name[300];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	assert_int_equal(output_open(name, &o), -ENAMETOOLONG);
	name[200] = '\0';
	assert_int_equal(output_open(name, &o), 0);
	assert_int_equal(output_commit(&o), 0);
	assert_int_equal(entries(), 1);
}

/* Between the opening and the end somebody puts a link under the name: it is replaced, not
 * followed. */
static void test_planted_later(void **state)
{
	struct output o;
	struct stat st;

	(void)state;
	write_file("victim", "precious");
	assert_int_equal(output_open("result", &o), 0);
	fputs("data", o.f);
	assert_int_equal(symlink("victim", "result"), 0);
	assert_int_equal(output_commit(&o), 0);
	expect_contents("victim", "precious");
	assert_int_equal(lstat("result", &st), 0);
	assert_true(S_ISREG(st.st_mode));

	/* and a folder under the name is an error that leaves nothing */
	assert_int_equal(output_open("other", &o), 0);
	assert_int_equal(mkdir("other", 0700), 0);
	assert_int_equal(output_commit(&o), -EISDIR);
	assert_int_equal(entries(), 3);
}

/* Does under that name what who would like others to write elsewhere would do. */
static void plant(unsigned turn)
{
	switch (turn % 4) {
	case 0:
		(void)!symlink("victim", "result");
		break;
	case 1:
		(void)!link("victim", "result");
		break;
	case 2:
		(void)mkfifo("result", 0666);
		break;
	default:
		write_file("scratch", "theirs");
		(void)rename("scratch", "result");
	}
	(void)unlink("result");
}

/* The same, 500 times, and until there were twenty of both ends. */
static void test_planted_all_the_time(void **state)
{
	int good = 0, refused = 0;
	pid_t pid;

	(void)state;
	write_file("victim", "precious");
	pid = fork();
	assert_true(pid >= 0);
	for (unsigned turn = 0; !pid; turn++)
		plant(turn);
	for (int i = 0; i < 500 || good < 20 || refused < 20; i++) {
		struct output o;
		int err;

		/* else it comes right behind our own renaming, each time */
		usleep(random() % 200);
		err = output_open("result", &o);
		if (!err) {
			fputs("data", o.f);
			err = output_commit(&o);
		}
		good += !err;
		refused += err == -ELOOP || err == -EEXIST;
		assert_int_equal(good + refused, i + 1);
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	waitpid(pid, NULL, 0);
	(void)unlink("scratch");
	(void)unlink("result");
	expect_contents("victim", "precious");
	assert_int_equal(entries(), 1);
	print_message("%d written, %d refused\n", good, refused);
}

static void test_devices(void **state)
{
	struct output o;
	struct stat st;

	(void)state;
	assert_int_equal(output_probe("/dev/null"), 0);
	assert_int_equal(output_open("/dev/null", &o), 0);
	assert_true(fputs("gone", o.f) >= 0);
	assert_int_equal(output_commit(&o), 0);
	assert_int_equal(lstat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));

	if (access("/dev/full", W_OK))
		skip();
	assert_int_equal(output_open("/dev/full", &o), 0);
	fputs("too much", o.f);
	assert_int_equal(output_commit(&o), -ENOSPC);
	assert_int_equal(lstat("/dev/full", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(entries(), 0);
}

/* The last write fails, as it does on a disk that is full: the old file stays, the new one goes. */
static void test_cannot_be_written(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	write_file("old", "old text");
	pid = fork();
	if (!pid) {
		static char buf[65536];
		struct output o;
		int bad = 0;

		bad |= output_open("old", &o) != 0;
		/* writing to a descriptor that is only for reading fails when it is flushed */
		bad |= dup2(open("/dev/null", O_RDONLY), fileno(o.f)) < 0;
		fwrite(buf, 1, sizeof(buf), o.f);
		bad |= output_commit(&o) != -EBADF;
		bad |= entries() != 1;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect_contents("old", "old text");
}

static void test_standard_output(void **state)
{
	char buf[16] = "";
	struct output o;
	int fds[2], saved = dup(STDOUT_FILENO);

	(void)state;
	fflush(stdout);
	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDOUT_FILENO);
	close(fds[1]);
	assert_int_equal(output_probe("-"), 0);
	assert_int_equal(output_open("-", &o), 0);
	assert_null(o.path);
	fputs("to a pipe", o.f);
	assert_int_equal(output_commit(&o), 0);
	dup2(saved, STDOUT_FILENO);
	assert_int_equal(read(fds[0], buf, sizeof(buf)), 9);
	assert_string_equal(buf, "to a pipe");
	close(fds[0]);

	/* a pipe whose reader has gone: main ignores SIGPIPE, so that it is an error like others */
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	dup2(fds[1], STDOUT_FILENO);
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(output_open("-", &o), 0);
	fputs("to nobody", o.f);
	assert_int_equal(output_commit(&o), -EPIPE);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(entries(), 0);
}

static void expect_owner(const char *uid, const char *gid, uid_t want_uid, gid_t want_gid)
{
	struct output o;
	struct stat st;

	setenv("SUDO_UID", uid, 1);
	setenv("SUDO_GID", gid, 1);
	assert_int_equal(output_open("owned", &o), 0);
	assert_int_equal(output_commit(&o), 0);
	assert_int_equal(stat("owned", &st), 0);
	assert_int_equal(st.st_uid, want_uid);
	assert_int_equal(st.st_gid, want_gid);
	assert_int_equal(st.st_mode & 07777, 0600);
}

static void test_sudo_user(void **state)
{
	(void)state;
	if (geteuid()) {
		print_message("needs root: gives a file to another user\n");
		skip();
	}
	expect_owner("1234", "5678", 1234, 5678);
	expect_owner("x", "5678", 0, 0);
	expect_owner("1234", "-1", 0, 0);
	expect_owner("4294967295", "4294967295", 0, 0);
	expect_owner("", "", 0, 0);
}

/* What another user may not write, root may; so this asks as somebody else. */
static void test_no_rights(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid()) {
		print_message("needs root: tries as another user\n");
		skip();
	}
	write_file("others", "not yours");
	assert_int_equal(chmod(toolrun_folder(), 0755), 0);
	pid = fork();
	if (!pid) {
		struct output o;

		if (setgid(65534) || setuid(65534))
			_exit(1);
		_exit(output_probe("new") != -EACCES || output_open("new", &o) != -EACCES ||
		      output_probe("others") != -EACCES || output_probe("/dev/null") != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(entries(), 1);
}

static int write_text(void *ctx, FILE *f)
{
	fputs(ctx, f);
	return 0;
}

static int write_half(void *ctx, FILE *f)
{
	fputs(ctx, f);
	return -EMSGSIZE;
}

static void test_sentences(void **state)
{
	char text[256] = "";

	(void)state;
	assert_int_equal(output_write("new", write_text, (void *)"text", text, sizeof(text)), 0);
	expect_contents("new", "text");
	assert_int_equal(output_write("new", write_half, (void *)"half", text, sizeof(text)),
			 -EMSGSIZE);
	assert_string_equal(text, "cannot write 'new': Message too long");
	expect_contents("new", "text");
	assert_int_equal(output_write("none/new", write_text, (void *)"", text, sizeof(text)),
			 -ENOENT);
	assert_string_equal(text, "cannot write 'none/new': No such file or directory");
	assert_int_equal(symlink("new", "link"), 0);
	assert_int_equal(output_check("link", true, text, sizeof(text)), -ELOOP);
	assert_string_equal(text,
			    "cannot write 'link': it is a symbolic link (name the file itself)");
	assert_int_equal(output_check("new", true, text, sizeof(text)), 0);
	assert_int_equal(output_check("-", false, text, sizeof(text)), 0);
	assert_int_equal(entries(), 2);
	assert_int_equal(output_check(".", false, text, sizeof(text)), -EISDIR);
	assert_string_equal(text, "cannot write '.': it is a folder (name a file in it)");
}

/* What only trying tells. */
static void test_tried(void **state)
{
	const struct rlimit none = { .rlim_cur = 100, .rlim_max = RLIM_INFINITY };
	char text[256] = "";
	struct rlimit old;

	(void)state;
	assert_int_equal(output_check("new", true, text, sizeof(text)), 0);
	assert_int_equal(output_check("/dev/null", true, text, sizeof(text)), 0);
	assert_int_equal(entries(), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	/* as main has it */
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(output_check("new", true, text, sizeof(text)), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_non_null(strstr(text, "ulimit -f"));
	assert_int_equal(entries(), 0);

	assert_int_equal(mkdir("gone", 0700), 0);
	assert_int_equal(chdir("gone"), 0);
	assert_int_equal(rmdir("../gone"), 0);
	assert_int_equal(output_probe("new"), 0);
	assert_int_equal(output_check("new", true, text, sizeof(text)), -ENOENT);
}

static void test_closed_output(void **state)
{
	int saved = dup(STDOUT_FILENO), probe, open;
	struct output o;

	(void)state;
	fflush(stdout);
	close(STDOUT_FILENO);
	probe = output_probe("-");
	open = output_open("-", &o);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(probe, -EBADF);
	assert_int_equal(open, -EBADF);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_new_file, setup),
		cmocka_unit_test_setup(test_replaces, setup),
		cmocka_unit_test_setup(test_abort, setup),
		cmocka_unit_test_setup(test_refused, setup),
		cmocka_unit_test_setup(test_longest_name, setup),
		cmocka_unit_test_setup(test_planted_later, setup),
		cmocka_unit_test_setup(test_planted_all_the_time, setup),
		cmocka_unit_test_setup(test_devices, setup),
		cmocka_unit_test_setup(test_cannot_be_written, setup),
		cmocka_unit_test_setup(test_standard_output, setup),
		cmocka_unit_test_setup(test_sentences, setup),
		cmocka_unit_test_setup(test_tried, setup),
		cmocka_unit_test_setup(test_closed_output, setup),
		cmocka_unit_test_setup(test_sudo_user, setup),
		cmocka_unit_test_setup(test_no_rights, setup),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
