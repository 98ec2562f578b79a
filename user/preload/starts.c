// SPDX-License-Identifier: BSD-2-Clause
/*
 * Programs that a program starts which the preload library is loaded into get it by LD_PRELOAD as
 * well. Those that it would keep from running are started without it: such as are linked with a
 * sanitizer's run-time library, or have one preloaded (base/sanitizers.h); or bring a C library of
 * their own, which may be too old for it (loader.h). So are those that could not load it, which
 * the dynamic linker would say on their standard error: of other machines, as 32-bit programs are, and
 * all where it is not in the file system, as behind chroot(2). What is seen of their heaps is up to probes.
 * What may be another file by the time that it is executed is not known.
 *
 * So the functions that execute programs are interposed. They run in children of vfork, in signal
 * handlers and in threads with small stacks: no lock is taken, nothing is allocated, and little is
 * put on the stack unless there is something to be left out.
 */
#include <alloca.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sanitizers.h"
#include "loader.h"
#include "next.h"

#define EXPORT __attribute__((visibility("default")))
#define US "libbpfprof-heap.so"
#define VARIABLE "LD_PRELOAD="

#define MAX_SCRIPTS 4 /* a script's interpreter is a script ...; the kernel follows as many */
#define SCRIPT_LINE 256
#define NAME_SZ 64   /* of a library's name, as far as it is looked at */
#define OUR_PATH 256 /* of our library's path, as far as it is looked at */
#define LEFT_SZ 4096 /* of what is preloaded beside us, in the environment */

static struct {
	int (*execve)(const char *, char *const[], char *const[]);
	int (*execvpe)(const char *, char *const[], char *const[]);
	int (*fexecve)(int, char *const[], char *const[]);
	int (*spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *,
		     const posix_spawnattr_t *, char *const[], char *const[]);
	int (*spawnp)(pid_t *, const char *, const posix_spawn_file_actions_t *,
		      const posix_spawnattr_t *, char *const[], char *const[]);
	int (*chroot)(const char *);
} real;

static struct loader own_loader;
static long own_pid; /* of whose memory this is */

/* ---- Is the program one of those? ---- */

/* The file offset of an address. */
static bool find_offset(int fd, const Elf64_Ehdr *e, uint64_t addr, uint64_t *ret)
{
	Elf64_Phdr p;

	for (int i = 0; i < e->e_phnum; i++) {
		if (!loader_read(fd, e->e_phoff + i * sizeof(p), &p, sizeof(p)))
			return false;
		if (p.p_type == PT_LOAD && addr - p.p_vaddr < p.p_filesz) {
			*ret = p.p_offset + (addr - p.p_vaddr);
			return true;
		}
	}
	return false;
}

static bool is_sanitizer(int fd, uint64_t name_at)
{
	char name[NAME_SZ];
	long n = syscall(SYS_pread64, fd, name, sizeof(name), name_at);

	return n > 0 && sanitizers_has(name, strnlen(name, (size_t)n));
}

/* Goes through PT_DYNAMIC at an offset in the file. strtab: NULL, to find DT_STRTAB's address in
 * *ret; else where the names are: does one of DT_NEEDED fit? */
static bool look_through(int fd, uint64_t at, const uint64_t *strtab, uint64_t *ret)
{
	Elf64_Dyn d;

	for (int i = 0; i < LOADER_MAX_DYNAMIC; i++) {
		if (!loader_read(fd, at + i * sizeof(d), &d, sizeof(d)) || d.d_tag == DT_NULL)
			return false;
		if (!strtab && d.d_tag == DT_STRTAB) {
			*ret = d.d_un.d_ptr;
			return true;
		}
		if (strtab && d.d_tag == DT_NEEDED && is_sanitizer(fd, *strtab + d.d_un.d_val))
			return true;
	}
	return false;
}

/* Is it linked with a sanitizer, or with another C library than ours? */
static bool is_unfit(int fd)
{
	uint64_t addr, strtab;
	Elf64_Ehdr e;
	Elf64_Phdr p;

	if (!loader_read(fd, 0, &e, sizeof(e)) || memcmp(e.e_ident, ELFMAG, SELFMAG))
		return false;
	if (loader_of(fd, &own_loader) != LOADER_OWN)
		return true;
	for (int i = 0; i < e.e_phnum; i++)
		if (loader_read(fd, e.e_phoff + i * sizeof(p), &p, sizeof(p)) &&
		    p.p_type == PT_DYNAMIC)
			return look_through(fd, p.p_offset, NULL, &addr) &&
			       find_offset(fd, &e, addr, &strtab) &&
			       look_through(fd, p.p_offset, &strtab, NULL);
	return false;
}

/* The interpreter of a script, in line; NULL: it is none. */
static const char *interpreter(int fd, char line[SCRIPT_LINE])
{
	long n = syscall(SYS_pread64, fd, line, SCRIPT_LINE - 1, 0);
	char *s;

	if (n < 3 || memcmp(line, "#!", 2))
		return NULL;
	line[n] = '\0';
	s = line + 2 + strspn(line + 2, " \t");
	s[strcspn(s, " \t\n")] = '\0';
	return s;
}

