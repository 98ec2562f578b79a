// SPDX-License-Identifier: BSD-2-Clause
/* The stacks of a recording, as samples of the profiles, and how often they were counted. */
#include <linux/types.h>

#include "stacks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "code.h"
#include "kinds.h"
#include "profile/profile.h"
#include "symbolize.h"
#include "target/objects.h"
#include "target/perf_maps.h"
#include "target/procs.h"

#define MEMORY_OWNER 0x80000000U /* in the owner of a mapping: memory of the process behind it */
#define MAX_LOCS (BPFPROF_MAX_UFRAMES + BPFPROF_MAX_KFRAMES + 1)

/* Samples of a profile from which on those of processes that have ended are told apart no more:
 * some 400 bytes each. */
#define COMPACT_SAMPLES ((size_t)16384)

/* The kernel's addresses, as a mapping of the profile: all of the upper half, modules included. */
#define KERNEL_START 0xffff800000000000ULL

/* What a stack that is counted in the kernel is in the profile. */
struct known_stack {
	struct bpfprof_count_key key;
	uint32_t sample; /* index + 1; 0: free slot */
	uint8_t kind, result;
	double unit; /* what each sample stands for, where the counts do not say */
};

/* By index of a sample: what it stands for. */
struct tally {
	double now, now_amount; /* since the last commit */
	struct kind_sums sums;	/* committed */
};

/* A range of a file is one mapping of the profile, in however many processes it stands, and at the
 * address where it was met first: with address space layout randomization each of them has its own.
 */
struct known_mapping {
	struct proc_map map; /* of a file: from 0 on */
	uint32_t owner;	  /* only of memory that is filled with code, which is each process's own */
	uint32_t mapping; /* index + 1; 0: free slot */
};

struct kind_state {
	struct profile *profile;
	struct known_mapping *mappings; /* open addressing, cap a power of two */
	size_t mapping_cnt, mapping_cap;
	struct symbolize_source *sources;
	size_t source_cap;
	uint32_t kernel_mapping;
	struct tally *tallies; /* by index of the profile's samples */
	size_t tally_cap;
	size_t compact_at; /* samples */
	struct stacks_account account;
};

struct stacks {
	struct stacks_opts opts;
	struct procs *procs;
	struct code *code;
	struct kind_state kinds[BPFPROF_NR_KINDS];
	struct known_stack *known;
	size_t known_cnt, known_cap;
	uint64_t added; /* to known, so far */
};

struct stacks *stacks__new(const struct stacks_opts *opts, struct procs *procs, struct code *code,
			   struct profile *const profiles[BPFPROF_NR_KINDS])
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->opts = *opts;
	s->procs = procs;
	s->code = code;
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		s->kinds[i].profile = profiles[i];
		s->kinds[i].kernel_mapping = PROFILE_NONE;
		s->kinds[i].compact_at = COMPACT_SAMPLES;
	}
	return s;
}

void stacks__free(struct stacks *s)
{
	if (!s)
		return;
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		free(s->kinds[i].mappings);
		free(s->kinds[i].sources);
		free(s->kinds[i].tallies);
	}
	free(s->known);
	free(s);
}

/* ---- mappings of the profile ---- */

