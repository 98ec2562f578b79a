// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "record/dump_records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory_max.h"
#include "base/util.h"
#include "kinds.h"
#include "profile/fit.h"
#include "profile/machinery.h"
#include "profile/merge.h"
#include "profile/pprof.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"
#include "spool/labels.h"
#include "spool/spool.h"

#define MAX_KEY 64
/* Bytes that what a record says of itself takes at most. */
#define HEAD_SZ (LABELS_MAX * (MAX_KEY + LABELS_MAX_VALUE) + 64)

/* ---- one record ---- */

/* Its first `max` bytes, or all of it if that is not more; all: it has to be. 0; -ENOENT: it has
 * gone; -errno. */
static int read_record(const struct spool *s, uint64_t number, size_t max, bool all, char **ret,
		       size_t *ret_sz)
{
	int fd = spool__open_record(s, number), err = 0;
	struct stat st;

	*ret = NULL;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EBADMSG;
	else if (all && st.st_size > (off_t)max)
		err = -EFBIG;
	if (!err) {
		*ret_sz = MIN((size_t)st.st_size, max);
		*ret = malloc(*ret_sz + 1);
		err = *ret ? util_pread_full(fd, *ret, *ret_sz, 0) : -ENOMEM;
	}
	close(fd);
	if (err) {
		free(*ret);
		*ret = NULL;
	}
	return err;
}

/* What a file says of itself. *ret points into it. The kind, or -EBADMSG. */
static int read_labels(const char *file, size_t sz, struct labels *ret)
{
	const void *extra;
	const char *kind;
	size_t extra_sz;
	int found;

	if (pprof_extra(file, sz, &extra, &extra_sz) || labels__decode(extra, extra_sz, ret))
		return -EBADMSG;
	kind = labels__get(ret, "kind");
	found = kind ? kinds_find(kind, strlen(kind)) : -1;
	return found >= 0 ? found : -EBADMSG;
}

/* ---- which ---- */

static int look_at(const struct spool *s, uint64_t number, struct dump_records *r)
{
	struct labels labels;
	char *head;
	size_t sz;
	int kind = read_record(s, number, HEAD_SZ, false, &head, &sz);

	if (!kind)
		kind = read_labels(head, sz, &labels);
	free(head);
	if (kind == -ENOMEM)
		return kind;
	if (kind == -ENOENT) {
		r->unknown.gone++;
	} else if (kind < 0) {
		r->unknown.broken++;
	} else {
		r->numbers[r->cnt] = number;
		r->kinds[r->cnt++] = (uint8_t)kind;
	}
	return 0;
}

struct named {
	uint64_t number, time_ns; /* when its window begins, to the second below */
};

/* All of the spool's list, in its order. 0 or -ENOMEM. */
static int list(const struct spool *s, struct named **ret, size_t *ret_cnt)
{
	uint64_t number = 0, time_ns;
	size_t cap = 0;

	while (spool__find(s, number, &number, &time_ns)) {
		if (util_reserve(ret, &cap, *ret_cnt + 1, sizeof(**ret)))
			return -ENOMEM;
		(*ret)[(*ret_cnt)++] = (struct named){ number++, time_ns };
	}
	return 0;
}

/* Can its window end in that time? next_ns: when the one behind it begins, to the second; a clock may
 * have been set back between them. */
static bool may_be(const struct named *n, uint64_t next_ns, const struct dump_time *when)
{
	if (n->time_ns > when->to_ns)
		return false;
	return next_ns <= n->time_ns || next_ns + NSEC_PER_SEC > when->from_ns;
}

int dump_records__find(const struct spool *s, const struct dump_time *when,
		       struct dump_records *ret)
{
	uint64_t next_ns = 0;
	struct named *v = NULL;
	size_t cnt = 0;
	int err = list(s, &v, &cnt);

