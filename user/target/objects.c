/* SPDX-License-Identifier: BSD-2-Clause */
/* Knows every object once, by what it is and not by where it lies, and has it read. */
#include "target/objects.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "target/allocators.h"
#include "target/custom_sites.h"
#include "target/objects_parts.h"
#include "target/perf_map.h"
#include "target/unwind_build.h"

#define AGAIN_NS \
	NSEC_PER_SEC /* what there was no memory for, or no reader, is asked for again then */
#define SPARE_FDS 64 /* descriptors left to all others: debug files, processes, what is written */

/* ---- identity ---- */

/* An object is found again as the same file, or, if the file is trusted, by its build id. */
struct by_file {
	struct file_key {
		uint64_t dev, ino, size, mtime_ns;
	} key;
	uint32_t object;
};

struct by_build_id {
	char key[sizeof(((struct object_info *)0)->build_id)]; /* zeroed behind its end */
	uint32_t object;
};

/* Equal build ids are not enough: what claims one has to have the same segments, too, so that
 * addresses mean the same. */
static bool same_layout(const struct reader_file *a, const struct reader_file *b)
{
	const struct elf_segment *x = a->segments, *y = b->segments;

	if (a->segment_cnt != b->segment_cnt)
		return false;
	for (size_t i = 0; i < a->segment_cnt; i++) {
		if (x[i].vaddr != y[i].vaddr || x[i].offset != y[i].offset ||
		    x[i].filesz != y[i].filesz || x[i].memsz != y[i].memsz ||
		    x[i].exec != y[i].exec)
			return false;
	}
	return true;
}

/* ---- objects ---- */

struct objects *objects__new(void)
{
	struct objects *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	hash__init(&o->by_file, sizeof(struct by_file), sizeof(struct file_key), HASH_MAX);
	hash__init(&o->by_build_id, sizeof(struct by_build_id),
		   sizeof(((struct by_build_id *)0)->key), HASH_MAX);
	o->vdso = OBJECTS_NONE;
	o->max_open = OBJECTS_MAX_OPEN;
	if (readers__init(&o->readers)) {
		free(o);
		return NULL;
	}
	return o;
}

void objects__meanwhile(struct objects *o, void (*call)(void *ctx), void *ctx)
{
	readers__meanwhile(&o->readers, call, ctx);
}

static void object__done(struct object *obj)
{
	reader_file__done(&obj->file);
	if (obj->fd >= 0)
		close(obj->fd);
	free(obj->path);
}

void objects__free(struct objects *o)
{
	size_t i;

	if (!o)
		return;
	for (i = 0; i < o->end; i++)
		if (o->objects[i].info.serial)
			object__done(&o->objects[i]);
	readers__done(&o->readers);
	fetched__done(&o->fetched);
	roots__done(&o->roots);
	hash__done(&o->by_file);
	hash__done(&o->by_build_id);
	free(o->objects);
	free(o->unused);
	free(o);
}

static void format_build_id(const struct reader_file *f, char *out)
{
	for (size_t i = 0; i < f->build_id_sz; i++)
		sprintf(out + 2 * i, "%02x", f->build_id[i]);
}

/* Descriptors are numbered from below, so that one says how many there are. */
static bool leaves_spare(int fd)
{
	struct rlimit lim;

	return getrlimit(RLIMIT_NOFILE, &lim) ||
	       (rlim_t)fd < lim.rlim_cur - MIN(lim.rlim_cur / 4, SPARE_FDS);
}

bool objects__may_keep(int fd)
{
	if (!leaves_spare(fd))
		util_raise_fd_limit();
	return leaves_spare(fd);
}

/* Closes the descriptor of an object that was not used for long (the clock algorithm). */
static void close_one(struct objects *o)
{
	struct object *obj;

	for (;; o->hand++) {
		o->hand %= o->open_cnt;
		obj = &o->objects[o->open[o->hand]];
		if (!obj->used)
			break;
		obj->used = false;
	}
	close(obj->fd);
	obj->fd = -1;
	o->open[o->hand] = o->open[--o->open_cnt];
}

/* The object is to have this descriptor from now on. */
static void keep(struct objects *o, uint32_t id, int fd)
{
	if (!objects__may_keep(fd))
		o->max_open = MAX(o->open_cnt, 1U);
	if (o->open_cnt >= o->max_open)
		close_one(o);
	o->open[o->open_cnt++] = id;
	o->objects[id].fd = fd;
	o->objects[id].used = true;
}

