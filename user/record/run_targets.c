// SPDX-License-Identifier: BSD-2-Clause
/* Processes come and go: which of them the configuration's targets are is looked at now and then. */
#include <linux/types.h>

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/process_rule.h"
#include "base/deleted.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/util.h"
#include "capture/capture.h"
#include "config.h"
#include "options.h"
#include "record/run_parts.h"
#include "target/cgroups.h"
#include "target/proc_text.h"

/* Between two looks. To list 300 processes takes the kernel some 0.2 ms. */
#define LOOK_NS (2 * NSEC_PER_SEC)
#define PROCESSES_MAX (1U << 20)

/* What was found of a process, as long as it is the same. */
struct known {
	uint32_t tgid;
	uint32_t rules; /* bit i: rule i means it */
	uint32_t look;	/* that has met it last */
	uint32_t exec_id;
	uint64_t start_ns, cgroup;
	char comm[BPFPROF_COMM_SZ];
	bool chosen;
	bool waits; /* its container or pod has no name yet */
};

struct run_targets {
	uint32_t kinds;	   /* that are recorded of processes that are chosen */
	struct hash known; /* struct known, by tgid */
	struct cgroups *cgroups;
	uint32_t look;
	uint64_t next_ns;
	size_t cnt[PROCESS_RULES_MAX]; /* processes of each rule, by the last look */
	bool full_said[PROCESS_RULES_MAX];
};

int run_open_targets(struct run *r)
{
	const struct config *c = r->opts->config;
	struct run_targets *t;

	if (!c || !c->target_cnt)
		return 0;
	t = r->targets = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	hash__init(&t->known, sizeof(struct known), sizeof(uint32_t), PROCESSES_MAX);
	for (size_t i = 0; i < c->target_cnt; i++)
		t->kinds |= c->targets[i].kinds;
	t->cgroups = cgroups__new(capture__objects(r->capture));
	return t->cgroups ? 0 : -errno;
}

void run_close_targets(struct run *r)
{
	struct run_targets *t = r->targets;

	if (!t)
		return;
	hash__done(&t->known);
	cgroups__free(t->cgroups);
	free(t);
	r->targets = NULL;
}

/* ---- what a process is ---- */

struct facts {
	struct process_facts f;
	struct cgroup *group;
	char comm[BPFPROF_COMM_SZ];
	char exe[PATH_MAX];
};

static void read_exe(uint32_t pid, char ret[PATH_MAX])
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%u/exe", pid);
	n = proc_text_link(link, ret, PATH_MAX - 1);
	/* a newer one has been installed meanwhile: proc_pid_exe(5) */
	ret[n > 0 ? deleted_path_length(ret, (size_t)n) : 0] = '\0';
}

/* The caller gives the group back. */
static void read_facts(struct run_targets *t, const struct bpfprof_task *task, bool exe,
		       struct facts *ret)
{
	*ret = (struct facts){ .group = cgroups__find(t->cgroups, task->cgroup) };
	memcpy(ret->comm, task->comm, sizeof(ret->comm) - 1);
	ret->f.of[PROCESS_COMM] = ret->comm;
	if (exe) {
		read_exe(task->key.tgid, ret->exe);
		ret->f.of[PROCESS_EXE] = ret->exe;
	}
	if (!ret->group)
		return;
	cgroup__find_names(ret->group);
	ret->f.of[PROCESS_CGROUP] = ret->group->path;
	ret->f.of[PROCESS_CONTAINER] = ret->group->what.container;
	ret->f.of[PROCESS_UNIT] = ret->group->what.unit;
	ret->f.of[PROCESS_POD] = ret->group->names.pod;
	ret->f.of[PROCESS_NAMESPACE] = ret->group->names.space;
	ret->f.container_name = ret->group->names.container;
	ret->f.container_service = ret->group->names.service;
}

static void match(struct run_targets *t, const struct config *c, const struct bpfprof_task *task,
		  struct known *k)
{
	struct facts facts;
	bool exe = false;

	for (size_t i = 0; i < c->target_cnt; i++)
		exe |= c->targets[i].patterns[PROCESS_EXE] != NULL;
	read_facts(t, task, exe, &facts);
	k->rules = 0;
	for (size_t i = 0; i < c->target_cnt; i++)
		if (process_rule__matches(&c->targets[i], &facts.f))
			k->rules |= 1U << i;
	/* kubelet makes its folders later than the container may start, and runtimes their files */
	k->waits = facts.group && cgroup__awaits_names(facts.group);
	if (facts.group)
		cgroup__unref(facts.group);
}
_Static_assert(PROCESS_RULES_MAX == 32, "a bit each");

