// SPDX-License-Identifier: BSD-2-Clause
/* The heap profile of a recording: when its probes are set, and what comes of them. */
#include <linux/types.h>

#include "heap/heap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "capture/window.h"
#include "capture/windows.h"
#include "capture/code.h"
#include "capture/collect.h"
#include "capture/mapped_files.h"
#include "heap/cpu_time.h"
#include "heap/heap_factor.h"
#include "heap/heap_probes.h"
#include "kernel/heap_cost.h"
#include "kernel/live.h"
#include "kernel/probe_heap.h"
#include "kernel/return_probes.h"
#include "kernel/epochs.h"
#include "kernel/session.h"
#include "heap/launch_heap.h"
#include "target/allocators.h"
#include "target/objects.h"
#include "target/proc_maps.h"
#include "target/procs.h"

#define IN_FLIGHT_US 1000  /* calls under way when recording stops still return to their probes */
#define UNMEASURED_NS 1000 /* of a hit, if it cannot be measured */
#define GAP_CALLS 64	   /* that tell how far apart they are */
#define UNKNOWN_GAP_NS 1e6 /* the costs of hits that are far from each other */
#define FREES_OFTEN 2	  /* in every so manieth slice frees are probed, to learn what hits cost; */
#define FREES_RARELY 8	  /* and once that is known */
#define STACKS_MAX 100000 /* with their sizes, before these are rounded */

struct heap {
	struct heap_opts opts;
	struct session *session;
	struct procs *procs;
	struct objects *objects;
	struct collect *collect;
	struct cpu_time *cpu;
	struct heap_probes *probes;
	struct mapped_files *files;
	uint32_t command;   /* its process id; 0: there is none */
	uint32_t skip_proc; /* our own image, before the command has become another */
	uint32_t library;   /* that is preloaded into the command; OBJECTS_NONE: none is */
	struct budget budget;
	bool started, sliced, paused, stopped;
	double weight; /* paused: of what was seen in the part at hand before */
	bool uncut;    /* a slice is over, and what it has counted is not added up yet */
	bool rounded;  /* sizes, to 6 bits */
	int cost_fd;   /* of heap_cost__begin; -1: none */
	struct heap_cost cost;
	uint64_t hits[BPFPROF_NR_HITS]; /* that are accounted for, and those of measuring */
	uint64_t hit_cnt;		/* without the latter */
	struct budget_time so_far;	/* when they were last accounted for */
	struct heap_factor factor;
	double gap_ns;	    /* CPU time from call to call */
	uint64_t gap_calls; /* that are to tell the next one, */
	double gap_cpu_ns;  /* and their CPU time */
	uint64_t cpu_ns, first_cpu_ns;
	uint64_t edge_ns;    /* CPU time of attaching and detaching in slices */
	uint64_t other_hits; /* in processes that are not profiled */
	uint64_t swept;	     /* samples recorded when the live ones were last looked through */
	bool any_ended;	     /* since then a process that allocates may have ended */
	uint64_t attach_ns;  /* before the start */
	size_t unreached;    /* processes */
	size_t unprobed;     /* processes, but for allocators that cannot be probed */
	bool all_spared;
	uint32_t *said; /* by number of a process its id, once that is said of it */
	size_t said_cap;
	size_t late; /* processes, and how long they ran without probes */
	uint64_t late_ns, start_ns;
};

bool heap_finds_usdt(struct objects *objects, const uint32_t *pids, size_t pid_cnt)
{
	struct procs *procs = procs__new("/proc");
	bool found = false;

	for (size_t i = 0; procs && i < pid_cnt && !found; i++) {
		uint32_t proc = procs__add(procs, pids[i], 0, 0, "", false, 0);
		const struct proc_space *s;

		if (proc == PROCS_NONE || procs__read_maps(procs, proc, 0))
			continue;
		s = procs__space(procs, proc);
		for (size_t j = 0; j < s->map_cnt && !found; j++) {
			int fd = procs__open(procs, objects, proc, &s->maps[j]);
			uint32_t object =
				fd < 0 ? OBJECTS_NONE :
					 objects__add(objects, fd,
						      procs__file(procs, s->maps[j].file)->path);

			found = object != OBJECTS_NONE && objects__has_usdt(objects, object);
		}
	}
	procs__free(procs);
	return found;
}