static void let_go(struct objects *o, struct object *obj)
{
	size_t i = 0;

	if (obj->fd < 0)
		return;
	while (&o->objects[o->open[i]] != obj)
		i++;
	o->open[i] = o->open[--o->open_cnt];
	close(obj->fd);
	obj->fd = -1;
}

int objects_judge(struct objects *o, struct object *obj, int err)
{
	if (!reader_harmed(err))
		return err;
	obj->info.readable = false;
	obj->set_aside = true;
	if (err == -ETIMEDOUT) {
		rest__begin(&obj->rest);
		objects__wake_at(o, obj->rest.until_ns);
	} else {
		let_go(o, obj);
	}
	return err;
}

/* May an object that took too long be asked again? */
static void end_rest(struct object *obj)
{
	if (!rest__ends(&obj->rest))
		return;
	obj->info.readable = true;
	obj->set_aside = false;
}

/* Opens the object again. 0 or -errno. */
static int reopen(struct objects *o, uint32_t id)
{
	struct object *obj = &o->objects[id];
	struct file_stat st;
	bool gone = obj->lost || obj->path[0] != '/';
	int fd = gone ? -ESTALE : objects__open(o, obj->path);
	int err = fd < 0 ? fd : file_stat_regular(fd, &st);

	if (!err && !file_stat_same(&st, &obj->st))
		err = -ESTALE;
	if (!err)
		keep(o, id, fd);
	else if (fd >= 0)
		close(fd);
	obj->lost |= err && err != -EAGAIN && err != -ENOMEM;
	return err;
}

int objects_make_ready(struct objects *o, uint32_t id)
{
	struct object *obj = &o->objects[id];
	struct file_stat st;
	int err;

	end_rest(obj);
	if (!obj->info.readable)
		return -ENOEXEC;
	if (!obj->is_file)
		return 0;
	if (obj->fd < 0)
		return reopen(o, id);
	obj->used = true;
	err = file_stat_regular(obj->fd, &st);
	return err ? err : file_stat_same(&st, &obj->st) ? 0 : -ESTALE;
}

/* A number for another object, with room to note that it is unused again; OBJECTS_NONE: there is no
 * memory. */
static uint32_t take_number(struct objects *o)
{
	if (o->unused_cnt)
		return o->unused[--o->unused_cnt];
	if (o->end >= OBJECTS_NONE ||
	    util_reserve(&o->objects, &o->cap, o->end + 1, sizeof(*o->objects)) ||
	    util_reserve(&o->unused, &o->unused_cap, o->end + 1, sizeof(*o->unused)))
		return OBJECTS_NONE;
	memset(&o->objects[o->end], 0, sizeof(*o->objects));
	return (uint32_t)o->end++;
}

/* Takes what *obj holds; path is copied. OBJECTS_NONE with errno, then it is released, too. */
static uint32_t append(struct objects *o, struct object *obj, const char *path)
{
	uint32_t id = take_number(o);
	int fd = obj->fd;

	obj->path = strdup(path);
	if (!obj->path || id == OBJECTS_NONE) {
		if (id != OBJECTS_NONE)
			o->unused[o->unused_cnt++] = id;
		object__done(obj);
		errno = ENOMEM;
		return OBJECTS_NONE;
	}
	obj->fd = -1;
	obj->root = ROOTS_NONE;
	obj->info.serial = ++o->serial;
	obj->info.path = obj->path;
	format_build_id(&obj->file, obj->info.build_id);
	snprintf(obj->info.interp, sizeof(obj->info.interp), "%s", obj->file.interp);
	snprintf(obj->info.sanitizer, sizeof(obj->info.sanitizer), "%s", obj->file.sanitizer);
	o->objects[id] = *obj;
	if (fd >= 0 && obj->info.readable)
		keep(o, id, fd);
	else if (fd >= 0)
		close(fd);
	return id;
}

/* The same file as an object that there is: takes fd. */
static uint32_t add_known(struct objects *o, uint32_t id, int fd)
{
	struct object *obj = &o->objects[id];
	struct file_stat st;

	if (obj->fd < 0 && obj->is_file && obj->info.readable && !file_stat_regular(fd, &st) &&
	    file_stat_same(&st, &obj->st)) {
		obj->lost = false;
		keep(o, id, fd);
	} else {
		obj->used = true;
		close(fd);
	}
	return id;
}

