// SPDX-License-Identifier: BSD-2-Clause
/* Where the agent's profiles go: each window's, one for each group of processes and kind, into the
 * spool. */
#include <linux/types.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/groups.h"
#include "base/log.h"
#include "base/util.h"
#include "capture/capture.h"
#include "config.h"
#include "kinds.h"
#include "options.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "profile/split.h"
#include "record/run_parts.h"
#include "report/report.h"
#include "spool/labels.h"
#include "spool/spool.h"

#define MAX_SERVICE 80 /* bytes of a file's name */
/* Of a record: stores refuse more than 16,000 samples, and more than 4 MiB before it is compressed,
 * which may be more in the form that they take. */
#define MAX_SAMPLES 8000
#define MAX_BYTES (2U << 20)

int run_open_spool(struct run *r)
{
	char text[512];
	int err = spool__open(r->opts->spool, r->opts->spool_sz, &r->spool, text, sizeof(text));

	if (err) {
		r->wrong_setup = true;
		run_log_setup(r->opts, "spool", r->opts->spool, text);
	}
	return err;
}

/* ---- records ---- */

struct record {
	const struct profile *p;
	char *labels;
	size_t labels_sz, max_sz;
};

static int write_pprof(void *ctx, FILE *f)
{
	const struct record *r = ctx;

	return pprof_write_extra(r->p, r->labels, r->labels_sz, r->max_sz, f);
}

/* For those who read records without their profiles. 0 or -ENOMEM. */
static int label_record(const struct group *g, int kind, struct record *r)
{
	struct labels l = { 0 };

	labels__add(&l, "kind", kinds[kind].name);
	labels__add(&l, "service_name", g->service);
	for (size_t i = 0; g->labels[i].key; i++)
		labels__add(&l, g->labels[i].key, g->labels[i].value);
	return labels__encode(&l, &r->labels, &r->labels_sz);
}

/* What may stand in a name that people type and shells expand. */
static void name_record(const struct group *g, int kind, char *ret, size_t ret_sz)
{
	size_t n = snprintf(ret, ret_sz, "%.*s", MAX_SERVICE, g->service);

	n = MIN(n, ret_sz - 1);
	for (size_t i = 0; i < n; i++)
		if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._@-",
			    ret[i]))
			ret[i] = '_';
	snprintf(ret + n, ret_sz - n, ".%s.pb.gz", kinds[kind].name);
}

/* Whose profile it is, as far as all samples agree. */
static int say_group(struct profile *p, const struct group *g)
{
	char text[1024], line[3 * sizeof(text)];
	size_t n = snprintf(text, sizeof(text), "service_name=%s", g->service);

	for (size_t i = 0; g->labels[i].key && n < sizeof(text); i++)
		n += snprintf(text + n, sizeof(text) - n, " %s=%s", g->labels[i].key,
			      g->labels[i].value);
	/* whoever makes a control group chooses its name: the comment stays one line */
	return profile__add_comment(p, util_printable(line, sizeof(line), text));
}

static int say_left_out(struct run *r, uint64_t left_out, struct profile *p)
{
	struct spool_stats stats;
	char text[256];
	int err = 0;

	if (left_out) {
		snprintf(text, sizeof(text), "left out: %" PRIu64 " %s of bpfprof itself", left_out,
			 p->value_types[0].type);
		err = profile__add_comment(p, text);
	}
	if (!err)
		err = run_budget_comment(r, p);
	spool__stats(r->spool, &stats);
	if (!err && stats.dropped) {
		snprintf(text, sizeof(text),
			 "the folder is full: %" PRIu64
			 " older profiles, %.1f MiB, were removed so far",
			 stats.dropped, (double)stats.dropped_bytes / (1 << 20));
		err = profile__add_comment(p, text);
	}
	return err;
}

/* -EMSGSIZE: it is larger than a record may be, and its samples are several. */
static int add_record(struct run *r, int kind, const struct group *g, struct profile *p)
{
	struct record record = { .p = p, .max_sz = p->sample_cnt > 1 ? MAX_BYTES : 0 };
	char name[SPOOL_NAME_SZ];
	int err = profile__finish(p);

	if (!err)
		err = label_record(g, kind, &record);
	if (err)
		return err;
	name_record(g, kind, name, sizeof(name));
	capture__meanwhile(r->capture);
	err = spool__add(r->spool, (uint64_t)p->time_ns, name, write_pprof, &record);
	free(record.labels);
	return err;
}

/* Where it is too large, as a record for each half of its samples. */
static int add_records(struct run *r, int kind, const struct group *g, struct profile *p)
{
	struct profile *halves[2] = { NULL };
	uint32_t *half_of;
	int err = add_record(r, kind, g, p);

	if (err != -EMSGSIZE)
		return err;
	half_of = malloc(p->sample_cnt * sizeof(*half_of));
	for (size_t i = 0; half_of && i < p->sample_cnt; i++)
		half_of[i] = i >= p->sample_cnt / 2;
	err = half_of ? profile_split(p, half_of, ARRAY_SIZE(halves), halves) : -ENOMEM;
	free(half_of);
	for (size_t i = 0; i < ARRAY_SIZE(halves); i++) {
		if (!err)
			err = add_records(r, kind, g, halves[i]);
		profile__free(halves[i]);
	}
	return err;
}

