// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "capture/stack_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/deleted.h"
#include "base/hash.h"
#include "base/util.h"
#include "capture/code.h"
#include "target/cgroups.h"
#include "target/objects.h"
#include "target/perf_maps.h"
#include "target/procs.h"
#include "target/services.h"

#define MAX_EXE_LOOKS 64 /* ranges of a process in which its program is looked for */
#define MAX_LOCATIONS (BPFPROF_MAX_UFRAMES + BPFPROF_MAX_KFRAMES + 1)

/* The kernel's addresses are one mapping: all of the upper half, modules included. */
#define KERNEL_START 0xffff800000000000ULL

/* in the owner of a mapping: memory of the process behind it; the object behind it, which not all have under that number
 * of a file */
#define MEMORY_OWNER 0x80000000U
#define OBJECT_OWNER 0x40000000U

/* What a mapping is found by. */
struct mapping_key {
	struct proc_map map; /* of a file: from 0 on */
	uint32_t
		owner; /* only of memory that is filled with code: each process has its own; and code__own_object */
	uint32_t pad;
};

struct mapping {
	struct stack_mapping m;
	struct mapping_key key;
	uint32_t refs; /* of locations; and one, if it is a program's */
	/* when the first process ended that had a file without build id there, which could not be opened; 0: none */
	uint64_t ended_ns;
};

struct mapping_entry {
	struct mapping_key key;
	uint32_t mapping;
};

struct location {
	struct stack_location l;
	uint32_t refs; /* of frames */
};

struct location_entry {
	uint64_t address;
	uint32_t mapping, marker;
	uint32_t location;
};

/* A stack, and behind it its locations. */
struct stored {
	uint64_t hash;
	uint32_t refs;
	struct stack s;
	uint32_t locations[];
};

/* Numbers that are free, to be given again. */
struct free_list {
	uint32_t *numbers;
	size_t cnt, cap;
};

struct stack_store {
	struct stack_store_opts opts;
	struct procs *procs;
	struct code *code;
	struct cgroups *cgroups;   /* of all stacks; NULL: not asked for */
	struct services *services; /* the same */
	struct mapping *mappings;
	size_t mapping_cnt, mapping_cap;
	struct free_list free_mappings;
	struct hash by_range; /* struct mapping_entry */
	uint32_t kernel;      /* mapping, or STACK_NONE */
	struct location *locations;
	size_t location_cnt, location_cap;
	struct free_list free_locations;
	struct hash by_address; /* struct location_entry */
	struct stored **stacks;
	size_t stack_cnt, stack_cap;
	struct free_list free_stacks;
	struct hash by_frames; /* uint32_t: a stack's number */
	size_t cnt[BPFPROF_NR_KINDS];
	uint32_t main[BPFPROF_NR_KINDS];
};

struct stack_store *stack_store__new(const struct stack_store_opts *opts, struct procs *procs,
				     struct code *code)
{
	struct stack_store *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->opts = *opts;
	s->procs = procs;
	s->code = code;
	s->cgroups = opts->label_process ? cgroups__new(code__objects(code)) : NULL;
	s->services = opts->label_service ? services__new(procs, code__objects(code)) : NULL;
	if ((opts->label_process && !s->cgroups) || (opts->label_service && !s->services)) {
		cgroups__free(s->cgroups);
		services__free(s->services);
		free(s);
		return NULL;
	}
	s->kernel = STACK_NONE;
	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		s->main[i] = STACK_NONE;
	hash__init(&s->by_range, sizeof(struct mapping_entry), sizeof(struct mapping_key),
		   STACK_STORE_MAX);
	hash__init(&s->by_address, sizeof(struct location_entry),
		   offsetof(struct location_entry, location), STACK_STORE_MAX);
	hash__init(&s->by_frames, sizeof(uint32_t), 0, STACK_STORE_MAX);
	return s;
}

/* A mapping refers to its file, by which its object stays too (code.h), or to the perf map: lest
 * their numbers come to stand for others. */
