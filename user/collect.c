// SPDX-License-Identifier: BSD-2-Clause
/* From the kernel to the profile: process events, stacks, counts. */
#include <linux/types.h>

#include "collect.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "code.h"
#include "kernel/events.h"
#include "kernel/samples.h"
#include "kernel/session.h"
#include "profile/profile.h"
#include "symbolize.h"
#include "target/objects.h"
#include "target/procs.h"
#include "target/raw_unwind.h"

#define RAW_ROUNDS 512 /* tables loaded for one raw stack at most */
#define FRUITLESS_MAX \
	8 /* raw stacks in a row that led to unknown code, before they are no longer asked for */
#define RESCAN_NS NSEC_PER_SEC	/* between two scans of all processes */
#define ANON_OWNER 0x80000000U	/* in the owner of a mapping: memory of the process behind it */
#define RETIRED_NS NSEC_PER_SEC /* what was replaced longer ago is no longer sampled */
#define MAX_LOCS (BPFPROF_MAX_UFRAMES + BPFPROF_MAX_KFRAMES + 1)

/* The kernel's addresses, as a mapping of the profile: all of the upper half, modules included. */
#define KERNEL_START 0xffff800000000000ULL

/* What a stack that is counted in the kernel is in the profile. */
struct known_stack {
	struct bpfprof_count_key key;
	uint32_t sample; /* index + 1; 0: free slot */
	uint8_t kind, result;
};

/* A range of a file at an address is one mapping of the profile, in however many processes it
 * stands. */
struct known_mapping {
	struct proc_map map;
	uint32_t proc;	  /* only of memory without a file, which is each process's own */
	uint32_t mapping; /* index + 1; 0: free slot */
};

struct kind_state {
	struct profile *profile;
	struct known_mapping *mappings; /* open addressing, cap a power of two */
	size_t mapping_cnt, mapping_cap;
	struct symbolize_source *sources;
	size_t source_cap;
	uint32_t kernel_mapping;
	uint64_t stacks[BPFPROF_NR_RESULTS];
	uint64_t total; /* samples in the profile */
	uint64_t raw, no_memory;
};

/* By number of a process. */
struct proc_note {
	uint8_t fruitless;
	uint8_t dead_polls;
	bool dirty; /* mappings changed since it was published */
};

struct collect {
	struct collect_opts opts;
	struct session *session;
	struct samples *samples;
	struct events *events;
	struct procs *procs;
	struct code *code;
	struct kind_state kinds[BPFPROF_NR_KINDS];
	struct known_stack *known;
	size_t known_cnt, known_cap;
	uint64_t since_drain; /* stacks introduced since the counts were last drained */
	struct proc_note *notes;
	size_t note_cap;
	uint8_t *pending; /* records read from the ring, waiting for the events that explain them */
	size_t pending_sz, pending_cap;
	uint64_t events_lost;
	uint64_t next_rescan_ns; /* not before */
	bool rescan_wanted;
};

struct collect *collect__new(const struct collect_opts *opts, struct session *session,
			     struct samples *samples, struct events *events, struct procs *procs,
			     struct code *code, struct profile *const profiles[BPFPROF_NR_KINDS])
{
	struct collect *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->opts = *opts;
	c->session = session;
	c->samples = samples;
	c->events = events;
	c->procs = procs;
	c->code = code;
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		c->kinds[i].profile = profiles[i];
		c->kinds[i].kernel_mapping = PROFILE_NONE;
	}
	return c;
}

void collect__free(struct collect *c)
{
	if (!c)
		return;
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		free(c->kinds[i].mappings);
		free(c->kinds[i].sources);
	}
	free(c->known);
	free(c->notes);
	free(c->pending);
	free(c);
}

static struct proc_note *note_of(struct collect *c, uint32_t proc)
{
	size_t old = c->note_cap;

	if (proc >= old) {
		if (util_reserve(&c->notes, &c->note_cap, proc + 1, sizeof(*c->notes)))
			return NULL;
		memset(c->notes + old, 0, (c->note_cap - old) * sizeof(*c->notes));
	}
	return &c->notes[proc];
}

/* ---- mappings of the profile ---- */

static struct known_mapping *mapping_slot(struct kind_state *k, const struct proc_map *map,
					  uint32_t proc)
{
	size_t i = util_hash(map, sizeof(*map), proc) & (k->mapping_cap - 1);

	while (k->mappings[i].mapping &&
	       (memcmp(&k->mappings[i].map, map, sizeof(*map)) || k->mappings[i].proc != proc))
		i = (i + 1) & (k->mapping_cap - 1);
	return &k->mappings[i];
}