/* Reads the headers of obj's file. 0, also if it is none that can be read; -ENOMEM or -EAGAIN. */
static int describe(struct objects *o, struct object *obj, bool trusted)
{
	int err;

	obj->reader = readers__get(&o->readers, trusted ? READERS_SYSTEM : READERS_FOREIGN);
	if (!obj->reader)
		return -ENOMEM;
	err = reader__describe(obj->reader, obj->fd, false, &obj->file);
	obj->info.readable = !err;
	obj->set_aside = reader_harmed(err);
	return err == -ENOMEM || err == -EAGAIN ? err : 0;
}

/* The object that a file is by its contents; takes fd. */
static uint32_t add_file(struct objects *o, int fd, const struct file_stat *st, const char *path)
{
	struct object obj = { .fd = fd, .is_file = true, .st = *st };
	bool trusted = file_stat_trusted(st);
	int err = describe(o, &obj, trusted);
	struct by_build_id key = { 0 }, *same;
	uint32_t added;
	bool new;

	obj.info.trusted = trusted;
	if (err) {
		object__done(&obj);
		errno = -err;
		return OBJECTS_NONE;
	}
	if (trusted)
		format_build_id(&obj.file, key.key);
	if (!key.key[0])
		return append(o, &obj, path);
	same = hash__lookup(&o->by_build_id, &key);
	if (same && same_layout(&obj.file, &o->objects[same->object].file)) {
		object__done(&obj);
		return same->object;
	}
	added = append(o, &obj, path);
	if (added == OBJECTS_NONE)
		return OBJECTS_NONE;
	same = hash__insert(&o->by_build_id, &key, &new);
	if (!same)
		return OBJECTS_NONE;
	if (new) /* else the first object that claimed this build id keeps it */
		same->object = added;
	return added;
}

int objects__open(struct objects *o, const char *path)
{
	/* what is kept waiting by strangers is not to be missing where the system's files are read
	 */
	struct reader *r = readers__get(&o->readers, READERS_FOREIGN);
	int fd = r ? reader__open(r, path) : -ENOMEM;

	o->harms += fd == -ETIMEDOUT;
	return fd;
}

int objects__open_at(struct objects *o, int folder, const char *name)
{
	struct reader *r = readers__get(&o->readers, READERS_FOREIGN);
	int fd = r ? reader__open_at(r, folder, name) : -ENOMEM;

	o->harms += fd == -ETIMEDOUT;
	return fd;
}

uint32_t objects__add(struct objects *o, int fd, const char *path)
{
	struct by_file *entry;
	struct file_stat st;
	struct file_key key;
	uint32_t object;
	bool new;
	int err = file_stat_regular(fd, &st);

	if (err) {
		close(fd);
		errno = err == -ENOTSUP ? EINVAL : -err;
		return OBJECTS_NONE;
	}
	key = (struct file_key){ st.dev, st.ino, st.size, st.mtime_ns };
	entry = hash__lookup(&o->by_file, &key);
	if (entry)
		return add_known(o, entry->object, fd);
	object = add_file(o, fd, &st, path);
	if (object == OBJECTS_NONE)
		return OBJECTS_NONE;
	entry = hash__insert(&o->by_file, &key, &new);
	if (!entry)
		return OBJECTS_NONE;
	entry->object = object;
	return object;
}

uint32_t objects__add_vdso(struct objects *o)
{
	struct object obj = { .fd = -1 };
	int err;

	if (o->vdso != OBJECTS_NONE)
		return o->vdso;
	err = describe(o, &obj, true);
	if (err || !obj.info.readable) {
		object__done(&obj);
		errno = err ? -err : ENOENT;
		return OBJECTS_NONE;
	}
	o->vdso = append(o, &obj, "[vdso]");
	if (o->vdso != OBJECTS_NONE)
		objects__ref(o, o->vdso);
	return o->vdso;
}

/* ---- references ---- */

void objects__ref(struct objects *o, uint32_t id)
{
	o->objects[id].refs++;
}

void objects__unref(struct objects *o, uint32_t id)
{
	o->objects[id].refs--;
}

static void release(struct objects *o, uint32_t id)
{
	struct object *obj = &o->objects[id];

	o->gone_lost += obj->lost;
	o->gone_set_aside += obj->set_aside;
	let_go(o, obj);
	roots__unref(&o->roots, obj->root);
	object__done(obj);
	*obj = (struct object){ .fd = -1 };
	o->unused[o->unused_cnt++] = id;
}

