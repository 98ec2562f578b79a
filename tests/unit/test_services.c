// SPDX-License-Identifier: BSD-2-Clause
/* Which service processes say they are of: when they are asked, how often, and whose answer it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "base/util.h"
#include "context_made.h"
#include "target/objects.h"
#include "target/proc_maps.h"
#include "target/procs.h"
#include "target/services.h"

#define MINUTE (60 * NSEC_PER_SEC)

static struct procs *procs;
static struct objects *objects;
static struct services *services;

/* ---- what is counted, and made up ---- */

static int environs, contexts; /* asked for */
static const char *made_up;    /* NULL: what is there */
static int environ_err;
static size_t maps_sz;	    /* that a context is looked for in, if something is made up */
static uint64_t stopped_ns; /* 0: the clock goes on */

int __wrap_objects__read_environ(struct objects *o, int fd, struct said *ret);
int __real_objects__read_environ(struct objects *o, int fd, struct said *ret);
int __wrap_procs__find_contexts(const struct procs *ps, uint32_t idx, uint64_t *ret,
				size_t *ret_sz);
int __real_procs__find_contexts(const struct procs *ps, uint32_t idx, uint64_t *ret,
				size_t *ret_sz);
uint64_t __wrap_util_monotonic_ns(void);
uint64_t __real_util_monotonic_ns(void);

int __wrap_objects__read_environ(struct objects *o, int fd, struct said *ret)
{
	environs++;
	*ret = (struct said){ 0 };
	if (made_up)
		said__put(ret, SAID_SERVICE, made_up, strlen(made_up));
	return environ_err || made_up ? environ_err : __real_objects__read_environ(o, fd, ret);
}

int __wrap_procs__find_contexts(const struct procs *ps, uint32_t idx, uint64_t *ret, size_t *ret_sz)
{
	contexts++;
	*ret_sz = maps_sz;
	return made_up ? 0 : __real_procs__find_contexts(ps, idx, ret, ret_sz);
}

uint64_t __wrap_util_monotonic_ns(void)
{
	return stopped_ns ? stopped_ns : __real_util_monotonic_ns();
}

static int setup(void **state)
{
	(void)state;
	environs = contexts = environ_err = 0;
	made_up = NULL;
	maps_sz = 0;
	stopped_ns = 0;
	objects = objects__new();
	procs = procs__new("/proc");
	services = objects && procs ? services__new(procs, objects) : NULL;
	return !services;
}

static int teardown(void **state)
{
	(void)state;
	services__free(services);
	procs__free(procs);
	objects__free(objects);
	return 0;
}

/* ---- processes ---- */

struct program {
	pid_t pid;
	int in, out; /* its standard input and output */
};

/* What a program does: with each line it publishes what the line says, or becomes the same program with
 * this in its environment. */
static int be_program(bool executes)
{
	static struct context_bytes message;
	static char line[128];
	bool named;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		char variable[160];
		struct context_header *h;

		line[strcspn(line, "\n")] = '\0';
		snprintf(variable, sizeof(variable), "OTEL_SERVICE_NAME=%s", line);
		if (executes)
			execle("/proc/self/exe", "test", "executes", NULL,
			       (char *[]){ variable, NULL });
		h = executes ? NULL : context_map(true, &named);
		if (!h)
			return 1;
		context_message(&message, line);
		context_publish(h, message.data, message.sz, 5);
		printf("ready\n");
		fflush(stdout);
	}
	return 0;
}

static void await(const struct program *p)
{
	char line[6];

	assert_int_equal(read(p->out, line, sizeof(line)), sizeof(line));
	assert_memory_equal(line, "ready\n", sizeof(line));
}

/* variable: the one in its environment. */
static struct program start(const char *how, const char *variable)
{
	int in[2], out[2];
	struct program p;