struct heap *heap__new(const struct heap_opts *opts, struct session *session, struct procs *procs,
		       struct objects *objects, struct code *code, struct collect *collect,
		       struct cpu_time *cpu)
{
	struct heap *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->cost_fd = -1;
	h->probes = heap_probes__new(opts->method, opts->usdt, session, objects);
	h->files = mapped_files__new(procs, objects, code);
	if (!h->probes || !h->files) {
		heap__free(h);
		errno = ENOMEM;
		return NULL;
	}
	h->opts = *opts;
	h->session = session;
	h->procs = procs;
	h->objects = objects;
	h->collect = collect;
	h->cpu = cpu;
	h->skip_proc = PROCS_NONE;
	h->library = OBJECTS_NONE;
	h->gap_ns = UNKNOWN_GAP_NS;
	/* it runs while the tables of the targets are loaded; heap__measure waits for it */
	h->cost_fd = heap_cost__begin(session, opts->method, opts->one);
	return h;
}

void heap__measure(struct heap *h)
{
	struct bpfprof_stats stats;
	int err = h->cost_fd < 0 ? h->cost_fd : heap_cost__end(h->session, h->cost_fd, &h->cost);

	h->cost_fd = -1;
	if (err) {
		log_debug("cannot measure what a probe costs");
		for (int i = 0; i < BPFPROF_NR_HITS; i++)
			h->cost.points[0].hit[i] = UNMEASURED_NS;
		for (int i = 1; i < HEAP_COST_POINTS; i++)
			h->cost.points[i] = h->cost.points[0];
	}
	for (int i = 0; i < HEAP_COST_POINTS; i++) {
		const struct heap_cost_point *p = &h->cost.points[i];

		log_debug(
			"behind %.1f us of other code a probe's hit costs %.0f ns at an "
			"allocation, %.0f at its return, %.0f where that is not waited for, %.0f "
			"at a free; for each further process %.0f, %.0f, %.0f, %.0f",
			p->after_ns / 1e3, p->hit[BPFPROF_HIT_ENTRY], p->hit[BPFPROF_HIT_RETURN],
			p->hit[BPFPROF_HIT_BEGIN], p->hit[BPFPROF_HIT_FREE],
			p->link[BPFPROF_HIT_ENTRY], p->link[BPFPROF_HIT_RETURN],
			p->link[BPFPROF_HIT_BEGIN], p->link[BPFPROF_HIT_FREE]);
	}
	if (!epochs__stats(h->session, BPFPROF_HEAP, &stats))
		memcpy(h->hits, stats.hits, sizeof(h->hits));
}

void heap__free(struct heap *h)
{
	if (!h)
		return;
	if (h->cost_fd >= 0)
		close(h->cost_fd);
	heap_probes__free(h->probes);
	mapped_files__free(h->files);
	free(h->said);
	free(h);
}

/* Are probes attached to the processes that are targets? Else to files, in all processes. */
static bool by_process(const struct heap *h)
{
	return !h->opts.all || h->opts.chosen;
}

/* Is something to be said of a process, which is said once? */
static bool is_to_be_said(struct heap *h, uint32_t proc)
{
	uint32_t tgid = procs__get(h->procs, proc)->tgid;

	if (util_reserve_zeroed(&h->said, &h->said_cap, proc, sizeof(*h->said)) ||
	    h->said[proc] == tgid)
		return false;
	h->said[proc] = tgid;
	return true;
}

/* A process whose memory the kernel does not find. */
static void note_unreached(struct heap *h, uint32_t proc)
{
	if (!is_to_be_said(h, proc))
		return;
	h->unreached++;
	log_info(
		"no heap profile of process %u: its main thread has ended, by which the kernel "
		"finds its memory",
		procs__get(h->procs, proc)->tgid);
}

/* A process that probes of returns would end; or all, as those of all processes may end some. */
static void note_spared(struct heap *h, uint32_t proc)
{
	if (!by_process(h)) {
		if (!h->all_spared)
			log_error(
				"no heap profile: with this kernel the probes of all processes "
				"would end those that filter their system calls (give --pid; "
				"mended in Linux 6.14)");
		h->all_spared = true;
		return;
	}
	if (!is_to_be_said(h, proc))
		return;
	h->unprobed++;
	log_error(
		"no heap profile of process %u: it filters its system calls, and with this "
		"kernel probes would end it (mended in Linux 6.14)",
		procs__get(h->procs, proc)->tgid);
}

/* Would probes of returns end it, or some that have the same ones? */
static bool is_to_be_spared(const struct heap *h, uint32_t proc)
{
	return return_probes_harm() &&
	       (!by_process(h) || return_probes_filtered((pid_t)procs__get(h->procs, proc)->tgid));
}

