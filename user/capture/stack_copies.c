// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "capture/stack_copies.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc_status.h"
#include "base/rest.h"
#include "base/util.h"
#include "target/objects.h"
#include "target/reader.h"

#define MAX_TRIES \
	3 /* threads by which the memory of a process is asked for, where they have ended */
#define MAX_ANCESTORS 64

struct stack_copies {
	struct objects *objects;
	uint8_t *data;
	size_t sz, cap;
	/* of those of a process that are being made */
	uint64_t *addrs;
	uint32_t *sizes;
	size_t addr_cap, size_cap;
	struct rests silent;	 /* processes that did not answer in time */
	unsigned int silent_now; /* at this moment */
};

struct stack_copies *stack_copies__new(struct objects *objects)
{
	struct stack_copies *c = calloc(1, sizeof(*c));

	if (c)
		c->objects = objects;
	return c;
}

void stack_copies__free(struct stack_copies *c)
{
	if (!c)
		return;
	stack_copies__end(c);
	free(c->addrs);
	free(c->sizes);
	free(c);
}

void stack_copies__begin(struct stack_copies *c)
{
	c->silent_now = 0;
	/* where that fails, so does what is asked for next */
	(void)objects__await_memory_reader(c->objects);
}

void stack_copies__end(struct stack_copies *c)
{
	free(c->data);
	c->data = NULL;
	c->sz = c->cap = 0;
}

const uint8_t *stack_copies__data(const struct stack_copies *c)
{
	return c->data;
}

/* ---- processes that do not answer ---- */

static struct rest_key key_of(const struct bpfprof_proc_key *proc)
{
	struct rest_key ret;

	_Static_assert(sizeof(ret) == sizeof(*proc), "all of it");
	memcpy(&ret, proc, sizeof(ret));
	return ret;
}

static void note_silent(struct stack_copies *c, const struct bpfprof_proc_key *proc)
{
	rests__begin(&c->silent, key_of(proc));
	c->silent_now++;
}

static bool is_left_alone(struct stack_copies *c, const struct bpfprof_proc_key *proc)
{
	return c->silent_now >= STACK_COPIES_MAX_SILENT || rests__has(&c->silent, key_of(proc));
}

/* ---- copying ---- */

static int compare_processes(const void *a, const void *b)
{
	const struct stack_copy *const *x = a, *const *y = b;
	int by = memcmp(&(*x)->proc, &(*y)->proc, sizeof((*x)->proc));

	return by ? by : ((*x)->tid > (*y)->tid) - ((*x)->tid < (*y)->tid);
}

/* Have we started it, or who has? */
static bool is_descendant(uint32_t id)
{
	for (int i = 0; id > 1 && i < MAX_ANCESTORS; i++) {
		char *text;

		if (proc_status_read(PROC_STATUS_DIR, id, &text))
			return false;
		id = (uint32_t)proc_status_number(text, "PPid");
		free(text);
		if (id == (uint32_t)getpid())
			return true;
	}
	return false;
}

/* Of a process, by the memory that one of its threads has, which is opened so. 0 or -errno. */
static int read_opened(struct stack_copies *c, uint32_t tid, int flags, size_t cnt)
{
	char path[32];
	int fd, err;

	snprintf(path, sizeof(path), "/proc/%u/mem", tid);
	fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = objects__read_pieces(c->objects, fd, c->addrs, cnt, BPFPROF_RAW_STACK_SZ,
				   c->data + c->sz, c->sizes);
	close(fd);
	return err;
}

/*
 * To open it may wait as well: that is the opener's to do. But without CAP_SYS_PTRACE only an ancestor may, where Yama
 * says so (kernel.yama.ptrace_scope), and only who has all the rights of that process: we do, for a command that we
 * have started, which keeps nobody but its own user waiting.
 */
static int read_by(struct stack_copies *c, uint32_t tid, size_t cnt)
{
	int err = read_opened(c, tid, O_PATH, cnt);

	if ((err == -EACCES || err == -EPERM) && is_descendant(tid))
		err = read_opened(c, tid, O_RDONLY, cnt);
	return err;
}

static bool has_any(const struct stack_copies *c, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (c->sizes[i])
			return true;
	return false;
}

/* So many stacks of a process, for which there is room. True: it did not answer in time. */
static bool copy(struct stack_copies *c, struct stack_copy **copies, size_t cnt)
{
	const struct bpfprof_proc_key *proc = &copies[0]->proc;
	bool done = is_left_alone(c, proc), late = false;

	for (size_t i = 0; i < cnt; i++)
		c->addrs[i] = copies[i]->addr;
	memset(c->sizes, 0, cnt * sizeof(*c->sizes));
	for (size_t i = 0; !done && i < MIN(cnt, (size_t)MAX_TRIES); i++) {
		int err = read_by(c, copies[i]->tid, cnt);

		if (err)
			memset(c->sizes, 0, cnt * sizeof(*c->sizes));
		late = reader_harmed(err);
		done = late || has_any(c, cnt);
	}
	if (late)
		note_silent(c, proc);
	for (size_t i = 0; i < cnt; i++) {
		copies[i]->made = true;
		copies[i]->at = c->sz;
		copies[i]->sz = c->sizes[i];
		c->sz += c->sizes[i];
	}
	return late;
}

static size_t count_same(struct stack_copy **copies, size_t cnt)
{
	size_t n = 1;

	while (n < cnt && !memcmp(&copies[n]->proc, &copies[0]->proc, sizeof(copies[0]->proc)))
		n++;
	return n;
}

static int reserve(struct stack_copies *c, size_t cnt)
{
	int err = util_reserve(&c->data, &c->cap, c->sz + cnt * BPFPROF_RAW_STACK_SZ, 1);

	if (!err)
		err = util_reserve(&c->addrs, &c->addr_cap, cnt, sizeof(*c->addrs));
	if (!err)
		err = util_reserve(&c->sizes, &c->size_cap, cnt, sizeof(*c->sizes));
	return err;
}

bool stack_copies__make(struct stack_copies *c, struct stack_copy **copies, size_t cnt)
{
	bool late = false;

	c->sz = 0;
	for (size_t i = 0; i < cnt; i++)
		copies[i]->made = false;
	if (cnt)
		qsort(copies, cnt, sizeof(struct stack_copy *), compare_processes);
	for (size_t i = 0, n; i < cnt; i += n) {
		n = MIN(count_same(copies + i, cnt - i),
			(STACK_COPIES_MAX_BYTES - c->sz) / BPFPROF_RAW_STACK_SZ);
		if (!n || reserve(c, n))
			break;
		late |= copy(c, copies + i, n);
	}
	return late;
}
