/* SPDX-License-Identifier: BSD-2-Clause */
#include "spool/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sorted.h"
#include "base/util.h"
#include "spool/names.h"
#include "spool/new_file.h"

#define NUMBER_DIGITS 16
#define TIME_CHARS 16 /* 20261126T105404Z */
#define NAME_AT (NUMBER_DIGITS + 1 + TIME_CHARS + 1)
#define BLOCK 512    /* stat(2): st_blocks */
#define PAGE 4096ULL /* most file systems give a file whole ones */
#define LITTLE 65536 /* bytes that there has to be room for at the start */
#define TIME_DIGITS 20
#define WINDOW_SZ (2 * (TIME_DIGITS + 1)) /* of the text in the lock's file */

/* Small, since there may be SPOOL_MAX_RECORDS of them. */
struct record {
	uint64_t number;
	struct name *name;
	uint32_t seconds; /* since 1970 */
	uint32_t blocks;  /* of BLOCK bytes */
};

struct spool {
	int folder, lock;
	bool looks;		/* another one has it */
	uint64_t max_sz, next;	/* number */
	struct record *records; /* from first on; ascending */
	size_t first, end, cap;
	struct names names;
	struct spool_stats stats;
};

/* ---- records ---- */

static bool is_digits(const char *s, size_t n)
{
	return strspn(s, "0123456789") >= n;
}

static void name_file(uint64_t number, uint32_t seconds, const char *name,
		      char ret[static NAME_MAX + 1])
{
	time_t time = (time_t)seconds;
	char text[TIME_CHARS + 1];
	struct tm tm;

	gmtime_r(&time, &tm);
	strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(ret, NAME_MAX + 1, "%0*" PRIu64 ".%s.%s", NUMBER_DIGITS, number, text, name);
}

/* Is that the name of a record? Then it is what name_file makes of these. */
static bool parse_name(const char *file, uint64_t *ret_number, uint32_t *ret_seconds,
		       const char **ret_name)
{
	char digits[NUMBER_DIGITS + 1], same[NAME_MAX + 1];
	struct tm tm = { 0 };
	int64_t seconds;

	if (strlen(file) < NAME_AT + 1 || !is_digits(file, NUMBER_DIGITS) ||
	    file[NUMBER_DIGITS] != '.' || file[NAME_AT - 1] != '.')
		return false;
	snprintf(digits, sizeof(digits), "%.*s", NUMBER_DIGITS, file);
	if (util_parse_u64(digits, 1, UINT64_MAX, ret_number) ||
	    !strptime(file + NUMBER_DIGITS + 1, "%Y%m%dT%H%M%SZ", &tm))
		return false;
	seconds = (int64_t)timegm(&tm);
	if (seconds < 0 || seconds > UINT32_MAX)
		return false;
	*ret_seconds = (uint32_t)seconds;
	*ret_name = file + NAME_AT;
	name_file(*ret_number, *ret_seconds, *ret_name, same);
	return !strcmp(file, same);
}

/* What a file takes. Some file systems give it its blocks later. */
static uint32_t blocks_of(const struct stat *st)
{
	uint64_t pages = ((uint64_t)st->st_size + PAGE - 1) / PAGE;
	uint64_t blocks = MAX((uint64_t)st->st_blocks, pages * (PAGE / BLOCK));

	return (uint32_t)MIN(blocks, UINT32_MAX);
}

static uint64_t bytes_of(const struct record *r)
{
	return (uint64_t)r->blocks * BLOCK;
}

/* Behind the others; `name` is where the record has it from. 0 or -ENOMEM. */
static int append(struct spool *s, struct record r, const char *name)
{
	r.name = names__take(&s->names, name);
	if (!r.name)
		return -ENOMEM;
	/* what was dropped leaves room at the beginning */
	if (s->first > s->cap / 2) {
		memmove(s->records, s->records + s->first,
			(s->end - s->first) * sizeof(*s->records));
		s->end -= s->first;
		s->first = 0;
	}
	if (util_reserve(&s->records, &s->cap, s->end + 1, sizeof(*s->records))) {
		names__give_back(&s->names, r.name);
		return -ENOMEM;
	}
	s->records[s->end++] = r;
	s->stats.records++;
	s->stats.bytes += bytes_of(&r);
	s->next = MAX(s->next, r.number + 1);
	return 0;
}