/* Has it been said why it is not probed? */
static bool is_unreached(const struct heap *h, uint32_t proc)
{
	return proc < h->said_cap && h->said[proc] == procs__get(h->procs, proc)->tgid;
}

static enum heap_probes_has has(struct heap *h, uint32_t object)
{
	return object == OBJECTS_NONE ? HEAP_PROBES_NOTHING : heap_probes__look(h->probes, object);
}

static bool is_target(const struct heap *h, uint32_t proc)
{
	return procs__lives(h->procs, proc) && proc != h->skip_proc &&
	       (!h->opts.chosen || collect__chosen(h->collect, proc) & 1U << BPFPROF_HEAP);
}

/* Is there a probe in what a process has mapped? Its program file, which is mapped lowest, tells if it
 * has an allocator: what it may call besides, such as a preloaded library, does not see that one. */
static bool is_seen(struct heap *h, uint32_t proc)
{
	const struct proc_space *s = procs__space(h->procs, proc);
	pid_t tgid = (pid_t)procs__get(h->procs, proc)->tgid;

	for (size_t i = 0; i < s->map_cnt; i++) {
		uint32_t object = mapped_files__object(h->files, proc, &s->maps[i]);
		bool in;

		if (has(h, object) == HEAP_PROBES_NOTHING)
			continue;
		in = heap_probes__in(h->probes, tgid, object);
		if (in || s->maps[i].file == s->maps[0].file)
			return in;
	}
	return false;
}

/* Looks through what a process has mapped. */
static int look_at(struct heap *h, uint32_t proc)
{
	const struct proc_space *s = procs__space(h->procs, proc);
	uint32_t tgid = procs__get(h->procs, proc)->tgid;
	bool usdt = false, itself = false;
	int err = 0, fd;

	if (by_process(h) && !is_seen(h, proc) && main_thread_of(tgid) == MAIN_THREAD_LEFT) {
		note_unreached(h, proc);
		return 0;
	}

	for (size_t i = 0; i < s->map_cnt && !itself; i++) {
		uint32_t object = mapped_files__object(h->files, proc, &s->maps[i]);

		if (has(h, object) == HEAP_PROBES_USDT) {
			usdt = true;
			itself |= object != h->library;
		}
	}
	for (size_t i = 0; !err && i < s->map_cnt; i++) {
		uint32_t object = mapped_files__object(h->files, proc, &s->maps[i]);
		enum heap_probes_has what = has(h, object);

		if (what == HEAP_PROBES_NOTHING)
			continue;
		/*
		 * What the program samples by itself goes through its libraries; only an allocator
		 * of its own, in the program file, which is mapped lowest, may be another, and, if
		 * only our library samples, one that is called by names of its own.
		 */
		if (usdt && what != HEAP_PROBES_USDT && (itself || what != HEAP_PROBES_APART) &&
		    s->maps[i].file != s->maps[0].file)
			continue;
		/* whoever samples by itself has no probes of returns */
		if (what != HEAP_PROBES_USDT && is_to_be_spared(h, proc)) {
			note_spared(h, proc);
			continue;
		}
		fd = mapped_files__open(h->files, proc, &s->maps[i], object);
		if (fd >= 0)
			err = heap_probes__add(h->probes, by_process(h) ? (pid_t)tgid : 0, fd,
					       object);
	}
	return err;
}

/* Does the program that allocated it still run? Another one may have its process id, and have been started by
 * as many execs: it began later. */
static bool runs(const struct heap *h, const struct live_entry *l)
{
	uint32_t proc = procs__find_live(h->procs, l->key.tgid);
	const struct proc *p = proc == PROCS_NONE ? NULL : procs__get(h->procs, proc);

	return p && (!p->exec_known || p->exec_id == l->key.exec_id) &&
	       l->live.time_ns >= p->from_ns;
}

/*
 * Makes room for what is in use, before what programs held that have ended fills it. Of processes
 * that were named, or started by such, it counts as in use what they held when they ended; of
 * the whole machine's, only of those that still run.
 */
