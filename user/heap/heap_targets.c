// SPDX-License-Identifier: BSD-2-Clause
#include "heap/heap_targets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/util.h"
#include "capture/collect.h"
#include "capture/mapped_files.h"
#include "heap/heap_probes.h"
#include "kernel/return_probes.h"
#include "target/allocators.h"
#include "target/objects.h"
#include "target/proc_maps.h"
#include "target/procs.h"

struct heap_targets {
	struct heap_opts opts;
	struct procs *procs;
	struct objects *objects;
	struct collect *collect;
	struct heap_probes *probes;
	struct mapped_files *files;
	uint32_t command;   /* its process id; 0: there is none */
	uint32_t skip_proc; /* our own image, before the command has become another */
	uint32_t library;   /* that is preloaded into the command; OBJECTS_NONE: none is */
	uint64_t begin_ns;  /* of recording; 0: it has not begun */
	uint32_t *said;	    /* by number of a process its id, once that is said of it */
	size_t said_cap;
	bool all_spared;
	struct heap_targets_missed missed;
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

struct heap_targets *heap_targets__new(const struct heap_opts *opts, struct procs *procs,
				       struct objects *objects, struct code *code,
				       struct collect *collect, struct heap_probes *probes)
{
	struct heap_targets *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->files = mapped_files__new(procs, objects, code);
	if (!t->files) {
		free(t);
		errno = ENOMEM;
		return NULL;
	}
	t->opts = *opts;
	t->procs = procs;
	t->objects = objects;
	t->collect = collect;
	t->probes = probes;
	t->skip_proc = PROCS_NONE;
	t->library = OBJECTS_NONE;
	return t;
}

void heap_targets__free(struct heap_targets *t)
{
	if (!t)
		return;
	mapped_files__free(t->files);
	free(t->said);
	free(t);
}

/* Are probes attached to the processes that are targets? Else to files, in all processes. */
static bool by_process(const struct heap_targets *t)
{
	return !t->opts.all || t->opts.chosen;
}

/* Is something to be said of a process, which is said once? */
static bool is_to_be_said(struct heap_targets *t, uint32_t proc)
{
	uint32_t tgid = procs__get(t->procs, proc)->tgid;

	if (util_reserve_zeroed(&t->said, &t->said_cap, proc, sizeof(*t->said)) ||
	    t->said[proc] == tgid)
		return false;
	t->said[proc] = tgid;
	return true;
}

/* A process whose memory the kernel does not find. */
static void note_unreached(struct heap_targets *t, uint32_t proc)
{
	if (!is_to_be_said(t, proc))
		return;
	t->missed.unreached++;
	log_info(
		"no heap profile of process %u: its main thread has ended, by which the kernel "
		"finds its memory",
		procs__get(t->procs, proc)->tgid);
}

/* A process that probes of returns would end; or all, as those of all processes may end some. */
static void note_spared(struct heap_targets *t, uint32_t proc)
{
	if (!by_process(t)) {
		if (t->all_spared)
			return;
		t->all_spared = true;
		t->missed.unprobed++;
		log_error(
			"no heap profile: with this kernel the probes of all processes "
			"would end those that filter their system calls (give --pid; "
			"mended in Linux 6.14)");
		return;
	}
	if (!is_to_be_said(t, proc))
		return;
	t->missed.unprobed++;
	log_error(
		"no heap profile of process %u: it filters its system calls, and with this "
		"kernel probes would end it (mended in Linux 6.14)",
		procs__get(t->procs, proc)->tgid);
}

/* Would probes of returns end it, or some that have the same ones? */
static bool is_to_be_spared(const struct heap_targets *t, uint32_t proc)
{
	return return_probes_harm() &&
	       (!by_process(t) || return_probes_filtered((pid_t)procs__get(t->procs, proc)->tgid));
}

/* Has it been said why it is not probed? */
static bool is_unreached(const struct heap_targets *t, uint32_t proc)
{
	return proc < t->said_cap && t->said[proc] == procs__get(t->procs, proc)->tgid;
}

/* What there is to be probed, as far as is known. */
static enum heap_probes_has has(struct heap_targets *t, uint32_t object)
{
	enum heap_probes_has what =
		object == OBJECTS_NONE ? HEAP_PROBES_NOTHING : heap_probes__look(t->probes, object);