	assert_true(!pipe(in) && !pipe(out));
	p.pid = fork();
	assert_true(p.pid >= 0);
	if (!p.pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execle("/proc/self/exe", "test", how, NULL, (char *[]){ (char *)variable, NULL });
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p.in = in[1];
	p.out = out[0];
	await(&p);
	return p;
}

static void tell(const struct program *p, const char *line)
{
	assert_int_equal(write(p->in, line, strlen(line)), strlen(line));
	await(p);
}

static void stop(const struct program *p)
{
	int status;

	assert_int_equal(kill(p->pid, SIGKILL), 0);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	/* it was there until now */
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(p->in);
	close(p->out);
}

static uint32_t add(pid_t pid, uint32_t exec_id)
{
	uint64_t start_ns;
	uint32_t ret;

	assert_int_equal(proc_stat_start("/proc", (uint32_t)pid, &start_ns), 0);
	ret = procs__add(procs, (uint32_t)pid, exec_id, start_ns, "test", false,
			 __real_util_monotonic_ns());
	assert_int_not_equal(ret, PROCS_NONE);
	return ret;
}

/* name: NULL: none. */
static void need_service(uint32_t proc, uint64_t time_ns, const char *name)
{
	struct service *s = services__of(services, proc, time_ns);

	assert_int_equal(s != NULL, name != NULL);
	if (!s)
		return;
	assert_string_equal(s->said.text[SAID_SERVICE], name);
	services__unref(services, s);
}

static void need_asked(int wanted_contexts, int wanted_environs)
{
	assert_int_equal(contexts, wanted_contexts);
	assert_int_equal(environs, wanted_environs);
}

/* ---- when ---- */

static void asked_seldom(void **state)
{
	struct program none = start("publishes", "X=1"),
		       env = start("publishes", "DD_SERVICE=shop");
	uint32_t proc = add(none.pid, 1), other = add(env.pid, 1);
	static const struct {
		uint64_t at_ns;
		int contexts;
	} samples[] = {
		{ 0, 1 },
		{ 1, 1 },
		{ NSEC_PER_SEC - 1, 1 },
		{ NSEC_PER_SEC, 2 },
		{ 10 * NSEC_PER_SEC - 1, 2 },
		{ 10 * NSEC_PER_SEC, 3 },
		{ 59 * NSEC_PER_SEC, 3 },
		{ 90 * NSEC_PER_SEC, 4 },
		{ 60 * MINUTE, 4 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		need_service(proc, MINUTE + samples[i].at_ns, NULL);
		need_asked(samples[i].contexts, 1);
	}
	/* nor the environment, where there is something in it */
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		need_service(other, MINUTE + samples[i].at_ns, "shop");
		need_asked(4 + samples[i].contexts, 2);
	}
	stop(&none);
	stop(&env);
}

static void context_later(void **state)
{
	struct program p = start("publishes", "OTEL_SERVICE_NAME=env");
	uint32_t proc = add(p.pid, 1);

	(void)state;
	need_service(proc, MINUTE, "env");
	tell(&p, "context\n");
	need_service(proc, MINUTE, "env");
	need_service(proc, MINUTE + 2 * NSEC_PER_SEC, "context");
	need_asked(2, 1);
	/* then it is known */
	need_service(proc, 60 * MINUTE, "context");
	need_asked(2, 1);
	stop(&p);
	/* and stays so when the process has ended, for what was sampled before */
	procs__end(procs, proc);
	need_service(proc, 60 * MINUTE, "context");
	need_asked(2, 1);
}

/* Its context counts more than its environment, which is not even read. */
static void context_first(void **state)
{
	struct program p = start("publishes", "OTEL_SERVICE_NAME=env");
	uint32_t proc = add(p.pid, 1);

	(void)state;
	tell(&p, "context\n");
	need_service(proc, MINUTE, "context");
	need_asked(1, 0);
	/* one that was told no name says nothing */
	stop(&p);
	p = start("publishes", "OTEL_SERVICE_NAME=env");
	tell(&p, "unknown_service:test\n");
	need_service(add(p.pid, 1), MINUTE, "env");
	stop(&p);
}

/* One that has just begun is not asked for what it cannot have yet. */
static void young(void **state)
{
	struct program p = start("publishes", "OTEL_SERVICE_NAME=env");
	uint64_t exec_ns;
	uint32_t proc;

	(void)state;
	tell(&p, "context\n");
	(void)add(p.pid, 1);
	assert_int_equal(procs__on_exec(procs, (uint32_t)p.pid, util_monotonic_ns(), "test"), 0);
	proc = procs__find_live(procs, (uint32_t)p.pid);
	exec_ns = procs__get(procs, proc)->from_ns;
	need_service(proc, exec_ns + NSEC_PER_SEC / 2, "env");
	need_asked(0, 1);
	need_service(proc, exec_ns + NSEC_PER_SEC, "env");
	need_asked(0, 1);
	need_service(proc, exec_ns + NSEC_PER_SEC * 3 / 2, "context");
	need_asked(1, 1);
	stop(&p);
	/* the first time, too, if it has been at work for that long */
	p = start("publishes", "OTEL_SERVICE_NAME=env");
	tell(&p, "context\n");
	(void)add(p.pid, 1);
	assert_int_equal(procs__on_exec(procs, (uint32_t)p.pid, util_monotonic_ns(), "test"), 0);
	proc = procs__find_live(procs, (uint32_t)p.pid);
	need_service(proc, procs__get(procs, proc)->from_ns + NSEC_PER_SEC, "context");
	need_asked(2, 1);
	stop(&p);
}

/* ---- whose ---- */

static void same(void **state)
{
	struct program p[] = { start("publishes", "OTEL_SERVICE_NAME=shop"),
			       start("publishes", "DD_SERVICE=shop"),
			       start("publishes", "DD_SERVICE=other") };
	struct service *s[ARRAY_SIZE(p)];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		s[i] = services__of(services, add(p[i].pid, 1), MINUTE);
	assert_non_null(s[0]);
	assert_ptr_equal(s[0], s[1]);
	assert_ptr_not_equal(s[0], s[2]);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		services__unref(services, s[i]);
		stop(&p[i]);
	}
}