static int sweep(struct heap *h)
{
	uint64_t now = util_monotonic_ns();
	struct live_entry *live;
	struct bpfprof_stats stats;
	size_t cnt;
	int err;

	if (epochs__stats(h->session, BPFPROF_HEAP, &stats) ||
	    stats.recorded - h->swept < probe_heap__live_max(h->session) / 4)
		return 0;
	/* the stacks have to be known here */
	err = collect__cut(h->collect);
	/* a boundary was passed meanwhile: its window has what was in use then */
	if (err || !collect__has_settled(h->collect))
		return err;
	h->swept = stats.recorded;
	h->any_ended = false;
	err = probe_heap__live(h->session, &live, &cnt);
	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++) {
		/* who has allocated since then may be unknown yet */
		if (live[i].live.time_ns >= now || runs(h, &live[i]))
			continue;
		/* too young to count by now, and may be old enough in the end */
		if (!h->opts.all && live[i].live.time_ns + h->opts.min_age_ns > now) {
			h->any_ended = true;
			continue;
		}
		if (!h->opts.all)
			(void)windows__hold(collect__windows(h->collect), NULL,
					    &live[i].live.stack);
		probe_heap__forget(h->session, &live[i].key);
	}
	free(live);
	return 0;
}

/* Are probes to stay in a process? */
static bool is_probed(void *ctx, pid_t pid)
{
	const struct heap *h = ctx;
	uint32_t proc = procs__find_live(h->procs, pid);

	/* our own image has those of the command that it becomes */
	return proc != PROCS_NONE && (proc == h->skip_proc || is_target(h, proc));
}

/* Since when all allocators that a process has mapped have been probed in all processes of the
 * machine, CLOCK_MONOTONIC. UINT64_MAX: not all of them are. 0: it has none. */
static uint64_t covered_ns(struct heap *h, uint32_t proc)
{
	const struct proc_space *s = procs__space(h->procs, proc);
	uint64_t ret = 0;

	for (size_t i = 0; i < s->map_cnt; i++) {
		uint32_t object = mapped_files__object(h->files, proc, &s->maps[i]);

		if (has(h, object) != HEAP_PROBES_NOTHING)
			ret = MAX(ret, heap_probes__shared_ns(h->probes, object));
	}
	return ret;
}

/* Says, if it is so, that there is nothing to be probed in a process, and what was looked for. */
static void complain(struct heap *h, uint32_t proc)
{
	const struct proc_space *s = procs__space(h->procs, proc);
	const struct proc *p = procs__get(h->procs, proc);
	char in[512] = "";

	if (covered_ns(h, proc) ||
	    (p->to_ns == UINT64_MAX && main_thread_of(p->tgid) != MAIN_THREAD_RUNS))
		return;
	for (size_t j = 0; j < s->map_cnt; j++) {
		const struct proc_file *f = procs__file(h->procs, s->maps[j].file);
		const char *base = strrchr(f->path, '/');
		size_t len = strlen(in);

		if (f->kind != PROC_FILE_REGULAR || s->maps[j].copy == PROC_MAP_COPY)
			continue;
		/* what could not be opened may have one */
		if (mapped_files__object(h->files, proc, &s->maps[j]) == OBJECTS_NONE)
			return;
		if (!j || s->maps[j].file != s->maps[j - 1].file)
			snprintf(in + len, sizeof(in) - len, "%s%s", len ? ", " : "",
				 base ? base + 1 : f->path);
	}
	h->unprobed++;
	log_info("no memory allocator found in process %u: looked for %s in %s", p->tgid,
		 allocators_names(), *in ? in : "nothing, since it maps no file");
}

/* Did a process begin while it was recorded? Those that are found running, and chosen, are recorded
 * from then on. */
static bool began(const struct heap *h, const struct proc *p)
{
	return h->started && by_process(h) && !h->opts.chosen && !p->scanned_ns &&
	       p->from_ns > h->start_ns;
}

/* A process has run until then, and was not probed. */
static void note_late(struct heap *h, const struct proc *p, uint64_t until_ns)
{
	if (until_ns <= p->from_ns)
		return;
	h->late++;
	h->late_ns += until_ns - p->from_ns;
}

/* One that has ended before it was looked at, or before its allocator was there to be seen. */
static int look_back(struct heap *h, uint32_t proc)
{
	const struct proc *p = procs__get(h->procs, proc);
	enum mapped_files_news news;
	int err;

	if (!p->tgid || p->kthread || p->to_ns == UINT64_MAX || !began(h, p) ||
	    mapped_files__has_looked_back(h->files, proc) || is_unreached(h, proc))
		return 0;
	err = mapped_files__look(h->files, proc, &news);
	if (!err && news != MAPPED_FILES_SAME && !is_seen(h, proc))
		note_late(h, p, MIN(covered_ns(h, proc), p->to_ns));
	return err;
}