	return what == HEAP_PROBES_UNKNOWN ? HEAP_PROBES_NOTHING : what;
}

static bool is_target(const struct heap_targets *t, uint32_t proc)
{
	return procs__lives(t->procs, proc) && proc != t->skip_proc &&
	       (!t->opts.chosen || collect__chosen(t->collect, proc) & 1U << BPFPROF_HEAP);
}

/* Is there a probe in what a process has mapped? Its program file, which is mapped lowest, tells if it
 * has an allocator: what it may call besides, such as a preloaded library, does not see that one. */
static bool is_seen(struct heap_targets *t, uint32_t proc)
{
	const struct proc_space *s = procs__space(t->procs, proc);
	pid_t tgid = (pid_t)procs__get(t->procs, proc)->tgid;

	for (size_t i = 0; i < s->map_cnt; i++) {
		uint32_t object = mapped_files__object(t->files, proc, &s->maps[i]);
		bool in;

		if (has(t, object) == HEAP_PROBES_NOTHING)
			continue;
		in = heap_probes__in(t->probes, tgid, object);
		if (in || s->maps[i].file == s->maps[0].file)
			return in;
	}
	return false;
}

/* Looks through what a process has mapped. */
static int look_at(struct heap_targets *t, uint32_t proc)
{
	const struct proc_space *s = procs__space(t->procs, proc);
	uint32_t tgid = procs__get(t->procs, proc)->tgid;
	bool usdt = false, itself = false;
	int err = 0, fd;

	if (by_process(t) && !is_seen(t, proc) && main_thread_of(tgid) == MAIN_THREAD_LEFT) {
		note_unreached(t, proc);
		return 0;
	}

	for (size_t i = 0; i < s->map_cnt && !itself; i++) {
		uint32_t object = mapped_files__object(t->files, proc, &s->maps[i]);

		if (has(t, object) == HEAP_PROBES_USDT) {
			usdt = true;
			itself |= object != t->library;
		}
	}
	for (size_t i = 0; !err && i < s->map_cnt; i++) {
		uint32_t object = mapped_files__object(t->files, proc, &s->maps[i]);
		enum heap_probes_has what = has(t, object);

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
		if (what != HEAP_PROBES_USDT && is_to_be_spared(t, proc)) {
			note_spared(t, proc);
			continue;
		}
		fd = mapped_files__open(t->files, proc, &s->maps[i], object);
		if (fd >= 0)
			err = heap_probes__add(t->probes, by_process(t) ? (pid_t)tgid : 0, fd,
					       object);
	}
	return err;
}

/* Since when all allocators that a process has mapped have been probed in all processes of the
 * machine, CLOCK_MONOTONIC. UINT64_MAX: not all of them are. 0: it has none. */
static uint64_t covered_ns(struct heap_targets *t, uint32_t proc)
{
	const struct proc_space *s = procs__space(t->procs, proc);
	uint64_t ret = 0;

	for (size_t i = 0; i < s->map_cnt; i++) {
		uint32_t object = mapped_files__object(t->files, proc, &s->maps[i]);

		if (has(t, object) != HEAP_PROBES_NOTHING)
			ret = MAX(ret, heap_probes__shared_ns(t->probes, object));
	}
	return ret;
}

/* Says, if it is so, that there is nothing to be probed in a process, and what was looked for. */
static void complain(struct heap_targets *t, uint32_t proc)
{
	const struct proc_space *s = procs__space(t->procs, proc);
	const struct proc *p = procs__get(t->procs, proc);
	char in[512] = "";

	if (covered_ns(t, proc) ||
	    (p->to_ns == UINT64_MAX && main_thread_of(p->tgid) != MAIN_THREAD_RUNS))
		return;
	for (size_t j = 0; j < s->map_cnt; j++) {
		uint32_t object = mapped_files__object(t->files, proc, &s->maps[j]);
		const struct proc_file *f = procs__file(t->procs, s->maps[j].file);
		const char *base = strrchr(f->path, '/');
		size_t len = strlen(in);

		if (f->kind != PROC_FILE_REGULAR || s->maps[j].copy == PROC_MAP_COPY)
			continue;
		/* what could not be opened, or read, may have one */
		if (object == OBJECTS_NONE ||
		    heap_probes__look(t->probes, object) == HEAP_PROBES_UNKNOWN)
			return;
		if (!j || s->maps[j].file != s->maps[j - 1].file)
			snprintf(in + len, sizeof(in) - len, "%s%s", len ? ", " : "",
				 base ? base + 1 : f->path);
	}
	t->missed.unprobed++;
	log_info("no memory allocator found in process %u: looked for %s in %s", p->tgid,
		 allocators_names(), *in ? in : "nothing, since it maps no file");
}

/* Did a process begin while it was recorded? Those that are found running, and chosen, are recorded
 * from then on. */
static bool began(const struct heap_targets *t, const struct proc *p)
{
	return t->begin_ns && by_process(t) && !t->opts.chosen && p->from_ns > t->begin_ns;
}

/* A process has run until then, and was not probed. */
static void note_late(struct heap_targets *t, const struct proc *p, uint64_t until_ns)
{
	if (until_ns <= p->from_ns)
		return;
	t->missed.late++;
	t->missed.late_ns += until_ns - p->from_ns;
}

/* One that has ended before it was looked at, or before its allocator was there to be seen. */
static int look_back(struct heap_targets *t, uint32_t proc)
{
	const struct proc *p = procs__get(t->procs, proc);
	enum mapped_files_news news;
	int err;

	if (!p->tgid || p->kthread || p->to_ns == UINT64_MAX || !began(t, p) ||
	    mapped_files__has_looked_back(t->files, proc) || is_unreached(t, proc))
		return 0;
	err = mapped_files__look(t->files, proc, &news);
	if (err || news == MAPPED_FILES_SAME)
		return err;
	/* what is attached in the process is not in this program, and nobody has come to attach it anew */
	if ((news == MAPPED_FILES_FIRST && p->by_thread) || !is_seen(t, proc))
		note_late(t, p, MIN(covered_ns(t, proc), p->to_ns));
	return 0;
}

/* Looks at a process if something was mapped since the last time. */
static int look_again(struct heap_targets *t, uint32_t proc)
{
	const struct proc *p = procs__get(t->procs, proc);
	enum mapped_files_news news;
	int err = mapped_files__look(t->files, proc, &news);
	uint64_t covered;
	bool may_be_late, anew;

	if (err || news == MAPPED_FILES_SAME)
		return err;
	anew = p->by_thread && news == MAPPED_FILES_FIRST;
	if (anew)
		heap_probes__relink(t->probes, (pid_t)p->tgid);
	covered = covered_ns(t, proc);
	may_be_late = began(t, p) && (anew || !is_seen(t, proc));
	err = look_at(t, proc);
	/* before, all at once, since many are probed in another way than few */
	if (t->begin_ns)
		heap_probes__settle(t->probes);
	if (may_be_late && is_seen(t, proc))
		note_late(t, p, MIN(covered, util_monotonic_ns()));
	if (!err && news == MAPPED_FILES_FIRST && t->opts.chosen)
		complain(t, proc);
	return err;
}

void heap_targets__begin(struct heap_targets *t, uint64_t now_ns)
{
	t->begin_ns = now_ns;
}

int heap_targets__update(struct heap_targets *t)
{
	int err = 0;

	/* its number may be given to another */
	if (t->skip_proc != PROCS_NONE && procs__get(t->procs, t->skip_proc)->to_ns != UINT64_MAX)
		t->skip_proc = PROCS_NONE;
	for (size_t i = 0; !err && i < procs__cnt(t->procs); i++) {
		if (is_target(t, i))
			err = look_again(t, i);
		else
			err = look_back(t, i);
	}
	return err;
}

/* Are probes to stay in a process? */
static bool is_probed(void *ctx, pid_t pid)
{
	const struct heap_targets *t = ctx;
	uint32_t proc = procs__find_live(t->procs, pid);

	/* our own image has those of the command that it becomes */
	return proc != PROCS_NONE && (proc == t->skip_proc || is_target(t, proc));
}

size_t heap_targets__drop(struct heap_targets *t)
{
	return heap_probes__drop(t->probes, is_probed, t);
}

void heap_targets__forget(struct heap_targets *t, uint32_t tgid)
{
	mapped_files__forget(t->files, tgid);
}

/* The command had to load its libraries first: so it is looked at in the end, as the program that it
 * has become last. */
static void complain_of_command(struct heap_targets *t)
{
	uint32_t last = PROCS_NONE;

	for (size_t i = 0; i < procs__cnt(t->procs); i++) {
		const struct proc *p = procs__get(t->procs, i);

		if (p->tgid == t->command &&
		    (last == PROCS_NONE || p->from_ns > procs__get(t->procs, last)->from_ns))
			last = i;
	}
	if (last != PROCS_NONE && procs__space(t->procs, last)->map_cnt)
		complain(t, last);
}

int heap_targets__look_back(struct heap_targets *t)
{
	int err = 0;

	for (size_t i = 0; !err && i < procs__cnt(t->procs); i++)
		if (!is_target(t, i))
			err = look_back(t, i);
	/* of those that are chosen it was said when they were */
	if (t->command && !t->opts.chosen)
		complain_of_command(t);
	return err;
}

int heap_targets__add_command(struct heap_targets *t, pid_t pid, int file_fd, const char *preload)
{
	uint32_t object;
	int fd, copy, err;

	t->skip_proc = procs__find_live(t->procs, pid);
	if (!preload && file_fd < 0) {
		t->missed.unprobed++;
		return 0;
	}
	t->command = pid;
	fd = preload ? open(preload, O_RDONLY | O_CLOEXEC) : fcntl(file_fd, F_DUPFD_CLOEXEC, 0);
	copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0) {
		if (fd >= 0)
			close(fd);
		return -EMFILE;
	}
	object = objects__add(t->objects, copy, preload ? preload : "the command");
	if (has(t, object) == HEAP_PROBES_NOTHING) {
		close(fd);
		return 0;
	}
	if (preload)
		t->library = object;
	err = heap_probes__add(t->probes, preload ? 0 : pid, fd, object);
	heap_probes__settle(t->probes);
	return err;
}

void heap_targets__complain(struct heap_targets *t)
{
	for (size_t i = 0; !t->opts.all && i < procs__cnt(t->procs); i++)
		if (is_target(t, i))
			complain(t, i);
}

bool heap_targets__have_library(const struct heap_targets *t)
{
	return t->library != OBJECTS_NONE;
}

const struct heap_targets_missed *heap_targets__missed(const struct heap_targets *t)
{
	return &t->missed;
}