	*ret = (struct dump_records){ 0 };
	if (!err) {
		ret->numbers = calloc(cnt + 1, sizeof(*ret->numbers));
		ret->kinds = calloc(cnt + 1, sizeof(*ret->kinds));
		err = ret->numbers && ret->kinds ? 0 : -ENOMEM;
	}
	for (size_t i = cnt; !err && i-- > 0;) {
		if (i + 1 < cnt && v[i].time_ns != v[i + 1].time_ns)
			next_ns = v[i + 1].time_ns;
		if (may_be(&v[i], next_ns, when))
			err = look_at(s, v[i].number, ret);
	}
	free(v);
	return err;
}

void dump_records__done(struct dump_records *r)
{
	free(r->numbers);
	free(r->kinds);
	*r = (struct dump_records){ 0 };
}

/* ---- the sum ---- */

/* Of its values a record may have all, or the first ones, where the kind can do without the others. */
static bool is_of_kind(const struct profile *p, const struct kind *k)
{
	if (p->value_cnt > k->value_cnt)
		return false;
	for (size_t i = 0; i < p->value_cnt; i++)
		if (strcmp(p->value_types[i].type, k->value_types[i].type) != 0 ||
		    strcmp(p->value_types[i].unit, k->value_types[i].unit) != 0)
			return false;
	return true;
}

/* When it ends; UINT64_MAX: at no time that there is. */
static uint64_t end_of(const struct profile *p)
{
	int64_t end;

	if (p->time_ns <= 0 || p->duration_ns < 0 ||
	    __builtin_add_overflow(p->time_ns, p->duration_ns, &end))
		return UINT64_MAX;
	return (uint64_t)end;
}

struct sum {
	struct profile_merge *merge;
	struct strtab *left_out; /* names of values that not all have */
	unsigned int levels;	 /* of the kind */
	uint64_t newest_ns;	 /* when the newest window ends */
};

/* The labels that its samples get. */
struct group {
	struct profile_merge_label v[LABELS_MAX];
	char keys[LABELS_MAX][MAX_KEY], values[LABELS_MAX][LABELS_MAX_VALUE];
	size_t cnt;
};

static void make_group(const struct labels *l, struct group *ret)
{
	ret->cnt = 0;
	for (size_t i = 0; i < l->cnt; i++) {
		size_t n = ret->cnt;

		if (!strcmp(l->v[i].key, "kind"))
			continue;
		ret->v[n].key = util_printable(ret->keys[n], MAX_KEY, l->v[i].key);
		ret->v[n].value = util_printable(ret->values[n], LABELS_MAX_VALUE, l->v[i].value);
		ret->cnt++;
	}
}

static void note_window(const struct profile *p, struct dump_account *a)
{
	uint64_t begin = (uint64_t)p->time_ns, end = end_of(p);

	a->begin_ns = a->added ? MIN(a->begin_ns, begin) : begin;
	a->end_ns = MAX(a->end_ns, end);
	a->added++;
}

/* What there was at the end of a window is not there at the end of all of them: the newest one tells. */
static void drop_levels(const struct sum *sum, struct profile *p)
{
	for (size_t i = 0; i < p->sample_cnt; i++)
		for (size_t v = 0; v < p->value_cnt; v++)
			if (sum->levels & 1U << v)
				profile__values(p, &p->samples[i])[v] = 0;
	profile__drop_zeros(p);
}

/* A profile, whose window may be another one. 0 or -ENOMEM. */
static int add_profile(struct sum *sum, struct profile *p, const struct labels *labels,
		       const struct dump_time *when, struct dump_account *a)
{
	struct profile *so_far = profile_merge__so_far(sum->merge);
	struct group group;
	char text[768];
	uint64_t end_ns = end_of(p);
	int err;

	if (end_ns == UINT64_MAX)
		a->broken++;
	if (end_ns < when->from_ns || end_ns > when->to_ns)
		return 0;
	make_group(labels, &group);
	if (!so_far)
		sum->newest_ns = end_ns;
	if (sum->levels && end_ns != sum->newest_ns)
		drop_levels(sum, p);
	err = so_far ? profile_fit(so_far, p, sum->left_out, text, sizeof(text)) : 0;
	err = err ?: profile_merge__add(sum->merge, p, group.v, group.cnt);
	if (!err)
		note_window(p, a);
	else if (err == -EINVAL)
		a->others++;
	return err == -EINVAL ? 0 : err;
}