/* Looks at a process if something was mapped since the last time. */
static int look_again(struct heap *h, uint32_t proc)
{
	const struct proc *p = procs__get(h->procs, proc);
	enum mapped_files_news news;
	int err = mapped_files__look(h->files, proc, &news);
	uint64_t covered;
	bool may_be_late;

	if (err || news == MAPPED_FILES_SAME)
		return err;
	covered = covered_ns(h, proc);
	may_be_late = began(h, p) && !is_seen(h, proc);
	err = look_at(h, proc);
	/* before, all at once, since many are probed in another way than few */
	if (h->started)
		heap_probes__settle(h->probes);
	if (may_be_late && is_seen(h, proc))
		note_late(h, p, MIN(covered, util_monotonic_ns()));
	if (!err && news == MAPPED_FILES_FIRST && h->opts.chosen)
		complain(h, proc);
	return err;
}

int heap__update(struct heap *h)
{
	uint64_t before = util_monotonic_ns();
	int err = 0;

	/* its number may be given to another */
	if (h->skip_proc != PROCS_NONE && procs__get(h->procs, h->skip_proc)->to_ns != UINT64_MAX)
		h->skip_proc = PROCS_NONE;
	for (size_t i = 0; !err && i < procs__cnt(h->procs); i++) {
		if (is_target(h, i))
			err = look_again(h, i);
		else
			err = look_back(h, i);
	}
	if (!h->started)
		h->attach_ns += util_monotonic_ns() - before;
	/* while those that will have ended by the next time can still be asked */
	h->cpu_ns = cpu_time__recent_ns(h->cpu);
	if (!h->rounded &&
	    windows__stacks(collect__windows(h->collect), BPFPROF_HEAP) > STACKS_MAX) {
		h->rounded = true;
		probe_heap__round_sizes(h->session);
	}
	heap_probes__settle(h->probes);
	heap_probes__clean_children(h->probes, collect__forks(h->collect));
	/* with the library in a command, its processes have no probes of their own that would go */
	h->any_ended |= heap_probes__drop(h->probes, is_probed, h) || h->opts.all ||
			h->library != OBJECTS_NONE;
	if (!err && h->any_ended)
		err = sweep(h);
	return err;
}

/* The command had to load its libraries first: so it is looked at in the end, as the program that it
 * has become last. */
static void complain_of_command(struct heap *h)
{
	uint32_t last = PROCS_NONE;

	for (size_t i = 0; i < procs__cnt(h->procs); i++) {
		const struct proc *p = procs__get(h->procs, i);

		if (p->tgid == h->command &&
		    (last == PROCS_NONE || p->from_ns > procs__get(h->procs, last)->from_ns))
			last = i;
	}
	if (last != PROCS_NONE && procs__space(h->procs, last)->map_cnt)
		complain(h, last);
}

int heap__look_back(struct heap *h)
{
	int err = 0;

	for (size_t i = 0; !err && i < procs__cnt(h->procs); i++)
		if (!is_target(h, i))
			err = look_back(h, i);
	/* of those that are chosen it was said when they were */
	if (h->command && !h->opts.chosen)
		complain_of_command(h);
	return err;
}

int heap__remove(struct heap *h, uint32_t tgid)
{
	struct live_entry *live;
	size_t cnt;
	int err;

	mapped_files__forget(h->files, tgid);
	(void)heap_probes__drop(h->probes, is_probed, h);
	if (h->sliced)
		return 0;
	err = probe_heap__live(h->session, &live, &cnt);
	if (err)
		return err;
	for (size_t i = 0; i < cnt; i++)
		if (live[i].key.tgid == tgid)
			probe_heap__forget(h->session, &live[i].key);
	free(live);
	return 0;
}

int heap__prepare_command(struct heap *h, pid_t pid, int file_fd, const char *preload)
{
	uint32_t object;
	int fd, copy, err;

	h->skip_proc = procs__find_live(h->procs, pid);
	if (!preload && file_fd < 0) {
		h->unprobed++;
		return 0;
	}
	h->command = pid;
	fd = preload ? open(preload, O_RDONLY | O_CLOEXEC) : fcntl(file_fd, F_DUPFD_CLOEXEC, 0);
	copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0) {
		if (fd >= 0)
			close(fd);
		return -EMFILE;
	}
	object = objects__add(h->objects, copy, preload ? preload : "the command");
	if (has(h, object) == HEAP_PROBES_NOTHING) {
		close(fd);
		return 0;
	}
	if (preload)
		h->library = object;
	err = heap_probes__add(h->probes, preload ? 0 : pid, fd, object);
	heap_probes__settle(h->probes);
	return err;
}