static int put_part(struct run *r, int kind, uint64_t left_out, const struct group *g,
		    struct profile *p)
{
	int err = say_group(p, g);

	if (!err)
		err = say_left_out(r, left_out, p);
	return err ? err : add_records(r, kind, g, p);
}

/* What becomes a record: a group, or a part of one that has too many samples. */
struct parts {
	uint32_t *of;	 /* by sample */
	uint32_t *group; /* by part */
	size_t cnt;
};

/* 0 or -ENOMEM; either way *ret is the caller's to release. */
static int cut_groups(const struct groups *groups, size_t sample_cnt, struct parts *ret)
{
	size_t max = groups->cnt + sample_cnt / MAX_SAMPLES;
	uint32_t *last = calloc(groups->cnt + 1, sizeof(*last)); /* part of each group */
	uint32_t *room = calloc(groups->cnt + 1, sizeof(*room)); /* that it has */

	*ret = (struct parts){ .of = malloc((sample_cnt + 1) * sizeof(*ret->of)),
			       .group = malloc((max + 1) * sizeof(*ret->group)) };
	if (!last || !room || !ret->of || !ret->group) {
		free(last);
		free(room);
		return -ENOMEM;
	}
	for (size_t i = 0; i < sample_cnt; i++) {
		uint32_t g = groups->of[i];

		if (!room[g]) {
			room[g] = MAX_SAMPLES;
			last[g] = (uint32_t)ret->cnt;
			ret->group[ret->cnt++] = g;
		}
		room[g]--;
		ret->of[i] = last[g];
	}
	free(last);
	free(room);
	return 0;
}

/* All of them, as far as they can be written: one that cannot does not keep the others back. 0 or
 * -errno, of the first; -EINTR: the user does not want to wait. */
static int put_parts(struct run *r, int kind, uint64_t left_out, const struct groups *groups,
		     const struct parts *parts, struct profile *const profiles[])
{
	int err = 0, part_err;

	for (size_t i = 0; i < parts->cnt; i++) {
		if (run_is_aborted(r))
			return -EINTR;
		part_err = put_part(r, kind, left_out, &groups->v[parts->group[i]], profiles[i]);
		err = err ?: part_err;
	}
	return err;
}

/* One kind's: a record for each part. 0 or -errno. */
static int put_kind(struct run *r, int kind, uint64_t left_out)
{
	const struct profile *p = r->profiles[kind];
	struct profile **profiles = NULL;
	const struct config *config = run_config(r);
	char node[256] = "";
	const struct groups_opts opts = {
		.services = config ? config->services : NULL,
		.service_cnt = config ? config->service_cnt : 0,
		.node = node,
	};
	struct groups groups;
	struct parts parts;
	int err;

	(void)gethostname(node, sizeof(node) - 1);
	err = groups_make(p, &opts, &groups);
	if (err)
		return err;
	r->totals.own[kind] += left_out;
	/* each takes 10 ms where there are 500 groups */
	capture__meanwhile(r->capture);
	err = cut_groups(&groups, p->sample_cnt, &parts);
	if (!err)
		profiles = calloc(parts.cnt + 1, sizeof(*profiles));
	if (!err)
		err = profiles ? profile_split(p, parts.of, parts.cnt, profiles) : -ENOMEM;
	capture__meanwhile(r->capture);
	if (!err)
		err = put_parts(r, kind, left_out, &groups, &parts, profiles);
	for (size_t i = 0; profiles && i < parts.cnt; i++)
		profile__free(profiles[i]);
	free(profiles);
	free(parts.of);
	free(parts.group);
	groups__done(&groups);
	return err;
}

/* All that there will be of it is there: tells those who wait for that. */
static void tell_window(const struct run *r, const struct report *report)
{
	struct spool_window w = { .end_monotonic_ns =
					  capture__start_ns(r->capture) + report->run_ns };

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (r->profiles[i])
			w.end_realtime_ns =
				(uint64_t)(r->profiles[i]->time_ns + r->profiles[i]->duration_ns);
	spool__tell_window(r->spool, &w);
}

int run_spool_window(struct run *r, const struct report *report)
{
	int err = 0, kind_err;

	for (int i = 0; err != -EINTR && i < BPFPROF_NR_KINDS; i++) {
		bool given_up = run_budget_off_in_window(r) & 1U << i;

		kind_err = report->kinds[i] && !given_up ? put_kind(r, i, report->left_out[i]) : 0;
		err = kind_err == -EINTR ? kind_err : err ?: kind_err;
	}
	tell_window(r, report);
	run_count_window(r, report, !err);
	run_budget_window(r);
	run_tell_status(r);
	run_push_news(r);
	if (err == -EINTR)
		log_error("aborted: not all profiles of the last window were written");
	else if (err)
		log_error("not all profiles of a window could be written to '%s': %s",
			  r->opts->spool, strerror(-err));
	return err;
}
