/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded: CLOCK_REALTIME is as many seconds ahead as a file, SETBACK_FILE, says at the time: as
 * if somebody set the clock while the program runs, and without doing so. How often it was read
 * stands behind that.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static int (*real)(clockid_t, struct timespec *);
struct setback {
	volatile int64_t ahead_s;
	_Atomic int64_t readings;
};
static struct setback *setback;

static __attribute__((constructor)) void begin(void)
{
	const char *path = getenv("SETBACK_FILE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p = fd < 0 ? MAP_FAILED :
			   mmap(NULL, sizeof(*setback), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	if (p != MAP_FAILED)
		setback = p;
}

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int err = real(clock, t);

	if (!err && setback && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		t->tv_sec += setback->ahead_s;
		setback->readings++;
	}
	return err;
}

int gettimeofday(struct timeval *tv, void *tz)
{
	struct timespec t;
	int err = clock_gettime(CLOCK_REALTIME, &t);

	(void)tz;
	*tv = (struct timeval){ .tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000 };
	return err;
}

time_t time(time_t *ret)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME_COARSE, &t);
	if (ret)
		*ret = t.tv_sec;
	return t.tv_sec;
}
