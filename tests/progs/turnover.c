/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes and goes, RATE times a second by the clock, in the folder FOLDER:
 *   execs    a process, of one of a few copies of this program, which computes for a moment; each 16th
 *            in code that it has made itself
 *   libs     a library, of which FILE is copied, called and deleted: its symbol alpha_entry
 *   threads  a thread, which computes for a moment
 * usage: turnover SECONDS execs|libs|threads RATE FOLDER [FILE]. Each copy is a file of its own, with a
 * build id of its own.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "prog.h"

#define COPIES 8
#define GENERATED_EVERY 16
#define RENEWED_EVERY 20 /* starts, of a copy */
#define BRIEF_NS 300000L

static const char *folder;
static unsigned char *image; /* of the file to copy */
static size_t image_sz, build_id_at;

static NOIPA void brief(void)
{
	struct timespec t = { 0, 0 };

	for (long n = 0; t.tv_nsec < BRIEF_NS && !t.tv_sec; n++) {
		for (int i = 0; i < 10000; i++)
			prog_sink++;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	}
}

/* mov $0x80000,%ecx; 1: dec %ecx; jnz 1b; ret */
static NOIPA void generated(void)
{
	static const unsigned char code[] = { 0xb9, 0, 0, 8, 0, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };
	void *mem = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mem == MAP_FAILED)
		_exit(1);
	memcpy(mem, code, sizeof(code));
	((void (*)(void))mem)();
	NO_TAIL_CALL();
}

static void read_image(const char *path)
{
	static const unsigned char note[] = {
		4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0
	};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const unsigned char *id;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		_exit(1);
	image_sz = st.st_size;
	image = malloc(image_sz);
	if (!image || read(fd, image, image_sz) != st.st_size)
		_exit(1);
	close(fd);
	id = memmem(image, image_sz, note, sizeof(note));
	if (!id)
		_exit(1);
	build_id_at = id + sizeof(note) - image;
}

static void copy_to(const char *path)
{
	static unsigned long made;
	char tmp[4200];
	int to;

	snprintf(tmp, sizeof(tmp), "%s.new", path);
	to = open(tmp, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0755);
	made++;
	memcpy(image + build_id_at, &made, sizeof(made));
	if (to < 0 || write(to, image, image_sz) != (ssize_t)image_sz || close(to) ||
	    rename(tmp, path))
		_exit(1);
}

static void start_process(unsigned long n)
{
	static unsigned long made;
	char path[4100];

	snprintf(path, sizeof(path), "%s/prog%lu", folder, n % COPIES);
	if (made < COPIES || n % RENEWED_EVERY == 0) {
		snprintf(path, sizeof(path), "%s/prog%lu", folder, made++ % COPIES);
		copy_to(path);
	}
	if (!vfork()) {
		execl(path, path, "5", n % GENERATED_EVERY ? "brief" : "generated", (char *)NULL);
		_exit(1);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static void use_library(unsigned long n)
{
	void (*entry)(double);
	char path[4100];
	void *lib;

	snprintf(path, sizeof(path), "%s/lib%lu.so", folder, n);
	copy_to(path);
	lib = dlopen(path, RTLD_NOW);
	entry = lib ? (void (*)(double))dlsym(lib, "alpha_entry") : NULL;
	if (!entry)
		_exit(1);
	unlink(path);
	entry(0.003);
	dlclose(lib);
}

static void *thread(void *arg)
{
	brief();
	return arg;
}

static void use_thread(unsigned long n)
{
	static pthread_t last;
	pthread_t t;

	if (pthread_create(&t, NULL, thread, NULL))
		_exit(1);
	if (n)
		pthread_join(last, NULL);
	last = t;
}

int main(int argc, char **argv)
{
	const char *mode = prog_start(argc, argv);
	void (*step)(unsigned long) = !strcmp(mode, "execs") ? start_process :
				      !strcmp(mode, "libs")  ? use_library :
							       use_thread;
	struct timespec next, now;
	long gap_ns;

	if (!strcmp(mode, "brief") || !strcmp(mode, "generated")) {
		(mode[0] == 'b' ? brief : generated)();
		return 0;
	}
	if (argc < 5)
		return 2;
	gap_ns = 1000000000L / (atoi(argv[3]) > 0 ? atoi(argv[3]) : 1);
	folder = argv[4];
	read_image(argc > 5 ? argv[5] : (const char *)getauxval(AT_EXECFN));
	prog_ready();
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (unsigned long n = 0;; n++) {
		step(n);
		clock_gettime(CLOCK_MONOTONIC, &now);
		/* without a rush after it had to wait */
		if (now.tv_sec > next.tv_sec + 1)
			next = now;
		next.tv_nsec += gap_ns;
		next.tv_sec += next.tv_nsec / 1000000000L;
		next.tv_nsec %= 1000000000L;
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL) == EINTR)
			;
	}
}