static int grow_mappings(struct kind_state *k)
{
	struct known_mapping *old = k->mappings;
	size_t old_cap = k->mapping_cap;

	if ((k->mapping_cnt + 1) * 2 <= old_cap)
		return 0;
	k->mapping_cap = old_cap ? old_cap * 2 : 256;
	k->mappings = calloc(k->mapping_cap, sizeof(*k->mappings));
	if (!k->mappings) {
		k->mappings = old;
		k->mapping_cap = old_cap;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old_cap; i++)
		if (old[i].mapping)
			*mapping_slot(k, &old[i].map, old[i].proc) = old[i];
	free(old);
	return 0;
}

static uint32_t new_mapping(struct kind_state *k, const struct profile_mapping *m,
			    struct symbolize_source source)
{
	uint32_t idx = profile__add_mapping(k->profile, m);

	if (idx == PROFILE_NONE ||
	    util_reserve(&k->sources, &k->source_cap, idx + 1, sizeof(*k->sources)))
		return PROFILE_NONE;
	k->sources[idx] = source;
	return idx;
}

/* A file that could not be opened through one process may be through another. Returns the mapping.
 */
static uint32_t find_source(struct collect *c, struct kind_state *k, uint32_t proc,
			    const struct proc_map *map, uint32_t mapping)
{
	struct symbolize_source *source = &k->sources[mapping];

	if (source->what == SYMBOLIZE_NOTHING) {
		source->object = code__object(c->code, proc, map);
		if (source->object != OBJECTS_NONE)
			source->what = SYMBOLIZE_OBJECT;
	}
	return mapping;
}

static uint32_t user_mapping(struct collect *c, struct kind_state *k, uint32_t proc,
			     const struct proc_map *map)
{
	const struct proc_file *f = procs__file(c->procs, map->file);
	struct profile_mapping m = { .start = map->start, .limit = map->end };
	struct symbolize_source source = { .what = SYMBOLIZE_NOTHING };
	uint32_t owner = f->kind == PROC_FILE_ANON ? proc + 1 : 0;
	struct known_mapping *slot;
	char path[4096];
	size_t len;

	if (grow_mappings(k))
		return PROFILE_NONE;
	slot = mapping_slot(k, map, owner);
	if (slot->mapping)
		return find_source(c, k, proc, map, slot->mapping - 1);
	source.object = code__object(c->code, proc, map);
	/* equal paths may be different files, in two containers for example */
	m.owner = owner ? owner | ANON_OWNER : source.object + 1;
	if (!owner)
		m.offset = map->offset;
	if (source.object != OBJECTS_NONE) {
		source.what = SYMBOLIZE_OBJECT;
		m.build_id = profile__string(k->profile,
					     code__object_info(c->code, source.object)->build_id);
	}
	/* as Go does: " (deleted)" is the kernel's remark, not the name */
	snprintf(path, sizeof(path), "%s", f->kind == PROC_FILE_ANON ? "//anon" : f->path);
	len = strlen(path);
	if (len > 10 && !strcmp(path + len - 10, " (deleted)"))
		path[len - 10] = '\0';
	m.filename = profile__string(k->profile, path);
	if (m.filename == PROFILE_NONE || m.build_id == PROFILE_NONE)
		return PROFILE_NONE;
	slot->mapping = new_mapping(k, &m, source) + 1;
	if (!slot->mapping)
		return PROFILE_NONE;
	slot->map = *map;
	slot->proc = owner;
	k->mapping_cnt++;
	return slot->mapping - 1;
}

static uint32_t kernel_mapping(struct kind_state *k)
{
	struct profile_mapping m = { .start = KERNEL_START, .limit = UINT64_MAX };
	struct symbolize_source source = { .what = SYMBOLIZE_KERNEL };

	if (k->kernel_mapping == PROFILE_NONE) {
		m.filename = profile__string(k->profile, "[kernel.kallsyms]");
		if (m.filename != PROFILE_NONE)
			k->kernel_mapping = new_mapping(k, &m, source);
	}
	return k->kernel_mapping;
}

/* ---- samples ---- */

static const char *const result_text[] = {
#define RESULT_TEXT(name, text) text,
	BPFPROF_STACK_RESULTS(RESULT_TEXT)
};