/* 0; -ENOMEM: nothing more can be added. */
static int add_record(const struct spool *s, uint64_t number, enum bpfprof_kind kind,
		      const struct dump_time *when, struct sum *sum, struct dump_account *a)
{
	struct profile *p = NULL;
	struct labels labels;
	char *file;
	size_t sz;
	int err = read_record(s, number, PPROF_READ_MAX, true, &file, &sz);

	if (!err && read_labels(file, sz, &labels) != (int)kind)
		err = -EBADMSG;
	if (!err)
		err = pprof_read(file, sz, &p);
	if (!err && !is_of_kind(p, &kinds[kind]))
		err = -EBADMSG;
	if (err == -ENOENT)
		a->gone++;
	else if (err)
		a->broken++;
	/* one that takes more memory than there is does not keep the others out */
	err = err ? 0 : add_profile(sum, p, &labels, when, a);
	profile__free(p);
	free(file);
	return err;
}

static void put_count(FILE *f, size_t cnt, const char *what)
{
	if (cnt)
		fprintf(f, "%s%zu %s", ftell(f) ? ", " : "", cnt, what);
}

void dump_account_text(const struct dump_account *a, char *ret, size_t ret_sz)
{
	FILE *f = fmemopen(ret, ret_sz - 1, "w");

	memset(ret, 0, ret_sz);
	if (!f)
		return;
	put_count(f, a->broken, "that are broken");
	put_count(f, a->gone, "that went meanwhile to make room");
	put_count(f, a->others, "of other values");
	put_count(f, a->no_room, "older ones that would be too much for one file");
	fclose(f);
}

static bool is_full(const struct sum *sum)
{
	const struct profile *p = profile_merge__so_far(sum->merge);

	return p && profile__bytes(p) >= memory_max_share(memory_max(), 4, DUMP_MAX_SUM);
}

static int add_records(const struct spool *s, const struct dump_records *r, enum bpfprof_kind kind,
		       const struct dump_time *when, bool (*aborted)(void), struct sum *sum,
		       struct dump_account *a)
{
	int err = 0;

	for (size_t i = 0; !err && i < r->cnt; i++) {
		if (r->kinds[i] != kind)
			continue;
		if (aborted())
			err = -EINTR;
		else if (is_full(sum))
			a->no_room++;
		else
			err = add_record(s, r->numbers[i], kind, when, sum, a);
	}
	return err;
}

static int finish(struct profile *p, enum bpfprof_kind kind, const struct strtab *values,
		  struct dump_account *a)
{
	char left_out[256], line[512];
	/* what is kept visible is so by the names of all of them */
	int err = kinds[kind].drops ? machinery_hide(p, kinds[kind].drops) : 0;

	dump_account_text(a, left_out, sizeof(left_out));
	snprintf(line, sizeof(line), "the sum of %zu profiles%s%s", a->added,
		 *left_out ? "; left out: " : "", left_out);
	err = err ?: profile__add_comment(p, line);
	err = err ?: profile_fit_say(p, values, a->values, sizeof(a->values));
	if (!err && *a->values)
		profile__drop_zeros(p);
	return err ?: profile__finish(p);
}

int dump_records__sum(const struct spool *s, const struct dump_records *r, enum bpfprof_kind kind,
		      const struct dump_time *when, bool (*aborted)(void), struct profile **ret,
		      struct dump_account *ret_account)
{
	struct sum sum = { profile_merge__new(), strtab__new(), kinds[kind].levels, 0 };
	struct profile *p = NULL;
	int err = sum.merge && sum.left_out ? 0 : -ENOMEM;

	*ret = NULL;
	*ret_account = (struct dump_account){ 0 };
	if (!err)
		err = add_records(s, r, kind, when, aborted, &sum, ret_account);
	if (!err && ret_account->added) {
		p = profile_merge__take(sum.merge);
		err = p ? 0 : -errno;
	}
	if (p)
		err = finish(p, kind, sum.left_out, ret_account);
	profile_merge__free(sum.merge);
	strtab__free(sum.left_out);
	if (err) {
		profile__free(p);
		p = NULL;
	}
	*ret = p;
	return err;
}