void heap__complain(struct heap *h)
{
	for (size_t i = 0; !h->opts.all && i < procs__cnt(h->procs); i++)
		if (is_target(h, i))
			complain(h, i);
}

/* ---- the budget ---- */

/* Learns how far apart calls are, from time in which probes were attached: so many of them, and so
 * much CPU time. */
static void learn_gap(struct heap *h, uint64_t calls, double cpu_ns)
{
	h->gap_calls += calls;
	h->gap_cpu_ns += cpu_ns;
	if (h->gap_calls < GAP_CALLS)
		return;
	h->gap_ns = h->gap_cpu_ns / h->gap_calls;
	h->gap_calls = 0;
	h->gap_cpu_ns = 0;
}

/* What hits cost, in times of what was measured. */
static double factor(const struct heap *h)
{
	double error;

	return heap_factor__get(&h->factor, &error);
}

/* From a slice that is over: what it has counted; hits: of probes. */
static void learn_factor(struct heap *h, const struct budget_time *before, uint64_t hits)
{
	struct heap_factor_slice slice = {
		.cpu_ns = h->so_far.cpu - before->cpu - (h->so_far.record - before->record),
		.hits_ns = h->so_far.hits - before->hits,
		.calls = h->so_far.calls - before->calls,
	};

	heap_factor__add(&h->factor, &slice);
	log_debug("slice: %.1f ms, %.0f calls, %" PRIu64
		  " hits, %.0f ns from call to call, hits cost %.0f of them or %.2f times that",
		  slice.cpu_ns / 1e6, slice.calls, hits, slice.cpu_ns / MAX(slice.calls, 1),
		  slice.hits_ns / MAX(slice.calls, 1), factor(h));
}

/* What hits cost is known well enough, as far as it matters. */
static bool is_settled(const struct heap *h)
{
	return uprobes_by_events(h->opts.method) ||
	       heap_factor__settled(&h->factor, budget__hit_share(&h->budget, factor(h)));
}

/* What hits in processes that are not profiled have cost these, which is not in what the others do. */
static void account_others(struct heap *h, uint64_t hits)
{
	struct heap_cost_point p;

	heap_cost__after(&h->cost, h->gap_ns, &p);
	h->other_hits += hits;
	h->so_far.others += hits * p.hit[BPFPROF_HIT_OTHER];
}

/* What hits and recording have cost since the last time. attached: probes have been since then;
 * each hit has cost as by the processes that are probed by now. */
static void account(struct heap *h, bool attached, double cpu_ns)
{
	uint64_t since[BPFPROF_NR_HITS], cnt = 0;
	struct budget_time before = h->so_far;
	struct bpfprof_stats stats;

	h->so_far.cpu = cpu_ns;
	if (epochs__stats(h->session, BPFPROF_HEAP, &stats))
		return;
	for (int i = 0; i < BPFPROF_NR_HITS; i++) {
		since[i] = stats.hits[i] - h->hits[i];
		h->hits[i] = stats.hits[i];
		cnt += since[i];
	}
	account_others(h, since[BPFPROF_HIT_OTHER]);
	cnt -= since[BPFPROF_HIT_OTHER];
	since[BPFPROF_HIT_OTHER] = 0;
	h->hit_cnt += cnt;
	if (attached)
		learn_gap(h, heap_cost__calls(since), cpu_ns - before.cpu);
	h->so_far.calls += since[BPFPROF_HIT_ENTRY] + since[BPFPROF_HIT_BEGIN];
	h->so_far.record = stats.record_ns;
	h->so_far.hits += heap_cost__ns(&h->cost, h->opts.method, since,
					heap_probes__most(h->probes), h->gap_ns);
	/* of whole slices */
	if (attached && h->budget.state == BUDGET_ON && util_monotonic_ns() >= h->budget.next_ns)
		learn_factor(h, &before, cnt);
}

static struct budget_figures figures(struct heap *h, bool attached)
{
	h->cpu_ns = cpu_time__ns(h->cpu);
	account(h, attached, h->cpu_ns);
	return (struct budget_figures){ .now_ns = util_monotonic_ns(),
					.edge_ns = h->edge_ns,
					.so_far = h->so_far,
					.factor = factor(h) };
}