static void hold_code(struct stack_store *s, struct mapping *m, const struct mapping_key *key)
{
	m->key = *key;
	procs__ref_file(s->procs, key->map.file);
	if (key->owner & MEMORY_OWNER)
		perf_maps__ref(code__perf_maps(s->code), key->owner & ~MEMORY_OWNER);
	else if (key->owner)
		objects__ref(code__objects(s->code), key->owner & ~OBJECT_OWNER);
}

static void release_code(struct stack_store *s, const struct mapping *m)
{
	procs__unref_file(s->procs, m->key.map.file);
	if (m->key.owner & MEMORY_OWNER)
		perf_maps__unref(code__perf_maps(s->code), m->key.owner & ~MEMORY_OWNER);
	else if (m->key.owner)
		objects__unref(code__objects(s->code), m->key.owner & ~OBJECT_OWNER);
}

void stack_store__free(struct stack_store *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->mapping_cnt; i++) {
		if (s->mappings[i].m.filename && i != s->kernel)
			release_code(s, &s->mappings[i]);
		free(s->mappings[i].m.filename);
	}
	for (size_t i = 0; i < s->stack_cnt; i++) {
		if (s->stacks[i] && s->stacks[i]->s.labels.has_exe)
			procs__unref_file(s->procs, s->stacks[i]->s.labels.exe);
		free(s->stacks[i]);
	}
	free(s->mappings);
	free(s->locations);
	free(s->stacks);
	free(s->free_mappings.numbers);
	free(s->free_locations.numbers);
	free(s->free_stacks.numbers);
	hash__done(&s->by_range);
	hash__done(&s->by_address);
	hash__done(&s->by_frames);
	cgroups__free(s->cgroups);
	services__free(s->services);
	free(s);
}

/* ---- numbers ---- */

/* A number for another element of an array, with room for it and for its coming back; STACK_NONE:
 * there is none. cnt counts those that were ever given. */
static uint32_t take_number(struct free_list *f, void *array_ptr, size_t *cap, size_t *cnt,
			    size_t sz)
{
	if (f->cnt)
		return f->numbers[--f->cnt];
	if (*cnt == STACK_STORE_MAX || util_reserve(array_ptr, cap, *cnt + 1, sz) ||
	    util_reserve(&f->numbers, &f->cap, *cnt + 1, sizeof(*f->numbers)))
		return STACK_NONE;
	return (uint32_t)(*cnt)++;
}

static void give_number(struct free_list *f, uint32_t number)
{
	f->numbers[f->cnt++] = number;
}

/* ---- mappings ---- */

static void forget_mapping(struct stack_store *s, uint32_t mapping)
{
	struct mapping *m = &s->mappings[mapping];
	struct mapping_entry *e = hash__lookup(&s->by_range, &m->key);

	if (e && e->mapping == mapping)
		hash__remove(&s->by_range, e);
	if (mapping == s->kernel)
		s->kernel = STACK_NONE;
	else
		release_code(s, m);
	free(m->m.filename);
	memset(m, 0, sizeof(*m));
	give_number(&s->free_mappings, mapping);
}

static uint32_t new_mapping(struct stack_store *s, const struct stack_mapping *m,
			    const char *filename)
{
	char *copy = strdup(filename);
	uint32_t ret = copy ? take_number(&s->free_mappings, &s->mappings, &s->mapping_cap,
					  &s->mapping_cnt, sizeof(*s->mappings)) :
			      STACK_NONE;

	if (ret == STACK_NONE) {
		free(copy);
		return ret;
	}
	s->mappings[ret] = (struct mapping){ .m = *m };
	s->mappings[ret].m.filename = copy;
	return ret;
}

static void note_end(struct stack_store *s, uint32_t proc, const struct proc_map *map,
		     struct mapping *m)
{
	uint64_t ended_ns = procs__get(s->procs, proc)->to_ns;

