/* SPDX-License-Identifier: BSD-2-Clause */
/* The debug files of objects, and what is read from them: names, and sites of probes. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "target/debugfile.h"
#include "target/objects_parts.h"
#include "target/probe_sites.h"
#include "target/split_names.h"

/* After a look for a debug file that was not there, until the next one. */
#define LOOK_AGAIN_NS (60 * NSEC_PER_SEC)

/* ---- where they are ---- */

bool objects__wants_root(const struct objects *o, uint32_t id)
{
	const struct object *obj = &o->objects[id];

	return obj->is_file && obj->info.readable && !obj->has_root;
}

void objects__set_root(struct objects *o, uint32_t id, int root)
{
	struct object *obj = &o->objects[id];

	obj->has_root = true;
	if (root < 0)
		return;
	obj->missed_ns = 0;
	if (objects__may_keep(root))
		obj->root = roots__add(&o->roots, root);
	else
		close(root);
}

static bool is_systems(struct objects *o, const struct object *obj)
{
	return obj->reader == readers__get(&o->readers, READERS_SYSTEM);
}

/* What the debug file of an object is looked for. */
static struct debugfile_object for_debugfile(struct objects *o, const struct object *obj)
{
	struct debugfile_object ret = { .reader = obj->reader,
					.file = &obj->file,
					.st = obj->is_file ? &obj->st : NULL,
					.path = obj->path };
	int fd = roots__fd(&o->roots, ROOTS_OWN);

	if (fd >= 0)
		ret.roots[ret.root_cnt++] = fd;
	fd = obj->root == ROOTS_OWN ? -1 : roots__fd(&o->roots, obj->root);
	if (fd >= 0)
		ret.roots[ret.root_cnt++] = fd;
	return ret;
}

/* The same where also what was fetched will do. What strangers have written is read where all of that
 * is: it could lie about the names of the system's files elsewhere. */
static struct debugfile_object for_any_debugfile(struct objects *o, const struct object *obj)
{
	struct debugfile_object ret = for_debugfile(o, obj);

	if (!o->fetched.cnt || obj->unfetched)
		return ret;
	ret.fetched_reader =
		is_systems(o, obj) ? readers__get(&o->readers, READERS_FETCHED) : obj->reader;
	if (ret.fetched_reader)
		ret.fetched = &o->fetched;
	return ret;
}

static int open_debugfile(struct object *obj, const struct debugfile_object *from,
			  struct debugfile *ret)
{
	int err = debugfile__open(ret, from);

	obj->missed_ns = err == -ENOENT ? util_monotonic_ns() : 0;
	return err;
}

/* To look for it asks the opener for each place where it may be: not with each new address. */
static bool missed_lately(const struct object *obj)
{
	return obj->missed_ns && util_monotonic_ns() < obj->missed_ns + LOOK_AGAIN_NS;
}

int objects__lacks(struct objects *o, uint32_t id, uint8_t ret_id[ELF_FILE_MAX_BUILD_ID],
		   size_t *ret_sz)
{
	struct debugfile debug = { .fd = -1 }, alt = { .fd = -1 };
	struct object *obj = &o->objects[id];
	int err = obj->is_file ? objects_make_ready(o, id) : -ENOENT;
	const struct reader_file *has = &obj->file;
	struct debugfile_object from;

	if (err)
		return err;
	from = for_any_debugfile(o, obj);
	*ret_sz = 0;
	if (!obj->file.has_debug_info) {
		err = open_debugfile(obj, &from, &debug);
		has = &debug.file;
		*ret_sz = err == -ENOENT ? obj->file.build_id_sz : 0;
		memcpy(ret_id, obj->file.build_id, *ret_sz);
	}
	if (!err && has->alt_id_sz) {
		err = debugfile__open_alt(&alt, &from, &debug);
		*ret_sz = err == -ENOENT ? has->alt_id_sz : 0;
		memcpy(ret_id, has->alt_id, *ret_sz);
	}
	debugfile__close(&alt);
	debugfile__close(&debug);
	return *ret_sz ? 0 : err ?: -ENOENT;
}

