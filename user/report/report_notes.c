// SPDX-License-Identifier: BSD-2-Clause
/* What is said in profiles and at the end of a run alike. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/util.h"
#include "kinds.h"
#include "profile/profile.h"
#include "report/report_parts.h"

#define EVENTS_LOST_TEXT \
	"process events were lost %" PRIu64 " times, and all processes looked at anew"
#define CUT_MAPS_TEXT \
	"a process has %" PRIu64 " ranges of code more than there is room for: stacks end there"
#define COPIES_TEXT                                                              \
	"code in memory, where a file's code was, but not named by it: %" PRIu64 \
	" pieces that are not what the file has, %" PRIu64 " that could not be compared"
#define NOT_FOLLOWED_TEXT \
	"not followed, for want of room: %" PRIu64 " child processes, and what these started"

#define TEXT_OF(name, text) text,
const char *const report_lost_text[] = { BPFPROF_LOST_REASONS(TEXT_OF) };
static const char *const result_text[] = { BPFPROF_STACK_RESULTS(TEXT_OF) };

uint64_t report_lost(const struct collect_account *a)
{
	uint64_t total = 0;

	for (int i = 0; i < BPFPROF_NR_LOST; i++)
		total += a->lost[i];
	return total;
}

double report_whole_percent(const struct collect_account *a)
{
	return a->recorded ? 100.0 * a->stacks[BPFPROF_STACK_complete] / a->recorded : 100.0;
}

const struct collect_account *report_any_account(const struct report *r)
{
	const struct collect_account *ret = &r->accounts[0];

	for (int i = 0; i < BPFPROF_NR_KINDS; i++)
		if (r->kinds[i])
			ret = &r->accounts[i];
	return ret;
}

const char *report_time_text(uint64_t ns, char *buf, size_t buf_sz)
{
	static const struct {
		double ns;
		const char *unit;
	} scales[] = { { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" }, { 1, "ns" } };
	size_t i = 0;

	while (ns && ns < scales[i].ns)
		i++;
	snprintf(buf, buf_sz, "%.4g %s", ns / scales[i].ns, scales[i].unit);
	return buf;
}

int report_say(struct profile *to, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (to)
		return profile__add_comment(to, line);
	fprintf(stderr, "  %s\n", line);
	return 0;
}

int report_say_lost(const struct collect_account *a, struct profile *to)
{
	int err = 0;

	for (int i = 0; !err && i < BPFPROF_NR_LOST; i++)
		if (a->lost[i])
			err = report_say(to, "lost %" PRIu64 ": %s", a->lost[i],
					 report_lost_text[i]);
	return err;
}

int report_say_cut(const struct collect_account *a, struct profile *to)
{
	int err = 0;

	for (int i = BPFPROF_STACK_complete + 1; !err && i < BPFPROF_NR_RESULTS; i++)
		if (a->stacks[i])
			err = report_say(to, "cut short %" PRIu64 ": %s", a->stacks[i],
					 result_text[i]);
	return err;
}

/* ---- notes ---- */

static int process_notes(const struct report *r, const struct collect_account *a,
			 struct profile *to)
{
	int err = a->events_lost ? report_say(to, EVENTS_LOST_TEXT, a->events_lost) : 0;

	if (!err && a->not_followed)
		err = report_say(to, NOT_FOLLOWED_TEXT, a->not_followed);
	if (!err && r->files.code.cut_maps)
		err = report_say(to, CUT_MAPS_TEXT, r->files.code.cut_maps);
	if (!err && (r->files.code.copies.differ || r->files.code.copies.unread))
		err = report_say(to, COPIES_TEXT, r->files.code.copies.differ,
				 r->files.code.copies.unread);
	return err;
}

int report_say_notes(const struct report *r, enum bpfprof_kind kind, struct profile *to)
{
	int err = process_notes(r, &r->accounts[kind], to);

	if (err)
		return err;
	return report_kinds[kind].notes ? report_kinds[kind].notes(r, kind, to) : 0;
}
