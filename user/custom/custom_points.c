// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "custom/custom_points.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "bpfprof.h"
#include "custom/custom_wanted.h"
#include "target/custom_sites.h"
#include "target/objects.h"
#include "target/probe_sites.h"

struct set {
	char name[CUSTOM_NAME_SZ];
	size_t points;
};

struct object {
	uint64_t serial; /* of the object; 0: not looked into */
	struct custom_object found;
	size_t cap[PROBE_CUSTOM_NR_GROUPS];
};

/* A function of a pair, as far as it has been looked for. */
struct function_state {
	bool mapped; /* somebody maps such a file */
	bool found;
	int err; /* -errno: it cannot be probed there */
};

struct custom_points {
	const struct custom_wanted *wanted;
	struct objects *objects;
	struct set sets[CUSTOM_MAX_SETS];
	size_t set_cnt;
	struct object *by_object;
	size_t object_cap;
	struct function_state adds[CUSTOM_WANTED_MAX], removes[CUSTOM_WANTED_MAX]; /* by pair */
	bool full; /* of sets; it has been said */
};

/* Its number; 0: it is not wanted, or there is no room. */
static uint32_t set_of(struct custom_points *p, const char *name)
{
	for (size_t i = 0; i < p->set_cnt; i++)
		if (!strcmp(p->sets[i].name, name))
			return (uint32_t)i + 1;
	if (!custom_wanted__has(p->wanted, name))
		return 0;
	if (p->set_cnt == CUSTOM_MAX_SETS) {
		if (!p->full)
			log_info(
				"more than %d custom profiles: '%s' and others are left out, name "
				"those that are wanted",
				CUSTOM_MAX_SETS, name);
		p->full = true;
		return 0;
	}
	strcpy(p->sets[p->set_cnt++].name, name);
	return (uint32_t)p->set_cnt;
}

struct custom_points *custom_points__new(const struct custom_wanted *wanted,
					 struct objects *objects)
{
	struct custom_points *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->wanted = wanted;
	p->objects = objects;
	/* those that were named are there, whether anybody has them or not */
	for (size_t i = 0; i < custom_wanted__cnt(wanted); i++)
		(void)set_of(p, custom_wanted__name(wanted, i));
	return p;
}

static void forget(struct object *o)
{
	for (int g = 0; g < PROBE_CUSTOM_NR_GROUPS; g++)
		free(o->found.points[g]);
	*o = (struct object){ 0 };
}

void custom_points__free(struct custom_points *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->object_cap; i++)
		forget(&p->by_object[i]);
	free(p->by_object);
	free(p);
}

static int add(struct custom_points *p, struct object *o, enum probe_custom_group group,
	       uint32_t set, const struct uprobe_point *point)
{
	size_t n = o->found.cnt[group];

	if (util_reserve(&o->found.points[group], &o->cap[group], n + 1, sizeof(*point)))
		return -ENOMEM;
	o->found.points[group][n] = *point;
	o->found.points[group][n].cookie |= (uint64_t)set << BPFPROF_USDT_ARG_BITS;
	o->found.cnt[group]++;
	p->sets[set - 1].points++;
	return 0;
}

/* What the program says itself. */
static int add_sites(struct custom_points *p, uint32_t object, struct object *o)
{
	const char *path = objects__info(p->objects, object)->path;
	struct custom_sites found;
	int err = objects__custom_sites(p->objects, object, &found);

	/* a file that cannot be read has no names either, which is said elsewhere */
	if (err)
		return objects__unanswered(p->objects, object, err) ? err : 0;
	for (size_t i = 0; !err && i < found.cnt; i++) {
		const struct custom_site *s = &found.sites[i];
		struct uprobe_point point = { .offset = s->offset,
					      .ref_ctr = s->ref_ctr,
					      .cookie = s->value };
		uint32_t set = set_of(p, s->name);

		if (set)
			err = add(p, o, s->removes ? PROBE_CUSTOM_REMOVE : PROBE_CUSTOM_ADD, set,
				  &point);
	}
	if (found.refused)
		log_info("'%s': %" PRIu64
			 " probes of custom profiles are left out: their names or arguments are "
			 "of no known form, they stand where a probe could do harm, or they are "
			 "more than %d",
			 path, found.refused, CUSTOM_SITES_MAX);
	custom_sites__done(&found);
	return err;
}

/* ---- pairs of functions ---- */

/* Does the file go by this name: its path, the end of it, or a library's without its version? */
static bool goes_by(const char *path, const char *name)
{
	size_t len = strlen(name), path_len = strlen(path);
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	if (!strncmp(base, name, len) && !strncmp(base + len, ".so", 3))
		return true;
	return path_len >= len && !strcmp(path + path_len - len, name) &&
	       (path_len == len || *name == '/' || path[path_len - len - 1] == '/');
}

/* Where the value is, as the arguments of a USDT probe are told: DWARF numbers of registers (psABI
 * 3.2.3). */
static uint64_t place_of(unsigned int arg)
{
	static const uint64_t registers[] = { 0, 5, 4, 1, 2, 8, 9 };

	return registers[arg];
}