static void executed(void **state)
{
	struct program p = start("executes", "OTEL_SERVICE_NAME=a");
	uint32_t a = add(p.pid, 1), b, c;
	uint64_t exec_ns;

	(void)state;
	need_service(a, MINUTE, "a");
	exec_ns = util_monotonic_ns();
	tell(&p, "b\n");
	assert_int_equal(procs__on_exec(procs, (uint32_t)p.pid, exec_ns, "test"), 0);
	b = procs__find_live(procs, (uint32_t)p.pid);
	assert_int_not_equal(a, b);
	need_service(b, MINUTE, "b");
	/* what arrives late is the former's */
	need_service(a, MINUTE, "a");
	stop(&p);

	/* asked when it was another program already, and nobody had heard of it */
	p = start("executes", "OTEL_SERVICE_NAME=a");
	a = add(p.pid, 1);
	exec_ns = util_monotonic_ns();
	tell(&p, "c\n");
	need_service(a, MINUTE, "c");
	assert_int_equal(procs__on_exec(procs, (uint32_t)p.pid, exec_ns, "test"), 0);
	c = procs__find_live(procs, (uint32_t)p.pid);
	need_service(a, MINUTE, NULL);
	need_service(c, MINUTE, "c");
	stop(&p);
}

static void ended(void **state)
{
	struct program p = start("publishes", "OTEL_SERVICE_NAME=shop");
	uint32_t proc = add(p.pid, 1);

	(void)state;
	/* nobody has told of it */
	stop(&p);
	need_service(proc, MINUTE, NULL);
	/* it is not asked again, whatever has its id then; nor one of whose end was told */
	need_asked(1, 0);
	need_service(proc, 2 * MINUTE, NULL);
	p = start("publishes", "OTEL_SERVICE_NAME=shop");
	proc = add(p.pid, 1);
	procs__end(procs, proc);
	need_service(proc, MINUTE, NULL);
	need_asked(1, 0);
	/* nor does another one with its id answer for it */
	proc = procs__add(procs, (uint32_t)p.pid, 1, NSEC_PER_SEC, "test", false, MINUTE);
	need_service(proc, MINUTE, NULL);
	need_service(proc, 10 * MINUTE, NULL);
	need_asked(2, 1);
	stop(&p);
}

/* A number that is given to another process. */
static void number_again(void **state)
{
	struct program a = start("publishes", "OTEL_SERVICE_NAME=a"),
		       b = start("publishes", "OTEL_SERVICE_NAME=b");
	uint32_t proc = add(a.pid, 1);

	(void)state;
	need_service(proc, MINUTE, "a");
	procs__remove(procs, proc);
	assert_int_equal(add(b.pid, 1), proc);
	need_service(proc, 2 * MINUTE, "b");
	need_asked(2, 2);
	procs__remove(procs, proc);
	/* the kernel's threads have nothing to say */
	assert_int_equal(procs__add(procs, 2, 0, 0, "kthreadd", true, MINUTE), proc);
	need_service(proc, 3 * MINUTE, NULL);
	need_asked(2, 2);
	stop(&a);
	stop(&b);
}

/* ---- how often ---- */