/* fd is closed. */
static bool is_kept_from_running(int fd)
{
	char line[SCRIPT_LINE];
	bool ret = false;
	struct stat st;

	for (int i = 0; fd >= 0 && i < MAX_SCRIPTS; i++) {
		const char *next;
		int script = fd;

		if (fstat(fd, &st) || !S_ISREG(st.st_mode))
			break;
		ret = is_unfit(fd);
		next = ret ? NULL : interpreter(fd, line);
		if (!next)
			break;
		fd = (int)syscall(SYS_openat, AT_FDCWD, next, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		syscall(SYS_close, script);
	}
	if (fd >= 0)
		syscall(SYS_close, fd);
	return ret;
}

static bool is_kept_out_of(const char *path)
{
	return is_kept_from_running(
		(int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

/* The same of a name that is looked for in PATH unless it has a '/'. */
static __attribute__((noinline)) bool is_kept_out_of_found(const char *file)
{
	const char *dirs = getenv("PATH");
	char path[PATH_MAX];
	struct stat st;

	if (strchr(file, '/'))
		return is_kept_out_of(file);
	if (!dirs)
		dirs = "/bin:/usr/bin";
	for (;;) {
		size_t len = strcspn(dirs, ":"), n = strlen(file);

		if (len + n + 2 <= sizeof(path)) {
			memcpy(path, dirs, len);
			path[len] = '/';
			memcpy(path + len + !!len, file, n + 1);
			if (!stat(path, &st) && S_ISREG(st.st_mode) &&
			    !syscall(SYS_access, path, X_OK))
				return is_kept_out_of(path);
		}
		if (!dirs[len])
			return false;
		dirs += len + 1;
	}
}

/* ---- Its environment ---- */

/* Which one is LD_PRELOAD, if we are in it; -1: we are not. */
static int find_us(char *const env[])
{
	for (int i = 0; env && env[i]; i++)
		if (!strncmp(env[i], VARIABLE, strlen(VARIABLE)))
			return strstr(env[i], US) ? i : -1;
	return -1;
}

/* The first entry of a list of LD_PRELOAD, or of what is left of one, and how long it is. NULL: it has none. */
static const char *next_entry(const char *list, size_t *ret_len)
{
	list += strspn(list, " :");
	*ret_len = strcspn(list, " :");
	return *ret_len ? list : NULL;
}

static bool is_us(const char *entry, size_t len)
{
	size_t us = strlen(US);

	return len >= us && !memcmp(entry + len - us, US, us);
}

/* Is our library where a list of LD_PRELOAD has it? One with a longer path is taken to be. */
static __attribute__((noinline)) bool is_there(const char *list)
{
	char path[OUR_PATH];
	size_t len;

	for (; (list = next_entry(list, &len)); list += len) {
		if (!is_us(list, len) || !memchr(list, '/', len) || len >= sizeof(path))
			continue;
		memcpy(path, list, len);
		path[len] = '\0';
		return !syscall(SYS_access, path, R_OK);
	}
	return true;
}

/* Is our library to be left out? errno stays. */
static bool is_to_go(bool (*is_kept_out)(const char *), const char *file, char *const env[])
{
	int err = errno, at = find_us(env);
	const char *list = at >= 0 ? env[at] + strlen(VARIABLE) : NULL;
	bool ret = list && (sanitizers_in(list) || !is_there(list) || is_kept_out(file));

	errno = err;
	return ret;
}

/* Bytes that an environment without us takes. */
static size_t copy_sz(char *const env[])
{
	size_t n = 0;

	while (env[n])
		n++;
	return (n + 1) * sizeof(*env) + strlen(env[find_us(env)]) + 1;
}

/* A list of LD_PRELOAD without us. */
static void leave_us_out(const char *list, char *to)
{
	bool first = true;
	size_t len;

	for (; (list = next_entry(list, &len)); list += len) {
		if (is_us(list, len))
			continue;
		if (!first)
			*to++ = ':';
		memcpy(to, list, len);
		to += len;
		first = false;
	}
	*to = '\0';
}

/* An environment without us, at a place for copy_sz bytes. What only we have set goes as a whole. */
static char *const *copy(char *const env[], void *place)
{
	char **ret = place, *text;
	int us = find_us(env), n = 0, to = 0;

	while (env[n])
		n++;
	text = (char *)(ret + n + 1);
	strcpy(text, VARIABLE);
	leave_us_out(env[us] + strlen(VARIABLE), text + strlen(VARIABLE));
	for (int i = 0; i < n; i++) {
		if (i != us)
			ret[to++] = env[i];
		else if (text[strlen(VARIABLE)])
			ret[to++] = text;
	}
	ret[to] = NULL;
	return ret;
}

/* Takes us out of the environment itself, which shells get that libc starts, as by popen(3). */
static void leave_environment(void)
{
	static char left[LEFT_SZ] = VARIABLE;
	int at = find_us(environ);

	if (at < 0 || strlen(environ[at]) >= sizeof(left))
		return;
	leave_us_out(environ[at] + strlen(VARIABLE), left + strlen(VARIABLE));
	if (left[strlen(VARIABLE)]) {
		environ[at] = left;
		return;
	}
	do
		environ[at] = environ[at + 1];
	while (environ[at++]);
}

#define ENVIRONMENT(is_kept_out, file, env) \
	(is_to_go(is_kept_out, file, env) ? copy(env, alloca(copy_sz(env))) : (env))

/* ---- The functions ---- */

/* Also called earlier, where constructors of other libraries start programs. The dynamic linker is found
 * by a name, which may mean another one once the program has changed its root. */
__attribute__((constructor)) static void find_all(void)
{
	own_loader = loader_own();
	next_function("execve", &real.execve);
	next_function("execvpe", &real.execvpe);
	next_function("fexecve", &real.fexecve);
	next_function("posix_spawn", &real.spawn);
	next_function("posix_spawnp", &real.spawnp);
	next_function("chroot", &real.chroot);
}

static void remember_pid(void)
{
	own_pid = syscall(SYS_getpid);
}

__attribute__((constructor)) static void start(void)
{
	remember_pid();
	call_in_children(remember_pid);
}

/* Is there the one that is wanted? Else errno says so. */
#define HAVE(func) (real.func || (find_all(), real.func) || (errno = ENOSYS, false))

EXPORT int execve(const char *path, char *const argv[], char *const env[])
{
	return HAVE(execve) ? real.execve(path, argv, ENVIRONMENT(is_kept_out_of, path, env)) : -1;
}

EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

EXPORT int execvpe(const char *file, char *const argv[], char *const env[])
{
	return HAVE(execvpe) ?
		       real.execvpe(file, argv, ENVIRONMENT(is_kept_out_of_found, file, env)) :
		       -1;
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

EXPORT int fexecve(int fd, char *const argv[], char *const env[])
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return HAVE(fexecve) ? real.fexecve(fd, argv, ENVIRONMENT(is_kept_out_of, path, env)) : -1;
}

/* Is it another file by the time that it is executed? What actions say, only libc knows: they may go to
 * another folder. */
static bool may_be_elsewhere(const char *file, const posix_spawn_file_actions_t *actions)
{
	return actions && *file != '/' && strchr(file, '/');
}

static bool is_kept_out_anyway(const char *file)
{
	(void)file;
	return true;
}

EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	bool elsewhere = may_be_elsewhere(path, actions);

	return HAVE(spawn) ? real.spawn(pid, path, actions, attr, argv,
					ENVIRONMENT(elsewhere ? is_kept_out_anyway : is_kept_out_of,
						    path, env)) :
			     ENOSYS;
}

EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attr, char *const argv[], char *const env[])
{
	bool elsewhere = may_be_elsewhere(file, actions);

	return HAVE(spawnp) ? real.spawnp(pid, file, actions, attr, argv,
					  ENVIRONMENT(elsewhere ? is_kept_out_anyway :
								  is_kept_out_of_found,
						      file, env)) :
			      ENOSYS;
}

/* Behind it system(3) and its kin find no library of ours, or another C library. A child of vfork(2) has its parent's environment. */
EXPORT int chroot(const char *path)
{
	struct loader now;
	int ret, err, at;

	if (!HAVE(chroot))
		return -1;
	ret = real.chroot(path);
	err = errno;
	at = ret || syscall(SYS_getpid) != own_pid ? -1 : find_us(environ);
	if (at >= 0) {
		now = loader_own();
		if (now.dev != own_loader.dev || now.ino != own_loader.ino ||
		    !is_there(environ[at] + strlen(VARIABLE)))
			leave_environment();
	}
	errno = err;
	return ret;
}

/* The arguments up to NULL, on the stack of the function that has them; ap is behind them then. */
#define COLLECT(argv, arg, ap)                                 \
	do {                                                   \
		size_t cnt_ = 1;                               \
                                                               \
		va_start(ap, arg);                             \
		while (va_arg(ap, char *))                     \
			cnt_++;                                \
		va_end(ap);                                    \
		(argv) = alloca((cnt_ + 1) * sizeof(*(argv))); \
		(argv)[0] = (char *)(uintptr_t)(arg);          \
		va_start(ap, arg);                             \
		for (size_t i_ = 1; i_ <= cnt_; i_++)          \
			(argv)[i_] = va_arg(ap, char *);       \
	} while (0)

EXPORT int execl(const char *path, const char *arg, ...)
{
	char **argv;
	va_list ap;

	COLLECT(argv, arg, ap);
	va_end(ap);
	return execve(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *arg, ...)
{
	char **argv;
	va_list ap;

	COLLECT(argv, arg, ap);
	va_end(ap);
	return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *arg, ...)
{
	char **argv, **env;
	va_list ap;

	COLLECT(argv, arg, ap);
	env = va_arg(ap, char **);
	va_end(ap);
	return execve(path, argv, env);
}