static uint32_t marker(struct kind_state *k, int result)
{
	char name[128];

	snprintf(name, sizeof(name), "[unwind: %s]", result_text[result]);
	return profile__add_marker(k->profile, name);
}

static size_t add_labels(struct collect *c, struct profile *p, uint32_t proc,
			 const struct bpfprof_rec *rec, struct profile_label *labels)
{
	char comm[BPFPROF_COMM_SZ + 1] = "";
	size_t n = 0;

	if (c->opts.label_process) {
		labels[n++] = (struct profile_label){
			.key = profile__string(p, "pid"),
			.num = rec->proc.tgid,
			.num_unit = profile__string(p, "pid"),
		};
		if (proc != PROCS_NONE)
			labels[n++] = (struct profile_label){
				.key = profile__string(p, "comm"),
				.str = profile__string(p, procs__get(c->procs, proc)->comm),
			};
	}
	memcpy(comm, rec->comm, BPFPROF_COMM_SZ);
	if (c->opts.label_thread && comm[0])
		labels[n++] = (struct profile_label){
			.key = profile__string(p, "thread"),
			.str = profile__string(p, comm),
		};
	return n;
}

/*
 * Adds one sample with the stack that rec describes: kernel frames, then user frames, then, if it
 * is not whole, its marker. Returns the index of the profile's sample, or PROFILE_NONE if there was
 * no memory.
 */
static uint32_t add_sample(struct collect *c, uint32_t proc, const struct bpfprof_rec *rec,
			   const uint64_t *kernel, const uint64_t *user, size_t user_cnt,
			   int result)
{
	struct kind_state *k = &c->kinds[rec->kind];
	struct profile *p = k->profile;
	int64_t values[PROFILE_MAX_VALUES] = { 1, p->period };
	const struct proc_map *map = NULL;
	struct profile_label labels[4];
	uint32_t locs[MAX_LOCS], mapping = PROFILE_NONE, sample;
	size_t n = 0;

	for (size_t i = 0; i < rec->kernel_cnt && i < BPFPROF_MAX_KFRAMES; i++)
		/* a return address but for the first: name the call */
		locs[n++] = profile__add_location(p, kernel_mapping(k), kernel[i] - (i > 0));
	for (size_t i = 0; i < user_cnt; i++) {
		if (!map || user[i] < map->start || user[i] >= map->end) {
			map = proc == PROCS_NONE ?
				      NULL :
				      procs__map_at_time(c->procs, proc, user[i], rec->time_ns);
			mapping = map ? user_mapping(c, k, proc, map) : PROFILE_NONE;
		}
		locs[n++] = profile__add_location(p, mapping, user[i]);
	}
	if (result != BPFPROF_STACK_complete)
		locs[n++] = marker(k, result);
	for (size_t i = 0; i < n; i++)
		if (locs[i] == PROFILE_NONE)
			return PROFILE_NONE;
	sample = profile__add_sample(p, locs, n, labels, add_labels(c, p, proc, rec, labels),
				     values);
	if (sample != PROFILE_NONE) {
		k->total++;
		k->stacks[result]++;
	}
	return sample;
}

static struct known_stack *stack_slot(struct collect *c, const struct bpfprof_count_key *key)
{
	size_t i = util_hash(key, sizeof(*key), 0) & (c->known_cap - 1);

	while (c->known[i].sample && memcmp(&c->known[i].key, key, sizeof(*key)))
		i = (i + 1) & (c->known_cap - 1);
	return &c->known[i];
}

static int remember_stack(struct collect *c, const struct bpfprof_rec *rec, uint32_t sample)
{
	struct bpfprof_count_key key = {
		.hash = rec->hash,
		.tgid = rec->proc.tgid,
		.kernel_cnt = rec->kernel_cnt,
		.user_cnt = rec->user_cnt,
	};
	struct known_stack *slot, *old = c->known;
	size_t old_cap = c->known_cap;

	if ((c->known_cnt + 1) * 2 > old_cap) {
		c->known_cap = old_cap ? old_cap * 2 : 4096;
		c->known = calloc(c->known_cap, sizeof(*c->known));
		if (!c->known) {
			c->known = old;
			c->known_cap = old_cap;
			return -ENOMEM;
		}
		for (size_t i = 0; i < old_cap; i++)
			if (old[i].sample)
				*stack_slot(c, &old[i].key) = old[i];
		free(old);
	}
	slot = stack_slot(c, &key);
	c->known_cnt += !slot->sample;
	*slot = (struct known_stack){
		.key = key,
		.sample = sample + 1,
		.kind = rec->kind,
		.result = rec->result,
	};
	c->since_drain++;
	return 0;
}