	if (ended_ns != UINT64_MAX && !procs__file(s->procs, map->file)->build_id_sz &&
	    (!m->ended_ns || ended_ns < m->ended_ns))
		m->ended_ns = ended_ns;
}

/* A file that could not be opened through one process may be through another. False if it has been written over since
 * one of those has ended that share the mapping: it is not what that one had. */
static bool find_source(struct stack_store *s, uint32_t proc, const struct proc_map *map,
			struct mapping *m)
{
	uint32_t object;

	if (m->m.source.what != SYMBOLIZE_NOTHING)
		return true;
	object = code__object(s->code, proc, map);
	if (object == OBJECTS_NONE) {
		note_end(s, proc, map, m);
		return true;
	}
	if (m->ended_ns && objects__written_since(code__objects(s->code), object, m->ended_ns))
		return false;
	m->m.source.what = SYMBOLIZE_OBJECT;
	m->m.source.object = object;
	/* equal paths may be different files, in two containers for example */
	m->m.owner = object + 1;
	return true;
}

/* What a range of a process's addresses is found by. Returns 0, or -ENOMEM. */
static int key_of(struct stack_store *s, uint32_t proc, const struct proc_map *map,
		  struct mapping_key *ret)
{
	uint32_t perf_map, object;

	memset(ret, 0, sizeof(*ret));
	ret->map = *map;
	/* code is the file's in a copy, too */
	ret->map.copy = PROC_MAP_AS_IS;
	if (!code__is_generated(s->code, proc, map)) {
		ret->map.start = 0;
		ret->map.end -= map->start;
		object = code__own_object(s->code, proc, map);
		ret->owner = object == OBJECTS_NONE ? 0 : OBJECT_OWNER | object;
		return 0;
	}
	perf_map = perf_maps__of(code__perf_maps(s->code), proc);
	if (perf_map == PERF_MAPS_NONE)
		return -ENOMEM;
	ret->owner = MEMORY_OWNER | perf_map;
	return 0;
}

/* Makes the mapping of a range, whose key was not known. A file's source is to be found. */
static uint32_t make_mapping(struct stack_store *s, const struct proc_map *map, uint32_t owner)
{
	const struct proc_file *f = procs__file(s->procs, map->file);
	struct stack_mapping m = {
		.start = map->start,
		.limit = map->end,
		.offset = f->kind == PROC_FILE_ANON ? 0 : map->offset,
		.source = { .what = SYMBOLIZE_NOTHING, .object = OBJECTS_NONE },
	};
	char path[4096];

	if (owner & MEMORY_OWNER) {
		m.source.what = SYMBOLIZE_PERF_MAP;
		m.source.object = owner & ~MEMORY_OWNER;
		m.owner = owner;
	}
	snprintf(path, sizeof(path), "%s", f->kind == PROC_FILE_ANON ? "//anon" : f->path);
	/* as Go does */
	path[deleted_path_length(path, strlen(path))] = '\0';
	return new_mapping(s, &m, path);
}

static uint32_t user_mapping(struct stack_store *s, uint32_t proc, const struct proc_map *map)
{
	struct mapping_entry *e;
	struct mapping_key key;
	uint32_t mapping;
	bool is_new;

	if (key_of(s, proc, map, &key))
		return STACK_NONE;
	e = hash__lookup(&s->by_range, &key);
	if (e && !find_source(s, proc, map, &s->mappings[e->mapping])) {
		key.owner = OBJECT_OWNER | code__object(s->code, proc, map);
		e = hash__lookup(&s->by_range, &key);
	}
	if (e)
		return e->mapping;
	mapping = make_mapping(s, map, key.owner);
	if (mapping == STACK_NONE)
		return mapping;
	hold_code(s, &s->mappings[mapping], &key);
	e = hash__insert(&s->by_range, &key, &is_new);
	if (!e) {
		forget_mapping(s, mapping);
		return STACK_NONE;
	}
	e->mapping = mapping;
	(void)find_source(s, proc, map, &s->mappings[mapping]);
	return mapping;
}

