// SPDX-License-Identifier: BSD-2-Clause
/*
 * A program that touches memory for the first time, from known places, after SIGUSR1, and asks the
 * kernel how many page faults each one took (getrusage):
 *     main;touch_all;touch_fresh     n=N anonymous pages
 *     main;touch_all;touch_file      a file of N pages, file=PATH, that is in no cache
 *     main;touch_all;touch_again     the same file, which is by now
 *     main;touch_all;kernel_fills    N anonymous pages, by read(2): the kernel takes the faults
 * all of it rounds=R times, rest=MS in between. Mode "fork": a child
 * touches N more, main;family;child_touches. Prints
 *     {"faults":{"touch_fresh":{"minor":N,"major":0},...}}
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "waits.h"

#define PAGE 4096

enum place {
	FRESH,
	FILE_PAGES,
	AGAIN,
	FILLS,
	CHILD,
	NR_PLACES
};

static const char *const names[] = { "touch_fresh", "touch_file", "touch_again", "kernel_fills",
				     "child_touches" };

/* Shared with the child. */
static struct counts {
	long minor, major;
} * counts;

static const char *path;
static long pages;

static char *map(int fd)
{
	char *at = mmap(NULL, pages * PAGE, PROT_READ | (fd < 0 ? PROT_WRITE : 0),
			fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd, 0);

	/* one fault for each page: neither huge ones, nor those beside one that is read */
	if (at == MAP_FAILED || (fd < 0 && madvise(at, pages * PAGE, MADV_NOHUGEPAGE)) ||
	    (fd >= 0 && madvise(at, pages * PAGE, MADV_RANDOM)))
		_exit(3);
	return at;
}

#define TOUCH(name, access)                        \
	static NOIPA void name(char *at)           \
	{                                          \
		for (long i = 0; i < pages; i++) { \
			char *p = at + i * PAGE;   \
			access;                    \
		}                                  \
		NO_TAIL_CALL();                    \
	}
TOUCH(touch_fresh, *(volatile char *)p = 1)
TOUCH(touch_file, prog_sink += *(volatile char *)p)
TOUCH(touch_again, prog_sink ^= *(volatile char *)p)
TOUCH(child_touches, *(volatile char *)p = 2)

static NOIPA void kernel_fills(char *at)
{
	int fd = open("/dev/zero", O_RDONLY);

	if (read(fd, at, pages * PAGE) != pages * PAGE)
		_exit(3);
	close(fd);
}

/*
 * The calls that kernel_fills makes, once before: a fault maps the pages around it too, but for those that
 * another CPU holds just then, so that their code may or may not be there.
 */
static void touch_calls(void)
{
	int fd = open("/dev/zero", O_RDONLY);
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(3);
	close(fd);
}

/* What a place needs of the stack is there before its faults are counted. */
static NOIPA void touch_stack(void)
{
	char room[4 * PAGE];

	for (size_t i = 0; i < sizeof(room); i += PAGE)
		((volatile char *)room)[i] = 1;
}

static inline __attribute__((always_inline)) void measure(enum place place, void (*fn)(char *),
							  char *at)
{
	struct rusage before, after;

	touch_stack();
	getrusage(RUSAGE_THREAD, &after);
	getrusage(RUSAGE_THREAD, &before);
	fn(at);
	getrusage(RUSAGE_THREAD, &after);
	counts[place].minor += after.ru_minflt - before.ru_minflt;
	counts[place].major += after.ru_majflt - before.ru_majflt;
	munmap(at, pages * PAGE);
}

/* A file of which nothing is in the cache. */
static int new_file(void)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	char page[PAGE];

	memset(page, 'x', sizeof(page));
	for (long i = 0; fd >= 0 && i < pages; i++)
		if (write(fd, page, PAGE) != PAGE)
			_exit(3);
	if (fd < 0 || fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
		_exit(3);
	return fd;
}

static NOIPA void touch_all(void)
{
	int fd;

	measure(FRESH, touch_fresh, map(-1));
	measure(FILLS, kernel_fills, map(-1));
	if (!path)
		return;
	fd = new_file();
	measure(FILE_PAGES, touch_file, map(fd));
	measure(AGAIN, touch_again, map(fd));
	close(fd);
}

static NOIPA void family(void)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		measure(CHILD, child_touches, map(-1));
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	const char *mode = waits_begin(argc, argv);
	long rounds = waits_number("rounds", 1), rest = waits_number("rest", 0);

	for (int i = 3; i < argc; i++)
		if (!strncmp(argv[i], "file=", 5))
			path = argv[i] + 5;
	pages = waits_number("n", 100);
	counts = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED)
		return 3;
	touch_calls();
	waits_go();
	for (long i = 0; i < rounds; i++) {
		touch_all();
		pause_us(rest * 1000);
	}
	if (!strcmp(mode, "fork"))
		family();
	for (int i = 0; i < NR_PLACES; i++)
		waits_say("%s\"%s\":{\"minor\":%ld,\"major\":%ld}", i ? "," : "{\"faults\":{",
			  names[i], counts[i].minor, counts[i].major);
	waits_say("}}\n");
	waits_end();
	return 0;
}