static void in_bounds(void **state)
{
	struct program p = start("publishes", "X=1");
	uint32_t proc;

	(void)state;
	stopped_ns = util_monotonic_ns();
	services__free(services);
	services = services__new(procs, objects);
	made_up = "shop";
	for (int i = 0; i < SERVICES_BURST; i++)
		need_service(add(p.pid, 1000 + i), MINUTE, "shop");
	need_asked(SERVICES_BURST, SERVICES_BURST);
	/* no more, but with a later sample */
	proc = add(p.pid, 1);
	need_service(proc, MINUTE, NULL);
	need_asked(SERVICES_BURST, SERVICES_BURST);
	stopped_ns += NSEC_PER_SEC;
	need_service(proc, MINUTE, "shop");
	for (int i = 1; i < SERVICES_ASKS_PER_SECOND; i++)
		need_service(add(p.pid, 2000 + i), MINUTE, "shop");
	need_service(add(p.pid, 3000), MINUTE, NULL);
	need_asked(SERVICES_BURST + SERVICES_ASKS_PER_SECOND,
		   SERVICES_BURST + SERVICES_ASKS_PER_SECOND);
	/* nothing is saved up beyond that */
	stopped_ns += 60 * MINUTE;
	for (int i = 0; i < SERVICES_BURST; i++)
		need_service(add(p.pid, 4000 + i), MINUTE, "shop");
	need_service(add(p.pid, 5000), MINUTE, NULL);
	stop(&p);
}

/* Whose memory does not answer: not again, and others pay for the time. */
static void harmed(void **state)
{
	struct program p = start("publishes", "X=1");
	uint32_t proc;
	int left = SERVICES_BURST - 1 - 10 * SERVICES_ASKS_PER_SECOND;

	(void)state;
	stopped_ns = util_monotonic_ns();
	services__free(services);
	services = services__new(procs, objects);
	made_up = "shop";
	environ_err = -ETIMEDOUT;
	proc = add(p.pid, 1);
	need_service(proc, MINUTE, NULL);
	environ_err = 0;
	need_service(proc, 10 * MINUTE, NULL);
	need_asked(1, 1);
	for (int i = 0; i < left; i++)
		need_service(add(p.pid, 1000 + i), MINUTE, "shop");
	need_service(add(p.pid, 5000), MINUTE, NULL);
	need_asked(1 + left, 1 + left);
	stop(&p);
}

/* Who maps much counts as many. */
static void much_mapped(void **state)
{
	struct program p = start("publishes", "X=1");
	int cnt = 0;

	(void)state;
	stopped_ns = util_monotonic_ns();
	services__free(services);
	services = services__new(procs, objects);
	made_up = "shop";
	maps_sz = 10 * SERVICES_MAPS_SZ - 1;
	for (; cnt < SERVICES_BURST / 10; cnt++)
		need_service(add(p.pid, 1000 + cnt), MINUTE, "shop");
	/* as many as are left, of others */
	maps_sz = 0;
	for (; cnt < SERVICES_BURST / 10 + SERVICES_BURST % 10; cnt++)
		need_service(add(p.pid, 1000 + cnt), MINUTE, "shop");
	need_service(add(p.pid, 5000), MINUTE, NULL);
	need_asked(cnt, cnt);
	stop(&p);
}

/* What is only wrong for the moment is read the next time. */
static void not_yet(void **state)
{
	struct program p = start("publishes", "OTEL_SERVICE_NAME=shop");
	uint32_t proc = add(p.pid, 1);

	(void)state;
	environ_err = -EAGAIN;
	need_service(proc, MINUTE, NULL);
	environ_err = 0;
	need_service(proc, MINUTE, NULL);
	need_service(proc, MINUTE + NSEC_PER_SEC, "shop");
	need_asked(2, 2);
	stop(&p);
}

/* Different ones, as long as somebody refers to them. */
static void too_many(void **state)
{
	struct program p = start("publishes", "X=1");
	char name[32];

	(void)state;
	stopped_ns = util_monotonic_ns();
	made_up = name;
	for (int i = 0; i <= SERVICES_MAX; i++) {
		snprintf(name, sizeof(name), "shop%d", i);
		need_service(add(p.pid, 1000 + i), MINUTE, i < SERVICES_MAX ? name : NULL);
		stopped_ns += NSEC_PER_SEC;
	}
	/* one that is there */
	strcpy(name, "shop0");
	need_service(add(p.pid, 9000), MINUTE, name);
	stop(&p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(asked_seldom), TEST(context_later), TEST(context_first), TEST(young),
		TEST(same),	    TEST(executed),	 TEST(ended),	      TEST(number_again),
		TEST(in_bounds),    TEST(harmed),	 TEST(much_mapped),   TEST(not_yet),
		TEST(too_many),
	};

	if (argc > 1)
		return be_program(!strcmp(argv[1], "executes"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