static uint32_t kernel_mapping(struct stack_store *s)
{
	struct stack_mapping m = { .start = KERNEL_START,
				   .limit = UINT64_MAX,
				   .source = { .what = SYMBOLIZE_KERNEL } };

	if (s->kernel == STACK_NONE)
		s->kernel = new_mapping(s, &m, "[kernel.kallsyms]");
	return s->kernel;
}

/* pprof takes the first mapping for that of the program: the lowest one. */
static void note_main(struct stack_store *s, uint32_t proc, enum bpfprof_kind kind)
{
	const struct proc_space *space;
	uint32_t mapping;

	if (s->main[kind] != STACK_NONE || s->cnt[kind] || proc == PROCS_NONE)
		return;
	space = procs__space(s->procs, proc);
	if (!space->map_cnt)
		return;
	mapping = user_mapping(s, proc, space->maps);
	if (mapping == STACK_NONE)
		return;
	s->mappings[mapping].refs++;
	s->main[kind] = mapping;
}

/* ---- locations ---- */

static void unref_location(struct stack_store *s, uint32_t location)
{
	struct location *l = &s->locations[location];
	struct location_entry key = { .address = l->l.address,
				      .mapping = l->l.mapping,
				      .marker = l->l.marker };
	void *e;

	if (--l->refs)
		return;
	e = hash__lookup(&s->by_address, &key);
	if (e)
		hash__remove(&s->by_address, e);
	if (key.mapping != STACK_NONE && !--s->mappings[key.mapping].refs)
		forget_mapping(s, key.mapping);
	give_number(&s->free_locations, location);
}

/* With a reference; STACK_NONE: there is no memory. */
static uint32_t add_location(struct stack_store *s, uint32_t mapping, bool marker, uint64_t address)
{
	struct location_entry key = { .address = address, .mapping = mapping, .marker = marker };
	struct location_entry *e;
	bool is_new;

	e = hash__insert(&s->by_address, &key, &is_new);
	if (!e)
		return STACK_NONE;
	if (is_new) {
		e->location = take_number(&s->free_locations, &s->locations, &s->location_cap,
					  &s->location_cnt, sizeof(*s->locations));
		if (e->location == STACK_NONE) {
			hash__remove(&s->by_address, e);
			return STACK_NONE;
		}
		s->locations[e->location] = (struct location){
			.l = { .mapping = mapping, .marker = marker, .address = address }
		};
		if (mapping != STACK_NONE)
			s->mappings[mapping].refs++;
	}
	s->locations[e->location].refs++;
	return e->location;
}

/* ---- stacks ---- */

static uint64_t hash_of(const struct stack_store *s, const struct stack *stack)
{
	uint64_t hash = util_hash(&stack->labels, sizeof(stack->labels), s->by_frames.seed);

	hash ^= stack->kind + stack->size * 0x9e3779b97f4a7c15ULL;
	return util_hash(stack->locations, stack->location_cnt * sizeof(*stack->locations), hash);
}

static bool is_same(const struct stack *a, const struct stack *b)
{
	return a->kind == b->kind && a->result == b->result && a->size == b->size &&
	       a->location_cnt == b->location_cnt &&
	       !memcmp(a->locations, b->locations, a->location_cnt * sizeof(*a->locations)) &&
	       !memcmp(&a->labels, &b->labels, sizeof(a->labels));
}

static uint32_t find_stack(const struct stack_store *s, const struct stack *stack, uint64_t hash)
{
	for (uint32_t *e = hash__first(&s->by_frames, hash); e; e = hash__next(&s->by_frames, e))
		if (is_same(&s->stacks[*e]->s, stack))
			return *e;
	return STACK_NONE;
}

/* The stack with a reference. It takes the caller's references to its locations, if it was not
 * there: then *ret_new. */
