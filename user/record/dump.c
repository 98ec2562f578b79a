// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "record/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "agent/ask.h"
#include "base/caps.h"
#include "base/log.h"
#include "base/stop_signals.h"
#include "base/util.h"
#include "helper/sandbox.h"
#include "kinds.h"
#include "options.h"
#include "profile/pprof.h"
#include "profile/profile.h"
#include "record/dump_records.h"
#include "record/run_parts.h"
#include "report/report.h"
#include "spool/dump_folder.h"
#include "spool/spool.h"

#define ASK_NS (15 * NSEC_PER_SEC) /* for a window's names on a busy machine, and one before it */
#define NICE 10

struct dump {
	const struct options *opts;
	struct spool *spool;
	struct dump_time when;
	struct dump_folder *folder; /* NULL: no file is written yet */
	char summaries[BPFPROF_NR_KINDS][512], left_out[BPFPROF_NR_KINDS][256];
};

/* ---- how it runs ---- */

/* What stops it leaves nothing behind: from where files are written on, it is looked for. */
static void hold_stops(void)
{
	sigset_t stops;

	stop_signals(&stops);
	(void)sigprocmask(SIG_BLOCK, &stops, NULL);
}

static bool is_stopped(void)
{
	sigset_t stops, pending, both;

	stop_signals(&stops);
	sigpending(&pending);
	return !sigandset(&both, &stops, &pending) && !sigisemptyset(&both);
}

/* From here on it reads what may be anything, and writes in a folder that it has open and that is its
 * own: without any capability, behind what the machine is there for, and the first to go. */
static void give_up_rights(void)
{
	(void)prctl(PR_SET_NAME, "bpfprof-dump");
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)caps_set(0, 0);
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	sandbox_end_first();
}

/* ---- when ---- */

/* Has the agent end its window. What comes of it is said. */
static int ask(const struct dump *d)
{
	int answer = ask_for_window(d->spool, ASK_NS);

	switch (answer) {
	case ASK_DONE:
		break;
	case ASK_NOBODY:
		log_info("no agent has the folder '%s': this is what one had written",
			 d->opts->spool);
		break;
	case ASK_ENDED:
		log_info("the agent has ended meanwhile");
		break;
	case ASK_UNSEEN:
		log_info("the agent is in another pid namespace: its last window is left out");
		break;
	case ASK_LATE:
		log_info("the agent does not end its window within %d s: that is left out",
			 (int)(ASK_NS / NSEC_PER_SEC));
		break;
	default:
		log_info("cannot ask the agent to end its window, which is left out: %s",
			 strerror(-answer));
	}
	return answer;
}

/* Up to the last window that is all there, by the clock that the agent goes by; without one, by ours. */
static void set_time(struct dump *d, int answer)
{
	struct spool_window last;
	bool runs = answer != ASK_NOBODY && answer != ASK_ENDED;

	d->when.to_ns = runs && spool__last_window(d->spool, &last) ? last.end_realtime_ns :
								      util_realtime_ns();
	d->when.from_ns = d->when.to_ns - MIN(d->when.to_ns, d->opts->dump_ns);
}

static const char *time_text(uint64_t ns, char ret[static 32])
{
	time_t seconds = (time_t)(ns / NSEC_PER_SEC);
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return ret;
}

/* ---- files ---- */

static int write_pprof(void *ctx, FILE *f)
{
	return pprof_write(ctx, f);
}

static void summarize(struct dump *d, int kind, const struct profile *p,
		      const struct dump_account *a)
{
	char *text = d->summaries[kind], quantity[64], from[32], to[32];
	size_t sz = sizeof(d->summaries[kind]), n = 0;

	for (size_t v = 0; v < p->value_cnt; v++) {
		const char *what = kinds[kind].quantities[v];

		/* of the former, how many there are */
		if (!what && v)
			continue;
		report_quantity(p, v, quantity, sizeof(quantity));
		n += snprintf(text + n, sz - n, "%s %s, ", quantity,
			      what ? what : p->value_types[v].type);
	}
	snprintf(text + n, sz - n, "of %zu profiles from %s to %s%s%s%s", a->added,
		 time_text(a->begin_ns, from), time_text(a->end_ns, to),
		 *a->values ? ", without " : "", a->values,
		 *a->values ? ", which some do not have" : "");
}