/* ---- raw stacks ---- */

struct raw_ctx {
	struct collect *c;
	uint32_t proc;
};

static const uint8_t *raw_chunk(void *ctx, uint32_t idx)
{
	return code__chunk(((struct raw_ctx *)ctx)->c->code, idx);
}

static int raw_code(void *ctx, uint64_t addr, void *buf, size_t sz)
{
	struct raw_ctx *r = ctx;

	return code__read(r->c->code, r->proc, addr, buf, sz);
}

/*
 * Unwinds a copied stack, loading what it asks for on the way, so that the kernel side can walk the
 * next one like it. Returns how the stack ended.
 */
static int unwind_raw(struct collect *c, uint32_t proc, const struct bpfprof_rec *rec,
		      const struct bpfprof_raw *raw, const uint8_t *stack,
		      uint64_t frames[BPFPROF_MAX_UFRAMES], size_t *ret_cnt)
{
	struct proc_note *note = note_of(c, proc);
	struct raw_ctx ctx = { .c = c, .proc = proc };
	struct raw_unwind in = { .key = rec->proc,
				 .regs = *raw,
				 .stack = stack,
				 .ctx = &ctx,
				 .chunk = raw_chunk,
				 .read_code = raw_code };
	bool reread = procs__get(c->procs, proc)->maps_known;
	uint64_t miss, last_miss = 0;
	int result = RAW_UNWIND_MISS;

	if (!reread)
		(void)procs__read_maps(c->procs, proc, rec->tid == rec->proc.tgid ? 0 : rec->tid);
	reread = !reread;
	for (int i = 0; i < RAW_ROUNDS && result == RAW_UNWIND_MISS; i++) {
		const struct proc_map *map;

		if (code__publish(c->code, proc) || !code__published(c->code, proc, &in.proc))
			return BPFPROF_STACK_gone;
		if (i == RAW_ROUNDS - 1)
			in.proc.flags |= BPFPROF_PROC_NO_RAW;
		result = raw_unwind(&in, frames, ret_cnt, &miss);
		if (result != RAW_UNWIND_MISS)
			break;
		map = procs__map_at(c->procs, proc, miss);
		if (map && miss != last_miss) {
			last_miss = miss;
			if (code__load(c->code, proc, map))
				return BPFPROF_STACK_gone;
		} else if (!map && !reread) {
			/* mapped in a way that no event told of, or no code at all */
			reread = true;
			(void)procs__read_maps(c->procs, proc,
					       rec->tid == rec->proc.tgid ? 0 : rec->tid);
		} else {
			i = RAW_ROUNDS - 2;
			if (note && note->fruitless < FRUITLESS_MAX &&
			    ++note->fruitless == FRUITLESS_MAX)
				code__no_raw(c->code, proc);
		}
	}
	return result == RAW_UNWIND_MISS ? BPFPROF_STACK_no_mapping : result;
}

/* ---- records ---- */

static int rescan(struct collect *c)
{
	uint64_t now = util_monotonic_ns();

	if (now < c->next_rescan_ns)
		return -EAGAIN;
	c->next_rescan_ns = now + RESCAN_NS;
	c->rescan_wanted = false;
	return collect__scan(c, NULL, 0);
}

static uint32_t find_proc(struct collect *c, const struct bpfprof_rec *rec)
{
	const struct bpfprof_proc_key *key = &rec->proc;
	uint32_t proc = procs__find(c->procs, key->tgid, key->exec_id, key->start_ns, rec->time_ns);

	/* events were lost, or fell into the gap before the first scan: ask the kernel anew */
	if (proc == PROCS_NONE && rescan(c) == 0)
		proc = procs__find(c->procs, key->tgid, key->exec_id, key->start_ns, rec->time_ns);
	return proc;
}