/* 0 or -errno: it is still there. */
static int drop_first(struct spool *s)
{
	struct record *r = &s->records[s->first];
	char file[NAME_MAX + 1];

	name_file(r->number, r->seconds, r->name->text, file);
	if (unlinkat(s->folder, file, 0) && errno != ENOENT)
		return -errno;
	s->stats.records--;
	s->stats.bytes -= bytes_of(r);
	s->stats.dropped++;
	s->stats.dropped_bytes += bytes_of(r);
	names__give_back(&s->names, r->name);
	s->first++;
	return 0;
}

bool spool__make_room(struct spool *s, int err)
{
	return (err == -ENOSPC || err == -EDQUOT) && s->first < s->end && !drop_first(s);
}

/* Keeps the folder's bound with so many bytes, and one record, more. 0 or -errno. */
static int keep_bound(struct spool *s, uint64_t bytes)
{
	int err = 0;

	while (!err && s->first < s->end &&
	       (s->stats.bytes + bytes > s->max_sz || s->stats.records >= SPOOL_MAX_RECORDS))
		err = drop_first(s);
	return err;
}

/* ---- writing ---- */

/* With room that the oldest make: the disk is full of what others have written, and what is new
 * is worth more than what is old. */
static int write_file(struct spool *s, const char *tmp, int (*write)(void *ctx, FILE *f), void *ctx,
		      struct stat *ret)
{
	int err = new_file_write(s->folder, tmp, false, write, ctx, ret);

	while (spool__make_room(s, err)) {
		(void)unlinkat(s->folder, tmp, 0);
		err = new_file_write(s->folder, tmp, false, write, ctx, ret);
	}
	return err;
}

static int write_little(void *ctx, FILE *f)
{
	static const char little[LITTLE];

	(void)ctx;
	return fwrite(little, sizeof(little), 1, f) == 1 ? 0 : -errno;
}

/* Can anything be written at all? 0 or -errno, said in text. */
static int check_room(struct spool *s, const char *path, char *text, size_t text_sz)
{
	static const char tmp[] = ".0000000000000000.tmp";
	struct stat st;
	int err = write_file(s, tmp, write_little, NULL, &st);

	(void)unlinkat(s->folder, tmp, 0);
	if (!err)
		return 0;
	return util_fail(err, text, text_sz, "cannot write in the folder '%s': %s%s", path,
			 strerror(-err),
			 err == -ENOSPC || err == -EDQUOT ? ": make room for it" : "");
}

/* ---- the folder ---- */