/* Writes the file of a kind, if there is something. 0 or -errno. */
static int dump_kind(struct dump *d, const struct dump_records *r, int kind)
{
	struct dump_account account;
	struct profile *p;
	char name[64];
	int err = dump_records__sum(d->spool, r, kind, &d->when, is_stopped, &p, &account);

	dump_account_text(&account, d->left_out[kind], sizeof(d->left_out[kind]));
	if (err || !p)
		return err;
	if (!d->folder)
		err = dump_folder__new(spool__folder(d->spool), &d->folder);
	snprintf(name, sizeof(name), "all.%s.pb.gz", kinds[kind].name);
	if (!err)
		err = dump_folder__add(d->folder, name, write_pprof, p);
	summarize(d, kind, p, &account);
	profile__free(p);
	return err;
}

static int dump_kinds(struct dump *d)
{
	char left_out[256];
	struct dump_records r;
	int err = spool__list(d->spool);

	if (err)
		return err;
	err = dump_records__find(d->spool, &d->when, &r);
	for (int i = 0; !err && i < BPFPROF_NR_KINDS; i++)
		err = dump_kind(d, &r, i);
	dump_account_text(&r.unknown, left_out, sizeof(left_out));
	if (*left_out)
		log_info("left out: profiles %s", left_out);
	dump_records__done(&r);
	return err;
}

/* ---- what is said ---- */

static void say_summaries(const struct dump *d, const char *name)
{
	for (int i = 0; i < BPFPROF_NR_KINDS; i++) {
		if (*d->summaries[i])
			log_info("%s/%s/all.%s.pb.gz: %s", d->opts->spool, name, kinds[i].name,
				 d->summaries[i]);
		if (*d->left_out[i])
			log_info("%s: left out: profiles %s", kinds[i].name, d->left_out[i]);
	}
}

static void say_nothing(const struct dump *d)
{
	uint64_t number = 0, begin_ns, newest_ns = 0;
	char text[32];

	while (spool__find(d->spool, number, &number, &begin_ns)) {
		newest_ns = begin_ns;
		number++;
	}
	if (newest_ns)
		log_error("nothing was dumped: '%s' has no profile of the last %" PRIu64
			  " s, the newest is of %s",
			  d->opts->spool, d->opts->dump_ns / NSEC_PER_SEC,
			  time_text(newest_ns, text));
	else
		log_error("nothing was dumped: '%s' has no profiles", d->opts->spool);
}

static int dump(struct dump *d)
{
	char name[DUMP_FOLDER_NAME_SZ];
	int err = dump_kinds(d);

	if (!err && !d->folder) {
		say_summaries(d, "");
		say_nothing(d);
		return -ENODATA;
	}
	if (!err && is_stopped())
		err = -EINTR;
	if (!err)
		err = dump_folder__commit(d->folder, util_realtime_ns(), name);
	if (err == -EINTR)
		log_error("aborted: nothing was dumped");
	else if (err)
		log_error("cannot dump to '%s': %s", d->opts->spool, strerror(-err));
	if (err)
		return err;
	say_summaries(d, name);
	printf("%s/%s\n", d->opts->spool, name);
	return fflush(stdout) || ferror(stdout) ? -EIO : 0;
}

int run_dump(const struct options *opts)
{
	struct dump d = { .opts = opts };
	char text[512];
	int err = spool__look(opts->spool, &d.spool, text, sizeof(text));

	if (err) {
		run_log_setup(opts, "spool", opts->spool, text);
		return 2;
	}
	set_time(&d, ask(&d));
	give_up_rights();
	hold_stops();
	err = dump(&d);
	dump_folder__free(d.folder);
	spool__close(d.spool);
	return err ? 1 : 0;
}