static uint32_t intern(struct stack_store *s, const struct stack *stack, bool *ret_new)
{
	size_t sz = stack->location_cnt * sizeof(*stack->locations);
	uint64_t hash = hash_of(s, stack);
	uint32_t ret = find_stack(s, stack, hash), *e;
	struct stored *copy;

	*ret_new = false;
	if (ret != STACK_NONE) {
		s->stacks[ret]->refs++;
		return ret;
	}
	copy = malloc(sizeof(*copy) + sz);
	if (!copy)
		return STACK_NONE;
	*copy = (struct stored){ .hash = hash, .refs = 1, .s = *stack };
	memcpy(copy->locations, stack->locations, sz);
	copy->s.locations = copy->locations;
	e = hash__add(&s->by_frames, hash);
	ret = e ? take_number(&s->free_stacks, &s->stacks, &s->stack_cap, &s->stack_cnt,
			      sizeof(*s->stacks)) :
		  STACK_NONE;
	if (ret == STACK_NONE) {
		if (e)
			hash__remove(&s->by_frames, e);
		free(copy);
		return STACK_NONE;
	}
	*e = ret;
	s->stacks[ret] = copy;
	s->cnt[stack->kind]++;
	*ret_new = true;
	return ret;
}

/* What the process is called; false: it has gone before that was known. Its main thread has the same
 * name, and the record the one that this had at the sample: the process may have changed it since. */
static bool find_comm(const struct stack_store *s, uint32_t proc, const struct bpfprof_rec *rec,
		      char ret[static BPFPROF_COMM_SZ + 1])
{
	const char *comm = rec->comm;

	if (rec->tid != rec->proc.tgid || !*comm) {
		if (proc == PROCS_NONE)
			return false;
		comm = procs__get(s->procs, proc)->comm;
	}
	snprintf(ret, BPFPROF_COMM_SZ + 1, "%.*s", BPFPROF_COMM_SZ, comm);
	return true;
}

/* libc.so.6, plugin.so; and the archive of its classes that a JVM has mapped below all else */
static bool is_library(const char *path)
{
	const char *at = strrchr(path, '/'), *end = strrchr(path, '.');

	if (end && !strcmp(end, ".jsa"))
		return true;
	for (at = at ? at : path; (at = strstr(at, ".so")); at++)
		if (!at[3] || at[3] == '.' || at[3] == ' ')
			return true;
	return false;
}

/*
 * What the process runs, by what it maps, since to ask the kernel takes a system call for each process,
 * and is too late for one that has ended: the lowest file. Where the stack has no limit (setrlimit(2)),
 * libraries lie below the program. False: that is not known.
 */
static bool find_exe(const struct stack_store *s, uint32_t proc, uint32_t *ret)
{
	const struct proc_space *space = procs__space(s->procs, proc);

	for (size_t i = 0; i < space->map_cnt && i < MAX_EXE_LOOKS; i++) {
		const struct proc_file *f = procs__file(s->procs, space->maps[i].file);

		if (f->kind != PROC_FILE_REGULAR || proc_file_is_memory(f) || is_library(f->path))
			continue;
		*ret = space->maps[i].file;
		return true;
	}
	return false;
}

/* With references to its program, its control group and its service. */
static void set_labels(const struct stack_store *s, uint32_t proc, const struct bpfprof_rec *rec,
		       struct stack_labels *ret)
{
	struct kind_label own[KIND_MAX_LABELS];