/* Forgets the files of objects that are gone; and those that are others' by their build ids, of
 * which there may be any number: they are found again by it. */
static void forget_files(struct objects *o)
{
	struct hash_iter it = hash__iter(&o->by_file);
	struct by_file *e;

	while ((e = hash_iter__next(&it))) {
		const struct object *obj = &o->objects[e->object];

		if (!obj->info.serial || obj->st.dev != e->key.dev || obj->st.ino != e->key.ino ||
		    obj->st.size != e->key.size || obj->st.mtime_ns != e->key.mtime_ns)
			hash__remove(&o->by_file, e);
	}
}

static void forget_build_ids(struct objects *o)
{
	struct hash_iter it = hash__iter(&o->by_build_id);
	struct by_build_id *e;

	while ((e = hash_iter__next(&it)))
		if (!o->objects[e->object].info.serial)
			hash__remove(&o->by_build_id, e);
}

void objects__release_unused(struct objects *o, void (*gone)(void *ctx, uint32_t id), void *ctx)
{
	for (size_t i = 0; i < o->end; i++) {
		if (!o->objects[i].info.serial || o->objects[i].refs)
			continue;
		gone(ctx, (uint32_t)i);
		release(o, (uint32_t)i);
	}
	/* before a number is given again */
	forget_files(o);
	forget_build_ids(o);
}

const struct object_info *objects__info(const struct objects *o, uint32_t id)
{
	return &o->objects[id].info;
}

size_t objects__end(const struct objects *o)
{
	return o->end;
}

size_t objects__cnt(const struct objects *o)
{
	return o->end - o->unused_cnt;
}

void objects__stats(const struct objects *o, struct objects_stats *ret)
{
	struct reader_stats readers;

	readers__stats(&o->readers, &readers);
	*ret = (struct objects_stats){ .lost = o->gone_lost,
				       .set_aside = o->harms + o->gone_set_aside,
				       .readers_died = readers.died,
				       .readers_timed_out = readers.timed_out,
				       .readers_lied = readers.lied,
				       .readers_cpu_ns = readers.cpu_ns };
	for (size_t i = 0; i < o->end; i++) {
		ret->lost += o->objects[i].lost;
		ret->set_aside += o->objects[i].set_aside;
	}
}

uint64_t objects__readers_peak_rss(const struct objects *o)
{
	return readers__peak_rss(&o->readers);
}

bool objects__unchanged(struct objects *o, uint32_t id)
{
	const struct object *obj = &o->objects[id];

	return (!obj->is_file || obj->fd >= 0) && !objects_make_ready(o, id);
}

bool objects__written_since(const struct objects *o, uint32_t id, uint64_t ns)
{
	return o->objects[id].is_file && file_stat_written_since(&o->objects[id].st, ns);
}

bool objects__rewritten(const struct objects *o, uint32_t id)
{
	const struct object *obj = &o->objects[id];
	struct file_stat st;

	return obj->is_file && obj->fd >= 0 && !file_stat_regular(obj->fd, &st) &&
	       !file_stat_same(&st, &obj->st);
}

bool objects__rests(const struct objects *o, uint32_t id)
{
	return o->objects[id].rest.until_ns;
}

bool objects__unanswered(struct objects *o, uint32_t id, int err)
{
	if (err != -EAGAIN && err != -ENOMEM)
		return err && objects__rests(o, id);
	objects__wake_at(o, util_monotonic_ns() + AGAIN_NS);
	return true;
}

void objects__wake_at(struct objects *o, uint64_t ns)
{
	if (!o->wake_ns || ns < o->wake_ns)
		o->wake_ns = ns;
}

uint64_t objects__wakes(struct objects *o)
{
	if (!o->wake_ns || util_monotonic_ns() < o->wake_ns)
		return o->wakes;
	o->wake_ns = 0;
	for (size_t i = 0; i < o->end; i++) {
		end_rest(&o->objects[i]);
		if (objects__rests(o, i))
			objects__wake_at(o, o->objects[i].rest.until_ns);
	}
	return ++o->wakes;
}

bool objects__vaddr(const struct objects *o, uint32_t id, uint64_t offset, uint64_t sz,
		    uint64_t *ret_vaddr)
{
	const struct object *obj = &o->objects[id];

	return elf_segments__vaddr(obj->file.segments, obj->file.segment_cnt, offset, sz,
				   ret_vaddr);
}