static bool is_same(const struct known *k, const struct bpfprof_task *task)
{
	return k->start_ns == task->key.start_ns && k->exec_id == task->key.exec_id &&
	       k->cgroup == task->cgroup && !memcmp(k->comm, task->comm, sizeof(k->comm));
}

/* ---- a look ---- */

/* The kinds by the rules that have room for one more process. */
static uint32_t choice_of(struct run_targets *t, const struct config *c, const struct known *k,
			  uint32_t off)
{
	uint32_t chosen = 0;

	for (size_t i = 0; i < c->target_cnt; i++) {
		if (!(k->rules & 1U << i))
			continue;
		if (t->cnt[i] < TARGET_PROCESSES_MAX) {
			t->cnt[i]++;
			chosen |= c->targets[i].kinds & t->kinds & ~off;
		} else if (!t->full_said[i]) {
			t->full_said[i] = true;
			log_info(
				"target '%s': more than %d processes match, and the others are "
				"not recorded",
				c->targets[i].name, TARGET_PROCESSES_MAX);
		}
	}
	return chosen;
}

static int look_at(struct run *r, const struct bpfprof_task *task, uint64_t listed_ns)
{
	struct run_targets *t = r->targets;
	const struct config *c = run_config(r);
	struct known *k;
	bool is_new;
	uint32_t chosen;
	int err;

	if (task->kthread || task->key.tgid == (uint32_t)getpid() ||
	    task->ppid == (uint32_t)getpid())
		return 0;
	k = hash__insert(&t->known, &task->key.tgid, &is_new);
	if (!k)
		return errno == ENOSPC ? 0 : -ENOMEM;
	if (is_new || k->waits || !is_same(k, task)) {
		k->start_ns = task->key.start_ns;
		k->exec_id = task->key.exec_id;
		k->cgroup = task->cgroup;
		memcpy(k->comm, task->comm, sizeof(k->comm));
		match(t, c, task, k);
	}
	k->look = t->look;
	chosen = k->rules ? choice_of(t, c, k, run_budget_off(r)) : 0;
	k->chosen = chosen != 0;
	if (chosen == capture__chosen(r->capture, task->key.tgid))
		return 0;
	err = capture__choose(r->capture, task, listed_ns, chosen);
	if (err == -ENOMEM)
		return err;
	if (err)
		log_error("cannot record process %u by itself: %s", task->key.tgid, strerror(-err));
	else
		log_debug("process %u (%.*s) is %s", task->key.tgid, BPFPROF_COMM_SZ, task->comm,
			  chosen ? "a target" : "no target any more");
	return 0;
}

/* The first pass of a look is for those that are chosen, the second one for the others. */
static bool is_due(const struct run_targets *t, const struct bpfprof_task *task, bool others)
{
	const struct known *k = hash__lookup(&t->known, &task->key.tgid);

	return others ? !k || k->look != t->look : k && k->chosen;
}

static void forget_ended(struct run_targets *t)
{
	struct hash_iter it = hash__iter(&t->known);
	struct known *k;

	while ((k = hash_iter__next(&it)))
		if (k->look != t->look)
			hash__remove(&t->known, k);
}

static int look(struct run *r)
{
	struct run_targets *t = r->targets;
	struct bpfprof_task *tasks;
	uint64_t listed_ns;
	size_t cnt;
	int err = capture__processes(r->capture, &tasks, &cnt, &listed_ns);

	if (err)
		return err;
	t->look++;
	memset(t->cnt, 0, sizeof(t->cnt));
	/* where there are more than there is room for, those that are chosen stay */
	for (int others = 0; others < 2; others++)
		for (size_t i = 0; !err && i < cnt; i++)
			if (is_due(t, &tasks[i], others))
				err = look_at(r, &tasks[i], listed_ns);
	free(tasks);
	forget_ended(t);
	return err;
}

int run_choose_targets(struct run *r)
{
	uint64_t now = util_monotonic_ns();

	if (!r->targets || now < r->targets->next_ns)
		return 0;
	r->targets->next_ns = now + LOOK_NS;
	return look(r);
}

void run_reload_targets(struct run *r)
{
	const struct config *c = run_config(r);
	struct run_targets *t = r->targets;
	uint32_t had = t ? t->kinds : 0;

	for (size_t i = 0; i < c->target_cnt; i++)
		if (c->targets[i].kinds & ~had)
			log_info(
				"target '%s': what no target recorded before is recorded after "
				"the next start",
				c->targets[i].name);
	if (!t)
		return;
	hash__done(&t->known);
	memset(t->full_said, 0, sizeof(t->full_said));
	t->next_ns = 0;
}

size_t run_target_processes(const struct run *r, size_t rule)
{
	return r->targets ? r->targets->cnt[rule] : 0;
}
