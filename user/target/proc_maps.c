// SPDX-License-Identifier: BSD-2-Clause
/* Reads the text files of /proc/PID: maps, stat and status. */
#include "target/proc_maps.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/proc_status.h"
#include "base/util.h"
#include "target/proc_text.h"

#define PF_EXITING 0x00000004 /* include/linux/sched.h */
#define PF_KTHREAD 0x00200000
#define MAX_LOOKED_AT 16 /* threads of a process */
#define LOOK_AGAIN_US 2000
#define LOOKS 10 /* at a thread that is runnable */

int proc_maps_open(struct proc_maps_reader *r, const char *proc_dir, uint32_t tgid, uint32_t tid,
		   size_t max)
{
	char path[4096], *end;
	int err;

	if (tid)
		snprintf(path, sizeof(path), "%s/%u/task/%u/maps", proc_dir, tgid, tid);
	else
		snprintf(path, sizeof(path), "%s/%u/maps", proc_dir, tgid);
	*r = (struct proc_maps_reader){ 0 };
	err = proc_text_begin(path, max, &r->text, &r->sz, &r->cut);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	/* part of a line may say something else than all of it */
	end = r->cut ? memrchr(r->text, '\n', r->sz) : NULL;
	if (r->cut)
		*(end ?: r->text) = '\0';
	r->next = r->text;
	return 0;
}

void proc_maps_close(struct proc_maps_reader *r)
{
	free(r->text);
	*r = (struct proc_maps_reader){ 0 };
}

/* Hexadecimal or decimal number at *s, followed by `end`, which is passed over. */
static bool number(char **s, int base, char end, uint64_t *ret)
{
	char *rest;

	errno = 0;
	*ret = strtoull(*s, &rest, base);
	if (rest == *s || *rest != end || errno)
		return false;
	*s = rest + 1;
	return true;
}

bool proc_maps_parse(char *line, struct proc_maps_line *ret)
{
	uint64_t maj, min;
	char *s = line;

	memset(ret, 0, sizeof(*ret));
	if (!number(&s, 16, '-', &ret->start) || !number(&s, 16, ' ', &ret->end))
		return false;
	if (strnlen(s, 5) < 5 || s[4] != ' ')
		return false;
	ret->exec = s[2] == 'x';
	s += 5;
	if (!number(&s, 16, ' ', &ret->offset) || !number(&s, 16, ':', &maj) ||
	    !number(&s, 16, ' ', &min))
		return false;
	ret->file.maj = maj;
	ret->file.min = min;
	/* the inode may end the line */
	ret->file.ino = strtoull(s, &s, 10);
	while (*s == ' ')
		s++;
	ret->file.path = s;
	/* names in brackets are the kernel's own only where there is no file */
	if (ret->file.ino || maj || min)
		ret->file.kind = PROC_FILE_REGULAR;
	else
		ret->file.kind = strcmp(s, "[vdso]") ? PROC_FILE_ANON : PROC_FILE_VDSO;
	/* the upper half of the addresses is the kernel's, whatever it lends to programs there */
	return ret->end > ret->start && !(ret->start >> 63);
}

bool proc_maps_next(struct proc_maps_reader *r, struct proc_maps_line *ret)
{
	while (r->next) {
		char *line = r->next, *end = strchr(line, '\n');

		r->next = end ? end + 1 : NULL;
		if (end)
			*end = '\0';
		line[strnlen(line, PROCS_MAX_LINE)] = '\0';
		if (proc_maps_parse(line, ret))
			return true;
	}
	return false;
}

int proc_stat_start(const char *proc_dir, uint32_t tgid, uint64_t *ret_ns)
{
	unsigned long long ticks;
	char path[4096], *buf, *s, state;
	long threads;
	size_t sz;
	int err;

	snprintf(path, sizeof(path), "%s/%u/stat", proc_dir, tgid);
	err = proc_text_read(path, 65536, &buf, &sz);
	if (err)
		return err == -ENOENT ? -ESRCH : err;
	/* the name stands in parentheses and may hold anything: go by the last one; then the state,
	 * field 3, the number of threads, 20, and the start, 22 */
	s = strrchr(buf, ')');
	if (!s || sscanf(s,
			 ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
			 "%ld %*s %llu",
			 &state, &threads, &ticks) != 3)
		err = -EBADMSG;
	else if ((state == 'Z' || state == 'X') && threads <= 1)
		err = -ESRCH;
	else
		*ret_ns = ticks * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK)) - util_boottime_shift_ns();
	free(buf);
	return err;
}

bool proc_is_runnable(pid_t pid)
{
	char path[64], *buf, *s;
	bool runnable;
	size_t sz;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (util_read_file(path, 4096, &buf, &sz))
		return false;
	s = strrchr(buf, ')');
	runnable = s && !strncmp(s, ") R", 3);
	free(buf);
	return runnable;
}

bool proc_is_kthread(const char *proc_dir, uint32_t tgid)
{
	char path[4096], *buf, *s;
	unsigned int flags = 0;
	size_t sz;

	snprintf(path, sizeof(path), "%s/%u/stat", proc_dir, tgid);
	if (proc_text_read(path, 65536, &buf, &sz))
		return false;
	/* field 9, see above */
	s = strrchr(buf, ')');
	if (s)
		(void)sscanf(s, ") %*s %*s %*s %*s %*s %*s %u", &flags);
	free(buf);
	return flags & PF_KTHREAD;
}

