// SPDX-License-Identifier: BSD-2-Clause
#include "view/sum_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/util.h"
#include "profile/fit.h"
#include "profile/merge.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"

#define MB (1U << 20)

struct sum {
	struct profile_merge *merge;
	struct strtab *left_out; /* names of values that not all have */
	const char *first;	 /* file */
	int64_t duration_ns;
	bool periods_differ;
};

static int fail_file(const char *path, int err)
{
	switch (err) {
	case -EBADMSG:
		log_error(
			"cannot read '%s': it is no profile in a form of pprof or gperftools, or "
			"it is "
			"damaged",
			path);
		break;
	case -EFBIG:
	case -E2BIG:
		log_error(
			"cannot read '%s': it has more than %u MB, or takes more than %lu MB of "
			"memory, or has more than %d values to a sample",
			path, PPROF_READ_MAX / MB, PPROF_READ_MEMORY / MB, PROFILE_MAX_VALUES);
		break;
	default:
		log_error("cannot read '%s': %s", path, strerror(-err));
	}
	return err;
}

static int read_file(const char *path, struct profile **ret)
{
	size_t sz;
	char *data;
	int err = util_read_file(path, PPROF_READ_MAX, &data, &sz);

	if (err)
		return fail_file(path, err);
	if (sz)
		err = pprof_read(data, sz, ret);
	free(data);
	if (!sz) {
		log_error("cannot read '%s': it is empty", path);
		return -EBADMSG;
	}
	return err ? fail_file(path, err) : 0;
}

static int add(struct sum *s, const char *path, struct profile *p)
{
	struct profile *so_far = profile_merge__so_far(s->merge);
	char text[768];
	int err = 0;

	if (so_far && profile__bytes(so_far) >= SUM_FILES_MAX) {
		log_error("cannot add '%s': the sum of the files before it has %llu MB", path,
			  SUM_FILES_MAX / MB);
		return -EFBIG;
	}
	if (so_far) {
		err = profile_fit(so_far, p, s->left_out, text, sizeof(text));
		s->periods_differ |= !err && so_far->period != p->period;
	}
	if (err == -EINVAL) {
		log_error("cannot add '%s': %s as in '%s'", path, text, s->first);
		return err;
	}
	if (!err)
		err = profile_merge__add(s->merge, p, NULL, 0);
	if (err)
		log_error("cannot add '%s': %s", path, strerror(-err));
	s->duration_ns = util_add_saturated(s->duration_ns, MAX(p->duration_ns, 0));
	return err;
}

static int add_file(struct sum *s, const char *path)
{
	struct profile *p;
	int err = read_file(path, &p);

	if (err)
		return err;
	err = add(s, path, p);
	profile__free(p);
	return err;
}

static int take(struct sum *s, struct profile **ret)
{
	struct profile *p = profile_merge__take(s->merge);
	char text[768];
	int err;

	if (!p)
		return -errno;
	p->duration_ns = s->duration_ns;
	if (s->periods_differ)
		p->period = 0;
	err = profile_fit_say(p, s->left_out, text, sizeof(text));
	if (!err && *text) {
		profile__drop_zeros(p);
		log_info("left out, since some of the files do not have it: %s", text);
	}
	err = err ?: profile__finish(p);
	if (err)
		profile__free(p);
	else
		*ret = p;
	return err;
}

int sum_files(char *const *files, struct profile **ret)
{
	struct sum s = {
		.merge = profile_merge__new(),
		.left_out = strtab__new(),
		.first = *files,
	};
	int err = s.merge && s.left_out ? 0 : -ENOMEM;

	for (; !err && *files; files++) {
		err = add_file(&s, *files);
		if (err)
			goto out;
	}
	if (!err)
		err = take(&s, ret);
	if (err)
		log_error("cannot add up the files: %s", strerror(-err));
out:
	profile_merge__free(s.merge);
	strtab__free(s.left_out);
	return err;
}