	/* they are compared with all padding */
	memset(ret, 0, sizeof(*ret));
	ret->own_cnt = kinds[rec->kind].labels ? (uint32_t)kinds[rec->kind].labels(rec, own) : 0;
	for (uint32_t i = 0; i < ret->own_cnt; i++) {
		ret->own[i].key = own[i].key;
		ret->own[i].str = own[i].str;
		ret->own[i].num = own[i].num;
		ret->own[i].unit = own[i].unit;
	}
	if (s->opts.label_process) {
		ret->has_pid = true;
		ret->pid = rec->proc.tgid;
		ret->has_comm = find_comm(s, proc, rec, ret->comm);
		ret->has_exe = proc != PROCS_NONE && find_exe(s, proc, &ret->exe);
	}
	if (ret->has_exe)
		procs__ref_file(s->procs, ret->exe);
	if (s->cgroups && rec->cgroup)
		ret->cgroup = cgroups__find(s->cgroups, rec->cgroup);
	if (s->services && proc != PROCS_NONE)
		ret->service = services__of(s->services, proc, rec->time_ns);
	if (s->opts.label_thread && rec->comm[0]) {
		ret->has_thread = true;
		memcpy(ret->thread, rec->comm, strnlen(rec->comm, BPFPROF_COMM_SZ));
	}
}

static void ref_labels(struct stack_store *s, const struct stack_labels *l)
{
	if (l->has_exe)
		procs__ref_file(s->procs, l->exe);
	if (l->cgroup)
		cgroup__ref(l->cgroup);
	if (l->service)
		service__ref(l->service);
}

static void unref_labels(struct stack_store *s, const struct stack_labels *l)
{
	if (l->has_exe)
		procs__unref_file(s->procs, l->exe);
	if (l->cgroup)
		cgroup__unref(l->cgroup);
	if (l->service)
		services__unref(s->services, l->service);
}

/* The locations of the user's frames, up to one that there is no memory for. Returns how many. */
static size_t user_locations(struct stack_store *s, uint32_t proc, const struct bpfprof_rec *rec,
			     const uint64_t *user, size_t cnt, uint32_t *ret)
{
	const struct proc_map *map = NULL;
	uint32_t mapping = STACK_NONE;
	uint64_t moved = 0;
	size_t i;

	for (i = 0; i < cnt; i++) {
		if (!map || user[i] < map->start || user[i] >= map->end) {
			map = proc == PROCS_NONE ?
				      NULL :
				      procs__map_at_time(s->procs, proc, user[i], rec->time_ns);
			mapping = map ? user_mapping(s, proc, map) : STACK_NONE;
			moved = mapping == STACK_NONE ? 0 :
							s->mappings[mapping].m.start - map->start;
		}
		ret[i] = add_location(s, mapping, false, user[i] + moved);
		if (ret[i] == STACK_NONE)
			break;
	}
	return i;
}

/* All of a stack's locations; 0 with ret_err if there was no memory for one. */
static size_t add_locations(struct stack_store *s, uint32_t proc, const struct bpfprof_rec *rec,
			    const uint64_t *kernel, const uint64_t *user, size_t user_cnt,
			    enum bpfprof_stack_result result, uint32_t *ret)
{
	size_t kernel_cnt = MIN(rec->kernel_cnt, BPFPROF_MAX_KFRAMES), n = 0;
	bool marked = result != BPFPROF_STACK_complete;
	size_t want = kernel_cnt + user_cnt + marked;

	for (; n < kernel_cnt && kernel_mapping(s) != STACK_NONE; n++) {
		/* a return address but for the first: name the call */
		ret[n] = add_location(s, s->kernel, false, kernel[n] - (n > 0));
		if (ret[n] == STACK_NONE)
			break;
	}
	if (n == kernel_cnt)
		n += user_locations(s, proc, rec, user, user_cnt, ret + n);
	if (marked && n == want - 1) {
		ret[n] = add_location(s, STACK_NONE, true, (uint64_t)result);
		n += ret[n] != STACK_NONE;
	}
	if (n == want)
		return n;
	while (n)
		unref_location(s, ret[--n]);
	return SIZE_MAX;
}

uint32_t stack_store__add(struct stack_store *s, uint32_t proc, const struct bpfprof_rec *rec,
			  const uint64_t *kernel, const uint64_t *user, size_t user_cnt,
			  enum bpfprof_stack_result result)
{
	uint32_t locations[MAX_LOCATIONS], ret;
	struct stack stack = {
		.kind = rec->kind, .result = result, .size = rec->size, .locations = locations
	};
	size_t cnt;
	bool is_new;