const struct elf_segment *objects__segments(const struct objects *o, uint32_t id, size_t *ret_cnt)
{
	const struct object *obj = &o->objects[id];

	*ret_cnt = obj->info.readable ? obj->file.segment_cnt : 0;
	return obj->file.segments;
}

int objects__unwind_table(struct objects *o, uint32_t id, struct unwind_table *ret)
{
	struct object *obj = &o->objects[id];
	int err = objects_make_ready(o, id);

	return err ? err : objects_judge(o, obj, reader__unwind_table(obj->reader, obj->fd, ret));
}

int objects__read(struct objects *o, uint32_t id, uint64_t vaddr, void *buf, size_t n)
{
	struct object *obj = &o->objects[id];
	uint64_t offset;
	int err = objects_make_ready(o, id);

	if (!err &&
	    !elf_segments__offset(obj->file.segments, obj->file.segment_cnt, vaddr, n, &offset))
		err = -ENODATA;
	return err ? err :
		     objects_judge(o, obj, reader__bytes(obj->reader, obj->fd, offset, buf, n));
}

int objects__read_memory(struct objects *o, int fd, uint64_t addr, void *buf, size_t n)
{
	struct reader *r = readers__get(&o->readers, READERS_MEMORY);
	int err = r ? reader__bytes(r, fd, addr, buf, n) : -ENOMEM;

	o->harms += reader_harmed(err);
	return err;
}

int objects__read_pieces(struct objects *o, int fd, const uint64_t *addrs, size_t cnt, size_t max,
			 void *buf, uint32_t *ret_sizes)
{
	struct reader *r = readers__get(&o->readers, READERS_MEMORY);
	int err = r ? reader__pieces(r, fd, addrs, cnt, max, buf, ret_sizes) : -ENOMEM;

	o->harms += reader_harmed(err);
	return err;
}

int objects__await_memory_reader(struct objects *o)
{
	struct reader *r = readers__get(&o->readers, READERS_MEMORY);

	return r ? reader__make_ready(r) : -ENOMEM;
}

int objects__read_environ(struct objects *o, int fd, struct said *ret)
{
	struct reader *r = readers__get(&o->readers, READERS_MEMORY);
	int err = r ? reader__environ(r, fd, ret) : -ENOMEM;

	o->harms += reader_harmed(err);
	return err;
}

int objects__parse_context(struct objects *o, const void *data, size_t sz, struct said *ret)
{
	struct reader *r = readers__get(&o->readers, READERS_FOREIGN);
	int err = r ? reader__context(r, data, sz, ret) : -ENOMEM;

	o->harms += reader_harmed(err);
	return err;
}

int objects__read_container(struct objects *o, int fd, enum container_file whose, const char *id,
			    struct container_said *ret)
{
	struct reader *r = readers__get(&o->readers, READERS_FOREIGN);
	int err = r ? reader__container(r, fd, whose, id, ret) : -ENOMEM;

	o->harms += reader_harmed(err);
	return err;
}

int objects__allocators(struct objects *o, uint32_t id, struct allocator_points *ret)
{
	struct object *obj = &o->objects[id];
	int err = objects_make_ready(o, id);

	*ret = (struct allocator_points){};
	return err ? err : objects_judge(o, obj, reader__allocators(obj->reader, obj->fd, ret));
}

bool objects__has_usdt(struct objects *o, uint32_t id)
{
	struct object *obj = &o->objects[id];
	bool found = false;

	return !objects_make_ready(o, id) &&
	       !objects_judge(o, obj, reader__has_usdt(obj->reader, obj->fd, &found)) && found;
}

int objects__custom_sites(struct objects *o, uint32_t id, struct custom_sites *ret)
{
	struct object *obj = &o->objects[id];
	int err = objects_make_ready(o, id);

	*ret = (struct custom_sites){ 0 };
	return err ? err : objects_judge(o, obj, reader__custom_sites(obj->reader, obj->fd, ret));
}

int objects__perf_map(struct objects *o, int fd, const uint64_t *addrs, size_t cnt,
		      struct perf_map_names *ret)
{
	struct reader *r = readers__get(&o->readers, READERS_FOREIGN);
	int err = r ? reader__perf_map(r, fd, addrs, cnt, ret) : -ENOMEM;

	o->harms += reader_harmed(err);
	return err;
}