int proc_status_ids(const char *proc_dir, uint32_t tgid, struct proc_ids *ret)
{
	const char *uids, *pids;
	char *buf;
	int err = proc_status_read(proc_dir, tgid, &buf);

	if (err)
		return err == -ENOENT ? -ESRCH : err;
	uids = proc_status_line(buf, "Uid");
	if (!uids || sscanf(uids, "%*u %u", &ret->euid) != 1)
		err = -EBADMSG;
	/* from the namespace of /proc inwards; without pid namespaces there is no such line */
	ret->ns_pid = tgid;
	pids = proc_status_line(buf, "NSpid");
	if (pids) {
		const char *last = memrchr(pids, '\t', strcspn(pids, "\n"));

		ret->ns_pid = last ? (uint32_t)strtoul(last, NULL, 10) : 0;
	}
	free(buf);
	return err ? err : ret->ns_pid ? 0 : -EBADMSG;
}

/* Where field n of a text as /proc/ID/stat is begins, one behind the name (proc(5)); NULL: there is none. */
static const char *stat_field(const char *stat, int n)
{
	const char *s = strrchr(stat, ')');

	for (int field = 2; s && field < n; field++)
		s = strchr(s + 1, ' ');
	return s ? s + 1 : NULL;
}

enum thread_life {
	THREAD_ENDS, /* or is to, with all of its process */
	THREAD_GOES_ON,
	THREAD_UNCLEAR, /* it is on its way, here or there */
};

static uint64_t run_time(const char *tasks, uint32_t tid)
{
	unsigned long long ns = 0;
	char path[96], *buf;
	size_t sz;

	snprintf(path, sizeof(path), "%s/%u/schedstat", tasks, tid);
	if (util_read_file(path, 4096, &buf, &sz))
		return 0;
	(void)sscanf(buf, "%llu", &ns);
	free(buf);
	return ns;
}

/*
 * tasks: the folder of its process. Its SIGKILL is pending until it takes note of it, and then it ends. In
 * between nothing tells that it does, but that it is runnable: one that goes on sleeps, or has run since
 * *ran_ns. 0: that is not known yet.
 */
static enum thread_life life_of(const char *tasks, uint32_t tid, uint64_t *ran_ns)
{
	uint64_t before = *ran_ns;
	char path[96], *buf;
	const char *s;
	bool ends, runs;
	size_t sz;

	*ran_ns = run_time(tasks, tid);
	if (proc_status_read(tasks, tid, &buf))
		return THREAD_ENDS;
	s = proc_status_line(buf, "SigPnd");
	ends = s && strtoull(s, NULL, 16) >> (SIGKILL - 1) & 1;
	free(buf);
	if (ends)
		return THREAD_ENDS;
	snprintf(path, sizeof(path), "%s/%u/stat", tasks, tid);
	if (util_read_file(path, 4096, &buf, &sz))
		return THREAD_ENDS;
	s = stat_field(buf, 9);
	ends = s && strtoul(s, NULL, 10) & PF_EXITING;
	s = stat_field(buf, 3);
	runs = s && *s == 'R';
	free(buf);
	if (ends)
		return THREAD_ENDS;
	return !runs || (before && *ran_ns > before) ? THREAD_GOES_ON : THREAD_UNCLEAR;
}

/* Waits until it is clear, or for LOOKS * LOOK_AGAIN_US. */
static bool goes_on(const char *tasks, uint32_t tid)
{
	enum thread_life life = THREAD_UNCLEAR;
	uint64_t ran_ns = 0;

	for (int i = 0; life == THREAD_UNCLEAR && i < LOOKS; i++) {
		if (i)
			usleep(LOOK_AGAIN_US);
		life = life_of(tasks, tid, &ran_ns);
	}
	return life == THREAD_GOES_ON;
}

/* Do threads beside the main one go on? Those of a process that exits are there for a moment. */
static bool others_go_on(pid_t pid)
{
	const struct dirent *e;
	bool ret = false;
	char tasks[64];
	DIR *d;

	snprintf(tasks, sizeof(tasks), "/proc/%d/task", pid);
	d = opendir(tasks);
	for (int i = 0; d && !ret && i < MAX_LOOKED_AT && (e = readdir(d));) {
		uint32_t tid = (uint32_t)strtoul(e->d_name, NULL, 10);

		if (!tid || tid == (uint32_t)pid)
			continue;
		ret = goes_on(tasks, tid);
		i++;
	}
	if (d)
		closedir(d);
	return ret;
}

enum main_thread main_thread_of(pid_t pid)
{
	char path[64], *buf;
	const char *s;
	bool zombie;
	size_t sz;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	err = proc_text_read(path, 4096, &buf, &sz);
	/* else it may keep others waiting, or we lack what it takes to ask */
	if (err)
		return err == -ESRCH || err == -ENOENT ? MAIN_THREAD_ENDED : MAIN_THREAD_RUNS;
	s = stat_field(buf, 3);
	zombie = s && *s == 'Z';
	free(buf);
	if (!zombie)
		return MAIN_THREAD_RUNS;
	return others_go_on(pid) ? MAIN_THREAD_LEFT : MAIN_THREAD_ENDED;
}