static void take_record(struct collect *c, const struct bpfprof_rec *rec)
{
	struct kind_state *k = &c->kinds[rec->kind];
	const uint64_t *user = (const uint64_t *)(rec + 1), *kernel = user + rec->user_cnt;
	uint32_t proc = find_proc(c, rec), sample;
	uint64_t frames[BPFPROF_MAX_UFRAMES];
	const struct bpfprof_raw *raw;
	int result = rec->result;
	size_t user_cnt = rec->user_cnt;

	if (!k->profile)
		return;
	if (rec->type == BPFPROF_REC_RAW) {
		raw = (const void *)(rec + 1);
		kernel = (const uint64_t *)(raw + 1);
		user = frames;
		user_cnt = 0;
		result = proc == PROCS_NONE ?
				 BPFPROF_STACK_gone :
				 unwind_raw(c, proc, rec, raw,
					    (const uint8_t *)(kernel + rec->kernel_cnt), frames,
					    &user_cnt);
		k->raw++;
	}
	sample = add_sample(c, proc, rec, kernel, user, user_cnt, result);
	if (sample == PROFILE_NONE)
		k->no_memory++;
	else if (rec->type == BPFPROF_REC_SAMPLE && remember_stack(c, rec, sample))
		log_debug("out of memory: the further samples of a stack are lost");
}

/* Keeps a record until the events that had happened before it have been read too. */
static void keep_record(void *ctx, const struct bpfprof_rec *rec, size_t sz)
{
	struct collect *c = ctx;
	size_t need = 8 + ((sz + 7) & ~(size_t)7);
	uint64_t len = sz;

	if (util_reserve(&c->pending, &c->pending_cap, c->pending_sz + need, 1)) {
		c->kinds[rec->kind].no_memory++;
		return;
	}
	memcpy(c->pending + c->pending_sz, &len, sizeof(len));
	memcpy(c->pending + c->pending_sz + 8, rec, sz);
	c->pending_sz += need;
}

/* ---- events ---- */

static void mark_dirty(struct collect *c, uint32_t tgid)
{
	uint32_t proc = procs__find_live(c->procs, tgid);
	struct proc_note *note = proc == PROCS_NONE ? NULL : note_of(c, proc);

	if (note) {
		note->dirty = true;
		note->fruitless = 0;
	}
}

static int apply(struct collect *c, const struct event *ev)
{
	struct proc_file file;
	int err;

	if (c->opts.only_added && ev->type != EVENT_LOST &&
	    procs__find_live(c->procs, ev->type == EVENT_FORK ? ev->ppid : ev->pid) == PROCS_NONE)
		return 0;
	switch (ev->type) {
	case EVENT_MMAP:
		file = (struct proc_file){ .path = (char *)ev->path,
					   .maj = ev->maj,
					   .min = ev->min,
					   .ino = ev->ino,
					   .build_id_sz = ev->build_id_sz };
		memcpy(file.build_id, ev->build_id, sizeof(file.build_id));
		if (ev->build_id_sz || ev->ino || ev->maj || ev->min)
			file.kind = PROC_FILE_REGULAR;
		else
			file.kind = strcmp(ev->path, "[vdso]") ? PROC_FILE_ANON : PROC_FILE_VDSO;
		err = procs__on_mmap(c->procs, ev->pid, ev->time_ns, ev->addr, ev->len, ev->pgoff,
				     &file);
		mark_dirty(c, ev->pid);
		return err;
	case EVENT_FORK:
		if (c->opts.only_added && !c->opts.follow)
			return 0;
		return procs__on_fork(c->procs, ev->pid, ev->ppid, ev->time_ns);
	case EVENT_EXEC:
		return procs__on_exec(c->procs, ev->pid, ev->time_ns, ev->comm);
	case EVENT_COMM:
		procs__on_comm(c->procs, ev->pid, ev->tid, ev->comm);
		return 0;
	case EVENT_EXIT:
		procs__on_exit(c->procs, ev->pid, ev->tid, ev->time_ns);
		return 0;
	case EVENT_LOST:
		c->events_lost++;
		return 0;
	}
	return 0;
}

static int read_events(struct collect *c, uint64_t until_ns)
{
	const struct event *events;
	size_t cnt;
	int err = events__read(c->events, until_ns, &events, &cnt);

	for (size_t i = 0; !err && i < cnt; i++) {
		c->rescan_wanted |= events[i].type == EVENT_LOST;
		err = apply(c, &events[i]);
	}
	if (!err && c->rescan_wanted)
		err = rescan(c);
	return err == -EAGAIN ? 0 : err;
}

/*
 * Tells the kernel side what changed in the processes that it knows, and lets go of the dead: a
 * process that has ended is kept for two more polls, in which the last records from it arrive.
 */
