// SPDX-License-Identifier: BSD-2-Clause
/*
 * CPUs on which an event cannot be opened: the others are recorded, and it is said once which are not. The machine is made
 * up: --wrap gives it CPUs, and answers for the kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/types.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/util.h"
#include "kernel/cpus.h"
#include "kernel/events.h"
#include "kernel/perf_events.h"
#include "toolrun.h"

#define CPUS 4
#define PAGES 2

static int refused[CPUS]; /* errno: by CPU; 0: none */
static bool unmappable;	  /* no ring can be mapped of CPU 1 */
static int opened;	  /* events, in all */
static int links;	  /* that there are */
static uint32_t gone[CPUS];

int __wrap_cpus_possible(void);
int __wrap_cpus_online(bool *online, size_t cnt);
long __wrap_syscall(long number, ...);
long __real_syscall(long number, ...);
struct bpf_link *__wrap_bpf_program__attach_perf_event(const struct bpf_program *prog, int fd);
int __wrap_bpf_link__destroy(struct bpf_link *link);

int __wrap_cpus_possible(void)
{
	return CPUS;
}

int __wrap_cpus_online(bool *online, size_t cnt)
{
	memset(online, true, cnt * sizeof(*online));
	return 0;
}

/* A file in place of an event: as large as head and ring are, and, sealed, one that cannot be mapped to be written, with
 * EPERM. */
static int open_event(int cpu)
{
	int fd;

	assert_in_range(cpu, 0, CPUS - 1);
	if (refused[cpu]) {
		errno = refused[cpu];
		return -1;
	}
	fd = memfd_create("event", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	assert_int_equal(ftruncate(fd, (PAGES + 1) * 4096), 0);
	if (unmappable && cpu == 1)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
	opened++;
	return fd;
}

long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list ap;

	va_start(ap, number);
	for (size_t i = 0; i < ARRAY_SIZE(arg); i++)
		arg[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_perf_event_open)
		return open_event((int)arg[2]);
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
}

/* A link owns its event. */
struct bpf_link *__wrap_bpf_program__attach_perf_event(const struct bpf_program *prog, int fd)
{
	int *link = malloc(sizeof(*link));

	(void)prog;
	assert_non_null(link);
	*link = fd;
	links++;
	return (struct bpf_link *)link;
}

int __wrap_bpf_link__destroy(struct bpf_link *link)
{
	if (!link)
		return 0;
	links--;
	close(*(int *)link);
	free(link);
	return 0;
}

static char *said; /* by the last call of sync_cpus() */
static struct events *events;
static struct perf_events *perf_events;

/* Of whichever there is. */
static int sync_cpus(void)
{
	int saved = dup(STDERR_FILENO), err;
	int to = open(toolrun_path("said"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	size_t sz;

	assert_true(saved >= 0 && to >= 0);
	dup2(to, STDERR_FILENO);
	err = events ? events__sync_cpus(events, gone) : perf_events__sync(perf_events, gone);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(to);
	free(said);
	said = toolrun_read(toolrun_path("said"), &sz);
	said[sz] = '\0';
	return err;
}

static int setup_events(void **state)
{
	(void)state;
	memset(refused, 0, sizeof(refused));
	unmappable = false;
	opened = 0;
	events = events__new(PAGES);
	return !events;
}

static int setup_perf_events(void **state)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE };

	(void)state;
	memset(refused, 0, sizeof(refused));
	opened = 0;
	perf_events = perf_events__new(NULL, &attr, "sampled");
	return !perf_events;
}

static int teardown(void **state)
{
	(void)state;
	events__free(events);
	perf_events__free(perf_events);
	events = NULL;
	perf_events = NULL;
	free(said);
	said = NULL;
	return links;
}

/* Whichever it is: what is not there is said once, tried again, and recorded as soon as it can be. */
static void comes_later(const char *want)
{
	assert_int_equal(sync_cpus(), 0);
	assert_int_equal(opened, 2);
	assert_string_equal(said, want);
	assert_int_equal(sync_cpus(), 0);
	assert_string_equal(said, "");
	refused[1] = 0;
	assert_int_equal(sync_cpus(), 0);
	assert_int_equal(opened, 3);
	refused[3] = 0;
	assert_int_equal(sync_cpus(), 0);
	assert_int_equal(opened, 4);
	assert_string_equal(said, "");
}

static void test_events(void **state)
{
	(void)state;
	refused[1] = refused[3] = EMFILE;
	comes_later(
		"bpfprof: 2 of 4 CPUs are not watched for what processes do: too many open files "
		"(raise ulimit -Hn)\n");
}

static void test_perf_events(void **state)
{
	(void)state;
	refused[1] = refused[3] = EMFILE;
	comes_later(
		"bpfprof: 2 of 4 CPUs are not sampled: too many open files (raise ulimit -Hn)\n");
}

/* Opened, and then there is no memory for its ring: the rights are not what is missing. */
static void test_no_ring(void **state)
{
	(void)state;
	unmappable = true;
	assert_int_equal(sync_cpus(), 0);
	assert_string_equal(said,
			    "bpfprof: 1 of 4 CPUs are not watched for what processes do: no more "
			    "memory may be locked (give CAP_IPC_LOCK, or raise ulimit -l or "
			    "kernel.perf_event_mlock_kb)\n");
	for (int i = 0; i < CPUS; i++)
		refused[i] = i == 1 ? 0 : EMFILE;
	events__free(events);
	events = events__new(PAGES);
	assert_int_equal(sync_cpus(), -EMFILE);
	/* the caller says it */
	assert_string_equal(said, "");
}

/* One that has gone since the list was read is not left out. */
static void test_gone(void **state)
{
	(void)state;
	refused[2] = ENODEV;
	assert_int_equal(sync_cpus(), 0);
	assert_int_equal(opened, 3);
	assert_string_equal(said, "");
}

static void test_none(void **state)
{
	(void)state;
	for (int i = 0; i < CPUS; i++)
		refused[i] = i ? EACCES : ENODEV;
	assert_int_equal(sync_cpus(), -EACCES);
	assert_string_equal(said, "");
}

/* All that the hard limit allows, whatever the soft one was. */
static void test_limit(void **state)
{
	struct rlimit had, now;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
	now = (struct rlimit){ .rlim_cur = had.rlim_max / 2, .rlim_max = had.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	util_raise_fd_limit();
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &now), 0);
	assert_int_equal(now.rlim_cur, had.rlim_max);
	assert_int_equal(now.rlim_max, had.rlim_max);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &had), 0);
}

#define EVENTS(f) cmocka_unit_test_setup_teardown(f, setup_events, teardown)
#define PERF_EVENTS(f) cmocka_unit_test_setup_teardown(f, setup_perf_events, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EVENTS(test_events),	EVENTS(test_no_ring),	       EVENTS(test_gone),
		EVENTS(test_none),	PERF_EVENTS(test_perf_events), PERF_EVENTS(test_gone),
		PERF_EVENTS(test_none), cmocka_unit_test(test_limit),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}