	note_main(s, proc, rec->kind);
	user_cnt = MIN(user_cnt, BPFPROF_MAX_UFRAMES);
	cnt = add_locations(s, proc, rec, kernel, user, user_cnt, result, locations);
	if (cnt == SIZE_MAX)
		return STACK_NONE;
	stack.location_cnt = (uint32_t)cnt;
	set_labels(s, proc, rec, &stack.labels);
	ret = intern(s, &stack, &is_new);
	for (size_t i = 0; !is_new && i < cnt; i++)
		unref_location(s, locations[i]);
	if (!is_new)
		unref_labels(s, &stack.labels);
	return ret;
}

uint32_t stack_store__without_pid(struct stack_store *s, uint32_t stack)
{
	struct stored *old = s->stacks[stack];
	struct stack twin = old->s;
	uint32_t ret;
	bool is_new;

	twin.labels.has_pid = false;
	twin.labels.pid = 0;
	ret = intern(s, &twin, &is_new);
	for (uint32_t i = 0; is_new && i < twin.location_cnt; i++)
		s->locations[twin.locations[i]].refs++;
	if (is_new)
		ref_labels(s, &twin.labels);
	return ret;
}

void stack_store__ref(struct stack_store *s, uint32_t stack)
{
	s->stacks[stack]->refs++;
}

void stack_store__unref(struct stack_store *s, uint32_t stack)
{
	struct stored *gone = s->stacks[stack];

	if (--gone->refs)
		return;
	for (uint32_t *e = hash__first(&s->by_frames, gone->hash); e;
	     e = hash__next(&s->by_frames, e)) {
		if (*e == stack) {
			hash__remove(&s->by_frames, e);
			break;
		}
	}
	for (uint32_t i = 0; i < gone->s.location_cnt; i++)
		unref_location(s, gone->locations[i]);
	unref_labels(s, &gone->s.labels);
	s->cnt[gone->s.kind]--;
	s->stacks[stack] = NULL;
	free(gone);
	give_number(&s->free_stacks, stack);
}

/* ---- what there is ---- */

size_t stack_store__end(const struct stack_store *s)
{
	return s->stack_cnt;
}

size_t stack_store__cnt(const struct stack_store *s, enum bpfprof_kind kind)
{
	return s->cnt[kind];
}

bool stack_store__has(const struct stack_store *s, uint32_t stack)
{
	return stack < s->stack_cnt && s->stacks[stack];
}

struct stack stack_store__get(const struct stack_store *s, uint32_t stack)
{
	return s->stacks[stack]->s;
}

const struct stack_location *stack_store__location(const struct stack_store *s, uint32_t location)
{
	return &s->locations[location].l;
}

const struct stack_mapping *stack_store__mapping(const struct stack_store *s, uint32_t mapping)
{
	return &s->mappings[mapping].m;
}

size_t stack_store__location_end(const struct stack_store *s)
{
	return s->location_cnt;
}

size_t stack_store__mapping_end(const struct stack_store *s)
{
	return s->mapping_cnt;
}

uint32_t stack_store__main(const struct stack_store *s, enum bpfprof_kind kind)
{
	return s->main[kind];
}

void stack_store__exe(const struct stack_store *s, const struct stack_labels *l, char *ret,
		      size_t ret_sz)
{
	snprintf(ret, ret_sz, "%s", l->has_exe ? procs__file(s->procs, l->exe)->path : "");
	ret[deleted_path_length(ret, strlen(ret))] = '\0';
}

const char *stack_store__build_id(const struct stack_store *s, const struct stack_mapping *m)
{
	return m->source.what == SYMBOLIZE_OBJECT ?
		       code__object_info(s->code, m->source.object)->build_id :
		       "";
}