static int by_number(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

/* One entry of it. 0 or -ENOMEM. */
static int take_entry(struct spool *s, const char *file)
{
	struct record r;
	const char *name;
	struct stat st;

	if (file[0] == '.' && is_digits(file + 1, NUMBER_DIGITS) &&
	    !strcmp(file + 1 + NUMBER_DIGITS, ".tmp")) {
		if (!s->looks)
			(void)unlinkat(s->folder, file, 0);
		return 0;
	}
	if (!parse_name(file, &r.number, &r.seconds, &name) ||
	    fstatat(s->folder, file, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return 0;
	r.blocks = blocks_of(&st);
	return append(s, r, name);
}

static int scan(struct spool *s)
{
	int fd = openat(s->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err && (e = readdir(dir)))
		err = take_entry(s, e->d_name);
	closedir(dir);
	if (!err && s->end)
		qsort(s->records, s->end, sizeof(*s->records), by_number);
	return err;
}

/* One of our own. 0 or -errno, said in text. */
static int open_folder(struct spool *s, const char *path, char *text, size_t text_sz)
{
	struct stat st;

	s->folder = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->folder < 0 && (errno == ENOTDIR || errno == ELOOP))
		return util_fail(-errno, text, text_sz, "'%s' is no folder (a link is none)", path);
	if (s->folder < 0 || fstat(s->folder, &st))
		return util_fail(-errno, text, text_sz, "cannot open the folder '%s': %s", path,
				 strerror(errno));
	if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return util_fail(-EPERM, text, text_sz,
				 "others may write in the folder '%s': it has to be one of our own",
				 path);
	return 0;
}

/* The same. */
static int take_folder(struct spool *s, const char *path, char *text, size_t text_sz)
{
	/* flock(2) keeps all others out, and tells nobody who has it: fcntl(2) does */
	struct flock sign = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int err;

	if (mkdir(path, 0700) && errno != EEXIST)
		return util_fail(-errno, text, text_sz, "cannot make the folder '%s': %s", path,
				 strerror(errno));
	err = open_folder(s, path, text, text_sz);
	if (err)
		return err;
	s->lock = openat(s->folder, ".lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->lock < 0)
		return util_fail(-errno, text, text_sz, "cannot write in the folder '%s': %s", path,
				 strerror(errno));
	if (flock(s->lock, LOCK_EX | LOCK_NB))
		return util_fail(errno == EWOULDBLOCK ? -EBUSY : -errno, text, text_sz,
				 "another bpfprof has the folder '%s'", path);
	/* what stands there is another one's, perhaps of before the machine was started */
	if (ftruncate(s->lock, 0))
		return util_fail(-errno, text, text_sz, "cannot write in the folder '%s': %s", path,
				 strerror(errno));
	/* without it, nobody finds whom to ask for a window */
	(void)fcntl(s->lock, F_SETLK, &sign);
	return 0;
}

int spool__open(const char *path, uint64_t max_sz, struct spool **ret, char *text, size_t text_sz)
{
	struct spool *s = calloc(1, sizeof(*s));
	int err;

	*ret = NULL;
	if (!s)
		return util_fail(-ENOMEM, text, text_sz, "out of memory");
	*s = (struct spool){ .folder = -1, .lock = -1, .max_sz = max_sz, .next = 1 };
	names__init(&s->names);
	err = take_folder(s, path, text, text_sz);
	if (!err) {
		err = scan(s);
		/* it may be given less than it had */
		err = err ?: keep_bound(s, 0);
		if (err)
			util_fail(err, text, text_sz, "cannot read the folder '%s': %s", path,
				  strerror(-err));
	}
	if (!err)
		err = check_room(s, path, text, text_sz);
	if (err)
		spool__close(s);
	else
		*ret = s;
	return err;
}

int spool__look(const char *path, struct spool **ret, char *text, size_t text_sz)
{
	struct spool *s = calloc(1, sizeof(*s));
	int err;

	*ret = NULL;
	if (!s)
		return util_fail(-ENOMEM, text, text_sz, "out of memory");
	*s = (struct spool){ .folder = -1, .lock = -1, .looks = true, .next = 1 };
	names__init(&s->names);
	err = open_folder(s, path, text, text_sz);
	if (err) {
		spool__close(s);
		return err;
	}
	/* nobody has ever had it, if there is none */
	s->lock = openat(s->folder, ".lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	*ret = s;
	return 0;
}

static void drop_records(struct spool *s)
{
	for (size_t i = s->first; i < s->end; i++)
		names__give_back(&s->names, s->records[i].name);
	s->first = s->end = 0;
	s->stats = (struct spool_stats){ 0 };
}

int spool__list(struct spool *s)
{
	drop_records(s);
	return scan(s);
}

void spool__close(struct spool *s)
{
	if (!s)
		return;
	drop_records(s);
	free(s->records);
	names__done(&s->names);
	if (s->lock >= 0)
		close(s->lock);
	if (s->folder >= 0)
		close(s->folder);
	free(s);
}

/* ---- a new one ---- */

/* Gives what is written its name, and counts it. 0 or -errno. */
static int take_in(struct spool *s, const char *tmp, uint64_t time_ns, const char *name,
		   const struct stat *st)
{
	struct record r = { .number = s->next,
			    .seconds = (uint32_t)MIN(time_ns / NSEC_PER_SEC, UINT32_MAX),
			    .blocks = blocks_of(st) };
	int err = bytes_of(&r) > s->max_sz ? -EFBIG : keep_bound(s, bytes_of(&r));
	char file[NAME_MAX + 1];

	name_file(r.number, r.seconds, name, file);
	if (!err && renameat(s->folder, tmp, s->folder, file))
		err = -errno;
	if (err)
		return err;
	err = append(s, r, name);
	if (err) {
		(void)unlinkat(s->folder, file, 0);
		return err;
	}
	s->stats.added++;
	s->stats.added_bytes += (uint64_t)st->st_size;
	return 0;
}

int spool__add(struct spool *s, uint64_t time_ns, const char *name,
	       int (*write)(void *ctx, FILE *f), void *ctx)
{
	char tmp[NUMBER_DIGITS + 8];
	struct stat st;
	int err;

	snprintf(tmp, sizeof(tmp), ".%0*" PRIu64 ".tmp", NUMBER_DIGITS, s->next);
	err = write_file(s, tmp, write, ctx, &st);
	err = err ?: take_in(s, tmp, time_ns, name, &st);
	if (err)
		(void)unlinkat(s->folder, tmp, 0);
	return err;
}

/* ---- what is there ---- */

uint64_t spool__end(const struct spool *s)
{
	return s->next;
}

/* The first whose number is not below; s->end: there is none. */
static size_t find(const struct spool *s, uint64_t number)
{
	return s->first +
	       SORTED_LOWER_BOUND(s->records + s->first, s->end - s->first, number, number);
}

bool spool__find(const struct spool *s, uint64_t number, uint64_t *ret_number,
		 uint64_t *ret_time_ns)
{
	size_t i = find(s, number);

	if (i == s->end)
		return false;
	*ret_number = s->records[i].number;
	*ret_time_ns = s->records[i].seconds * NSEC_PER_SEC;
	return true;
}

int spool__open_record(const struct spool *s, uint64_t number)
{
	size_t i = find(s, number);
	char file[NAME_MAX + 1];
	int fd;

	if (i == s->end || s->records[i].number != number)
		return -ENOENT;
	name_file(number, s->records[i].seconds, s->records[i].name->text, file);
	fd = openat(s->folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int spool__open_file(struct spool *s, const char *name)
{
	int fd;

	do {
		fd = openat(s->folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	} while (fd < 0 && spool__make_room(s, -errno));
	return fd < 0 ? -errno : fd;
}

void spool__stats(const struct spool *s, struct spool_stats *ret)
{
	*ret = s->stats;
}

int spool__folder(const struct spool *s)
{
	return s->folder;
}

/* ---- who has it, and how far that has got ---- */

pid_t spool__holder(const struct spool *s)
{
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (s->lock < 0 || fcntl(s->lock, F_GETLK, &l) || l.l_type == F_UNLCK)
		return 0;
	return l.l_pid > 0 ? l.l_pid : -1;
}

void spool__tell_window(struct spool *s, const struct spool_window *w)
{
	char text[WINDOW_SZ + 1];

	/* of one length, and in one write: who reads it has the one or the other */
	snprintf(text, sizeof(text), "%0*" PRIu64 " %0*" PRIu64 "\n", TIME_DIGITS,
		 w->end_monotonic_ns, TIME_DIGITS, w->end_realtime_ns);
	(void)!pwrite(s->lock, text, WINDOW_SZ, 0);
}

bool spool__last_window(const struct spool *s, struct spool_window *ret)
{
	char text[WINDOW_SZ + 1] = "";

	if (s->lock < 0 || pread(s->lock, text, WINDOW_SZ, 0) != WINDOW_SZ ||
	    text[TIME_DIGITS] != ' ' || text[WINDOW_SZ - 1] != '\n')
		return false;
	text[TIME_DIGITS] = text[WINDOW_SZ - 1] = '\0';
	return !util_parse_u64(text, 1, INT64_MAX, &ret->end_monotonic_ns) &&
	       !util_parse_u64(text + TIME_DIGITS + 1, 1, INT64_MAX, &ret->end_realtime_ns);
}