static int add_function(struct custom_points *p, uint32_t object, struct object *o,
			const struct custom_function *f, enum probe_custom_group group,
			uint64_t flags, uint32_t set, struct function_state *state)
{
	enum probe_sites_use use = f->arg ? PROBE_SITES_ARG + f->arg - 1 : PROBE_SITES_RETURN;
	const char *path = objects__info(p->objects, object)->path;
	struct probe_sites found;
	int err;

	if (!set || !goes_by(path, f->file))
		return 0;
	state->mapped = true;
	err = objects__sites(p->objects, object, "", f->function, use, &found);
	if (err && objects__unanswered(p->objects, object, err)) {
		state->err = -EAGAIN;
		return err;
	}
	if (err) {
		state->err = err;
		return 0;
	}
	state->found = true;
	for (size_t i = 0; !err && i < found.cnt; i++) {
		struct uprobe_point point = { .offset = found.sites[i].offset,
					      .cookie = place_of(f->arg) | flags };

		err = add(p, o, group, set, &point);
	}
	probe_sites__done(&found);
	return err;
}

static int add_pairs(struct custom_points *p, uint32_t object, struct object *o)
{
	int err = 0;

	for (size_t i = 0; !err && i < p->wanted->pair_cnt; i++) {
		const struct custom_pair *pair = &p->wanted->pairs[i];
		uint64_t flags = pair->add.arg ? 0 : BPFPROF_CUSTOM_MAY_FAIL;
		uint32_t set = set_of(p, pair->name);

		err = add_function(p, object, o, &pair->add,
				   pair->add.arg ? PROBE_CUSTOM_ADD : PROBE_CUSTOM_ADD_RETURN,
				   flags | (pair->add.arg ? 0 : BPFPROF_CUSTOM_RETURNED), set,
				   &p->adds[i]);
		if (!err)
			err = add_function(p, object, o, &pair->remove,
					   pair->remove.arg ? PROBE_CUSTOM_REMOVE :
							      PROBE_CUSTOM_REMOVE_RETURN,
					   flags, set, &p->removes[i]);
	}
	return err;
}

static int fail_function(const struct custom_pair *pair, const struct custom_function *f,
			 const struct function_state *state, char *err, size_t err_sz)
{
	if (!state->mapped)
		return util_fail(-ENOENT, err, err_sz,
				 "'%s': no process maps a file '%s': name it as /proc/PID/maps "
				 "does",
				 pair->name, f->file);
	if (state->err == -EAGAIN)
		return util_fail(-ENOENT, err, err_sz,
				 "'%s': '%s' could not be read in time: try again", pair->name,
				 f->file);
	if (state->err == -EOPNOTSUPP)
		return util_fail(
			-ENOENT, err, err_sz,
			"'%s': '%s' of '%s' is left alone: an exception could not pass "
			"where its return is waited for, or it is Go's; name a function of "
			"C, or an argument",
			pair->name, f->function, f->file);
	if (state->err == -ENOTUNIQ)
		return util_fail(-ENOENT, err, err_sz,
				 "'%s': '%s' has several functions '%s': give one of them its full "
				 "name, as nm prints it",
				 pair->name, f->file, f->function);
	return util_fail(-ENOENT, err, err_sz, "'%s': '%s' has no function '%s'", pair->name,
			 f->file, f->function);
}

static int check_pair(const struct custom_points *p, size_t i, char *err, size_t err_sz)
{
	const struct custom_pair *pair = &p->wanted->pairs[i];

	if (!p->adds[i].found)
		return fail_function(pair, &pair->add, &p->adds[i], err, err_sz);
	if (!p->removes[i].found)
		return fail_function(pair, &pair->remove, &p->removes[i], err, err_sz);
	return 0;
}

int custom_points__check(const struct custom_points *p, char *err, size_t err_sz)
{
	size_t named = custom_wanted__cnt(p->wanted);
	int res = 0;

	for (size_t i = 0; !res && i < p->wanted->pair_cnt; i++)
		res = check_pair(p, i, err, err_sz);
	/* those that were named come first */
	for (size_t i = 0; !res && i < p->set_cnt && i < named; i++)
		if (!p->sets[i].points)
			res = util_fail(-ENOENT, err, err_sz,
					"no custom profile '%s' in the files that the processes "
					"map: bpfprof list --pid PID says which there are",
					p->sets[i].name);
	return res;
}

const struct custom_object *custom_points__get(struct custom_points *p, uint32_t object)
{
	uint64_t serial = objects__info(p->objects, object)->serial;
	struct object *o;

	if (util_reserve_zeroed(&p->by_object, &p->object_cap, object, sizeof(*p->by_object)))
		return NULL;
	o = &p->by_object[object];
	if (o->serial != serial) {
		/* of one that had this number before */
		forget(o);
		if (add_sites(p, object, o) || add_pairs(p, object, o)) {
			forget(o);
			return NULL;
		}
		o->serial = serial;
	}
	for (int g = 0; g < PROBE_CUSTOM_NR_GROUPS; g++)
		if (o->found.cnt[g])
			return &o->found;
	return NULL;
}

size_t custom_points__set_cnt(const struct custom_points *p)
{
	return p->set_cnt;
}

const char *custom_points__set_name(const struct custom_points *p, uint32_t set)
{
	return p->sets[set - 1].name;
}
