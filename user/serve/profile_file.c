// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "serve/profile_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/capture.h"
#include "courier/endpoints.h"
#include "kernel/cpus.h"
#include "kinds.h"
#include "options.h"
#include "profile/change.h"
#include "profile/profile.h"
#include "report/finish_profile.h"
#include "report/formats.h"
#include "report/report.h"
#include "serve/asked.h"
#include "serve/kernel_addresses.h"

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* ---- files ---- */

/* What has been written becomes a descriptor, which nobody can change. */
static int seal(FILE *f)
{
	int fd = fflush(f) || ferror(f) ? -EIO : fcntl(fileno(f), F_DUPFD_CLOEXEC, 3);

	if (fd == -1)
		fd = -errno;
	if (fclose(f) && fd >= 0) {
		close(fd);
		return -EIO;
	}
	if (fd >= 0 && fcntl(fd, F_ADD_SEALS, SEALS)) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

/* NULL with errno. */
static FILE *open_file(void)
{
	int fd = memfd_create("bpfprof", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");

	if (!f && fd >= 0)
		close(fd);
	return f;
}

int profile_file_of(const void *data, size_t sz)
{
	FILE *f = open_file();

	if (!f)
		return -errno;
	(void)fwrite(data, 1, sz, f);
	return seal(f);
}

/* ---- profiles ---- */

static const struct format *format_of(const struct asked *a)
{
	return formats_find(!a->debug			       ? "pprof" :
			    a->debug == 2 && a->endpoint->full ? "debug2" :
								 "debug1");
}

/* With names, and what there is to say of it; finished. 0 or -errno. */
static int make(struct report *report, const struct asked *a, struct capture *c,
		struct capture_profile *p)
{
	int err;

	report->accounts[a->kind] = p->account;
	err = report_comment(report, a->kind, p->profile);
	if (!err)
		err = capture__name(c, p, &report->symbols[a->kind]);
	free(p->sources);
	/* all users of this machine may ask where no token is needed */
	if (!err && !report->opts->token_file)
		err = kernel_addresses_hide(p->profile);
	if (!err && a->endpoint->default_type) {
		p->profile->default_type = profile__string(p->profile, a->endpoint->default_type);
		err = p->profile->default_type == PROFILE_NONE ? -ENOMEM : 0;
	}
	return err ? err : finish_profile(format_of(a), a->kind, p->profile);
}

/* The number of a custom profile; 0: there is none of this name. */
static uint32_t find_custom(const struct capture *c, const char *name)
{
	for (uint32_t i = 1; i <= capture__custom_cnt(c); i++)
		if (!strcmp(capture__custom_name(c, i), name))
			return i;
	return 0;
}

static int take(const struct asked *a, struct capture *c, struct capture_window *w, bool goes_on,
		const struct capture_boundary *to, struct capture_profile *ret)
{
	uint32_t number;

	if (a->kind != BPFPROF_CUSTOM)
		return goes_on ? capture__profile_so_far(c, w, to, a->kind, ret) :
				 capture__profile(c, w, to, a->kind, ret);
	number = find_custom(c, a->name);
	if (!number)
		return -ENOENT;
	return goes_on ? capture__custom_profile_so_far(c, w, to, number, ret) :
			 capture__custom_profile(c, w, to, number, ret);
}

static int write_file(const struct asked *a, const struct profile *p)
{
	FILE *f = open_file();
	int err;

	if (!f)
		return -errno;
	err = format_of(a)->write(p, &kinds[a->kind], (pid_t)a->pid, f);
	if (!err)
		return seal(f);
	fclose(f);
	return err;
}

/*
 * What is of one moment, or has been recorded from the start, is of now and has no length: so those of
 * Go are, and so readers (Parca) tell it from what has happened between two times, of which they make
 * sums and rates.
 */
static void as_of_now(struct profile *p)
{
	p->time_ns += p->duration_ns;
	p->duration_ns = 0;
}

int profile_make(const struct options *opts, const struct asked *a, struct capture *c,
		 struct capture_window *w, bool goes_on, const struct capture_boundary *to,
		 struct profile **ret)
{
	char target[32];
	struct report report = {
		.opts = opts,
		.target = target,
		.kinds = capture__kinds(c),
		.cpus = cpus_possible(),
		.is_window = true,
		.duration_ns = to->ns - capture__window_start_ns(c, w),
		.run_ns = to->ns - capture__start_ns(c),
	};
	struct capture_profile p;
	int err;

	snprintf(target, sizeof(target), "pid:%u", a->pid);
	capture__stats(c, &report.stats);
	capture__files_stats(c, &report.files);
	err = take(a, c, w, goes_on, to, &p);
	if (err)
		return err;
	err = make(&report, a, c, &p);
	if (!err && (goes_on || (a->endpoint->at_once && !a->seconds)))
		as_of_now(p.profile);
	if (err)
		profile__free(p.profile);
	else
		*ret = p.profile;
	return err;
}

int profile_file(const struct asked *a, struct profile *p)
{
	struct profile *change;
	int ret;

	if (!a->before)
		return write_file(a, p);
	ret = change_make(a->before, p, "since", &change);
	if (ret)
		return ret;
	ret = write_file(a, change);
	profile__free(change);
	return ret;
}