static void tend_procs(struct collect *c)
{
	uint64_t now = util_monotonic_ns();

	for (size_t i = 0; i < procs__cnt(c->procs); i++) {
		const struct proc *p = procs__get(c->procs, i);
		struct proc_note *note;
		struct bpfprof_proc value;

		if (!p->tgid || !(note = note_of(c, i)))
			continue;
		if (note->dirty && code__published(c->code, i, &value))
			(void)code__publish(c->code, i);
		note->dirty = false;
		if (p->retired_cnt)
			procs__drop_retired(c->procs, i, now - RETIRED_NS);
		/* its exit was told before it had left /proc */
		if (p->to_ns == UINT64_MAX && p->leader_exited)
			procs__on_exit(c->procs, p->tgid, p->tgid, now);
		if (p->to_ns == UINT64_MAX || ++note->dead_polls < 3)
			continue;
		if (c->opts.follow && procs__find_live(c->procs, p->tgid) == PROCS_NONE)
			session__remove_tgid(c->session, p->tgid);
		code__forget(c->code, i);
		procs__remove(c->procs, i);
		memset(note, 0, sizeof(*note));
	}
}

/* Is the task one of tgids, or a descendant of one? Tasks are in the order of their numbers, which
 * wrap. */
static bool in_tree(const struct bpfprof_task *tasks, size_t cnt, const struct bpfprof_task *t,
		    const uint32_t *tgids, size_t tgid_cnt, bool follow)
{
	for (int depth = 0; depth < 64; depth++) {
		const struct bpfprof_task *parent = NULL;

		for (size_t i = 0; i < tgid_cnt; i++)
			if (t->key.tgid == tgids[i])
				return true;
		for (size_t i = 0; follow && i < cnt && !parent; i++)
			if (tasks[i].key.tgid == t->ppid)
				parent = &tasks[i];
		if (!parent)
			return false;
		t = parent;
	}
	return false;
}

static int scan_task(struct collect *c, const struct bpfprof_task *t, uint64_t time_ns)
{
	char comm[BPFPROF_COMM_SZ];
	uint32_t proc;
	int err;

	memcpy(comm, t->comm, sizeof(comm));
	comm[sizeof(comm) - 1] = '\0';
	proc = procs__add(c->procs, t->key.tgid, t->key.exec_id, t->key.start_ns, comm, t->kthread,
			  time_ns);
	if (proc == PROCS_NONE)
		return -ENOMEM;
	if (c->opts.only_added) {
		err = session__add_tgid(c->session, t->key.tgid, t->key.start_ns);
		if (err)
			return err;
	}
	/* it may have ended by now: then its samples, if any, say so */
	if (!t->kthread)
		(void)procs__read_maps(c->procs, proc, 0);
	return 0;
}

/* Is the task a process that we know to live, with the same start? */
static bool known(const struct collect *c, const struct bpfprof_task *t)
{
	uint32_t proc = procs__find_live(c->procs, t->key.tgid);
	const struct proc *p = proc == PROCS_NONE ? NULL : procs__get(c->procs, proc);

	return p && (!p->start_ns || p->start_ns == t->key.start_ns);
}

/* Ends the entries of processes that a scan which began at time_ns did not meet. */
static void end_unseen(struct collect *c, uint64_t time_ns)
{
	for (size_t i = 0; i < procs__cnt(c->procs); i++) {
		const struct proc *p = procs__get(c->procs, i);

		if (p->tgid && p->to_ns == UINT64_MAX && p->from_ns < time_ns &&
		    p->scanned_ns < time_ns)
			procs__end(c->procs, i);
	}
}

int collect__scan(struct collect *c, const uint32_t *tgids, size_t tgid_cnt)
{
	uint64_t time_ns = util_monotonic_ns();
	struct bpfprof_task *tasks = NULL;
	uint32_t *roots = NULL;
	size_t cnt = 0, root_cnt = 0, root_cap = 0;
	int err = session__scan(c->session, &tasks, &cnt);

	/* later scans start from what is known */
	for (size_t i = 0; !err && c->opts.only_added && i < cnt + tgid_cnt; i++) {
		if (i < cnt && !known(c, &tasks[i]))
			continue;
		err = util_reserve(&roots, &root_cap, root_cnt + 1, sizeof(*roots));
		if (!err)
			roots[root_cnt++] = i < cnt ? tasks[i].key.tgid : tgids[i - cnt];
	}
	for (size_t i = 0; !err && i < cnt; i++)
		if (!c->opts.only_added ||
		    in_tree(tasks, cnt, &tasks[i], roots, root_cnt, c->opts.follow))
			err = scan_task(c, &tasks[i], time_ns);
	if (!err)
		end_unseen(c, time_ns);
	free(roots);
	free(tasks);
	return err;
}