int objects__give(struct objects *o, const uint8_t *build_id, size_t sz, int fd)
{
	struct reader *r = readers__get(&o->readers, READERS_FETCHED);
	struct reader_file f = { 0 };
	int err = r ? reader__describe(r, fd, true, &f) : -ENOMEM;

	/* a server that ends in the middle does not always say how much there is */
	if (!err &&
	    (!sz || f.build_id_sz != sz || memcmp(f.build_id, build_id, sz) != 0 || !f.is_whole))
		err = -EBADMSG;
	reader_file__done(&f);
	if (!err)
		return fetched__add(&o->fetched, build_id, sz, fd);
	close(fd);
	return err == -ENOMEM ? err : -EBADMSG;
}

bool objects__has_given(const struct objects *o, const uint8_t *build_id, size_t sz)
{
	return fetched__find(&o->fetched, build_id, sz) >= 0;
}

void objects__learn(struct objects *o, uint32_t id)
{
	o->objects[id].info.fetched++;
	o->objects[id].missed_ns = 0;
}

/*
 * Forgets what was fetched and did harm. False: nothing was. A stranger's object may have done it itself,
 * under the build id of another one: that one keeps its names.
 */
static bool forget_fetched(struct objects *o, struct object *obj, const struct debugfile *debug,
			   const struct debugfile *alt)
{
	const struct debugfile *all[] = { debug, alt };

	if (!debug->fetched && !alt->fetched)
		return false;
	obj->unfetched = true;
	for (size_t i = 0; is_systems(o, obj) && i < ARRAY_SIZE(all); i++)
		if (all[i]->fetched)
			fetched__remove(&o->fetched, all[i]->file.build_id,
					all[i]->file.build_id_sz);
	o->harms++;
	return true;
}

/* ---- what is read from them ---- */

int objects__sites(struct objects *o, uint32_t id, const char *provider, const char *name,
		   uint32_t use, struct probe_sites *ret)
{
	struct debugfile debug = { .fd = -1 };
	struct object *obj = &o->objects[id];
	int err = objects_make_ready(o, id);
	struct debugfile_object from;

	*ret = (struct probe_sites){ 0 };
	if (err)
		return err;
	from = for_debugfile(o, obj);
	err = debugfile__open(&debug, &from);
	if (err != -ENOMEM)
		err = objects_judge(o, obj,
				    reader__sites(obj->reader, (int[]){ obj->fd, debug.fd },
						  provider, name, use, ret));
	debugfile__close(&debug);
	return err;
}

/* ret_again: what was fetched did harm, and is forgotten. */
static int symbolize(struct objects *o, uint32_t id, const uint64_t *vaddrs, size_t cnt, bool plain,
		     struct symbols *ret, bool *ret_again)
{
	struct debugfile debug = { .fd = -1 }, alt = { .fd = -1 };
	struct object *obj = &o->objects[id];
	struct debugfile_object from = for_any_debugfile(o, obj);
	int err = 0;

	if (!obj->file.has_debug_info && !missed_lately(obj))
		err = open_debugfile(obj, &from, &debug);
	if (err != -ENOMEM)
		err = debugfile__open_alt(&alt, &from, &debug);
	if (debug.fetched || alt.fetched)
		from.reader = from.fetched_reader;
	if (err != -ENOMEM)
		err = plain ? reader__names(from.reader, (int[]){ obj->fd, debug.fd, alt.fd, -1 },
					    vaddrs, cnt, true, ret) :
			      split_names(&from, obj->fd, &debug, &alt, vaddrs, cnt, ret);
	*ret_again = reader_harmed(err) && forget_fetched(o, obj, &debug, &alt);
	debugfile__close(&alt);
	debugfile__close(&debug);
	return *ret_again ? err : objects_judge(o, obj, err);
}

int objects__symbolize(struct objects *o, uint32_t id, const uint64_t *vaddrs, size_t cnt,
		       bool plain, struct symbols *ret)
{
	int err = objects_make_ready(o, id);
	bool again = !err;

	memset(ret, 0, sizeof(*ret));
	while (again)
		err = symbolize(o, id, vaddrs, cnt, plain, ret, &again);
	return err;
}