void heap__start(struct heap *h)
{
	struct budget_figures f = figures(h, false);
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed) || !seed)
		seed = 1;
	/* what cannot be measured, such as page faults when breakpoints are set, has to fit in too
	 */
	budget__start(&h->budget, h->opts.budget < 1 ? 0.9 * h->opts.budget : 1, seed, &f);
	probe_heap__enable(h->session, true);
	h->start_ns = f.now_ns;
	h->first_cpu_ns = h->cpu_ns;
	h->started = true;
}

/* CPU time of ours, and of the children that have ended. */
static uint64_t own_cpu_ns(void)
{
	uint64_t ret = 0;

	for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
		struct rusage u;

		if (getrusage(who, &u))
			continue;
		ret += (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * NSEC_PER_SEC;
		ret += (u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
	}
	return ret;
}
_Static_assert(RUSAGE_CHILDREN + 1 == RUSAGE_SELF, "both");

static int detach(struct heap *h)
{
	uint64_t before = own_cpu_ns();
	int err;

	probe_heap__enable(h->session, false);
	usleep(IN_FLIGHT_US);
	err = heap_probes__detach(h->probes);
	h->edge_ns += own_cpu_ns() - before;
	return err;
}

static void begin_slice(struct heap *h)
{
	uint64_t before = own_cpu_ns();
	uint32_t every = is_settled(h) ? FREES_RARELY : FREES_OFTEN;
	/* perf events take too long to detach */
	bool frees = !uprobes_by_events(h->opts.method) && h->budget.slices % every == 0;
	struct budget_figures f;
	double weight;

	heap_probes__attach(h->probes, frees ? HEAP_PROBES_SLICE_FREES : HEAP_PROBES_SLICE);
	h->edge_ns += own_cpu_ns() - before;
	f = figures(h, false);
	weight = budget__attached(&h->budget, &f);
	probe_heap__enable(h->session, true);
	/* what is counted from here on is read behind this */
	if (weight > 0)
		windows__commit(collect__windows(h->collect), BPFPROF_HEAP, weight);
}

int heap__end_slice(struct heap *h)
{
	enum budget_state was = h->budget.state, now;
	struct budget_figures f;

	if (!h->started || h->paused || was == BUDGET_OFF ||
	    util_monotonic_ns() < h->budget.next_ns)
		return 0;
	/* what it counts and the time that it stands for end together */
	if (was == BUDGET_ON)
		probe_heap__enable(h->session, false);
	f = figures(h, true);
	now = budget__check(&h->budget, &f);
	if (now == was)
		return 0;
	if (!h->sliced)
		log_debug("the heap's probes cost more than they may: they are attached in slices");
	h->sliced = true;
	/* what is still in use is not known any more */
	probe_heap__stop_tracking(h->session);
	h->uncut = true;
	return detach(h);
}

int heap__tick(struct heap *h)
{
	struct budget_figures f;
	int err = heap__end_slice(h);

	/* what a slice has counted is added up before the next one begins */
	if (!err && h->uncut) {
		if (!collect__can_end(h->collect))
			return 0;
		err = collect__end_epoch(h->collect, false);
		h->uncut = false;
	}
	if (err || h->paused || !collect__has_settled(h->collect) ||
	    h->budget.state != BUDGET_OFF || util_monotonic_ns() < h->budget.next_ns)
		return err;
	/* all that was counted has been added up, and nothing of it is known to be in use */
	windows__drop_freed(collect__windows(h->collect), BPFPROF_HEAP);
	f = figures(h, false);
	if (budget__check(&h->budget, &f) == BUDGET_ON)
		begin_slice(h);
	return 0;
}

uint64_t heap__next_ns(const struct heap *h)
{
	/* no slice begins before the last one is added up: capture__fd tells when that can be */
	bool waits =
		h->budget.state == BUDGET_OFF && (h->uncut || !collect__has_settled(h->collect));

	return h->started && !h->paused && !waits ? h->budget.next_ns : UINT64_MAX;
}

/* What was seen since the last end stands for so many times as much. In a pause no probe is attached: what was seen in
 * front of it stands for the time until it began. */
static double end_with(struct heap *h,
		       double (*end)(struct budget *, const struct budget_figures *))
{
	double weight = h->weight;
	struct budget_figures f;

	if (h->paused) {
		h->weight = 1;
		return weight;
	}
	f = figures(h, h->budget.state != BUDGET_OFF);
	return end(&h->budget, &f);
}

int heap__pause(struct heap *h)
{
	if (!h->started || h->paused || h->stopped)
		return 0;
	h->weight = end_with(h, budget__part);
	/* what is in use is not known any more */
	h->paused = h->sliced = true;
	probe_heap__stop_tracking(h->session);
	return detach(h);
}

void heap__resume(struct heap *h)
{
	struct budget_figures f;

	if (!h->paused || h->stopped)
		return;
	h->paused = false;
	heap_probes__attach(h->probes, HEAP_PROBES_SLICE);
	/* what is seen from here on stands for nothing of what there was meanwhile */
	f = figures(h, false);
	budget__resume(&h->budget, &f);
	probe_heap__enable(h->session, true);
}

void heap__end_part(struct heap *h, struct heap_part *ret)
{
	*ret = (struct heap_part){ .weight = end_with(h, budget__part) };
	ret->mark = h->budget.all;
}

void heap__stop(struct heap *h, struct heap_part *ret)
{
	*ret = (struct heap_part){ .weight = end_with(h, budget__stop) };
	ret->mark = h->budget.all;
	(void)detach(h);
	h->stopped = true;
}

void heap__read_live(struct heap *h, struct heap_part *part)
{
	/* what is allocated from here on is the next window's */
	part->read_ns = util_monotonic_ns();
	if (!h->sliced)
		part->err = probe_heap__live(h->session, &part->live, &part->live_cnt);
}

void heap_part__done(struct heap_part *part)
{
	free(part->live);
	memset(part, 0, sizeof(*part));
}

/* What a window's processes still hold. */
static void hold_live(struct heap *h, struct window *w, const struct heap_part *part)
{
	struct windows *windows = collect__windows(h->collect);

	for (size_t i = 0; i < part->live_cnt; i++) {
		const struct live_entry *l = &part->live[i];

		if (l->live.time_ns + h->opts.min_age_ns <= part->read_ns &&
		    (!h->opts.all || runs(h, l)))
			(void)windows__hold(windows, w, &l->live.stack);
		else
			windows__note_live(windows, &l->live.stack);
	}
	windows__drop_freed(windows, BPFPROF_HEAP);
}

void heap__begin_change(struct heap *h, struct window *w, const struct heap_part *part)
{
	for (size_t i = 0; i < part->live_cnt; i++)
		if (!h->opts.all || runs(h, &part->live[i]))
			windows__unhold(collect__windows(h->collect), w, &part->live[i].live.stack);
}

int heap__finish(struct heap *h, struct window *w, const struct budget_mark *from,
		 const struct heap_part *part, struct window_profile_opts *ret)
{
	if (h->sliced) {
		window__revise(w, BPFPROF_HEAP,
			       budget__revision(&h->budget, from, &part->mark, factor(h)));
		ret->value_cnt = 2;
		ret->folded_value = 1;
		return 0;
	}
	if (part->err)
		return part->err;
	hold_live(h, w, part);
	ret->only_held = h->opts.min_age_ns > 0;
	return 0;
}

void heap__report(struct heap *h, struct heap_report *ret)
{
	struct bpfprof_stats stats = { 0 };
	uint64_t runs;
	double share;

	/* hits while everything was detached at last */
	if (h->stopped)
		account(h, false, h->so_far.cpu);
	(void)epochs__stats(h->session, BPFPROF_HEAP, &stats);
	share = budget__hit_share(&h->budget, factor(h));
	*ret = (struct heap_report){
		.method = h->library != OBJECTS_NONE ? "usdt" : uprobes_method_name(h->opts.method),
		.hits = h->hit_cnt,
		.cost_ns = factor(h) * h->so_far.hits + h->so_far.record,
		.cpu_ns = h->cpu_ns - h->first_cpu_ns,
		.attach_ns = h->attach_ns,
		.attached_ns = h->budget.on_ns,
		.slowdown = 1 / (1 - share),
		.sliced = h->sliced,
		.rounded = h->rounded,
		.untracked = stats.untracked,
		.unseen = stats.unseen,
		.unreached = h->unreached,
		.unprobed = h->unprobed + h->all_spared + heap_probes__failed(h->probes),
		.late = h->late,
		.late_ns = h->late_ns,
		.shared = heap_probes__shared(h->probes),
		.other_hits = h->other_hits,
		.other_ns = h->so_far.others,
		.sanitizers = heap_probes__sanitizers(h->probes),
		.points = heap_probes__cnt(h->probes),
		.listens = h->library == OBJECTS_NONE && heap_probes__listens(h->probes),
	};
	session__run_time(h->session, "heap_", &ret->bpf_ns, &runs);
}