int collect__prepare(struct collect *c)
{
	int err = 0;

	for (size_t i = 0; !err && i < procs__cnt(c->procs); i++) {
		const struct proc *p = procs__get(c->procs, i);

		if (!p->tgid || p->kthread)
			continue;
		for (size_t j = 0; !err && j < p->map_cnt; j++)
			err = code__load(c->code, i, &p->maps[j]);
		if (!err)
			err = code__publish(c->code, i);
	}
	return err;
}

/*
 * Handles what was pending up to until_ns and moves the rest to the front. A record's own time
 * decides, not the order of arrival, since events before it may come from another CPU.
 */
static void take_pending(struct collect *c, uint64_t until_ns)
{
	size_t kept = 0;

	for (size_t at = 0; at < c->pending_sz;) {
		const struct bpfprof_rec *rec = (const void *)(c->pending + at + 8);
		uint64_t sz;
		size_t step;

		memcpy(&sz, c->pending + at, sizeof(sz));
		step = 8 + ((sz + 7) & ~(size_t)7);
		if (rec->time_ns <= until_ns) {
			take_record(c, rec);
		} else {
			memmove(c->pending + kept, c->pending + at, step);
			kept += step;
		}
		at += step;
	}
	c->pending_sz = kept;
}

/* The ring is read before the events, and what it held is looked at after them: by then they
 * explain it. */
static int poll_until(struct collect *c, uint64_t until_ns)
{
	int err = samples__read(c->samples, keep_record, c);

	if (err >= 0)
		err = read_events(c, until_ns);
	if (err)
		return err;
	take_pending(c, until_ns);
	tend_procs(c);
	return 0;
}

int collect__poll(struct collect *c)
{
	return poll_until(c, util_monotonic_ns());
}

bool collect__wants_drain(const struct collect *c)
{
	return c->since_drain > BPFPROF_MAX_COUNTS / 2;
}

int collect__drain(struct collect *c)
{
	struct samples_count *counts;
	size_t cnt;
	int err = samples__drain_counts(c->samples, &counts, &cnt);

	if (err)
		return err;
	/* the stacks that were counted arrived before their counts */
	err = poll_until(c, UINT64_MAX);
	if (err) {
		free(counts);
		return err;
	}
	c->since_drain = 0;
	for (size_t i = 0; i < cnt; i++) {
		struct known_stack *s = c->known_cap ? stack_slot(c, &counts[i].key) : NULL;
		int64_t n = counts[i].count.count;
		struct kind_state *k;

		if (!s || !s->sample)
			continue;
		k = &c->kinds[s->kind];
		k->profile->samples[s->sample - 1].value[0] += n;
		k->profile->samples[s->sample - 1].value[1] += n * k->profile->period;
		k->total += n;
		k->stacks[s->result] += n;
	}
	free(counts);
	return 0;
}

int collect__account(struct collect *c, enum bpfprof_kind kind, struct collect_account *ret)
{
	const struct kind_state *k = &c->kinds[kind];
	struct bpfprof_stats stats;
	int err = session__stats(c->session, kind, &stats);

	if (err)
		return err;
	memset(ret, 0, sizeof(*ret));
	ret->seen = stats.seen;
	ret->recorded = k->total;
	memcpy(ret->lost, stats.lost, sizeof(ret->lost));
	/* recorded there, and yet not here: for want of memory, or else for a reason that there
	 * should not be */
	ret->lost[BPFPROF_LOST_no_memory] += k->no_memory;
	if (stats.recorded > k->total + k->no_memory)
		ret->lost[BPFPROF_LOST_orphan] += stats.recorded - k->total - k->no_memory;
	memcpy(ret->stacks, k->stacks, sizeof(ret->stacks));
	ret->unwinds = stats.unwinds;
	ret->frames = stats.frames;
	ret->raw = k->raw;
	ret->events_lost = c->events_lost;
	return 0;
}

const struct symbolize_source *collect__sources(const struct collect *c, enum bpfprof_kind kind)
{
	return c->kinds[kind].sources;
}