static struct known_mapping *mapping_slot(struct kind_state *k, const struct proc_map *map,
					  uint32_t owner)
{
	size_t i = util_hash(map, sizeof(*map), owner) & (k->mapping_cap - 1);

	while (k->mappings[i].mapping &&
	       (memcmp(&k->mappings[i].map, map, sizeof(*map)) || k->mappings[i].owner != owner))
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
			*mapping_slot(k, &old[i].map, old[i].owner) = old[i];
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
static uint32_t find_source(struct stacks *s, struct kind_state *k, uint32_t proc,
			    const struct proc_map *map, uint32_t mapping)
{
	struct symbolize_source *source = &k->sources[mapping];

	if (source->what == SYMBOLIZE_NOTHING) {
		source->object = code__object(s->code, proc, map);
		if (source->object != OBJECTS_NONE)
			source->what = SYMBOLIZE_OBJECT;
	}
	return mapping;
}

static uint32_t user_mapping(struct stacks *s, struct kind_state *k, uint32_t proc,
			     const struct proc_map *map)
{
	const struct proc_file *f = procs__file(s->procs, map->file);
	struct profile_mapping m = { .start = map->start, .limit = map->end };
	struct symbolize_source source = { .what = SYMBOLIZE_NOTHING, .object = OBJECTS_NONE };
	uint32_t owner = 0;
	struct proc_map range = *map;
	struct known_mapping *slot;
	char path[4096];
	size_t len;

	/* code is the file's in a copy, too */
	range.copy = PROC_MAP_AS_IS;
	if (grow_mappings(k))
		return PROFILE_NONE;
	if (code__is_generated(s->code, proc, map)) {
		source.what = SYMBOLIZE_PERF_MAP;
		source.object = perf_maps__of(code__perf_maps(s->code), proc);
		if (source.object == PERF_MAPS_NONE)
			return PROFILE_NONE;
		owner = MEMORY_OWNER | source.object;
	} else {
		range.start = 0;
		range.end -= map->start;
	}
	slot = mapping_slot(k, &range, owner);
	if (slot->mapping)
		return find_source(s, k, proc, map, slot->mapping - 1);
	if (!owner)
		source.object = code__object(s->code, proc, map);
	/* equal paths may be different files, in two containers for example */
	m.owner = owner ? owner : source.object + 1;
	if (f->kind != PROC_FILE_ANON)
		m.offset = map->offset;
	if (!owner && source.object != OBJECTS_NONE) {
		source.what = SYMBOLIZE_OBJECT;
		m.build_id = profile__string(k->profile,
					     code__object_info(s->code, source.object)->build_id);
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
	slot->map = range;
	slot->owner = owner;
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

static size_t add_labels(struct stacks *s, struct profile *p, uint32_t proc,
			 const struct bpfprof_rec *rec, struct profile_label *labels)
{
	struct kind_label own[KIND_MAX_LABELS];
	size_t own_cnt = kinds[rec->kind].labels ? kinds[rec->kind].labels(rec, own) : 0;
	char comm[BPFPROF_COMM_SZ + 1] = "";
	size_t n = 0;

	if (s->opts.label_process) {
		labels[n++] = (struct profile_label){
			.key = profile__string(p, "pid"),
			.num = rec->proc.tgid,
			.num_unit = profile__string(p, "pid"),
		};
		if (proc != PROCS_NONE)
			labels[n++] = (struct profile_label){
				.key = profile__string(p, "comm"),
				.str = profile__string(p, procs__get(s->procs, proc)->comm),
			};
	}
	memcpy(comm, rec->comm, BPFPROF_COMM_SZ);
	if (s->opts.label_thread && comm[0])
		labels[n++] = (struct profile_label){
			.key = profile__string(p, "thread"),
			.str = profile__string(p, comm),
		};
	for (size_t i = 0; i < own_cnt; i++)
		labels[n++] = (struct profile_label){
			.key = profile__string(p, own[i].key),
			.str = own[i].str ? profile__string(p, own[i].str) : 0,
			.num = own[i].num,
			.num_unit = own[i].unit ? profile__string(p, own[i].unit) : 0,
		};
	return n;
}

/* Returns the index of the profile's sample, or PROFILE_NONE if there was no memory. */
static uint32_t add_sample(struct stacks *s, uint32_t proc, const struct bpfprof_rec *rec,
			   const uint64_t *kernel, const uint64_t *user, size_t user_cnt,
			   enum bpfprof_stack_result result)
{
	static const int64_t none[PROFILE_MAX_VALUES];
	struct kind_state *k = &s->kinds[rec->kind];
	struct profile *p = k->profile;
	const struct proc_map *map = NULL;
	uint64_t moved = 0;
	struct profile_label labels[3 + KIND_MAX_LABELS];
	uint32_t locs[MAX_LOCS], mapping = PROFILE_NONE;
	size_t n = 0;

	/* pprof takes the first mapping for that of the program: the lowest one */
	if (!p->mapping_cnt && proc != PROCS_NONE && procs__get(s->procs, proc)->map_cnt)
		(void)user_mapping(s, k, proc, procs__get(s->procs, proc)->maps);
	for (size_t i = 0; i < rec->kernel_cnt && i < BPFPROF_MAX_KFRAMES; i++)
		/* a return address but for the first: name the call */
		locs[n++] = profile__add_location(p, kernel_mapping(k), kernel[i] - (i > 0));
	for (size_t i = 0; i < user_cnt; i++) {
		if (!map || user[i] < map->start || user[i] >= map->end) {
			map = proc == PROCS_NONE ?
				      NULL :
				      procs__map_at_time(s->procs, proc, user[i], rec->time_ns);
			mapping = map ? user_mapping(s, k, proc, map) : PROFILE_NONE;
			moved = mapping == PROFILE_NONE ? 0 :
							  p->mappings[mapping].start - map->start;
		}
		locs[n++] = profile__add_location(p, mapping, user[i] + moved);
	}
	if (result != BPFPROF_STACK_complete)
		locs[n++] = marker(k, result);
	for (size_t i = 0; i < n; i++)
		if (locs[i] == PROFILE_NONE)
			return PROFILE_NONE;
	return profile__add_sample(p, locs, n, labels, add_labels(s, p, proc, rec, labels), none);
}

/* n samples more. units, amount: what they stand for, where it is said; else unit for each. */
static void tally__add(struct tally *t, uint64_t n, double unit, uint64_t units, uint64_t amount)
{
	t->now += units ? (double)units / BPFPROF_UNIT : n * unit;
	t->now_amount += amount;
}

static struct tally *tally_of(struct kind_state *k, uint32_t sample)
{
	if (util_reserve_zeroed(&k->tallies, &k->tally_cap, sample, sizeof(*k->tallies)))
		return NULL;
	return &k->tallies[sample];
}

/* ---- what the kernel side counts ---- */

static struct known_stack *stack_slot(struct stacks *s, const struct bpfprof_count_key *key)
{
	size_t i = util_hash(key, sizeof(*key), 0) & (s->known_cap - 1);

	while (s->known[i].sample && memcmp(&s->known[i].key, key, sizeof(*key)))
		i = (i + 1) & (s->known_cap - 1);
	return &s->known[i];
}

static struct known_stack *find_stack(struct stacks *s, const struct bpfprof_count_key *key)
{
	struct known_stack *slot = s->known_cap ? stack_slot(s, key) : NULL;

	return slot && slot->sample ? slot : NULL;
}

static int remember(struct stacks *s, const struct known_stack *stack)
{
	struct known_stack *slot, *old = s->known;
	size_t old_cap = s->known_cap;

	if ((s->known_cnt + 1) * 2 > old_cap) {
		s->known_cap = old_cap ? old_cap * 2 : 4096;
		s->known = calloc(s->known_cap, sizeof(*s->known));
		if (!s->known) {
			s->known = old;
			s->known_cap = old_cap;
			return -ENOMEM;
		}
		for (size_t i = 0; i < old_cap; i++)
			if (old[i].sample)
				*stack_slot(s, &old[i].key) = old[i];
		free(old);
	}
	slot = stack_slot(s, &stack->key);
	s->known_cnt += !slot->sample;
	s->added += !slot->sample;
	*slot = *stack;
	return 0;
}

void stacks__add(struct stacks *s, uint32_t proc, const struct bpfprof_rec *rec,
		 const uint64_t *kernel, const uint64_t *user, size_t user_cnt,
		 enum bpfprof_stack_result result)
{
	struct kind_state *k = &s->kinds[rec->kind];
	struct known_stack stack = {
		.key = { .hash = rec->hash, .tgid = rec->proc.tgid },
		.kind = rec->kind,
		.result = result,
		.unit = 1,
	};
	struct tally *tally;
	uint32_t sample;
	size_t known;

	if (!k->profile)
		return;
	/* what was taken for the caller of such code was found by another's table */
	known = proc == PROCS_NONE ? user_cnt :
				     code__vouch(s->code, proc, user, user_cnt, rec->time_ns);
	if (known < user_cnt) {
		user_cnt = known + 1;
		stack.result = result = BPFPROF_STACK_unproved;
	}
	sample = add_sample(s, proc, rec, kernel, user, user_cnt, result);
	tally = sample == PROFILE_NONE ? NULL : tally_of(k, sample);
	if (!tally) {
		k->account.no_memory++;
		return;
	}
	if (kinds[rec->kind].unit)
		stack.unit = kinds[rec->kind].unit(rec->size, rec->weight, k->profile->period);
	/* without units, the amount is not what a sample stands for, but how long it has been so */
	tally__add(tally, 1, stack.unit, rec->units, rec->units ? rec->amount : 0);
	tally->sums.size = rec->size;
	k->account.total++;
	k->account.results[result]++;
	stack.sample = sample + 1;
	if (rec->type == BPFPROF_REC_SAMPLE) {
		stack.key.kernel_cnt = rec->kernel_cnt;
		stack.key.user_cnt = rec->user_cnt;
	}
	/* a raw record is known by its hash if something will be joined to it */
	if (rec->hash && remember(s, &stack))
		log_debug("out of memory: the further samples of a stack are lost");
}

void stacks__lose(struct stacks *s, enum bpfprof_kind kind)
{
	s->kinds[kind].account.no_memory++;
}

void stacks__count(struct stacks *s, const struct bpfprof_count_key *key,
		   const struct bpfprof_count *count)
{
	const struct known_stack *stack = find_stack(s, key);
	struct kind_state *k;

	if (!stack)
		return;
	k = &s->kinds[stack->kind];
	tally__add(&k->tallies[stack->sample - 1], count->count, stack->unit, count->units,
		   count->amount);
	k->account.total += count->count;
	k->account.results[stack->result] += count->count;
}

void stacks__commit(struct stacks *s, enum bpfprof_kind kind, double scale)
{
	struct kind_state *k = &s->kinds[kind];

	for (size_t i = 0; i < k->tally_cap; i++) {
		struct tally *t = &k->tallies[i];

		t->sums.total += t->now * scale;
		t->sums.amount += t->now_amount * scale;
		t->now = t->now_amount = 0;
	}
}

void stacks__revise(struct stacks *s, enum bpfprof_kind kind, double times)
{
	struct kind_state *k = &s->kinds[kind];

	for (size_t i = 0; i < k->tally_cap; i++) {
		k->tallies[i].sums.total *= times;
		k->tallies[i].sums.amount *= times;
	}
}

bool stacks__hold(struct stacks *s, const struct bpfprof_count_key *key)
{
	const struct known_stack *stack = find_stack(s, key);

	if (!stack)
		return false;
	s->kinds[stack->kind].tallies[stack->sample - 1].sums.held += stack->unit;
	return true;
}

/* ---- stacks of processes that have ended ---- */

struct ended {
	struct stacks *stacks;
	uint8_t *live; /* bit by process id: it is one that there is */
	size_t cnt;
};

static int find_live(struct ended *e)
{
	size_t cap = 0;

	for (size_t i = 0; i < procs__cnt(e->stacks->procs); i++) {
		uint32_t tgid = procs__get(e->stacks->procs, i)->tgid;

		if (!tgid)
			continue;
		if (util_reserve_zeroed(&e->live, &cap, tgid / 8, 1))
			return -ENOMEM;
		e->live[tgid / 8] |= 1 << tgid % 8;
	}
	e->cnt = cap;
	return 0;
}

static bool has_ended(void *arg, int64_t tgid)
{
	const struct ended *e = arg;

	return tgid < 0 || (uint64_t)tgid / 8 >= e->cnt || !(e->live[tgid / 8] >> tgid % 8 & 1);
}

/* Moves what samples stand for to where profile__drop_label has moved them. */
static int move_tallies(struct kind_state *k, const uint32_t *moved, size_t cnt)
{
	struct tally *tallies = NULL;
	size_t cap = 0;

	if (k->profile->sample_cnt &&
	    util_reserve_zeroed(&tallies, &cap, k->profile->sample_cnt - 1, sizeof(*tallies)))
		return -ENOMEM;
	for (size_t i = 0; i < cnt && i < k->tally_cap; i++) {
		struct tally *to = &tallies[moved[i]], *from = &k->tallies[i];

		to->now += from->now;
		to->now_amount += from->now_amount;
		to->sums.total += from->sums.total;
		to->sums.amount += from->sums.amount;
		to->sums.held += from->sums.held;
		to->sums.size = from->sums.size;
	}
	free(k->tallies);
	k->tallies = tallies;
	k->tally_cap = cap;
	return 0;
}

static int compact_kind(struct kind_state *k, struct ended *e)
{
	struct profile *p = k->profile;
	size_t cnt = p->sample_cnt;
	uint32_t *moved = malloc(cnt * sizeof(*moved));
	int err = moved ? profile__drop_label(p, "pid", has_ended, e, moved) : -ENOMEM;

	if (!err)
		err = move_tallies(k, moved, cnt);
	for (size_t i = 0; !err && i < e->stacks->known_cap; i++) {
		struct known_stack *known = &e->stacks->known[i];

		if (known->sample && &e->stacks->kinds[known->kind] == k)
			known->sample = moved[known->sample - 1] + 1;
	}
	free(moved);
	return err;
}

/* Nothing more is counted of processes that have ended; heap's are kept, which may still be held.
 */
static int forget_known(struct stacks *s, struct ended *e)
{
	struct known_stack *old = s->known;
	size_t cap = s->known_cap;

	s->known = calloc(cap, sizeof(*s->known));
	if (!s->known) {
		s->known = old;
		return -ENOMEM;
	}
	s->known_cnt = 0;
	for (size_t i = 0; i < cap; i++) {
		if (!old[i].sample ||
		    (old[i].kind != BPFPROF_HEAP && has_ended(e, old[i].key.tgid)))
			continue;
		*stack_slot(s, &old[i].key) = old[i];
		s->known_cnt++;
	}
	free(old);
	return 0;
}

void stacks__compact(struct stacks *s)
{
	struct ended e = { .stacks = s };
	bool found = false;

	for (int i = 0; s->opts.label_process && i < BPFPROF_NR_KINDS; i++) {
		struct kind_state *k = &s->kinds[i];

		if (!k->profile || i == BPFPROF_HEAP || k->profile->sample_cnt < k->compact_at)
			continue;
		/* without memory for it everything stays as it is */
		if (!found && (find_live(&e) || forget_known(s, &e)))
			break;
		found = true;
		(void)compact_kind(k, &e);
		k->compact_at = MAX(COMPACT_SAMPLES, 2 * k->profile->sample_cnt);
	}
	free(e.live);
}

uint64_t stacks__cnt(const struct stacks *s)
{
	return s->added;
}

int stacks__finish(struct stacks *s, enum bpfprof_kind kind, bool only_held)
{
	struct kind_state *k = &s->kinds[kind];
	struct profile *p = k->profile;
	bool *keep = calloc(p->sample_cnt + 1, sizeof(*keep));

	if (!keep)
		return -ENOMEM;
	for (size_t i = 0; i < p->sample_cnt && i < k->tally_cap; i++) {
		const struct kind_sums *sums = &k->tallies[i].sums;

		kinds[kind].values(sums, p->period, p->samples[i].value);
		keep[i] = !only_held || sums->held > 0;
	}
	profile__keep_samples(p, keep);
	free(keep);
	return 0;
}

void stacks__account(const struct stacks *s, enum bpfprof_kind kind, struct stacks_account *ret)
{
	*ret = s->kinds[kind].account;
}

const struct symbolize_source *stacks__sources(const struct stacks *s, enum bpfprof_kind kind)
{
	return s->kinds[kind].sources;
}
