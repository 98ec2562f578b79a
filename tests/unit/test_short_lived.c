/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes have come and gone, by scripts of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "capture/short_lived.h"
#include "kernel/events.h"

#define MAX_EVENTS 64
#define PARENT 9 /* was there before */

/* "f1" is forked by PARENT, "f12": 2 by 1; "t1" begins a thread, "x1" ends one, "e1" runs another program, "m1"
 * maps code, "l" is a loss. */
static size_t parse(const char *script, struct event *ret)
{
	size_t cnt = 0;

	for (const char *s = strtok(strdupa(script), " "); s; s = strtok(NULL, " ")) {
		struct event *ev = &ret[cnt++];

		assert_true(cnt < MAX_EVENTS);
		*ev = (struct event){ .time_ns = 1000 + cnt, .pid = s[1] ? s[1] - '0' : 0 };
		switch (s[0]) {
		case 'f':
			ev->type = EVENT_FORK;
			ev->ppid = s[2] ? ev->pid : PARENT;
			ev->pid = s[2] ? (uint32_t)(s[2] - '0') : ev->pid;
			break;
		case 't':
			ev->type = EVENT_FORK;
			ev->ppid = ev->pid;
			break;
		case 'x':
			ev->type = EVENT_EXIT;
			break;
		case 'e':
			ev->type = EVENT_EXEC;
			break;
		case 'm':
			ev->type = EVENT_MMAP;
			break;
		case 'l':
			ev->type = EVENT_LOST;
			break;
		default:
			fail();
		}
	}
	return cnt;
}

static void check(struct short_lived *s, size_t cnt, const char *want)
{
	char got[MAX_EVENTS + 1] = "";

	for (size_t i = 0; i < cnt; i++)
		got[i] = short_lived__has(s, i) ? '*' : '.';
	assert_string_equal(got, want);
	assert_false(short_lived__has(s, cnt));
}

/* Which events are of such processes: "*". */
static const struct {
	const char *script, *want;
} scripts[] = {
	{ "", "" },
	{ "f1 e1 m1 m1 x1", "*****" },
	{ "f1 x1", "**" },
	/* no end yet; no beginning */
	{ "f1 e1 m1", "..." },
	{ "m1 e1 x1", "..." },
	/* events of others are theirs */
	{ "f1 m2 x1 x2 m9", "*.*.." },
	{ "f1 f2 m1 m2 x2 m1", ".*.**." },
	{ "f1 f2 x1 x2", "****" },
	/* a parent is known as long as its child may be */
	{ "f1 f12 x2 x1", ".**." },
	{ "f1 f12 x1", "..." },
	{ "f1 f12 f23 x3 x2 x1", "..**.." },
	/* it ends with its last thread */
	{ "f1 t1 x1", "..." },
	{ "f1 t1 x1 x1", "****" },
	{ "f1 t1 t1 x1 x1 x1", "******" },
	/* one thread is left, whoever runs another program */
	{ "f1 t1 t1 x1 x1 e1 m1 x1", "********" },
	/* such an end was none */
	{ "f1 x1 e1 m1 x1", "....." },
	{ "f1 x1 m1", "..." },
	{ "f1 x1 x1", "..." },
	/* two with one number */
	{ "f1 x1 f1 x1", "...." },
	{ "f1 x1 f1", "..." },
	/* then everything is looked at anew */
	{ "f1 x1 l", "..." },
	{ "l f1 x1", "..." },
};

static void have_come_and_gone(void **state)
{
	struct short_lived *s = short_lived__new();
	struct event events[MAX_EVENTS];

	(void)state;
	assert_non_null(s);
	for (size_t i = 0; i < ARRAY_SIZE(scripts); i++) {
		size_t cnt = parse(scripts[i].script, events);

		print_message("%s\n", scripts[i].script);
		short_lived__find(s, events, cnt);
		check(s, cnt, scripts[i].want);
	}
	short_lived__free(s);
}

static void sampled(void **state)
{
	struct short_lived *s = short_lived__new();
	struct event events[MAX_EVENTS];
	size_t cnt = parse("f1 f2 m1 m2 x1 x2 f3", events);

	(void)state;
	assert_non_null(s);
	short_lived__sampled(s, 1);
	short_lived__find(s, events, cnt);
	check(s, cnt, "******.");
	short_lived__sampled(s, 1);
	short_lived__sampled(s, 3);
	short_lived__sampled(s, 4);
	check(s, cnt, ".*.*.*.");
	short_lived__find(s, events, 0);
	short_lived__sampled(s, 2);
	check(s, 0, "");
	short_lived__free(s);
}

/* What is wanted of those that are asked for. */
struct asked {
	char pids[MAX_EVENTS];
	uint32_t keep;
};

static bool keep(void *ctx, const struct short_lived_proc *p)
{
	struct asked *a = ctx;
	size_t len = strlen(a->pids);

	assert_true(len + 1 < sizeof(a->pids));
	a->pids[len] = (char)('0' + p->pid);
	assert_int_equal(p->parent, PARENT);
	assert_int_equal(p->ended_ns, p->pid == 2 ? 1005 : 1006);
	return p->pid == a->keep;
}

static void kept(void **state)
{
	struct short_lived *s = short_lived__new();
	struct event events[MAX_EVENTS];
	size_t cnt = parse("f1 f2 f3 m3 x2 x3 f4", events);
	struct asked asked = { .keep = 2 };

	(void)state;
	assert_non_null(s);
	short_lived__find(s, events, cnt);
	check(s, cnt, ".*****.");
	assert_true(short_lived__keep(s, keep, &asked));
	assert_string_equal(asked.pids, "23");
	check(s, cnt, "..**.*.");
	/* the other one, too: it alone is asked for */
	asked = (struct asked){ .keep = 3 };
	assert_false(short_lived__keep(s, keep, &asked));
	assert_string_equal(asked.pids, "3");
	check(s, cnt, ".......");
	short_lived__find(s, events, cnt);
	check(s, cnt, ".*****.");
	short_lived__clear(s);
	check(s, cnt, ".......");
	short_lived__free(s);
}

/* More than a table has at first, whose numbers have the same lower bits. */
static void many(void **state)
{
	const size_t cnt = 20000;
	struct short_lived *s = short_lived__new();
	struct event *events = calloc(2 * cnt, sizeof(*events));

	(void)state;
	assert_true(s && events);
	for (size_t i = 0; i < cnt; i++) {
		uint32_t pid = (uint32_t)(i + 1) << 10;

		events[i] = (struct event){ .type = EVENT_FORK, .pid = pid, .ppid = PARENT };
		events[2 * cnt - 1 - i] = (struct event){ .type = i % 3 ? EVENT_EXIT : EVENT_MMAP,
							  .pid = pid,
							  .time_ns = 1 };
	}
	short_lived__find(s, events, 2 * cnt);
	for (size_t i = 0; i < cnt; i++) {
		assert_int_equal(short_lived__has(s, i), i % 3 != 0);
		assert_int_equal(short_lived__has(s, 2 * cnt - 1 - i), i % 3 != 0);
	}
	free(events);
	short_lived__free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(have_come_and_gone),
		cmocka_unit_test(sampled),
		cmocka_unit_test(kept),
		cmocka_unit_test(many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
